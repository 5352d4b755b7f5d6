//! Stores with a specification: what it refuses, what it adds to the cascade.

use std::fs;
use std::path::{Path, PathBuf};

use milieu_diagnostics::Source;
use milieu_keys::{Key, Name, Namespace, SourceOf};
use milieu_store::{
    Change, Conflict, HostFiles, Place, Resolution, Schema, Store, StoreError, Strategy, Via,
};

const SPECIFICATION: &str = "\
[/sw/%session%/%room%/volume]
type=long
check/range=0-11
default=5
opt=v
opt/long=volume
env/#0=VOLUME
override/#0=/sw/%room%/loud
fallback/#0=/sw/%session%/volume
fallback/#1=/sw/%missing%/volume

[/sw/%a%/loud]
identifier=loud
type=long

[/sw/%a%/volume]
identifier=quiet
type=long

[/sw/%session%/hall/volume]
identifier=hall
type=long
check/range=0-99
default=7

[/device]
check/path=directory
default=/tmp
";

fn schema() -> Schema {
    Schema::parse(Source::new("station.spec.ini", SPECIFICATION)).unwrap()
}

fn store(test: &str, text: &str) -> Store {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schema");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{test}.ini"));
    fs::write(&path, text).unwrap();
    let place = Place::new(Namespace::User, path);
    Store::read(vec![place]).unwrap().with_schema(schema())
}

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn shown(key: Option<Key>) -> Option<(String, Namespace, u32)> {
    key.map(|key| (key.value().to_owned(), key.namespace(), key.origin().line))
}

#[test]
fn defaults_are_keys_without_layers_and_values_of_names_with_them() {
    let store = store("defaults", "");
    let key = store.keys().lookup("/sw/%/%/volume").unwrap();
    assert_eq!((key.value(), key.namespace()), ("5", Namespace::Default));
    assert_eq!(key.origin().to_string(), "default of the specification");
    assert_eq!(key.origin().line, 4);
    assert_eq!(
        shown(store.lookup(&name("/sw/anna/kitchen/volume"))),
        Some(("5".to_owned(), Namespace::Default, 4))
    );
    assert_eq!(store.lookup(&name("/undeclared")), None);
}

#[test]
fn of_several_declarations_the_one_with_fewest_placeholders_counts() {
    let store = store("declarations", "");
    let hall = store.lookup(&name("/sw/anna/hall/volume"));
    assert_eq!(hall.map(|key| key.value().to_owned()), Some("7".to_owned()));
    let change = Change::set(name("/sw/anna/hall/volume"), "50");
    let mut store = store;
    store
        .commit(Namespace::User, &[change], Strategy::Refuse)
        .unwrap();
}

#[test]
fn what_a_function_decides_for_keeps_the_rules_or_nothing_is_written() {
    let before = "/sw/anna/kitchen/volume = 2\n";
    let mut store = store("decided", before);
    let path = store.places().next().unwrap().path.clone();
    let theirs = before.replace('2', "3");
    fs::write(&path, &theirs).unwrap();
    let changes = [
        Change::set(name("/sw/ben/kitchen/volume"), "1"),
        Change::set(name("/sw/anna/kitchen/volume"), "4"),
    ];
    let decide = |value: &'static str| {
        move |_: &Conflict| Resolution::Value((!value.is_empty()).then(|| value.to_owned()))
    };
    let error = store
        .commit(Namespace::User, &changes, decide("12"))
        .unwrap_err();
    assert!(matches!(error, StoreError::Refused { .. }), "{error}");
    let text = error.to_string();
    for part in [
        "/sw/anna/kitchen/volume",
        "12",
        "check/range=0-11",
        "station.spec.ini",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), theirs);
    store
        .commit(Namespace::User, &changes, decide("11"))
        .unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains("= 11\n"));
}

#[test]
fn overrides_come_first_and_fallbacks_before_the_default() {
    let of = |test: &str, text: &str| {
        let key = store(test, text).lookup(&name("/sw/anna/kitchen/volume"));
        key.map(|key| key.value().to_owned()).unwrap()
    };
    let own = "[/sw/anna/kitchen]\nvolume = 1\n";
    let fallback = "/sw/anna/volume = 2\n";
    let layer_of_its_own = "/sw/%/volume = 3\n";
    let overriding = "/sw/kitchen/loud = 4\n";
    assert_eq!(of("own", own), "1");
    assert_eq!(of("fallback", fallback), "2");
    assert_eq!(of("inactive", layer_of_its_own), "3");
    assert_eq!(of("two", &[layer_of_its_own, fallback].concat()), "2");
    assert_eq!(of("override", &[overriding, fallback, own].concat()), "4");
    assert_eq!(of("none", ""), "5");
}

#[test]
fn explaining_names_every_way_to_a_value() {
    let explanation =
        store("ways", "/sw/anna/volume = 2\n").explain(&name("/sw/anna/kitchen/volume"));
    let ways: Vec<_> = explanation
        .candidates
        .iter()
        .map(|candidate| {
            (
                candidate.via,
                candidate.name.as_str(),
                candidate.key.is_some(),
            )
        })
        .collect();
    assert_eq!(
        ways,
        [
            (Via::Override, "/sw/kitchen/loud", false),
            (Via::Name, "/sw/anna/kitchen/volume", false),
            (Via::Fallback, "/sw/anna/volume", true),
            (Via::Fallback, "/sw/%/volume", false),
            (Via::Name, "/sw/anna/kitchen/volume", true),
        ]
    );
    assert_eq!(
        explanation.inputs,
        [
            SourceOf::Option("-v".to_owned()),
            SourceOf::Option("--volume".to_owned()),
            SourceOf::Variable("VOLUME".to_owned()),
        ]
    );
}

#[test]
fn a_commit_with_one_bad_value_writes_nothing() {
    let mut store = store("refused", "# mine\n");
    let changes = [
        Change::set(name("/sw/anna/kitchen/volume"), "3"),
        Change::set(name("/sw/anna/kitchen/volume/x"), "3"),
        Change::set(name("/sw/ben/kitchen/volume"), "12"),
        Change::remove(name("/undeclared")),
    ];
    let error = store
        .commit(Namespace::User, &changes, Strategy::Ours)
        .unwrap_err();
    let StoreError::Refused { diagnostics, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(diagnostics.len(), 2);
    assert_eq!(
        error.to_string(),
        "\
error: the specification has no key `/sw/anna/kitchen/volume/x`
 --> station.spec.ini
  = help: declare it there, or mend the name

error: `/sw/ben/kitchen/volume`: `12` is out of range; give a number of 0 to 11 (rule check/range=0-11)
 --> station.spec.ini:3:1
  |
3 | check/range=0-11
  | ^^^^^^^^^^^^^^^^ by this rule"
    );
    let path: PathBuf = store.places().map(|place| place.path.clone()).collect();
    assert_eq!(fs::read_to_string(path).unwrap(), "# mine\n");
}

#[test]
fn a_bad_value_in_a_file_is_shown_there() {
    let store = store("bad-value", "[/sw/anna/kitchen]\nvolume = eleven\n");
    let key = store.lookup(&name("/sw/anna/kitchen/volume")).unwrap();
    let text = store.schema().unwrap().check(&key).unwrap_err().to_string();
    assert!(text.contains("bad-value.ini:2:10"), "{text}");
    assert!(text.contains("volume = eleven"), "{text}");
    assert!(text.contains("the rule is in station.spec.ini:2"), "{text}");
}

#[test]
fn rules_about_paths_ask_the_files_that_are_handed_in() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let files = HostFiles {
        home: Some(folder.to_owned()),
    };
    let seen = schema().with_files(files);
    let blind = schema();
    let check = |schema: &Schema, path: &str| {
        let mut store = store("paths", "").with_schema(schema.clone());
        let change = Change::set(name("/device"), path);
        store
            .commit(Namespace::User, &[change], Strategy::Refuse)
            .is_ok()
    };
    assert!(check(&seen, "~") && check(&seen, folder.to_str().unwrap()));
    assert!(!check(&seen, "~/nowhere") && !check(&seen, "/dev/null"));
    assert!(check(&blind, "/dev/null"), "the form alone is right");
    assert!(!check(&blind, "relative"));
}

#[test]
fn a_specification_with_errors_is_none() {
    let error = Schema::parse(Source::new("s.ini", "[/a]\ntype=lnog\n[/b\n")).unwrap_err();
    let StoreError::Text { diagnostics, .. } = &error else {
        panic!("{error}")
    };
    assert!(diagnostics.len() >= 2, "{error}");
}
