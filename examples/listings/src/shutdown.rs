//! III-F: `Shutdown`, whose action interrupts a thread that is blocked in
//! `read()`, so that it reaches its exit point.
//!
//! The paper's listing slips in three ways, which this one does not:
//!
//! - The stored thread id dangles once the thread has ended. Here the action is
//!   registered as long as its guard lives, in that very thread, and dropping
//!   the guard waits for an action that runs.
//! - SIGHUP without a handler kills the process. Here there is one, and without
//!   `SA_RESTART`, since `read()` would otherwise just go on.
//! - A signal that arrives right before `read()` interrupts nothing. So the
//!   action repeats it until the thread has heard.

use std::{
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd},
        unix::net::UnixStream,
    },
    ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Sender, channel},
    },
    thread,
    time::Duration,
};

use milieu::{Coordinator, Error, layer};

use crate::specifications::server::Environment;

layer! { struct Shutdown = "shutdown"; }

/// Interrupts system calls, and does nothing else.
extern "C" fn interrupt(_: libc::c_int) {}

fn handle_sighup() -> io::Result<()> {
    // SAFETY: an action of zeros is valid: no flags, an empty mask. The handler
    // does nothing, which is safe at any time.
    let result = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = interrupt as extern "C" fn(libc::c_int) as usize;
        libc::sigaction(libc::SIGHUP, &action, ptr::null_mut())
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Blocks until there is a byte, or a signal.
fn read(input: BorrowedFd<'_>) -> io::Result<u8> {
    let mut byte = 0_u8;
    // SAFETY: the descriptor is open, and there is room for one byte.
    match unsafe { libc::read(input.as_raw_fd(), (&raw mut byte).cast(), 1) } {
        1 => Ok(byte),
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Says that the thread is past its blocking calls, however it gets there.
struct Past(Arc<AtomicBool>);

impl Drop for Past {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The thread: reads until it is told to stop.
fn serve(c: &Coordinator, input: BorrowedFd<'_>, heard: &Sender<u8>) -> Result<i32, Error> {
    let mut cx = c.context::<Environment>()?;
    // SAFETY: it has no preconditions.
    let tid = unsafe { libc::pthread_self() };
    let past = Arc::new(AtomicBool::new(false));
    let is_past = past.clone();
    let _registration = c.on_activation::<Shutdown>(move |_| {
        while !is_past.load(Ordering::Acquire) {
            // SAFETY: the thread lives: before it ends it drops the
            // registration, which waits for this action.
            unsafe { libc::pthread_kill(tid, libc::SIGHUP) };
            thread::sleep(Duration::from_millis(1));
        }
    });
    // Dropped before the registration, whose action waits for it.
    let _past = Past(past);
    // Shutting down has set the timeout to nothing.
    while cx.server.timeout > 0 {
        match read(input) {
            Ok(byte) => heard.send(byte).expect("somebody listens"),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => panic!("cannot read: {error}"),
        }
        cx.sync();
    }
    Ok(cx.server.timeout)
}

/// Executes the listing.
///
/// # Errors
///
/// Only with a defect.
pub fn run() -> Result<String, Error> {
    handle_sighup().expect("a handler for SIGHUP");
    let (input, mut output) = UnixStream::pair().expect("a pair of sockets");
    let c = Coordinator::new();
    c.assign("/server/active/timeout", "0", None)?;
    let mut tc = c.context::<Environment>()?;

    let (sender, heard) = channel();
    let server = thread::spawn({
        let c = c.clone();
        move || serve(&c, input.as_fd(), &sender)
    });
    io::Write::write_all(&mut output, b"a").expect("a byte is written");
    assert_eq!(heard.recv(), Ok(b'a'));
    // Nothing more comes: the thread is blocked, or about to be.
    tc.activate(Shutdown)?;
    let timeout = server.join().expect("the thread ends")?;
    // Its action is gone with it.
    tc.deactivate::<Shutdown>()?;
    tc.activate(Shutdown)?;
    Ok(format!(
        "the blocked thread has ended, its timeout was {timeout}"
    ))
}
