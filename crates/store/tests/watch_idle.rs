//! A watch of which nothing is asked does nothing at all.
//!
//! Alone in its program, so that the thread can be told from others.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use milieu_keys::Namespace;
use milieu_store::watch::{Filter, Pace, Watch};
use milieu_store::{Place, Store};

/// What the kernel counts of the thread that watches: how long it ran in ns and
/// how often it was put on a processor, and how often it went to sleep.
fn counted() -> [String; 2] {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let mut tasks = tasks.map(|task| task.unwrap().path());
    let is_it =
        |task: &PathBuf| fs::read_to_string(task.join("comm")).unwrap().trim() == "milieu-watch";
    let task = tasks.find(is_it).expect("the thread runs");
    let status = fs::read_to_string(task.join("status")).unwrap();
    let switches = status.lines().filter(|line| line.contains("ctxt_switches"));
    let switches: Vec<&str> = switches.collect();
    assert_eq!(switches.len(), 2, "{status}");
    let schedule = fs::read_to_string(task.join("schedstat")).unwrap();
    let ran_and_started: Vec<&str> = schedule
        .split_whitespace()
        .enumerate()
        .filter(|(at, _)| *at != 1)
        .map(|(_, field)| field)
        .collect();
    [ran_and_started.join(" "), switches.join(" ")]
}

/// How many inodes the kernel watches for this process, and for what.
fn watches() -> Vec<String> {
    let files = fs::read_dir("/proc/self/fdinfo").unwrap();
    let infos = files.filter_map(|file| fs::read_to_string(file.unwrap().path()).ok());
    let of_file = |info: String| -> Vec<String> {
        let watches = info.lines().filter(|line| line.starts_with("inotify "));
        // Inodes that are made anew have other numbers.
        let mask = |line: &str| {
            line.split_whitespace()
                .find(|word| word.starts_with("mask:"))
                .map(str::to_owned)
        };
        watches.filter_map(mask).collect()
    };
    let mut all: Vec<String> = infos.flat_map(of_file).collect();
    all.sort_unstable();
    all
}

#[test]
fn an_idle_watch_costs_nothing() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("watch-idle");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("busy/app")).unwrap();
    let places = ["busy/app/app.ini", "missing/app/app.ini"]
        .map(|path| Place::new(Namespace::User, folder.join(path)));
    fs::write(&places[0].path, "a = 1\n").unwrap();
    let store = Store::read(places.to_vec()).unwrap();
    let watch = Watch::start(&store, Pace::default()).unwrap();
    let changes = watch.changes(store.keys(), Filter::all());
    let _registration = watch.on_change(store.keys(), Filter::all(), |_| {});
    fs::write(&places[0].path, "a = 2\n").unwrap();
    changes.recv_timeout(Duration::from_secs(20)).unwrap();
    // A busy machine may take its time for the last of what was to be done.
    let mut before = counted();
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let now = counted();
        if now == before {
            break;
        }
        before = now;
    }
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(counted(), before);
    // Nor does it care what others do in the folders along the way.
    for turn in 0..100 {
        let other = folder.join(format!("busy/other-{turn}"));
        fs::write(&other, "x").unwrap();
        fs::rename(&other, folder.join("busy/other")).unwrap();
        fs::remove_file(folder.join("busy/other")).unwrap();
    }
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(counted(), before);

    // Whatever came and went, no more is watched than before.
    let before = watches();
    assert!(!before.is_empty());
    for turn in 0..50 {
        fs::create_dir_all(folder.join("missing/app")).unwrap();
        fs::write(folder.join("missing/app/app.ini"), format!("b = {turn}\n")).unwrap();
        if turn % 2 == 0 {
            changes.recv_timeout(Duration::from_secs(20)).unwrap();
        }
        fs::rename(folder.join("busy"), folder.join("away")).unwrap();
        fs::create_dir_all(folder.join("busy/app")).unwrap();
        fs::rename(
            folder.join("away/app/app.ini"),
            folder.join("busy/app/app.ini"),
        )
        .unwrap();
        fs::remove_dir_all(folder.join("away")).unwrap();
        fs::remove_dir_all(folder.join("missing")).unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    while watches() != before {
        assert!(
            Instant::now() < deadline,
            "{:?} instead of {before:?}",
            watches()
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(watch);
    assert_eq!(watches(), [""; 0]);
}
