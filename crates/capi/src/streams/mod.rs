//! Streams of events from C: what `include/milieu/streams.h` declares and documents.

mod abi;
#[cfg(feature = "sources")]
mod adapters;
mod compute;
mod effect;
#[cfg(feature = "links")]
mod engine;
mod event;
#[cfg(any(feature = "http", feature = "mqtt"))]
mod foreign;
#[cfg(feature = "links")]
mod link;
mod look;
mod names;
mod operator;
mod publisher;
mod reader;
mod rights;
mod source;
mod subscription;
mod types;

use std::{sync::Arc, time::Duration};

use milieu::{
    Milieu,
    stream::{CannotName, CannotPublish, Stepping, Streams as Graph, VirtualClock},
    transfer::Time,
};

use crate::{
    abi::{
        MILIEU_BUSY, MILIEU_INVALID, MILIEU_LATE, MILIEU_WRONG_NAME, milieu_result, milieu_text,
    },
    call::{Failure, call, out},
    coordinator::{Coordinator, milieu_coordinator},
    handle::{self, Slot, handle},
    layout::check_abi,
    lent,
};

pub use abi::*;
#[cfg(feature = "sources")]
pub use adapters::*;
pub use compute::*;
pub use effect::*;
#[cfg(feature = "links")]
pub use engine::*;
pub use event::*;
#[cfg(any(feature = "http", feature = "mqtt"))]
pub use foreign::*;
#[cfg(feature = "links")]
pub use link::*;
pub use look::*;
pub use names::*;
pub use operator::*;
pub use publisher::*;
pub use reader::*;
pub use rights::milieu_reader_new_with;
use source::within;
pub use source::*;
pub use subscription::*;
pub use types::{
    milieu_event_type, milieu_event_type_name, milieu_event_type_new, milieu_event_type_unit,
};

/// The streams of a coordinator.
pub struct Streams(pub(crate) Arc<Opened>);

/// What everything that came of streams keeps.
pub(crate) struct Opened {
    /// Where time passes only when it is told to.
    pub stepping: Option<Stepping>,
    pub milieu: Arc<Milieu>,
}

handle!(Streams, b"strm", "milieu_streams");

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_streams = Slot<Streams>;

impl Opened {
    pub fn graph(&self) -> &Graph {
        self.milieu.streams()
    }
}

impl From<CannotPublish> for Failure {
    fn from(error: CannotPublish) -> Self {
        Failure::new(MILIEU_WRONG_NAME, error)
    }
}

impl From<CannotName> for Failure {
    fn from(error: CannotName) -> Self {
        let result = match error {
            CannotName::Inside => MILIEU_BUSY,
            _ => MILIEU_WRONG_NAME,
        };
        Failure::new(result, error)
    }
}

/// A time of the other side: negative is for ever.
pub(crate) fn limit(timeout_ns: i64) -> Option<Duration> {
    u64::try_from(timeout_ns).ok().map(Duration::from_nanos)
}

/// Opens the streams of a coordinator.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_streams_new(
    coordinator: *const milieu_coordinator,
    options: *const milieu_streams_options,
    streams: *mut *mut milieu_streams,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Coordinator(milieu), options, streams) = unsafe {
            (
                handle::shared(coordinator)?,
                options.as_ref(),
                out(streams, "streams")?,
            )
        };
        if let Some(options) = options {
            check_abi(options.abi, "options")?;
        }
        let options = options.filter(|options| options.virtual_time);
        let clock =
            options.map(|options| VirtualClock::new(Time::from_nanoseconds(options.now_ns)));
        if let Some(clock) = &clock {
            let set = milieu.clock(clock.clone());
            set.map_err(|error| Failure::new(MILIEU_LATE, error))?;
        }
        let stepping = clock.map(|clock| milieu.streams().stepping(clock));
        let milieu = Arc::clone(milieu);
        *streams = handle::new(Streams(Arc::new(Opened { stepping, milieu })));
        Ok(())
    })
}

/// Gives streams back.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_streams_free(streams: *mut milieu_streams) {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(streams)? });
        Ok(())
    });
}

/// What time it is.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_streams_now(
    streams: *const milieu_streams,
    now_ns: *mut i64,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), now_ns) =
            unsafe { (handle::shared(streams)?, out(now_ns, "now_ns")?) };
        *now_ns = opened.graph().now().nanoseconds();
        Ok(())
    })
}

/// Lets virtual time pass.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_streams_pass(
    streams: *const milieu_streams,
    until_ns: i64,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let Streams(opened) = unsafe { handle::shared(streams)? };
        let Some(stepping) = &opened.stepping else {
            return Err(Failure::new(
                MILIEU_INVALID,
                "these streams go by the clock of the system; open them with `virtual_time`",
            ));
        };
        within(opened)?;
        stepping.run(Time::from_nanoseconds(until_ns));
        Ok(())
    })
}

/// Waits until all sources were polled once.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_streams_wait_for_sources(
    streams: *const milieu_streams,
    timeout_ns: i64,
    polled: *mut bool,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), polled) =
            unsafe { (handle::shared(streams)?, out(polled, "polled")?) };
        within(opened)?;
        // In virtual time they are polled when they are added.
        *polled = match opened.stepping {
            Some(_) => true,
            None => {
                let limit = limit(timeout_ns).unwrap_or(Duration::MAX);
                opened.milieu.driving()?.has_looked(limit)
            }
        };
        Ok(())
    })
}

/// Lets names follow a layer that no flow names.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_streams_follow(
    streams: *const milieu_streams,
    layer: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), layer) = unsafe { (handle::shared(streams)?, layer.read("layer")?) };
        Ok(opened.milieu.follow(layer)?)
    })
}

/// Starts the threads.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_streams_drive(streams: *const milieu_streams) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let Streams(opened) = unsafe { handle::shared(streams)? };
        if opened.stepping.is_none() {
            opened.milieu.driving()?;
        }
        Ok(())
    })
}
