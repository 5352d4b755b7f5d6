// Expansions name the facade, `::milieu`; what they need of it is here.
extern crate self as milieu;
pub use milieu_context as context;
pub use milieu_keys as keys;

use milieu_context::{Array, Text};
use milieu_macros::{Choice, Environment};

#[derive(Environment)]
struct Names {
    #[key("/hosts")]
    no_number: Array<Text>,
    #[key("/ports/#")]
    no_array: u16,
    #[key("/servers/#/name")]
    inside: Text,
    #[key("/a/#/b/#")]
    nested: Array<Text>,
}

#[derive(Environment)]
struct Types {
    list: Array<Array<i32>>,
    bytes: Array<u8>,
}

#[derive(Environment)]
struct Rules {
    #[key(default = 5)]
    default: Array<i32>,
    #[key(range = "one-two")]
    range: Array<i32>,
    #[key(array/min = 3, array/max = 2)]
    number: Array<i32>,
}

#[derive(Environment)]
struct Alias {
    #[key("/wrong/#", type = "long")]
    wrong: Numbers,
}

type Numbers = Array<i16>;

#[derive(Choice)]
#[repr(u32)]
enum Colour {
    Red,
}

#[derive(Environment)]
#[environment(at = of_colours)]
struct Colours {
    all: Array<Colour>,
}

fn main() {}
