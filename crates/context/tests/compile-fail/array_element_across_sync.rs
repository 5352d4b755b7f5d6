//! An element belongs to the array as it is until the next synchronization.

mod environment;
use environment::*;

fn main() {
    let mut cx = open();
    let host = &cx.hosts[0];
    cx.sync();
    println!("{host}");
}
