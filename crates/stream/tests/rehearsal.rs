//! Cases: how they are written, and what is said of wrong ones.

use milieu_diagnostics::{Source, render};
use milieu_stream::operators;
use milieu_stream::rehearsal::{Case, Wrong, cases, rehearse};

const TEXT: &str = "\
# heat
/t | filter value > 90

1 /t 88.0
2 /t 91.5
@2 91.5
---
# the mean of ten seconds
/t | aggregate mean 10s

1 /t 1.0
2 /t 3.0
clock 20
";

fn case(lines: &str) -> Case {
    let text = format!("/t | filter value > 1\n\n{lines}");
    cases(&Source::new("x", text)).unwrap().remove(0)
}

#[test]
fn cases_stand_one_behind_the_other() {
    let source = Source::new("station.cases", TEXT);
    let cases = cases(&source).unwrap();
    let titles: Vec<&str> = cases.iter().map(|case| case.title.as_str()).collect();
    assert_eq!(titles, ["heat", "the mean of ten seconds"]);
    let catalogue = operators::catalogue();
    assert_eq!(rehearse(&cases[0], &catalogue).unwrap(), cases[0].lines);
    let found = rehearse(&cases[1], &catalogue).unwrap();
    assert!(
        found.contains("clock 20\n@11 {") && found.contains("\"mean\": 2.0"),
        "{found}"
    );
    assert!(TEXT[cases[1].start..].starts_with("1 /t 1.0\n"));
}

#[test]
fn what_is_wrong_is_shown_in_its_place() {
    let missing = cases(&Source::new("x", "/t | filter value > 1\n1 /t 1\n"));
    assert!(missing.unwrap_err().message.contains("empty line"));
    for (lines, said) in [
        ("one /t 1", "`one` is no second"),
        ("1 /t", "the event has no body"),
        ("1 t 1", "t"),
        ("1 /t {", "the body is no JSON"),
        ("2 /t 1\n1 /t 1", "second 1 has passed already"),
        ("clock later", "`later` is no second"),
    ] {
        let Err(Wrong::Line(found)) = rehearse(&case(lines), &operators::catalogue()) else {
            panic!("{lines} is right");
        };
        assert!(found.message.contains(said), "{lines}: {}", found.message);
        let shown = render(&Source::new("x", lines), &[found], false);
        assert!(shown.contains(lines.lines().last().unwrap()), "{shown}");
    }
    let mut wrong = case("1 /t 1");
    wrong.flow = "/t | fliter value > 1".to_owned();
    assert!(matches!(
        rehearse(&wrong, &operators::catalogue()),
        Err(Wrong::Flow(_))
    ));
}

#[test]
fn a_case_comes_to_an_end_whatever_its_flow() {
    let with = |flow: &str, lines: &str| Case {
        flow: flow.to_owned(),
        ..case(lines)
    };
    let catalogue = operators::catalogue();
    // A thousand windows, each of which is an event in a thousand others.
    let windows = "/t | aggregate mean 1000s every=1s lateness=1ns \
        | aggregate mean 1s every=1ms of=mean lateness=1us \
        | aggregate mean 1ms every=1us of=mean lateness=2us";
    for lines in ["1 /t 1\nclock 5000", "1 /t 1\n5000 /t 2"] {
        let Err(Wrong::Line(found)) = rehearse(&with(windows, lines), &catalogue) else {
            panic!("it wakes a million times and more");
        };
        let shown = render(&Source::new("x", lines), &[found], false);
        assert!(
            shown.contains("more than 86400 times before second 5000"),
            "{shown}"
        );
        assert!(shown.contains(lines.lines().last().unwrap()), "{shown}");
        assert!(shown.contains("let less time pass"), "{shown}");
    }
    // Time in which nothing wakes may be as long as it likes.
    let long = rehearse(&with("/t | sample 1s", "1 /t 2\nclock 8e9"), &catalogue);
    assert_eq!(long.unwrap(), "1 /t 2\nclock 8e9\n@2 2");
}
