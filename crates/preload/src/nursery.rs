//! A thread of ours that begins threads for others: where lazy threads cannot return, what
//! a lazy one begins is lazy for ever, and a critical thread must not be.
//!
//! It begins before anybody is lazy, and has its files in common with the program, as
//! threads do that it begins. What they have of their creator otherwise, its signal mask,
//! processors and name, it gives them.

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use libc::{cpu_set_t, pthread_attr_t, pthread_t};
use milieu_threads::kernel;
use milieu_threads::lock::PriorityMutex;

use crate::real::{self, Start};
use crate::{helper, state};

/// Which thread it is, or 0.
static IDENTITY: AtomicUsize = AtomicUsize::new(0);
/// Its number in the kernel, 0 where it is not.
static TID: AtomicU32 = AtomicU32::new(0);
static IS_OVER: AtomicBool = AtomicBool::new(false);
/// Changes with every order, and at the end.
static CALLS: AtomicU32 = AtomicU32::new(0);
static ORDER: AtomicPtr<Order> = AtomicPtr::new(null_mut());
/// Changes with every order that is done.
static DONE: AtomicU32 = AtomicU32::new(0);
/// Held by who orders.
static ORDERING: PriorityMutex<()> = PriorityMutex::new(());

/// A thread to be created; whoever orders it waits until that is done.
struct Order {
    thread: *mut pthread_t,
    attr: *const pthread_attr_t,
    start: Start,
    argument: *mut c_void,
    creator: u32,
    name: [u8; 16],
    error: c_int,
}

/// Begins it, by a thread that is not lazy.
pub fn start() {
    IS_OVER.store(false, Ordering::Release);
    // Without it everything is as if there were none.
    if let Some(thread) = helper::create(run, null_mut()) {
        IDENTITY.store(thread as usize, Ordering::Release);
    }
}

/// Whether it is there.
pub fn is_there() -> bool {
    IDENTITY.load(Ordering::Acquire) != 0
}

/// Its number in the kernel, if it is there.
pub fn tid() -> Option<u32> {
    Some(TID.load(Ordering::Acquire)).filter(|it| *it != 0)
}

/// In the child of `fork`, where it is not.
pub fn after_fork() {
    IDENTITY.store(0, Ordering::Release);
    TID.store(0, Ordering::Release);
    ORDER.store(null_mut(), Ordering::Release);
    ORDERING.reset();
}

/// As [`helper::end_first`].
pub fn end_first() {
    IS_OVER.store(true, Ordering::Release);
    call(&CALLS);
    helper::join(IDENTITY.swap(0, Ordering::AcqRel));
}

/// Creates a thread as `pthread_create` does; none if it is not there, or within a signal
/// handler that has interrupted this.
///
/// # Safety
/// As there. The thread begins with all signals blocked.
pub unsafe fn create(
    thread: *mut pthread_t,
    attr: *const pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> Option<c_int> {
    state::uncancelled(|| {
        let _ordering = ORDERING.lock().ok()?;
        if !is_there() {
            return None;
        }
        let mut order = Order {
            thread,
            attr,
            start,
            argument,
            creator: kernel::thread_id(),
            name: [0; 16],
            error: 0,
        };
        name(libc::PR_GET_NAME, &mut order.name);
        let done = DONE.load(Ordering::Acquire);
        ORDER.store(&raw mut order, Ordering::Release);
        call(&CALLS);
        while DONE.load(Ordering::Acquire) == done {
            kernel::wait(&DONE, done, None);
        }
        Some(order.error)
    })
}

fn call(word: &AtomicU32) {
    word.fetch_add(1, Ordering::AcqRel);
    kernel::wake(word);
}

unsafe extern "C" fn run(_: *mut c_void) -> *mut c_void {
    TID.store(kernel::thread_id(), Ordering::Release);
    let mut own = *b"milieu-begins\0\0\0";
    name(libc::PR_SET_NAME, &mut own);
    let usual = processors(0);
    loop {
        let calls = CALLS.load(Ordering::Acquire);
        let order = ORDER.swap(null_mut(), Ordering::AcqRel);
        if order.is_null() {
            if IS_OVER.load(Ordering::Acquire) {
                return null_mut();
            }
            kernel::wait(&CALLS, calls, None);
            continue;
        }
        // SAFETY: whoever orders waits until it is done, and does not look at it until then.
        unsafe {
            let (thread, attr) = ((*order).thread, (*order).attr);
            name(libc::PR_SET_NAME, &mut (*order).name);
            set_processors(&processors((*order).creator));
            let error = real::pthread_create(thread, attr, (*order).start, (*order).argument);
            (*order).error = error;
            name(libc::PR_SET_NAME, &mut own);
            set_processors(&usual);
        }
        call(&DONE);
    }
}

/// The processors that a thread may have; 0 is this one.
fn processors(thread: u32) -> Option<cpu_set_t> {
    let mut set = MaybeUninit::<cpu_set_t>::zeroed();
    let thread = thread as libc::pid_t;
    // SAFETY: writes to the set, of which zeros are one.
    let said = kernel::unnoticed(|| unsafe {
        libc::sched_getaffinity(thread, size_of::<cpu_set_t>(), set.as_mut_ptr())
    });
    // SAFETY: as above.
    (said == 0).then(|| unsafe { set.assume_init() })
}

fn set_processors(to: &Option<cpu_set_t>) {
    if let Some(to) = to {
        // SAFETY: reads the set.
        kernel::unnoticed(|| unsafe { libc::sched_setaffinity(0, size_of::<cpu_set_t>(), to) });
    }
}

/// Asks for, or sets, what this thread is called.
fn name(what: c_int, space: &mut [u8; 16]) {
    // SAFETY: the kernel reads or writes as many bytes, with a zero at their end.
    unsafe { real::prctl(what, space.as_mut_ptr() as usize, 0, 0, 0) };
}
