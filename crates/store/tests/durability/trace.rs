//! A commit that is killed before and after each of its system calls, or beside
//! which others write because its lock file is gone.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use milieu_keys::{Key, Namespace};
use milieu_store::{Change, Store, StoreError, Strategy};
use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::child::{self, Child};
use super::{edited, folder, open, places, remove, set, skip, text};

/// The child: opens some files and commits changes, once it is told to.
pub fn child(arguments: &[&str]) {
    let (paths, changes) = arguments.split_at(arguments.iter().position(|&it| it == "--").unwrap());
    let changes: Vec<Change> = changes[1..].iter().copied().map(change).collect();
    let mut store = Store::read(places(paths)).unwrap();
    child::say(&nix::unistd::gettid().to_string());
    child::wait();
    store
        .commit(Namespace::User, &changes, Strategy::Refuse)
        .unwrap();
    child::say("confirmed");
}

/// `/a=1` sets a key, `/a` removes it.
fn change(text: &str) -> Change {
    match text.split_once('=') {
        Some((name, value)) => set(name, value),
        None => remove(text),
    }
}

/// A file and what a writer does to it.
struct File<'a> {
    /// What the writer has opened.
    path: &'a str,
    /// What is written, where that is another file.
    target: &'a str,
    before: Option<&'a str>,
    changes: &'a [&'a str],
}

/// What a writer was killed at.
struct Killed {
    /// The number of the system call.
    call: Option<libc::c_long>,
    is_confirmed: bool,
}

/// Kills a writer of these files at every place, each time from the start.
fn kill_everywhere(test: &str, files: &[File]) {
    let mut calls = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for stop in 1.. {
        let folder = prepare(test, files);
        let killed = match kill_at(&folder, files, stop) {
            Ok(killed) => killed,
            Err(error @ (Errno::EPERM | Errno::ENOSYS)) => {
                return skip(test, format!("tracing is not permitted here: {error}"));
            }
            Err(error) => panic!("{error}"),
        };
        let is_confirmed = killed.as_ref().is_none_or(|killed| killed.is_confirmed);
        let call = killed.as_ref().and_then(|killed| killed.call);
        calls.extend(call);
        let place = format!("stop {stop}, system call {call:?}");
        let mut written = 0;
        for (index, file) in files.iter().enumerate() {
            let found = text(&folder.join(file.target));
            let changes: Vec<Change> = file.changes.iter().copied().map(change).collect();
            if found == Some(edited(file.before, &changes)) {
                assert_eq!(written, index, "one after the other; {place}");
                written += 1;
            } else {
                assert_eq!(found.as_deref(), file.before, "{place}");
            }
            next_writer_gets_through(&folder, file, found.as_deref(), &place);
        }
        assert!(!is_confirmed || written == files.len(), "{place}");
        seen.insert((written, is_confirmed));
        if killed.is_none() {
            break;
        }
    }
    let mut all: Vec<_> = (0..=files.len()).map(|written| (written, false)).collect();
    all.push((files.len(), true));
    assert!(seen.iter().eq(&all), "before, between and after: {seen:?}");
    for call in [libc::SYS_flock, libc::SYS_write, libc::SYS_fsync] {
        assert!(calls.contains(&call), "not killed at {call}: {calls:?}");
    }
}

fn prepare(test: &str, files: &[File]) -> PathBuf {
    let folder = folder(test);
    for file in files {
        if let Some(text) = file.before {
            fs::create_dir_all(folder.join(file.target).parent().unwrap()).unwrap();
            fs::write(folder.join(file.target), text).unwrap();
        }
        if file.path != file.target {
            symlink(file.target, folder.join(file.path)).unwrap();
        }
    }
    folder
}

/// Starts a writer and stops it for the given time, which is before or after a
/// system call; no thread if it has ended by then.
fn stop_at(folder: &Path, files: &[File], stop: usize) -> nix::Result<(Child, Option<Pid>)> {
    let paths = files
        .iter()
        .map(|file| folder.join(file.path).into_os_string());
    let mut arguments: Vec<String> = paths.map(|path| path.into_string().unwrap()).collect();
    arguments.push("--".to_owned());
    let changes = files.iter().flat_map(|file| file.changes);
    arguments.extend(changes.map(|&change| change.to_owned()));
    let mut child = Child::start("commit", &arguments);
    let thread = Pid::from_raw(child.hear().expect("its thread").parse().unwrap());
    let options = ptrace::Options::PTRACE_O_TRACESYSGOOD | ptrace::Options::PTRACE_O_EXITKILL;
    ptrace::seize(thread, options)?;
    ptrace::interrupt(thread)?;
    wait_for(thread)?;
    child.tell();
    for _ in 0..stop {
        ptrace::syscall(thread, None)?;
        match wait_for(thread)? {
            WaitStatus::PtraceSyscall(_) => {}
            WaitStatus::Exited(..) => return Ok((child, None)),
            other => panic!("{other:?}"),
        }
    }
    Ok((child, Some(thread)))
}

/// Kills a writer where it stops for the given time; nothing if it has ended by
/// then.
fn kill_at(folder: &Path, files: &[File], stop: usize) -> nix::Result<Option<Killed>> {
    let (mut child, Some(thread)) = stop_at(folder, files, stop)? else {
        return Ok(None);
    };
    let call = call_of(&child, thread);
    child.kill();
    while !matches!(
        wait_for(thread),
        Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) | Err(Errno::ECHILD)
    ) {}
    Ok(Some(Killed {
        call,
        is_confirmed: child.rest().contains(&"confirmed".to_owned()),
    }))
}

/// The number of the system call that a thread has stopped at.
fn call_of(child: &Child, thread: Pid) -> Option<libc::c_long> {
    let state = fs::read_to_string(format!("/proc/{}/task/{thread}/syscall", child.id()));
    // The number comes first; after a call that has none any more, there are words instead.
    state.ok().and_then(|it| it.split(' ').next()?.parse().ok())
}

/// Waits for a thread, which need not be the first of its process.
fn wait_for(thread: Pid) -> nix::Result<WaitStatus> {
    waitpid(thread, Some(WaitPidFlag::__WALL))
}

/// Whatever was left behind, the next writer is not kept waiting and finds nothing half done.
fn next_writer_gets_through(folder: &Path, file: &File, found: Option<&str>, place: &str) {
    let changes = [set("/next/writer", "is here")];
    open(&folder.join(file.path))
        .with_patience(Duration::ZERO)
        .commit(Namespace::User, &changes, Strategy::Refuse)
        .unwrap_or_else(|error| panic!("{place}: {error}"));
    let target = folder.join(file.target);
    assert_eq!(text(&target), Some(edited(found, &changes)), "{place}");
    let temporary = beside(&target, ".new");
    assert!(!temporary.exists(), "{place}: {temporary:?} is left over");
}

/// Removes the lock file wherever the writer of a file may be, and writes beside
/// it. Whoever is told that it is done has written.
fn remove_the_lock_everywhere(test: &str, file: &File) {
    let mut kept_out = 0;
    for stop in 1.. {
        let folder = prepare(test, std::slice::from_ref(file));
        let (mut child, thread) = match stop_at(&folder, std::slice::from_ref(file), stop) {
            Ok(stopped) => stopped,
            Err(error @ (Errno::EPERM | Errno::ENOSYS)) => {
                return skip(test, format!("tracing is not permitted here: {error}"));
            }
            Err(error) => panic!("{error}"),
        };
        let Some(thread) = thread else {
            break;
        };
        let target = folder.join(file.target);
        let _ = fs::remove_file(beside(&target, ".lock"));
        let mut other = open(&folder.join(file.path)).with_patience(Duration::from_millis(2));
        let changes = [set("/other/writer", "is here")];
        let commit = |other: &mut Store| other.commit(Namespace::User, &changes, Strategy::Refuse);
        let committed = commit(&mut other);
        ptrace::detach(thread, None).unwrap();
        let said = child.rest();
        assert!(
            said.contains(&"confirmed".to_owned()),
            "stop {stop}: {said:?}"
        );
        match committed {
            Ok(_) => {}
            Err(StoreError::Locked { .. }) => {
                kept_out += 1;
                commit(&mut other).unwrap();
            }
            Err(error) => panic!("stop {stop}: {error}"),
        }
        let keys = open(&target).into_keys();
        let value = |name: &str| keys.get(Namespace::User, name).map(Key::value);
        assert_eq!(value("/other/writer"), Some("is here"), "stop {stop}");
        for change in file.changes.iter().copied().map(change) {
            let (name, wanted) = (change.name.as_str(), change.value.as_deref());
            assert_eq!(value(name), wanted, "stop {stop}");
        }
        assert!(!beside(&target, ".new").exists(), "stop {stop}");
    }
    assert!(
        kept_out > 5,
        "from the temporary file to its end: {kept_out}"
    );
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let name = path.file_name().unwrap().to_str().unwrap();
    path.with_file_name(format!(".{name}{ending}"))
}

#[test]
fn of_a_file_whose_lock_is_removed() {
    let before = Some("# mine\n[/a]\nx = 1\n");
    let file = plain("a.ini", before, &["/a/x=2", "/a/y=3"]);
    remove_the_lock_everywhere("trace-unlocked", &file);
}

#[test]
fn of_a_new_file_whose_lock_is_removed() {
    let file = plain("a.ini", None, &["/a/x=2"]);
    remove_the_lock_everywhere("trace-unlocked-new", &file);
}

#[test]
fn of_a_file_that_an_editor_saves_meanwhile() {
    let test = "trace-editor";
    let file = plain("a.ini", Some("# mine\n[/a]\nx = 1\n"), &["/a/y=2"]);
    let saved = "# mine\n[/a]\nx = 11\n";
    for replaces in [true, false] {
        for stop in 1.. {
            let folder = prepare(test, std::slice::from_ref(&file));
            let (mut child, thread) = match stop_at(&folder, std::slice::from_ref(&file), stop) {
                Ok((child, Some(thread))) => (child, thread),
                Ok((_, None)) => panic!("it never synchronized a file"),
                Err(error) => return skip(test, error),
            };
            if call_of(&child, thread) != Some(libc::SYS_fsync) {
                ptrace::detach(thread, None).unwrap();
                child.rest();
                continue;
            }
            let path = folder.join("a.ini");
            if replaces {
                fs::write(folder.join("b"), saved).unwrap();
                fs::rename(folder.join("b"), &path).unwrap();
            } else {
                fs::write(&path, saved).unwrap();
            }
            ptrace::detach(thread, None).unwrap();
            child.rest();
            assert_eq!(text(&path), Some(format!("{saved}y = 2\n")));
            break;
        }
    }
}

/// A file that is written where it is opened.
fn plain<'a>(path: &'a str, before: Option<&'a str>, changes: &'a [&'a str]) -> File<'a> {
    File {
        path,
        target: path,
        before,
        changes,
    }
}

#[test]
fn of_a_file() {
    let before = Some("# mine\n[/a]\nx = 1\n");
    let file = plain("a.ini", before, &["/a/x=2", "/a/y=3"]);
    kill_everywhere("trace-file", &[file]);
}

#[test]
fn of_a_new_file_in_new_folders() {
    let file = plain("config/app/a.ini", None, &["/a/x=1"]);
    kill_everywhere("trace-new", &[file]);
}

#[test]
fn of_a_file_behind_a_symbolic_link() {
    let file = File {
        path: "a.ini",
        target: "real/b.ini",
        before: Some("x = 1\n"),
        changes: &["/x=2"],
    };
    kill_everywhere("trace-link", &[file]);
}

#[test]
fn of_a_removal() {
    let file = plain("a.ini", Some("[/a]\nx = 1\ny = 2\n"), &["/a/x"]);
    kill_everywhere("trace-removal", &[file]);
}

#[test]
fn of_two_files() {
    let first = plain("a.ini", Some("x = 1\n"), &["/x=2"]);
    let second = plain("b.ini", Some("y = 1\n"), &["/y=2"]);
    kill_everywhere("trace-two", &[first, second]);
}
