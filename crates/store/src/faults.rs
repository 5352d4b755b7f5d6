//! Tests that let each system call of a commit fail, or be the last one.

use std::cell::Cell;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use milieu_keys::{Name, Namespace};
use rustix::io::Errno;

use crate::disk::{Disk, SystemDisk};
use crate::{Change, Place, Store, StoreError, Strategy};

/// What a disk does when its time has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// One call fails; what follows works.
    Full,
    /// Nothing happens any more, as if the process had been killed.
    Dead,
}

/// Works until its call number `last`, which it does not do, or does by half.
struct FaultyDisk {
    calls: Cell<usize>,
    last: usize,
    fault: Fault,
}

impl FaultyDisk {
    fn new(last: usize, fault: Fault) -> FaultyDisk {
        FaultyDisk {
            calls: Cell::new(0),
            last,
            fault,
        }
    }

    fn call(&self) -> io::Result<()> {
        self.calls.set(self.calls.get() + 1);
        match self.fault {
            Fault::Full if self.calls.get() == self.last => Err(Errno::NOSPC.into()),
            Fault::Dead if self.calls.get() >= self.last => Err(Errno::IO.into()),
            _ => Ok(()),
        }
    }
}

impl Disk for FaultyDisk {
    fn make_folder(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.call()
            .and_then(|()| SystemDisk.make_folder(path, mode))
    }

    fn create(&self, path: &Path, mode: u32) -> io::Result<File> {
        self.call().and_then(|()| SystemDisk.create(path, mode))
    }

    fn resemble(&self, file: &File, model: &Metadata) -> io::Result<()> {
        self.call().and_then(|()| SystemDisk.resemble(file, model))
    }

    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        let done = self.call();
        let written = if done.is_ok() {
            bytes
        } else {
            &bytes[..bytes.len() / 2]
        };
        SystemDisk.write(file, written).and(done)
    }

    fn synchronize(&self, file: &File) -> io::Result<()> {
        self.call().and_then(|()| SystemDisk.synchronize(file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call().and_then(|()| SystemDisk.rename(from, to))
    }

    fn synchronize_folder(&self, path: &Path) -> io::Result<()> {
        self.call()
            .and_then(|()| SystemDisk.synchronize_folder(path))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call().and_then(|()| SystemDisk.remove(path))
    }
}

const BEFORE: &str = "# mine\n[/a]\nx = 1\n";
const AFTER: &str = "# mine\n[/a]\nx = 1\ny = 2\n";

/// A folder of this test's own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("milieu-faults-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
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
    Store::read(vec![Place {
        namespace: Namespace::User,
        path: path.to_owned(),
    }])
    .unwrap()
}

fn change() -> [Change; 1] {
    [Change::set(Name::parse("/a/y").unwrap(), "2")]
}

/// Commits with a fault at each call in turn, until there is no such call any
/// more, and returns how many calls a commit makes.
fn at_each_call(
    name: &str,
    fault: Fault,
    check: impl Fn(&Folder, &Path, StoreError, bool),
) -> usize {
    for last in 1.. {
        let folder = Folder::new(&format!("{name}-{last}"));
        let path = folder.0.join("a.ini");
        fs::write(&path, BEFORE).unwrap();
        // Left over from a writer that was killed: to be removed first.
        fs::write(folder.0.join(".a.ini.new"), "half").unwrap();
        let mut store = open(&path);
        let result = store.commit_on(
            &FaultyDisk::new(last, fault),
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
    let calls = at_each_call("full", Fault::Full, |folder, path, error, _| {
        let files = folder.files(&folder.0);
        let stale = matches!(&error, StoreError::Io { action, .. } if action.starts_with("remove"));
        assert_eq!(
            files.contains(&".a.ini.new".to_owned()),
            stale,
            "{error}: {files:?}"
        );
        let text = error.to_string();
        assert!(text.contains("no space left on device"), "{text}");
        assert!(
            text.contains(&path.parent().unwrap().display().to_string()),
            "{text}"
        );
    });
    assert_eq!(
        calls, 7,
        "remove, create, resemble, write, synchronize, rename, synchronize the folder"
    );
}

#[test]
fn a_writer_that_dies_at_any_call_leaves_no_half_file() {
    at_each_call("dead", Fault::Dead, |folder, _, _, _| {
        let files = folder.files(&folder.0);
        assert!(files.len() <= 3, "one temporary file at most: {files:?}");
    });
}

#[test]
fn a_new_file_in_a_new_folder_is_there_whole_or_not_at_all() {
    for fault in [Fault::Full, Fault::Dead] {
        for last in 1..20 {
            let folder = Folder::new(&format!("new-{last}"));
            let path = folder.0.join("config/app/app.ini");
            let mut store = open(&path);
            let disk = FaultyDisk::new(last, fault);
            match store.commit_on(&disk, Namespace::User, &change(), Strategy::Refuse) {
                Ok(_) => {
                    assert_eq!(fs::read_to_string(&path).unwrap(), "[/a]\ny = 2\n");
                    assert_eq!(last, 11, "{} calls", last - 1);
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
