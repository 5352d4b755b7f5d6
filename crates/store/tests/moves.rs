//! Keys that get other names in TOML and JSON, and what is said about them.
use std::fs;
use std::path::Path;

use milieu_diagnostics::Source;
use milieu_keys::{Name, Namespace};
use milieu_store::json::Json;
use milieu_store::toml::Toml;
use milieu_store::{Format, Kind, Place, Schema, Store, Strategy};

/// The text after keys have got other names, as a commit gives them.
fn moved(format: &dyn Format, text: &str, moves: &[(&str, &str)]) -> String {
    let (mut document, found) = format.parse(text);
    assert_eq!(found, [], "{text}");
    let name = |text: &str| Name::parse(text).unwrap();
    for (from, to) in moves {
        document.moving(from, &name(to));
    }
    for (from, to) in moves {
        let value = document.get(from).expect("it is there").into_owned();
        document.set(&name(to), &value, Kind::Unknown).unwrap();
    }
    for (from, _) in moves {
        document.remove(from).unwrap();
    }
    document.moved();
    let after = document.text();
    let (again, found) = format.parse(&after);
    assert_eq!((again.text(), found), (after.clone(), vec![]), "{after}");
    after
}

#[test]
fn comments_of_toml_go_with_their_key() {
    let text = "\
# the file

title = 1 # stays

# in which language
# it speaks
language = \"de\"  # or en

[sw]
volume = 3 # loud
";
    let after = moved(&Toml, text, &[("/language", "/sw/tongue")]);
    assert_eq!(
        after,
        "\
# the file

title = 1 # stays

[sw]
volume = 3 # loud
# in which language
# it speaks
tongue = \"de\"  # or en
"
    );
}

#[test]
fn what_is_said_of_a_table_goes_above_the_table_of_its_first_key() {
    let text = "\
# the old station
[pi]
# its tongue
lang = \"de\"
hours = 3
";
    let both = [("/pi/lang", "/sw/lang"), ("/pi/hours", "/sw/hours")];
    assert_eq!(
        moved(&Toml, text, &both),
        "\
# the old station
[sw]
# its tongue
lang = \"de\"
hours = 3
"
    );
    // A table that keeps a key keeps what is said of it.
    assert_eq!(
        moved(&Toml, text, &both[..1]),
        "\
# the old station
[pi]
hours = 3

[sw]
# its tongue
lang = \"de\"
"
    );
}

#[test]
fn comments_of_json_go_with_their_key_and_object() {
    let text = "\
{
  // the old station
  \"pi\": {
    /* its tongue */
    \"lang\": \"de\" // or en
  },
  \"x\": 1, // stays
  \"sw\": {
    \"volume\": 3
  }
}
";
    assert_eq!(
        moved(&Json, text, &[("/pi/lang", "/sw/tongue")]),
        "\
{
  \"x\": 1, // stays
  // the old station
  \"sw\": {
    \"volume\": 3,
    /* its tongue */
    \"tongue\": \"de\" // or en
  }
}
"
    );
}

#[test]
fn where_there_is_no_line_comments_stand_above_it() {
    let text = "# about a\na = 1 # one\n\n[t]\nb = { c = 2 }\n";
    assert_eq!(
        moved(&Toml, text, &[("/a", "/t/b/d")]),
        "[t]\n# about a\n# one\nb = { c = 2, d = 1 }\n"
    );
    // A text of one line has none at all.
    let text = "{\"a\": 1, \"b\": 2}";
    assert_eq!(moved(&Json, text, &[("/a", "/c")]), "{\"b\": 2, \"c\": 1}");
}

#[test]
fn of_several_keys_that_one_becomes_the_first_has_its_comments() {
    let text = "# about a\na = 1\nz = 2\n";
    let (mut document, _) = Toml.parse(text);
    let names = ["/b", "/c"].map(|name| Name::parse(name).unwrap());
    names.iter().for_each(|to| document.moving("/a", to));
    for to in &names {
        document.set(to, "1", Kind::Unknown).unwrap();
    }
    document.remove("/a").unwrap();
    document.moved();
    assert_eq!(document.text(), "z = 2\n# about a\nb = 1\nc = 1\n");
    // A key that is not removed keeps them.
    let (mut document, _) = Toml.parse(text);
    document.moving("/a", &names[0]);
    document.set(&names[0], "1", Kind::Unknown).unwrap();
    document.moved();
    assert_eq!(document.text(), "# about a\na = 1\nz = 2\nb = 1\n");
}

#[test]
fn a_migration_of_a_file_takes_comments_along() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("moves");
    fs::create_dir_all(&folder).unwrap();
    let specification = "[/sw/tongue]\nwas/#0=/pi/lang\n";
    let toml = "# old\n[pi]\n# how it speaks\nlang = \"de\" # or en\n";
    let json =
        "{\n  // old\n  \"pi\": {\n    // how it speaks\n    \"lang\": \"de\" // or en\n  }\n}\n";
    for (ending, text) in [("toml", toml), ("json", json)] {
        let path = folder.join(format!("pi.{ending}"));
        fs::write(&path, text).unwrap();
        let schema = Schema::parse(Source::new("pi.spec.ini", specification)).unwrap();
        let place = Place::new(Namespace::User, &*path);
        let mut store = Store::read(vec![place]).unwrap().with_schema(schema);
        let changes = store.migration(Namespace::User);
        store
            .commit(Namespace::User, &changes, Strategy::Refuse)
            .unwrap();
        let expected = text.replace("pi", "sw").replace("lang", "tongue");
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        assert!(store.notices().is_empty());
    }
}
