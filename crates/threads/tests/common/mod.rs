//! Threads of the C library, with attributes as programs give them.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

use milieu_threads::stack::{Hint, Process, Stack};

/// Creates a thread with a stack of so many bytes and a guard, or on memory of one's
/// own; waits for what it returns.
pub fn on_stack_of<T: Send>(
    bytes: usize,
    guard_bytes: Option<usize>,
    memory: Option<*mut c_void>,
    work: impl FnOnce() -> T + Send,
) -> T {
    struct Job<F, T> {
        work: Option<F>,
        result: Option<T>,
    }
    extern "C" fn start<F: FnOnce() -> T, T>(job: *mut c_void) -> *mut c_void {
        // SAFETY: whoever created this thread waits for it, and keeps the job meanwhile.
        let job = unsafe { &mut *job.cast::<Job<F, T>>() };
        job.result = job.work.take().map(|work| work());
        null_mut()
    }
    fn start_of<F: FnOnce() -> T, T>(_: &Job<F, T>) -> extern "C" fn(*mut c_void) -> *mut c_void {
        start::<F, T>
    }

    let mut job = Job {
        work: Some(work),
        result: None,
    };
    let start = start_of(&job);
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: the attributes are initialized before they are used, the job outlives the
    // thread, which is waited for, and memory of the caller has that many bytes.
    unsafe {
        let attributes = attributes.as_mut_ptr();
        assert_eq!(libc::pthread_attr_init(attributes), 0);
        match memory {
            Some(memory) => assert_eq!(libc::pthread_attr_setstack(attributes, memory, bytes), 0),
            None => assert_eq!(libc::pthread_attr_setstacksize(attributes, bytes), 0),
        }
        if let Some(guard_bytes) = guard_bytes {
            assert_eq!(libc::pthread_attr_setguardsize(attributes, guard_bytes), 0);
        }
        let job = (&raw mut job).cast();
        assert_eq!(
            libc::pthread_create(thread.as_mut_ptr(), attributes, start, job),
            0
        );
        assert_eq!(libc::pthread_join(thread.assume_init(), null_mut()), 0);
        libc::pthread_attr_destroy(attributes);
    }
    job.result.expect("the thread has run")
}

/// The stack of the thread that asks, when it asked for so many bytes.
pub fn own_stack(process: &Process, asked_bytes: Option<usize>) -> Stack {
    let local = 0_u8;
    let hint = Hint {
        // SAFETY: every thread has a descriptor.
        descriptor: Some(unsafe { libc::pthread_self() } as u64),
        asked_bytes: asked_bytes.map(|bytes| bytes as u64),
    };
    let address = (&raw const local) as usize as u64;
    process
        .stack_around(address, hint)
        .expect("there is a stack here")
}

/// Touches so many bytes of the stack, in one frame after the other.
#[inline(never)]
pub fn dig(bytes: usize) -> u64 {
    let mut frame = [0_u8; 1024];
    std::hint::black_box(&mut frame);
    let below = if bytes > frame.len() {
        dig(bytes - frame.len())
    } else {
        0
    };
    below + u64::from(std::hint::black_box(&frame)[0])
}
