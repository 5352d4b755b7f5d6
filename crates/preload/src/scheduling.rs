//! How threads are scheduled, as the program says and asks: what it says of a thread
//! that the mediator has put elsewhere takes effect when that returns, and is what it is
//! told meanwhile. `SCHED_TEK` is a policy as the others are.
//!
//! A failure is told as the function does it: by its result, or by `errno`.

use core::ffi::{c_int, c_uint};

use libc::{id_t, pid_t, pthread_t, sched_param};
use milieu_threads::attributes::{Attributes, Priority, SCHED_TEK};
use milieu_threads::kernel;
use milieu_threads::rung::scheduling::{self, is_realtime};
use milieu_threads::table::{Entry, Region, Scheduling};

use crate::attributes::{POLICY, answer, get, identity_of, set};
use crate::state::{self, Served};
use crate::{device, helper, nursery, real};

/// As POSIX has it. With `SCHED_TEK` the thread becomes time-critical, and its priority
/// is a nice value; with another policy it ceases to be.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setschedparam(
    thread: pthread_t,
    policy: c_int,
    param: *const sched_param,
) -> c_int {
    // SAFETY: the caller's.
    let Some(wanted) = (unsafe { param.as_ref() }) else {
        return libc::EINVAL;
    };
    if policy == POLICY {
        // SAFETY: only the header knows it.
        return unsafe { answer(param) };
    }
    if policy == SCHED_TEK {
        return match (get(thread), Priority::new(wanted.sched_priority)) {
            (Ok(attributes), Ok(priority)) => set(thread, &attributes.time_critical(priority)),
            (Err(error), _) => error,
            (_, Err(_)) => libc::EINVAL,
        };
    }
    if let Some(attributes) = said_critical(thread) {
        let error = set(thread, &attributes.not_critical());
        if error != 0 {
            return error;
        }
    }
    let identity = identity_of(thread);
    let change = |own: &Scheduling| with_policy(own, policy, wanted.sched_priority);
    let error = match elsewhere(identity) {
        Some((served, own)) => wish_of(served, identity, change(&own)),
        // SAFETY: the caller's.
        None => at_home(identity, || unsafe {
            real::pthread_setschedparam(thread, policy | stays(identity), param)
        }),
    };
    keeps(error == 0, identity, change);
    error
}

/// As POSIX has it, and `SCHED_TEK` for a time-critical thread.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_getschedparam(
    thread: pthread_t,
    policy: *mut c_int,
    param: *mut sched_param,
) -> c_int {
    // SAFETY: the caller's.
    let (Some(said), Some(into)) = (unsafe { policy.as_mut() }, unsafe { param.as_mut() }) else {
        return libc::EINVAL;
    };
    if let Some(attributes) = said_critical(thread) {
        *said = SCHED_TEK;
        into.sched_priority = attributes.priority().nice();
        return 0;
    }
    let identity = identity_of(thread);
    let own = match state::mediated() {
        Some(served) => served.program.own(identity).ok(),
        None => number_of(identity).and_then(device::own),
    };
    match own {
        // The C library remembers what it has been told, and not what was had on return.
        Some(own) => {
            *said = policy_of(&own);
            into.sched_priority = own.realtime_priority.into();
            0
        }
        // SAFETY: the caller's.
        _ => unsafe { real::pthread_getschedparam(thread, policy, param) },
    }
}

/// As POSIX has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setschedprio(thread: pthread_t, priority: c_int) -> c_int {
    if let Some(attributes) = said_critical(thread) {
        return match Priority::new(priority) {
            Ok(priority) => set(thread, &attributes.time_critical(priority)),
            Err(_) => libc::EINVAL,
        };
    }
    let identity = identity_of(thread);
    let change = |own: &Scheduling| with_policy(own, policy_of(own), priority);
    let error = match elsewhere(identity) {
        Some((served, own)) => wish_of(served, identity, change(&own)),
        // SAFETY: the caller's.
        None => at_home(identity, || unsafe {
            real::pthread_setschedprio(thread, priority)
        }),
    };
    keeps(error == 0, identity, change);
    error
}

/// As POSIX has it; of this thread, as in Linux.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nice(by: c_int) -> c_int {
    let identity = kernel::identity();
    let Some((served, _, own)) = elsewhere_by_number(0) else {
        // SAFETY: the caller's.
        let nice = at_home_by_number(0, || unsafe { real::nice(by) });
        // Of -1 nobody can tell whether it is one or an error.
        keeps(nice != -1, identity, with_nice(nice));
        return nice;
    };
    let nice = c_int::from(own.nice).saturating_add(by).clamp(-20, 19);
    match wish_of(served, identity, with_nice(nice)(&own)) {
        0 => {
            keeps(true, identity, with_nice(nice));
            nice
        }
        // As POSIX wants it of this function.
        libc::EACCES => fail(libc::EPERM),
        error => fail(error),
    }
}

/// As POSIX has it; of one thread, as in Linux, or of all those of groups of processes or of
/// a user.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setpriority(which: c_uint, who: id_t, nice: c_int) -> c_int {
    let is_thread = which == libc::PRIO_PROCESS as c_uint;
    let change = with_nice(nice.clamp(-20, 19));
    let found = is_thread.then(|| elsewhere_by_number(who));
    let said = match found.flatten() {
        Some((served, identity, own)) => result(wish_of(served, identity, change(&own))),
        None if is_thread => at_home_by_number(who, || {
            // SAFETY: the caller's.
            unsafe { real::setpriority(which, who, nice) }
        }),
        // SAFETY: the caller's.
        None => unsafe { real::setpriority(which, who, nice) },
    };
    if is_thread {
        keeps(said == 0, identity_by_number(who), change);
    } else if let Some(served) = told().filter(|_| said == 0 && is_of(which, who)) {
        for (_, entry) in served.program.table().lines().iter() {
            keeps(true, entry.identity, &change);
        }
        // The kernel has told those who are elsewhere, too.
        served.program.take_wishes();
    }
    said
}

/// Whether this process is one of that group, or of that user.
fn is_of(which: c_uint, who: id_t) -> bool {
    // SAFETY: these have no arguments, and cannot fail.
    let (group, user) = unsafe { (libc::getpgrp(), libc::getuid()) };
    match which as c_int {
        it if it == libc::PRIO_PGRP as c_int => who == 0 || who == group as id_t,
        _ => who == 0 || who == user,
    }
}

/// As POSIX has it; of one thread, as in Linux, or of all those of groups of processes or of
/// a user, of which the least nice value counts.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpriority(which: c_uint, who: id_t) -> c_int {
    // SAFETY: the caller's.
    let ask = || unsafe { real::getpriority(which, who) };
    if which == libc::PRIO_PROCESS as c_uint {
        return match own_by_number(who) {
            Some(own) if !is_realtime(own.policy) => own.nice.into(),
            _ => ask(),
        };
    }
    let is_several = which == libc::PRIO_PGRP as c_uint || which == libc::PRIO_USER as c_uint;
    match state::served().filter(|_| is_several && is_of(which, who)) {
        Some(served) => least(served, ask),
        None => ask(),
    }
}

/// The least nice value of several processes, of which this is one: what the kernel says is
/// the least, with this one's threads as the program wants them. Where one of these has the
/// least, the kernel does not say what others have; they count as no lower than the program's.
fn least(served: &Served, ask: impl Fn() -> c_int) -> c_int {
    // Somebody may be moved just then.
    let before = least_here(served);
    let said = ask();
    let after = least_here(served);
    if said < before.min(after) {
        return said;
    }
    let own = |(_, entry): (_, Entry)| match entry.region {
        Region::Own => device::own(entry.tid).or_else(|| scheduling::of(entry.tid).ok()),
        _ => Some(entry.own),
    };
    let own = served.program.table().lines().iter().filter_map(own);
    own.map(|it| it.nice.into()).min().unwrap_or(said)
}

/// The least nice value that threads of this process have, ours among them.
fn least_here(served: &Served) -> c_int {
    let threads = served.program.table().lines().iter().map(|(_, it)| it.tid);
    let all = threads.chain(helper::tid()).chain(nursery::tid());
    let nice = all.filter_map(|tid| Some(scheduling::of(tid).ok()?.nice.into()));
    nice.min().unwrap_or(c_int::MAX)
}

/// As POSIX has it; of one thread, as in Linux.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_setscheduler(
    thread: pid_t,
    policy: c_int,
    param: *const sched_param,
) -> c_int {
    // SAFETY: the caller's.
    let wanted = unsafe { param.as_ref() };
    let change = |own: &Scheduling| with_policy(own, policy, wanted?.sched_priority);
    let identity = identity_by_number(thread as id_t);
    let said = match (elsewhere_by_number(thread as id_t), wanted) {
        (Some((served, identity, own)), Some(_)) => result(wish_of(served, identity, change(&own))),
        // SAFETY: the caller's.
        _ => at_home_by_number(thread as id_t, || unsafe {
            real::sched_setscheduler(thread, policy | stays(identity), param)
        }),
    };
    keeps(said == 0, identity, change);
    said
}

/// As POSIX has it; of one thread, as in Linux.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_getscheduler(thread: pid_t) -> c_int {
    match own_by_number(thread as id_t) {
        Some(own) => policy_of(&own) | reset_of(&own),
        // SAFETY: the caller's.
        None => unsafe { real::sched_getscheduler(thread) },
    }
}

/// As POSIX has it; of one thread, as in Linux.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_setparam(thread: pid_t, param: *const sched_param) -> c_int {
    // SAFETY: the caller's.
    let wanted = unsafe { param.as_ref() };
    let change = |own: &Scheduling| {
        let policy = policy_of(own) | reset_of(own);
        with_policy(own, policy, wanted?.sched_priority)
    };
    let said = match (elsewhere_by_number(thread as id_t), wanted) {
        (Some((served, identity, own)), Some(_)) => result(wish_of(served, identity, change(&own))),
        // SAFETY: the caller's.
        _ => at_home_by_number(thread as id_t, || unsafe {
            real::sched_setparam(thread, param)
        }),
    };
    keeps(said == 0, identity_by_number(thread as id_t), change);
    said
}

/// As POSIX has it; of one thread, as in Linux.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sched_getparam(thread: pid_t, param: *mut sched_param) -> c_int {
    // SAFETY: the caller's.
    match (own_by_number(thread as id_t), unsafe { param.as_mut() }) {
        (Some(own), Some(param)) => {
            param.sched_priority = own.realtime_priority.into();
            0
        }
        // SAFETY: the caller's.
        _ => unsafe { real::sched_getparam(thread, param) },
    }
}

/// The attributes of a thread that the program has made critical. Of one that a pattern
/// has made so it knows nothing, and is told of its own policy.
fn said_critical(thread: pthread_t) -> Option<Attributes> {
    let critical = get(thread).ok().filter(Attributes::is_time_critical)?;
    state::is_said(state::served()?, identity_of(thread)).then_some(critical)
}

/// A thread that is not where the program wants it, and what that is.
fn elsewhere(identity: u64) -> Option<(&'static Served, Scheduling)> {
    let served = state::mediated()?;
    let entry = served.program.table().lines().entry(identity).ok()?;
    (entry.region != Region::Own).then_some((served, entry.own))
}

/// The same by the kernel's number; 0 is this thread.
fn elsewhere_by_number(number: id_t) -> Option<(&'static Served, u64, Scheduling)> {
    let served = state::mediated()?;
    let tid = match number {
        0 => kernel::thread_id(),
        number => number,
    };
    let (_, entry) = served.program.table().lines().by_thread_id(tid)?;
    (entry.region != Region::Own).then_some((served, entry.identity, entry.own))
}

/// What the program wants of a thread, where that may be elsewhere.
fn own_by_number(number: id_t) -> Option<Scheduling> {
    match elsewhere_by_number(number) {
        Some((_, _, own)) => Some(own),
        None => listed(number).and_then(device::own),
    }
}

/// The kernel's number of a thread that a mediator of the whole device may have put elsewhere.
fn number_of(identity: u64) -> Option<u32> {
    let served = state::served().filter(|_| device::serves())?;
    let entry = served.program.table().lines().entry(identity).ok()?;
    Some(entry.tid)
}

/// The same by that number, of which 0 is this thread's.
fn listed(number: id_t) -> Option<u32> {
    let served = state::served().filter(|_| device::serves())?;
    let tid = match number {
        0 => kernel::thread_id(),
        number => number,
    };
    served
        .program
        .table()
        .lines()
        .by_thread_id(tid)
        .map(|_| tid)
}

/// Does something with a thread while that is where the program wants it, wherever a mediator
/// of the whole device has it: what comes of it the kernel says.
fn at_home<T>(identity: u64, action: impl FnOnce() -> T) -> T {
    match number_of(identity) {
        Some(tid) => device::at_home(tid, action),
        None => action(),
    }
}

/// The same by the kernel's number; 0 is this thread.
fn at_home_by_number<T>(number: id_t, action: impl FnOnce() -> T) -> T {
    match listed(number) {
        Some(tid) => device::at_home(tid, action),
        None => action(),
    }
}

/// The thread of this number, 0 being this one, or 0.
fn identity_by_number(number: id_t) -> u64 {
    let Some(served) = state::mediated() else {
        return 0;
    };
    let tid = match number {
        0 => return kernel::identity(),
        number => number,
    };
    let found = served.program.table().lines().by_thread_id(tid);
    found.map_or(0, |(_, entry)| entry.identity)
}

/// The process, if it is mediated and this is no child with its memory, which has asked for
/// itself.
fn told() -> Option<&'static Served> {
    state::mediated().filter(|_| state::is_this_process())
}

/// The program was told that a thread of its is scheduled so. The mediator may have moved it
/// in that moment, with what it had before: then the program wants it once more.
fn keeps(was_told: bool, identity: u64, change: impl Fn(&Scheduling) -> Option<Scheduling>) {
    /// It is moved so often in a row by no mediator.
    const TIMES: u32 = 4;
    let Some(served) = told().filter(|_| was_told) else {
        return;
    };
    for _ in 0..TIMES {
        // This waits until nobody is moved.
        let Ok(own) = served.program.own(identity) else {
            return;
        };
        match change(&own) {
            Some(wish) if wish != own => {
                let _ = wish_of(served, identity, wish);
            }
            _ => return,
        }
    }
}

/// What a thread has of us and cannot lose: that its children do not inherit real time, which
/// only the privileged take back. Without it the kernel would refuse any policy from then on.
fn stays(identity: u64) -> c_int {
    let is_ours = state::mediated().is_some_and(|served| {
        let entry = served.program.table().lines().entry(identity);
        entry.is_ok_and(|it| {
            !it.own.is_reset_on_fork
                && !scheduling::has_privilege()
                && scheduling::of(it.tid).is_ok_and(|now| now.is_reset_on_fork)
        })
    });
    if is_ours { RESET_ON_FORK } else { 0 }
}

/// Another nice value, which the kernel knows.
fn with_nice(nice: c_int) -> impl Fn(&Scheduling) -> Option<Scheduling> {
    move |own| {
        Some(Scheduling {
            nice: nice as i8,
            ..*own
        })
    }
}

const RESET_ON_FORK: c_int = 0x4000_0000;

fn policy_of(own: &Scheduling) -> c_int {
    own.policy.into()
}

fn reset_of(own: &Scheduling) -> c_int {
    if own.is_reset_on_fork {
        RESET_ON_FORK
    } else {
        0
    }
}

/// What the program wants then; `None` if the kernel knows no such thing.
fn with_policy(own: &Scheduling, policy: c_int, priority: c_int) -> Option<Scheduling> {
    let is_reset_on_fork = policy & RESET_ON_FORK != 0;
    let policy = u8::try_from(policy & !RESET_ON_FORK).ok()?;
    let is_known = matches!(
        c_int::from(policy),
        libc::SCHED_OTHER
            | libc::SCHED_FIFO
            | libc::SCHED_RR
            | libc::SCHED_BATCH
            | libc::SCHED_IDLE
    );
    let priorities = if is_realtime(policy) { 1..=99 } else { 0..=0 };
    let wish = Scheduling {
        policy,
        realtime_priority: priority as u8,
        is_reset_on_fork,
        ..*own
    };
    (is_known && priorities.contains(&priority)).then_some(wish)
}

fn wish_of(served: &Served, identity: u64, wish: impl Into<Option<Scheduling>>) -> c_int {
    match wish.into().map(|it| served.program.wish(identity, it)) {
        Some(Ok(())) => 0,
        Some(Err(error)) => error.0,
        None => libc::EINVAL,
    }
}

fn result(error: c_int) -> c_int {
    if error == 0 { 0 } else { fail(error) }
}

fn fail(error: c_int) -> c_int {
    // SAFETY: the address is that of this thread's own.
    unsafe { *libc::__errno_location() = error };
    -1
}
