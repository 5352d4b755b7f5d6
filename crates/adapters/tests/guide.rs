//! The guide to the sources says what the program has.

use std::fmt::Write;

use milieu_adapters::catalogue;

const GUIDE: &str = include_str!("../../../docs/sources.md");

/// The table of all sources, and a list of their parameters.
fn sources() -> String {
    let mut text = "| Source | Publishes | Events | Needs |\n|---|---|---|---|\n".to_owned();
    for source in catalogue::all() {
        let (name, summary, events) = (source.name, source.summary, source.events);
        let summary = summary.trim_end_matches('.');
        let row = format!("| `{name}` | {summary} | {events} | {} |", source.needs);
        writeln!(text, "{}", row.replace("|  |", "| |")).unwrap();
    }
    text.push_str("\n| Parameter | | Default |\n|---|---|---|\n");
    for source in catalogue::all() {
        for parameter in source.parameters {
            let default = match parameter.default {
                None => "must be given".to_owned(),
                Some("") => String::new(),
                Some(default) => format!("`{default}`"),
            };
            let (name, summary) = (parameter.name, parameter.summary);
            let row = format!("| `{} {name}` | {summary} | {default} |", source.name);
            writeln!(text, "{}", row.replace("|  |", "| |")).unwrap();
        }
    }
    text
}

#[test]
fn the_guide_has_every_source_and_parameter() {
    let (_, rest) = GUIDE.split_once("<!-- sources -->\n\n").unwrap();
    let (said, _) = rest.split_once("\n## ").unwrap();
    let sources = sources();
    assert!(said == sources, "write into the guide:\n{sources}");
}

#[test]
fn the_guide_has_the_fields_of_every_event() {
    for source in catalogue::all() {
        let events = source.events.split(['|', ' ', ',']);
        let types = events.filter(|word| word.starts_with(char::is_uppercase));
        for event in types {
            assert!(GUIDE.contains(&format!("| `{event}` | `")), "{event}");
        }
    }
}
