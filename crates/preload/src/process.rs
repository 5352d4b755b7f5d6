//! Processes: children, other programs, and the end.
//!
//! Children and other programs inherit how their creator is scheduled. A thread that the
//! mediator has put elsewhere therefore returns while it creates one, or becomes one.

#[cfg(has_naked_functions)]
mod listed;

use core::ffi::{c_char, c_int};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use libc::{pid_t, posix_spawn_file_actions_t, posix_spawnattr_t};
use milieu_threads::kernel;
use milieu_threads::rung::guard;
use milieu_threads::stack::{Entry, FileError, update};

use crate::real::{self, Strings};
use crate::state::{self, Served, WATCH};
use crate::variables::{Program, suiting};
use crate::{device, helper, record};

/// Whether the process had one thread when it forked.
static WAS_ALONE: AtomicBool = AtomicBool::new(false);

/// The child of a fork has what its thread has.
pub fn handle_forks() {
    // SAFETY: these are functions, which stay.
    unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
}

unsafe extern "C" fn before() {
    if let Some(served) = state::served() {
        device::before_fork(served);
        served.before_fork();
        WAS_ALONE.store(record::living() <= 1, Ordering::Relaxed);
    }
}

unsafe extern "C" fn after_in_parent() {
    if let Some(served) = state::served() {
        served.after_fork_in_parent();
        device::after_fork_in_parent(served);
    }
}

unsafe extern "C" fn after_in_child() {
    // The word that says whether it is served is cleared, until it is.
    state::after_fork_in_child(WAS_ALONE.load(Ordering::Relaxed));
}

/// Does something while this thread, and whatever it creates thereby, is where the
/// program wants it. Also in the child of `vfork`, which has its creator's memory.
pub fn at_home<T>(action: impl FnOnce() -> T) -> T {
    let Some(served) = state::mediated() else {
        return match device::serves() {
            true => device::at_home(kernel::thread_id(), action),
            false => action(),
        };
    };
    let identity = kernel::identity();
    let Ok(entry) = served.program.table().lines().entry(identity) else {
        return action();
    };
    let tid = kernel::thread_id();
    if entry.tid != tid {
        // It has inherited where its creator was, which may have been moved since.
        // What cannot be taken back stays.
        if let Ok(own) = served.program.own(identity) {
            let _ = served.program.bring(tid, &own);
        }
        return action();
    }
    served.program.set_away(identity, true);
    let result = action();
    served.program.set_away(identity, false);
    result
}

/// Begins another program, or becomes one, which has what the program gave its threads, and
/// variables that suit it.
///
/// # Safety
/// As for [`suiting`].
unsafe fn begin_program<T>(
    program: Program,
    variables: Strings,
    begin: impl FnOnce(Strings) -> T,
) -> T {
    // SAFETY: the caller's.
    unsafe { suiting(program, variables, |it| as_own(|| begin(it))) }
}

/// Begins a program, or becomes one, which has what the program gave its threads.
fn as_own<T>(begin: impl FnOnce() -> T) -> T {
    at_home(|| guard::begin_program(begin))
}

/// As POSIX has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(
    path: *const c_char,
    arguments: Strings,
    variables: Strings,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        begin_program(Program::At(path), variables, |it| {
            real::execve(path, arguments, it)
        })
    }
}

/// As POSIX has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        begin_program(Program::At(path), environ, |it| {
            real::execve(path, arguments, it)
        })
    }
}

/// As POSIX has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(path: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        begin_program(Program::Named(path), environ, |it| {
            real::execvpe(path, arguments, it)
        })
    }
}

/// As glibc has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(
    path: *const c_char,
    arguments: Strings,
    variables: Strings,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        begin_program(Program::Named(path), variables, |it| {
            real::execvpe(path, arguments, it)
        })
    }
}

/// As POSIX has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fexecve(file: c_int, arguments: Strings, variables: Strings) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        begin_program(Program::Opened(file), variables, |it| {
            real::fexecve(file, arguments, it)
        })
    }
}

unsafe extern "C" {
    pub static environ: Strings;
}

/// As POSIX has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    process: *mut pid_t,
    path: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attr: *const posix_spawnattr_t,
    arguments: Strings,
    variables: Strings,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        begin_program(Program::At(path), variables, |it| {
            real::posix_spawn(process, path, actions, attr, arguments, it)
        })
    }
}

/// As POSIX has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    process: *mut pid_t,
    path: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attr: *const posix_spawnattr_t,
    arguments: Strings,
    variables: Strings,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        begin_program(Program::Named(path), variables, |it| {
            real::posix_spawnp(process, path, actions, attr, arguments, it)
        })
    }
}

/// As C has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn system(command: *const c_char) -> c_int {
    // SAFETY: the caller's.
    as_own(|| unsafe { real::system(command) })
}

/// As POSIX has it.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn popen(command: *const c_char, mode: *const c_char) -> *mut libc::FILE {
    // SAFETY: the caller's.
    as_own(|| unsafe { real::popen(command, mode) })
}

/// The process exits: everything is as it was, and what was learned is kept.
pub extern "C" fn finish() {
    static IS_FINISHED: AtomicU32 = AtomicU32::new(0);
    if IS_FINISHED.swap(1, Ordering::AcqRel) != 0 {
        return;
    }
    let Some(served) = state::served() else {
        return;
    };
    served.stop();
    helper::end();
    if served.is_learning() {
        keep(served);
    }
}

/// Threads that were seen as often, in runs as well, are known: another run that has nothing
/// else to say of them is not added.
const ENOUGH: u32 = 16;

/// Adds what this run has seen to the profile.
fn keep(served: &Served) {
    // The list of what is loaded may be locked by a thread that is not here.
    let Some(path) = served.profile.filter(|_| state::is_loader_free()) else {
        return;
    };
    record::measure_all(served);
    let policy = &served.settings.stacks;
    let (runs, threads) = (policy.runs_min.max(ENOUGH), policy.threads_min);
    if !WATCH.live.has_news(runs, threads.max(ENOUGH.into())) {
        return WATCH.notes.remove(path);
    }
    let mut count = 0;
    let mut seen = [Entry::EMPTY; 64];
    let add = |entries: &[Entry]| {
        const PATIENCE_MILLISECONDS: u32 = 2000;
        let mut wrong = |_: milieu_threads::stack::LineError<'_>| ();
        let added = update(path, PATIENCE_MILLISECONDS, entries, &mut wrong);
        if added.is_err() {
            entries.iter().for_each(|it| WATCH.live.put_back(it));
        }
        added
    };
    let mut failure: Option<FileError> = None;
    WATCH.live.take(|entry| {
        if let Some(place) = seen.get_mut(count) {
            *place = entry;
            count += 1;
        }
        if count == seen.len() {
            failure = add(&seen).err().or(failure);
            count = 0;
        }
    });
    let rest = seen.get(..count).filter(|it| !it.is_empty());
    failure = rest.and_then(|it| add(it).err()).or(failure);
    if failure.is_none() {
        return WATCH.notes.remove(path);
    }
    // Where the program has given up the right to write it, as daemons do, notes remain.
    let is_noted = WATCH.notes.is_open() && WATCH.note_all();
    if let Some(error) = failure.filter(|_| !is_noted) {
        let path = served.settings.profile.unwrap_or("");
        served.say(format_args!(
            "{path}: what was learned is not kept: {error}"
        ));
    }
}
