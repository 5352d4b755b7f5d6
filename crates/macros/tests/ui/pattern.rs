// Expansions name the facade, `::milieu`; what they need of it is here.
extern crate self as milieu;
pub use milieu_context as context;
pub use milieu_keys as keys;

use milieu_macros::Environment;

#[derive(Environment)]
struct Station {
    #[key("/sw/%session/language")]
    not_closed: bool,
    #[key("/sw/../language")]
    climbs: bool,
    #[key("/sw//language/")]
    not_canonical: bool,
    #[key("/same/%a%")]
    one: bool,
    #[key("/same/%b%")]
    other: i32,
}

fn main() {}
