//! All files of an application at once: what is wrong with each.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use milieu_diagnostics::{Source, render};
use milieu_keys::{Name, Namespace};
use milieu_store::inspect::{Inspected, Inspection, inspect};
use milieu_store::{Place, Schema};

const SPECIFICATION: &str = "\
[/sw/port]
type=unsigned_short
check/range=1024-65535
default=8080

[/sw/mail/password]
secret
check/length=0-6

[/sw/mail/%account%/user]
require

[/sw/name]
was/#0=/sw/title
";

fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("inspect")
        .join(test);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

fn place(path: PathBuf, mount: &str) -> Place {
    Place::new(Namespace::User, path).at(Name::parse(mount).unwrap())
}

fn schema() -> Schema {
    Schema::parse(Source::new("a.spec.ini", SPECIFICATION)).unwrap()
}

/// What is said of a file, without the folder.
fn said(file: &Inspected, folder: &Path) -> String {
    let text = render(&file.source, &file.diagnostics, false);
    text.replace(&format!("{}/", folder.display()), "")
}

#[test]
fn every_file_is_looked_at_whatever_the_others_are() {
    let folder = folder("all");
    write(&folder.join("broken.ini"), "a = 1\nb\nc\n");
    write(&folder.join("fine.ini"), "a = 1\n");
    fs::write(folder.join("binary.ini"), b"a = \xff\n").unwrap();
    let names = [
        "broken.ini",
        "none.ini",
        "fine.ini",
        "binary.ini",
        "fine.ini",
    ];
    let places = names.map(|name| place(folder.join(name), "/"));
    let Inspection { files, missing } = inspect(&places, None);
    let found = files.iter().map(|file| {
        let name = file.place.path.file_name().unwrap().to_str().unwrap();
        (name, file.keys, file.diagnostics.len())
    });
    assert_eq!(
        found.collect::<Vec<_>>(),
        [
            ("broken.ini", None, 2),
            ("fine.ini", Some(1), 0),
            ("binary.ini", None, 1)
        ]
    );
    assert!(missing.is_empty());
}

#[test]
fn what_the_specification_says_comes_in_the_order_of_the_text_and_without_secrets() {
    let folder = folder("specification");
    write(
        &folder.join("a.ini"),
        "[/sw]\nport = 80\ntitle = x\nmail/password = hunter2\nmail/passwrd = hunter2\n",
    );
    let inspection = inspect(&[place(folder.join("a.ini"), "/")], Some(&schema()));
    let said = said(&inspection.files[0], &folder);
    assert!(!said.contains("hunter2"), "{said}");
    let at = |text: &str| said.find(text).unwrap_or_else(|| panic!("{text}: {said}"));
    assert!(at("a.ini:2:8") < at("a.ini:3:9"), "{said}");
    assert!(at("a.ini:3:9") < at("a.ini:4:17"), "{said}");
    assert!(at("a.ini:4:17") < at("a.ini:5:16"), "{said}");
    assert!(said.contains("(rule check/length=0-6)"), "{said}");
    let missing = render(schema().source(), &inspection.missing, false);
    assert_eq!(
        missing,
        "\
warning[missing]: no file gives `/sw/mail/%account%/user` a value, and somebody has to
  --> a.spec.ini:10:2
   |
10 | [/sw/mail/%account%/user]
   |  ^^^^^^^^^^^^^^^^^^^^^^^ rule require
"
    );
}

#[test]
fn a_key_that_somebody_gives_is_not_missing() {
    let folder = folder("given");
    write(&folder.join("a.ini"), "x = 1\n");
    write(&folder.join("mail.ini"), "anna/user = anna\n");
    let places = [
        place(folder.join("a.ini"), "/"),
        place(folder.join("mail.ini"), "/sw/mail"),
    ];
    assert!(inspect(&places, Some(&schema())).missing.is_empty());
    // Nobody knows what a file has that cannot be understood.
    write(&folder.join("mail.ini"), "anna/user\n");
    assert!(inspect(&places, Some(&schema())).missing.is_empty());
}

#[test]
fn keys_under_another_mount_point_are_told_of_and_do_not_count() {
    let folder = folder("hidden");
    write(
        &folder.join("a.ini"),
        "[/sw]\nport = 80\nmail/password = hunter2\n",
    );
    write(&folder.join("sw.ini"), "port = 8080\n");
    let places = [
        place(folder.join("a.ini"), "/"),
        place(folder.join("sw.ini"), "/sw"),
    ];
    for schema in [None, Some(schema())] {
        let inspection = inspect(&places, schema.as_ref());
        let said = said(&inspection.files[0], &folder);
        let first = "\
warning[hidden]: `/sw/port` does nothing: another file is mounted at `/sw`
 --> a.ini:2:8
  |
2 | port = 80
  |        ^^ nothing reads this
  |
  = note: /sw is in sw.ini
  = help: move the key there, or remove it here
";
        assert!(said.starts_with(first), "{said}");
        assert_eq!(said.contains("hunter2"), schema.is_none(), "{said}");
        assert_eq!(inspection.files[0].diagnostics.len(), 2);
        assert!(inspection.files[1].diagnostics.is_empty());
    }
}

#[test]
fn secrets_that_others_may_read_are_told_of() {
    let folder = folder("exposed");
    let path = folder.join("a.ini");
    write(&path, "[/sw]\nmail/password = horse\n");
    let look = || {
        said(
            &inspect(&[place(path.clone(), "/")], Some(&schema())).files[0],
            &folder,
        )
    };
    assert_eq!(look(), "");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(
        look(),
        "\
warning[exposed]: others than its owner may read the file, and `/sw/mail/password` is secret
 --> a.ini:2:17
  |
2 | mail/password = (secret)
  |                 ^^^^^^^^ the secret
  |
  = help: `chmod 600 a.ini`
"
    );
}

#[test]
fn the_lines_of_a_file_that_may_hold_secrets_are_not_shown() {
    let folder = folder("broken");
    write(&folder.join("a.ini"), "[/sw]\nmail/password hunter2\n");
    let inspection = inspect(&[place(folder.join("a.ini"), "/")], Some(&schema()));
    let said = said(&inspection.files[0], &folder);
    assert!(
        said.contains("a.ini:2:1") && !said.contains("hunter2"),
        "{said}"
    );
}

#[test]
fn an_element_that_none_stands_before_is_found() {
    let folder = folder("gaps");
    write(
        &folder.join("a.ini"),
        "[/sw]\nhosts/#0 = a\nhosts/#2 = c\nhosts/#3 = d\nfine/#0 = a\nfine/#1 = b\nfine/#1/port = 1\n",
    );
    // The other file of the namespace has what is missing here.
    write(
        &folder.join("b.ini"),
        "[/sw]\nrooms/#1 = b\nlists/#0/#1 = x\n",
    );
    write(&folder.join("c.ini"), "[/sw]\nrooms/#0 = a\n");
    // Direct elements have to be of one namespace; keys of elements have not.
    write(
        &folder.join("d.ini"),
        "[/sw]\nrooms/#2 = c\nfine/#2/port = 2\nfine/#_10/port = 3\nfine/#_11/port = 3\n",
    );
    let mut places = ["a.ini", "b.ini", "c.ini", "d.ini"].map(|name| place(folder.join(name), "/"));
    places[3].namespace = Namespace::System;
    let Inspection { files, .. } = inspect(&places, None);
    assert_eq!(
        said(&files[0], &folder),
        "\
warning[gap]: `/sw/hosts/#2` is no part of its array, which ends before `/sw/hosts/#1`
 --> a.ini:3:12
  |
3 | hosts/#2 = c
  |            ^ behind the gap
  |
  = help: set `/sw/hosts/#1`, or number the elements without a gap
"
    );
    let said: Vec<String> = files[1..].iter().map(|file| said(file, &folder)).collect();
    let [lists, none, system] = &said[..] else {
        panic!("{said:?}");
    };
    assert!(
        lists.contains("`/sw/lists/#0/#1` is no part of its array"),
        "{lists}"
    );
    assert!(
        lists.contains("set `/sw/lists/#0/#0`") && !lists.contains("rooms"),
        "{lists}"
    );
    assert_eq!(none, "");
    assert!(
        system.contains("before `/sw/rooms/#0`\n --> d.ini:2:12\n"),
        "{system}"
    );
    assert!(
        system.contains("before `/sw/fine/#3`\n --> d.ini:4:18\n"),
        "{system}"
    );
    assert_eq!(system.matches("warning").count(), 2, "{system}");
}
