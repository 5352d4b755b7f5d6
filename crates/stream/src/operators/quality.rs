//! How well it is known what events say, and what becomes of that.

use std::sync::Arc;

use milieu_transfer::{Event, Quality};

/// What is wrong with the sensor of an event.
#[inline]
pub(crate) fn failure(event: &Event) -> Option<&Arc<str>> {
    event.header().quality.as_ref()?.failure.as_ref()
}

/// The truth lies at most this far from what an event says.
pub(crate) fn accuracy(event: &Event) -> Option<f64> {
    event.header().quality.as_ref()?.accuracy
}

/// The quality of what is made of one event. Its accuracy stays only where the
/// numbers are the same.
pub(crate) fn carried(event: &Event, same_numbers: bool) -> Option<Box<Quality>> {
    let mut quality = event.header().quality.clone()?;
    if !same_numbers {
        quality.accuracy = None;
    }
    (*quality != Quality::default()).then_some(quality)
}

/// A quality, unless there is nothing to say.
pub(crate) fn quality(accuracy: Option<f64>, failure: Option<Arc<str>>) -> Option<Box<Quality>> {
    let says_something = accuracy.is_some() || failure.is_some();
    says_something.then(|| {
        Box::new(Quality {
            age: None,
            accuracy,
            failure,
        })
    })
}
