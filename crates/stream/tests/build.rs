//! Subscriptions in Rust: what is written compiles and says the same, and
//! mistakes are shown with the line that made them.

use std::path::Path;
use std::sync::Arc;

use crate::support::catalogue;
use milieu_diagnostics::{Source, render};
use milieu_stream::language::build::{Builder, fields, function, given, minutes};
use milieu_stream::language::{Language, NESTING_MAX, write_rust};
use milieu_stream::{Delivery, Document, Flow, Operation, Publication, operators};

macro_rules! written {
    ($($name:ident)*) => {
        $(mod $name {
            include!(concat!("language/written/", stringify!($name), ".rs"));
        })*

        /// Each file of Rust that was written, and its function.
        const WRITTEN: &[(&str, fn(&Builder<'_>))] =
            &[$((stringify!($name), $name::subscriptions)),*];
    };
}

written! { all elements guide tables variables }

fn read(language: Language, text: &str) -> Document {
    let source = Source::new("test", text);
    let read = language.parse(&source, &catalogue());
    read.unwrap_or_else(|found| panic!("{}", render(&source, &found, false)))
}

#[test]
fn what_is_written_in_rust_compiles_and_says_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language/written");
    let ends_in_rs =
        |entry: &std::fs::DirEntry| entry.path().extension().is_some_and(|e| e == "rs");
    let entries = std::fs::read_dir(&folder).expect("a folder").flatten();
    assert_eq!(entries.filter(ends_in_rs).count(), WRITTEN.len());
    for (name, say) in WRITTEN {
        let catalogue = catalogue();
        let builder = Builder::new(&catalogue);
        say(&builder);
        let document = builder.finish().unwrap_or_else(|found| panic!("{found}"));
        let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).expect("a file");
        assert_eq!(document, read(Language::Toml, &text));
    }
}

#[test]
fn every_operator_has_a_method() {
    let catalogue = operators::catalogue();
    for definition in catalogue
        .iter()
        .filter(|definition| definition.name != "merge")
    {
        let flow = Flow::Operation(Arc::new(Operation {
            operator: definition.name.into(),
            parameters: Vec::new(),
            inputs: vec![Flow::Stream("/a".into())],
        }));
        let publication = Publication {
            name: "/b".into(),
            flow,
        };
        let document = Document {
            publications: vec![publication],
            ..Document::default()
        };
        let written = write_rust(&document, &catalogue);
        let call = format!(".{}(())", definition.name);
        assert!(written.contains(&call), "{written}");
    }
}

#[test]
fn every_way_to_tell_an_operator_something_is_understood() {
    let catalogue = catalogue();
    let builder = Builder::new(&catalogue);
    let hot = builder
        .stream("/weather/temperature")
        .filter("value > 32")
        .named("hot");
    hot.aggregate((["mean", "percentile(95)"], minutes(10), given("count", 3)))
        .publish("/weather/heat");
    hot.and(&builder.stream("/b").filter(function("hot")))
        .merge()
        .subscribe(("latest", given("name", "heat")));
    builder
        .flow("hot")
        .transform(fields([("a", "value * 2"), ("b", "'x'")]))
        .apply("change", 0.5)
        .apply("deduplicate", given("sequence", false))
        .activate(("heat", given("while", "value > 3")));
    hot.set(("/sw/%room%/heat", "value + 1"));
    let built = builder.finish().unwrap_or_else(|found| panic!("{found}"));
    let written = read(
        Language::Pipeline,
        "let hot = /weather/temperature | filter value > 32
hot | aggregate mean, percentile(95) 10m count=3 | publish /weather/heat
hot, (/b | filter $hot) | merge | subscribe latest name=heat
hot | transform {a: value * 2, b: 'x'} | change 0.5 | deduplicate sequence=false
    | activate heat while=value > 3
hot | set /sw/%room%/heat value + 1",
    );
    assert_eq!(built, written);
    assert_eq!(built.subscriptions[0].delivery, Delivery::Latest);
}

#[test]
fn mistakes_show_the_line_that_made_them() {
    let catalogue = catalogue();
    let builder = Builder::new(&catalogue);
    let line = line!() + 1;
    let hot = builder.stream("/weather/temperature").filter("(value > 32");
    hot.apply("agregate", "mean").subscribe(());
    hot.aggregate(("men", given("windw", minutes(10))))
        .subscribe("lastest");
    let _ = builder.stream("relative").and(&hot).named("two");
    builder
        .stream("/a")
        .and(&builder.stream("/b"))
        .publish("/c");
    builder
        .stream("/a")
        .transform(fields([("a", "b["), ("c", "d")]))
        .set("/%x");
    builder.stream("/a").filter(["a", "b"]).publish("/\u{1}");
    let mistakes = builder.finish().expect_err("mistakes");
    let shown = mistakes.to_string();
    assert!(
        shown.contains(&format!("tests/build.rs:{line}:")),
        "{shown}"
    );
    // Where this test stands is no matter.
    let numbers = shown
        .split("tests/build.rs:")
        .enumerate()
        .map(|(at, part)| {
            let is_place = |c: char| c.is_ascii_digit() || c == ':';
            let part = if at > 0 {
                part.trim_start_matches(is_place)
            } else {
                part
            };
            part.to_owned()
        });
    let shown = numbers.collect::<Vec<_>>().join("tests/build.rs:…");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language/fail/rust.txt");
    if std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1") {
        std::fs::write(&path, &shown).expect("a writable expectation");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(shown == expected, "UPDATE_EXPECT=1 accepts this:\n{shown}");
}

#[test]
fn flows_are_not_larger_than_memory() {
    let catalogue = catalogue();
    let builder = Builder::new(&catalogue);
    let mut flow = builder.stream("/a");
    for _ in 0..NESTING_MAX {
        flow = flow.and(&flow.clone()).merge();
    }
    flow.subscribe(());
    let mistakes = builder.finish().expect_err("4096 operators are enough");
    assert_eq!(mistakes.diagnostics.len(), 1, "{mistakes}");
    assert_eq!(mistakes.diagnostics[0].code, Some("limit"));

    let builder = Builder::new(&catalogue);
    let mut flow = builder.stream("/a");
    for _ in 0..1000 {
        flow = flow.filter("value > 1");
    }
    flow.subscribe(());
    let mistakes = builder
        .finish()
        .expect_err("256 one after the other are enough");
    assert_eq!(mistakes.diagnostics.len(), 1, "{mistakes}");
}

#[test]
fn what_lies_as_deep_as_it_may_is_read_in_every_language() {
    let catalogue = catalogue();
    let builder = Builder::new(&catalogue);
    let mut flow = builder.stream("/a");
    for _ in 0..NESTING_MAX {
        let other = builder.stream("/b").filter("value > 1");
        flow = flow
            .and(&other)
            .apply("join", (minutes(1), given("to", fields([("a", "b")]))));
    }
    flow.subscribe(());
    let document = builder.finish().unwrap_or_else(|found| panic!("{found}"));
    for language in Language::ALL {
        let written = language.write(&document, &catalogue);
        assert_eq!(read(language, &written), document);
    }
}
