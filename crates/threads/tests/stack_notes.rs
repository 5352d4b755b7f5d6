//! Notes of processes that were ended, and who adds them to the profile.
#![cfg(not(miri))]

use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use milieu_threads::stack::{Errno, Notes, settle};

const HEAD: &str = "milieu stacks 1\n# notes of a process that began at ";

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("notes")
        .join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn c(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

/// A process that waits until its input ends.
fn waiting() -> Child {
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    command.spawn().unwrap()
}

fn ended() -> u32 {
    let mut child = waiting();
    let number = child.id();
    drop(child.stdin.take());
    child.wait().unwrap();
    number
}

/// When a process has begun.
fn began(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, rest) = text.rsplit_once(')').unwrap();
    rest.split_whitespace().nth(19).unwrap().parse().unwrap()
}

fn note(profile: &Path, process: u32, text: impl AsRef<[u8]>) -> PathBuf {
    let path = PathBuf::from(format!("{}.{process}.notes", profile.display()));
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn notes_of_processes_that_have_ended_are_added_once() {
    let profile = folder("ended").join("p");
    fs::write(
        &profile,
        "milieu stacks 1\nthread ab+1 runs=2 threads=4 peak=9000 given=65536\n",
    )
    .unwrap();
    let mut paths = Vec::new();
    for _ in 0..2 {
        let text = format!(
            "{HEAD}77; they are added\nmodule ab /usr/bin/a%20b\n\
             thread ab+1 runs=1 threads=3 peak=12000 given=65536      \n"
        );
        paths.push(note(&profile, ended(), text));
    }
    // A number of a process that has another one's, by now.
    let mut child = waiting();
    let text = format!(
        "{HEAD}{}; \nthread ab+2 runs=1 threads=1 peak=1 given=2\n",
        began(child.id()) + 1
    );
    paths.push(note(&profile, child.id(), text));
    // This process had it before it was this program.
    let text = format!(
        "{HEAD}{}; \nthread ab+3 runs=1 threads=1 peak=1 given=2\n",
        began(std::process::id())
    );
    paths.push(note(&profile, std::process::id(), text));
    for _ in 0..2 {
        settle(&c(&profile), 60_000).unwrap();
        assert_eq!(
            fs::read_to_string(&profile).unwrap(),
            "milieu stacks 1\nmodule ab /usr/bin/a%20b\n\
             thread ab+1 runs=4 threads=10 peak=12000 given=65536\n\
             thread ab+2 runs=1 threads=1 peak=1 given=2\n\
             thread ab+3 runs=1 threads=1 peak=1 given=2\n"
        );
        assert!(paths.iter().all(|it| !it.exists()));
    }
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn what_was_not_written_to_its_end_does_not_count() {
    let profile = folder("cut").join("p");
    let mut text = format!("{HEAD}77; they\n").into_bytes();
    text.extend([0; 600]);
    text.extend(b"\nthread ab+1 runs=1 threads=3 peak=12000 given=65536\nthread ab+2 ru\0\0\0");
    note(&profile, ended(), text);
    // These had no time to write anything.
    note(&profile, ended(), b"");
    note(&profile, ended(), [0; 4096]);
    settle(&c(&profile), 60_000).unwrap();
    assert_eq!(
        fs::read_to_string(&profile).unwrap(),
        "milieu stacks 1\nthread ab+1 runs=1 threads=3 peak=12000 given=65536\n"
    );
    let names: Vec<_> = fs::read_dir(profile.parent().unwrap())
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .filter(|it| it != "p.lock")
        .collect();
    assert_eq!(names, ["p"]);
}

#[test]
fn files_of_others_stay() {
    let folder = folder("others");
    let profile = folder.join("p");
    let mut child = waiting();
    let line = "thread ab+1 runs=1 threads=3 peak=12000 given=65536\n";
    let dead = ended();
    let mut stay = vec![
        // It goes on.
        note(
            &profile,
            child.id(),
            format!("{HEAD}{};\n{line}", began(child.id())),
        ),
        // No notes, and those of another profile.
        note(&profile, dead, "something else\n"),
        note(&folder.join("q"), dead, format!("{HEAD}77;\n{line}")),
        note(&folder.join("p.x"), dead, format!("{HEAD}77;\n{line}")),
    ];
    for name in [
        "p.notes",
        "p..notes",
        "p.07.notes",
        "p.-7.notes",
        "p.7.notes.old",
    ] {
        stay.push(folder.join(name));
        fs::write(folder.join(name), format!("{HEAD}77;\n{line}")).unwrap();
    }
    let link = PathBuf::from(format!("{}.{}.notes", profile.display(), ended()));
    std::os::unix::fs::symlink(folder.join("p.notes"), &link).unwrap();
    stay.push(link);
    settle(&c(&profile), 60_000).unwrap();
    assert!(!profile.exists());
    assert!(stay.iter().all(|it| it.exists()));
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn a_process_has_one_file_and_removes_it() {
    let profile = folder("own").join("p");
    let path = PathBuf::from(format!(
        "{}.{}.notes",
        profile.display(),
        std::process::id()
    ));
    let notes = Notes::new();
    match notes.open(&c(&profile)) {
        Err(Errno(libc::ENOSYS | libc::EPERM)) => {
            eprintln!("skipped, this machine does not let processes write their own memory");
            return;
        }
        opened => opened.unwrap(),
    }
    assert!(notes.is_open());
    let text = fs::read(&path).unwrap();
    let head = format!("{HEAD}{};", began(std::process::id()));
    assert!(text.starts_with(head.as_bytes()));
    // Somebody has it.
    assert!(Notes::new().open(&c(&profile)).is_err());
    assert!(path.exists());
    notes.remove(&c(&profile));
    assert!(!path.exists());
    let nowhere = Notes::new();
    assert!(nowhere.open(c"/nowhere/at/all").is_err());
    assert!(!nowhere.is_open());
}
