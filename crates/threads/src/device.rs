//! How a program finds a mediator of the whole device, and the sockets by which they speak.
//!
//! Whoever serves a program that does not know of it sees to it that no call of these is a
//! cancellation point for that, and that `errno` stays.

use core::ffi::{CStr, c_char, c_int, c_short, c_void};
use core::mem::{MaybeUninit, zeroed};
use core::ptr::null_mut;

use crate::kernel::{self, Errno, call};
use crate::packet::{BYTES_MAX, Packet};

/// How long an answer is waited for.
const PATIENCE_MILLISECONDS: c_int = 2000;

const KIND: c_int = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;

/// Where a mediator may be for a program that was begun without settings, as one that is
/// linked with the preload: that of its user, or that of the device.
/// The path stays: whoever finds one keeps it.
pub fn usual_socket() -> Option<&'static str> {
    const OF_DEVICE: &CStr = c"/run/milieu/mediator";
    const IN_FOLDER: &[u8] = b"/milieu/mediator\0";
    unsafe extern "C" {
        // Of who has rights that his user has not, nobody says by whom he is served.
        fn secure_getenv(name: *const c_char) -> *const c_char;
    }
    let is_there = |path: &CStr| {
        // SAFETY: reads the path.
        kernel::unnoticed(|| unsafe { libc::access(path.as_ptr(), libc::F_OK) == 0 })
    };
    let mut space = [0; 256];
    let mut of_user = || {
        // SAFETY: has no arguments; the name ends with a zero, and the text stays for now.
        let folder = unsafe {
            let folder = secure_getenv(c"XDG_RUNTIME_DIR".as_ptr());
            let is_root = libc::geteuid() == 0;
            (!is_root && !folder.is_null()).then(|| CStr::from_ptr(folder).to_bytes())?
        };
        let (start, rest) = space.split_at_mut_checked(folder.len())?;
        start.copy_from_slice(folder);
        rest.get_mut(..IN_FOLDER.len())?.copy_from_slice(IN_FOLDER);
        let path = CStr::from_bytes_until_nul(&space).ok()?;
        (folder.starts_with(b"/") && is_there(path)).then(|| kernel::keep(path.to_bytes()).ok())?
    };
    let found = of_user().or_else(|| is_there(OF_DEVICE).then_some(OF_DEVICE))?;
    found.to_str().ok()
}

/// Closes one.
pub fn close(descriptor: c_int) {
    // SAFETY: it is ours.
    kernel::unnoticed(|| unsafe { libc::close(descriptor) });
}

/// The number of the file, 0 if it is no socket.
pub fn file_of(descriptor: c_int) -> u64 {
    kernel::unnoticed(|| {
        // SAFETY: zeros are such a structure, which the kernel writes.
        let (said, status) = unsafe {
            let mut status: libc::stat64 = zeroed();
            (libc::fstat64(descriptor, &mut status), status)
        };
        let is_socket = said == 0 && status.st_mode & libc::S_IFMT == libc::S_IFSOCK;
        #[allow(clippy::unnecessary_cast, reason = "narrower on 32 bits")]
        let number = status.st_ino as u64;
        if is_socket { number } else { 0 }
    })
}

/// A socket that nobody has called yet.
pub fn new() -> Option<c_int> {
    // SAFETY: numbers only, and the new one is ours.
    unsafe {
        let low = libc::socket(libc::AF_UNIX, KIND | libc::SOCK_NONBLOCK, 0);
        (low >= 0).then(|| kernel::out_of_the_way(low))
    }
}

/// A socket that is closed when this is dropped.
#[derive(Debug)]
pub struct Socket(c_int);

impl Socket {
    /// One that nobody has called yet.
    pub fn new() -> Option<Socket> {
        new().map(Socket)
    }

    /// Its number.
    pub fn number(&self) -> c_int {
        self.0
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        close(self.0);
    }
}

/// What somebody has answered.
pub struct Answered {
    bytes: [u8; BYTES_MAX],
    length: usize,
}

impl Answered {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// Calls who listens there. False if nobody does.
pub fn call_up(socket: c_int, path: &[u8]) -> bool {
    // SAFETY: zeros are an address, and the call reads as much as there is.
    unsafe {
        let mut address: libc::sockaddr_un = zeroed();
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        // A zero stays behind it.
        let room = address.sun_path.len() - 1;
        for (into, byte) in address.sun_path.iter_mut().take(room).zip(path) {
            *into = *byte as _;
        }
        let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        path.len() <= room && libc::connect(socket, (&raw const address).cast(), length) == 0
    }
}

/// Waits for an answer; none if there is none in good time, or nobody any more.
pub fn answer(socket: c_int) -> Option<Answered> {
    const TRIES: u32 = 16;
    // Signals may come meanwhile.
    let is_ready = |_| match poll(socket, libc::POLLIN, PATIENCE_MILLISECONDS) {
        Err(Errno(libc::EINTR)) => None,
        said => Some(said.is_ok_and(|it| it.is_some())),
    };
    if (0..TRIES).find_map(is_ready) != Some(true) {
        return None;
    }
    let mut answered = Answered {
        bytes: [0; BYTES_MAX],
        length: 0,
    };
    let into = answered.bytes.as_mut_ptr() as usize;
    let flags = libc::MSG_DONTWAIT as usize;
    let arguments = [socket as usize, into, BYTES_MAX, flags, 0, 0];
    // SAFETY: writes as many bytes as there are.
    answered.length = unsafe { call(libc::SYS_recvfrom, arguments) }.ok()?;
    (answered.length > 0).then_some(answered)
}

/// Whether whoever was called is there.
pub fn is_answered(socket: c_int) -> bool {
    match poll(socket, 0, 0) {
        Ok(None) => true,
        Ok(Some(events)) => events & (libc::POLLHUP | libc::POLLERR) == 0,
        Err(_) => false,
    }
}

/// Waits until something of this can be done with a socket, or it is over: what it is; none
/// if there is nothing in so many milliseconds.
fn poll(socket: c_int, events: c_short, milliseconds: c_int) -> Result<Option<c_short>, Errno> {
    let mut file = libc::pollfd {
        fd: socket,
        events,
        revents: 0,
    };
    // SAFETY: zeros are no time.
    let mut span: libc::timespec = unsafe { zeroed() };
    span.tv_sec = (milliseconds / 1000) as _;
    span.tv_nsec = (milliseconds % 1000 * 1_000_000) as _;
    let (file_at, span_at) = (&raw mut file as usize, &raw mut span as usize);
    // Not the C library's, which is a cancellation point.
    // SAFETY: asks about one file.
    let ready = unsafe { call(libc::SYS_ppoll, [file_at, 1, span_at, 0, 0, 0]) }?;
    Ok((ready > 0).then_some(file.revents))
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It was said.
    Yes,
    /// There are so many that have not been heard.
    Full,
    /// Nobody hears it.
    No,
}

/// Says something, and waits for nothing.
pub fn say(socket: c_int, packet: &Packet) -> Sent {
    let line = packet.text();
    let bytes = line.as_bytes();
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: reads as many bytes as there are.
    let sent = unsafe { libc::send(socket, bytes.as_ptr().cast(), bytes.len(), flags) };
    sent_of(sent, bytes.len())
}

/// Waits for a moment until something can be said.
pub fn wait_for_room(socket: c_int) {
    const PATIENCE_MILLISECONDS: c_int = 5;
    let _ = poll(socket, libc::POLLOUT, PATIENCE_MILLISECONDS);
}

fn sent_of(sent: isize, length: usize) -> Sent {
    match kernel::last_error() {
        _ if sent == length as isize => Sent::Yes,
        libc::EAGAIN => Sent::Full,
        _ => Sent::No,
    }
}

/// Says something, and hands over a file.
pub fn hand_over(socket: c_int, packet: &Packet, file: c_int) -> Sent {
    let line = packet.text();
    let bytes = line.as_bytes();
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    // As aligned as headers want it, and large enough for one with a number.
    let mut space = MaybeUninit::<[usize; 16]>::zeroed();
    // SAFETY: zeros are such a message, and its parts, which are only read, live as long as
    // the call.
    unsafe {
        let mut message: libc::msghdr = zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = space.as_mut_ptr().cast::<c_void>();
        message.msg_controllen = libc::CMSG_SPACE(size_of::<c_int>() as u32) as _;
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as u32) as _;
        libc::CMSG_DATA(header)
            .cast::<c_int>()
            .write_unaligned(file);
        message.msg_name = null_mut();
        let sent = libc::sendmsg(socket, &message, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT);
        sent_of(sent, bytes.len())
    }
}

/// Asks by a socket of its own, which is handed over: what was answered, and the end that
/// stays here.
pub fn ask(socket: c_int, packet: &Packet) -> Result<(c_int, Answered), Sent> {
    let mut ends = [-1; 2];
    // SAFETY: writes two numbers, and these are ours.
    let (here, there) = unsafe {
        if libc::socketpair(libc::AF_UNIX, KIND, 0, ends.as_mut_ptr()) != 0 {
            return Err(Sent::Full);
        }
        (kernel::out_of_the_way(ends[0]), ends[1])
    };
    let sent = hand_over(socket, packet, there);
    close(there);
    let answered = (sent == Sent::Yes).then(|| answer(here)).flatten();
    match answered {
        Some(answered) => Ok((here, answered)),
        None => {
            close(here);
            Err(if sent == Sent::Yes { Sent::No } else { sent })
        }
    }
}
