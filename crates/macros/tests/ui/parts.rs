// Expansions name the facade, `::milieu`; what they need of it is here.
extern crate self as milieu;
pub use milieu_context as context;
pub use milieu_keys as keys;

use milieu_macros::Environment;

#[derive(Environment)]
#[environment(at = limit)]
struct Limits {
    low: f64,
}

#[derive(Environment)]
#[environment(at = station)]
struct Station {
    #[part]
    wind: Limits,
    #[part]
    rain: Limits,
}

fn main() {}
