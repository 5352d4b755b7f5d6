//! `docs/operators.md` says what the catalogue says.

use std::fmt::Write;
use std::path::Path;

use milieu_stream::operators::{self, Page};
use milieu_stream::{Declared, Inputs, Kind};

#[test]
fn the_reference_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operators.md");
    let fresh = reference();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &fresh).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == fresh,
        "docs/operators.md is stale: run this test with UPDATE_EXPECT=1"
    );
}

#[test]
fn defaults_are_what_they_say() {
    // Made without anything that has a default, an operator reads all defaults.
    for page in operators::pages() {
        for declared in page.definition.parameters {
            let is_sentence = declared.summary.ends_with('.');
            assert!(is_sentence, "{} of {}", declared.name, page.definition.name);
        }
        assert!(
            page.definition.summary.ends_with('.'),
            "{}",
            page.definition.name
        );
        let positional = page
            .definition
            .parameters
            .iter()
            .map(|declared| declared.positional);
        let sorted = positional.is_sorted_by(|a, b| a >= b);
        assert!(
            sorted,
            "positional parameters of {} come first",
            page.definition.name
        );
    }
}

const INTRODUCTION: &str = "\
# Operators

<!-- Made of the catalogue by a test: `UPDATE_EXPECT=1 cargo test -p milieu-stream`. -->

An operator reads the events of one or more flows and publishes one stream. This is what all of \
them have in common.

**Time.** An event says when it happened; that decides what it belongs to, such as a window. When \
something is over is decided by the clock of the operator, and by nothing that an event says. So \
events may come in any order, and one with a wrong time does harm only to itself: it is dropped \
as `late` or as `future`, and counted.

**Windows** begin and end at the same points of the clock for everybody. An operator knows what has \
come since somebody subscribed to it, and nothing of before: the first window of a subscriber has \
what came since. Whether it is shared with others that were there before cannot be seen; \
[subscriptions.md](subscriptions.md#what-counts-as-equal) says how that comes about.

**Fates.** Whatever comes in goes on as it is, is used, is held for some time, or is dropped for \
a reason that is counted: `filtered`, `late`, `future`, `duplicate`, `outlier`, `fault` (an \
expression could not be computed; the last such fault is kept for display), `type`, `failed`, \
`superseded`, `overflow`. The books of every operator balance.

**Quality.** An event may say how accurate its numbers are, and that its sensor has failed. What \
an operator makes of that is said below for each.

**State** is bounded: by `groups`, and by what is said below. It is kept across restarts.

**Expressions** have the syntax and meaning of CEL. Fields of the event are names in them; \
`value` is the body as a whole, and `event.time`, `event.name`, `event.age`, `event.failure` and so \
on are its header. Where an expression may stand, `$name` may stand for a function of Rust that the \
program has registered.

A parameter whose name stands in brackets may be given without its name.

In the examples a line such as `3 /weather/temperature 20.5` is an event that happens and comes \
in at second 3, with its body, and behind `!` what is wrong with its sensor. `clock 11` lets time \
pass until then. What is published stands in lines that begin with `@` and the second.
";

fn reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push_str("\n| Operator | |\n|---|---|\n");
    for page in operators::pages() {
        let definition = page.definition;
        let name = definition.name;
        writeln!(text, "| [`{name}`](#{name}) | {} |", definition.summary).unwrap();
    }
    for page in operators::pages() {
        write_page(&mut text, page);
    }
    text
}

fn write_page(text: &mut String, page: &Page) {
    let definition = page.definition;
    let inputs = match definition.inputs {
        Inputs::One => "one flow".to_owned(),
        Inputs::Unordered => "one flow or more, in any order".to_owned(),
        Inputs::Ordered(least) => format!("{least} flows or more, in this order"),
    };
    write!(
        text,
        "\n## {}\n\n{}\n\nReads {inputs}.\n",
        definition.name, definition.summary
    )
    .unwrap();
    if !definition.parameters.is_empty() {
        text.push_str("\n| Parameter | Kind | Default | |\n|---|---|---|---|\n");
    }
    for declared in definition.parameters {
        let Declared {
            name,
            kind,
            positional,
            default,
            summary,
        } = declared;
        let name = if *positional {
            format!("[`{name}=`]")
        } else {
            format!("`{name}=`")
        };
        let default = match default {
            None => "required".to_owned(),
            Some("") => String::new(),
            Some(default) => format!("`{default}`"),
        };
        writeln!(
            text,
            "| {name} | {} | {default} | {summary} |",
            called(*kind)
        )
        .unwrap();
    }
    write!(text, "\n{}\n", page.details).unwrap();
    for example in page.examples {
        let (shows, flow, lines) = (example.shows, example.flow, example.lines);
        write!(
            text,
            "\nFor example {shows}:\n\n```text\n{flow}\n\n{lines}\n```\n"
        )
        .unwrap();
    }
}

fn called(kind: Kind) -> String {
    match kind {
        Kind::Flag => "`true` or `false`".to_owned(),
        Kind::Integer => "whole number".to_owned(),
        Kind::Number => "number".to_owned(),
        Kind::Span => "span".to_owned(),
        Kind::Text => "text".to_owned(),
        Kind::Choice(words) => {
            let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
            words.join(", ")
        }
        Kind::Expression => "expression".to_owned(),
        Kind::Fields => "fields or expression".to_owned(),
        Kind::Functions(_) => "functions".to_owned(),
    }
}
