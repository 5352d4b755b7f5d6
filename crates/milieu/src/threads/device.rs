//! A mediator of the whole device, which has this program's table to look at, and moves its
//! threads in the place of the program's own.

use std::ffi::c_int;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use milieu_threads::device::{self, Sent, Socket};
use milieu_threads::kernel;
use milieu_threads::lock::PriorityMutex;
use milieu_threads::packet::{Answer, Packet};
use milieu_threads::rung::scheduling;
use milieu_threads::table::{Scheduling, Table};

/// For so long nothing is done when it has gone: whoever ends one begins another.
const GRACE_NS: u64 = 1_000_000_000;

/// So long nobody is asked again who has accepted a call and not answered it.
const SILENCE_NS: u64 = 60_000_000_000;

/// Whom a program is to be served by, if he is there.
pub(super) struct Device {
    /// Where he listens; none is where those of the user and the machine do.
    path: Option<PathBuf>,
    usual: OnceLock<&'static str>,
    /// The process that may use the socket: no fork of it.
    process: u32,
    socket: PriorityMutex<Option<Socket>>,
    /// Whether there is a socket.
    serves: AtomicBool,
    /// Whether he was ever there, or the program has named him.
    is_expected: AtomicBool,
    /// Why he does not want this program.
    refusal: OnceLock<String>,
    /// When he has gone; 0 at first.
    lost_ns: AtomicU64,
    /// Not to be asked before.
    again_ns: AtomicU64,
}

/// A thread that begins another, as it was scheduled then.
#[derive(Clone, Copy)]
pub(super) struct Creator {
    thread: u32,
    here: Scheduling,
}

impl Device {
    /// The one that listens there, or where those of the user or the machine do.
    pub fn of(path: Option<PathBuf>) -> Device {
        Device {
            is_expected: AtomicBool::new(path.is_some()),
            path,
            usual: OnceLock::new(),
            process: kernel::process_id(),
            socket: PriorityMutex::new(None),
            serves: AtomicBool::new(false),
            refusal: OnceLock::new(),
            lost_ns: AtomicU64::new(0),
            again_ns: AtomicU64::new(0),
        }
    }

    /// Whether he has this program.
    pub fn serves(&self) -> bool {
        self.serves.load(Ordering::Acquire)
    }

    /// Whether it is worth while to look for him also while nobody is critical.
    pub fn is_expected(&self) -> bool {
        self.is_expected.load(Ordering::Relaxed) && self.refusal().is_none()
    }

    /// Whether he went a moment ago, and may come back.
    pub fn is_awaited(&self) -> bool {
        let lost_ns = self.lost_ns.load(Ordering::Relaxed);
        lost_ns != 0 && kernel::boot_time_ns() < lost_ns.saturating_add(GRACE_NS)
    }

    /// Whether somebody listens there who has not refused this program, nor been silent.
    pub fn is_there(&self) -> bool {
        let is_silent = kernel::boot_time_ns() < self.again_ns.load(Ordering::Relaxed);
        !is_silent && self.refusal().is_none() && self.call_up().is_some()
    }

    /// Why he does not want this program.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.get().map(String::as_str)
    }

    /// Where one is that nobody has named, once there is one.
    fn usual(&self) -> Option<&'static str> {
        if self.usual.get().is_none() {
            let _ = self.usual.set(device::usual_socket()?);
        }
        self.usual.get().copied()
    }

    fn call_up(&self) -> Option<Socket> {
        let path = match &self.path {
            Some(path) => path.as_os_str().as_bytes(),
            None => self.usual()?.as_bytes(),
        };
        let socket = Socket::new()?;
        let is_heard = device::call_up(socket.number(), path);
        is_heard.then_some(socket)
    }

    /// Hands the table over, unless that has been done; whether this program is served.
    pub fn register(&self, table: &Table) -> bool {
        if self.serves() || self.refusal().is_some() {
            return self.serves();
        }
        let Some(socket) = self.call_up() else {
            return false;
        };
        match enlist(socket.number(), table) {
            Enlisted::Yes => {
                if let Ok(mut known) = self.socket.lock() {
                    *known = Some(socket);
                    self.is_expected.store(true, Ordering::Relaxed);
                    self.serves.store(true, Ordering::Release);
                }
            }
            Enlisted::No(why) => {
                let _ = self.refusal.set(why);
            }
            Enlisted::Unanswered => {
                let again_ns = kernel::boot_time_ns().saturating_add(SILENCE_NS);
                self.again_ns.store(again_ns, Ordering::Relaxed);
            }
        }
        self.serves()
    }

    /// Looks whether he is still there; whether he is.
    pub fn attend(&self) -> bool {
        let Ok(mut socket) = self.socket.lock() else {
            return self.serves();
        };
        let is_there = |it: &Socket| device::is_answered(it.number());
        if !socket.as_ref().is_some_and(is_there) {
            self.lose(&mut socket);
        }
        socket.is_some()
    }

    /// Is served no more; threads return then.
    pub fn leave(&self) {
        self.serves.store(false, Ordering::Release);
        if let Ok(mut socket) = self.socket.lock() {
            socket.take();
        }
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
        // A fork has it from its parent, of whose threads he would think that he hears.
        if kernel::process_id() != self.process {
            return self.leave();
        }
        let Ok(mut socket) = self.socket.lock() else {
            return;
        };
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
            let now = kernel::boot_time_ns().max(1);
            self.lost_ns.store(now, Ordering::Relaxed);
        }
    }
}

/// What became of a program that wanted to be served.
enum Enlisted {
    Yes,
    /// It will not be, and why.
    No(String),
    Unanswered,
}

/// Hands the table over to who was called.
fn enlist(socket: c_int, table: &Table) -> Enlisted {
    let Some(table) = table.descriptor().and_then(kernel::reopened) else {
        return Enlisted::No("the table cannot be opened again".to_owned());
    };
    if device::hand_over(socket, &Packet::Register, table.number()) != Sent::Yes {
        return Enlisted::Unanswered;
    }
    let Some(answered) = device::answer(socket) else {
        return Enlisted::Unanswered;
    };
    match Answer::read(answered.bytes()) {
        Some(Answer::Yes) => Enlisted::Yes,
        Some(Answer::No(why)) => Enlisted::No(why.to_owned()),
        _ => Enlisted::No("its answer is not understood".to_owned()),
    }
}
