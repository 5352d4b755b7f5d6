// Expansions name the facade, `::milieu`; what they need of it is here.
extern crate self as milieu;
pub use milieu_context as context;
pub use milieu_keys as keys;

use milieu_macros::{Choice, Environment};

#[derive(Environment)]
struct Station {
    string: String,
    byte: u8,
    size: usize,
    maybe: Option<bool>,
    list: Vec<bool>,
    pair: (bool, bool),
}

type Celsius = f64;

#[derive(Environment)]
struct Alias {
    #[key(type = "float")]
    wrong: Celsius,
}

#[derive(Environment)]
struct NoType {
    #[key(type = "decimal")]
    price: Celsius,
}

#[derive(Environment)]
struct Generic<T> {
    value: T,
}

#[derive(Environment)]
struct Tuple(bool);

#[derive(Environment)]
#[repr(packed)]
struct Packed {
    value: u32,
}

#[derive(Environment)]
enum Enum {
    Value,
}

#[derive(Choice)]
enum NoRepr {
    Value,
}

#[derive(Choice)]
#[repr(u32)]
enum Numbered {
    Value = 3,
}

#[derive(Choice)]
#[repr(u32)]
enum Filled {
    Value(u32),
}

#[derive(Choice)]
#[repr(u32)]
enum Same {
    #[choice("b")]
    A,
    B,
}

#[derive(Choice)]
struct Struct;

fn main() {}
