//! `libmilieu_preload.so`: stands before the C library's functions for threads, so that
//! programs that know nothing of Milieu have roles, a mediator and tuned stacks, and
//! programs that do know reach them (`include/milieu/threads.h`).
//!
//! What is done is in `milieu-threads`; here are the functions that programs call, each
//! of which does what the C library's does, and something before or after it:
//!
//! | Module | Stands before |
//! |---|---|
//! | `thread` | `pthread_create`, `thrd_create`, the end of threads |
//! | `attributes` | attributes of threads and of `pthread_attr_t`, for the header |
//! | `information` | nothing; what is known of threads, for the header |
//! | `scheduling` | `pthread_setschedparam`, `nice`, `setpriority`, `sched_setscheduler`, … |
//! | `lock` | `pthread_mutex_lock`, `mtx_lock`, and those with a time limit |
//! | `blocking` | `poll`, `read`, `pthread_cond_wait`, … |
//! | `process` | `fork`, `exec…`, `posix_spawn`, `system`, `exit` |
//! | `rights` | `setuid`, `seteuid`, `setreuid`, `setresuid`, `chroot` |
//! | `limits` | `getrlimit`, `setrlimit`, `prlimit`, for the limit that a guard needs |
//! | `site` | where threads are created, noted for those who ask |
//! | `signal` | `sigaction` and `signal`, for the signals that guards need |
//! | `key` | `pthread_key_create`, `tss_create` |
//! | `name` | `pthread_setname_np`, `prctl` |
//!
//! It runs below the allocator and thread-local storage: nothing allocates, nothing
//! panics, `errno` stays, and a process without threads costs a few pages. In the child
//! of a `fork` that calls no handlers it steps aside (see `state`).
#![cfg_attr(panic = "abort", no_std)]

mod attributes;
mod blocking;
mod device;
mod growing;
mod helper;
mod information;
mod key;
mod limits;
mod lock;
mod name;
mod nursery;
mod passage;
mod process;
mod real;
mod record;
mod rights;
mod scheduling;
mod signal;
mod site;
mod state;
mod thread;
mod variables;

/// Nothing here panics; if it did, there would be nobody to tell.
#[cfg(panic = "abort")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::abort() }
}

// What `core` was compiled with names it, though nothing here unwinds through code of
// ours that would have to do something; no other library shall find it.
#[cfg(panic = "abort")]
core::arch::global_asm!(
    ".globl rust_eh_personality",
    ".hidden rust_eh_personality",
    "rust_eh_personality:"
);
