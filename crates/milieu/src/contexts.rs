//! A context for each request.

use std::sync::{Arc, Mutex, PoisonError};

use milieu_context::{Context, Environment, Policy, Threads};

/// Hands out a context for each request: a fork of one that is kept in step.
///
/// Cloning gives another handle. Handing out costs one uncontended lock, a
/// comparison and the copy of the environment.
pub struct Contexts<E: Environment, P: Policy = Threads> {
    kept: Arc<Mutex<Context<E, P>>>,
}

impl<E: Environment, P: Policy> Clone for Contexts<E, P> {
    fn clone(&self) -> Self {
        Contexts {
            kept: self.kept.clone(),
        }
    }
}

impl<E: Environment, P: Policy> Contexts<E, P> {
    /// Contexts like this one. Of the layers entered in it, they have those
    /// that [say so](milieu_context::Layer::INHERITED).
    pub fn new(like: Context<E, P>) -> Self {
        Contexts {
            kept: Arc::new(Mutex::new(like)),
        }
    }

    /// A context that has synchronized just now.
    #[must_use]
    pub fn context(&self) -> Context<E, P> {
        // A panic of a thread-based layer's author leaves the context consistent.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.sync();
        kept.fork()
    }
}
