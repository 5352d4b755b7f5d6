//! A field is read; assigning goes through `set`, which checks and keeps.

mod environment;
use environment::*;

fn main() {
    let cx = open();
    cx.size = 5;
}
