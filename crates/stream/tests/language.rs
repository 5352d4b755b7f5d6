//! What subscriptions mean in every language, and how their mistakes are shown.
//!
//! Each file in `tests/language/pass` is without mistakes; `written` shows how it
//! is written in every language. Each file in `fail` has mistakes, and the `.txt`
//! shows them. `UPDATE_EXPECT=1 cargo test` writes what is expected anew;
//! read the difference before you keep it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::catalogue;
use milieu_diagnostics::{Source, render};
use milieu_stream::Document;
use milieu_stream::language::{Language, write_rust};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/language")
        .join(name)
}

/// The files of a folder that are subscriptions, in order.
fn files(name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder(name)).expect("the folder of subscriptions");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = paths
        .filter(|path| Language::of_file(path).is_some())
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{name} is empty");
    files
}

fn source(path: &Path) -> Source {
    let name = path.file_name().expect("a file").to_string_lossy();
    Source::new(name, fs::read_to_string(path).expect("a readable file"))
}

fn read(path: &Path) -> Result<Document, String> {
    let source = source(path);
    let language = Language::of_file(path).expect("a file of a language");
    let read = language.parse(&source, &catalogue());
    read.map_err(|found| render(&source, &found, false))
}

/// Compares with a file, or writes that.
fn expect(path: &Path, shown: &str, wrong: &mut Vec<String>) {
    if std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1") {
        fs::write(path, shown).expect("a writable expectation");
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    if shown != expected {
        let path = path.display();
        wrong.push(format!(
            "{path}\n--- shown\n{shown}--- expected\n{expected}"
        ));
    }
}

fn accept(wrong: &[String]) {
    assert!(
        wrong.is_empty(),
        "UPDATE_EXPECT=1 accepts these:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn what_is_right_is_written_in_every_language_and_read_again() {
    let mut wrong = Vec::new();
    for path in files("pass") {
        let document = read(&path).unwrap_or_else(|found| panic!("{found}"));
        let name = path.with_extension("rs");
        let rust = folder("written").join(name.file_name().expect("a file"));
        expect(&rust, &write_rust(&document, &catalogue()), &mut wrong);
        for language in Language::ALL {
            let written = language.write(&document, &catalogue());
            let ending = language.ending();
            let name = path.with_extension(ending);
            let path = folder("written").join(name.file_name().expect("a file"));
            expect(&path, &written, &mut wrong);
            let again = Source::new(format!("written.{ending}"), written);
            let read = language.parse(&again, &catalogue());
            let read = read.unwrap_or_else(|found| panic!("{}", render(&again, &found, false)));
            assert_eq!(read, document, "{}", again.text);
            assert_eq!(language.write(&read, &catalogue()), again.text);
        }
    }
    accept(&wrong);
}

#[test]
fn the_habits_of_some_editors_do_no_harm() {
    for path in files("written") {
        let document = read(&path).unwrap_or_else(|found| panic!("{found}"));
        let text = source(&path).text.replace('\n', "\r\n");
        let source = Source::new("edited", format!("\u{feff}{text}"));
        let language = Language::of_file(&path).expect("a file of a language");
        let read = language.parse(&source, &catalogue());
        let read = read.unwrap_or_else(|found| panic!("{}", render(&source, &found, false)));
        assert_eq!(read, document, "{}", path.display());
    }
}

#[test]
fn mistakes_are_shown_with_place_reason_and_way_out() {
    let mut wrong = Vec::new();
    for path in files("fail") {
        let text = source(&path).text;
        let mut shown = Vec::new();
        // A line of dashes divides texts that are read one by one.
        for part in text.split("\n----\n") {
            let name = path.file_name().expect("a file").to_string_lossy();
            let source = Source::new(name, format!("{}\n", part.trim_end()));
            let language = Language::of_file(&path).expect("a file of a language");
            let found = language
                .parse(&source, &catalogue())
                .expect_err(&source.text);
            shown.push(render(&source, &found, false));
        }
        let ending = path.extension().expect("an ending").to_string_lossy();
        expect(
            &path.with_extension(format!("{ending}.txt")),
            &shown.join("\n----\n\n"),
            &mut wrong,
        );
    }
    accept(&wrong);
}
