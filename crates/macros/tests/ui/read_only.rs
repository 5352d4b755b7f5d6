// Expansions name the facade, `::milieu`; what they need of it is here.
extern crate self as milieu;
pub use milieu_context as context;
pub use milieu_keys as keys;

use milieu_context::Coordinator;
use milieu_macros::Environment;

#[derive(Environment)]
struct Station {
    #[key("/version", readonly)]
    version: bool,
}

mod specified {
    milieu_macros::environment! { "
        [/version]
        type=boolean
        readonly
    " }
}

fn main() {
    let coordinator = Coordinator::new();
    let mut cx = coordinator.context::<Station>().unwrap();
    cx.set::<at::version>(true).unwrap();
    let mut cx = coordinator.context::<specified::Environment>().unwrap();
    cx.set::<specified::at::version>(true).unwrap();
}
