//! A mediator that serves the whole device: if one listens, it gets this process's table
//! to look at, and is told when it has to look again, and who waits for whose lock. Then
//! nothing is mediated here. What the program asks of the kernel for a thread, or begins by
//! one, it does while that is where the program wants it ([`at_home`]).
//!
//! The helper sees that it has gone, and registers the process when it is back. If it stays
//! away, the process mediates itself until then. The helper has no files in common with the
//! program, and so calls by a socket that was made before (`SPARES`): whoever has a part of
//! a socket has all of it.

mod place;

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use milieu_threads::kernel;
use milieu_threads::packet::{Answer, Packet};
use milieu_threads::rung::scheduling;
use milieu_threads::table::Scheduling;

use crate::helper;
use crate::state::{self, Served, uncancelled};
use milieu_threads::device::{self as socket, Sent};
use place::Place;

static SOCKET: Place = Place::new();
/// Sockets by which the helper calls it.
static SPARES: [Place; 4] = [const { Place::new() }; 4];
/// One that is no use any more, and that the helper cannot close.
static STALE: Place = Place::new();
/// When it has gone; 0 if it has not.
static LOST_NS: AtomicU64 = AtomicU64::new(0);
/// It does not want this process.
static IS_REFUSED: AtomicBool = AtomicBool::new(false);

/// For so long nothing is done when it has gone: whoever ends one begins another, and what
/// it has done is undone meanwhile.
const GRACE_NS: u64 = 1_000_000_000;

/// How often the helper looks whether it is there, while somebody is critical, and otherwise.
const PERIOD_NS: u64 = 250_000_000;
const PERIOD_NS_LONG: u64 = 1_000_000_000;

/// Whether such a mediator has this process.
#[inline]
pub fn serves() -> bool {
    SOCKET.is_taken()
}

/// Whether it has this process, or went a moment ago and may come back.
pub fn is_awaited() -> bool {
    let lost_ns = LOST_NS.load(Ordering::Acquire);
    serves() || (lost_ns != 0 && kernel::boot_time_ns() < lost_ns.saturating_add(GRACE_NS))
}

/// Whether this process may be served by one.
pub fn is_wanted(served: &Served) -> bool {
    served.settings.socket.is_some()
}

/// Registers the process, if a mediator listens where the settings say.
pub fn register(served: &Served) {
    let Some(path) = served.settings.socket else {
        return;
    };
    uncancelled(|| {
        kernel::unnoticed(|| {
            let Some(new) = socket::new() else {
                return;
            };
            if socket::call_up(new, path.as_bytes()) && enlist(served, new) {
                SOCKET.put(new, socket::file_of(new));
            } else {
                socket::close(new);
            }
        });
    });
}

/// Hands the table over to who was called. False if this process is not served.
fn enlist(served: &Served, socket: c_int) -> bool {
    let descriptor = served.program.table().descriptor();
    let Some(table) = descriptor.and_then(kernel::reopened) else {
        return false;
    };
    if socket::hand_over(socket, &Packet::Register, table.number()) != Sent::Yes {
        return false;
    }
    let Some(answered) = socket::answer(socket) else {
        return false;
    };
    match Answer::read(answered.bytes()) {
        Some(Answer::Yes) => true,
        said => {
            IS_REFUSED.store(true, Ordering::Release);
            let why = match said {
                Some(Answer::No(why)) => why,
                _ => "its answer is not understood",
            };
            helper::say(|| {
                served.say(format_args!(
                    "the mediator of this device does not serve this program: {why}"
                ));
            });
            false
        }
    }
}

/// What a thread is for has changed, or such a thread has begun or ended.
pub fn tell(served: &Served) {
    say(served, &Packet::Changed, false);
}

/// A critical thread is about to wait for a lock that another thread has.
pub fn waits(served: &Served, waiter: u32, owner: u32) {
    if waiter != owner {
        say(served, &Packet::Waits { waiter, owner }, false);
    }
}

/// It has got it, or waits no more.
pub fn has_waited(served: &Served, waiter: u32) {
    // Whoever had it would be urgent for too long.
    say(served, &Packet::Served { waiter }, true);
}

/// Says something. If too much was said already, it is left out: the mediator is about to
/// look anyway; or it is waited for.
fn say(served: &Served, packet: &Packet, is_certain: bool) {
    const TRIES: u32 = 20;
    let Some((socket, file)) = SOCKET.get() else {
        return;
    };
    provide(served);
    let said = uncancelled(|| {
        kernel::unnoticed(|| {
            if socket::file_of(socket) != file {
                return Sent::No;
            }
            let mut said = socket::say(socket, packet);
            for _ in 0..TRIES {
                if !is_certain || said != Sent::Full {
                    break;
                }
                socket::wait_for_room(socket);
                said = socket::say(socket, packet);
            }
            said
        })
    });
    if said == Sent::No {
        lose(served, socket, file);
    }
}

/// A thread that creates another which inherits how it is scheduled, before that is created.
#[derive(Clone, Copy)]
pub struct Creator {
    thread: u32,
    here: Scheduling,
}

/// This thread, if such a mediator may have it.
pub fn creator() -> Option<Creator> {
    let thread = serves().then(kernel::thread_id)?;
    let here = scheduling::of(thread).ok()?;
    Some(Creator { thread, here })
}

/// This thread begins. If it has what threads have that are elsewhere, or not what its creator
/// had, it returns to what its creator returns to, which is certain only if the mediator knows
/// who that is.
pub fn begun(served: &Served, thread: u32, creator: &Creator) {
    let is_to_tell = |it: Scheduling| it.is_doubtful_from(creator.here);
    if serves() && scheduling::of(thread).is_ok_and(is_to_tell) {
        let creator = creator.thread;
        say(served, &Packet::Begun { thread, creator }, true);
    }
}

/// Does something while a thread of this process, or one that has its memory, is where the
/// program wants it.
pub fn at_home<T>(thread: u32, action: impl FnOnce() -> T) -> T {
    let Some(served) = state::served().filter(|_| serves()) else {
        return action();
    };
    let me = kernel::thread_id();
    // Its creator's, in a child of `vfork`.
    let known = state::own_record(served);
    let record = known.filter(|it| it.tid() == me);
    let creator = known.map_or(0, |it| it.tid());
    let creator = (record.is_none() && thread == me && creator != 0).then_some(creator);
    if record.is_some_and(|it| it.is_visiting()) {
        return action();
    }
    let Some(visit) = visit(served, thread, creator) else {
        return action();
    };
    if let Some(record) = record {
        // Whoever is cancelled meanwhile ends it.
        record.begin_visit(visit);
        let result = action();
        record.end_visit();
        return result;
    }
    let result = action();
    socket::close(visit);
    result
}

/// Asks for a thread to be where the program wants it until what this returns is closed.
fn visit(served: &Served, thread: u32, creator: Option<u32>) -> Option<c_int> {
    provide(served);
    let (socket, answer) = ask(served, &Packet::Home { thread, creator })?;
    if Answer::read(answer.bytes()) == Some(Answer::Yes) {
        return Some(socket);
    }
    socket::close(socket);
    None
}

/// This thread is about to fork: it is where the program wants it until both have returned.
pub fn before_fork(served: &Served) {
    let record = state::own_record(served).filter(|it| serves() && !it.is_visiting());
    if let Some(record) = record {
        if let Some(visit) = visit(served, kernel::thread_id(), None) {
            record.begin_visit(visit);
        }
    }
}

/// After `fork`, in the parent.
pub fn after_fork_in_parent(served: &Served) {
    if let Some(record) = state::own_record(served) {
        record.end_visit();
    }
}

/// How the program has a thread of its scheduled; none where that is to be asked of the
/// kernel.
pub fn own(thread: u32) -> Option<Scheduling> {
    let served = state::served().filter(|_| serves())?;
    let (socket, answer) = ask(served, &Packet::Own { thread })?;
    socket::close(socket);
    match Answer::read(answer.bytes()) {
        Some(Answer::Own(own)) => Some(own),
        _ => None,
    }
}

fn ask(served: &Served, packet: &Packet) -> Option<(c_int, socket::Answered)> {
    let (socket, file) = SOCKET.get()?;
    let said = uncancelled(|| {
        kernel::unnoticed(|| {
            if socket::file_of(socket) != file {
                return Err(Sent::No);
            }
            socket::ask(socket, packet)
        })
    });
    match said {
        Ok(answer) => Some(answer),
        Err(error) => {
            if error == Sent::No {
                lose(served, socket, file);
            }
            None
        }
    }
}

/// It has gone, as a thread of the program has found out; the helper sees to the rest.
fn lose(served: &Served, socket: c_int, file: u64) {
    // A child of `vfork` has its creator's memory, and its own files.
    if !state::is_this_process() || !SOCKET.take(socket) {
        return;
    }
    if socket::file_of(socket) == file {
        socket::close(socket);
    }
    has_gone();
    if served.program.has_critical() {
        helper::wake();
    }
}

fn has_gone() {
    LOST_NS.store(kernel::boot_time_ns().max(1), Ordering::Release);
    state::watch_locks();
}

/// Makes sockets for the helper, and closes one that it could not close; in a thread of the
/// program's.
pub fn provide(served: &Served) {
    let is_lacking = || SPARES.iter().any(|it| !it.is_taken());
    let is_due = STALE.is_taken() || (helper::is_there() && is_lacking());
    if !is_due || IS_REFUSED.load(Ordering::Acquire) || !is_wanted(served) {
        return;
    }
    // A child of `vfork` has files of its own.
    if !state::is_this_process() {
        return;
    }
    kernel::unnoticed(|| {
        STALE.close();
        for spare in SPARES.iter().filter(|it| !it.is_taken()) {
            if let Some(new) = socket::new() {
                spare.put(new, socket::file_of(new));
            }
        }
    });
}

/// In the child of `fork`, which the mediator does not know.
pub fn after_fork(served: &Served) {
    if let Some(record) = state::own_record(served) {
        record.end_visit();
    }
    let was_served = serves();
    // They are the parent's as well.
    SOCKET.close();
    SPARES.iter().for_each(Place::close);
    STALE.close();
    LOST_NS.store(0, Ordering::Release);
    state::watch_locks();
    if was_served {
        register(served);
    }
}

/// Closes what a thread has asked for that has ended in the middle of it.
pub fn close(visit: c_int) {
    socket::close(visit);
}

/// The helper looks whether the mediator is there, and registers the process if it is back.
/// Returns how long it is until the next look.
pub fn attend(served: &Served, is_apart: bool) -> Option<u64> {
    let path = served.settings.socket?;
    if IS_REFUSED.load(Ordering::Acquire) || !served.may_rest() {
        return None;
    }
    let has_critical = served.program.has_critical();
    let period = match has_critical {
        true => PERIOD_NS,
        false => PERIOD_NS_LONG,
    };
    if let Some((number, file)) = SOCKET.get() {
        if with(number, file, is_apart, socket::is_answered) == Some(true) {
            return Some(period);
        }
        if SOCKET.take(number) {
            STALE.put(number, file);
            has_gone();
        }
    }
    if is_back(served, path.as_bytes(), is_apart) {
        LOST_NS.store(0, Ordering::Release);
        state::watch_locks();
    } else if has_critical && !is_awaited() {
        served.mediate_by_helper();
    }
    Some(period.min(PERIOD_NS))
}

/// Calls it, and registers the process.
fn is_back(served: &Served, path: &[u8], is_apart: bool) -> bool {
    let spares = SPARES.iter().filter_map(|it| Some((it, it.get()?)));
    for (spare, (number, file)) in spares {
        let enlisted = with(number, file, is_apart, |socket| {
            if !socket::call_up(socket, path) {
                return None;
            }
            // Nobody is moved by two.
            let may_come = served.rest();
            let is_served = may_come && enlist(served, socket);
            if !is_served {
                // SAFETY: a number only.
                unsafe { libc::shutdown(socket, libc::SHUT_RDWR) };
                if may_come {
                    served.go_on();
                }
            }
            Some(is_served)
        });
        match enlisted {
            // Nobody is there.
            Some(None) => return false,
            Some(Some(is_served)) => {
                let is_ours = spare.take(number);
                if is_served && is_ours {
                    SOCKET.put(number, file);
                    return true;
                }
                STALE.put(number, file);
                return false;
            }
            // The program has closed it.
            None => {
                spare.take(number);
            }
        }
    }
    false
}

/// Does something with a file of the program's, in the helper, which may have others; none
/// if the program has closed it.
fn with<T>(number: c_int, file: u64, is_apart: bool, action: impl FnOnce(c_int) -> T) -> Option<T> {
    let here = match is_apart {
        true => helper::borrow_file(number)?,
        false => number,
    };
    let result = (socket::file_of(here) == file).then(|| action(here));
    if is_apart {
        socket::close(here);
    }
    result
}
