// Expansions name the facade, `::milieu`; what they need of it is here.
extern crate self as milieu;
pub use milieu_context as context;
pub use milieu_keys as keys;

use milieu_macros::Environment;

#[derive(Environment)]
struct Station {
    #[key(default = vec)]
    no_literal: u32,
    #[key("/sw" default = 5)]
    no_comma: u32,
}

#[derive(Environment)]
#[environment(rot = "/sw")]
struct Settings {
    one: bool,
}

fn main() {}
