//! A `Text` cannot be cloned either; `to_string` makes a `String` that stays.

mod environment;
use environment::*;
use milieu_context::Text;

fn main() {
    let cx = open();
    let language: Text = cx.language.clone();
    drop(cx);
    println!("{language}");
}
