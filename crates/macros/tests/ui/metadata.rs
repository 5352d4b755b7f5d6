// Expansions name the facade, `::milieu`; what they need of it is here.
extern crate self as milieu;
pub use milieu_context as context;
pub use milieu_keys as keys;

use milieu_context::Text;
use milieu_macros::Environment;

#[derive(Environment)]
struct Station {
    #[key(defualt = "en")]
    misspelt: Text,
    #[key(colour = "red")]
    unknown: Text,
    #[key(unit = "s", unit = "ms")]
    twice: u32,
    #[key(range = "ten")]
    no_range: u32,
    #[key(check/enum = ["a", "b"], opt = 'p')]
    list: Text,
}

#[derive(Environment)]
#[environment(at = options)]
struct Options {
    #[key(opt = 'p')]
    port: u16,
    #[key(opt = 'p')]
    path: Text,
}

#[derive(Environment)]
#[environment(at = renamed)]
struct Renamed {
    #[key("/sw/%session%/port", was = ["/port/%session%", "/%user%/port"])]
    port: u16,
}

fn main() {}
