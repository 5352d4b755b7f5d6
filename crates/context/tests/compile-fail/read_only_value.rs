//! The specification says `readonly`, so the marker is no `Assign`.

mod environment;
use environment::*;

fn main() {
    let mut cx = open();
    cx.set::<at::version>(true).unwrap();
}
