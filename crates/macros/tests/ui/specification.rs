// Expansions name the facade, `::milieu`; what they need of it is here.
extern crate self as milieu;
pub use milieu_context as context;
pub use milieu_keys as keys;

mod wrong {
    milieu_macros::environment! { "
        [/sw/%session%/port]
        type=lnog
    " }
}

mod missing {
    milieu_macros::environment!("tests/no-such-file.ini");
}

mod setting {
    milieu_macros::environment!("tests/specifications/station.ini", rot = "/sw");
}

fn main() {}
