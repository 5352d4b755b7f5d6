//! An array is assigned elements of its own type.

mod environment;
use environment::*;

fn main() {
    let mut cx = open();
    cx.set::<at::hosts>(&[1, 2]).unwrap();
}
