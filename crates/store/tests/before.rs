//! Old names and secrets in files, through a store.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use milieu_diagnostics::Source;
use milieu_keys::{Name, Namespace};
use milieu_store::{Author, Change, Place, Schema, Store, StoreError, Strategy};

const SPECIFICATION: &str = "\
[/sw/pi/%session%/language]
was/#0 = /pi/lang/%session%
default = en

[/sw/mail/password]
secret = true
was/#0 = /mail/password

[/sw/port]
type = unsigned_short
default = 80
";

fn file(test: &str, text: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("before")
        .join(test);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("a.ini");
    fs::write(&path, text).unwrap();
    path
}

fn open(path: &Path) -> Store {
    let schema = Schema::parse(Source::new("a.spec.ini", SPECIFICATION)).unwrap();
    let store = Store::read(vec![Place::new(Namespace::User, path)]).unwrap();
    let store = store.with_schema(schema);
    store.signed(Author::of_this_process(), SystemTime::now)
}

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn value(store: &Store, name: &str) -> Option<String> {
    store.keys().lookup(name).map(|key| key.value().to_owned())
}

fn set(store: &mut Store, key: &str, value: &str) -> Result<(), StoreError> {
    let change = Change::set(name(key), value);
    store
        .commit(Namespace::User, &[change], Strategy::Refuse)
        .map(|_| ())
}

const OLD: &str = "# mine\n[/pi/lang]\nanna = de\nberta = fr\n\n[/other]\nx = 1\n";

#[test]
fn a_file_with_old_names_is_read_and_left_alone() {
    let path = file("read", OLD);
    let store = open(&path);
    assert_eq!(value(&store, "/sw/pi/anna/language").as_deref(), Some("de"));
    assert_eq!(value(&store, "/pi/lang/anna"), None);
    let origin = store
        .keys()
        .lookup("/sw/pi/anna/language")
        .unwrap()
        .origin();
    assert!(origin.to_string().ends_with("a.ini:3"), "{origin}");
    assert_eq!(store.notices().len(), 2);
    let explained = store.explain(&name("/sw/pi/berta/language"));
    assert_eq!(
        explained.winner().unwrap().key.as_ref().unwrap().value(),
        "fr"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), OLD);
}

#[test]
fn whoever_sets_a_key_of_today_takes_the_old_one_out() {
    let path = file("set", OLD);
    let mut store = open(&path);
    set(&mut store, "/sw/pi/anna/language", "it").unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(
        text,
        "# mine\n[/pi/lang]\nberta = fr\n\n[/other]\nx = 1\n\n[/sw/pi/anna]\nlanguage = it\n"
    );
    assert_eq!(value(&store, "/sw/pi/anna/language").as_deref(), Some("it"));
    // Removing it must not bring the old one back.
    let removal = [Change::remove(name("/sw/pi/berta/language"))];
    store
        .commit(Namespace::User, &removal, Strategy::Refuse)
        .unwrap();
    assert_eq!(value(&store, "/sw/pi/berta/language"), None);
    assert!(!fs::read_to_string(&path).unwrap().contains("fr"));
    // And taking that back restores what there was.
    store.undo(Namespace::User, None, Strategy::Refuse).unwrap();
    assert_eq!(
        value(&store, "/sw/pi/berta/language").as_deref(),
        Some("fr")
    );
}

#[test]
fn others_who_write_the_old_name_meanwhile_are_in_conflict() {
    let path = file("conflict", OLD);
    let mut store = open(&path);
    fs::write(&path, OLD.replace("anna = de", "anna = es")).unwrap();
    let error = set(&mut store, "/sw/pi/anna/language", "it").unwrap_err();
    let StoreError::Conflict { conflicts, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(conflicts[0].theirs.as_deref(), Some("es"), "{error}");
}

#[test]
fn migrating_leaves_nothing_to_migrate() {
    let path = file("migrate", OLD);
    let mut store = open(&path);
    let changes = store.migration(Namespace::User);
    store
        .commit(Namespace::User, &changes, Strategy::Refuse)
        .unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("[/sw/pi/anna]\nlanguage = de") && !text.contains("anna = de"),
        "{text}"
    );
    assert!(open(&path).notices().is_empty());
    assert!(store.notices().is_empty());
}

#[test]
fn a_file_that_gets_a_secret_is_private_and_the_history_does_not_know_it() {
    let path = file("secret", "[/sw]\nport = 81\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let mut store = open(&path);
    set(&mut store, "/sw/port", "82").unwrap();
    let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o644, "nothing secret yet");
    set(&mut store, "/sw/mail/password", "hunter2").unwrap();
    assert_eq!(mode(), 0o600);
    let history = fs::read_to_string(path.with_file_name(".a.ini.history")).unwrap();
    assert!(
        history.contains("/sw/mail/password") && !history.contains("hunter2"),
        "{history}"
    );
    let error = store
        .undo(Namespace::User, None, Strategy::Refuse)
        .unwrap_err();
    assert!(
        error.to_string().contains("`/sw/mail/password` is secret"),
        "{error}"
    );
    assert_eq!(
        value(&store, "/sw/mail/password").as_deref(),
        Some("hunter2")
    );
    // The short way, which replaces a value in its line.
    set(&mut store, "/sw/mail/password", "hunter3").unwrap();
    let history = fs::read_to_string(path.with_file_name(".a.ini.history")).unwrap();
    assert!(!history.contains("hunter3"), "{history}");
}
