//! Operators that are restored at every step make the same of all events.

use milieu_stream::{Parameter, operators};
use milieu_transfer::{Event, Quality, Time};
use proptest::prelude::*;

use crate::run::{Row, Run, at, function, header, names, span, whole};

/// An event: when it comes, how long before that it happened, of what, how
/// much, and how well it is known.
type Arrival = (u32, i32, u8, u8, u8);

fn event(now: Time, (_, before, key, value, quality): &Arrival) -> Event {
    let time = now - milieu_transfer::Span::from_nanoseconds(i64::from(*before) * 100_000_000);
    let quality = match quality {
        0 => Some(Quality {
            age: None,
            accuracy: None,
            failure: Some("broken".into()),
        }),
        1 | 2 => Some(Quality {
            age: None,
            accuracy: Some(0.5),
            failure: None,
        }),
        _ => None,
    };
    let body = Row {
        key: format!("k{key}"),
        number: f64::from(*value) / 4.0,
    };
    Event::new(
        header(&format!("/sensors/{}", key % 2), time, quality),
        body,
    )
}

/// Every operator, with parameters that let it do all it can.
fn cases() -> Vec<(&'static str, Vec<(&'static str, Parameter)>)> {
    let of = ("of", function("number"));
    let by = ("by", function("key"));
    let all = names(&["mean", "deviation", "median", "first", "slope", "rate"]);
    let functions = ("functions", all);
    let integer = |number| Parameter::Integer(number);
    let text = |text: &str| Parameter::Text(text.into());
    vec![
        ("filter", vec![("condition", function("high"))]),
        ("transform", vec![("into", function("number"))]),
        ("merge", vec![]),
        (
            "aggregate",
            vec![
                functions.clone(),
                of.clone(),
                by.clone(),
                ("window", span(5.0)),
            ],
        ),
        (
            "aggregate",
            vec![
                functions.clone(),
                of.clone(),
                ("window", span(6.0)),
                ("every", span(4.0)),
            ],
        ),
        (
            "aggregate",
            vec![
                functions.clone(),
                of.clone(),
                by.clone(),
                ("count", integer(4)),
            ],
        ),
        (
            "aggregate",
            vec![functions, of.clone(), by.clone(), ("session", span(2.0))],
        ),
        (
            "change",
            vec![
                of.clone(),
                by.clone(),
                ("least", Parameter::Number("3".into())),
            ],
        ),
        ("change", vec![of.clone(), ("forget", span(3.0))]),
        (
            "extreme",
            vec![of.clone(), by.clone(), ("window", span(5.0))],
        ),
        (
            "vote",
            vec![
                of.clone(),
                ("sensor", function("key")),
                ("fresh", span(3.0)),
                ("least", integer(2)),
            ],
        ),
        (
            "vote",
            vec![
                of.clone(),
                ("method", text("majority")),
                ("fresh", span(3.0)),
            ],
        ),
        (
            "outliers",
            vec![of.clone(), by.clone(), ("count", integer(5))],
        ),
        (
            "deduplicate",
            vec![of.clone(), ("within", span(2.0)), ("remember", integer(3))],
        ),
        ("deduplicate", vec![("within", span(2.0))]),
        ("debounce", vec![("span", span(1.0)), by.clone()]),
        (
            "debounce",
            vec![("span", span(1.0)), ("of", function("high")), by.clone()],
        ),
        (
            "hysteresis",
            vec![
                ("on", function("high")),
                ("off", function("low")),
                by.clone(),
            ],
        ),
        (
            "join",
            vec![
                ("as", text("a b")),
                ("on", function("key")),
                ("fresh", span(3.0)),
            ],
        ),
        ("sample", vec![("every", span(1.5)), by.clone()]),
        ("throttle", vec![("every", span(1.5)), by]),
        (
            "members",
            vec![
                ("of", function("key")),
                ("while", function("high")),
                ("within", span(3.0)),
                ("most", integer(3)),
            ],
        ),
    ]
}

fn run(operator: &str, parameters: &[(&str, Parameter)]) -> Run {
    let mut catalogue = operators::catalogue();
    let functions = catalogue.functions_mut();
    functions.value_of_event("key", |event| row(event, |row| row.key.as_str().into()));
    functions.value_of_event("number", |event| row(event, |row| row.number.into()));
    functions.value_of_event("high", |event| row(event, |row| (row.number > 40.0).into()));
    functions.value_of_event("low", |event| row(event, |row| (row.number < 30.0).into()));
    let inputs = if operator == "join" { 2 } else { 1 };
    Run::of(catalogue, operator, parameters, inputs).expect("good parameters")
}

fn row(
    event: &Event,
    of: impl Fn(&Row) -> milieu_transfer::Value,
) -> Result<milieu_transfer::Value, milieu_stream::Reason> {
    event
        .get::<Row>()
        .map(of)
        .ok_or(milieu_stream::Reason::Type)
}

#[test]
fn every_operator_is_among_the_cases() {
    let cases = cases();
    for definition in operators::catalogue().iter() {
        assert!(
            cases.iter().any(|(name, _)| *name == definition.name),
            "{}",
            definition.name
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn restarts_are_not_noticed(
        arrivals in prop::collection::vec(
            (0..30_u32, prop_oneof![4 => 0..20_i32, 1 => -200..400_i32], 0..4_u8, 0..255_u8, 0..8_u8),
            0..50,
        ),
    ) {
        for (operator, parameters) in cases() {
            let mut steady = run(operator, &parameters);
            let mut restarted = run(operator, &parameters);
            restarted.restarts = true;
            let mut now = 1000.0;
            for arrival in &arrivals {
                now += f64::from(arrival.0) / 10.0;
                let input = if operator == "join" { usize::from(arrival.3 % 2) } else { 0 };
                let event = event(at(now), arrival);
                let expected = steady.event(at(now), input, &event);
                let found = restarted.event(at(now), input, &event);
                same(operator, &expected, &found)?;
            }
            let (expected, found) = (steady.clock(at(5000.0)), restarted.clock(at(5000.0)));
            same(operator, &expected, &found)?;
            prop_assert_eq!(&steady.books, &restarted.books, "{}", operator);
        }
    }
}

/// How much some arrivals tell of two operators: whether they were alike at last.
fn liken(
    operator: &str,
    parameters: &[(&str, Parameter)],
    arrivals: &[Arrival],
    late_after: usize,
) -> Result<bool, TestCaseError> {
    let (mut early, mut late) = (run(operator, parameters), run(operator, parameters));
    prop_assert!(
        run(operator, parameters).is_like(&late),
        "{} at first",
        operator
    );
    let mut now = 1000.0;
    let mut are_alike = false;
    for (at_which, arrival) in arrivals.iter().enumerate() {
        now += f64::from(arrival.0) / 10.0;
        let input = if operator == "join" {
            usize::from(arrival.3 % 2)
        } else {
            0
        };
        let event = event(at(now), arrival);
        let expected = early.event(at(now), input, &event);
        if at_which < late_after {
            continue;
        }
        let found = late.event(at(now), input, &event);
        if are_alike {
            like(operator, &expected, &found)?;
            prop_assert!(early.is_like(&late), "{} is like itself no more", operator);
        }
        are_alike = early.is_like(&late);
    }
    let (expected, found) = (early.clock(at(5000.0)), late.clock(at(5000.0)));
    if are_alike {
        like(operator, &expected, &found)?;
    }
    Ok(are_alike)
}

/// The same but for the numbers of what was made.
fn like(
    operator: &str,
    expected: &[(Time, Event)],
    found: &[(Time, Event)],
) -> Result<(), TestCaseError> {
    let shown = |published: &[(Time, Event)]| -> Vec<String> {
        let shown = published.iter().map(|(now, event)| {
            let header = event.header();
            format!(
                "{now:?} {:?} {:?} {:?}",
                header.time,
                header.quality,
                whole(event)
            )
        });
        shown.collect()
    };
    prop_assert_eq!(shown(expected), shown(found), "{}", operator);
    Ok(())
}

#[test]
fn operators_that_are_alike_make_the_same_of_everything() {
    let arrivals = prop::collection::vec(
        (
            0..30_u32,
            prop_oneof![9 => 0..8_i32, 1 => -200..400_i32],
            0..3_u8,
            0..255_u8,
            0..20_u8,
        ),
        20..80,
    );
    let alike = std::cell::RefCell::new(vec![[0_u32; 2]; cases().len()]);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(96));
    let done = runner.run(&(arrivals, 1..15_usize), |(arrivals, late_after)| {
        for (at, (operator, parameters)) in cases().iter().enumerate() {
            let are_alike = liken(operator, parameters, &arrivals, late_after)?;
            alike.borrow_mut()[at][usize::from(are_alike)] += 1;
        }
        Ok(())
    });
    done.unwrap_or_else(|wrong| panic!("{wrong}"));
    for ((operator, parameters), [_, yes]) in cases().iter().zip(&*alike.borrow()) {
        // Whether they count from the same event on is chance, in each group.
        let by_count =
            parameters.iter().any(|(name, _)| *name == "count") && *operator == "aggregate";
        assert!(
            *yes > 0 || by_count,
            "{operator} {parameters:?} was never alike"
        );
    }
}

fn same(
    operator: &str,
    expected: &[(Time, Event)],
    found: &[(Time, Event)],
) -> Result<(), TestCaseError> {
    let shown = |published: &[(Time, Event)]| -> Vec<String> {
        let shown = published
            .iter()
            .map(|(now, event)| format!("{now:?} {:?} {:?}", event.header(), whole(event)));
        shown.collect()
    };
    prop_assert_eq!(shown(expected), shown(found), "{}", operator);
    Ok(())
}

#[test]
fn foreign_states_are_refused() {
    use milieu_transfer::Value;
    let foreign: [Value; 4] = [
        Value::Int(3),
        "state".into(),
        vec![Value::Int(1), Value::Int(2), Value::Int(3)].into(),
        vec![Value::List(vec![Value::Null].into()), Value::Null].into(),
    ];
    for (operator, parameters) in cases() {
        for state in &foreign {
            let catalogue = operators::catalogue();
            let definition = catalogue.get(operator).expect("it is known");
            let mut functions = milieu_stream::Functions::default();
            for name in ["key", "number", "high", "low"] {
                functions.value(name, |value: &f64| *value);
            }
            let parameters: Vec<_> = parameters
                .iter()
                .map(|(name, value)| ((*name).into(), value.clone()))
                .collect();
            let arguments = milieu_stream::Arguments {
                definition,
                parameters: &parameters,
                inputs: if operator == "join" { 2 } else { 1 },
                functions: &functions,
            };
            let mut made = (definition.make)(&arguments).expect("good parameters");
            let before = made.snapshot();
            assert!(made.restore(state).is_err(), "{operator} took {state:?}");
            assert_eq!(made.snapshot(), before, "{operator}");
        }
    }
}
