//! Files and folders are followed, whatever becomes of them.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use crate::support::{self, Live, Watched, put};
use milieu_adapters::files::{self, Change, FolderChange};
use milieu_adapters::{Format, Number, Text};
use milieu_stream::Status;
use milieu_transfer::Event;
use tempfile::tempdir;

#[track_caller]
fn says(source: &mut Live, expected: &str) {
    assert_eq!(source.bodies::<Text>(1)[0].text, expected);
}

/// As careful programs write: elsewhere, and then in its place.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(&new, path).unwrap();
}

#[test]
fn a_file_is_an_event_whenever_it_has_changed() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("mode");
    fs::write(&path, "day\n").unwrap();
    let mut source = Live::new(files::content(&path));
    says(&mut source, "day");
    source.working();
    fs::write(&path, "night\n").unwrap();
    says(&mut source, "night");
    replace(&path, "dawn");
    says(&mut source, "dawn");
    // The same again is no change, and neither is another file.
    replace(&path, "dawn");
    put(folder.path(), "other", "noon");
    assert!(source.is_silent(300));
    replace(&path, "dusk");
    says(&mut source, "dusk");
}

#[test]
fn a_file_that_is_deleted_is_told_and_seen_when_it_returns() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("mode");
    fs::write(&path, "day").unwrap();
    let mut source = Live::new(files::content(&path));
    says(&mut source, "day");
    fs::remove_file(&path).unwrap();
    let failure = source.failure("there is no such file");
    assert!(failure.contains(&path.display().to_string()), "{failure}");
    fs::write(&path, "day").unwrap();
    says(&mut source, "day");
    source.working();
}

#[test]
fn folders_may_come_later_and_be_replaced() {
    let root = tempdir().unwrap();
    let path = root.path().join("a/b/mode");
    let mut source = Live::new(files::content(&path));
    source.failure("there is no such file");
    fs::create_dir(root.path().join("a")).unwrap();
    fs::create_dir(root.path().join("a/b")).unwrap();
    replace(&path, "one");
    says(&mut source, "one");
    fs::rename(root.path().join("a/b"), root.path().join("a/c")).unwrap();
    source.failure("there is no such file");
    fs::create_dir(root.path().join("a/b")).unwrap();
    replace(&path, "two");
    says(&mut source, "two");
    fs::remove_dir_all(root.path().join("a")).unwrap();
    source.failure("there is no such file");
    fs::create_dir_all(root.path().join("a/b")).unwrap();
    replace(&path, "three");
    says(&mut source, "three");
}

#[test]
fn a_link_that_is_turned_elsewhere_is_followed() {
    // As orchestrators hand out settings.
    let root = tempdir().unwrap();
    put(root.path(), "1/mode", "one");
    put(root.path(), "2/mode", "two");
    symlink("1", root.path().join("data")).unwrap();
    symlink("data/mode", root.path().join("mode")).unwrap();
    let mut source = Live::new(files::content(root.path().join("mode")));
    says(&mut source, "one");
    symlink("2", root.path().join("data.new")).unwrap();
    fs::rename(root.path().join("data.new"), root.path().join("data")).unwrap();
    says(&mut source, "two");
}

#[test]
fn half_of_a_file_is_not_seen() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("mode");
    fs::write(&path, "10").unwrap();
    let mut source = Watched::new(files::content(&path).format(Format::number()));
    let values = |events: &[Event]| -> Vec<f64> {
        let numbers = support::bodies::<Number>(events);
        numbers.iter().map(|number| number.value).collect()
    };
    assert_eq!(values(&source.run(0.0)), [10.0]);
    let mut file = File::create(&path).unwrap();
    file.write_all(b"20").unwrap();
    assert!(values(&source.poll()).is_empty());
    file.write_all(b"0").unwrap();
    assert!(values(&source.poll()).is_empty());
    drop(file);
    assert_eq!(values(&source.poll()), [200.0]);
    // A writer that keeps the file open has finished when it is quiet.
    let mut file = File::create(&path).unwrap();
    file.write_all(b"300").unwrap();
    assert!(values(&source.poll()).is_empty());
    assert_eq!(values(&source.run(0.2)), [300.0]);
    // One that never is quiet is not waited for without end.
    let mut seen = Vec::new();
    for _ in 0..30 {
        file.write_all(b"0").unwrap();
        seen.extend(values(&source.poll()));
        seen.extend(values(&source.run(0.05)));
    }
    assert!(!seen.is_empty());
    drop(file);
}

#[test]
fn what_is_not_to_be_read_is_told() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("mode");
    fs::create_dir(&path).unwrap();
    let mut source = Live::new(files::content(&path).format(Format::number()));
    source.failure("that is not a file");
    fs::remove_dir(&path).unwrap();
    fs::write(&path, "a lot").unwrap();
    let failure = source.failure("is not a number");
    assert!(failure.contains("`a lot`"), "{failure}");
    fs::write(&path, vec![b'1'; 2 << 20]).unwrap();
    source.failure("longer than 1 MiB");
    fs::remove_file(&path).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).unwrap();
    source.failure("that is not a file");
    fs::remove_file(&path).unwrap();
    fs::write(&path, "1").unwrap();
    assert_eq!(source.bodies::<Number>(1)[0].value, 1.0);
}

#[test]
fn a_file_of_which_nobody_tells_is_looked_at() {
    let every = Duration::from_secs(5);
    let mut source = Watched::new(files::content("/proc/self/stat").every(every));
    assert_eq!(source.run(0.0).len(), 1);
    // Working makes a difference in it.
    let start = std::time::Instant::now();
    while start.elapsed() < Duration::from_millis(50) {
        std::hint::black_box(fs::read("/proc/self/stat").unwrap());
    }
    assert_eq!(source.run(5.0).len(), 1);
}

fn changes(source: &mut Live, count: usize) -> Vec<(String, Change)> {
    let changes = source.bodies::<FolderChange>(count).into_iter();
    changes.map(|change| (change.name, change.change)).collect()
}

#[track_caller]
fn tells(source: &mut Live, expected: &[(&str, Change)]) {
    let seen = changes(source, expected.len());
    let seen: Vec<(&str, Change)> = seen.iter().map(|(n, c)| (n.as_str(), *c)).collect();
    assert_eq!(seen, expected);
}

#[test]
fn what_changes_in_a_folder_is_told() {
    let root = tempdir().unwrap();
    put(root.path(), "old", "1");
    let mut source = Live::new(files::folder(root.path()));
    source.working();
    assert!(source.is_silent(50), "what was there is not new");
    let mut file = File::create(root.path().join("new")).unwrap();
    tells(&mut source, &[("new", Change::Created)]);
    file.write_all(b"12345").unwrap();
    assert!(source.is_silent(50), "it is still being written");
    drop(file);
    let change = source.bodies::<FolderChange>(1).remove(0);
    assert_eq!((change.change, change.length_bytes), (Change::Changed, 5));
    put(root.path(), "old", "22");
    tells(&mut source, &[("old", Change::Changed)]);
    fs::rename(root.path().join("old"), root.path().join("older")).unwrap();
    let mut seen = changes(&mut source, 2);
    seen.sort();
    let expected = [
        ("old".into(), Change::Removed),
        ("older".into(), Change::Created),
    ];
    assert_eq!(seen, expected);
    fs::create_dir(root.path().join("sub")).unwrap();
    assert!(source.bodies::<FolderChange>(1)[0].is_folder);
    put(root.path(), "sub/deep", "is not told");
    fs::remove_file(root.path().join("older")).unwrap();
    tells(&mut source, &[("older", Change::Removed)]);
}

#[test]
fn a_folder_may_come_later_and_go() {
    let root = tempdir().unwrap();
    let path = root.path().join("in/box");
    let mut source = Live::new(files::folder(&path));
    let failure = source.failure("there is no such folder");
    assert!(failure.contains(&path.display().to_string()), "{failure}");
    put(root.path(), "in/draft/one", "1");
    fs::rename(root.path().join("in/draft"), &path).unwrap();
    tells(&mut source, &[("one", Change::Created)]);
    source.working();
    fs::rename(&path, root.path().join("gone")).unwrap();
    tells(&mut source, &[("one", Change::Removed)]);
    source.failure("there is no such folder");
}

#[test]
fn what_is_there_already_is_told_if_it_is_asked_for() {
    let root = tempdir().unwrap();
    put(root.path(), "one", "1");
    let mut source = Live::new(files::folder(root.path()).with_existing());
    tells(&mut source, &[("one", Change::Created)]);
}

/// A folder in memory where there is one: a disk takes a while for thousands of
/// entries.
fn large_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempdir().unwrap())
}

#[test]
fn a_burst_of_changes_loses_none() {
    let root = large_folder();
    let mut source = Live::new(files::folder(root.path()));
    source.working();
    let mut expected: Vec<String> = (0..3000).map(|number| number.to_string()).collect();
    for name in &expected {
        symlink("nowhere", root.path().join(name)).unwrap();
    }
    let seen = changes(&mut source, expected.len());
    assert!(seen.iter().all(|(_, change)| *change == Change::Created));
    let mut names: Vec<String> = seen.into_iter().map(|(name, _)| name).collect();
    names.sort();
    expected.sort();
    assert_eq!(names, expected);
}

#[test]
fn a_folder_with_too_many_entries_says_so_until_it_has_fewer() {
    let root = large_folder();
    for number in 0..10_001 {
        symlink("nowhere", root.path().join(number.to_string())).unwrap();
    }
    let mut source = Watched::new(files::folder(root.path()));
    assert!(source.run(0.0).is_empty());
    assert!(source.failure().contains("more than 10000 entries"));
    fs::remove_file(root.path().join("0")).unwrap();
    source.run(60.0);
    assert_eq!(source.status(), &Status::Working);
}
