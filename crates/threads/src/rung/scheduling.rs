//! How the kernel schedules a thread, asked and told.

use crate::attributes::Priority;
use crate::kernel::{self, Errno, call};
use crate::table::Scheduling;

/// The most that a critical thread gets: below the kernel's own threads for
/// interrupts, which have 50.
const PRIORITY_MAX: u8 = 40;

/// The nice value of the largest share: whoever may give it may give all.
pub const NICE_FIRST: i8 = -20;

const CAP_SYS_NICE: u32 = 23;
const FLAG_RESET_ON_FORK: u64 = 1;

/// `struct sched_attr`, as it was first.
#[repr(C)]
#[derive(Debug, Default)]
struct Attr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// How a thread of this machine is scheduled.
///
/// # Errors
/// If it has ended.
pub fn of(tid: u32) -> Result<Scheduling, Errno> {
    let attr = attr_of(tid)?;
    let policy = attr.policy as u8;
    // It is not told there of a thread that runs in real time, for which it is kept.
    let nice = if is_realtime(policy) {
        nice_of(tid)?
    } else {
        attr.nice as i8
    };
    Ok(Scheduling {
        policy,
        nice,
        realtime_priority: attr.priority as u8,
        is_reset_on_fork: attr.flags & FLAG_RESET_ON_FORK != 0,
    })
}

/// For how long an ordinary thread runs at a time; 0 where the kernel does not tell,
/// before Linux 6.12.
///
/// # Errors
/// If it has ended.
pub fn slice_ns_of(tid: u32) -> Result<u64, Errno> {
    attr_of(tid).map(|it| it.runtime)
}

fn nice_of(tid: u32) -> Result<i8, Errno> {
    let arguments = [libc::PRIO_PROCESS as usize, tid as usize, 0, 0, 0, 0];
    // SAFETY: touches no memory.
    let said = unsafe { call(libc::SYS_getpriority, arguments) }?;
    // From 40 for the first to 1 for the last.
    Ok(20 - said as i8)
}

fn set_nice(tid: u32, nice: i8) -> Result<(), Errno> {
    let which = libc::PRIO_PROCESS as usize;
    let arguments = [which, tid as usize, nice as isize as usize, 0, 0, 0];
    // SAFETY: touches no memory.
    unsafe { call(libc::SYS_setpriority, arguments) }.map(|_| ())
}

fn attr_of(tid: u32) -> Result<Attr, Errno> {
    let mut attr = Attr::default();
    let arguments = [
        tid as usize,
        &raw mut attr as usize,
        size_of::<Attr>(),
        0,
        0,
        0,
    ];
    // SAFETY: writes to `attr`, no more than its size.
    unsafe { call(libc::SYS_sched_getattr, arguments) }?;
    Ok(attr)
}

/// Has a thread be scheduled so. "Not inherited", which only the privileged can
/// take back, stays where it cannot.
///
/// # Errors
/// If it may not be, or has ended.
pub fn set(tid: u32, to: &Scheduling) -> Result<(), Errno> {
    set_with_slice(tid, to, 0)
}

/// As [`set`], and a thread of `SCHED_OTHER` runs for so long at a time when others want
/// the processor as well; 0 is the usual. Before Linux 6.12 it always is.
///
/// # Errors
/// As there.
pub fn set_with_slice(tid: u32, to: &Scheduling, slice_ns: u64) -> Result<(), Errno> {
    match set_exactly(tid, to, slice_ns) {
        Err(Errno(libc::EPERM)) if !to.is_reset_on_fork => {
            let kept = Scheduling {
                is_reset_on_fork: true,
                ..*to
            };
            // Only where it is there already: nothing is set that was not wanted.
            if !of(tid)?.is_reset_on_fork {
                return Err(Errno(libc::EPERM));
            }
            set_exactly(tid, &kept, slice_ns)
        }
        result => result,
    }
}

fn set_exactly(tid: u32, to: &Scheduling, slice_ns: u64) -> Result<(), Errno> {
    let is_realtime = is_realtime(to.policy);
    let attr = Attr {
        size: size_of::<Attr>() as u32,
        policy: u32::from(to.policy),
        flags: if to.is_reset_on_fork {
            FLAG_RESET_ON_FORK
        } else {
            0
        },
        nice: i32::from(to.nice),
        priority: if is_realtime {
            u32::from(to.realtime_priority)
        } else {
            0
        },
        runtime: if is_realtime { 0 } else { slice_ns },
        ..Attr::default()
    };
    let arguments = [tid as usize, &raw const attr as usize, 0, 0, 0, 0];
    // SAFETY: reads `attr`, which says its size.
    unsafe { call(libc::SYS_sched_setattr, arguments) }?;
    // It is taken from there for ordinary threads alone, and kept for all.
    let is_idle = i32::from(to.policy) == libc::SCHED_IDLE;
    if (is_realtime || is_idle) && nice_of(tid)? != to.nice {
        // What it may not have it is not refused the rest for.
        let _ = set_nice(tid, to.nice);
    }
    Ok(())
}

/// The least time that the kernel lets a thread run for at a time.
const SLICE_NS_MIN: u64 = 100_000;

/// This thread is scheduled soon after it wakes up and soon after it was taken off, for as
/// long as it does little: it runs for the least time at once.
///
/// The kernel gives a processor to whom it is due soonest. Whoever is about to make many
/// others lazy would otherwise wait for each of them, again and again: most of all a critical
/// thread, whose long time is due late beside those that are not lazy yet.
#[derive(Debug)]
pub struct Haste {
    tid: u32,
    before: Attr,
}

impl Haste {
    /// Hastens this thread; none where the kernel has no such times, before Linux 6.12, where
    /// the thread runs in real time or is idle, and where it is in haste already.
    #[must_use]
    pub fn begin() -> Option<Haste> {
        let tid = kernel::thread_id();
        let before = attr_of(tid).ok()?;
        let policy = before.policy as i32;
        let is_ordinary = [libc::SCHED_OTHER, libc::SCHED_BATCH].contains(&policy);
        if !is_ordinary || before.runtime <= SLICE_NS_MIN {
            return None;
        }
        let haste = Haste { tid, before };
        haste.run_for(SLICE_NS_MIN).ok()?;
        Some(haste)
    }

    /// Which thread it is.
    #[must_use]
    pub fn tid(&self) -> u32 {
        self.tid
    }

    /// It runs for as long at a time as before.
    pub fn end(self) {
        let _ = self.run_for(self.before.runtime);
    }

    fn run_for(&self, slice_ns: u64) -> Result<(), Errno> {
        let attr = Attr {
            size: size_of::<Attr>() as u32,
            policy: self.before.policy,
            flags: self.before.flags & FLAG_RESET_ON_FORK,
            nice: self.before.nice,
            runtime: slice_ns,
            ..Attr::default()
        };
        let arguments = [self.tid as usize, &raw const attr as usize, 0, 0, 0, 0];
        // SAFETY: reads `attr`, which says its size.
        unsafe { call(libc::SYS_sched_setattr, arguments) }.map(|_| ())
    }
}

/// Whether threads of this policy come before all that are not.
#[must_use]
pub fn is_realtime(policy: u8) -> bool {
    const DEADLINE: i32 = 6;
    matches!(
        i32::from(policy),
        libc::SCHED_FIFO | libc::SCHED_RR | DEADLINE
    )
}

/// Round robin for a critical thread: the nice values from last to first are the
/// priorities from 1 to the highest that is permitted.
#[must_use]
pub fn realtime(priority: Priority, own: &Scheduling, priority_max: u8) -> Scheduling {
    let above_last = (Priority::LAST.nice() - priority.nice()).unsigned_abs();
    let steps = u32::from(priority_max.clamp(1, PRIORITY_MAX)) - 1;
    Scheduling {
        policy: libc::SCHED_RR as u8,
        realtime_priority: (1 + above_last * steps / 39) as u8,
        is_reset_on_fork: true,
        ..*own
    }
}

/// The nice value of a critical thread that is not in real time: below 0, and two
/// priorities have one, so that they are all ahead of what is usual and in their order.
///
/// Many others together have a share that counts, however small that of each is: beside a
/// hundred of nice 19, a thread of nice 0 has 41 % of a processor and one of nice -10 has 86.
#[must_use]
pub fn raised(priority: Priority) -> i8 {
    (i32::from(NICE_FIRST) + priority.nice()).div_euclid(2) as i8
}

/// The highest real-time priority that this thread may give.
#[must_use]
pub fn priority_max() -> u8 {
    if has_privilege() {
        return PRIORITY_MAX;
    }
    let limit = kernel::limit(libc::RLIMIT_RTPRIO, None);
    limit.map_or(1, |it| it.rlim_cur.min(u64::from(PRIORITY_MAX)) as u8)
}

/// Whether this thread may have, and return to, this nice value and all above.
#[must_use]
pub fn may_have_nice(nice: i8) -> bool {
    if has_privilege() {
        return true;
    }
    let limit = kernel::limit(libc::RLIMIT_NICE, None);
    limit.is_ok_and(|it| it.rlim_cur as i128 >= 20 - i128::from(nice))
}

/// Whether this thread has CAP_SYS_NICE.
#[must_use]
pub fn has_privilege() -> bool {
    // The third version of the interface: two words for each set.
    let header = [0x2008_0522_u32, 0];
    let mut sets = [0u32; 6];
    let arguments = [
        header.as_ptr() as usize,
        sets.as_mut_ptr() as usize,
        0,
        0,
        0,
        0,
    ];
    // SAFETY: reads the header, and writes the sets that it asks for.
    let asked = unsafe { call(libc::SYS_capget, arguments) };
    asked.is_ok() && sets[0] & (1 << CAP_SYS_NICE) != 0
}
