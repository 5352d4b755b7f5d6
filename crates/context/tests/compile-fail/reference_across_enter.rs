//! A `str` of a value does not cross a switch.

mod environment;
use environment::*;

fn main() {
    let mut cx = open();
    let language: &str = &cx.language;
    let inner = cx.enter(Session("anna"));
    println!("{language} {}", inner.language);
}
