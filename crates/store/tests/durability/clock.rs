//! Neither a commit nor a lock depends on any clock.

use std::fs::{self, File};
use std::time::{Duration, UNIX_EPOCH};

use milieu_keys::Namespace;
use milieu_store::Strategy;

use super::{edited, folder, open, set, text};

#[test]
fn times_of_files_do_not_matter() {
    let folder = folder("clock");
    let path = folder.join("a.ini");
    let before = "[/a]\nx = 1\n";
    let century = Duration::from_secs(100 * 365 * 24 * 60 * 60);
    for (was, is) in [(century, Duration::ZERO), (Duration::ZERO, century)] {
        for (name, text) in [
            ("a.ini", before),
            (".a.ini.lock", "1\n"),
            (".a.ini.new", "["),
        ] {
            fs::write(folder.join(name), text).unwrap();
        }
        File::open(&path)
            .unwrap()
            .set_modified(UNIX_EPOCH + was)
            .unwrap();
        let mut store = open(&path);
        for name in ["a.ini", ".a.ini.lock", ".a.ini.new"] {
            let file = File::open(folder.join(name)).unwrap();
            file.set_modified(UNIX_EPOCH + is).unwrap();
        }
        // Another writer, at the same time of another day.
        let theirs = [set("/a/y", "2")];
        open(&path)
            .commit(Namespace::User, &theirs, Strategy::Refuse)
            .unwrap();
        File::open(&path)
            .unwrap()
            .set_modified(UNIX_EPOCH + was)
            .unwrap();
        let ours = [set("/a/z", "3")];
        store
            .commit(Namespace::User, &ours, Strategy::Refuse)
            .unwrap();
        let both = edited(Some(&edited(Some(before), &theirs)), &ours);
        assert_eq!(text(&path), Some(both));
    }
}

/// The other half of the proof: nothing that a commit passes through asks a clock
/// or looks at the times of files. Waiting for a lock is counted in pauses.
#[test]
fn no_clock_is_asked() {
    const WORDS: [&str; 8] = [
        "::now",
        "Instant",
        "UNIX_EPOCH",
        "modified()",
        "created()",
        "mtime",
        "ctime",
        "elapsed",
    ];
    for source in [
        include_str!("../../src/store.rs"),
        include_str!("../../src/lock.rs"),
        include_str!("../../src/disk.rs"),
        include_str!("../../src/replace.rs"),
        include_str!("../../src/merge.rs"),
        include_str!("../../src/read.rs"),
    ] {
        let code = source
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            let asks = WORDS.iter().find(|&&word| line.contains(word));
            assert_eq!(asks, None, "{line}");
        }
    }
}
