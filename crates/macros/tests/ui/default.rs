// Expansions name the facade, `::milieu`; what they need of it is here.
extern crate self as milieu;
pub use milieu_context as context;
pub use milieu_keys as keys;

use milieu_context::Text;
use milieu_macros::Environment;

#[derive(Environment)]
struct Station {
    #[key(default = "ten")]
    number: i32,
    #[key(default = 11, range = "1-10")]
    outside: i32,
    #[key(range = "1-10")]
    zero_outside: i32,
    #[key(default = "too long", check/length = "1-3")]
    length: Text,
}

fn main() {}
