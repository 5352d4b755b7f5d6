//! A thread of ours, which looks after critical threads: there as soon as a process is
//! mediated, asleep while it has none, and gone with the program's last thread.

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use milieu_threads::kernel;

use crate::real;
use crate::state::{self, Served};

/// How often it looks.
const PERIOD_NS: u64 = 250_000_000;

static IS_THERE: AtomicBool = AtomicBool::new(false);
static IS_OVER: AtomicBool = AtomicBool::new(false);
/// Changes with every call of [`wake`].
static CALLS: AtomicU32 = AtomicU32::new(0);

/// Creates it, unless it is there. It takes no signals.
pub fn start(served: &Served) -> bool {
    if IS_THERE.swap(true, Ordering::AcqRel) {
        return true;
    }
    IS_OVER.store(false, Ordering::Release);
    let mut thread = MaybeUninit::uninit();
    let mut attr = MaybeUninit::uninit();
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let argument: *const Served = served;
    // SAFETY: each is initialized before it is used, and what is served stays.
    let error = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        real::pthread_attr_init(attr.as_mut_ptr());
        libc::pthread_attr_setdetachstate(attr.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED);
        let argument = argument.cast_mut().cast::<c_void>();
        let error = real::pthread_create(thread.as_mut_ptr(), attr.as_ptr(), run, argument);
        real::pthread_attr_destroy(attr.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), null_mut());
        error
    };
    if error != 0 {
        IS_THERE.store(false, Ordering::Release);
    }
    error == 0
}

/// In the child of `fork`, where it is not.
pub fn after_fork() {
    IS_THERE.store(false, Ordering::Release);
}

/// There is a critical thread.
pub fn wake() {
    if !IS_THERE.load(Ordering::Acquire) {
        if let Some(served) = state::mediated() {
            start(served);
        }
    }
    CALLS.fetch_add(1, Ordering::AcqRel);
    kernel::wake(&CALLS);
}

/// The program's last thread has ended, or the process ends.
pub fn end() {
    IS_OVER.store(true, Ordering::Release);
    if IS_THERE.load(Ordering::Acquire) {
        wake();
    }
}

/// A critical thread has run away in real time; in a signal handler.
pub fn tell(tid: u32) {
    let Some(served) = state::served() else {
        return;
    };
    let milliseconds = served.settings.mediator.spin_ns_max / 1_000_000;
    let found = served.program.table().lines().by_thread_id(tid);
    let role = found.map_or_else(Default::default, |(_, it)| it.attributes.role());
    let quote = if role.is_none() { "" } else { "`" };
    let gap = if role.is_none() { "" } else { " " };
    served.say(format_args!(
        "thread {tid} {quote}{role}{quote}{gap}kept a processor for {milliseconds} ms without \
         blocking and is not critical any more"
    ));
}

unsafe extern "C" fn run(served: *mut c_void) -> *mut c_void {
    // SAFETY: it was handed over, and stays.
    let served: &Served = unsafe { &*served.cast_const().cast() };
    // SAFETY: the name ends with a zero.
    unsafe {
        real::prctl(
            libc::PR_SET_NAME as c_int,
            c"milieu".as_ptr() as usize,
            0,
            0,
            0,
        )
    };
    loop {
        let calls = CALLS.load(Ordering::Acquire);
        if IS_OVER.load(Ordering::Acquire) {
            return null_mut();
        }
        let now = kernel::boot_time_ns();
        let due = served
            .program
            .tick_and_tell(now, &mut |entry| tell(entry.tid));
        let span = match due {
            _ if !served.program.has_critical() => None,
            Some(due) => Some(due.saturating_sub(now).clamp(1_000_000, PERIOD_NS)),
            None => Some(PERIOD_NS),
        };
        kernel::wait(&CALLS, calls, span);
    }
}
