//! The schema of the XML language: what is written and read keeps to it.
//!
//! `xmllint` validates where it is installed. Everywhere, a reader of our own
//! compares the elements and attributes of documents with those that the schema
//! declares.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::catalogue;
use milieu_diagnostics::Source;
use milieu_stream::language::{Language, schema};
use quick_xml::events::{BytesStart, Event};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/language")
        .join(name)
}

fn documents() -> Vec<PathBuf> {
    let folders = [folder("written"), folder("pass")].into_iter();
    let entries = folders.flat_map(|folder| fs::read_dir(folder).expect("a folder"));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "xml"))
        .collect()
}

#[test]
fn the_schema_is_as_it_was_read_by_people() {
    let path = folder("written").join("subscriptions.xsd");
    let written = schema(&catalogue());
    if std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1") {
        fs::write(&path, &written).expect("a writable expectation");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == expected,
        "UPDATE_EXPECT=1 accepts this:\n{written}"
    );
}

/// Whether the validator finds documents to be as the schema says; nothing
/// where there is no validator.
fn validate(documents: &[PathBuf]) -> Option<(bool, String)> {
    let output = Command::new("xmllint")
        .args(["--noout", "--nonet", "--schema"])
        .arg(folder("written").join("subscriptions.xsd"))
        .args(documents)
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Some((output.status.success(), said))
}

#[test]
fn documents_keep_to_the_schema() {
    let documents = documents();
    assert!(documents.len() > 2);
    if let Some((valid, said)) = validate(&documents) {
        assert!(valid, "{said}");
    }
    let declared = declared();
    for path in documents {
        let text = fs::read_to_string(&path).expect("a document");
        let wrong = undeclared(&text, &declared);
        assert!(wrong.is_empty(), "{}: {wrong:?}", path.display());
    }
}

#[test]
fn what_the_schema_refuses_is_refused() {
    let folder = std::env::temp_dir().join(format!("milieu-schema-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let refused = [
        r#"<subscribe><stream/></subscribe>"#,
        r#"<subscribe><stream name="a"/></subscribe>"#,
        r#"<subscribe><stream name="/a"/><filtr condition="x"/></subscribe>"#,
        r#"<subscribe><stream name="/a"/><filter conditio="x"/></subscribe>"#,
        r#"<subscribe><stream name="/a"/><filter condition="  "/></subscribe>"#,
        r#"<subscribe><stream name="/a"/><aggregate functions="men"/></subscribe>"#,
        r#"<subscribe><stream name="/a"/><aggregate functions="mean" window="10"/></subscribe>"#,
        r#"<subscribe><stream name="/a"/><aggregate window="10m"/></subscribe>"#,
        r#"<subscribe><stream name="/a"/><vote quorum="many"/></subscribe>"#,
        r#"<subscribe><stream name="/a"/><merge/><stream name="/b"/></subscribe>"#,
        r#"<subscribe overflow="drop"><stream name="/a"/></subscribe>"#,
        r#"<subscribe><use flow="b"/></subscribe>"#,
        r#"<let name="1"><stream name="/a"/></let>"#,
        r#"<let name="a"><stream name="/a"/></let><let name="a"><stream name="/a"/></let>"#,
        r#"<publish><stream name="/a"/></publish>"#,
        r#"<subscribe/>"#,
    ];
    for (at, inside) in refused.into_iter().enumerate() {
        let text = format!(
            "<subscriptions xmlns=\"urn:milieu:subscriptions:1\">{inside}</subscriptions>\n"
        );
        let path = folder.join(format!("{at}.xml"));
        fs::write(&path, &text).expect("a document");
        if let Some((valid, _)) = validate(&[path]) {
            assert!(!valid, "{inside}");
        }
        let read = Language::Xml.parse(&Source::new("refused.xml", text), &catalogue());
        assert!(read.is_err(), "{inside}");
    }
    fs::remove_dir_all(&folder).expect("a folder");
}

/// The attributes of each element, by the element's name, whatever is around it.
type Declared = BTreeMap<String, BTreeSet<String>>;

fn attribute(tag: &BytesStart, name: &str) -> Option<String> {
    let value = tag.try_get_attribute(name).expect("attributes")?;
    Some(String::from_utf8_lossy(&value.value).into_owned())
}

/// What the schema declares: elements with attributes of their own, and types
/// that they have and extend.
fn declared() -> Declared {
    let text = schema(&catalogue());
    let mut reader = quick_xml::Reader::from_str(&text);
    let (mut elements, mut types) = (BTreeMap::new(), Declared::new());
    // Names of the elements and types around what is read.
    let mut open: Vec<Option<String>> = Vec::new();
    loop {
        let event = reader.read_event().expect("a schema");
        let (Event::Start(tag) | Event::Empty(tag)) = &event else {
            match event {
                Event::End(_) => drop(open.pop()),
                Event::Eof => break,
                _ => {}
            }
            continue;
        };
        let around = open.iter().rev().flatten().next().cloned();
        let name = attribute(tag, "name");
        let mut opened = None;
        match (tag.name().0, name, around) {
            (b"xs:element", Some(name), _) => {
                let of = attribute(tag, "type").map(|of| of.replace("s:", "type "));
                let own = format!("element {name}");
                types.entry(own.clone()).or_default();
                elements.insert(name, [Some(own.clone()), of]);
                opened = Some(own);
            }
            (b"xs:complexType", Some(name), _) => opened = Some(format!("type {name}")),
            (b"xs:attribute", Some(name), Some(around)) => {
                types.entry(around).or_default().insert(name);
            }
            _ => {}
        }
        if matches!(event, Event::Start(_)) {
            open.push(opened);
        }
    }
    let with_types = elements.into_iter().map(|(name, of)| {
        let sets = of.into_iter().flatten().filter_map(|of| types.get(&of));
        (name, sets.flatten().cloned().collect())
    });
    with_types.collect()
}

/// What a document has that is not declared.
fn undeclared(text: &str, declared: &Declared) -> Vec<String> {
    let mut reader = quick_xml::Reader::from_str(text);
    let mut wrong = Vec::new();
    loop {
        let tag = match reader.read_event().expect("a document") {
            Event::Start(tag) | Event::Empty(tag) => tag,
            Event::Eof => return wrong,
            _ => continue,
        };
        let name = String::from_utf8_lossy(tag.local_name().into_inner()).into_owned();
        let Some(known) = declared.get(&name) else {
            wrong.push(name);
            continue;
        };
        for attribute in tag.attributes().flatten() {
            let attribute = String::from_utf8_lossy(attribute.key.0).into_owned();
            let is_foreign = attribute == "xmlns" || attribute.contains(':');
            if !is_foreign && !known.contains(&attribute) {
                wrong.push(format!("{name}/@{attribute}"));
            }
        }
    }
}

#[test]
fn the_reader_of_our_own_finds_what_is_not_declared() {
    let declared = declared();
    let text = "<a><filter b=\"\"/><stream name=\"\"/><subscribe capacity=\"\" x=\"\"/></a>";
    assert_eq!(
        undeclared(text, &declared),
        ["a", "filter/@b", "subscribe/@x"]
    );
}
