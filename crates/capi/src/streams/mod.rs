//! Streams of events from C: what `include/milieu/streams.h` declares and documents.

mod abi;
#[cfg(feature = "sources")]
mod adapters;
mod clock;
mod codec;
mod compute;
mod effect;
#[cfg(feature = "links")]
mod engine;
mod event;
mod flow;
#[cfg(any(feature = "http", feature = "mqtt"))]
mod foreign;
#[cfg(feature = "links")]
mod link;
mod look;
mod memory;
mod mode;
mod names;
mod operator;
mod publisher;
mod reader;
mod rights;
mod source;
mod subscription;
mod types;

use std::{
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};

use milieu::{
    Error, Milieu,
    stream::{Blocking, CannotName, CannotPublish, Stepping, Streams as Graph, VirtualClock},
    transfer::{Span, Time},
};

use crate::{
    abi::{
        MILIEU_BUSY, MILIEU_INVALID, MILIEU_LATE, MILIEU_WRONG_NAME, milieu_result, milieu_text,
    },
    call::{Failure, call, null, out},
    coordinator::{Coordinator, milieu_coordinator},
    handle::{self, Slot, handle},
    layout::check_abi,
    lent,
};

pub use abi::*;
#[cfg(feature = "sources")]
pub use adapters::*;
use clock::OwnClock;
pub use clock::milieu_clock;
pub use codec::*;
pub use compute::*;
pub use effect::*;
#[cfg(feature = "links")]
pub use engine::*;
pub use event::*;
pub use flow::*;
#[cfg(any(feature = "http", feature = "mqtt"))]
pub use foreign::*;
#[cfg(feature = "links")]
pub use link::*;
pub use look::*;
pub use memory::*;
pub use mode::*;
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

handle!(Streams, b"strm", "milieu_streams"; clock::refuse);

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
        let options = unsafe { options.as_ref() };
        if let Some(options) = options {
            check_abi(options.abi, "options")?;
        }
        let own = options.and_then(OwnClock::of);
        // SAFETY: as the caller vouches.
        let (Coordinator(milieu), streams) =
            unsafe { (handle::shared(coordinator)?, out(streams, "streams")?) };
        let late = |error| Failure::new(MILIEU_LATE, error);
        let options = options.filter(|options| options.virtual_time);
        let clock =
            options.map(|options| VirtualClock::new(Time::from_nanoseconds(options.now_ns)));
        match (&clock, own) {
            (Some(_), Some(_)) => {
                return Err(Failure::new(
                    MILIEU_INVALID,
                    "`virtual_time` has a clock of its own; leave out `clock`, or that",
                ));
            }
            (Some(clock), None) => milieu.clock(clock.clone()).map_err(late)?,
            (None, Some(clock)) => milieu.clock(clock).map_err(late)?,
            (None, None) => {}
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

/// Starts the threads, on these terms for what takes long.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_streams_drive_with(
    streams: *const milieu_streams,
    terms: *const milieu_blocking,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), terms) = unsafe {
            (
                handle::shared(streams)?,
                terms.as_ref().ok_or_else(|| null("terms"))?,
            )
        };
        check_abi(terms.abi, "terms")?;
        let none = |what: &str| {
            Failure::new(
                MILIEU_INVALID,
                format_args!("`{what}` is to be above 0; MILIEU_BLOCKING has what is usual"),
            )
        };
        let limit = Span::from_nanoseconds(terms.patience_ns);
        let terms = Blocking {
            threads: NonZeroUsize::new(terms.threads as usize).ok_or_else(|| none("threads"))?,
            capacity: NonZeroU32::new(terms.queue).ok_or_else(|| none("queue"))?,
            limit: Some(limit)
                .filter(|limit| *limit > Span::ZERO)
                .ok_or_else(|| none("patience_ns"))?,
        };
        if opened.stepping.is_none() {
            let driven = opened.milieu.drive_with(terms);
            driven.map_err(|error| match error {
                Error::System(_) => Failure::from(error),
                _ => Failure::new(MILIEU_LATE, error),
            })?;
        }
        Ok(())
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
