//! A `Text` does not leave its environment.

mod environment;
use environment::*;
use milieu_context::Text;

fn main() {
    let cx = open();
    let language: Text = cx.language;
    drop(cx);
    println!("{language}");
}
