//! Trying a rung in a child of its own, because some ways have no way back.
//!
//! The child shares the memory, runs while its parent's thread waits, makes a few
//! system calls and ends. It sends no signal when it does, and a program that
//! waits for its own children does not find it.

use core::ffi::{c_int, c_void};

use super::cgroup::Groups;
use super::{Rung, scheduling};
use crate::attributes::Priority;
use crate::kernel::{self, Errno, call};
use crate::table::Scheduling;

/// How it went.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trial {
    /// Into the region.
    pub there: Result<(), Errno>,
    /// And back to where the thread was.
    pub back: Result<(), Errno>,
}

struct Task<'t> {
    rung: Rung,
    groups: Option<&'t Groups>,
    trial: Trial,
}

unsafe extern "C" {
    // As `clone`, before which sanitizers stand that take every child for one with a memory of
    // its own.
    #[cfg_attr(target_env = "gnu", link_name = "__clone")]
    fn clone(
        run: extern "C" fn(*mut c_void) -> c_int,
        stack_end: *mut c_void,
        flags: c_int,
        task: *mut c_void,
        ...
    ) -> c_int;
}

/// Enough for a few system calls and a path, in words as aligned as a stack is.
type Stack = [u128; 2048];

pub(super) fn of(rung: Rung, groups: Option<&Groups>) -> Result<Trial, Errno> {
    let not_yet = Err(Errno(libc::ECHILD));
    let mut task = Task {
        rung,
        groups,
        trial: Trial {
            there: not_yet,
            back: not_yet,
        },
    };
    let mut stack = core::mem::MaybeUninit::<Stack>::uninit();
    // No signal in the flags' last byte: nobody is told when the child ends.
    let flags = libc::CLONE_VM | libc::CLONE_VFORK;
    // SAFETY: this thread waits until the child has ended, so stack and task are
    // the child's until then, and so is this thread's `errno`, which is put back.
    // The kernel wants the stack's upper end.
    let child = unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let end = stack.as_mut_ptr().add(1).cast::<c_void>();
        let child = clone(run, end, flags, (&raw mut task).cast());
        let error = Errno(*errno);
        *errno = before;
        if child < 0 {
            return Err(error);
        }
        child
    };
    let arguments = [child as usize, 0, libc::__WCLONE as usize, 0, 0, 0];
    // SAFETY: nothing is written.
    while unsafe { call(libc::SYS_wait4, arguments) } == Err(Errno(libc::EINTR)) {}
    Ok(task.trial)
}

extern "C" fn run(task: *mut c_void) -> c_int {
    // SAFETY: it is the parent's, which waits.
    let task = unsafe { &mut *task.cast::<Task<'_>>() };
    task.trial = task.run();
    0
}

impl Task<'_> {
    fn run(&self) -> Trial {
        let tid = kernel::thread_id();
        if let Some(groups) = self.groups {
            return Trial {
                there: groups.make_lazy(tid),
                back: groups.bring_home(tid),
            };
        }
        let here = scheduling::of(tid);
        let inherited = here.unwrap_or_default();
        // Of a parent that runs in real time it would tell nothing.
        let own = Scheduling {
            policy: libc::SCHED_OTHER as u8,
            ..inherited
        };
        if inherited != own {
            let _ = scheduling::set(tid, &own);
        }
        let wanted = match self.rung {
            Rung::Realtime => {
                scheduling::realtime(Priority::LAST, &own, scheduling::priority_max())
            }
            Rung::Idle => Scheduling {
                policy: libc::SCHED_IDLE as u8,
                ..own
            },
            Rung::Cgroup | Rung::Nice => Scheduling { nice: 19, ..own },
        };
        Trial {
            there: scheduling::set(tid, &wanted),
            back: scheduling::set(tid, &own),
        }
    }
}
