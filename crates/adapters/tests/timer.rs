//! Timers tick when they are asked to, whatever the clock does.

use std::time::Duration;

use crate::support::Watched;
use milieu_adapters::timer::{self, Tick, TimeOfDay, Timer};
use milieu_transfer::{Event, Time};

const HOUR: f64 = 3600.0;

/// Seconds since 1970 of the ticks, and what was missed before each.
fn ticks(events: &[Event]) -> Vec<(i64, u64)> {
    let tick = |event: &Event| {
        let missed = event.get::<Tick>().unwrap().missed;
        (event.time().nanoseconds() / 1_000_000_000, missed)
    };
    events.iter().map(tick).collect()
}

fn since(seconds: i64, timer: Timer) -> Watched {
    Watched::since(Time::from_seconds(seconds), timer)
}

fn at(times: &[&str]) -> Vec<TimeOfDay> {
    times.iter().map(|time| time.parse().unwrap()).collect()
}

#[test]
fn ticks_are_aligned_to_the_clock() {
    let mut timer = since(1007, timer::every(Duration::from_secs(10)));
    assert_eq!(ticks(&timer.run(0.0)), []);
    let expected = [(1010, 0), (1020, 0), (1030, 0)];
    assert_eq!(ticks(&timer.run(25.0)), expected);
}

#[test]
fn what_a_sleeping_machine_missed_is_one_tick() {
    let mut timer = since(1000, timer::every(Duration::from_secs(10)));
    timer.run(0.0);
    assert_eq!(ticks(&timer.leap(57.0)), [(1050, 4)]);
    assert_eq!(ticks(&timer.run(3.0)), [(1060, 0)]);
}

#[test]
fn times_of_day_follow_the_clocks_of_a_place() {
    // 2024-03-30T00:00:00Z; in the following night Berlin goes over to summer time.
    let start = 1_711_756_800;
    let timer = timer::daily(at(&["12:00", "06:30", "12:00"]));
    let timer = timer.zone("Europe/Berlin").unwrap();
    let seen = ticks(&since(start, timer).run(48.0 * HOUR));
    let hours: Vec<f64> = seen
        .iter()
        .map(|(at, _)| (at - start) as f64 / HOUR)
        .collect();
    assert_eq!(hours, [5.5, 11.0, 28.5, 34.0]);
}

#[test]
fn a_time_that_a_day_has_not_or_twice_comes_once() {
    let zoned = |times| timer::daily(at(times)).zone("Europe/Berlin").unwrap();
    // 2024-03-31: from 02:00 to 03:00.
    let spring = 1_711_843_200;
    let seen = ticks(&since(spring, zoned(&["02:30"])).run(12.0 * HOUR));
    assert_eq!(seen, [(spring + 3600 + 1800, 0)]);
    // 2024-10-27: from 03:00 back to 02:00.
    let autumn = 1_729_987_200;
    let seen = ticks(&since(autumn, zoned(&["02:30"])).run(12.0 * HOUR));
    assert_eq!(seen, [(autumn + 1800, 0)]);
}

#[test]
fn days_that_were_slept_through_are_counted() {
    let timer = timer::daily(at(&["00:00:30", "12:00"]))
        .zone("UTC")
        .unwrap();
    let mut timer = since(0, timer);
    timer.run(0.0);
    assert_eq!(ticks(&timer.leap(49.0 * HOUR)), [(2 * 86_400 + 30, 4)]);
}

#[test]
fn a_timer_that_is_polled_early_says_nothing() {
    let mut timer = since(1000, timer::every(Duration::from_secs(10)));
    timer.run(0.0);
    for _ in 0..5 {
        assert_eq!(ticks(&timer.poll()), []);
    }
    assert_eq!(ticks(&timer.run(10.0)), [(1010, 0)]);
}

#[test]
fn what_is_no_time_of_day_and_no_zone_is_refused() {
    for text in [
        "",
        "7:30",
        "24:00",
        "12:60",
        "12:00:00:00",
        "noon",
        "+1:00",
        "12",
    ] {
        let error = text.parse::<TimeOfDay>().unwrap_err().to_string();
        assert!(error.contains("`07:30` is one"), "{error}");
    }
    let error = timer::daily([]).zone("Europe/Atlantis").unwrap_err();
    assert!(error.to_string().contains("Europe/Atlantis"));
}

#[test]
fn nothing_a_day_is_never() {
    let mut timer = since(0, timer::daily([]));
    assert!(timer.run(1e7).is_empty());
}
