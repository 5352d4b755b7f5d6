//! Stores that know which keys are secret and have no specification: nothing
//! that they say shows one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use milieu_keys::{Migration, Name, Namespace, Secrets};
use milieu_store::watch::{Filter, Pace, Watch};
use milieu_store::{Author, Change, Conflict, Place, Resolution, Store, StoreError, Strategy};

fn file(test: &str, ending: &str, text: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("secrets");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{test}.{ending}"));
    let _ = fs::remove_file(folder.join(format!(".{test}.{ending}.history")));
    fs::write(&path, text).unwrap();
    path
}

fn open(path: &Path) -> Store {
    let secrets = Secrets::new([("/mail/%account%/password", &[("secret", "")][..])]);
    let place = Place::new(Namespace::User, path.to_owned());
    Store::read(vec![place])
        .unwrap()
        .signed(Author::of_this_process(), SystemTime::now)
        .knowing(Migration::default(), secrets)
}

fn set(value: &str) -> [Change; 1] {
    [Change::set(name(), value)]
}

fn name() -> Name {
    Name::parse("/mail/anna/password").unwrap()
}

/// What is shown to people has no secret; it says that there is one.
fn assert_hidden(shown: &str) {
    assert!(!shown.contains("hunter"), "{shown}");
    assert!(shown.contains("(secret)"), "{shown}");
}

#[test]
fn conflicts_show_none_and_whoever_decides_has_it() {
    let path = file("conflict", "ini", "[/mail/anna]\npassword = hunter1\n");
    let mut store = open(&path);
    let mut other = open(&path);
    other
        .commit(Namespace::User, &set("hunter2"), Strategy::Refuse)
        .unwrap();
    let error = store
        .commit(Namespace::User, &set("hunter3"), Strategy::Refuse)
        .unwrap_err();
    assert_hidden(&error.to_string());
    assert_hidden(&format!("{error:?}"));
    let StoreError::Conflict { conflicts, .. } = &error else {
        panic!("{error}");
    };
    assert!(conflicts[0].secret);
    assert_hidden(&format!("{conflicts:?}"));

    let decide = |conflict: &Conflict| {
        assert_eq!(conflict.theirs.as_deref(), Some("hunter2"));
        Resolution::Value(Some("hunter4".to_owned()))
    };
    let commit = store
        .commit(Namespace::User, &set("hunter3"), decide)
        .unwrap();
    assert_eq!(commit.replaced[0].1.as_deref(), Some("hunter2"));
    assert_hidden(&format!("{commit:?}"));
    assert_eq!(
        store.keys().lookup(name().as_str()).unwrap().value(),
        "hunter4"
    );
    for file in [".conflict.ini.history", "conflict.ini"] {
        let text = fs::read_to_string(path.with_file_name(file)).unwrap();
        assert_eq!(text.contains("hunter"), file == "conflict.ini", "{text}");
    }
}

#[test]
fn neither_does_anything_that_is_printed_for_debugging() {
    let path = file("debug", "ini", "[/mail/anna]\npassword = hunter1\n");
    let mut store = open(&path);
    assert!(!format!("{store:?}").contains("hunter"));
    assert_hidden(&format!("{:?}", store.explain(&name())));

    let watch = Watch::start(&store, Pace::default()).unwrap();
    let changes = watch.changes(store.keys(), Filter::all());
    store
        .commit(Namespace::User, &set("hunter2"), Strategy::Refuse)
        .unwrap();
    let news = changes.recv().unwrap();
    assert_eq!(news.changes[0].new.as_ref().unwrap().value(), "hunter2");
    assert_hidden(&format!("{news:?}"));

    // Also what was noted while nobody had said that it is one.
    let unknowing = Store::read(vec![Place::new(Namespace::User, path.clone())]).unwrap();
    unknowing
        .signed(Author::of_this_process(), SystemTime::now)
        .commit(Namespace::User, &set("hunter3"), Strategy::Refuse)
        .unwrap();
    let log = open(&path).log().unwrap();
    assert!(log.iter().all(|logged| logged.record.changes[0].secret));
    assert!(!format!("{log:?}").contains("hunter"), "{log:?}");
}

/// A file that cannot be understood may have its secret in the very line.
#[test]
fn errors_show_no_line() {
    let texts = [
        ("ini", "[/mail/anna]\npassword = \"hunter2\n"),
        ("ini", "[/mail/anna]\npassword hunter2\n"),
        ("toml", "[mail.anna]\npassword = hunter2\n"),
        ("toml", "[mail.anna]\npassword = \"hunter2\n"),
        ("json", "{\"mail\": {\"anna\": {\n\"password\": hunter2}}}"),
        ("json", "{\"mail\": {\"anna\": {\n\"password\" hunter2}}}"),
        ("json", "{\"mail\": {\"anna\": {\n hunter2}}}"),
    ];
    for (ending, text) in texts {
        let path = file("text", ending, "");
        let mut store = open(&path);
        let watch = Watch::start(&store, Pace::default()).unwrap();
        let changes = watch.changes(store.keys(), Filter::all());
        fs::write(&path, text).unwrap();
        let commit = store.commit(Namespace::User, &set("x"), Strategy::Refuse);
        let edit = store.edit(&path, text, "", Strategy::Refuse);
        let news = changes.recv().unwrap();
        assert!(!format!("{news:?}").contains("hunter"), "{news:?}");
        for error in [commit.unwrap_err(), edit.unwrap_err()] {
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("hunter"), "{shown}");
            assert!(shown.contains(&format!("text.{ending}:2:")), "{shown}");
        }
    }
}
