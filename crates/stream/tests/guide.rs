//! The guide, `docs/subscriptions.md`, and the schema beside it: their samples
//! are right, and what is said to be written is what is written.

use std::fs;
use std::path::{Path, PathBuf};

use milieu_diagnostics::{Source, render};
use milieu_stream::language::{Language, schema, write_rust};
use milieu_stream::{Document, operators};

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name)
}

fn guide() -> String {
    fs::read_to_string(docs("subscriptions.md")).expect("the guide")
}

/// The blocks of a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let start = format!("\n```{language}\n");
    let blocks = text.split(&start).skip(1);
    let blocks = blocks.filter_map(|rest| rest.split_once("\n```"));
    blocks.map(|(block, _)| format!("{block}\n")).collect()
}

fn read(language: Language, text: &str) -> Document {
    let source = Source::new("docs/subscriptions.md", text);
    let read = language.parse(&source, &operators::catalogue());
    read.unwrap_or_else(|found| panic!("{}", render(&source, &found, false)))
}

#[test]
fn all_four_languages_say_the_same() {
    let guide = guide();
    let first = |language: &str| blocks(&guide, language).swap_remove(0);
    let document = read(Language::Pipeline, &first("flow"));
    let catalogue = operators::catalogue();
    for (language, name) in [(Language::Toml, "toml"), (Language::Xml, "xml")] {
        assert_eq!(read(language, &first(name)), document);
        assert_eq!(language.write(&document, &catalogue), first(name));
    }
    assert_eq!(write_rust(&document, &catalogue), first("rust"));
}

#[test]
fn every_sample_is_right() {
    let blocks = blocks(&guide(), "flow");
    assert!(blocks.len() > 1);
    for block in blocks {
        let document = read(Language::Pipeline, &block);
        assert!(!document.subscriptions.is_empty(), "{block}");
    }
}

#[test]
fn the_grammar_is_that_of_the_module() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/language/pipeline.rs");
    let module = fs::read_to_string(path).expect("the module");
    let lines = module.lines().filter_map(|line| line.strip_prefix("//!"));
    let lines = lines.map(|line| line.strip_prefix(' ').unwrap_or(line));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    let here = blocks(&guide(), "text").swap_remove(0);
    assert!(here.starts_with("file "));
    assert!(blocks(&text, "text").contains(&here), "{here}");
}

#[test]
fn the_schema_is_that_of_the_operators() {
    let written = schema(&operators::catalogue());
    if std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1") {
        fs::write(docs("subscriptions.xsd"), &written).expect("a writable schema");
    }
    let kept = fs::read_to_string(docs("subscriptions.xsd")).unwrap_or_default();
    assert!(kept == written, "UPDATE_EXPECT=1 accepts this:\n{written}");
}
