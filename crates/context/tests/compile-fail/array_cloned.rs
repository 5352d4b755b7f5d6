//! An `Array` cannot be cloned; `to_vec` makes a `Vec` where elements can be.

mod environment;
use environment::*;
use milieu_context::{Array, Text};

fn main() {
    let cx = open();
    let hosts: Array<Text> = cx.hosts.clone();
    drop(cx);
    println!("{hosts:?}");
}
