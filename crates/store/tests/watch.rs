//! A watched store: which keys are told of, to whom, and what invalid files do.

use std::fs;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, SystemTime};

use futures_core::Stream;
use milieu_diagnostics::Source;
use milieu_keys::{Key, KeySet, Name, Namespace};
use milieu_store::watch::{Changes, FileNews, Filter, News, Pace, Registration, Watch};
use milieu_store::{Author, Change, Place, Schema, Store, StoreError, Strategy};

/// Longer than any machine takes. Only a test that fails waits so long.
const PATIENCE: Duration = Duration::from_secs(20);

/// A folder with a file for the user and two for the machine.
struct Files {
    folder: PathBuf,
}

impl Files {
    fn new(test: &str) -> Files {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("watch")
            .join(test);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Files { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Replaces a file, as nothing else could come in between.
    fn write(&self, name: &str, text: &str) {
        let new = self.path(".new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.path(name)).unwrap();
    }

    fn store(&self) -> Store {
        let place = |namespace, name| Place::new(namespace, self.path(name));
        Store::read(vec![
            place(Namespace::User, "user.ini"),
            place(Namespace::System, "first.ini"),
            place(Namespace::System, "second.ini"),
        ])
        .unwrap()
    }

    /// The path of a file in a text, shortened to its name.
    fn short(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.folder.display()), "")
    }

    fn shown_key(&self, key: Option<&Key>) -> String {
        let shown =
            |key: &Key| format!("{}@{}", key.value(), self.short(&key.origin().to_string()));
        key.map_or("-".into(), shown)
    }

    /// `/name: old@file:line -> new@file:line`, and `file: invalid` or the like.
    fn shown(&self, news: &News) -> Vec<String> {
        let changes = news.changes.iter().map(|change| {
            let of = |key: &Option<Key>| self.shown_key(key.as_ref());
            format!(
                "{}: {} -> {}",
                change.name,
                of(&change.old),
                of(&change.new)
            )
        });
        let files = news.files.iter().map(|file| {
            let what = match file {
                FileNews::Invalid { .. } => "invalid",
                FileNews::Valid { .. } => "valid",
                _ => "unwatched",
            };
            format!("{}: {what}", self.short(&file.path().display().to_string()))
        });
        changes.chain(files).collect()
    }

    #[track_caller]
    fn next(&self, changes: &Changes) -> Vec<String> {
        self.shown(&changes.recv_timeout(PATIENCE).unwrap())
    }
}

#[track_caller]
fn nothing(changes: &Changes) {
    let found = changes.recv_timeout(Duration::from_millis(150));
    assert!(matches!(found, Err(RecvTimeoutError::Timeout)), "{found:?}");
}

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn set(key: &str, value: &str) -> [Change; 1] {
    [Change::set(name(key), value)]
}

/// Watches with these readers: of all keys, and of each namespace's own.
fn watch(store: &Store) -> (Watch, Changes) {
    let watch = Watch::start(store, Pace::default()).unwrap();
    let changes = watch.changes(store.keys(), Filter::all());
    (watch, changes)
}

fn error_in(news: &News) -> &StoreError {
    match &news.files[..] {
        [FileNews::Invalid { error, .. }] => error,
        other => panic!("one invalid file expected, not {other:?}"),
    }
}

/// Whatever is watched can be handed to other threads, and be shared by them.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Watch>();
    is_shared::<Changes>();
    is_shared::<Registration>();
    is_shared::<milieu_store::watch::Files>();
};

#[test]
fn changes_are_told_with_their_places() {
    let files = Files::new("places");
    files.write("user.ini", "# mine\na = 1\nb = 2\n");
    let (watch, changes) = watch(&files.store());
    files.write("user.ini", "a = 1\n[c]\nd = 4\n");
    assert_eq!(
        files.next(&changes),
        ["/b: 2@user.ini:3 -> -", "/c/d: - -> 4@user.ini:3"]
    );
    // The other key stands elsewhere now, which is no change, but known.
    let key = files.shown_key(watch.keys().lookup("/a"));
    assert_eq!(key, "1@user.ini:1");
    files.write("user.ini", "\n\na = 1\n[c]\nd = 4\n");
    nothing(&changes);
    assert_eq!(files.shown_key(watch.keys().lookup("/a")), "1@user.ini:3");
    fs::remove_file(files.path("user.ini")).unwrap();
    assert_eq!(
        files.next(&changes),
        ["/a: 1@user.ini:3 -> -", "/c/d: 4@user.ini:5 -> -"]
    );
}

#[test]
fn who_made_a_change_is_told_where_the_history_knows() {
    let files = Files::new("authors");
    files.write("user.ini", "a = 1\nb = 1\n");
    let signed = |user: &str| {
        let mut author = Author::of_this_process();
        author.user = user.to_owned();
        files.store().signed(author, || SystemTime::UNIX_EPOCH)
    };
    let commit = |user: &str, change| {
        signed(user)
            .commit(Namespace::User, &[change], Strategy::Ours)
            .unwrap();
    };
    // What was there before is nobody's news.
    commit("anna", Change::set(name("/a"), "2"));
    let (_watch, changes) = watch(&files.store());
    let by = || {
        let news = changes.recv_timeout(PATIENCE).unwrap();
        let by = |change: &milieu_store::watch::Change| change.by.clone().map(|by| by.user);
        let told = news
            .changes
            .iter()
            .map(|change| (change.name.to_string(), by(change)));
        told.collect::<Vec<_>>()
    };
    let told = |name: &str, user: Option<&str>| vec![(name.to_owned(), user.map(str::to_owned))];
    commit("ben", Change::set(name("/a"), "3"));
    assert_eq!(by(), told("/a", Some("ben")));
    commit("eva", Change::remove(name("/a")));
    assert_eq!(by(), told("/a", Some("eva")));
    // An editor says nothing, also where somebody has once written the same.
    files.write("user.ini", "a = 3\nb = 1\n");
    assert_eq!(by(), told("/a", None));
    commit("anna", Change::set(name("/c"), "1"));
    assert_eq!(by(), told("/c", Some("anna")));
    // A history that is longer than what is looked at first, or gone.
    let mut store = signed("ben");
    for round in 0..200 {
        let change = [Change::set(name("/b"), format!("{round}"))];
        store
            .commit(Namespace::User, &change, Strategy::Ours)
            .unwrap();
    }
    while changes.recv_timeout(PATIENCE).unwrap().changes[0]
        .new
        .as_ref()
        .unwrap()
        .value()
        != "199"
    {}
    fs::remove_file(files.path(".user.ini.history")).unwrap();
    commit("eva", Change::set(name("/b"), "x"));
    assert_eq!(by(), told("/b", Some("eva")));
}

#[test]
fn a_commit_is_told_as_a_whole() {
    let files = Files::new("whole");
    let (_watch, changes) = watch(&files.store());
    let mut other = files.store();
    for turn in 0..20 {
        let key = |index| Change::set(name(&format!("/sw/{index}")), turn.to_string());
        let all: Vec<Change> = (0..50).map(key).collect();
        other
            .commit(Namespace::User, &all, Strategy::Refuse)
            .unwrap();
        let news = changes.recv_timeout(PATIENCE).unwrap();
        assert_eq!(news.changes.len(), 50);
        let of_turn = |key: &Key| key.value() == turn.to_string();
        assert!(
            news.changes
                .iter()
                .all(|change| change.new.as_ref().is_some_and(of_turn))
        );
    }
}

#[test]
fn the_cascade_decides_what_a_change_is() {
    let files = Files::new("cascade");
    files.write("user.ini", "a = user\n");
    files.write("first.ini", "a = 1\nb = 1\n");
    files.write("second.ini", "a = 2\nb = 2\nc = 2\n");
    let store = files.store();
    let (watch, changes) = watch(&store);
    let system = watch.changes(store.keys(), Filter::all().in_namespace(Namespace::System));
    let user = watch.changes(store.keys(), Filter::all().in_namespace(Namespace::User));

    // The user's value wins, so only readers of the namespace learn of it.
    files.write("first.ini", "a = 1x\nb = 1\n");
    assert_eq!(files.next(&system), ["/a: 1@first.ini:1 -> 1x@first.ini:1"]);
    // The first file of a namespace wins.
    files.write("second.ini", "a = 2x\nb = 2x\nc = 2x\n");
    assert_eq!(
        files.next(&system),
        ["/c: 2@second.ini:3 -> 2x@second.ini:3"]
    );
    assert_eq!(
        files.next(&changes),
        ["/c: 2@second.ini:3 -> 2x@second.ini:3"]
    );
    // What loses comes forward when what wins goes.
    files.write("first.ini", "");
    assert_eq!(
        files.next(&system),
        [
            "/a: 1x@first.ini:1 -> 2x@second.ini:1",
            "/b: 1@first.ini:2 -> 2x@second.ini:2"
        ]
    );
    assert_eq!(
        files.next(&changes),
        ["/b: 1@first.ini:2 -> 2x@second.ini:2"]
    );
    files.write("user.ini", "");
    assert_eq!(files.next(&user), ["/a: user@user.ini:1 -> -"]);
    assert_eq!(
        files.next(&changes),
        ["/a: user@user.ini:1 -> 2x@second.ini:1"]
    );
    // The same value from elsewhere is no change.
    files.write("user.ini", "a = 2x\n");
    assert_eq!(files.next(&user), ["/a: - -> 2x@user.ini:1"]);
    nothing(&changes);
    assert!(system.try_recv().is_err());
}

#[test]
fn a_reader_of_a_branch_is_told_of_nothing_else() {
    let files = Files::new("branch");
    let store = files.store();
    let watch = Watch::start(&store, Pace::default()).unwrap();
    let pi = watch.changes(store.keys(), Filter::all().below(name("/sw/pi")));
    let all = watch.changes(store.keys(), Filter::all());
    files.write("user.ini", "sw/pie = 1\nsw = 1\n");
    assert_eq!(files.next(&all).len(), 2);
    assert!(matches!(pi.try_recv(), Err(TryRecvError::Empty)));
    files.write("user.ini", "sw/pi = 1\nsw/pi/a/b = 1\nsw/pie = 2\n");
    let expected = ["/sw/pi: - -> 1@user.ini:1", "/sw/pi/a/b: - -> 1@user.ini:2"];
    assert_eq!(files.next(&pi), expected);
}

#[test]
fn nothing_is_missed_between_reading_and_watching() {
    let files = Files::new("between");
    files.write("user.ini", "a = 1\nb = 1\n");
    let store = files.store();
    files.write("user.ini", "a = 2\nb = 1\n");
    let watch = Watch::start(&store, Pace::default()).unwrap();
    let first = watch.changes(store.keys(), Filter::all());
    assert_eq!(files.next(&first), ["/a: 1@user.ini:1 -> 2@user.ini:1"]);
    files.write("user.ini", "a = 2\nb = 3\nc = 3\n");
    assert_eq!(files.next(&first).len(), 2);
    // Whoever comes later knows less.
    let late = watch.changes(store.keys(), Filter::all());
    let news = late.try_recv().unwrap();
    assert_eq!(
        files.shown(&news),
        [
            "/a: 1@user.ini:1 -> 2@user.ini:1",
            "/b: 1@user.ini:2 -> 3@user.ini:2",
            "/c: - -> 3@user.ini:3"
        ]
    );
    let news = watch.changes(&KeySet::new(), Filter::all().below(name("/a")));
    assert_eq!(files.next(&news), ["/a: - -> 2@user.ini:1"]);
    let up_to_date = watch.changes(&watch.keys(), Filter::all());
    assert!(up_to_date.try_recv().is_err());
}

#[test]
fn an_invalid_file_keeps_its_keys_and_is_told_of_once() {
    let files = Files::new("invalid");
    files.write("user.ini", "a = 1\n");
    let (watch, changes) = watch(&files.store());
    files.write("user.ini", "a = 2\nbroken\n");
    let news = changes.recv_timeout(PATIENCE).unwrap();
    assert_eq!(files.shown(&news), ["user.ini: invalid"]);
    let error = error_in(&news).to_string();
    assert!(
        error.contains("user.ini:2") && error.contains("broken"),
        "{error}"
    );
    assert_eq!(watch.keys().lookup("/a").map(Key::value), Some("1"));

    // The same content again is no news, whatever becomes of the inode.
    files.write("user.ini", "a = 2\nbroken\n");
    nothing(&changes);
    // Other files go on.
    files.write("first.ini", "b = 1\n");
    assert_eq!(files.next(&changes), ["/b: - -> 1@first.ini:1"]);
    // A reader who comes now is told.
    let late = watch.changes(&watch.keys(), Filter::all());
    assert_eq!(files.next(&late), ["user.ini: invalid"]);

    files.write("user.ini", "a = 2\nstill broken\n");
    let news = changes.recv_timeout(PATIENCE).unwrap();
    let error = error_in(&news).to_string();
    assert!(error.contains("still broken"), "{error}");
    files.write("user.ini", "a = 3\n");
    assert_eq!(
        files.next(&changes),
        ["/a: 1@user.ini:1 -> 3@user.ini:1", "user.ini: valid"]
    );
    nothing(&changes);
}

#[test]
fn a_file_that_cannot_be_read_is_invalid() {
    let files = Files::new("unreadable");
    files.write("user.ini", "a = 1\n");
    let (watch, changes) = watch(&files.store());
    fs::remove_file(files.path("user.ini")).unwrap();
    fs::create_dir(files.path("user.ini")).unwrap();
    let news = changes.recv_timeout(PATIENCE).unwrap();
    let error = error_in(&news).to_string();
    assert!(
        error.contains("a folder stands where the file should be"),
        "{error}"
    );
    assert!(watch.keys().lookup("/a").is_some());
    fs::remove_dir(files.path("user.ini")).unwrap();
    // No file is a file without keys.
    let expected = ["/a: 1@user.ini:1 -> -", "user.ini: valid"];
    assert_eq!(files.next(&changes), expected);
    fs::write(files.path("user.ini"), b"a = \xff\n").unwrap();
    let news = changes.recv_timeout(PATIENCE).unwrap();
    assert!(error_in(&news).to_string().contains("iconv"), "{news:?}");
}

#[test]
fn what_is_mended_at_once_is_not_told() {
    let files = Files::new("mended");
    files.write("user.ini", "a = 1\n");
    let store = files.store();
    let pace = Pace {
        unfinished: Duration::from_secs(10),
        ..Pace::default()
    };
    let watch = Watch::start(&store, pace).unwrap();
    let changes = watch.changes(store.keys(), Filter::all());
    files.write("user.ini", "[unclosed\n");
    std::thread::sleep(Duration::from_millis(30));
    files.write("user.ini", "a = 2\n");
    assert_eq!(files.next(&changes), ["/a: 1@user.ini:1 -> 2@user.ini:1"]);
}

#[test]
fn what_is_invalid_at_the_start_keeps_the_keys_of_the_store() {
    let files = Files::new("start");
    files.write("user.ini", "a = 1\n");
    let store = files.store();
    files.write("user.ini", "broken\n");
    let (watch, changes) = watch(&store);
    assert_eq!(files.next(&changes), ["user.ini: invalid"]);
    assert!(watch.keys() == *store.keys());
}

#[test]
fn the_specification_decides_what_is_valid() {
    let files = Files::new("specification");
    let text = "[/port]\ntype=unsigned_short\ndefault=80\n[/level]\ncheck/range=1-5\ndefault=3\n";
    let schema = Schema::parse(Source::new("spec.ini", text)).unwrap();
    files.write("user.ini", "port = 8080\n");
    let store = files.store().with_schema(schema);
    let (watch, changes) = watch(&store);
    files.write("user.ini", "level = 9\nport = http\n");
    let news = changes.recv_timeout(PATIENCE).unwrap();
    // All that is refused, each with its rule.
    let error = error_in(&news).to_string();
    for part in ["user.ini:1", "user.ini:2", "level", "port", "spec.ini:5"] {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
    assert_eq!(watch.keys().lookup("/port").map(Key::value), Some("8080"));
    files.write("user.ini", "level = 4\n");
    assert_eq!(
        files.next(&changes),
        [
            "/level: 3@default of the specification -> 4@user.ini:1",
            "/port: 8080@user.ini:1 -> 80@default of the specification",
            "user.ini: valid"
        ]
    );
}

#[test]
fn own_commits_are_not_told_and_those_of_others_are() {
    let files = Files::new("own");
    files.write("user.ini", "a = 0\nb = 0\n");
    let mut store = files.store();
    let (watch, changes) = watch(&store);
    let commit = |store: &mut Store, changes: &[Change]| {
        watch
            .commit(store, Namespace::User, changes, Strategy::Ours)
            .unwrap()
    };
    commit(&mut store, &set("/a", "1"));
    nothing(&changes);
    assert_eq!(watch.keys().lookup("/a").map(Key::value), Some("1"));

    // Another process changes other keys, and then the same one.
    let mut other = files.store();
    let theirs = |other: &mut Store, changes: &[Change]| {
        other
            .commit(Namespace::User, changes, Strategy::Ours)
            .unwrap()
    };
    theirs(&mut other, &set("/b", "1"));
    commit(&mut store, &set("/c", "1"));
    assert_eq!(files.next(&changes), ["/b: 0@user.ini:2 -> 1@user.ini:2"]);
    theirs(&mut other, &set("/a", "2"));
    assert_eq!(files.next(&changes), ["/a: 1@user.ini:1 -> 2@user.ini:1"]);
    // The value that was once our own is theirs now.
    theirs(&mut other, &set("/a", "1"));
    assert_eq!(files.next(&changes), ["/a: 2@user.ini:1 -> 1@user.ini:1"]);

    // What a reader has not taken yet is out of date with our own value.
    theirs(&mut other, &set("/a", "3"));
    while watch.keys().lookup("/a").map(Key::value) != Some("3") {
        std::thread::yield_now();
    }
    commit(&mut store, &set("/a", "4"));
    commit(&mut store, &[Change::remove(name("/c"))]);
    nothing(&changes);
    // Without the watch the same commit is told.
    theirs(&mut store, &set("/a", "5"));
    assert_eq!(files.next(&changes), ["/a: 4@user.ini:1 -> 5@user.ini:1"]);
}

#[test]
fn removing_an_own_key_tells_what_comes_forward() {
    let files = Files::new("forward");
    files.write("user.ini", "a = mine\n");
    files.write("first.ini", "a = theirs\n");
    let mut store = files.store();
    let (watch, changes) = watch(&store);
    let remove = [Change::remove(name("/a"))];
    watch
        .commit(&mut store, Namespace::User, &remove, Strategy::Refuse)
        .unwrap();
    assert_eq!(
        files.next(&changes),
        ["/a: mine@user.ini:1 -> theirs@first.ini:1"]
    );
}

#[test]
fn a_commit_that_fails_hides_nothing() {
    let files = Files::new("fails");
    files.write("user.ini", "a = 0\n");
    let mut store = files.store();
    let (watch, changes) = watch(&store);
    files.write("user.ini", "a = 1\n");
    watch
        .commit(
            &mut store,
            Namespace::User,
            &set("/a", "2"),
            Strategy::Refuse,
        )
        .unwrap_err();
    assert_eq!(files.next(&changes), ["/a: 0@user.ini:1 -> 1@user.ini:1"]);
}

#[test]
fn a_slow_reader_gets_the_last_value_of_each_key() {
    let files = Files::new("slow");
    let (watch, changes) = watch(&files.store());
    let mut other = files.store();
    for turn in 0..200 {
        let passing = format!("/passing/{turn}");
        let old = format!("/passing/{}", turn - 1);
        let all = [
            Change::set(name("/a"), turn.to_string()),
            Change::set(name(&passing), "1"),
            Change::remove(name(&old)),
        ];
        other.commit(Namespace::User, &all, Strategy::Ours).unwrap();
    }
    while watch.keys().lookup("/a").map(Key::value) != Some("199") {
        std::thread::yield_now();
    }
    let news = changes.try_recv().unwrap();
    let shown: Vec<_> = news
        .changes
        .iter()
        .map(|change| (change.name.as_str(), change.new.as_ref().map(Key::value)))
        .collect();
    assert_eq!(shown, [("/a", Some("199")), ("/passing/199", Some("1"))]);
}

#[test]
fn the_end_of_the_watch_is_the_end_of_the_news() {
    let files = Files::new("end");
    let (watch, changes) = watch(&files.store());
    let waiting = watch.changes(&KeySet::new(), Filter::all());
    let (told, ended) = channel();
    let reader = std::thread::spawn(move || {
        let all: Vec<News> = waiting.iter().collect();
        told.send(all.len()).unwrap();
    });
    files.write("user.ini", "a = 1\n");
    while watch.keys().is_empty() {
        std::thread::yield_now();
    }
    drop(watch);
    // What was not taken yet is still there.
    assert_eq!(files.next(&changes), ["/a: - -> 1@user.ini:1"]);
    assert!(changes.recv().is_err());
    assert!(matches!(
        changes.try_recv(),
        Err(TryRecvError::Disconnected)
    ));
    assert_eq!(
        changes.recv_timeout(PATIENCE).unwrap_err(),
        RecvTimeoutError::Disconnected
    );
    assert_eq!(ended.recv_timeout(PATIENCE), Ok(1));
    reader.join().unwrap();
}

/// Wakes a thread that polls.
struct Thread(std::thread::Thread, AtomicBool);

impl Wake for Thread {
    fn wake(self: Arc<Self>) {
        self.1.store(true, Ordering::Release);
        self.0.unpark();
    }
}

/// The smallest executor.
fn next_of(stream: &mut Changes) -> Option<News> {
    let thread = Arc::new(Thread(std::thread::current(), AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&thread));
    loop {
        match Pin::new(&mut *stream).poll_next(&mut Context::from_waker(&waker)) {
            Poll::Ready(news) => return news,
            Poll::Pending => {
                while !thread.1.swap(false, Ordering::AcqRel) {
                    std::thread::park_timeout(PATIENCE);
                }
            }
        }
    }
}

#[test]
fn news_is_a_stream_for_any_executor() {
    let files = Files::new("stream");
    let (watch, mut changes) = watch(&files.store());
    let (told, news) = channel();
    let task = std::thread::spawn(move || {
        while let Some(news) = next_of(&mut changes) {
            told.send(news).unwrap();
        }
    });
    for turn in 0..10 {
        files.write("user.ini", &format!("a = {turn}\n"));
        let news = news.recv_timeout(PATIENCE).unwrap();
        let value = news.changes[0]
            .new
            .as_ref()
            .map(|key| key.value().to_owned());
        assert_eq!(value, Some(turn.to_string()));
    }
    drop(watch);
    task.join().unwrap();
}

#[test]
fn callbacks_are_called_with_what_changes() {
    let files = Files::new("callbacks");
    files.write("user.ini", "a = 1\n");
    let store = files.store();
    let watch = Watch::start(&store, Pace::default()).unwrap();
    let (told, news) = channel();
    let registered = watch.on_change(&KeySet::new(), Filter::all(), move |change| {
        told.send(change).unwrap();
    });
    let next = || files.shown(&news.recv_timeout(PATIENCE).unwrap());
    // What it does not know yet comes first, though nothing happens.
    assert_eq!(next(), ["/a: - -> 1@user.ini:1"]);
    files.write("user.ini", "a = 2\n");
    assert_eq!(next(), ["/a: 1@user.ini:1 -> 2@user.ini:1"]);
    drop(registered);
    // It is gone with all that it held.
    let end = news
        .recv_timeout(Duration::ZERO)
        .map(|news| files.shown(&news));
    assert_eq!(end, Err(RecvTimeoutError::Disconnected));
}

#[test]
fn a_callback_that_panics_disturbs_nobody() {
    let files = Files::new("panics");
    let store = files.store();
    let watch = Watch::start(&store, Pace::default()).unwrap();
    let calls = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&calls);
    let _panics = watch.on_change(store.keys(), Filter::all(), move |_| {
        *counted.lock().unwrap() += 1;
        std::panic::resume_unwind(Box::new("quietly"));
    });
    let (told, news) = channel();
    let _other = watch.on_change(store.keys(), Filter::all(), move |change| {
        told.send(change).unwrap();
    });
    for turn in 0..3 {
        files.write("user.ini", &format!("a = {turn}\n"));
        news.recv_timeout(PATIENCE).unwrap();
    }
    assert_eq!(*calls.lock().unwrap(), 1);
}

#[test]
fn a_registration_waits_for_its_callback_except_in_it() {
    let files = Files::new("registration");
    let store = files.store();
    let watch = Watch::start(&store, Pace::default()).unwrap();
    let (entered, enters) = channel();
    let (go_on, may_go_on) = channel::<()>();
    let done = Arc::new(AtomicBool::new(false));
    let is_done = Arc::clone(&done);
    let slow = watch.on_change(store.keys(), Filter::all(), move |_| {
        entered.send(()).unwrap();
        may_go_on.recv().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        is_done.store(true, Ordering::Release);
    });
    files.write("user.ini", "a = 1\n");
    enters.recv_timeout(PATIENCE).unwrap();
    go_on.send(()).unwrap();
    drop(slow);
    assert!(done.load(Ordering::Acquire));

    // Inside, it cannot wait for itself, and is not called again.
    let own = Arc::new(Mutex::new(None));
    let (called, calls) = channel();
    let inside = Arc::clone(&own);
    let registration = watch.on_change(&watch.keys(), Filter::all(), move |_| {
        drop(inside.lock().unwrap().take());
        called.send(()).unwrap();
    });
    *own.lock().unwrap() = Some(registration);
    let changes = watch.changes(&watch.keys(), Filter::all());
    for turn in 2..5 {
        files.write("user.ini", &format!("a = {turn}\n"));
        files.next(&changes);
    }
    drop(watch);
    assert_eq!(calls.iter().count(), 1);
}

#[test]
fn a_callback_may_remove_another_one_that_waits() {
    let files = Files::new("another");
    let store = files.store();
    let watch = Watch::start(&store, Pace::default()).unwrap();
    let second = Arc::new(Mutex::new(None));
    let (told, news) = channel();
    let (inside, first_told) = (Arc::clone(&second), told.clone());
    let _first = watch.on_change(store.keys(), Filter::all(), move |_| {
        drop(inside.lock().unwrap().take());
        first_told.send("first").unwrap();
    });
    // Both have news in the same turn.
    let registration = watch.on_change(store.keys(), Filter::all(), move |_| {
        told.send("second").unwrap();
    });
    *second.lock().unwrap() = Some(registration);
    files.write("user.ini", "a = 1\n");
    assert_eq!(news.recv_timeout(PATIENCE), Ok("first"));
    drop(watch);
    assert!(news.try_iter().all(|who| who == "first"));
}

#[test]
fn callbacks_may_use_the_watch() {
    let files = Files::new("reentrant");
    let store = Arc::new(Mutex::new(files.store()));
    let watch = Watch::start(&store.lock().unwrap(), Pace::default()).unwrap();
    let watch = Arc::new(Mutex::new(Some(watch)));
    let (told, done) = channel();
    let inside = (Arc::clone(&watch), Arc::clone(&store));
    let registration = watch.lock().unwrap().as_ref().unwrap().on_change(
        &KeySet::new(),
        Filter::all(),
        move |_| {
            let mut watch = inside.0.lock().unwrap();
            let used = watch.as_ref().unwrap();
            let mut store = inside.1.lock().unwrap();
            let own = set("/seen", "yes");
            used.commit(&mut store, Namespace::User, &own, Strategy::Ours)
                .unwrap();
            assert!(used.keys().lookup("/seen").is_some());
            drop(used.changes(&KeySet::new(), Filter::all()));
            // The thread that is to end is this one.
            drop(watch.take());
            told.send(()).unwrap();
        },
    );
    files.write("user.ini", "a = 1\n");
    done.recv_timeout(PATIENCE).unwrap();
    drop(registration);
    assert_eq!(files.store().keys().len(), 2);
}
