//! III-E: `class Thread`, a layer that is activated globally and influences
//! one thread.
//!
//! A thread is known by the identity of its context, which stays the same and
//! is never given again, as against the number of `pthread_self`.

use std::{borrow::Cow, thread};

use milieu::{Coordinator, Error, Scope, ThreadLayer, each};

use crate::specifications::workers::Environment;

struct Thread {
    selected: u64,
}

impl ThreadLayer for Thread {
    const ID: &'static str = "thread";
    fn value(&self, scope: &Scope<'_>) -> Cow<'_, str> {
        if scope.identity() == self.selected {
            return Cow::Borrowed("active");
        }
        Cow::Borrowed("")
    }
}

/// Executes the listing.
///
/// # Errors
///
/// Only with a defect.
pub fn run() -> Result<String, Error> {
    let coordinator = Coordinator::new();
    coordinator.assign("/worker/active/verbose", "true", None)?;
    let contexts: Vec<_> = (0..3)
        .map(|_| coordinator.context::<Environment>())
        .collect::<Result<_, _>>()?;
    let selected = contexts[1].identity();

    let mut cx = coordinator.context::<Environment>()?;
    cx.activate(each(Thread { selected }))?;
    let threads: Vec<_> = contexts
        .into_iter()
        .map(|mut cx| {
            thread::spawn(move || {
                cx.sync();
                cx.worker.verbose
            })
        })
        .collect();
    let verbose: Vec<bool> = threads
        .into_iter()
        .map(|thread| thread.join().expect("the thread ends"))
        .collect();
    assert_eq!(verbose, [false, true, false]);
    Ok("the second of three threads is verbose".to_owned())
}
