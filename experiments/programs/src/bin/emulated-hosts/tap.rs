//! Network interfaces whose other end is this program.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;

const DEVICE: &str = "/dev/net/tun";

/// What `ip` calls the interface, in each namespace.
pub const NAME: &str = "link";

nix::ioctl_write_ptr_bad!(
    set_interface,
    nix::request_code_write!(b'T', 202, size_of::<libc::c_int>()),
    libc::ifreq
);

/// Makes an interface in the network namespace of this thread. What is written is
/// a frame that comes to it, and what is read is one that it sends. It is gone
/// when the file is closed.
pub fn open() -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).open(DEVICE)?;
    let mut name = [0; libc::IFNAMSIZ];
    for (to, from) in name.iter_mut().zip(NAME.bytes()) {
        *to = from as libc::c_char;
    }
    let request = libc::ifreq {
        ifr_name: name,
        ifr_ifru: libc::__c_anonymous_ifr_ifru {
            ifru_flags: (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short,
        },
    };
    // SAFETY: the file is open, and the request lives as long as the call.
    unsafe { set_interface(file.as_raw_fd(), &raw const request) }?;
    Ok(file)
}
