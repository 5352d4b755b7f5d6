// Expansions name the facade, `::milieu`; what they need of it is here.
extern crate self as milieu;
pub use milieu_context as context;
pub use milieu_keys as keys;

use milieu_macros::{Choice, Environment};

#[derive(Choice)]
#[repr(u32)]
enum Language {
    En,
    De,
}

#[derive(Environment)]
struct Station {
    #[key(default = "fr")]
    language: Language,
}

fn main() {}
