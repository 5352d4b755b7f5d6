//! Publishers: where a program's own events come from.

use std::ffi::c_void;
use std::sync::Arc;

use milieu::stream::{Published, Publisher as Publishing};

use super::{
    Opened, Streams,
    abi::milieu_quality,
    event::When,
    milieu_streams,
    types::{EventType, Record, Typed, milieu_event_type},
};
use crate::{
    abi::{MILIEU_REFUSED, milieu_result, milieu_text},
    call::{Failure, call, null, out},
    handle::{self, Slot, handle},
};

/// Publishes events of a type.
pub struct Publisher {
    publisher: Publishing<Record>,
    of: &'static EventType,
    opened: Arc<Opened>,
}

handle!(Publisher, b"publ", "milieu_publisher"; super::clock::refuse);

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_publisher = Slot<Publisher>;

/// Takes a name.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_publisher_new(
    streams: *const milieu_streams,
    name: milieu_text,
    of: *const milieu_event_type,
    retains: bool,
    publisher: *mut *mut milieu_publisher,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), name, Typed(of), publisher) = unsafe {
            (
                handle::shared(streams)?,
                name.read("name")?,
                handle::shared(of)?,
                out(publisher, "publisher")?,
            )
        };
        let made = match retains {
            true => opened.graph().retaining_publisher(name),
            false => opened.graph().publisher(name),
        };
        *publisher = handle::new(Publisher {
            publisher: made?,
            of,
            opened: Arc::clone(opened),
        });
        Ok(())
    })
}

/// Gives the name back.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_publisher_free(publisher: *mut milieu_publisher) {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(publisher)? });
        Ok(())
    });
}

/// Publishes an event.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_publisher_publish(
    publisher: *const milieu_publisher,
    body: *const c_void,
    quality: *const milieu_quality,
    sequence: *mut u64,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (known, When { time, quality }, sequence) = unsafe {
            (
                handle::shared(publisher)?,
                When::read(quality)?,
                sequence.as_mut(),
            )
        };
        if body.is_null() {
            return Err(null("body"));
        }
        // SAFETY: as the caller vouches.
        let record = unsafe { Record::copy(known.of, body.cast())? };
        let time = time.unwrap_or_else(|| known.opened.graph().now());
        let kind = known.of.kind();
        match known.publisher.publish_kind(kind, time, quality, record) {
            Published::Accepted(number) => {
                if let Some(sequence) = sequence {
                    *sequence = number;
                }
                Ok(())
            }
            Published::Refused => Err(Failure::new(
                MILIEU_REFUSED,
                "a subscriber that wants every event cannot take one now; publish it again later",
            )),
        }
    })
}
