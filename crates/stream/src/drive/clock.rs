//! The wall clock, and a descriptor that becomes readable at a time of it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::SystemTime;

use milieu_transfer::Time;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// A timer of the wall clock that also says when the clock was set.
pub(super) struct Clock {
    timer: OwnedFd,
    armed: Option<Time>,
}

impl Clock {
    pub(super) fn new() -> io::Result<Clock> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Realtime, flags)?;
        let mut clock = Clock { timer, armed: None };
        clock.arm(Time::MAX)?;
        Ok(clock)
    }

    /// Becomes readable at this time, and when the clock is set. True: the
    /// clock was set since the last call.
    pub(super) fn arm(&mut self, due: Time) -> io::Result<bool> {
        if self.armed == Some(due) {
            return Ok(false);
        }
        // A time of zero would disarm the timer.
        let nanoseconds = due.nanoseconds().max(1);
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let when = Itimerspec {
            it_interval: zero,
            it_value: Timespec {
                tv_sec: nanoseconds / 1_000_000_000,
                tv_nsec: nanoseconds % 1_000_000_000,
            },
        };
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        let was_set = match timerfd_settime(&self.timer, flags, &when) {
            Ok(_) => false,
            // The timer is armed all the same, and reading it tells no more.
            Err(Errno::CANCELED) => true,
            Err(error) => return Err(error.into()),
        };
        self.armed = Some(due);
        Ok(was_set)
    }

    /// Takes note that it was readable. True: because the clock was set.
    pub(super) fn read(&mut self) -> bool {
        self.armed = None;
        let mut count = [0; 8];
        rustix::io::read(&self.timer, &mut count) == Err(Errno::CANCELED)
    }
}

impl AsFd for Clock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

/// What time it is.
pub(super) fn now() -> Time {
    SystemTime::now().into()
}
