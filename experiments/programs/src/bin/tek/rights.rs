//! What most users may not: how their own threads are scheduled better than others'.

use std::io;

use experiments::Failed;
use milieu_threads::rung::scheduling;
use nix::sys::resource::{Resource, setrlimit};

const CAP_SYS_NICE: u32 = 23;

/// `struct __user_cap_header_struct`, of the version with two sets of 32 capabilities.
#[repr(C)]
struct Header {
    version: u32,
    process: libc::c_int,
}

const VERSION: u32 = 0x2008_0522;

/// `struct __user_cap_data_struct`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Set {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// This thread, and what it begins here, may only be scheduled worse from now on, and not
/// return from that.
pub fn give_up() -> Result<(), Failed> {
    setrlimit(Resource::RLIMIT_NICE, 0, 0)?;
    setrlimit(Resource::RLIMIT_RTPRIO, 0, 0)?;
    let mut header = Header {
        version: VERSION,
        process: 0,
    };
    let mut sets = [Set::default(); 2];
    // SAFETY: the kernel writes two sets, as the version says.
    let said = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) };
    if said != 0 {
        return Err(io::Error::last_os_error().into());
    }
    sets[0].effective &= !(1 << CAP_SYS_NICE);
    sets[0].permitted &= !(1 << CAP_SYS_NICE);
    sets[0].inheritable &= !(1 << CAP_SYS_NICE);
    // SAFETY: the kernel reads two sets.
    let said = unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) };
    if said != 0 {
        return Err(io::Error::last_os_error().into());
    }
    if scheduling::has_privilege() || scheduling::may_have_nice(0) {
        return Err("the right to schedule threads cannot be given up here".into());
    }
    Ok(())
}
