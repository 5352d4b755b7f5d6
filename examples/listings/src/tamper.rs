//! IV-A: one thread waits in `select` for tampering and activates a layer;
//! whoever delivers pages synchronizes and says so.
//!
//! The paper waits for an exceptional condition, which is how the kernel
//! announces the edge of a GPIO. The socket that stands in for it here becomes
//! readable instead.

use std::{
    io::{self, Write},
    os::{
        fd::{AsRawFd, RawFd},
        unix::net::UnixStream,
    },
    ptr, thread,
};

use milieu::{Context, Coordinator, Error, layer};

use crate::specifications::http::Environment;

layer! { struct Tamper = "tamper"; }

/// Blocks until the input has something to say.
fn select(fd: RawFd) -> io::Result<()> {
    // SAFETY: a set of zeros is empty, the descriptor is open, and below
    // FD_SETSIZE in a process with so few.
    let result = unsafe {
        assert!(usize::try_from(fd).is_ok_and(|fd| fd < libc::FD_SETSIZE));
        let mut fds: libc::fd_set = std::mem::zeroed();
        libc::FD_SET(fd, &mut fds);
        libc::select(
            fd + 1,
            &mut fds,
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null_mut(),
        )
    };
    if result > 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn page(t: &mut Context<Environment>, out: &mut String) {
    t.sync();
    if !t.sw.pi.tamper.is_empty() {
        out.push_str("tamper!!!");
    }
}

/// Executes the listing.
///
/// # Errors
///
/// Only with a defect.
pub fn run() -> Result<String, Error> {
    let coordinator = Coordinator::new();
    coordinator.assign("/sw/pi/tamper/active", "yes", None)?;
    let mut t = coordinator.context::<Environment>()?;
    let (input, mut pin) = UnixStream::pair().expect("a pair of sockets");

    let mut c = coordinator.context::<Environment>()?;
    let sensor = thread::spawn(move || {
        while let Err(error) = select(input.as_raw_fd()) {
            assert_eq!(error.kind(), io::ErrorKind::Interrupted, "{error}");
        }
        c.activate(Tamper)
    });

    let mut out = String::new();
    page(&mut t, &mut out);
    assert_eq!(out, "");
    pin.write_all(b"1").expect("somebody moves");
    sensor.join().expect("the sensor's thread ends")?;
    page(&mut t, &mut out);
    assert_eq!(out, "tamper!!!");
    Ok(out)
}
