//! Operators whose result is events that they were given.

use std::collections::VecDeque;

use milieu_stream::operators::{self, Filters};
use milieu_stream::{Arguments, Fate, Operator, Parameter, Reason};
use milieu_transfer::{Event, Span, Value};
use proptest::prelude::*;

use crate::run::{Run, at, failed, field, function, header, number, numbers, row, span, stream};

fn feed(run: &mut Run, events: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut published = Vec::new();
    for (second, value) in events {
        published.extend(run.event(at(*second), 0, &number(at(*second), *value)));
    }
    numbers(&published)
}

const OF: &str = "of";

fn of_value() -> (&'static str, Parameter) {
    (OF, function("value"))
}

proptest! {
    #[test]
    fn changes_are_what_differs_from_the_last_one(values in prop::collection::vec(0..6_u8, 0..40)) {
        for least in [None, Some(2.0)] {
            let mut parameters = vec![of_value()];
            parameters.extend(least.map(|_| ("least", Parameter::Number("2".into()))));
            let mut run = Run::new("change", &parameters);
            let events: Vec<_> = values.iter().enumerate()
                .map(|(second, value)| (second as f64, f64::from(*value)))
                .collect();
            let mut expected: Vec<(f64, f64)> = Vec::new();
            for (second, value) in &events {
                let far = |last: f64| (last - value).abs() >= least.unwrap_or(f64::MIN_POSITIVE);
                if expected.last().is_none_or(|(_, last)| far(*last)) {
                    expected.push((*second, *value));
                }
            }
            prop_assert_eq!(feed(&mut run, &events), expected);
        }
    }

    #[test]
    fn samples_and_throttles_take_one_of_every_span(
        gaps in prop::collection::vec(0..30_u32, 0..40),
    ) {
        let mut now = 1000.0;
        let events: Vec<_> = gaps.iter().enumerate().map(|(index, gap)| {
            now += f64::from(*gap) / 10.0;
            (now, index as f64)
        }).collect();
        let slot = |second: f64| (second / 2.0 + 1e-9).floor();
        let mut first: Vec<(f64, f64)> = Vec::new();
        let mut last: Vec<(f64, f64)> = Vec::new();
        for (second, value) in &events {
            if first.last().is_none_or(|(before, _)| slot(*before) < slot(*second)) {
                first.push((*second, *value));
            }
            let end = (slot(*second) + 1.0) * 2.0;
            if last.last().is_some_and(|(before, _)| *before == end) {
                last.pop();
            }
            last.push((end, *value));
        }
        let mut throttle = Run::new("throttle", &[("every", span(2.0))]);
        let values = |events: &[(f64, f64)]| events.iter().map(|event| event.1).collect::<Vec<_>>();
        prop_assert_eq!(values(&feed(&mut throttle, &events)), values(&first));
        let mut sample = Run::new("sample", &[("every", span(2.0))]);
        let mut sampled = feed(&mut sample, &events);
        sampled.extend(numbers(&sample.clock(at(5000.0))));
        prop_assert_eq!(sampled, last);
    }

    #[test]
    fn what_is_debounced_was_followed_by_quiet(gaps in prop::collection::vec(0..30_u32, 0..40)) {
        let mut now = 1000.0;
        let events: Vec<_> = gaps.iter().enumerate().map(|(index, gap)| {
            now += f64::from(*gap) / 10.0;
            (now, index as f64)
        }).collect();
        let mut run = Run::new("debounce", &[("span", span(1.0))]);
        let mut found = feed(&mut run, &events);
        found.extend(numbers(&run.clock(at(5000.0))));
        let next = events.iter().skip(1).map(|(second, _)| *second).chain([f64::INFINITY]);
        let lasts = events.iter().zip(next).filter(|((second, _), next)| next - second > 1.0 - 1e-6);
        let expected: Vec<_> = lasts.map(|((_, value), _)| *value).collect();
        prop_assert_eq!(found.iter().map(|(_, value)| *value).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn outliers_are_far_from_the_median(values in prop::collection::vec(0..100_u8, 0..60)) {
        let parameters = [of_value(), ("count", Parameter::Integer(5))];
        let mut run = Run::new("outliers", &parameters);
        let mut before: VecDeque<f64> = VecDeque::new();
        for (second, value) in values.iter().enumerate() {
            let (second, value) = (second as f64, f64::from(*value));
            let passed = !run.event(at(second), 0, &number(at(second), value)).is_empty();
            let median = |numbers: &mut Vec<f64>| {
                numbers.sort_by(f64::total_cmp);
                (numbers[numbers.len() / 2] + numbers[(numbers.len() - 1) / 2]) / 2.0
            };
            let mut expected = true;
            if before.len() >= 3 {
                let mut sorted: Vec<f64> = before.iter().copied().collect();
                let middle = median(&mut sorted);
                let mut apart: Vec<f64> = sorted.iter().map(|v| (v - middle).abs()).collect();
                expected = (value - middle).abs() <= 3.0 * 1.4826 * median(&mut apart);
            }
            prop_assert_eq!(passed, expected);
            before.push_back(value);
            if before.len() > 5 {
                before.pop_front();
            }
        }
    }

    #[test]
    fn duplicates_are_dropped_while_the_first_is_remembered(
        events in prop::collection::vec((0..30_u32, 0..5_u8), 0..60),
    ) {
        let parameters = [of_value(), ("within", span(2.0)), ("remember", Parameter::Integer(3))];
        let mut run = Run::new("deduplicate", &parameters);
        let mut known: Vec<(f64, f64)> = Vec::new();
        let mut now = 0.0;
        for (gap, value) in events {
            now += f64::from(gap) / 10.0;
            let value = f64::from(value);
            known.retain(|(seen, _)| now - seen <= 2.0 + 1e-6);
            let is_new = known.iter().all(|(_, known)| *known != value);
            if is_new {
                if known.len() == 3 {
                    known.remove(0);
                }
                known.push((now, value));
            }
            let passed = !run.event(at(now), 0, &number(at(now), value)).is_empty();
            prop_assert_eq!(passed, is_new);
        }
    }
}

#[test]
fn an_event_that_came_twice_is_one() {
    let mut run = Run::new("deduplicate", &[]);
    let event = number(at(1.0), 1.0);
    assert_eq!(run.event(at(1.0), 0, &event).len(), 1);
    assert_eq!(run.event(at(2.0), 0, &event).len(), 0);
    let mut next = event.header().clone();
    next.sequence += 1;
    assert_eq!(run.event(at(3.0), 0, &Event::new(next, 1.0)).len(), 1);
    let elsewhere = header("/elsewhere", at(1.0), None);
    assert_eq!(run.event(at(4.0), 0, &Event::new(elsewhere, 1.0)).len(), 1);
    assert_eq!(run.dropped(Reason::Duplicate), 1);
}

#[test]
fn extremes_begin_anew_at_midnight() {
    let day = 86_400.0;
    let mut run = Run::new("extreme", &[of_value()]);
    let events = [
        (10.0 * day + 10.0, 5.0),
        (10.0 * day + 20.0, 6.0),
        (10.0 * day + 30.0, 5.5),
        (10.0 * day + 40.0, 4.0),
        (11.0 * day + 10.0, 5.0),
    ];
    let published = feed(&mut run, &events);
    assert_eq!(published, [events[0], events[1], events[3], events[4]]);
    // What happened before midnight belongs to the day before.
    let late = number(at(11.0 * day - 1.0), 7.0);
    assert!(run.event(at(11.0 * day + 11.0), 0, &late).is_empty());
    assert_eq!(run.dropped(Reason::Late), 1);
    let future = number(at(12.0 * day), 7.0);
    assert!(run.event(at(11.0 * day + 12.0), 0, &future).is_empty());
    assert_eq!(run.dropped(Reason::Future), 1);
}

#[test]
fn failed_sensors_are_dropped_where_values_count() {
    let on = ("on", function("value"));
    let off = ("off", function("value"));
    for (operator, parameters) in [
        ("change", vec![of_value()]),
        ("extreme", vec![of_value()]),
        ("outliers", vec![of_value()]),
        ("debounce", vec![of_value(), ("span", span(1.0))]),
        ("hysteresis", vec![on, off]),
        ("filter", vec![("condition", function("value"))]),
        ("vote", vec![of_value()]),
    ] {
        let mut run = Run::new(operator, &parameters);
        assert!(run.event(at(1.0), 0, &failed(at(1.0))).is_empty());
        assert_eq!(run.dropped(Reason::Failed), 1, "{operator}");
    }
    for (operator, parameters) in [
        ("merge", vec![]),
        ("deduplicate", vec![]),
        ("throttle", vec![("every", span(1.0))]),
    ] {
        let mut run = Run::new(operator, &parameters);
        assert_eq!(
            run.event(at(1.0), 0, &failed(at(1.0))).len(),
            1,
            "{operator}"
        );
    }
}

#[test]
fn a_value_that_lasts_is_settled() {
    let mut run = Run::new("debounce", &[of_value(), ("span", span(2.0))]);
    let events = [
        (0.0, 1.0),
        (1.0, 1.0),
        (3.0, 2.0),
        (4.0, 1.0),
        (6.0, 2.0),
        (7.0, 3.0),
        (8.0, 2.0),
    ];
    let mut found = feed(&mut run, &events);
    found.extend(numbers(&run.clock(at(100.0))));
    // The 2 of second 8 is another one than that of second 6.
    assert_eq!(found, [(2.0, 1.0), (10.0, 2.0)]);
    assert_eq!(run.dropped(Reason::Superseded), 3);
    assert_eq!(run.dropped(Reason::Duplicate), 2);
}

#[test]
fn the_vote_goes_on_when_a_sensor_falls_silent() {
    let least = ("least", Parameter::Integer(2));
    let parameters = [
        ("of", function("number")),
        ("sensor", function("key")),
        ("fresh", span(10.0)),
        least,
    ];
    let mut run = Run::new("vote", &parameters);
    let mut say = |second: f64, sensor: &str, value: f64| -> Vec<Value> {
        let published = run.event(at(second), 0, &row(at(second), sensor, value));
        published
            .iter()
            .map(|(_, event)| field(event, "value"))
            .collect()
    };
    assert!(say(1.0, "a", 20.0).is_empty());
    assert_eq!(say(2.0, "b", 30.0), [Value::Double(25.0)]);
    assert_eq!(say(8.0, "b", 30.0), []);
    let published = run.clock(at(30.0));
    let [(when, silent)] = &published[..] else {
        panic!("it says once that there are too few: {published:?}");
    };
    assert_eq!(*when, at(11.0));
    assert_eq!(field(silent, "value"), Value::Null);
    let quality = silent.header().quality.as_ref().expect("a failure");
    assert_eq!(
        quality.failure.as_deref(),
        Some("1 of 2 sensors that are needed")
    );
    // What is too old has no voice, and what is older than what was said.
    run.event(at(31.0), 0, &row(at(21.0), "a", 20.0));
    run.event(at(31.0), 0, &row(at(30.0), "a", 20.0));
    run.event(at(31.0), 0, &row(at(29.0), "a", 20.0));
    assert_eq!(run.dropped(Reason::Late), 1);
    assert_eq!(run.dropped(Reason::Superseded), 1);
}

#[test]
fn functions_of_rust_take_part() {
    let mut catalogue = operators::catalogue();
    let functions = catalogue.functions_mut();
    let hot = functions.condition("hot", |celsius: &f64| *celsius > 32.0);
    let mut filter = Run::of(catalogue.clone(), "filter", &[("condition", hot)], 1).unwrap();
    assert_eq!(
        feed(&mut filter, &[(1.0, 31.0), (2.0, 33.0)]),
        [(2.0, 33.0)]
    );
    assert_eq!(filter.dropped(Reason::Filtered), 1);
    // A body without a type becomes one of the function's, if it can.
    let untyped = Event::of_value(header("/number", at(3.0), None), 33.0.into());
    assert_eq!(filter.event(at(3.0), 0, &untyped).len(), 1);
    filter.event(at(3.0), 0, &row(at(3.0), "a", 40.0));
    assert_eq!(filter.dropped(Reason::Type), 1);

    let functions = catalogue.functions_mut();
    let unnamed = functions.unnamed();
    let to_kelvin = functions.transform(&unnamed, |celsius: &f64| celsius + 273.15);
    let mut transform = Run::of(catalogue, "transform", &[("into", to_kelvin)], 1).unwrap();
    assert_eq!(feed(&mut transform, &[(1.0, 0.0)]), [(1.0, 273.15)]);
    let published = transform.event(at(2.0), 0, &failed(at(2.0)));
    let quality = published[0].1.header().quality.as_ref().expect("a failure");
    assert_eq!(quality.failure.as_deref(), Some("broken"));
    assert_eq!(*published[0].1.header().stream, *stream("/made"));
}

#[test]
fn unknown_functions_are_refused() {
    let mut catalogue = operators::catalogue();
    let cold = Parameter::Function("cold".into());
    let refused = |catalogue, condition: &Parameter| {
        let made = Run::of(catalogue, "filter", &[("condition", condition.clone())], 1);
        made.err().expect("it is refused")
    };
    assert_eq!(
        refused(catalogue.clone(), &cold),
        "there is no function `$cold`"
    );
    let makes = catalogue
        .functions_mut()
        .transform("makes", |value: &f64| *value);
    assert_eq!(
        refused(catalogue, &makes),
        "`$makes` makes events and computes no value"
    );
}

#[test]
fn filters_look_at_the_age_that_events_say() {
    let condition = Parameter::Expression("event.age < duration('10s')".into());
    let (mut filters, _) = filters(&[condition]);
    let mut fate = |age: Option<i64>| {
        let quality = age.map(|seconds| milieu_transfer::Quality {
            age: Some(Span::from_seconds(seconds)),
            ..milieu_transfer::Quality::default()
        });
        filters[0].test(&Event::of_value(header("/e", at(1.0), quality), 1.into()))
    };
    assert_eq!(fate(Some(9)), Fate::Passed);
    assert_eq!(fate(Some(10)), Fate::Dropped(Reason::Filtered));
    // Nothing is said of it: the event says what is so at its time.
    assert_eq!(fate(None), Fate::Passed);
}

/// Filters by themselves and as one.
fn filters(conditions: &[Parameter]) -> (Vec<Box<dyn Operator>>, Filters) {
    let mut catalogue = operators::catalogue();
    let functions = catalogue.functions_mut();
    functions.value_of_event("small", |event| match event.get::<Value>() {
        Some(Value::Map(map)) => match map.field("a") {
            Some(Value::Int(number)) => Ok(*number < 3),
            _ => Err(Reason::Fault),
        },
        _ => Err(Reason::Type),
    });
    let definition = catalogue.get("filter").expect("it is known");
    let made = conditions.iter().map(|condition| {
        let arguments = Arguments {
            definition,
            parameters: &[("condition".into(), condition.clone())],
            inputs: 1,
            functions: catalogue.functions(),
        };
        (definition.make)(&arguments).expect("a good condition")
    });
    let made: Vec<_> = made.collect();
    let filters = Filters::new(made.iter().filter_map(|filter| filter.condition()));
    (made, filters)
}

proptest! {
    #[test]
    fn filters_in_one_are_filters_one_after_the_other(
        conditions in prop::collection::vec(0..6_usize, 1..6),
        bodies in prop::collection::vec((0..5_i64, 0..5_i64, 0..4_u8), 1..12),
    ) {
        let known = ["a > 1", "b < 3", "a + b != 4", "a / b == 1", "has(event.failure) || a > 0"];
        let conditions: Vec<_> = conditions.iter().map(|index| match known.get(*index) {
            Some(text) => Parameter::Expression((*text).into()),
            None => function("small"),
        }).collect();
        let (mut apart, mut fused) = filters(&conditions);
        for (a, b, kind) in bodies {
            let quality = (kind == 0).then(|| milieu_transfer::Quality {
                failure: Some("broken".into()),
                ..milieu_transfer::Quality::default()
            });
            let names = if kind == 1 { ["a", "c"] } else { ["a", "b"] };
            let body: milieu_transfer::Map = names.into_iter().zip([a, b]).collect();
            let event = Event::of_value(header("/e", at(1.0), quality), body.into());
            let fates = apart.iter_mut().map(|filter| filter.test(&event));
            let mut fates = fates.collect::<Vec<_>>().into_iter().enumerate();
            let expected = fates.find_map(|(index, fate)| match fate {
                Fate::Dropped(reason) => Some((index, reason)),
                _ => None,
            });
            prop_assert_eq!(fused.test(&event).err(), expected);
            if let Some((index, Reason::Fault)) = expected {
                prop_assert_eq!(fused.fault(index), apart[index].fault());
            }
        }
    }
}

#[test]
fn faults_say_what_could_not_be_computed() {
    let (mut apart, _) = filters(&[Parameter::Expression("a / b == 1".into())]);
    let body: milieu_transfer::Map = [("a", 1_i64), ("b", 0)].into_iter().collect();
    let event = Event::of_value(header("/e", at(1.0), None), body.into());
    assert_eq!(apart[0].test(&event), Fate::Dropped(Reason::Fault));
    let fault = apart[0].fault().expect("a fault");
    assert!(
        fault.starts_with("`a / b == 1` cannot be computed: "),
        "{fault}"
    );
}
