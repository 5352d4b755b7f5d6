//! Two tasks that run at once need two contexts; `fork` makes the second.

mod environment;
use environment::*;
use milieu_context::Context;
use std::future::Future;

async fn greet(cx: &mut Context<Environment>, session: &'static str) {
    let cx = cx.enter(Session(session));
    println!("{}", cx.language);
}

async fn join(_one: impl Future<Output = ()>, _two: impl Future<Output = ()>) {}

async fn both(mut cx: Context<Environment>) {
    join(greet(&mut cx, "anna"), greet(&mut cx, "otto")).await;
}

fn main() {
    drop(both(open()));
}
