//! Other processes commit, and a watch sees every one of their last values.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use milieu_keys::{Key, Name, Namespace};
use milieu_store::watch::{Filter, Pace, Watch};
use milieu_store::{Change, Place, Store, Strategy};

const PATIENCE: Duration = Duration::from_secs(30);
const WRITERS: usize = 3;
const COMMITS: usize = 40;
/// Tells a process of this program which key is its own.
const WRITER: &str = "MILIEU_WATCH_WRITER";

fn place() -> Place {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("watch-processes");
    Place::new(Namespace::User, folder.join("app/app.ini"))
}

/// What a writer does: counts in a key of its own and in one that all share.
fn write(writer: &str) {
    let mut store = Store::read(vec![place()]).unwrap();
    let own = Name::parse(&format!("/writer/{writer}")).unwrap();
    let shared = Name::parse("/shared").unwrap();
    for count in 0..COMMITS {
        let value = format!("{writer}-{count}");
        let changes = [
            Change::set(own.clone(), &value),
            Change::set(shared.clone(), &value),
        ];
        store
            .commit(Namespace::User, &changes, Strategy::Ours)
            .unwrap();
    }
}

fn start(writer: usize) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "commits_of_other_processes_are_seen", "--quiet"]);
    command.env(WRITER, writer.to_string());
    command.spawn().unwrap()
}

#[test]
fn commits_of_other_processes_are_seen() {
    if let Ok(writer) = std::env::var(WRITER) {
        return write(&writer);
    }
    let path: PathBuf = place().path;
    let _ = fs::remove_dir_all(path.parent().unwrap());
    let mut store = Store::read(vec![place()]).unwrap();
    let watch = Watch::start(&store, Pace::default()).unwrap();
    let changes = watch.changes(store.keys(), Filter::all());
    let writers: Vec<Child> = (0..WRITERS).map(start).collect();

    // This process writes as well, and is not told of that.
    let own = Name::parse("/own").unwrap();
    let mut told: BTreeMap<String, String> = BTreeMap::new();
    let deadline = Instant::now() + PATIENCE;
    let last = |writer| format!("{writer}-{}", COMMITS - 1);
    let is_done = |told: &BTreeMap<String, String>| {
        (0..WRITERS).all(|writer| told.get(&format!("/writer/{writer}")) == Some(&last(writer)))
    };
    let mut turns = 0;
    while !is_done(&told) {
        turns += 1;
        let change = Change::set(own.clone(), turns.to_string());
        watch
            .commit(&mut store, Namespace::User, &[change], Strategy::Ours)
            .unwrap();
        let left = deadline.saturating_duration_since(Instant::now());
        let news = changes
            .recv_timeout(left)
            .expect("the writers are not done");
        for change in news.changes {
            let new = change.new.expect("nobody removes a key");
            assert_ne!(change.name, own);
            assert!(new.origin().to_string().starts_with(path.to_str().unwrap()));
            let old = told.insert(change.name.as_str().to_owned(), new.value().to_owned());
            assert_eq!(old.as_deref(), change.old.as_ref().map(Key::value));
        }
    }
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    let found = Store::read(vec![place()]).unwrap();
    while watch.keys() != *found.keys() {
        assert!(
            Instant::now() < deadline,
            "{} is not {}",
            watch.keys(),
            found.keys()
        );
        std::thread::yield_now();
    }
    assert_eq!(
        found.keys().lookup("/own").map(Key::value),
        Some(&*turns.to_string())
    );
}
