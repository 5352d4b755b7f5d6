//! A mediator of the whole device, which has this program's table to look at, and moves its
//! threads in the place of the program's own.

use std::ffi::c_int;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use milieu_threads::device::{self, Sent, Socket};
use milieu_threads::kernel;
use milieu_threads::packet::{Answer, Packet};
use milieu_threads::rung::scheduling;
use milieu_threads::table::{Scheduling, Table};

/// For so long nothing is done when it has gone: whoever ends one begins another.
const GRACE_NS: u64 = 1_000_000_000;

/// Whom a program is to be served by, if he is there.
pub(super) struct Device {
    path: PathBuf,
    socket: Mutex<Option<Socket>>,
    /// Whether there is a socket.
    serves: AtomicBool,
    /// Why it does not want this program.
    refusal: OnceLock<String>,
    /// When it has gone; 0 at first.
    lost_ns: Mutex<u64>,
}

/// A thread that begins another, as it was scheduled then.
#[derive(Clone, Copy)]
pub(super) struct Creator {
    thread: u32,
    here: Scheduling,
}

impl Device {
    /// The one that listens there, or where those of the user or the machine do.
    pub fn of(path: Option<PathBuf>) -> Option<Device> {
        let path = path.or_else(|| device::usual_socket().map(PathBuf::from))?;
        Some(Device {
            path,
            socket: Mutex::default(),
            serves: AtomicBool::new(false),
            refusal: OnceLock::new(),
            lost_ns: Mutex::default(),
        })
    }

    /// Whether it has this program.
    pub fn serves(&self) -> bool {
        self.serves.load(Ordering::Acquire)
    }

    /// Whether it went a moment ago, and may come back.
    pub fn is_awaited(&self) -> bool {
        let lost_ns = *self.lost_ns.lock().unwrap_or_else(PoisonError::into_inner);
        lost_ns != 0 && kernel::boot_time_ns() < lost_ns.saturating_add(GRACE_NS)
    }

    /// Whether somebody listens there who has not refused this program.
    pub fn is_there(&self) -> bool {
        self.refusal().is_none() && self.call_up().is_some()
    }

    /// Why it does not want this program.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.get().map(String::as_str)
    }

    fn call_up(&self) -> Option<Socket> {
        let socket = Socket::new()?;
        let path = self.path.as_os_str().as_bytes();
        device::call_up(socket.number(), path).then_some(socket)
    }

    /// Hands the table over, unless that has been done; whether this program is served.
    pub fn register(&self, table: &Table) -> bool {
        if self.serves() || self.refusal().is_some() {
            return self.serves();
        }
        let Some(socket) = self.call_up() else {
            return false;
        };
        let (is_served, why) = enlist(socket.number(), table);
        if let Some(why) = why {
            let _ = self.refusal.set(why);
        }
        if is_served {
            *self.socket() = Some(socket);
            self.serves.store(true, Ordering::Release);
        }
        is_served
    }

    /// Looks whether it is still there; whether it is.
    pub fn attend(&self) -> bool {
        let mut socket = self.socket();
        let is_there = |it: &Socket| device::is_answered(it.number());
        if !socket.as_ref().is_some_and(is_there) {
            self.lose(&mut socket);
        }
        socket.is_some()
    }

    /// Is served no more; threads return then.
    pub fn leave(&self) {
        self.socket().take();
        self.serves.store(false, Ordering::Release);
    }

    /// What a thread is for has changed, or such a thread has begun or ended.
    pub fn tell(&self) {
        self.say(&Packet::Changed, false);
    }

    /// This thread is about to wait for a lock that another thread has.
    pub fn waits(&self, owner: u32) {
        let waiter = kernel::thread_id();
        if waiter != owner {
            self.say(&Packet::Waits { waiter, owner }, false);
        }
    }

    /// This thread waits no more.
    pub fn has_waited(&self) {
        let waiter = kernel::thread_id();
        // Whoever had it would be urgent for too long.
        self.say(&Packet::Served { waiter }, true);
    }

    /// This thread, which is about to begin another.
    pub fn creator(&self) -> Option<Creator> {
        let thread = self.serves().then(kernel::thread_id)?;
        let here = scheduling::of(thread).ok()?;
        Some(Creator { thread, here })
    }

    /// This thread has begun where its creator was, and returns to what that returns to.
    pub fn begun(&self, creator: &Creator) {
        let thread = kernel::thread_id();
        if scheduling::of(thread).is_ok_and(|it| it.is_doubtful_from(creator.here)) {
            let creator = creator.thread;
            self.say(&Packet::Begun { thread, creator }, true);
        }
    }

    /// Says something. What there is no room for is left out, as it looks by itself in a
    /// moment; or that is waited for.
    fn say(&self, packet: &Packet, is_certain: bool) {
        const TRIES: u32 = 20;
        if !self.serves() {
            return;
        }
        let mut socket = self.socket();
        let Some(number) = socket.as_ref().map(Socket::number) else {
            return;
        };
        let mut said = device::say(number, packet);
        for _ in 0..TRIES {
            if !is_certain || said != Sent::Full {
                break;
            }
            device::wait_for_room(number);
            said = device::say(number, packet);
        }
        if said == Sent::No {
            self.lose(&mut socket);
        }
    }

    fn lose(&self, socket: &mut Option<Socket>) {
        if socket.take().is_some() {
            self.serves.store(false, Ordering::Release);
            let mut lost_ns = self.lost_ns.lock().unwrap_or_else(PoisonError::into_inner);
            *lost_ns = kernel::boot_time_ns().max(1);
        }
    }

    fn socket(&self) -> MutexGuard<'_, Option<Socket>> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands the table over to who was called: whether this program is served, and why it will
/// not be.
fn enlist(socket: c_int, table: &Table) -> (bool, Option<String>) {
    let Some(table) = table.descriptor().and_then(kernel::reopened) else {
        return (false, None);
    };
    if device::hand_over(socket, &Packet::Register, table.number()) != Sent::Yes {
        return (false, None);
    }
    let Some(answered) = device::answer(socket) else {
        return (false, None);
    };
    match Answer::read(answered.bytes()) {
        Some(Answer::Yes) => (true, None),
        Some(Answer::No(why)) => (false, Some(why.to_owned())),
        _ => (false, Some("its answer is not understood".to_owned())),
    }
}
