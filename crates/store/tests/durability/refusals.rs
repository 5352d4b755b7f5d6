//! What is refused: the old text stays, nothing is left over, and the error says what to do.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use milieu_keys::Namespace;
use milieu_store::{Change, Store, StoreError, Strategy};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;
use rustix::fs::{CWD, FileType, Mode, mkfifoat, mknodat};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::child::{Child, alone};
use super::{folder, is_root, names, open, set, shown, skip, text};

const BEFORE: &str = "# mine\n[/a]\nx = 1\n";

/// A long value, so that the text does not fit into what is left.
fn change() -> [Change; 1] {
    [set("/a/y", "long ".repeat(2000))]
}

/// Commits, and returns what the error says.
fn refused(store: &mut Store, folder: &Path) -> String {
    let result = store.commit(Namespace::User, &change(), Strategy::Refuse);
    shown(&result.expect_err("it is refused"), folder)
}

fn prepared(test: &str) -> (PathBuf, PathBuf) {
    let folder = folder(test);
    let path = folder.join("a.ini");
    fs::write(&path, BEFORE).unwrap();
    (folder, path)
}

/// A file system in memory, over the folder, that only this process sees.
fn mounted(folder: &Path, options: &str) -> bool {
    let private = || {
        unshare(CloneFlags::CLONE_NEWNS)?;
        let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, flags, None::<&str>)?;
        mount(
            Some("tmpfs"),
            folder,
            Some("tmpfs"),
            MsFlags::empty(),
            Some(options),
        )
    };
    match private() {
        Ok(()) => true,
        Err(error) => {
            skip("file systems", format!("none can be mounted here: {error}"));
            false
        }
    }
}

/// Runs the body alone, which has to succeed.
fn alone_well(test: &str, body: impl FnOnce()) {
    if let Some(output) = alone(test, body) {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("1 passed"), "{said}{errors}");
    }
}

#[test]
fn a_full_disk() {
    if !is_root("a_full_disk") {
        return;
    }
    alone_well("refusals::a_full_disk", || {
        let folder = folder("refusals-full");
        if !mounted(&folder, "size=64k") {
            return;
        }
        let path = folder.join("a.ini");
        fs::write(&path, BEFORE).unwrap();
        let mut store = open(&path);
        let mut filler = fs::File::create(folder.join("filler")).unwrap();
        while filler.write_all(&[0; 512]).is_ok() {}
        assert_eq!(
            refused(&mut store, &folder),
            "error: cannot write the temporary file: no space left on device\n \
             --> FOLDER/.a.ini.new\n  \
             = help: make room on the file system of FOLDER and try again"
        );
        assert_eq!(text(&path).unwrap(), BEFORE);
        assert_eq!(names(&folder), [".a.ini.lock", "a.ini", "filler"]);
        drop(filler);
        fs::remove_file(folder.join("filler")).unwrap();
        store
            .commit(Namespace::User, &change(), Strategy::Refuse)
            .unwrap();
    });
}

#[test]
fn a_disk_without_room_for_another_file() {
    if !is_root("a_disk_without_room_for_another_file") {
        return;
    }
    alone_well("refusals::a_disk_without_room_for_another_file", || {
        let folder = folder("refusals-inodes");
        if !mounted(&folder, "nr_inodes=3") {
            return;
        }
        let path = folder.join("a.ini");
        fs::write(&path, BEFORE).unwrap();
        fs::write(folder.join("filler"), "").unwrap();
        assert_eq!(
            refused(&mut open(&path), &folder),
            "error: cannot lock the file: no space left on device\n \
             --> FOLDER/.a.ini.lock\n  \
             = help: make room on the file system of FOLDER and try again"
        );
        assert_eq!(text(&path).unwrap(), BEFORE);
        assert_eq!(names(&folder), ["a.ini", "filler"]);
    });
}

#[test]
fn a_read_only_disk() {
    if !is_root("a_read_only_disk") {
        return;
    }
    alone_well("refusals::a_read_only_disk", || {
        let folder = folder("refusals-read-only");
        if !mounted(&folder, "") {
            return;
        }
        let path = folder.join("a.ini");
        fs::write(&path, BEFORE).unwrap();
        let read_only = MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
        mount(None::<&str>, &folder, None::<&str>, read_only, None::<&str>).unwrap();
        assert_eq!(
            refused(&mut open(&path), &folder),
            "error: cannot lock the file: read-only file system\n \
             --> FOLDER/.a.ini.lock\n  \
             = help: the file system of FOLDER is read-only; remount it, or choose another file"
        );
        assert_eq!(text(&path).unwrap(), BEFORE);
        assert_eq!(names(&folder), ["a.ini"]);
    });
}

#[test]
fn a_file_that_is_a_mount_point() {
    if !is_root("a_file_that_is_a_mount_point") {
        return;
    }
    alone_well("refusals::a_file_that_is_a_mount_point", || {
        let folder = folder("refusals-mount-point");
        if !mounted(&folder, "") {
            return;
        }
        let path = folder.join("a.ini");
        fs::write(&path, BEFORE).unwrap();
        mount(
            Some(&path),
            &path,
            None::<&str>,
            MsFlags::MS_BIND,
            None::<&str>,
        )
        .unwrap();
        assert_eq!(
            refused(&mut open(&path), &folder),
            "error: cannot replace the file: device or resource busy\n \
             --> FOLDER/a.ini\n  \
             = help: the file is a mount point of its own and cannot be replaced; \
             mount its folder instead"
        );
        assert_eq!(text(&path).unwrap(), BEFORE);
        assert_eq!(names(&folder), [".a.ini.lock", "a.ini"]);
    });
}

#[test]
fn a_limit_on_the_size_of_files() {
    alone_well("refusals::a_limit_on_the_size_of_files", || {
        let (folder, path) = prepared("refusals-size");
        limit(Resource::Fsize, 100);
        // The signal that comes with it would end this process.
        SigSet::from(Signal::SIGXFSZ).thread_block().unwrap();
        assert_eq!(
            refused(&mut open(&path), &folder),
            "error: cannot write the temporary file: file too large\n \
             --> FOLDER/.a.ini.new\n  \
             = help: the file would be larger than this process may write; see `ulimit -f`"
        );
        assert_eq!(text(&path).unwrap(), BEFORE);
        assert_eq!(names(&folder), [".a.ini.lock", "a.ini"]);
    });
}

#[test]
fn a_limit_on_the_size_of_files_that_ends_the_process() {
    let test = "refusals::a_limit_on_the_size_of_files_that_ends_the_process";
    let output = alone(test, || {
        let (_, path) = prepared("refusals-signal");
        limit(Resource::Fsize, 100);
        let _ = open(&path).commit(Namespace::User, &change(), Strategy::Refuse);
        unreachable!("the signal has ended this process");
    });
    // The child has not come so far.
    let Some(output) = output else { return };
    assert_eq!(
        output.status.signal(),
        Some(Signal::SIGXFSZ as i32),
        "{output:?}"
    );
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("durability/refusals-signal");
    let path = folder.join("a.ini");
    assert_eq!(text(&path).unwrap(), BEFORE);
    assert!(folder.join(".a.ini.new").exists());
    open(&path)
        .commit(Namespace::User, &change(), Strategy::Refuse)
        .unwrap();
    assert_eq!(names(&folder), [".a.ini.lock", "a.ini"]);
}

#[test]
fn a_limit_on_open_files() {
    alone_well("refusals::a_limit_on_open_files", || {
        let (folder, path) = prepared("refusals-open");
        let mut store = open(&path);
        limit(Resource::Nofile, 32);
        let mut open_files = Vec::new();
        while let Ok(file) = fs::File::open("/dev/null") {
            open_files.push(file);
        }
        let mut said = Vec::new();
        // With each file that is closed the commit comes a little further.
        while let Err(error) = store.commit(Namespace::User, &change(), Strategy::Refuse) {
            said.push(shown(&error, &folder));
            open_files.pop();
        }
        assert_eq!(
            said.first().map(String::as_str),
            Some(
                "error: cannot lock the file: too many open files\n \
                 --> FOLDER/.a.ini.lock\n  \
                 = help: close files that are not needed, or allow more; see `ulimit -n`"
            )
        );
        assert!(
            said[1].starts_with("error: cannot read the file: too many open files"),
            "{said:?}"
        );
        assert_eq!(names(&folder), [".a.ini.lock", "a.ini"]);
    });
}

fn limit(resource: Resource, limit: u64) {
    let limit = Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    };
    setrlimit(resource, limit).unwrap();
}

#[test]
fn something_else_where_the_file_was() {
    let (folder, path) = prepared("refusals-else");
    let mut store = open(&path);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(
        refused(&mut store, &folder),
        "error: cannot read the file: is a directory\n \
         --> FOLDER/a.ini\n  \
         = help: a folder stands where the file should be; remove or rename it"
    );
    fs::remove_dir(&path).unwrap();

    let mode = Mode::from_raw_mode(0o600);
    mkfifoat(CWD, &path, mode).unwrap();
    let not_ordinary = "error: cannot read the file: it is not an ordinary file\n \
         --> FOLDER/a.ini\n  \
         = help: something else stands where the file should be; remove or rename it";
    assert_eq!(refused(&mut store, &folder), not_ordinary);
    fs::remove_file(&path).unwrap();

    let socket = UnixListener::bind(&path);
    // The path of a socket has to be short.
    if socket.is_ok() {
        assert_eq!(
            refused(&mut store, &folder),
            "error: cannot read the file: no such device or address\n \
             --> FOLDER/a.ini\n  \
             = help: something else stands where the file should be; remove or rename it"
        );
        fs::remove_file(&path).unwrap();
    }

    if nix::unistd::geteuid().is_root() {
        let null = rustix::fs::makedev(1, 3);
        mknodat(CWD, &path, FileType::CharacterDevice, mode, null).unwrap();
        assert_eq!(refused(&mut store, &folder), not_ordinary);
        fs::remove_file(&path).unwrap();
    }
    assert_eq!(names(&folder), [".a.ini.lock"]);

    fs::create_dir(folder.join(".a.ini.new")).unwrap();
    assert_eq!(
        refused(&mut store, &folder),
        "error: cannot remove the old temporary file: is a directory\n \
         --> FOLDER/.a.ini.new\n  \
         = help: a folder stands where the file should be; remove or rename it"
    );
}

#[test]
fn names_that_are_too_long() {
    let folder = folder("refusals-long");
    // With what is put before and behind it, the name of the lock is one letter too long.
    let path = folder.join(format!("{}.ini", "n".repeat(246)));
    let name = path.file_name().unwrap().to_str().unwrap();
    assert_eq!(name.len() + ".".len() + ".lock".len(), 256);
    let text = refused(&mut open(&path), &folder).replace(name, "NAME");
    assert_eq!(
        text,
        "error: cannot lock the file: file name too long\n \
         --> FOLDER/.NAME.lock\n  \
         = help: choose a shorter name"
    );
    let shorter = folder.join(&name[1..]);
    open(&shorter)
        .commit(Namespace::User, &change(), Strategy::Refuse)
        .unwrap();
    assert_eq!(names(&folder).len(), 2);

    let deep = folder.join("folder/".repeat(700)).join("a.ini");
    let error = Store::read(super::places([deep])).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("cannot read the file: file name too long"),
        "{text}"
    );
    assert!(text.contains("choose a shorter name"), "{text}");
}

#[test]
fn another_process_that_holds_the_lock() {
    let folder = folder("refusals-locked");
    let path = folder.join("a.ini");
    let mut writer = Child::start("count", &[path.to_str().unwrap(), "/counter"]);
    let id = Pid::from_raw(i32::try_from(writer.id()).unwrap());
    let attempt = |patience_ms| {
        open(&path)
            .with_patience(Duration::from_millis(patience_ms))
            .commit(Namespace::User, &change(), Strategy::Ours)
    };
    // Until it is stopped where it holds the lock and has said so.
    loop {
        writer.hear().unwrap();
        kill(id, Signal::SIGSTOP).unwrap();
        match attempt(20) {
            Err(StoreError::Locked {
                holder: Some(_), ..
            }) => break,
            _ => kill(id, Signal::SIGCONT).unwrap(),
        }
    }
    let text = shown(&attempt(1000).unwrap_err(), &folder);
    assert_eq!(
        text.replace(&id.to_string(), "ID"),
        "error: process ID has kept the file locked for 1 s\n \
         --> FOLDER/.a.ini.lock\n  \
         = help: try again, or end that process; the lock goes with it"
    );
    // It holds the lock however it ends, and no longer.
    writer.end();
    attempt(0).unwrap();
}
