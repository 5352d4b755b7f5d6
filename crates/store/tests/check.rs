//! Whole files checked by a specification, and secrets that nobody sees.

use std::fs;
use std::path::{Path, PathBuf};

use milieu_diagnostics::{Diagnostic, Source, render};
use milieu_keys::{Name, Namespace};
use milieu_store::{Change, Conflict, Place, Schema, Store, StoreError, ini};

const SPECIFICATION: &str = "\
[/sw/%session%/language]
type=enum
check/enum=en, de
was/#0=/lang/%session%
was/#0/convert=german -> de

[/sw/volume]
type=short
range=0-11
was/#0=/volume
was/#0/convert=* 2
was/#1=/loudness

[/sw/hosts/#/port]
type=short
check/port
default=80

[/sw/mail/password]
secret
check/length=8-64
was/#0=/mail/password

[/sw/mail/%account%/pin]
secret
type=short
was/#0=/mail/%account%/code
was/#0/convert=* 10

[/sw/hours]
removed=since 2.0 the clock decides

[/sw/motto]
deprecated=since 2.1, use /sw/%session%/language
";

fn schema() -> Schema {
    Schema::parse(Source::new("sw.spec.ini", SPECIFICATION)).unwrap()
}

fn check(text: &str) -> (Source, Vec<Diagnostic>) {
    let (document, found) = ini::Document::parse(text);
    assert!(found.is_empty(), "{text}");
    schema().check_file(&Source::new("sw.ini", text), document.keys())
}

fn shown(text: &str) -> String {
    let (source, found) = check(text);
    render(&source, &found, false)
}

#[test]
fn a_file_as_it_should_be_is_left_alone() {
    let text =
        "[/sw]\nvolume = 3\nanna/language = de\nhosts/#0/port = 80\nmail/password = 12345678\n";
    assert_eq!(shown(text), "");
}

#[test]
fn everything_wrong_with_a_file_is_said_at_once() {
    assert_eq!(
        shown(
            "\
[/sw]
volume = 12
anna/langauge = de
hosts/#0/port = 0
hours = 8
motto = onwards

[/lang]
anna = german
ben = dutch

[/]
loudness = 3
volume = 2
"
        ),
        "\
error: `/sw/volume`: `12` is out of range; give a number of 0 to 11 (rule range=0-11)
 --> sw.ini:2:10
  |
2 | volume = 12
  |          ^^ this value
  |
  = note: the rule is in sw.spec.ini:9

warning[unknown-key]: the specification has no key `/sw/anna/langauge`
 --> sw.ini:3:17
  |
3 | anna/langauge = (secret)
  |                 ^^^^^^^^ nothing reads this
  |
  = help: did you mean `/sw/anna/language`?

error: `/sw/hosts/#0/port`: `0` is not a port; give a number from 1 to 65535 (rule check/port)
 --> sw.ini:4:17
  |
4 | hosts/#0/port = 0
  |                 ^ this value
  |
  = note: the rule is in sw.spec.ini:16

warning[removed]: `/sw/hours` does nothing any more: since 2.0 the clock decides
 --> sw.ini:5:9
  |
5 | hours = 8
  |         ^
  |
  = help: remove it, or run `milieu key migrate`

warning[deprecated]: `/sw/motto` is deprecated: since 2.1, use /sw/%session%/language
 --> sw.ini:6:9
  |
6 | motto = onwards
  |         ^^^^^^^

warning[renamed]: `/lang/anna` is now `/sw/anna/language`
 --> sw.ini:9:8
  |
9 | anna = german
  |        ^^^^^^
  |
  = note: `/sw/anna/language` gets the value `de`
  = help: rename it, or run `milieu key migrate`

error[renamed]: `/lang/ben` cannot be taken as `/sw/ben/language`: `dutch` is not one of the texts allowed: en, de (rule check/enum)
  --> sw.ini:10:7
   |
10 | ben = dutch
   |       ^^^^^ this value
   |
   = help: remove it, and give `/sw/ben/language` a value that is allowed

warning[renamed]: `/loudness` does nothing beside `/sw/volume`, as it is called now
  --> sw.ini:13:12
   |
 2 | volume = 12
   |          -- this one counts
...
13 | loudness = 3
   |            ^ the old name
   |
   = help: remove it, or run `milieu key migrate`

warning[renamed]: `/volume` does nothing beside `/sw/volume`, as it is called now
  --> sw.ini:14:10
   |
 2 | volume = 12
   |          -- this one counts
...
14 | volume = 2
   |          ^ the old name
   |
   = help: remove it, or run `milieu key migrate`
"
    );
}

#[test]
fn of_several_old_names_the_first_that_is_listed_counts() {
    assert_eq!(
        shown("loudness = 3\nvolume = 4\n"),
        "\
warning[renamed]: `/loudness` does nothing beside `/sw/volume`, as it is called now
 --> sw.ini:1:12
  |
1 | loudness = 3
  |            ^ the old name
2 | volume = 4
  |          - this one counts
  |
  = help: remove it, or run `milieu key migrate`

warning[renamed]: `/volume` is now `/sw/volume`
 --> sw.ini:2:10
  |
2 | volume = 4
  |          ^
  |
  = note: `/sw/volume` gets the value `8`
  = help: rename it, or run `milieu key migrate`
"
    );
    assert_eq!(
        shown("loudness = 3\nvolume = 40\n"),
        "\
warning[renamed]: `/loudness` does nothing beside `/volume`, a later name of `/sw/volume`
 --> sw.ini:1:12
  |
1 | loudness = 3
  |            ^ the older name
2 | volume = 40
  |          -- this one is refused
  |
  = help: mend or remove `/volume` first

error[renamed]: `/volume` cannot be taken as `/sw/volume`: `80` is out of range; give a number of 0 to 11 (rule range=0-11)
 --> sw.ini:2:10
  |
2 | volume = 40
  |          ^^ this value
  |
  = help: remove it, and give `/sw/volume` a value that is allowed
"
    );
}

#[test]
fn no_diagnostic_shows_a_secret() {
    let text = "\
[/mail]
password = hunter2
anna/code = 4711
[/sw/mail]
password = hunter2 \"x\"
ben/pin = 47110815
ben/pni = 4711
carl/pin = \"\"
";
    let shown = shown(text);
    assert_eq!(
        shown,
        "\
warning[renamed]: `/mail/password` does nothing beside `/sw/mail/password`, as it is called now
 --> sw.ini:2:12
  |
2 | password = (secret)
  |            ^^^^^^^^ the old name
...
5 | password = (secret)
  |            -------- this one counts
  |
  = help: remove it, or run `milieu key migrate`

error[renamed]: `/mail/anna/code` cannot be taken as `/sw/mail/anna/pin`: `(secret)` breaks this rule; give one that keeps it (rule type=short)
 --> sw.ini:3:13
  |
3 | anna/code = (secret)
  |             ^^^^^^^^ this value
  |
  = help: remove it, and give `/sw/mail/anna/pin` a value that is allowed

error: `/sw/mail/ben/pin`: `(secret)` breaks this rule; give one that keeps it (rule type=short)
 --> sw.ini:6:11
  |
6 | ben/pin = (secret)
  |           ^^^^^^^^ this value
  |
  = note: the rule is in sw.spec.ini:26

warning[unknown-key]: the specification has no key `/sw/mail/ben/pni`
 --> sw.ini:7:11
  |
7 | ben/pni = (secret)
  |           ^^^^^^^^ nothing reads this
  |
  = help: did you mean `/sw/mail/ben/pin`?

error: `/sw/mail/carl/pin`: `(secret)` breaks this rule; give one that keeps it (rule type=short)
 --> sw.ini:8:12
  |
8 | carl/pin = (secret)
  |            ^^^^^^^^ this value
  |
  = note: the rule is in sw.spec.ini:26
"
    );
}

#[test]
fn a_refused_secret_is_shown_where_it_stands_without_its_value() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("check");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("secret.ini");
    fs::write(&path, "[/sw/mail]\npassword = hunter2\n").unwrap();
    let place = Place::new(Namespace::User, path);
    let store = Store::read(vec![place]).unwrap();
    let key = store.keys().lookup("/sw/mail/password").unwrap();
    let shown = schema().check(key).unwrap_err().to_string();
    assert!(shown.contains("2 | password = (secret)"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn errors_and_conflicts_show_no_secret() {
    let schema = schema();
    let conflict = |name: &str| Conflict {
        name: Name::parse(name).unwrap(),
        base: None,
        ours: Some("hunter2".to_owned()),
        theirs: Some("hunter3".to_owned()),
        by: None,
        secret: false,
    };
    let error = schema.redact(StoreError::Conflict {
        path: PathBuf::from("sw.ini"),
        conflicts: vec![conflict("/sw/mail/password"), conflict("/mail/anna/code")],
    });
    let shown = error.to_string();
    assert!(
        !shown.contains("hunter") && shown.contains("(secret)"),
        "{shown}"
    );
    let open = conflict("/sw/motto");
    assert_eq!(schema.redact_conflict(open.clone()), open);

    let text = "[/sw/mail]\npassword = \"hunter2\n";
    let (_, diagnostics) = ini::Document::parse(text);
    let error = schema.redact(StoreError::Text {
        source: Source::new("sw.ini", text),
        diagnostics,
    });
    let shown = error.to_string();
    assert!(
        !shown.contains("hunter") && shown.contains("sw.ini:2:"),
        "{shown}"
    );
}

#[test]
fn what_is_secret_is_known_by_every_name() {
    let schema = schema();
    for (name, secret) in [
        ("/sw/mail/password", true),
        ("/mail/password", true),
        ("/sw/mail/anna/pin", true),
        ("/mail/anna/code", true),
        ("/sw/volume", false),
        ("/sw/mail/anna/code", false),
    ] {
        assert_eq!(schema.is_secret(name), secret, "{name}");
        let set = Change::set(Name::parse(name).unwrap(), "x");
        let remove = Change::remove(Name::parse(name).unwrap());
        assert_eq!(
            schema.writes_secret(&[remove.clone(), set]),
            secret,
            "{name}"
        );
        assert!(!schema.writes_secret(&[remove]));
    }
    assert!(schema.has_secrets());
    let open = Schema::parse(Source::new("a.ini", "[/a]\nsecret=false\n")).unwrap();
    assert!(!open.has_secrets());
}
