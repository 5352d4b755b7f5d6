//! The end: nothing of the station runs on. No other test shares this process,
//! whose threads are counted.

mod support;

use std::time::{Duration, Instant};
use support::{Bench, LONG, Open};

/// The names of this process's threads.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        // A thread may end while it is looked at.
        std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
    };
    let mut names: Vec<String> = tasks.filter_map(name).collect();
    names.sort();
    names
}

#[test]
fn no_thread_outlives_the_end() {
    let before = threads();
    let mut bench = Bench::new(&["--speed=86400"]);
    let mut page = Open::new(&bench, "");
    page.wait_for("event: panels");
    for name in ["keeper", "milieu-sources", "serve", "web"] {
        assert!(threads().contains(&format!("{name}\n")), "{name}");
    }
    bench.running.end();
    assert!(bench.running.milieu().is_none());
    // The kernel may list for a moment what has been joined.
    let begun = Instant::now();
    while threads() != before {
        assert!(begun.elapsed() < LONG, "{:?}", threads());
        std::thread::sleep(Duration::from_millis(5));
    }
}
