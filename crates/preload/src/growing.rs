//! Stacks that grow: threads whose stacks were made smaller have them in memory of ours,
//! which goes on below when they go deeper than anybody has before. That memory is ours to
//! give back, once its thread has been joined, or was detached and is gone.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use libc::{clockid_t, pthread_attr_t, pthread_t, timespec};
use milieu_threads::kernel;
use milieu_threads::stack::{Arena, Made, are_stacks_executable};

use crate::blocking;
use crate::real;
use crate::state::{self, WATCH};
use crate::thread::said_as_in_c;

/// Null until there is such a stack.
static ARENA: AtomicPtr<Arena> = AtomicPtr::new(null_mut());

fn arena() -> Option<&'static Arena> {
    // SAFETY: null is none, and what is stored stays.
    unsafe { ARENA.load(Ordering::Acquire).as_ref() }
}

/// Most programs need none, and what it takes is of what is short.
#[cold]
fn make_arena() -> Option<&'static Arena> {
    let memory = kernel::reserve(size_of::<Arena>()).ok()?;
    let made = memory.cast::<Arena>().as_ptr();
    let (new, failure) = (Ordering::AcqRel, Ordering::Acquire);
    if ARENA
        .compare_exchange(null_mut(), made, new, failure)
        .is_err()
    {
        // SAFETY: it came from there, and nobody has seen it.
        unsafe { kernel::release(memory, size_of::<Arena>()) };
    }
    let arena = arena()?;
    WATCH.grows_in(arena);
    Some(arena)
}

unsafe extern "C" {
    fn pthread_attr_getdetachstate(attr: *const pthread_attr_t, detached: *mut c_int) -> c_int;
}

/// A stack of so many bytes for a thread with these attributes, which can grow until it has
/// `whole_bytes`; none where that is not possible. This asks the loader.
pub fn take(bytes: u64, guard_bytes: u64, whole_bytes: u64, attr: &pthread_attr_t) -> Option<Made> {
    if !state::is_loader_free() || are_stacks_executable() {
        return None;
    }
    let arena = arena().or_else(make_arena)?;
    let mut detached = libc::PTHREAD_CREATE_JOINABLE;
    // SAFETY: writes a number.
    unsafe { pthread_attr_getdetachstate(attr, &mut detached) };
    let is_detached = detached == libc::PTHREAD_CREATE_DETACHED;
    arena.take(bytes, guard_bytes, whole_bytes, is_detached)
}

/// No thread was created on it.
pub fn give_back(made: Made) {
    if let Some(arena) = arena() {
        arena.give_back(made);
    }
}

/// This thread ends, which has this number of the kernel's.
pub fn ends(thread: u32) {
    if let Some(arena) = arena() {
        arena.ends(kernel::identity() as usize, thread);
    }
}

/// In the child of `fork`, which has one thread.
pub fn after_fork() {
    if let Some(arena) = arena() {
        arena.forked(kernel::identity() as usize, kernel::thread_id());
    }
}

/// Whether the thread is one of the process of which this is a fork.
fn is_left(thread: pthread_t) -> bool {
    arena().is_some_and(|it| it.forgets(thread as usize))
}

/// Waits, and says that the thread was joined where it was.
///
/// # Safety
/// As that of [`blocking::around`]; what the thread has ended with is null or can be written.
unsafe fn join<T>(thread: pthread_t, result: *mut T, wait: impl FnOnce() -> c_int) -> c_int {
    if is_left(thread) {
        // SAFETY: the caller's: a pointer or a number, of which zeros are one.
        unsafe {
            if let Some(result) = result.as_mut() {
                *result = core::mem::zeroed();
            }
        }
        return 0;
    }
    // Afterwards another one may be where it was.
    let Some(stack) = arena().and_then(|it| it.of(thread as usize)) else {
        // SAFETY: the caller's.
        return unsafe { blocking::around(wait, ()) };
    };
    let me = kernel::thread_id();
    stack.joins(me);
    // SAFETY: the caller's.
    let error = unsafe { blocking::around(wait, ()) };
    match error {
        0 => stack.joined(),
        _ => stack.not_joined(me),
    }
    error
}

/// Says that nobody will join the thread where that has been said to the C library.
fn detach(thread: pthread_t, detach: impl FnOnce() -> c_int) -> c_int {
    if is_left(thread) {
        return 0;
    }
    // As in `join`.
    let stack = arena().and_then(|it| it.of(thread as usize));
    let error = detach();
    if let Some(stack) = stack.filter(|_| error == 0) {
        stack.detached();
    }
    error
}

macro_rules! joins {
    ($($name:ident($result:ident: $into:ty $(, $argument:ident: $type:ty)*);)*) => {
        $(
            /// As the C library has it.
            ///
            /// # Safety
            /// As there.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                thread: pthread_t,
                $result: *mut $into,
                $($argument: $type),*
            ) -> c_int {
                // SAFETY: the caller's.
                unsafe {
                    let wait = || real::$name(thread, $result, $($argument),*);
                    join(thread, $result, wait)
                }
            }
        )*
    };
}

joins! {
    pthread_join(result: *mut c_void);
    pthread_tryjoin_np(result: *mut c_void);
    pthread_timedjoin_np(result: *mut c_void, until: *const timespec);
    pthread_clockjoin_np(result: *mut c_void, clock: clockid_t, until: *const timespec);
}

/// As C has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thrd_join(thread: pthread_t, result: *mut c_int) -> c_int {
    let mut ended_with = null_mut();
    // SAFETY: the caller's. Such threads are created by `pthread_create`, so whoever stands
    // before both hears of both.
    let error = unsafe { pthread_join(thread, &mut ended_with) };
    // SAFETY: the caller's: it is null, or can be written. The number is in the pointer's place.
    if let Some(result) = unsafe { result.as_mut() }.filter(|_| error == 0) {
        *result = ended_with as usize as c_int;
    }
    said_as_in_c(error)
}

// The names by which programs of 32 bits call them whose time has 64.
#[cfg(target_pointer_width = "32")]
joins! {
    __pthread_timedjoin_np64(result: *mut c_void, until: *const c_void);
    __pthread_clockjoin_np64(result: *mut c_void, clock: clockid_t, until: *const c_void);
}

/// As POSIX has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_detach(thread: pthread_t) -> c_int {
    // SAFETY: the caller's.
    detach(thread, || unsafe { real::pthread_detach(thread) })
}

/// As C has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thrd_detach(thread: pthread_t) -> c_int {
    // SAFETY: the caller's.
    said_as_in_c(unsafe { pthread_detach(thread) })
}

/// As glibc has it. A stack is as large as the program asked for, as it can be.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_getattr_np(thread: pthread_t, attr: *mut pthread_attr_t) -> c_int {
    // SAFETY: the caller's.
    let error = unsafe { real::pthread_getattr_np(thread, attr) };
    let stack = arena().filter(|_| error == 0);
    if let Some(stack) = stack.and_then(|it| it.whole(thread as usize)) {
        // SAFETY: it was written, and only numbers in it are changed.
        unsafe {
            libc::pthread_attr_setstack(attr, stack.low as *mut c_void, stack.bytes() as usize);
            libc::pthread_attr_setguardsize(attr, stack.guard_bytes as usize);
        }
    }
    error
}
