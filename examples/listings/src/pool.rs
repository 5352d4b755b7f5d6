//! III-E: a layer for a pool of threads: a single activation influences all of
//! them and no other. They are selected by the role that they were given.

use std::{borrow::Cow, thread};

use milieu::{ContextOptions, Coordinator, Error, Scope, ThreadLayer, Threads, each};

use crate::specifications::workers::Environment;

struct Background;

impl ThreadLayer for Background {
    const ID: &'static str = "background";
    fn value(&self, scope: &Scope<'_>) -> Cow<'_, str> {
        let in_pool = scope.role().starts_with("/pool/background/");
        Cow::Borrowed(if in_pool { "active" } else { "" })
    }
}

/// Executes the listing.
///
/// # Errors
///
/// Only with a defect.
pub fn run() -> Result<String, Error> {
    let coordinator = Coordinator::new();
    coordinator.assign("/worker/active/batch", "5", None)?;
    let roles = ["/pool/background/1", "/pool/background/2", "/http"];
    let threads: Vec<_> = roles
        .into_iter()
        .map(|role| {
            let options = ContextOptions::new().role(role);
            let mut cx = coordinator.context_with::<Environment, Threads>(options)?;
            Ok::<_, Error>(thread::spawn(move || {
                assert!(cx.wait(None));
                cx.sync();
                format!("{role} {}", cx.worker.batch)
            }))
        })
        .collect::<Result<_, _>>()?;

    let mut cx = coordinator.context::<Environment>()?;
    cx.activate(each(Background))?;
    let batches: Vec<String> = threads
        .into_iter()
        .map(|thread| thread.join().expect("the thread ends"))
        .collect();
    assert_eq!(
        batches,
        ["/pool/background/1 5", "/pool/background/2 5", "/http 100"]
    );
    Ok(batches.join(", "))
}
