//! An `Array` does not leave its environment.

mod environment;
use environment::*;
use milieu_context::{Array, Text};

fn main() {
    let cx = open();
    let hosts: Array<Text> = cx.hosts;
    drop(cx);
    println!("{hosts:?}");
}
