//! A reference to a value ends where values may change.

mod environment;
use environment::*;

fn main() {
    let mut cx = open();
    let language = &cx.language;
    cx.sync();
    println!("{language}");
}
