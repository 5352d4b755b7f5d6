//! How it goes on that a callback has failed.
//!
//! Everything is made consistent first. Then it unwinds, as a panic of the
//! callback does. In programs whose panics end them there is nothing that could
//! unwind: the failure waits for whoever has made the call that led to it.

use std::any::Any;
#[cfg(not(panic = "unwind"))]
use std::cell::RefCell;

/// The depth of a frame that was left again because a layer's author has failed.
pub const NOWHERE: usize = usize::MAX;

/// What a callback has failed with.
pub type Failed = Box<dyn Any + Send>;

#[cfg(not(panic = "unwind"))]
thread_local! {
    static WAITING: RefCell<Option<Failed>> = const { RefCell::new(None) };
}

/// Goes on with a failure; of several that have to wait, the first.
#[cfg(panic = "unwind")]
pub fn go_on(failed: Failed) {
    std::panic::resume_unwind(failed);
}

/// Goes on with a failure; of several that have to wait, the first.
#[cfg(not(panic = "unwind"))]
pub fn go_on(failed: Failed) {
    WAITING.with(|waiting| {
        waiting.borrow_mut().get_or_insert(failed);
    });
}

/// The failure that waits in this thread is this one from now on; the one that
/// waited until now. Where panics unwind, none ever waits.
#[cfg(panic = "unwind")]
#[inline]
pub fn waiting(_failed: Option<Failed>) -> Option<Failed> {
    None
}

/// The failure that waits in this thread is this one from now on; the one that
/// waited until now. Where panics unwind, none ever waits.
#[cfg(not(panic = "unwind"))]
pub fn waiting(failed: Option<Failed>) -> Option<Failed> {
    WAITING.with(|waiting| waiting.replace(failed))
}
