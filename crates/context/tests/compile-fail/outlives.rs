//! A value does not outlive its context.

mod environment;
use environment::*;

fn main() {
    let language: &str = {
        let cx = open();
        &cx.language
    };
    println!("{language}");
}
