//! Tests that let each system call of a commit fail, or be the last one.

mod model;
mod mutant;
mod power;
mod recorder;

use std::cell::Cell;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use milieu_keys::{Name, Namespace};
use rustix::io::Errno;

use crate::disk::{Disk, SystemDisk};
use crate::{Change, Place, Store, StoreError, Strategy};

/// What a disk does when its time has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// One call fails in this way; what follows works.
    Fails(Errno),
    /// Nothing happens any more, as if the process had been killed.
    Dead,
}

/// Works until its call number `last`, which it does not do, or does by half.
struct FaultyDisk<'a> {
    inner: &'a dyn Disk,
    calls: Cell<usize>,
    last: usize,
    fault: Fault,
}

impl<'a> FaultyDisk<'a> {
    fn new(inner: &'a dyn Disk, last: usize, fault: Fault) -> FaultyDisk<'a> {
        FaultyDisk {
            inner,
            calls: Cell::new(0),
            last,
            fault,
        }
    }

    fn call(&self) -> io::Result<()> {
        self.calls.set(self.calls.get() + 1);
        match self.fault {
            Fault::Fails(error) if self.calls.get() == self.last => Err(error.into()),
            Fault::Dead if self.calls.get() >= self.last => Err(Errno::IO.into()),
            _ => Ok(()),
        }
    }
}

impl Disk for FaultyDisk<'_> {
    fn lock(&self, file: &File) -> io::Result<()> {
        self.call().and_then(|()| self.inner.lock(file))
    }

    fn make_folder(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.call()
            .and_then(|()| self.inner.make_folder(path, mode))
    }

    fn create(&self, path: &Path, mode: u32) -> io::Result<File> {
        self.call().and_then(|()| self.inner.create(path, mode))
    }

    fn resemble(&self, file: &File, path: &Path, model: &Metadata) -> io::Result<()> {
        self.call()
            .and_then(|()| self.inner.resemble(file, path, model))
    }

    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        let done = self.call();
        let written = if done.is_ok() {
            bytes
        } else {
            &bytes[..bytes.len() / 2]
        };
        self.inner.write(file, written).and(done)
    }

    fn synchronize(&self, file: &File) -> io::Result<()> {
        self.call().and_then(|()| self.inner.synchronize(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call().and_then(|()| self.inner.rename(from, to))
    }

    fn synchronize_folder(&self, path: &Path) -> io::Result<()> {
        self.call()
            .and_then(|()| self.inner.synchronize_folder(path))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call().and_then(|()| self.inner.remove(path))
    }
}

const BEFORE: &str = "# mine\n[/a]\nx = 1\n";
const AFTER: &str = "# mine\n[/a]\nx = 1\ny = 2\n";

/// A folder of this test's own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let folder = Folder::reserved();
        fs::create_dir(&folder.0).unwrap();
        folder
    }

    /// A place for one, where nothing is yet.
    fn reserved() -> Folder {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("milieu-faults-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }

    fn files(&self, folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = entries.collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn open(path: &Path) -> Store {
    Store::read(vec![Place::new(Namespace::User, path.to_owned())]).unwrap()
}

fn change() -> [Change; 1] {
    [Change::set(Name::parse("/a/y").unwrap(), "2")]
}

/// Commits with a fault at each call in turn, until there is no such call any
/// more, and returns how many calls a commit makes.
fn at_each_call(fault: Fault, check: impl Fn(&Folder, &Path, StoreError, bool)) -> usize {
    for last in 1.. {
        let folder = Folder::new();
        let path = folder.0.join("a.ini");
        fs::write(&path, BEFORE).unwrap();
        // Left over from a writer that was killed: to be removed first.
        fs::write(folder.0.join(".a.ini.new"), "half").unwrap();
        let mut store = open(&path);
        let result = store.commit_on(
            &FaultyDisk::new(&SystemDisk, last, fault),
            Namespace::User,
            &change(),
            Strategy::Refuse,
        );
        let text = fs::read_to_string(&path).unwrap();
        let Err(error) = result else {
            assert_eq!(text, AFTER);
            assert_eq!(folder.files(&folder.0), [".a.ini.lock", "a.ini"]);
            return last - 1;
        };
        let settled = !matches!(error, StoreError::Unsettled { .. });
        assert_eq!(
            text,
            if settled { BEFORE } else { AFTER },
            "call {last}: {error}"
        );
        let known = store
            .keys()
            .get(Namespace::User, "/a/y")
            .map(|key| key.value());
        assert_eq!(
            known,
            if settled { None } else { Some("2") },
            "the store knows what is in force"
        );
        check(&folder, &path, error, settled);
        // The next one gets through, whatever was left behind.
        let committed = store
            .commit(Namespace::User, &change(), Strategy::Refuse)
            .unwrap();
        assert_eq!(committed.replaced.len(), usize::from(settled));
        assert_eq!(fs::read_to_string(&path).unwrap(), AFTER);
        if settled {
            assert_eq!(folder.files(&folder.0), [".a.ini.lock", "a.ini"]);
        }
    }
    unreachable!("a commit ends")
}

#[test]
fn a_call_that_fails_leaves_the_old_state_and_nothing_else() {
    let calls = at_each_call(Fault::Fails(Errno::NOSPC), |folder, path, error, _| {
        let files = folder.files(&folder.0);
        if files.contains(&".a.ini.new".to_owned()) {
            // The one that was left over before, if it came to nothing so early.
            let left = fs::read_to_string(folder.0.join(".a.ini.new")).unwrap();
            assert_eq!(left, "half", "{error}: {files:?}");
        }
        let text = error.to_string();
        assert!(text.contains("no space left on device"), "{text}");
        assert!(
            text.contains(&path.parent().unwrap().display().to_string()),
            "{text}"
        );
    });
    assert_eq!(
        calls, 10,
        "lock, create, remove, create, lock, resemble, write, synchronize, rename, synchronize the folder"
    );
}

#[test]
fn a_writer_that_dies_at_any_call_leaves_no_half_file() {
    at_each_call(Fault::Dead, |folder, _, _, _| {
        let files = folder.files(&folder.0);
        assert!(files.len() <= 3, "one temporary file at most: {files:?}");
    });
}

#[test]
fn a_new_file_in_a_new_folder_is_there_whole_or_not_at_all() {
    for fault in [Fault::Fails(Errno::NOSPC), Fault::Dead] {
        for last in 1.. {
            let folder = Folder::new();
            let path = folder.0.join("config/app/app.ini");
            let mut store = open(&path);
            let disk = FaultyDisk::new(&SystemDisk, last, fault);
            match store.commit_on(&disk, Namespace::User, &change(), Strategy::Refuse) {
                Ok(_) => {
                    assert_eq!(fs::read_to_string(&path).unwrap(), "[/a]\ny = 2\n");
                    // Two folders, the lock, all folders made sure of, and what replaces a file.
                    let above = path.ancestors().count() - 2;
                    assert_eq!(last - 1, 2 + 1 + above + 6);
                    break;
                }
                Err(StoreError::Unsettled { .. }) => {
                    assert_eq!(fs::read_to_string(&path).unwrap(), "[/a]\ny = 2\n")
                }
                Err(error) => assert!(!path.exists(), "call {last}: {error}"),
            }
        }
    }
}

#[test]
fn a_file_system_without_locks_is_named_and_nothing_is_written() {
    for error in [Errno::NOLCK, Errno::OPNOTSUPP, Errno::NOSYS] {
        let folder = Folder::new();
        let path = folder.0.join("a.ini");
        fs::write(&path, BEFORE).unwrap();
        let disk = FaultyDisk::new(&SystemDisk, 1, Fault::Fails(error));
        let error = open(&path)
            .commit_on(&disk, Namespace::User, &change(), Strategy::Refuse)
            .unwrap_err()
            .to_string();
        assert!(error.contains("cannot lock the file: "), "{error}");
        let remedy = format!(
            "the file system of {} has no locks; keep the file on one that has them",
            folder.0.display()
        );
        assert!(error.contains(&remedy), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), BEFORE);
    }
}
