//! Who changed what, and taking it back.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use milieu_keys::{Name, Namespace};
use milieu_store::{Author, Change, Conflict, Place, Resolution, Store, StoreError, Strategy};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("milieu-history-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn path(&self) -> PathBuf {
        self.0.join("a.ini")
    }

    fn history(&self) -> PathBuf {
        self.0.join(".a.ini.history")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

static TICKS: AtomicU64 = AtomicU64::new(1_000);

fn clock() -> SystemTime {
    // As fast as programs are: several changes in a second.
    SystemTime::UNIX_EPOCH + Duration::from_millis(TICKS.fetch_add(1, Ordering::Relaxed))
}

fn open(path: &Path, user: &str) -> Store {
    let author = Author {
        user: user.into(),
        program: "test".into(),
        process: 7,
        host: "station".into(),
    };
    let place = Place::new(Namespace::User, path);
    Store::read(vec![place]).unwrap().signed(author, clock)
}

fn set(store: &mut Store, key: &str, value: Option<&str>) {
    let change = Change {
        name: Name::parse(key).unwrap(),
        value: value.map(str::to_owned),
    };
    let commit = store
        .commit(Namespace::User, &[change], Strategy::Refuse)
        .unwrap();
    assert_eq!(commit.unlogged, None);
}

fn value(store: &Store, name: &str) -> Option<String> {
    store.keys().lookup(name).map(|key| key.value().to_owned())
}

/// The log as lines such as `1 anna /a: -→1`.
fn lines(store: &Store) -> Vec<String> {
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
    let log = store.log().unwrap();
    let line = |logged: &milieu_store::Logged| {
        let record = &logged.record;
        let changes = record.changes.iter();
        let changes = changes.map(|c| format!(" {}: {}→{}", c.name, shown(&c.old), shown(&c.new)));
        let undone = logged
            .undone_by
            .map_or_else(String::new, |by| format!(" (undone by {by})"));
        let changes: String = changes.collect();
        format!("{} {}{changes}{undone}", record.id, record.author.user)
    };
    log.iter().map(line).collect()
}

#[test]
fn the_log_says_who_changed_what_and_undo_takes_it_back() {
    let folder = Folder::new("log");
    let mut anna = open(&folder.path(), "anna");
    set(&mut anna, "/a", Some("1"));
    set(&mut anna, "/a", Some("2\nlines"));
    let mut berta = open(&folder.path(), "berta");
    set(&mut berta, "/b", Some("x"));
    set(&mut berta, "/b", None);
    let log = [
        "1 anna /a: -→1",
        "2 anna /a: 1→2\nlines",
        "3 berta /b: -→x",
        "4 berta /b: x→-",
    ];
    assert_eq!(lines(&berta), log);

    berta.undo(Namespace::User, None, Strategy::Refuse).unwrap();
    assert_eq!(value(&berta, "/b").as_deref(), Some("x"));
    berta.undo(Namespace::User, None, Strategy::Refuse).unwrap();
    assert_eq!(
        value(&berta, "/b"),
        None,
        "the last that is in force, not the undoing"
    );
    berta
        .undo(Namespace::User, Some(1), Strategy::Refuse)
        .unwrap_err();
    berta
        .undo(Namespace::User, Some(2), Strategy::Refuse)
        .unwrap();
    assert_eq!(value(&berta, "/a").as_deref(), Some("1"));
    let (undone, _) = berta
        .undo(Namespace::User, Some(7), Strategy::Refuse)
        .unwrap();
    assert_eq!(undone.record.undoes, Some(2));
    assert_eq!(
        value(&berta, "/a").as_deref(),
        Some("2\nlines"),
        "taking back an undoing does it again"
    );
    let undone = |line: &str| lines(&berta).contains(&line.to_owned());
    assert!(undone("2 anna /a: 1→2\nlines"), "it is in force again");
    assert!(
        undone("3 berta /b: -→x (undone by 6)"),
        "{:?}",
        lines(&berta)
    );
}

#[test]
fn what_changed_since_is_a_conflict_for_undo() {
    let folder = Folder::new("since");
    let mut store = open(&folder.path(), "anna");
    set(&mut store, "/a", Some("1"));
    set(&mut store, "/a", Some("2"));
    set(&mut store, "/a", Some("3"));
    let error = store
        .undo(Namespace::User, Some(2), Strategy::Refuse)
        .unwrap_err();
    let StoreError::Conflict { conflicts, .. } = &error else {
        panic!("{error}")
    };
    let [conflict] = &conflicts[..] else {
        panic!("{error}")
    };
    assert_eq!(conflict.base.as_deref(), Some("2"));
    assert_eq!(conflict.theirs.as_deref(), Some("3"));
    assert_eq!(conflict.ours.as_deref(), Some("1"));
    store
        .undo(Namespace::User, Some(2), Strategy::Ours)
        .unwrap();
    assert_eq!(value(&store, "/a").as_deref(), Some("1"));
}

#[test]
fn a_conflict_says_who_and_a_function_decides_it() {
    let folder = Folder::new("who");
    let mut anna = open(&folder.path(), "anna");
    set(&mut anna, "/a", Some("1"));
    let mut berta = open(&folder.path(), "berta");
    set(&mut berta, "/a", Some("b"));
    set(&mut berta, "/other", Some("x"));
    let change = [Change::set(Name::parse("/a").unwrap(), "a")];
    let error = anna
        .commit(Namespace::User, &change, Strategy::Refuse)
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("test (process 7 of berta) changed `/a` as well"),
        "{error}"
    );

    // While it decides, nothing is locked: another writer gets through, and it is asked again.
    let mut asked = Vec::new();
    let path = folder.path();
    let join = |conflict: &Conflict| {
        asked.push(conflict.theirs.clone().unwrap());
        if asked.len() == 1 {
            set(&mut open(&path, "carla"), "/a", Some("c"));
        }
        Resolution::Value(Some(format!("a{}", conflict.theirs.as_deref().unwrap())))
    };
    let commit = anna.commit(Namespace::User, &change, join).unwrap();
    assert_eq!(asked, ["b", "c"]);
    assert_eq!(value(&anna, "/a").as_deref(), Some("ac"));
    assert_eq!(commit.conflicts.len(), 1);
    // By hand, nobody signs.
    fs::write(folder.path(), "[/]\na = hand\n").unwrap();
    let error = anna
        .commit(Namespace::User, &change, Strategy::Refuse)
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("another process changed `/a` as well"),
        "{error}"
    );
}

#[test]
fn records_of_writers_that_were_killed_do_not_count() {
    let folder = Folder::new("killed");
    let mut store = open(&folder.path(), "anna");
    set(&mut store, "/a", Some("1"));
    let before = fs::read_to_string(folder.path()).unwrap();
    set(&mut store, "/a", Some("2"));
    // Killed between noting and replacing: the file is as before.
    fs::write(folder.path(), &before).unwrap();
    let mut store = open(&folder.path(), "anna");
    assert_eq!(lines(&store), ["1 anna /a: -→1"]);
    // Killed while noting.
    let history = fs::read_to_string(folder.history()).unwrap();
    fs::write(folder.history(), &history[..history.len() - 9]).unwrap();
    assert_eq!(lines(&store), ["1 anna /a: -→1"]);
    set(&mut store, "/a", Some("3"));
    let log = lines(&store);
    assert_eq!(log.first().unwrap(), "1 anna /a: -→1");
    assert!(log.last().unwrap().ends_with("anna /a: 1→3"), "{log:?}");
}

#[test]
fn a_history_is_bounded() {
    let folder = Folder::new("bounded");
    let mut store = open(&folder.path(), "anna");
    let long = "x".repeat(20_000);
    for round in 0..60 {
        set(&mut store, "/a", Some(&format!("{round}{long}")));
        let size = fs::metadata(folder.history()).unwrap().len();
        assert!(size < 256 * 1024 + 50_000, "round {round}: {size}");
    }
    let log = store.log().unwrap();
    assert_eq!(log.last().unwrap().record.id, 60);
    assert!(log.len() >= 3, "half of it stays: {}", log.len());
    store.undo(Namespace::User, None, Strategy::Refuse).unwrap();
    assert!(value(&store, "/a").unwrap().starts_with("58x"));
}

#[test]
fn a_history_that_cannot_be_written_holds_up_nothing() {
    let folder = Folder::new("unwritable");
    fs::create_dir(folder.history()).unwrap();
    let mut store = open(&folder.path(), "anna");
    let change = [Change::set(Name::parse("/a").unwrap(), "1")];
    let commit = store
        .commit(Namespace::User, &change, Strategy::Refuse)
        .unwrap();
    assert!(commit.unlogged.unwrap().contains("directory"));
    assert_eq!(value(&store, "/a").as_deref(), Some("1"));
}

#[test]
fn an_edited_text_is_taken_whole_or_merged_by_key() {
    let folder = Folder::new("edit");
    let before = "# mine\n[/]\na = 1\nb = 1\n";
    fs::write(folder.path(), before).unwrap();
    let mut store = open(&folder.path(), "anna");
    let after = "# mine, and better\n[/]\na = 2\n";
    let edited = store
        .edit(&folder.path(), before, after, Strategy::Refuse)
        .unwrap();
    assert!(edited.as_written);
    assert_eq!(fs::read_to_string(folder.path()).unwrap(), after);
    assert_eq!(lines(&store), ["1 anna /b: 1→- /a: 1→2"]);

    set(&mut open(&folder.path(), "berta"), "/c", Some("3"));
    let edited = store
        .edit(
            &folder.path(),
            after,
            "# lost\n[/]\na = 9\n",
            Strategy::Refuse,
        )
        .unwrap();
    assert!(!edited.as_written, "another has changed the file meanwhile");
    let text = fs::read_to_string(folder.path()).unwrap();
    assert_eq!(text, "# mine, and better\n[/]\na = 9\nc = 3\n");
    let error = store
        .edit(&folder.path(), &text, "nonsense\n", Strategy::Refuse)
        .unwrap_err();
    assert!(error.to_string().contains("a.ini:1:1"), "{error}");
    assert_eq!(fs::read_to_string(folder.path()).unwrap(), text);
}

#[test]
fn changes_of_several_files_are_logged_in_the_order_in_which_they_were_made() {
    let folder = Folder::new("several");
    let author = Author {
        user: "anna".into(),
        program: "test".into(),
        process: 7,
        host: "station".into(),
    };
    let places = vec![
        Place::new(Namespace::User, folder.path()),
        Place::new(Namespace::User, folder.0.join("b.ini")).at(Name::parse("/b").unwrap()),
    ];
    let open = || {
        let store = Store::read(places.clone()).unwrap();
        store.signed(author.clone(), clock)
    };
    let mut store = open();
    for (key, new) in [
        ("/a", "1"),
        ("/b/x", "2"),
        ("/a", "3"),
        ("/b/x", "4"),
        ("/a", "5"),
    ] {
        set(&mut store, key, Some(new));
    }
    let log = open().log().unwrap();
    let new = log
        .iter()
        .map(|logged| logged.record.changes[0].new.clone());
    let new: Vec<String> = new.flatten().collect();
    assert_eq!(new, ["1", "2", "3", "4", "5"]);
    for expected in ["/a", "/b/x", "/a"] {
        let (logged, _) = open()
            .undo(Namespace::User, None, Strategy::Refuse)
            .unwrap();
        assert_eq!(logged.record.changes[0].name.as_str(), expected);
    }
}
