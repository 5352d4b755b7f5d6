//! Sockets by which this process and a mediator of the whole device speak.
//!
//! Nothing here is a cancellation point for the program, and `errno` stays: whoever calls
//! this sees to it.

use core::ffi::{c_int, c_void};
use core::mem::{MaybeUninit, zeroed};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use milieu_threads::kernel;
use milieu_threads::packet::{BYTES_MAX, Packet};

use crate::real;

/// How long an answer is waited for.
const PATIENCE_MILLISECONDS: c_int = 2000;

const KIND: c_int = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;

/// A place for a file that stays open. A program may close it, and have another by its
/// number.
pub struct Place {
    number: AtomicI32,
    /// Which file it is.
    file: AtomicU64,
}

impl Place {
    pub const fn new() -> Place {
        Place {
            number: AtomicI32::new(-1),
            file: AtomicU64::new(0),
        }
    }

    /// Whether there is one, as far as we know.
    #[inline]
    pub fn is_taken(&self) -> bool {
        self.number.load(Ordering::Acquire) >= 0
    }

    /// The number, and which file has it.
    pub fn get(&self) -> Option<(c_int, u64)> {
        let number = self.number.load(Ordering::Acquire);
        (number >= 0).then(|| (number, self.file.load(Ordering::Acquire)))
    }

    /// Puts a file there; whatever is there is forgotten.
    pub fn put(&self, number: c_int, file: u64) {
        self.number.store(-1, Ordering::Release);
        self.file.store(file, Ordering::Release);
        self.number.store(number, Ordering::Release);
    }

    /// Takes this file from there; false if another thread has.
    pub fn take(&self, number: c_int) -> bool {
        let (new, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        let exchanged = self.number.compare_exchange(number, -1, new, failure);
        exchanged.is_ok()
    }

    /// Closes what is there, if it is what it was.
    pub fn close(&self) {
        if let Some((number, file)) = self.get() {
            if self.take(number) && file_of(number) == file {
                close(number);
            }
        }
    }
}

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

/// What somebody has answered.
pub struct Answered {
    bytes: [u8; BYTES_MAX],
    length: usize,
}

impl Answered {
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// Calls who listens there. False if nobody does.
pub fn call(socket: c_int, path: &[u8]) -> bool {
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
    let mut file = libc::pollfd {
        fd: socket,
        events: libc::POLLIN,
        revents: 0,
    };
    // Signals may come meanwhile.
    let is_ready = |_| {
        // SAFETY: asks about one file.
        let ready = unsafe { real::poll(&mut file, 1, PATIENCE_MILLISECONDS) };
        (ready >= 0 || kernel::last_error() != libc::EINTR).then_some(ready == 1)
    };
    if (0..TRIES).find_map(is_ready) != Some(true) {
        return None;
    }
    let mut answered = Answered {
        bytes: [0; BYTES_MAX],
        length: 0,
    };
    let into = answered.bytes.as_mut_ptr().cast();
    // SAFETY: writes as many bytes as there are.
    let read = unsafe { real::recv(socket, into, BYTES_MAX, libc::MSG_DONTWAIT) };
    answered.length = usize::try_from(read).unwrap_or(0);
    (answered.length > 0).then_some(answered)
}

/// Whether whoever was called is there.
pub fn is_answered(socket: c_int) -> bool {
    let mut file = libc::pollfd {
        fd: socket,
        events: 0,
        revents: 0,
    };
    // SAFETY: asks about one file, and waits for nothing.
    let said = unsafe { real::poll(&mut file, 1, 0) };
    said == 0 || (said == 1 && file.revents & (libc::POLLHUP | libc::POLLERR) == 0)
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sent {
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
    let mut file = libc::pollfd {
        fd: socket,
        events: libc::POLLOUT,
        revents: 0,
    };
    // SAFETY: asks about one file.
    unsafe { real::poll(&mut file, 1, PATIENCE_MILLISECONDS) };
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
