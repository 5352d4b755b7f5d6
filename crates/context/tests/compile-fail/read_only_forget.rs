//! Forgetting is removing keys, which a read-only context does not do either.

mod environment;
use environment::*;
use milieu_context::{Context, ReadOnly, SingleThread};

fn end_of_session(cx: &mut Context<Environment, ReadOnly<SingleThread>>) {
    cx.forget(Session("anna"));
}

fn main() {}
