//! A clock of the program.

use std::{
    cell::Cell,
    ffi::c_void,
    sync::atomic::{AtomicI64, Ordering},
};

use milieu::{stream::Clock, transfer::Time};

use super::abi::{MILIEU_NOW, milieu_streams_options};
use crate::{abi::MILIEU_BUSY, call::Failure, scope::User};

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_clock = Option<unsafe extern "C" fn(user: *mut c_void) -> i64>;

thread_local! {
    /// Whether a clock is being asked in this thread.
    static ASKED: Cell<bool> = const { Cell::new(false) };
}

/// What the program says of the time.
pub(super) struct OwnClock {
    tell: unsafe extern "C" fn(*mut c_void) -> i64,
    user: User,
    /// What it said last.
    last: AtomicI64,
}

impl OwnClock {
    /// The clock of these options, if they have one; `user` is let go of where they have none.
    pub fn of(options: &milieu_streams_options) -> Option<OwnClock> {
        let user = User::new(options.user, options.destroy);
        let tell = options.clock?;
        Some(OwnClock {
            tell,
            user,
            last: AtomicI64::new(options.now_ns),
        })
    }
}

impl Clock for OwnClock {
    fn now(&self) -> Time {
        let mut told = MILIEU_NOW;
        // What it does to contexts may have come back here.
        if !ASKED.replace(true) {
            // SAFETY: the program has handed over both for this.
            told = unsafe { (self.tell)(self.user.data()) };
            ASKED.set(false);
        }
        if told == MILIEU_NOW {
            told = self.last.load(Ordering::Relaxed);
        } else {
            self.last.store(told, Ordering::Relaxed);
        }
        Time::from_nanoseconds(told)
    }
}

/// Refuses what is asked of streams by a clock, for which they wait perhaps.
#[inline]
pub(super) fn refuse() -> Result<(), Failure> {
    match ASKED.get() {
        false => Ok(()),
        true => Err(refused()),
    }
}

#[cold]
fn refused() -> Failure {
    Failure::new(
        MILIEU_BUSY,
        "streams wait for what this clock says, so that it cannot ask them for anything; let it \
         look at something else",
    )
}
