//! Where operators and functions put what they publish, and what becomes of events.

use std::ffi::c_void;

use milieu::{
    stream::{Fate, Output, Reason},
    transfer::{Event, Quality, Time},
};

use super::super::{
    abi::milieu_quality,
    event::{When, find as find_event, milieu_event},
    lent::{Lend, Lent, Standing},
    types::{Record, Typed, milieu_event_type},
};
use crate::{
    abi::{MILIEU_INVALID, MILIEU_NO_SUCH, MILIEU_OK, milieu_result, milieu_text},
    call::{Failure, call, null, out, said},
    handle,
};

/// Where an operator puts what it publishes.
pub struct Emitting {
    /// Borrowed for the callback, which may not keep it.
    output: *mut Output<'static>,
    /// The event that has come, if one has.
    event: *const Event,
    /// Whether it is an operator's, which goes on after the callback.
    remembers: bool,
    pub(in super::super) fate: Fate,
    pub(super) due: Option<Time>,
    /// How many of those that were held are so no more.
    pub(super) settled: usize,
}

impl Lend for Emitting {
    const TAG: [u8; 4] = *b"outp";
    const NAME: &'static str = "milieu_output";
}

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_output = Lent<Emitting>;

/// Runs a callback with an output: why it has failed if it has, and what it has said.
pub(in super::super) fn with_output(
    standing: &mut Standing<Emitting>,
    event: Option<&Event>,
    out: &mut Output<'_>,
    due: Option<Time>,
    remembers: bool,
    callback: impl FnOnce(*mut milieu_output) -> milieu_result,
) -> (Result<(), String>, Emitting) {
    let mut emitting = Emitting {
        output: std::ptr::from_mut(out).cast(),
        event: event.map_or(std::ptr::null(), std::ptr::from_ref),
        remembers,
        fate: Fate::Used,
        due,
        settled: 0,
    };
    let result = standing.during(&mut emitting, callback);
    let result = match result {
        MILIEU_OK => Ok(()),
        _ => Err(said()),
    };
    (result, emitting)
}

impl Emitting {
    fn output(&mut self) -> &mut Output<'static> {
        // SAFETY: `with_output` has it until the callback returns, and does not touch it
        // meanwhile.
        unsafe { &mut *self.output }
    }

    fn event(&self) -> Option<&Event> {
        // SAFETY: as above.
        unsafe { self.event.as_ref() }
    }

    /// Refuses what only operators can do.
    fn remembers(&self) -> Result<(), Failure> {
        match self.remembers {
            true => Ok(()),
            false => Err(Failure::new(
                MILIEU_INVALID,
                "a function remembers nothing from event to event; define an operator by \
                 milieu_operator_define",
            )),
        }
    }

    fn decide(&mut self, fate: Fate) -> Result<(), Failure> {
        if self.event.is_null() {
            return Err(Failure::new(
                MILIEU_NO_SUCH,
                "no event has come whose fate could be said: the operator was woken",
            ));
        }
        self.fate = fate;
        Ok(())
    }
}

/// What time it is.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_output_now(
    output: *const milieu_output,
    now_ns: *mut i64,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (emitting, now_ns) =
            unsafe { (Lent::find(output.cast_mut())?, out(now_ns, "now_ns")?) };
        *now_ns = emitting.output().now().nanoseconds();
        Ok(())
    })
}

/// Publishes an event of the operator's own.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_output_publish(
    output: *mut milieu_output,
    of: *const milieu_event_type,
    body: *const c_void,
    quality: *const milieu_quality,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (emitting, Typed(of), known) = unsafe {
            (
                Lent::find(output)?,
                handle::shared(of)?,
                When::read(quality)?,
            )
        };
        if body.is_null() {
            return Err(null("body"));
        }
        // SAFETY: as the caller vouches.
        let record = unsafe { Record::copy(of, body.cast())? };
        let come = emitting.event().map(Event::time);
        let carried = match quality.is_null() {
            true => emitting.event().and_then(carried),
            false => known.quality.map(Box::new),
        };
        let output = emitting.output();
        let time = known.time.or(come).unwrap_or_else(|| output.now());
        output.emit_kind(of.kind(), time, carried, record);
        Ok(())
    })
}

/// What stays true of something else that is made of an event.
fn carried(event: &Event) -> Option<Box<Quality>> {
    let quality = event.header().quality.as_deref()?;
    let kept = Quality {
        accuracy: None,
        ..quality.clone()
    };
    (kept != Quality::default()).then(|| Box::new(kept))
}

/// The event goes on as it is.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_output_pass(output: *mut milieu_output) -> milieu_result {
    // SAFETY: as the caller vouches.
    call(|| unsafe { Lent::find(output)? }.decide(Fate::Passed))
}

/// The event goes no further.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_output_drop(
    output: *mut milieu_output,
    why: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (emitting, why) = unsafe { (Lent::find(output)?, why.read("why")?) };
        emitting.decide(Fate::Dropped(reason(why)?))
    })
}

/// A reason by its word; none is that an event was not asked for.
pub(in super::super) fn reason(why: &str) -> Result<Reason, Failure> {
    if why.is_empty() {
        return Ok(Reason::Filtered);
    }
    let mut all = Reason::ALL.into_iter();
    all.find(|reason| reason.as_str() == why).ok_or_else(|| {
        let all: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        Failure::new(
            MILIEU_INVALID,
            format_args!("`{why}` is none of the reasons {}", all.join(", ")),
        )
    })
}

/// The operator keeps the event.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_output_hold(output: *mut milieu_output) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let emitting = unsafe { Lent::find(output)? };
        emitting.remembers()?;
        emitting.decide(Fate::Held)
    })
}

/// Sends an event on that was held.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_output_pass_held(
    output: *mut milieu_output,
    kept: *const milieu_event,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (emitting, event) = unsafe { (Lent::find(output)?, find_event(kept)?) };
        emitting.remembers()?;
        let event = event.clone();
        emitting.output().pass(event);
        emitting.settled += 1;
        Ok(())
    })
}

/// Held events have gone into what was published, or go no further.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_output_settle_held(
    output: *mut milieu_output,
    used: u32,
    dropped: u32,
    why: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (emitting, why) = unsafe { (Lent::find(output)?, why.read("why")?) };
        let reason = reason(why)?;
        emitting.remembers()?;
        emitting.output().used(u64::from(used));
        if dropped > 0 {
            emitting.output().drop(reason, u64::from(dropped));
        }
        emitting.settled += used as usize + dropped as usize;
        Ok(())
    })
}

/// When the operator wants to be woken.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_output_wake_at(
    output: *mut milieu_output,
    at_ns: i64,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let emitting = unsafe { Lent::find(output)? };
        emitting.remembers()?;
        emitting.due = (at_ns != i64::MAX).then(|| Time::from_nanoseconds(at_ns));
        Ok(())
    })
}
