//! Recordings that are stopped and moved within.

use milieu::transfer::Time;
use milieu_adapters::replay::{Control, Pace};

use crate::{
    abi::{MILIEU_INVALID, milieu_result},
    call::{Failure, call, out},
    handle::{self, Using},
    streams::{
        abi::MILIEU_NOW,
        source::{Source, milieu_source},
    },
};

/// A source, and what it is told as a recording.
///
/// # Safety
///
/// As `sources.h` says of the source.
unsafe fn recording<'a>(
    source: *const milieu_source,
) -> Result<(Using<'a, Source>, Control), Failure> {
    // SAFETY: as the caller vouches.
    let source = unsafe { handle::using(source)? };
    let control = source.control.clone().ok_or_else(|| {
        Failure::new(
            MILIEU_INVALID,
            "this source replays no recording; those of `replay.csv`, `replay.json_lines` and \
             `replay.nmea` do",
        )
    })?;
    Ok((source, control))
}

/// Tells a recording something.
///
/// # Safety
///
/// As [`recording`].
unsafe fn tell(source: *const milieu_source, tell: impl FnOnce(&Control)) -> Result<(), Failure> {
    // SAFETY: as the caller vouches.
    let (source, control) = unsafe { recording(source)? };
    tell(&control);
    source.wake();
    Ok(())
}

/// Stops a recording.
///
/// # Safety
///
/// As `sources.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_replay_pause(source: *const milieu_source) -> milieu_result {
    // SAFETY: as the caller vouches.
    call(|| unsafe { tell(source, Control::pause) })
}

/// Lets a recording go on.
///
/// # Safety
///
/// As `sources.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_replay_resume(source: *const milieu_source) -> milieu_result {
    // SAFETY: as the caller vouches.
    call(|| unsafe { tell(source, Control::resume) })
}

/// Lets a recording go on elsewhere.
///
/// # Safety
///
/// As `sources.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_replay_seek(
    source: *const milieu_source,
    time_ns: i64,
) -> milieu_result {
    call(|| {
        let time = Time::from_nanoseconds(time_ns);
        // SAFETY: as the caller vouches.
        unsafe { tell(source, |control| control.seek(time)) }
    })
}

/// Lets a recording go on at another speed.
///
/// # Safety
///
/// As `sources.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_replay_pace(
    source: *const milieu_source,
    times: f64,
) -> milieu_result {
    call(|| {
        if times.is_nan() || times <= 0.0 {
            return Err(Failure::new(
                MILIEU_INVALID,
                format_args!(
                    "nothing is {times} times as fast; give a number above 0, INFINITY for as fast \
                     as can be, or stop by milieu_replay_pause"
                ),
            ));
        }
        let pace = match times.is_finite() {
            true => Pace::Times(times),
            false => Pace::Immediate,
        };
        // SAFETY: as the caller vouches.
        unsafe { tell(source, |control| control.pace(pace)) }
    })
}

/// Where in its recording a source is.
///
/// # Safety
///
/// As `sources.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_replay_position(
    source: *const milieu_source,
    time_ns: *mut i64,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let ((source, control), time_ns) =
            unsafe { (recording(source)?, out(time_ns, "time_ns")?) };
        let position = control.position(source.now());
        *time_ns = position.map_or(MILIEU_NOW, Time::nanoseconds);
        Ok(())
    })
}
