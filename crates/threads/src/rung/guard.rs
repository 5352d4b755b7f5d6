//! The guard against critical threads that run away in real time.
//!
//! The kernel counts how long a real-time thread has run since it last slept, and
//! tells it by SIGXCPU when that is more than RLIMIT_RTTIME; unhandled, the signal
//! ends the process. The handler takes the thread out of real time, there and
//! then, notes it for the mediator, and tells the program. A signal that is about
//! something else goes where it went before: a thread that the program itself runs
//! in real time has the limit that the program has set.
//!
//! The kernel puts the limit off by a second whenever it has told; the mediator sets
//! it again when it looks.

use core::ffi::{c_int, c_void};
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::scheduling;
use crate::action::{StoredAction, no_action};
use crate::kernel::{self, Errno};
use crate::table::Scheduling;

/// How many demotions are noted until somebody takes them; more are made, but
/// only seen by their threads' policies.
const NOTED_MAX: usize = 64;

/// Beside the number of a thread that the mediator has seen, and need not take.
const SEEN: u32 = 1 << 31;

static NOTED: [AtomicU32; NOTED_MAX] = [const { AtomicU32::new(0) }; NOTED_MAX];
static TELL: AtomicUsize = AtomicUsize::new(0);
static IS_ON: AtomicBool = AtomicBool::new(false);

/// What the program wants of the signal, for who gets it when it is not about us.
static BEFORE: StoredAction = StoredAction::new();
/// Whether our handler stands before it.
static IS_INSTALLED: AtomicBool = AtomicBool::new(false);

/// The soft limit that the process has by itself, the one that a guard is wanted to have,
/// and that which it has, in microseconds.
static OWN_LIMIT: AtomicU64 = AtomicU64::new(0);
static WANTED: AtomicU64 = AtomicU64::new(0);
static LIMIT: AtomicU64 = AtomicU64::new(0);

/// By how much the kernel puts a limit off that was reached.
const PUT_OFF: u64 = 1_000_000;

/// So long before the hard limit, at which it ends the process, the kernel is to tell: it
/// looks with its clock, which ticks a hundred times a second or more.
const BEFORE_END: u64 = 20_000;

/// Until when the limit is the process's own, for a thread of its that runs in real time: in
/// nanoseconds since the machine began. Those who run away are seen by the mediator meanwhile.
static LEFT_UNTIL: AtomicU64 = AtomicU64::new(0);

/// How many in the guarded process begin a program just now.
static BEGINNING: AtomicU32 = AtomicU32::new(0);
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Guards the process while this lives. There is one at a time.
pub struct Guard(());

/// Whether a limit can be set.
pub(super) fn can_limit() -> Result<(), Errno> {
    // The limit that is there is always permitted; below a hard limit, any is.
    let limit = kernel::limit(libc::RLIMIT_RTTIME, None)?;
    kernel::limit(libc::RLIMIT_RTTIME, Some(limit)).map(|_| ())
}

impl Guard {
    /// Takes threads out of real time that have not slept for so long, and tells
    /// of each. It is told in a signal handler, on that thread.
    ///
    /// # Errors
    /// `EBUSY` if there is a guard; or why there can be none.
    pub fn new(microseconds: u64, tell: fn(u32)) -> Result<Guard, Errno> {
        if IS_ON.swap(true, Ordering::AcqRel) {
            return Err(Errno(libc::EBUSY));
        }
        TELL.store(tell as usize, Ordering::Release);
        let set = install().and_then(|()| {
            WANTED.store(microseconds, Ordering::Relaxed);
            PROCESS.store(kernel::process_id(), Ordering::Release);
            // The handler is there before the limit: unhandled it ends the process.
            set_limit(kernel::limit(libc::RLIMIT_RTTIME, None)?)?;
            Ok(Guard(()))
        });
        if set.is_err() {
            IS_ON.store(false, Ordering::Release);
        }
        set
    }

    /// Takes the threads that were demoted since last time, and sets the limit again.
    pub fn demoted(&self) -> impl Iterator<Item = u32> {
        renew();
        let taken = NOTED.iter().map(|it| it.swap(0, Ordering::AcqRel));
        taken.filter(|it| *it != 0 && it & SEEN == 0)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        renew();
        let _ = set_soft(OWN_LIMIT.load(Ordering::Relaxed));
        // The handler stays, and hands everything on: a signal may be on its way,
        // and a program may have installed its own handler above it since.
        TELL.store(0, Ordering::Release);
        IS_ON.store(false, Ordering::Release);
    }
}

/// Begins another program, or becomes one: that inherits the limit and not the handler,
/// so it gets the limit which the process has by itself. The guard is off meanwhile.
///
/// Also in the child of `vfork`, which has its creator's memory and its own limits.
pub fn begin_program<T>(begin: impl FnOnce() -> T) -> T {
    if !IS_ON.load(Ordering::Acquire) {
        return begin();
    }
    let is_counted = PROCESS.load(Ordering::Acquire) == kernel::process_id();
    if is_counted {
        renew();
        BEGINNING.fetch_add(1, Ordering::AcqRel);
    }
    exchange(&LIMIT, &OWN_LIMIT);
    let result = begin();
    // None is left in the child of a fork, where this returns as well.
    let left = BEGINNING.fetch_update(Ordering::AcqRel, Ordering::Acquire, |it| {
        is_counted.then(|| it.saturating_sub(1))
    });
    if left.map_or(true, |before| before <= 1) && IS_ON.load(Ordering::Acquire) {
        exchange(&OWN_LIMIT, &LIMIT);
        give_way();
    }
    result
}

/// Whoever has begun to begin a program meanwhile needs the process's own limit.
fn give_way() {
    let is_counted = PROCESS.load(Ordering::Acquire) == kernel::process_id();
    if is_counted && BEGINNING.load(Ordering::Acquire) > 0 {
        exchange(&LIMIT, &OWN_LIMIT);
    }
}

/// In the child of a fork, which goes on being guarded.
pub(crate) fn after_fork() {
    if IS_ON.load(Ordering::Acquire) {
        PROCESS.store(kernel::process_id(), Ordering::Release);
        // Those that begin a program are in the other process.
        BEGINNING.store(0, Ordering::Release);
    }
}

/// What the program's `prlimit(0, RLIMIT_RTTIME, …)` does, and answers: it has its own
/// limit, and the guard keeps one as well. None where there is no guard.
pub fn own_limit(new: Option<libc::rlimit64>) -> Option<Result<libc::rlimit64, Errno>> {
    let is_guarded =
        IS_ON.load(Ordering::Acquire) && PROCESS.load(Ordering::Acquire) == kernel::process_id();
    is_guarded.then(|| {
        renew();
        let old = libc::rlimit64 {
            rlim_cur: OWN_LIMIT.load(Ordering::Relaxed),
            ..kernel::limit(libc::RLIMIT_RTTIME, None)?
        };
        match new {
            Some(new) if new.rlim_cur > new.rlim_max => return Err(Errno(libc::EINVAL)),
            Some(new) => set_limit(new)?,
            None => {}
        }
        Ok(old)
    })
}

/// Sets the limit that the process has by itself, with that of the guard before it.
fn set_limit(own: libc::rlimit64) -> Result<(), Errno> {
    let wanted = WANTED.load(Ordering::Relaxed);
    let least = own.rlim_cur.min(own.rlim_max.saturating_sub(BEFORE_END));
    let limit = libc::rlimit64 {
        rlim_cur: wanted.min(least),
        ..own
    };
    kernel::limit(libc::RLIMIT_RTTIME, Some(limit))?;
    LIMIT.store(limit.rlim_cur, Ordering::Relaxed);
    OWN_LIMIT.store(own.rlim_cur, Ordering::Relaxed);
    Ok(())
}

/// Sets the guard's limit again where it was put off. Another that is there was set past
/// us, and is what the process has by itself from then on.
fn renew() {
    let is_beginning = BEGINNING.load(Ordering::Acquire) > 0;
    let Ok(now) = kernel::limit(libc::RLIMIT_RTTIME, None) else {
        return;
    };
    let (limit, own) = (
        LIMIT.load(Ordering::Relaxed),
        OWN_LIMIT.load(Ordering::Relaxed),
    );
    if now.rlim_cur == limit || is_beginning {
        return;
    }
    let is_put_off = |from: u64| now.rlim_cur >= from && (now.rlim_cur - from) % PUT_OFF == 0;
    let is_left = || kernel::boot_time_ns() < LEFT_UNTIL.load(Ordering::Relaxed);
    let _ = if is_put_off(limit) || is_put_off(own) {
        if is_left() { Ok(()) } else { set_soft(limit) }
    } else {
        set_limit(now)
    };
    // The program may have set another in that moment.
    let limit_now = LIMIT.load(Ordering::Relaxed);
    if limit_now != limit {
        let _ = set_soft(limit_now);
    }
    give_way();
}

fn set_soft(soft: u64) -> Result<(), Errno> {
    let limit = libc::rlimit64 {
        rlim_cur: soft,
        ..kernel::limit(libc::RLIMIT_RTTIME, None)?
    };
    kernel::limit(libc::RLIMIT_RTTIME, Some(limit)).map(|_| ())
}

/// Another soft limit, unless the program has set one meanwhile.
fn exchange(from: &AtomicU64, to: &AtomicU64) {
    let (from, to) = (from.load(Ordering::Relaxed), to.load(Ordering::Relaxed));
    if kernel::limit(libc::RLIMIT_RTTIME, None).is_ok_and(|it| it.rlim_cur == from) {
        let _ = set_soft(to);
    }
}

fn install() -> Result<(), Errno> {
    if IS_INSTALLED.load(Ordering::Acquire) {
        return Ok(());
    }
    let mut action = no_action();
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_signal;
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
    let mut before = no_action();
    // SAFETY: asks, and then sets, by valid structs. What was there is written down
    // before the handler that reads it is there.
    unsafe {
        if libc::sigaction(libc::SIGXCPU, null(), &mut before) != 0 {
            return Err(Errno(libc::EINVAL));
        }
        BEFORE.store(&before);
        if libc::sigaction(libc::SIGXCPU, &raw const action, null_mut()) != 0 {
            return Err(Errno(libc::EINVAL));
        }
    }
    IS_INSTALLED.store(true, Ordering::Release);
    Ok(())
}

/// What the program's `sigaction(SIGXCPU, …)` does, and answers, for whoever stands
/// before that; none before a guard has stood there.
///
/// # Safety
/// As `sigaction`: each is null, or points at such a structure.
pub unsafe fn change(new: *const libc::sigaction, old: *mut libc::sigaction) -> Option<c_int> {
    if !IS_INSTALLED.load(Ordering::Acquire) {
        return None;
    }
    let before = BEFORE.load();
    // SAFETY: the caller's. They may be the same, so one is read before the other is
    // written.
    unsafe {
        if let Some(new) = new.as_ref() {
            BEFORE.store(new);
        }
        if let Some(old) = old.as_mut() {
            *old = before;
        }
    }
    Some(0)
}

extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, more: *mut c_void) {
    const FROM_THE_KERNEL: c_int = 0x80;
    // SAFETY: the kernel says what came.
    if unsafe { (*info).si_code } != FROM_THE_KERNEL {
        return hand_on(signal, info, more);
    }
    let tid = kernel::thread_id();
    let here = scheduling::of(tid).unwrap_or_default();
    let is_ours = i32::from(here.policy) == libc::SCHED_RR && here.is_reset_on_fork;
    if is_ours {
        let lower = Scheduling {
            policy: libc::SCHED_OTHER as u8,
            ..here
        };
        let _ = scheduling::set(tid, &lower);
        let is_first = note(tid, 0);
        let tell = TELL.load(Ordering::Acquire);
        if tell != 0 && is_first {
            // SAFETY: only functions of this type are put there.
            let tell: fn(u32) = unsafe { core::mem::transmute(tell) };
            tell(tid);
        }
    } else if is_about_process() || has_reached_own() {
        hand_on(signal, info, more);
    }
    // Otherwise it is about a thread that the program itself runs in real time, or one of
    // ours that blocks the signal, so that another got it: what the mediator observes will
    // tell of that.
}

/// Whether a thread that the program itself runs in real time may have reached what the
/// program has set. If it was the guard's limit, the kernel tells again at the program's.
fn has_reached_own() -> bool {
    let own = OWN_LIMIT.load(Ordering::Relaxed);
    let now = kernel::limit(libc::RLIMIT_RTTIME, None);
    let has_reached = now.is_ok_and(|it| it.rlim_cur.saturating_sub(PUT_OFF) >= own);
    if !has_reached {
        // Long enough to reach it, if that is soon.
        let until = kernel::boot_time_ns() + 1_000 * PUT_OFF;
        LEFT_UNTIL.store(until, Ordering::SeqCst);
        let _ = set_soft(own);
        // The kernel has told of one whom the mediator has taken out of real time meanwhile.
        // Whoever notes that later finds what was stored.
        if is_noted(kernel::thread_id()) {
            LEFT_UNTIL.store(0, Ordering::SeqCst);
        }
    }
    has_reached
}

/// The mediator has seen by itself that a thread has run away. False if the kernel has told
/// meanwhile: who notes it first tells of it.
pub(crate) fn note_seen(tid: u32) -> bool {
    let is_first = note(tid, SEEN);
    // The kernel may have told in between, when nothing showed any more of whom.
    LEFT_UNTIL.store(0, Ordering::SeqCst);
    is_first
}

fn note(tid: u32, by: u32) -> bool {
    let start = tid as usize;
    for place in start..start + NOTED_MAX {
        let place = &NOTED[place % NOTED_MAX];
        match place.compare_exchange(0, tid | by, Ordering::SeqCst, Ordering::Acquire) {
            Ok(_) => return true,
            Err(there) if there & !SEEN == tid => return false,
            Err(_) => {}
        }
    }
    true
}

fn is_noted(tid: u32) -> bool {
    let mut noted = NOTED.iter();
    noted.any(|it| it.load(Ordering::SeqCst) & !SEEN == tid)
}

/// Whether the signal may be about the processor time of the process, of which the kernel
/// puts the limit off by a second in the same way.
fn is_about_process() -> bool {
    let used = kernel::process_cpu_ns() / 1_000_000_000;
    kernel::limit(libc::RLIMIT_CPU, None).is_ok_and(|it| used >= it.rlim_cur.saturating_sub(1))
        || !IS_ON.load(Ordering::Acquire)
}

fn hand_on(signal: c_int, info: *mut libc::siginfo_t, more: *mut c_void) {
    let before = BEFORE.load();
    match before.sa_sigaction {
        libc::SIG_IGN => {}
        libc::SIG_DFL => {
            // What happens without us happens now: the signal comes again at once.
            IS_INSTALLED.store(false, Ordering::Release);
            // SAFETY: sets what was there, and sends a signal to this thread.
            unsafe {
                libc::sigaction(signal, &raw const before, null_mut());
                libc::raise(signal);
            }
        }
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: by its flags it has this type, and it gets what came.
            unsafe {
                let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                    core::mem::transmute(handler);
                handler(signal, info, more);
            }
        }
        handler => {
            // SAFETY: by its flags it has this type.
            unsafe {
                let handler: extern "C" fn(c_int) = core::mem::transmute(handler);
                handler(signal);
            }
        }
    }
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn the_guard_is_on_again_where_the_kernel_tells_of_one_whom_the_mediator_has_seen() {
        let microseconds = 100_000;
        let guard = Guard::new(microseconds, |_| ()).expect("any limit is permitted");
        let seen = || assert!(note_seen(kernel::thread_id()));
        let told = || assert!(!has_reached_own());
        for [first, second] in [[&seen as &dyn Fn(), &told], [&told, &seen]] {
            first();
            second();
            assert_eq!(guard.demoted().count(), 0);
            let limit = kernel::limit(libc::RLIMIT_RTTIME, None);
            assert_eq!(limit.map(|it| it.rlim_cur), Ok(microseconds));
        }
    }
}
