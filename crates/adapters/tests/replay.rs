//! Recordings are replayed row by row, at any speed.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::support::{Live, Watched, bodies, put};
use milieu_adapters::nmea::Position;
use milieu_adapters::replay::{self, Column, Pace, Replay, TimeFormat};
use milieu_stream::Status;
use milieu_transfer::{Event, Span, Time, Value};
use serde::{Deserialize, Serialize};
use tempfile::tempdir;

fn at(text: &str) -> Time {
    text.parse().unwrap()
}

/// A year of hourly observations at three airports, with real gaps.
fn weather() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("examples/weather-station/data/weather-2013.csv")
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Weather {
    station: String,
    temperature_celsius: Option<f64>,
    wind_direction_degrees: Option<i64>,
    time: Time,
}

/// Three rows, at 0, 10 and 40 seconds.
const ROWS: &str = "time,n,name\n\
    2013-01-01T00:00:00Z,1,one\n\
    2013-01-01T00:00:10Z,2,\n\
    2013-01-01T00:00:40Z,2.5,\"th,ree\"\n";

const START: &str = "2013-01-01T00:00:00Z";

/// When each event was published, in seconds since the beginning.
fn replayed(replay: Replay, seconds: f64) -> Vec<f64> {
    let mut source = Watched::new(replay.at_replay());
    let start = Time::from_seconds(1_000_000);
    let events = source.run(seconds);
    events
        .iter()
        .map(|event| (event.time() - start).seconds())
        .collect()
}

/// When each event was recorded, in seconds since the beginning.
fn recorded(events: &[Event]) -> Vec<f64> {
    let seconds = |event: &Event| (event.time() - at(START)).seconds();
    events.iter().map(seconds).collect()
}

#[test]
fn rows_come_as_they_were_recorded() {
    let root = tempdir().unwrap();
    put(root.path(), "rows.csv", ROWS);
    let path = root.path().join("rows.csv");
    assert_eq!(replayed(replay::csv(&path), 1000.0), [0.0, 10.0, 40.0]);
    let fast = replay::csv(&path).pace(Pace::Times(4.0));
    assert_eq!(replayed(fast, 1000.0), [0.0, 2.5, 10.0]);
    let slow = replay::csv(&path).pace(Pace::Times(0.5));
    assert_eq!(replayed(slow, 1000.0), [0.0, 20.0, 80.0]);
    let at_once = replay::csv(&path).pace(Pace::Immediate);
    assert_eq!(replayed(at_once, 0.0), [0.0, 0.0, 0.0]);
    let mut source = Watched::new(replay::csv(&path));
    let events = source.run(30.0);
    assert_eq!(recorded(&events), [0.0, 10.0]);
    assert_eq!(source.status(), &Status::Working);
    source.run(10.0);
    assert_eq!(source.status(), &Status::Ended);
}

#[test]
fn rows_are_values_or_structs() {
    let root = tempdir().unwrap();
    put(root.path(), "rows.csv", ROWS);
    let path = root.path().join("rows.csv");
    let values = Watched::new(replay::csv(&path)).bodies::<Value>(100.0);
    assert_eq!(values[0].field("n"), Some(&Value::Double(1.0)));
    assert_eq!(values[0].field("time"), Some(&Value::Time(at(START))));
    assert_eq!(values[1].field("name"), Some(&Value::Null));
    assert_eq!(values[2].field("name"), Some(&Value::from("th,ree")));

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Row {
        n: String,
        name: Option<String>,
    }
    let typed = replay::csv(&path).column("n", Column::Text).typed::<Row>();
    let rows = Watched::new(typed).bodies::<Row>(100.0);
    assert_eq!((rows[2].n.as_str(), rows[1].name.as_deref()), ("2.5", None));
}

#[test]
fn json_lines_have_their_times_in_any_format() {
    let root = tempdir().unwrap();
    let text = "{\"when\": 1356998400.5, \"room\": {\"celsius\": 21}}\n\n\
                {\"when\": \"1356998401\", \"room\": null}\n";
    put(root.path(), "rows.jsonl", text);
    let rows = replay::json_lines(root.path().join("rows.jsonl"));
    let events = Watched::new(rows.time("when", TimeFormat::UnixSeconds)).run(100.0);
    assert_eq!(recorded(&events), [0.5, 1.0]);
    let values = bodies::<Value>(&events);
    let celsius = values[0]
        .field("room")
        .and_then(|room| room.field("celsius"));
    assert!(
        matches!(celsius, Some(Value::Int(21) | Value::Uint(21))),
        "{celsius:?}"
    );
}

#[test]
fn bad_rows_are_left_out_counted_and_told_with_their_line() {
    let root = tempdir().unwrap();
    let text = "time;n\n2013-01-01T00:00:00Z;1\n2013-01-01T00:00:01Z\n\
                yesterday;2\n2013-01-01T00:00:02Z;many\n2013-01-01T00:00:03Z;3\n";
    put(root.path(), "rows.csv", text);
    let rows = replay::csv(root.path().join("rows.csv")).separator(';');
    let mut source = Watched::new(rows.column("n", Column::Number).pace(Pace::Immediate));
    let events = source.run(0.0);
    assert_eq!(recorded(&events), [0.0, 3.0]);
    let reason = source.failure();
    assert!(reason.contains("rows.csv: 3 of 4 rows"), "{reason}");
    assert!(
        reason.contains("line 5: `n`: `many` is not a number"),
        "{reason}"
    );

    let text = "{\"time\": \"2013-01-01T00:00:00Z\"}\n{\"t\": 1}\nno\n";
    put(root.path(), "rows.jsonl", text);
    let rows = replay::json_lines(root.path().join("rows.jsonl"));
    let mut source = Watched::new(rows.pace(Pace::Immediate));
    assert_eq!(source.run(0.0).len(), 1);
    assert!(
        source.failure().contains("2 of 3 rows"),
        "{}",
        source.failure()
    );
    assert!(source.failure().contains("line 3"), "{}", source.failure());
}

#[test]
fn a_file_that_does_not_fit_says_what_it_has() {
    let root = tempdir().unwrap();
    put(root.path(), "rows.csv", ROWS);
    let path = root.path().join("rows.csv");
    for rows in [
        replay::csv(&path).time("when", TimeFormat::Rfc3339),
        replay::csv(&path).separator(';'),
        replay::csv(&path).column("colour", Column::Text),
    ] {
        let mut source = Watched::new(rows);
        assert!(source.run(10.0).is_empty());
        let reason = source.failure();
        assert!(reason.contains("it has no column `"), "{reason}");
        assert!(reason.contains("name"), "{reason}");
    }
    put(root.path(), "empty.csv", "time,n\n");
    let mut source = Watched::new(replay::csv(root.path().join("empty.csv")).forever());
    source.run(10.0);
    assert!(source.failure().contains("no row that could be replayed"));
}

#[test]
fn a_file_that_is_not_there_is_replayed_when_it_comes() {
    let root = tempdir().unwrap();
    let path = root.path().join("rows.csv");
    let mut source = Watched::new(replay::csv(&path));
    source.run(5.0);
    let reason = source.failure();
    assert!(reason.contains("it is replayed when it comes"), "{reason}");
    put(root.path(), "rows.csv", ROWS);
    assert_eq!(source.run(60.0).len(), 3);
    assert_eq!(source.status(), &Status::Ended);
}

#[test]
fn a_recording_has_a_beginning_an_end_and_passes() {
    let root = tempdir().unwrap();
    put(root.path(), "rows.csv", ROWS);
    let rows = || replay::csv(root.path().join("rows.csv"));
    let from = rows().from(at("2013-01-01T00:00:05Z"));
    assert_eq!(replayed(from, 100.0), [0.0, 30.0]);
    let until = rows().until(at("2013-01-01T00:00:40Z"));
    assert_eq!(replayed(until, 100.0), [0.0, 10.0]);
    let mut source = Watched::new(rows().passes(2));
    let events = source.run(1000.0);
    assert_eq!(recorded(&events), [0.0, 10.0, 40.0, 70.0, 80.0, 110.0]);
    assert_eq!(source.status(), &Status::Ended);
    let mut forever = Watched::new(rows().forever().pace(Pace::Times(10.0)));
    assert_eq!(forever.run(70.0).len(), 31);
}

#[test]
fn a_recording_is_stopped_and_moved_within() {
    let root = tempdir().unwrap();
    put(root.path(), "rows.csv", ROWS);
    let rows = replay::csv(root.path().join("rows.csv"));
    let control = rows.control();
    let mut source = Watched::new(rows.at_replay());
    assert_eq!(source.run(5.0).len(), 1);
    control.pause();
    assert!(source.poll().is_empty());
    assert!(source.run(100.0).is_empty());
    control.resume();
    assert!(source.poll().is_empty(), "five seconds are left");
    assert!(source.run(4.0).is_empty());
    assert_eq!(source.run(1.0).len(), 1);
    control.pace(Pace::Times(10.0));
    assert!(source.poll().is_empty());
    assert!(source.run(2.9).is_empty());
    assert_eq!(source.run(0.1).len(), 1);
    assert_eq!(source.status(), &Status::Ended);

    let rows = replay::csv(root.path().join("rows.csv"));
    let control = rows.control();
    let mut source = Watched::new(rows);
    source.run(15.0);
    control.seek(at("2013-01-01T00:00:05Z"));
    assert_eq!(recorded(&source.poll()), [10.0]);
    control.seek(at(START));
    control.pace(Pace::Immediate);
    assert_eq!(recorded(&source.poll()), [0.0, 10.0, 40.0]);
}

#[test]
fn whoever_goes_somewhere_is_exactly_there_and_has_its_past() {
    let rows = replay::csv("rows.csv").content(ROWS.as_bytes());
    let rows = rows.lead(Span::from_seconds(15)).pace(Pace::Times(2.0));
    let rows = rows.forever();
    let control = rows.control();
    let mut source = Watched::new(rows);
    let start = Time::from_seconds(1_000_000);
    let place = |second: f64| {
        let now = start + std::time::Duration::from_secs_f64(second).into();
        let place = control.position(now);
        place.map(|place| (place - at(START)).seconds())
    };
    assert_eq!(place(0.0), None);
    control.pause();
    control.seek(at("2013-01-01T00:00:20Z"));
    assert_eq!(place(0.0), Some(20.0), "it is there at once");
    assert_eq!(recorded(&source.run(100.0)), [10.0], "also paused");
    assert_eq!(place(100.0), Some(20.0));
    control.pace(Pace::Times(4.0));
    control.resume();
    assert!(source.poll().is_empty());
    assert_eq!(place(103.0), Some(32.0));
    // The third row comes after 5 s, and those of the next pass follow on it.
    assert_eq!(recorded(&source.run(5.0)), [40.0]);
    assert_eq!(place(110.0), Some(60.0), "which is before the first row");
    assert_eq!(recorded(&source.run(10.0)), [70.0, 80.0]);
    assert_eq!(place(115.0), Some(10.0));
    control.seek(at("2013-01-01T00:00:30Z"));
    assert!(source.poll().is_empty());
    assert_eq!(place(115.0), Some(30.0));
    assert_eq!(recorded(&source.run(2.5)), [110.0]);
}

#[test]
fn whoever_goes_behind_the_end_begins_again() {
    let rows = || replay::csv("rows.csv").content(ROWS.as_bytes());
    let beyond = at("2099-01-01T00:00:00Z");
    // A pass lasts 70 s, the first one too although all of it is skipped.
    for (replay, first, times) in [
        (rows().forever(), 0.0, [70.0, 80.0]),
        (
            rows().forever().lead(Span::from_seconds(15)),
            0.0,
            [70.0, 80.0],
        ),
        (
            rows().forever().until(at("2013-01-01T00:00:20Z")),
            0.0,
            [20.0, 30.0],
        ),
        (
            rows().forever().from(at("2013-01-01T00:00:05Z")),
            10.0,
            [70.0, 100.0],
        ),
    ] {
        let control = replay.control();
        control.seek(beyond);
        let mut source = Watched::new(replay);
        assert_eq!(recorded(&source.run(0.0)), times[..1], "it comes now");
        assert_eq!(source.status(), &Status::Working);
        let now = Time::from_seconds(1_000_000);
        let place = control.position(now).expect("it is somewhere");
        assert_eq!((place - at(START)).seconds(), first);
        assert_eq!(recorded(&source.run(30.0))[0], times[1]);
    }
    let replay = rows();
    let control = replay.control();
    control.seek(beyond);
    let mut once = Watched::new(replay);
    assert!(once.run(10.0).is_empty());
    assert_eq!(once.status(), &Status::Ended);
    control.seek(at(START));
    assert_eq!(control.position(at(START)), None, "it is nowhere any more");
    let nothing = rows().forever().from(beyond);
    let mut source = Watched::new(nothing);
    source.run(10.0);
    assert!(source.failure().contains("no row that could be replayed"));
}

#[test]
fn a_clock_that_is_set_back_stops_no_recording() {
    let root = tempdir().unwrap();
    put(root.path(), "rows.csv", ROWS);
    let mut source = Watched::new(replay::csv(root.path().join("rows.csv")));
    source.run(5.0);
    assert!(source.leap(-3600.0).is_empty());
    // How long ago the last row was, nobody can tell any more.
    assert_eq!(recorded(&source.run(10.0)), [10.0]);
}

#[test]
fn a_control_wakes_a_recording_in_real_time() {
    let root = tempdir().unwrap();
    put(root.path(), "rows.csv", ROWS);
    let rows = replay::csv(root.path().join("rows.csv"));
    let control = rows.control();
    let mut source = Live::new(rows);
    source.events(1);
    control.pace(Pace::Immediate);
    assert_eq!(source.events(2).len(), 2);
    source.status(|status| *status == Status::Ended);
}

#[test]
fn a_year_of_weather_is_typed_and_complete() {
    let path = weather();
    let rows = replay::csv(&path).column("wind_direction_degrees", Column::Integer);
    let mut source = Watched::new(rows.typed::<Weather>().pace(Pace::Times(3600.0)));
    let events = source.run(366.0 * 24.0);
    assert_eq!(source.status(), &Status::Ended);
    assert_eq!(events.len(), 26_115);
    let weather = bodies::<Weather>(&events);
    assert_eq!(weather[0].temperature_celsius, Some(3.9));
    assert!(
        weather
            .iter()
            .any(|weather| weather.temperature_celsius.is_none())
    );
    let as_recorded = |(event, weather): (&Event, &Weather)| event.time() == weather.time;
    assert!(events.iter().zip(&weather).all(as_recorded));
    let day = replay::csv(&path).from(at("2013-05-08T00:00:00Z"));
    let day = day.until(at("2013-05-09T00:00:00Z")).pace(Pace::Immediate);
    let mut source = Watched::new(day);
    let events = source.run(0.0);
    assert!(events.len() <= 72 && events.len() > 60, "{}", events.len());
}

#[test]
fn a_recorded_flight_is_replayed_by_its_own_time() {
    let root = tempdir().unwrap();
    let mut file = fs::File::create(root.path().join("flight.log")).unwrap();
    for second in 24..44 {
        for body in [
            format!("GPRMC,1101{second},A,5505.33,N,03858.58,E,152.6,86.2,310317,8.9,E,D"),
            format!("GPGGA,1101{second},5505.33,N,03858.58,E,2,09,0.9,2177.0,M,14.0,M,,"),
        ] {
            let sum = body.bytes().fold(0, |sum, byte| sum ^ byte);
            writeln!(file, "${body}*{sum:02X}\r").unwrap();
        }
    }
    drop(file);
    let mut source = Watched::new(replay::nmea(root.path().join("flight.log")));
    let events = source.run(10.0);
    let times: Vec<Span> = events
        .windows(2)
        .map(|e| e[1].time() - e[0].time())
        .collect();
    assert_eq!(times, [Span::from_seconds(1); 10]);
    assert_eq!(source.run(100.0).len(), 9);
    let all = bodies::<Position>(&events);
    assert!(
        all.iter()
            .all(|position| position.altitude_metres == Some(2177.0))
    );
}
