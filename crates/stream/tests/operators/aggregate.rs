//! `aggregate` against a list of all that has happened.

use std::collections::BTreeMap;

use milieu_stream::{Parameter, Reason};
use milieu_transfer::{Event, Quality, Span, Time, Value};
use proptest::prelude::*;

use crate::run::{
    Published, Run, at, double, failed, field, function, header, names, number, row, span,
};

const FUNCTIONS: &[&str] = &[
    "sum",
    "minimum",
    "maximum",
    "mean",
    "deviation",
    "rate",
    "median",
    "first",
    "last",
    "change",
    "slope",
];

/// An event: when it comes, how long before that it happened, of what, how much.
type Arrival = (u32, i32, u8, f64);

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let before = prop_oneof![8 => 0..40_i32, 2 => -60..400_i32, 1 => -1_000_000..1_000_000_i32];
    prop::collection::vec((0..80_u32, before, 0..3_u8, -100.0..100.0_f64), 0..60)
}

/// The same with absolute times. Nothing comes at the very instant at which a
/// window is closed, but things happen at its edges.
fn schedule(arrivals: &[Arrival]) -> Vec<(Time, Time, String, f64)> {
    let mut now = 1_000.0;
    let scheduled = arrivals.iter().map(|(after, before, key, value)| {
        now += f64::from(*after) / 10.0;
        let time = at(now - f64::from(*before) / 10.0);
        (at(now + 0.05), time, format!("k{key}"), *value)
    });
    scheduled.collect()
}

/// All windows of a list that have something in them, computed anew.
fn naive(
    accepted: &[(Time, String, f64)],
    length: Span,
    every: Span,
) -> BTreeMap<(Time, String), Vec<(Time, f64)>> {
    let mut windows: BTreeMap<(Time, String), Vec<(Time, f64)>> = BTreeMap::new();
    for (time, key, value) in accepted {
        let mut end = time.aligned(every) + every;
        while end - length <= *time {
            let window = windows.entry((end, key.clone())).or_default();
            window.push((*time, *value));
            end = end + every;
        }
    }
    windows
}

fn check(event: &Event, readings: &[(Time, f64)], seconds: f64) {
    let values: Vec<f64> = readings.iter().map(|(_, value)| *value).collect();
    let count = values.len() as f64;
    let sum: f64 = values.iter().sum();
    let mean = sum / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let mut sorted = values.clone();
    sorted.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    let median = (sorted[half] + sorted[(values.len() - 1) / 2]) / 2.0;
    // Of equal times the first that came, and the last.
    let first = readings.iter().min_by_key(|(time, _)| *time).unwrap();
    let last = readings.iter().max_by_key(|(time, _)| *time).unwrap();
    let expected = [
        ("sum", sum),
        ("minimum", sorted[0]),
        ("maximum", sorted[values.len() - 1]),
        ("mean", mean),
        ("deviation", (squares / count).sqrt()),
        ("rate", count / seconds),
        ("median", median),
        ("first", first.1),
        ("last", last.1),
        ("change", last.1 - first.1),
    ];
    for (name, expected) in expected {
        let found = double(event, name);
        assert!(
            (found - expected).abs() < 1e-6,
            "{name}: {found}, not {expected}, of {readings:?}"
        );
    }
    let between = (last.0 - first.0).seconds();
    match field(event, "slope") {
        Value::Double(slope) => assert!((slope * between - (last.1 - first.1)).abs() < 1e-6),
        other => assert_eq!((other, between), (Value::Null, 0.0)),
    }
    assert_eq!(field(event, "count"), Value::Uint(values.len() as u64));
}

fn parameters(of_windows: &[(&'static str, Parameter)]) -> Vec<(&'static str, Parameter)> {
    let mut parameters = vec![
        ("functions", names(FUNCTIONS)),
        ("of", function("number")),
        ("by", function("key")),
    ];
    parameters.extend_from_slice(of_windows);
    parameters
}

fn group(event: &Event) -> String {
    match field(event, "group") {
        Value::Text(group) => group.to_string(),
        other => panic!("{other:?} is no group"),
    }
}

fn time(event: &Event, name: &str) -> Time {
    match field(event, name) {
        Value::Time(time) => time,
        other => panic!("{other:?} is no time"),
    }
}

/// What one run publishes, and what it has taken.
fn run_windows(
    run: &mut Run,
    scheduled: &[(Time, Time, String, f64)],
) -> (Published, Vec<(Time, Time, String, f64)>) {
    let (mut published, mut accepted) = (Vec::new(), Vec::new());
    for (now, time, key, value) in scheduled {
        let used = run.books.used;
        published.extend(run.event(*now, 0, &row(*time, key, *value)));
        if run.books.used > used {
            accepted.push((*now, *time, key.clone(), *value));
        }
    }
    published.extend(run.clock(at(10_000.0)));
    (published, accepted)
}

proptest! {
    #[test]
    fn windows_of_time_are_what_happened_in_them(
        arrivals in arrivals(),
        (length, every) in prop_oneof![Just((5, 5)), Just((6, 2)), Just((6, 4)), Just((9, 1))],
        lateness in 0..4_i64,
        ahead in 0..3_i64,
    ) {
        let seconds = |seconds: i64| Span::from_seconds(seconds);
        let windows = parameters(&[
            ("window", Parameter::Span(seconds(length))),
            ("every", Parameter::Span(seconds(every))),
            ("lateness", Parameter::Span(seconds(lateness))),
            ("ahead", Parameter::Span(seconds(ahead))),
        ]);
        let scheduled = schedule(&arrivals);
        let mut run = Run::new("aggregate", &windows);
        let (published, accepted) = run_windows(&mut run, &scheduled);

        // Fates follow from the two times of an event alone.
        let mut expected = [0; 3];
        for (now, time, ..) in &scheduled {
            let last_end = (*time + seconds(length)).aligned(seconds(every));
            let fate = match () {
                () if *time > *now + seconds(ahead) => 1,
                () if last_end + seconds(lateness) <= *now => 2,
                () => 0,
            };
            expected[fate] += 1;
        }
        let found = [run.books.used, run.dropped(Reason::Future), run.dropped(Reason::Late)];
        prop_assert_eq!(found, expected);

        // A window has what came until it was closed, and is published then.
        let taken = |end: Time| -> Vec<(Time, String, f64)> {
            let in_time = accepted.iter().filter(|(now, ..)| *now < end + seconds(lateness));
            in_time.map(|(_, time, key, value)| (*time, key.clone(), *value)).collect()
        };
        let everything: Vec<_> = accepted.iter().map(|(_, t, k, v)| (*t, k.clone(), *v)).collect();
        let mut windows = naive(&everything, seconds(length), seconds(every));
        windows.retain(|(end, key), readings| {
            let mut of_window = naive(&taken(*end), seconds(length), seconds(every));
            *readings = of_window.remove(&(*end, key.clone())).unwrap_or_default();
            !readings.is_empty()
        });
        prop_assert_eq!(published.len(), windows.len());
        for ((now, event), ((end, key), readings)) in published.iter().zip(&windows) {
            prop_assert_eq!((time(event, "end"), group(event)), (*end, key.clone()));
            prop_assert_eq!(*now, *end + seconds(lateness));
            prop_assert_eq!(event.time(), *end - Span::from_nanoseconds(1));
            check(event, readings, length as f64);
        }
    }

    #[test]
    fn sessions_are_runs_without_a_gap(arrivals in arrivals(), lateness in 0..4_i64) {
        let gap = Span::from_seconds(2);
        let lateness = Span::from_seconds(lateness);
        let sessions = parameters(&[
            ("session", Parameter::Span(gap)),
            ("lateness", Parameter::Span(lateness)),
        ]);
        let mut run = Run::new("aggregate", &sessions);
        let (published, accepted) = run_windows(&mut run, &schedule(&arrivals));
        // No session is open for longer than it must, and nothing is counted twice.
        let mut counted = 0;
        for (now, event) in &published {
            let (start, end) = (time(event, "start"), time(event, "end"));
            prop_assert_eq!(*now, end + lateness);
            let mut readings: Vec<(Time, f64)> = Vec::new();
            for (_, time, key, value) in &accepted {
                if *key == group(event) && start <= *time && *time + gap <= end {
                    readings.push((*time, *value));
                }
            }
            let Value::Uint(count) = field(event, "count") else { panic!("a count") };
            counted += count;
            let mut times: Vec<Time> = readings.iter().map(|(time, _)| *time).collect();
            times.sort();
            prop_assert_eq!(times.first(), Some(&start));
            prop_assert_eq!(times.last().map(|last| *last + gap), Some(end));
            for pair in times.windows(2) {
                prop_assert!(pair[1] - pair[0] <= gap);
            }
            if readings.len() as u64 == count {
                let tied = times.windows(2).any(|pair| pair[0] == pair[1]);
                if !tied {
                    check(event, &readings, (end - start).seconds());
                }
            }
        }
        prop_assert_eq!(counted, run.books.used);
    }

    #[test]
    fn the_last_ones_are_the_last_ones(arrivals in arrivals(), length in 1..7_usize) {
        let last = parameters(&[("count", Parameter::Integer(length as i64))]);
        let mut run = Run::new("aggregate", &last);
        let mut came: BTreeMap<String, Vec<(Time, f64)>> = BTreeMap::new();
        for (now, time, key, value) in schedule(&arrivals) {
            let published = run.event(now, 0, &row(time, &key, value));
            let readings = came.entry(key.clone()).or_default();
            readings.push((time, value));
            if readings.len() < length {
                prop_assert!(published.is_empty());
                continue;
            }
            let [(_, event)] = &published[..] else { panic!("one result for each event") };
            prop_assert_eq!((event.time(), group(event)), (time, key));
            let readings = &readings[readings.len() - length..];
            let between = time_between(readings);
            if between > 0.0 {
                let seconds = between * readings.len() as f64 / (readings.len() - 1) as f64;
                check(event, readings, seconds);
            }
        }
        prop_assert_eq!(run.books.used, arrivals.len() as u64);
    }
}

fn time_between(readings: &[(Time, f64)]) -> f64 {
    let times = readings.iter().map(|(time, _)| *time);
    (times.clone().max().unwrap() - times.min().unwrap()).seconds()
}

fn mean_of_ten_seconds() -> Run {
    let parameters = [
        ("functions", names(&["mean"])),
        ("window", span(10.0)),
        ("of", function("value")),
    ];
    Run::new("aggregate", &parameters)
}

#[test]
fn one_wrong_timestamp_stalls_nothing() {
    let mut run = mean_of_ten_seconds();
    run.event(at(1001.0), 0, &number(at(1001.0), 1.0));
    run.event(at(1002.0), 0, &number(Time::MAX, 100.0));
    run.event(at(1003.0), 0, &number(Time::MIN, 100.0));
    run.event(at(1004.0), 0, &number(at(4_000_000.0), 100.0));
    run.event(at(1005.0), 0, &number(at(1005.0), 3.0));
    assert_eq!(run.dropped(Reason::Future), 2);
    assert_eq!(run.dropped(Reason::Late), 1);
    let published = run.clock(at(1020.0));
    let [(when, event)] = &published[..] else {
        panic!("one window is closed: {published:?}");
    };
    assert_eq!((*when, double(event, "mean")), (at(1011.0), 2.0));
}

#[test]
fn a_clock_that_is_set_back_does_not_make_everything_late() {
    let mut run = mean_of_ten_seconds();
    run.event(at(5005.0), 0, &number(at(5005.0), 1.0));
    run.clock(at(5100.0));
    run.event(at(1005.0), 0, &number(at(1005.0), 3.0));
    assert_eq!(run.dropped(Reason::Late), 0);
    assert_eq!(run.clock(at(1100.0)).len(), 1);
}

#[test]
fn windows_of_results_take_what_lies_in_them() {
    let mut short = mean_of_ten_seconds();
    let parameters = [
        ("functions", names(&["maximum"])),
        ("window", span(20.0)),
        ("of", Parameter::Expression("mean".into())),
    ];
    let mut long = Run::new("aggregate", &parameters);
    let mut published = Vec::new();
    for second in 1000..1060 {
        let results = short.event(
            at(second as f64),
            0,
            &number(at(second as f64), second as f64),
        );
        for (now, result) in results {
            published.extend(long.event_before_waking(now, 0, &result));
        }
    }
    published.extend(long.clock(at(1041.0)));
    let results: Vec<_> = published
        .iter()
        .map(|(_, event)| double(event, "maximum"))
        .collect();
    assert_eq!(results, [1014.5, 1034.5]);
    assert_eq!(long.dropped(Reason::Late), 0);
}

#[test]
fn failed_sensors_are_skipped_and_counted() {
    let mut run = mean_of_ten_seconds();
    run.event(at(1001.0), 0, &number(at(1001.0), 1.0));
    run.event(at(1002.0), 0, &failed(at(1002.0)));
    run.event(at(1012.0), 0, &failed(at(1012.0)));
    assert_eq!(run.dropped(Reason::Failed), 2);
    let published = run.clock(at(1030.0));
    // The first window was published when its successor's event came.
    let [(_, second)] = &published[..] else {
        panic!("{published:?}");
    };
    assert_eq!(field(second, "mean"), Value::Null);
    assert_eq!(field(second, "failed"), Value::Uint(1));
    let quality = second.header().quality.as_ref().expect("a failure");
    assert_eq!(quality.failure.as_deref(), Some("broken"));
}

#[test]
fn accuracy_follows_from_that_of_the_readings() {
    let reading = |value: f64, accuracy| {
        let quality = Quality {
            age: None,
            accuracy,
            failure: None,
        };
        Event::new(header("/number", at(1001.0), Some(quality)), value)
    };
    let cases = [
        ("mean", Some(0.25)),
        ("sum", Some(0.5)),
        ("maximum", Some(0.4)),
        ("count", None),
    ];
    for (name, expected) in cases {
        let parameters = [
            ("functions", names(&[name])),
            ("count", Parameter::Integer(2)),
            ("of", function("value")),
        ];
        let mut run = Run::new("aggregate", &parameters);
        run.event(at(1001.0), 0, &reading(1.0, Some(0.1)));
        let published = run.event(at(1002.0), 0, &reading(2.0, Some(0.4)));
        let quality = published[0].1.header().quality.as_ref();
        let accuracy = quality.and_then(|quality| quality.accuracy);
        assert_eq!(accuracy, expected, "{name}");
        let published = run.event(at(1003.0), 0, &reading(3.0, None));
        assert_eq!(published[0].1.header().quality, None, "{name}");
    }
}

#[test]
fn groups_are_bounded_and_make_room_again() {
    let mut parameters = parameters(&[("window", span(10.0))]);
    parameters.push(("groups", Parameter::Integer(2)));
    let mut run = Run::new("aggregate", &parameters);
    for key in ["a", "b", "c", "a"] {
        run.event(at(1001.0), 0, &row(at(1001.0), key, 1.0));
    }
    assert_eq!((run.books.used, run.dropped(Reason::Overflow)), (3, 1));
    run.event(at(1012.0), 0, &row(at(1012.0), "c", 1.0));
    assert_eq!((run.books.used, run.dropped(Reason::Overflow)), (4, 1));
}

#[test]
fn what_is_no_number_is_a_fault() {
    let mut run = mean_of_ten_seconds();
    run.event(at(1001.0), 0, &number(at(1001.0), f64::NAN));
    run.event(at(1001.0), 0, &number(at(1001.0), f64::INFINITY));
    assert_eq!(run.dropped(Reason::Fault), 2);
    assert_eq!(
        run.fault(),
        Some("`$value` is inf, which nothing can be made of")
    );
    run.event(at(1001.0), 0, &row(at(1001.0), "a", 1.0));
    assert_eq!(run.dropped(Reason::Type), 1);
}

#[test]
fn one_kind_of_window_is_needed() {
    let refused = |parameters: &[(&str, Parameter)]| {
        let mut all = vec![("functions", names(&["count"]))];
        all.extend_from_slice(parameters);
        let catalogue = milieu_stream::operators::catalogue();
        Run::of(catalogue, "aggregate", &all, 1)
            .err()
            .expect("it is refused")
    };
    let one = "`aggregate` needs one of `window`, `count` and `session`, and no other of them";
    assert_eq!(refused(&[]), one);
    assert_eq!(
        refused(&[("window", span(1.0)), ("session", span(1.0))]),
        one
    );
    assert_eq!(
        refused(&[("window", span(1.0)), ("every", span(2.0))]),
        "`every` of `aggregate` must not be longer than the window"
    );
    assert_eq!(
        refused(&[("window", span(0.0))]),
        "`window` of `aggregate` is to be longer than nothing"
    );
    assert_eq!(
        refused(&[("window", span(10.0)), ("every", span(0.001_000_001))]),
        "`every` of `aggregate` would cut the window into more than 1000 parts"
    );
    assert_eq!(
        refused(&[("count", Parameter::Integer(0))]),
        "`count` of `aggregate` is to be a whole number from 1 to 100000"
    );
}
