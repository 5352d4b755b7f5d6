//! hello
fn main() {}
