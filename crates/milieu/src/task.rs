//! Tasks with a context of their own.

use std::future::Future;

use milieu_context::{Context, Environment, Policy};
use tokio::task::JoinHandle;

/// Spawns a task that gets a fork of this context: of the layers entered here,
/// it has those that [say so](milieu_context::Layer::INHERITED). For all of
/// them, [capture](Context::capture) the context and enter what was captured.
///
/// ```no_run
/// # use milieu::{Context, Environment};
/// # async fn example<E: Environment>(cx: &Context<E>) {
/// milieu::spawn(cx, async move |mut cx| {
///     cx.changed().await;
///     cx.sync();
/// });
/// # }
/// ```
pub fn spawn<E, P, F, R>(cx: &Context<E, P>, task: F) -> JoinHandle<R::Output>
where
    E: Environment,
    P: Policy,
    F: FnOnce(Context<E, P>) -> R,
    R: Future + Send + 'static,
    R::Output: Send + 'static,
{
    tokio::spawn(task(cx.fork()))
}
