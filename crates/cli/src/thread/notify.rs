//! What systemd is told of a service: that it is ready, and that it is about to end.
//!
//! As `sd_notify(3)` has it, a datagram to the socket that `NOTIFY_SOCKET` names. Without
//! systemd there is no such variable, and nothing is done.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Programs may rely on it from now on.
pub(super) fn ready() {
    tell("READY=1");
}

/// It has been told to end, and does what is left to do.
pub(super) fn stopping() {
    tell("STOPPING=1");
}

fn tell(state: &str) {
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET") {
        // Nobody who hears it is no reason to end what others rely on.
        let _ = tell_at(&socket, state);
    }
}

fn tell_at(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?
        .send_to_addr(state.as_bytes(), &address)
        .map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_by_a_path_and_by_a_name_without_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let name = format!("milieu-test-{}", std::process::id());
        let by_path = UnixDatagram::bind(&path).unwrap();
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let by_name = UnixDatagram::bind_addr(&address).unwrap();
        let abstract_name = format!("@{name}");
        for (socket, told) in [
            (path.as_os_str(), by_path),
            (OsStr::new(&abstract_name), by_name),
        ] {
            tell_at(socket, "READY=1").unwrap();
            let mut space = [0; 16];
            let length = told.recv(&mut space).unwrap();
            assert_eq!(&space[..length], b"READY=1");
        }
        assert!(tell_at(OsStr::new("relative/nothing"), "READY=1").is_err());
    }
}
