//! A context whose policy is read-only assigns nothing.

mod environment;
use environment::*;
use milieu_context::{ContextOptions, Coordinator, ReadOnly};

fn main() {
    let coordinator = Coordinator::new();
    let options = ContextOptions::new();
    let mut cx = coordinator
        .context_with::<Environment, ReadOnly>(options)
        .unwrap();
    cx.set::<at::size>(5).unwrap();
}
