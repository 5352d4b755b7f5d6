//! A mediator that serves the whole device: if one listens, it gets this process's table
//! to look at, and is told when it has to look again. Then nothing is mediated here;
//! should it go, the process does it by itself from the next change on.

use core::ffi::{c_int, c_void};
use core::mem::{MaybeUninit, zeroed};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use milieu_threads::kernel;

use crate::real;
use crate::state::{Served, uncancelled};

static SOCKET: AtomicI32 = AtomicI32::new(-1);
/// What file the socket is; a program may have closed it, and have another by its number.
static FILE: AtomicU64 = AtomicU64::new(0);

/// Whether such a mediator has this process.
pub fn serves() -> bool {
    SOCKET.load(Ordering::Acquire) >= 0
}

/// Registers the process, if a mediator listens where the settings say.
pub fn register(served: &Served) {
    let Some(path) = served.settings.socket else {
        return;
    };
    let descriptor = served.program.table().descriptor();
    let Some(table) = descriptor.and_then(kernel::reopened) else {
        return;
    };
    let said = uncancelled(|| kernel::unnoticed(|| ask(path.as_bytes(), table.number())));
    match said {
        Some(Ok(socket)) => {
            FILE.store(file_of(socket), Ordering::Release);
            SOCKET.store(socket, Ordering::Release);
        }
        Some(Err(answer)) => {
            let why = core::str::from_utf8(answer.text()).unwrap_or("no");
            served.say(format_args!(
                "the mediator of this device does not serve this program: {why}"
            ));
        }
        // Nobody is there.
        None => {}
    }
}

/// What a thread is for has changed, or such a thread has begun or ended.
pub fn tell(served: &Served) {
    let socket = SOCKET.load(Ordering::Acquire);
    if socket < 0 {
        return;
    }
    let is_told = file_of(socket) == FILE.load(Ordering::Acquire)
        && kernel::unnoticed(|| {
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            // SAFETY: reads one byte.
            let sent = unsafe { libc::send(socket, c"c".as_ptr().cast(), 1, flags) };
            // Otherwise it is about to look anyway.
            sent == 1 || kernel::last_error() == libc::EAGAIN
        });
    if !is_told {
        forget();
        if served.program.has_critical() {
            served.mediate();
        }
    }
}

/// In the child of `fork`, which the mediator does not know.
pub fn after_fork(served: &Served) {
    if serves() {
        forget();
        register(served);
    }
}

fn forget() {
    let socket = SOCKET.swap(-1, Ordering::AcqRel);
    if socket >= 0 && file_of(socket) == FILE.load(Ordering::Acquire) {
        // SAFETY: it is ours.
        kernel::unnoticed(|| unsafe { libc::close(socket) });
    }
}

/// The number of the file, 0 if it is no socket.
fn file_of(descriptor: c_int) -> u64 {
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

/// What a mediator has answered instead of `yes`.
struct Answer {
    bytes: [u8; 200],
    length: usize,
}

impl Answer {
    fn text(&self) -> &[u8] {
        let text = self.bytes.get(..self.length).unwrap_or_default();
        text.strip_prefix(b"no ").unwrap_or(text)
    }
}

/// Connects and registers; none if nobody listens, or nobody answers.
fn ask(path: &[u8], table: c_int) -> Option<Result<c_int, Answer>> {
    const PATIENCE_MILLISECONDS: c_int = 2000;
    // SAFETY: everything that the kernel reads and writes lives, and is as long as said.
    unsafe {
        let flags = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let low = libc::socket(libc::AF_UNIX, flags, 0);
        if low < 0 {
            return None;
        }
        let socket = kernel::out_of_the_way(low);
        let mut address: libc::sockaddr_un = zeroed();
        address.sun_family = libc::AF_UNIX as libc::sa_family_t;
        // A zero stays behind it.
        let room = address.sun_path.len() - 1;
        for (into, byte) in address.sun_path.iter_mut().take(room).zip(path) {
            *into = *byte as _;
        }
        let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        let is_there = path.len() <= room
            && libc::connect(socket, (&raw const address).cast(), length) == 0
            && hand_over(socket, table);
        let mut file = libc::pollfd {
            fd: socket,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut answer = Answer {
            bytes: [0; 200],
            length: 0,
        };
        if is_there && real::poll(&mut file, 1, PATIENCE_MILLISECONDS) == 1 {
            let room = answer.bytes.len();
            let read = real::recv(socket, answer.bytes.as_mut_ptr().cast(), room, 0);
            answer.length = usize::try_from(read).unwrap_or(0);
        }
        if answer.text() == b"yes" {
            return Some(Ok(socket));
        }
        libc::close(socket);
        (answer.length > 0).then_some(Err(answer))
    }
}

/// Hands over the table.
///
/// # Safety
/// Both are open.
unsafe fn hand_over(socket: c_int, table: c_int) -> bool {
    let mut text = *b"milieu 1";
    let mut part = libc::iovec {
        iov_base: text.as_mut_ptr().cast(),
        iov_len: text.len(),
    };
    // As aligned as headers want it, and large enough for one with a number.
    let mut space = MaybeUninit::<[usize; 16]>::zeroed();
    // SAFETY: zeros are such a message, and its parts live as long as the call.
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
            .write_unaligned(table);
        message.msg_name = null_mut();
        libc::sendmsg(socket, &message, libc::MSG_NOSIGNAL) == text.len() as isize
    }
}
