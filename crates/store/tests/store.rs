//! The store with real files: cascade, commit, merge, links, permissions, errors.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use milieu_keys::{Key, Name, Namespace};
use milieu_store::{Change, Locations, Place, Store, StoreError, Strategy};

/// A folder of one test's own, empty at the start.
fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("store")
        .join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn locations(folder: &Path) -> Locations {
    Locations {
        user: Some(folder.join("user")),
        system: vec![folder.join("x"), folder.join("y")],
        etc: folder.join("etc"),
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn open(folder: &Path) -> Store {
    Store::open("app", &locations(folder)).unwrap()
}

fn open_file(path: &Path) -> Store {
    Store::read(vec![Place::new(Namespace::User, path.to_owned())]).unwrap()
}

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn set(store: &mut Store, key: &str, value: &str) {
    store
        .commit(
            Namespace::User,
            &[Change::set(name(key), value)],
            Strategy::Refuse,
        )
        .unwrap();
}

/// Value and origin of the key that wins, with the folder cut off.
fn found(store: &Store, folder: &Path, key: &str) -> Option<(String, String)> {
    let shown = |key: &Key| {
        let origin = key.origin().to_string();
        (
            key.value().to_owned(),
            origin.replace(&format!("{}/", folder.display()), ""),
        )
    };
    store.keys().lookup(key).map(shown)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn the_first_file_of_the_cascade_wins_and_every_value_knows_its_line() {
    let folder = folder("cascade");
    write(&folder.join("user/app/app.ini"), "# user\n[/a]\nx = user\n");
    write(&folder.join("x/app/app.ini"), "a/x = first\na/y = first\n");
    write(
        &folder.join("y/app/app.ini"),
        "\n/a/x = second\n/a/y = second\n/a/z = second\n",
    );
    write(&folder.join("etc/app.ini"), "[/a]\nz = etc\nw = etc\n");
    let store = open(&folder);
    let of = |key| found(&store, &folder, key).unwrap();
    assert_eq!(of("/a/x"), ("user".into(), "user/app/app.ini:3".into()));
    assert_eq!(of("/a/y"), ("first".into(), "x/app/app.ini:2".into()));
    assert_eq!(of("/a/z"), ("second".into(), "y/app/app.ini:4".into()));
    assert_eq!(of("/a/w"), ("etc".into(), "etc/app.ini:3".into()));
    assert_eq!(
        store.keys().get(Namespace::System, "/a/x").map(Key::value),
        Some("first")
    );
}

#[test]
fn explaining_shows_every_candidate_in_order() {
    let folder = folder("explain");
    write(&folder.join("x/app/app.ini"), "a = first\n");
    write(&folder.join("etc/app.ini"), "a = etc\nb = 1\n");
    let explanation = open(&folder).explain(&name("/a"));
    let rows: Vec<_> = explanation
        .candidates
        .iter()
        .map(|c| {
            (
                c.namespace,
                c.exists,
                c.key
                    .as_ref()
                    .map(|key| (key.value().to_owned(), key.origin().line)),
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            (Namespace::User, false, None),
            (Namespace::System, true, Some(("first".to_owned(), 1))),
            (Namespace::System, false, None),
            (Namespace::System, true, Some(("etc".to_owned(), 1))),
        ]
    );
    assert_eq!(
        explanation
            .winner()
            .and_then(|c| c.key.as_ref())
            .map(Key::value),
        Some("first")
    );
    assert_eq!(open(&folder).lookup(&name("/nothing")), None);
}

#[test]
fn no_files_are_an_empty_store() {
    let folder = folder("missing");
    assert!(open(&folder).keys().is_empty());
    assert!(!folder.join("user").exists(), "opening makes nothing");
}

#[test]
fn new_files_of_the_user_are_private_and_those_of_the_system_are_not() {
    let folder = folder("private");
    let mut store = open(&folder);
    set(&mut store, "/a/x", "1");
    assert_eq!(
        fs::read_to_string(folder.join("user/app/app.ini")).unwrap(),
        "[/a]\nx = 1\n"
    );
    assert_eq!(mode(&folder.join("user/app/app.ini")), 0o600);
    assert_eq!(mode(&folder.join("user/app/.app.ini.lock")), 0o600);
    assert_eq!(mode(&folder.join("user/app")), 0o700);
    assert_eq!(mode(&folder.join("user")), 0o700);
    store
        .commit(
            Namespace::System,
            &[Change::set(name("/a/y"), "2")],
            Strategy::Refuse,
        )
        .unwrap();
    assert_eq!(mode(&folder.join("x/app/app.ini")) & 0o600, 0o600);
    assert_eq!(
        mode(&folder.join("x/app/app.ini")) & 0o133,
        0,
        "as public as the mask lets it be, and no more"
    );
}

#[test]
fn permissions_of_a_file_stay() {
    let folder = folder("permissions");
    let path = folder.join("a.ini");
    write(&path, "a = 1\n");
    for kept in [0o640, 0o604, 0o444] {
        fs::set_permissions(&path, fs::Permissions::from_mode(kept)).unwrap();
        set(&mut open_file(&path), "/a", &format!("{kept}"));
        assert_eq!(mode(&path), kept);
    }
}

#[test]
fn a_symbolic_link_stays_and_its_target_is_replaced() {
    let folder = folder("links");
    write(&folder.join("real/a.ini"), "a = 1\n");
    symlink("real/a.ini", folder.join("link.ini")).unwrap();
    symlink(folder.join("link.ini"), folder.join("link-to-link.ini")).unwrap();
    set(&mut open_file(&folder.join("link-to-link.ini")), "/a", "2");
    assert_eq!(
        fs::read_to_string(folder.join("real/a.ini")).unwrap(),
        "a = 2\n"
    );
    assert!(folder.join("link.ini").is_symlink());
    assert!(folder.join("link-to-link.ini").is_symlink());
    assert!(
        folder.join("real/.a.ini.lock").exists(),
        "the lock is beside the file that is written"
    );

    symlink("real/new.ini", folder.join("dangling.ini")).unwrap();
    set(&mut open_file(&folder.join("dangling.ini")), "/a", "3");
    assert_eq!(
        fs::read_to_string(folder.join("real/new.ini")).unwrap(),
        "/a = 3\n"
    );
    assert!(folder.join("dangling.ini").is_symlink());
}

#[test]
fn links_that_lead_nowhere_are_errors() {
    let folder = folder("bad-links");
    symlink("missing/a.ini", folder.join("a.ini")).unwrap();
    let mut store = open_file(&folder.join("a.ini"));
    let error = store
        .commit(
            Namespace::User,
            &[Change::set(name("/a"), "1")],
            Strategy::Refuse,
        )
        .unwrap_err();
    assert!(
        error.to_string().contains("mend the symbolic link"),
        "{error}"
    );
    assert!(!folder.join("missing").exists());

    symlink("loop.ini", folder.join("loop.ini")).unwrap();
    let error =
        Store::read(vec![Place::new(Namespace::User, folder.join("loop.ini"))]).unwrap_err();
    assert!(error.to_string().contains("in a circle"), "{error}");
}

#[test]
fn writers_of_different_keys_lose_nothing() {
    let folder = folder("disjoint");
    let path = folder.join("a.ini");
    write(&path, "# ours\n[/a]\nx = 0\n\n[/b]\ny = 0\n");
    let (mut first, mut second) = (open_file(&path), open_file(&path));
    set(&mut first, "/a/x", "1");
    set(&mut second, "/b/y", "2");
    set(&mut first, "/c/z", "3");
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "# ours\n[/a]\nx = 1\n\n[/b]\ny = 2\n\n[/c]\nz = 3\n"
    );
    assert_eq!(
        found(&first, &folder, "/b/y").unwrap().0,
        "2",
        "a commit brings what others wrote"
    );
    assert_eq!(found(&first, &folder, "/c/z").unwrap().1, "a.ini:9");
}

#[test]
fn writers_of_the_same_key_are_told_or_decided() {
    let folder = folder("conflict");
    let path = folder.join("a.ini");
    write(&path, "x = 0\ny = 0\n");
    let mut late = open_file(&path);
    let mut early = open_file(&path);
    set(&mut early, "/x", "theirs");
    early
        .commit(
            Namespace::User,
            &[Change::remove(name("/y"))],
            Strategy::Refuse,
        )
        .unwrap();

    let changes = [
        Change::set(name("/x"), "ours"),
        Change::set(name("/y"), "ours"),
        Change::set(name("/z"), "ours"),
    ];
    let error = late
        .commit(Namespace::User, &changes, Strategy::Refuse)
        .unwrap_err();
    let StoreError::Conflict { conflicts, .. } = &error else {
        panic!("{error}")
    };
    let of = |value: &str| Some(value.to_owned());
    let seen: Vec<_> = conflicts
        .iter()
        .map(|c| (c.name.as_str(), &c.base, &c.ours, &c.theirs))
        .collect();
    assert_eq!(
        seen,
        [
            ("/x", &of("0"), &of("ours"), &of("theirs")),
            ("/y", &of("0"), &of("ours"), &None)
        ]
    );
    let text = error.to_string();
    assert!(
        text.contains("it was `0`; the other process made it `theirs`; you make it `ours`"),
        "{text}"
    );
    assert!(text.contains("the other process made it absent"), "{text}");
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "x = theirs\n",
        "nothing is written"
    );

    let commit = late
        .clone()
        .commit(Namespace::User, &changes, Strategy::Theirs)
        .unwrap();
    assert_eq!(commit.replaced, [(name("/z"), None)]);
    assert_eq!(commit.conflicts.len(), 2);
    assert_eq!(fs::read_to_string(&path).unwrap(), "x = theirs\nz = ours\n");
    let commit = late
        .commit(Namespace::User, &changes, Strategy::Ours)
        .unwrap();
    assert_eq!(
        commit.replaced,
        [(name("/x"), of("theirs")), (name("/y"), None)]
    );
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "x = ours\nz = ours\ny = ours\n"
    );
}

#[test]
fn threads_that_commit_at_once_lose_nothing() {
    let folder = folder("threads");
    let path = folder.join("a.ini");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let mut store = open_file(path).with_patience(Duration::from_secs(120));
                for number in 0..25 {
                    set(&mut store, &format!("/thread{thread}/key{number}"), "x");
                }
            });
        }
    });
    assert_eq!(open_file(&path).keys().len(), 8 * 25);
    assert_eq!(
        fs::read_dir(&folder).unwrap().count(),
        2,
        "the file and its lock"
    );
}

#[test]
fn a_key_is_changed_where_it_stands_and_its_removal_uncovers_the_next() {
    let folder = folder("where");
    write(&folder.join("x/app/app.ini"), "a = first\n");
    write(&folder.join("etc/app.ini"), "a = etc\nb = etc\n");
    let mut store = open(&folder);
    let mut commit = |changes: &[Change]| {
        store
            .commit(Namespace::System, changes, Strategy::Refuse)
            .unwrap()
    };
    commit(&[
        Change::set(name("/b"), "changed"),
        Change::set(name("/c"), "new"),
    ]);
    assert_eq!(
        fs::read_to_string(folder.join("etc/app.ini")).unwrap(),
        "a = etc\nb = changed\n"
    );
    assert_eq!(
        fs::read_to_string(folder.join("x/app/app.ini")).unwrap(),
        "a = first\nc = new\n"
    );
    commit(&[Change::remove(name("/a"))]);
    assert_eq!(
        found(&store, &folder, "/a"),
        Some(("etc".into(), "etc/app.ini:1".into()))
    );
    store
        .commit(
            Namespace::System,
            &[Change::remove(name("/a"))],
            Strategy::Refuse,
        )
        .unwrap();
    assert_eq!(found(&store, &folder, "/a"), None);
}

#[test]
fn a_commit_that_changes_nothing_writes_nothing() {
    let folder = folder("nothing");
    let path = folder.join("a.ini");
    write(&path, "a = 1\n");
    let before = fs::metadata(&path).unwrap().ino();
    let mut store = open_file(&path);
    set(&mut store, "/a", "1");
    store
        .commit(
            Namespace::User,
            &[Change::remove(name("/b"))],
            Strategy::Refuse,
        )
        .unwrap();
    assert_eq!(fs::metadata(&path).unwrap().ino(), before);
}

#[test]
fn what_cannot_be_read_is_an_error_that_names_file_and_line() {
    let folder = folder("unreadable");
    let read =
        |file: &str| Store::read(vec![Place::new(Namespace::User, folder.join(file))]).unwrap_err();
    fs::create_dir(folder.join("folder.ini")).unwrap();
    assert!(
        read("folder.ini")
            .to_string()
            .contains("a folder stands where the file should be")
    );
    write(&folder.join("plain"), "");
    assert!(
        read("plain/a.ini")
            .to_string()
            .contains("a part of the path is a file and no folder")
    );
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        folder.join("pipe.ini"),
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .unwrap();
    assert!(
        read("pipe.ini")
            .to_string()
            .contains("it is not an ordinary file")
    );
    fs::write(folder.join("latin1.ini"), b"a = 1\nb = gr\xfc\xdf\n").unwrap();
    let text = read("latin1.ini").to_string();
    assert!(
        text.contains("the byte 0xfc is not UTF-8") && text.contains("latin1.ini:2:7"),
        "{text}"
    );
    write(&folder.join("half.ini"), "[/a]\nx = 1\nlangua");
    let text = read("half.ini").to_string();
    assert!(
        text.contains("half.ini:3:1") && text.contains("no `=` here"),
        "{text}"
    );
}

#[test]
fn a_file_that_broke_meanwhile_is_not_written() {
    let folder = folder("broken");
    let path = folder.join("a.ini");
    write(&path, "a = 1\n");
    let mut store = open_file(&path);
    write(&path, "a = 1\n[half");
    let error = store
        .commit(
            Namespace::User,
            &[Change::set(name("/b"), "2")],
            Strategy::Ours,
        )
        .unwrap_err();
    assert!(
        error.to_string().contains("the section is not closed"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "a = 1\n[half");
    assert_eq!(store.keys().len(), 1);
}

#[test]
fn who_holds_the_lock_too_long_is_named() {
    let folder = folder("lock");
    let path = folder.join("a.ini");
    let lock = fs::File::create(folder.join(".a.ini.lock")).unwrap();
    fs::write(folder.join(".a.ini.lock"), "4711\n").unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let mut store = open_file(&path).with_patience(Duration::from_millis(20));
    let error = store
        .commit(
            Namespace::User,
            &[Change::set(name("/a"), "1")],
            Strategy::Refuse,
        )
        .unwrap_err();
    assert!(
        error.to_string().contains("process 4711 has kept"),
        "{error}"
    );
    assert!(!path.exists());
    drop(lock);
    set(&mut store, "/a", "1");
}

#[test]
fn without_a_home_reading_works_and_writing_says_what_is_missing() {
    let folder = folder("homeless");
    let mut locations = locations(&folder);
    locations.user = None;
    write(&folder.join("etc/app.ini"), "a = etc\n");
    let mut store = Store::open("app", &locations).unwrap();
    assert_eq!(found(&store, &folder, "/a").unwrap().0, "etc");
    let error = store
        .commit(
            Namespace::User,
            &[Change::set(name("/a"), "1")],
            Strategy::Refuse,
        )
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("HOME is not set to an absolute path"),
        "{error}"
    );
    let error = store
        .commit(
            Namespace::Proc,
            &[Change::set(name("/a"), "1")],
            Strategy::Refuse,
        )
        .unwrap_err();
    assert!(error.to_string().contains("namespace `proc`"), "{error}");
}

#[test]
#[cfg(feature = "json")]
fn an_array_can_go_at_once_and_become_a_value() {
    let path = folder("arrays").join("a.json");
    write(&path, r#"{"hosts": ["a", "b", "c"], "x": 1}"#);
    let mut store = open_file(&path);
    let element = |index| Change::remove(name(&format!("/hosts/#{index}")));
    let mut changes: Vec<Change> = (0..3).map(element).collect();
    changes.push(Change::set(name("/hosts"), "none"));
    store
        .commit(Namespace::User, &changes, Strategy::Refuse)
        .unwrap();
    let keys = store.keys().iter();
    let keys: Vec<(&str, &str)> = keys.map(|key| (key.name(), key.value())).collect();
    assert_eq!(keys, [("/hosts", "none"), ("/x", "1")]);
}
