//! III-G: policies, chosen as type parameters, which cost nothing at run time.
//!
//! The paper's `using ContextualValue = Value<T, ContextPolicyIs<…>, …>` is a
//! type alias here. A value that is read-only in a context cannot be assigned,
//! and the compiler says so:
//!
//! ```compile_fail,E0277
//! use listings::specifications::number::{Environment, at};
//! use milieu::{Context, ReadOnly};
//!
//! fn assign(cx: &mut Context<Environment, ReadOnly>) {
//!     cx.set::<at::value>(8);
//! }
//! ```
//!
//! With another policy it can:
//!
//! ```
//! use listings::specifications::number::{Environment, at};
//! use milieu::{Context, SingleThread};
//!
//! fn assign(cx: &mut Context<Environment, SingleThread>) {
//!     cx.set::<at::value>(8).expect("a number");
//! }
//! ```

use milieu::{
    Context, ContextOptions, Coordinator, Error, NoContext, Policy, ReadOnly, SingleThread, Threads,
};

use crate::specifications::algorithm::{Environment, at::algorithm::accuracy, layer::BatteryLow};

/// The paper's `ContextualValue`: environments whose contexts are `ThreadContext`s.
type Contextual<P = Threads> = Context<Environment, P>;

/// A policy of one's own: values change and are shared, layers do nothing.
enum NoLayers {}
impl Policy for NoLayers {
    const LAYERS: bool = false;
}

fn context<P: Policy>(c: &Coordinator) -> Result<Contextual<P>, Error> {
    Ok(c.context_with(ContextOptions::new())?)
}

/// The accuracy before anything, in a layer, and after another thread's
/// assignment is synchronized.
fn observe<P: Policy>() -> Result<[i32; 3], Error> {
    let c = Coordinator::new();
    c.assign("/algorithm/%/accuracy", "100", None)?;
    c.assign("/algorithm/yes/accuracy", "10", None)?;
    let mut cx = context::<P>(&c)?;
    let before = cx.algorithm.accuracy;
    let inside = cx.with(BatteryLow("yes"), |cx| cx.algorithm.accuracy);
    context::<Threads>(&c)?.set::<accuracy>(50)?;
    cx.sync();
    Ok([before, inside, cx.algorithm.accuracy])
}

/// Executes the listing.
///
/// # Errors
///
/// Only with a defect.
pub fn run() -> Result<String, Error> {
    assert_eq!(observe::<Threads>()?, [100, 10, 50]);
    assert_eq!(observe::<ReadOnly>()?, [100, 10, 50]);
    assert_eq!(observe::<SingleThread>()?, [100, 10, 100]);
    assert_eq!(observe::<ReadOnly<SingleThread>>()?, [100, 10, 100]);
    assert_eq!(observe::<NoLayers>()?, [100, 100, 50]);
    assert_eq!(observe::<NoContext>()?, [100, 100, 100]);
    let sizes = [
        size_of::<Contextual>(),
        size_of::<Contextual<NoContext>>(),
        size_of::<Contextual<ReadOnly<SingleThread>>>(),
    ];
    assert!(sizes.iter().all(|size| *size == sizes[0]));
    Ok("six of them, of one size".to_owned())
}
