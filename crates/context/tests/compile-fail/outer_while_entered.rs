//! While layers are entered, the context is used through the guard.

mod environment;
use environment::*;

fn main() {
    let mut cx = open();
    let inner = cx.enter(Session("anna"));
    cx.sync();
    println!("{}", inner.size);
}
