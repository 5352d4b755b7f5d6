//! A thread of ours, which looks after critical threads, and measures threads that run, for
//! the notes of what was learned and for the table: there as soon as a process is mediated or
//! notes anything, asleep for most of the time, and gone with the program's last thread.

use core::ffi::{c_int, c_uint, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use milieu_threads::kernel;
use milieu_threads::mediator::TOO_SHORT;
use milieu_threads::rung::{self, Return};
use milieu_threads::stack::{Process, Running};

use crate::real::{self, Start};
use crate::state::{self, Served, WATCH};
use crate::{device, process, record};

/// What threads of ours have of the program's address space.
const STACK_BYTES: usize = 256 << 10;

/// How often it looks.
const PERIOD_NS: u64 = 250_000_000;

static IS_THERE: AtomicBool = AtomicBool::new(false);
static IS_OVER: AtomicBool = AtomicBool::new(false);
/// Which thread it is, or 0.
static IDENTITY: AtomicUsize = AtomicUsize::new(0);
/// Its number in the kernel, 0 where it is not.
static TID: AtomicU32 = AtomicU32::new(0);
/// Whether it has no files in common with the program.
static IS_APART: AtomicBool = AtomicBool::new(false);
/// Changes with every call of [`wake`].
static CALLS: AtomicU32 = AtomicU32::new(0);

/// Creates it, unless it is there. It takes no signals.
pub fn start(served: &Served) -> bool {
    if IS_THERE.load(Ordering::Acquire) || IS_THERE.swap(true, Ordering::AcqRel) {
        return true;
    }
    IS_OVER.store(false, Ordering::Release);
    let argument: *const Served = served;
    // It would be lazy for as long as it lives if its creator is.
    let thread = process::at_home(|| create(run, argument.cast_mut().cast()));
    let Some(thread) = thread else {
        IS_THERE.store(false, Ordering::Release);
        return false;
    };
    IDENTITY.store(thread as usize, Ordering::Release);
    device::provide(served);
    true
}

/// Whether it is there.
pub fn is_there() -> bool {
    IS_THERE.load(Ordering::Acquire)
}

/// A thread of the program's is about to be created, beside so many that live: it is there
/// from then on, to measure those that run. Where many have come and gone one after the other
/// there are none, and a thread beside would only make their begin and end slower. Who creates
/// several at once now and then keeps it: to end and begin it takes longer than it saves.
pub fn attend(served: &Served, living: u32) {
    const TRIED: u32 = 64;
    /// How many were created in a row with nobody beside them but the first thread.
    static ALONE: AtomicU32 = AtomicU32::new(0);
    let is_alone = match living {
        0 | 1 => ALONE.fetch_add(1, Ordering::Relaxed) >= TRIED,
        _ => {
            ALONE.store(0, Ordering::Relaxed);
            false
        }
    };
    let is_needed =
        || state::mediated().is_some() || (device::serves() && served.program.has_critical());
    if !is_alone || is_needed() {
        start(served);
    } else if IDENTITY.load(Ordering::Relaxed) != 0 {
        end_first();
        if state::mediated().is_some() {
            start(served);
        }
    }
}

/// Creates a thread of ours, which takes no signals.
pub fn create(start: Start, argument: *mut c_void) -> Option<libc::pthread_t> {
    let mut thread = MaybeUninit::uninit();
    let mut attr = MaybeUninit::uninit();
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: each is initialized before it is used.
    let error = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        real::pthread_attr_init(attr.as_mut_ptr());
        libc::pthread_attr_setstacksize(attr.as_mut_ptr(), STACK_BYTES);
        let mut error = real::pthread_create(thread.as_mut_ptr(), attr.as_ptr(), start, argument);
        if error != 0 {
            // The program's thread-local storage is larger.
            real::pthread_attr_destroy(attr.as_mut_ptr());
            real::pthread_attr_init(attr.as_mut_ptr());
            error = real::pthread_create(thread.as_mut_ptr(), attr.as_ptr(), start, argument);
        }
        real::pthread_attr_destroy(attr.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), null_mut());
        error
    };
    // SAFETY: it was written.
    (error == 0).then(|| unsafe { thread.assume_init() })
}

/// In the child of `fork`, where it is not.
pub fn after_fork() {
    IS_THERE.store(false, Ordering::Release);
    IDENTITY.store(0, Ordering::Release);
    TID.store(0, Ordering::Release);
}

/// Its number in the kernel, if it is there.
pub fn tid() -> Option<u32> {
    Some(TID.load(Ordering::Acquire)).filter(|it| *it != 0)
}

/// There is a critical thread.
pub fn wake() {
    if !IS_THERE.load(Ordering::Acquire) {
        let wanted = || state::served().filter(|it| device::is_wanted(it));
        if let Some(served) = state::mediated().or_else(wanted) {
            start(served);
        }
    }
    CALLS.fetch_add(1, Ordering::AcqRel);
    kernel::wake(&CALLS);
}

/// The process ends: nothing is done any more, and what sleeps is not woken for that.
pub fn end() {
    IS_OVER.store(true, Ordering::Release);
}

/// The program's last thread ends, and it before: who is last calls what the program wants
/// called at the end, and needs the program's files for it.
pub fn end_first() {
    end();
    if IS_THERE.load(Ordering::Acquire) {
        wake();
    }
    let identity = IDENTITY.swap(0, Ordering::AcqRel);
    if identity != 0 {
        join(identity);
        IS_THERE.store(false, Ordering::Release);
    }
}

/// Waits until a thread of ours has ended, unless it is 0.
pub fn join(identity: usize) {
    if identity != 0 {
        // SAFETY: it is ours, and nobody else waits for it.
        state::uncancelled(|| unsafe {
            real::pthread_join(identity as libc::pthread_t, null_mut());
        });
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
    let returns = served.program.rung().map(|(_, returns)| returns);
    let is_now = match returns {
        Some(Return::Never) => "lazy from now on, as threads do not return here",
        _ => "not critical any more",
    };
    served.say(format_args!(
        "thread {tid} {quote}{role}{quote}{gap}kept a processor for {milliseconds} ms without \
         blocking and is {is_now}"
    ));
}

unsafe extern "C" fn run(served: *mut c_void) -> *mut c_void {
    // SAFETY: it was handed over, and stays.
    let served: &Served = unsafe { &*served.cast_const().cast() };
    TID.store(kernel::thread_id(), Ordering::Release);
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
    let is_apart = leave_files();
    IS_APART.store(is_apart, Ordering::Release);
    let mut watcher = is_apart.then(Watcher::new);
    let (mut has_told, mut comes_first) = (false, false);
    loop {
        let calls = CALLS.load(Ordering::Acquire);
        if IS_OVER.load(Ordering::Acquire) {
            return null_mut();
        }
        let now = kernel::boot_time_ns();
        // Until somebody is mediated, there is nothing to wait for a lock for.
        let due = state::mediated().and_then(|served| {
            if let Some((rung, _)) = served.program.rung().filter(|_| !comes_first) {
                comes_first = true;
                rung::come_first(rung);
            }
            let due = served
                .program
                .tick_and_tell(now, &mut |entry| match is_apart {
                    true => with_standard_error(|| tell(entry.tid)),
                    false => tell(entry.tid),
                });
            if !has_told && served.program.were_turns_too_short() {
                has_told = true;
                let tell = || served.say(format_args!("{TOO_SHORT}"));
                match is_apart {
                    true => with_standard_error(tell),
                    false => tell(),
                }
            }
            due
        });
        let has_critical = served.program.has_critical();
        let visits = device::attend(served, is_apart);
        let span = match due {
            _ if !has_critical => None,
            Some(due) => Some(due.saturating_sub(now).clamp(1_000_000, PERIOD_NS)),
            None => Some(PERIOD_NS),
        };
        // Where nothing is noted it looks while it is awake for critical threads anyhow.
        let is_seen = WATCH.notes.is_open() || has_critical && served.is_learning();
        let looks = watcher.as_mut().filter(|_| is_seen);
        let pause = looks.map(|it| it.look(served, now));
        let span = match (span, pause) {
            (Some(span), Some(pause)) => Some(span.min(pause)),
            (span, pause) => span.or(pause),
        };
        let span = span.into_iter().chain(visits).min();
        kernel::wait(&CALLS, calls, span);
    }
}

/// When threads are measured that run: often while they become deeper, and ever more
/// seldom while they do not.
struct Watcher {
    due_ns: u64,
    pause_ns: u64,
}

impl Watcher {
    const FIRST_NS: u64 = 1_000_000_000;
    const LAST_NS: u64 = 16_000_000_000;
    /// It pauses so many times as long as a look takes of a processor.
    const SHARE: u64 = 1000;

    fn new() -> Watcher {
        Watcher {
            due_ns: kernel::boot_time_ns().saturating_add(Self::FIRST_NS),
            pause_ns: Self::FIRST_NS,
        }
    }

    /// Looks if it is time; how long it is until then.
    fn look(&mut self, served: &Served, now: u64) -> u64 {
        if now >= self.due_ns {
            let before = own_cpu_ns();
            let mut tell = |it: &Running| {
                record::note_peak(served, it.identity, it.thread as u32, it.peak_bytes);
            };
            let is_new = Process::own().is_ok_and(|it| WATCH.look(&it, &mut tell));
            let took = own_cpu_ns().saturating_sub(before);
            let pause = match is_new {
                true => Self::FIRST_NS,
                false => (2 * self.pause_ns).min(Self::LAST_NS),
            };
            self.pause_ns = pause.max(took.saturating_mul(Self::SHARE));
            self.due_ns = now.saturating_add(self.pause_ns);
        }
        self.due_ns.saturating_sub(now)
    }
}

/// What this thread has had of processors.
fn own_cpu_ns() -> u64 {
    kernel::thread_cpu_ns(kernel::thread_id()).unwrap_or(0)
}

/// Has no files in common with the program any more, and none of its own: each that this
/// thread opens for a moment would change the numbers that the program's get. Before
/// Linux 5.9 they stay common.
fn leave_files() -> bool {
    close_all(libc::CLOSE_RANGE_UNSHARE)
}

fn close_all(flags: c_uint) -> bool {
    let (first, last): (c_uint, c_uint) = (0, c_uint::MAX);
    // SAFETY: the files are this thread's alone from then on, or have been.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) == 0 }
}

/// A file of the program's, for this thread, which has none in common with it.
pub fn borrow_file(number: c_int) -> Option<c_int> {
    // SAFETY: numbers only; what cannot be had is -1, which the next call refuses.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0 as c_uint) as c_int;
        let number = number as c_uint;
        let file = libc::syscall(libc::SYS_pidfd_getfd, process, number, 0 as c_uint) as c_int;
        libc::close(process);
        (file >= 0).then_some(file)
    }
}

/// Says something that the program's user is to read, in whatever thread.
pub fn say(tell: impl FnOnce()) {
    let is_this = IDENTITY.load(Ordering::Acquire) as u64 == kernel::identity();
    match is_this && IS_APART.load(Ordering::Acquire) {
        true => with_standard_error(tell),
        false => tell(),
    }
}

/// Does something while this thread, which has no files, has the program's standard error
/// output.
fn with_standard_error(action: impl FnOnce()) {
    const STANDARD_ERROR: c_int = libc::STDERR_FILENO;
    if let Some(file) = borrow_file(STANDARD_ERROR) {
        // SAFETY: numbers only.
        unsafe { libc::dup2(file, STANDARD_ERROR) };
    }
    action();
    close_all(0);
}
