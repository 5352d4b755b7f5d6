// Expansions name the facade, `::milieu`; what they need of it is here.
extern crate self as milieu;
pub use milieu_context as context;
pub use milieu_keys as keys;

milieu_macros::layer! {
    struct Session(String) = "%session%";
}

milieu_macros::layer! {
    struct Pair(String, String) = "pair";
}

milieu_macros::layer! {
    struct Unnamed;
}

fn main() {}
