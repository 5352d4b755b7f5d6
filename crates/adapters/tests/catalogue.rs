//! Sources by name.

use std::collections::HashSet;

use crate::support::{Live, Watched, put};
use milieu_adapters::catalogue::{self, Made, With};
use milieu_adapters::machine::Load;
use milieu_adapters::replay::RowType;
use milieu_adapters::timer::Tick;
use milieu_adapters::{Format, Number};
use milieu_stream::{Source, Status};
use milieu_transfer::{Event, Time, Value};
use tempfile::tempdir;

#[track_caller]
fn make(name: &str, given: &[(&str, &str)]) -> Box<dyn Source> {
    catalogue::make(name, given).unwrap_or_else(|failure| panic!("{failure}"))
}

#[track_caller]
fn refused(name: &str, given: &[(&str, &str)]) -> String {
    match catalogue::make(name, given) {
        Ok(_) => panic!("`{name}` takes {given:?}"),
        Err(failure) => failure.to_string(),
    }
}

#[track_caller]
fn make_with(name: &str, given: &[(&str, &str)], with: With) -> Made {
    catalogue::make_with(name, given, with).unwrap_or_else(|failure| panic!("{failure}"))
}

#[track_caller]
fn refused_with(name: &str, given: &[(&str, &str)], with: With) -> String {
    match catalogue::make_with(name, given, with) {
        Ok(_) => panic!("`{name}` takes {given:?}"),
        Err(failure) => failure.to_string(),
    }
}

/// Each word of a text as a number.
fn words() -> With {
    let format = Format::with(|feed, text| {
        for word in text.split(' ') {
            let value = word.parse().map_err(|_| format!("`{word}` is a word"))?;
            feed.publish(feed.now(), Number { value });
        }
        Ok(())
    });
    With {
        format: Some(format),
        ..With::default()
    }
}

fn in_memory(content: impl AsRef<[u8]>) -> With {
    With {
        content: Some(content.as_ref().into()),
        ..With::default()
    }
}

#[test]
fn names_are_distinct_and_everything_is_described() {
    let mut names = HashSet::new();
    for source in catalogue::all() {
        assert!(names.insert(source.name), "{}", source.name);
        assert!(source.summary.ends_with('.'), "{}", source.name);
        assert!(!source.events.is_empty());
        let mut known = HashSet::new();
        let mut has_named = false;
        for parameter in source.parameters {
            assert!(
                known.insert(parameter.name),
                "{}: {}",
                source.name,
                parameter.name
            );
            assert!(!parameter.summary.is_empty());
            assert!(
                !(parameter.positional && has_named),
                "positional ones come first"
            );
            has_named |= !parameter.positional;
        }
    }
}

/// Every source can be made of what it must be given, or says that it was not
/// built.
#[test]
fn defaults_are_what_their_parameters_take() {
    for source in catalogue::all() {
        let mut given = Vec::new();
        for parameter in source.parameters {
            let value = match (parameter.name, parameter.default) {
                (_, Some(default)) => default,
                ("interval", None) => "1s",
                ("at", None) => "12:00",
                (_, None) => "/nowhere",
            };
            if !value.is_empty() {
                given.push((parameter.name, value));
            }
        }
        if source.name == "gpio.lines" && cfg!(not(feature = "gpio")) {
            assert!(refused(source.name, &given).contains("feature `gpio`"));
        } else {
            make(source.name, &given);
        }
    }
}

#[test]
fn sources_do_as_they_are_told() {
    let root = tempdir().unwrap();
    put(root.path(), "proc/loadavg", "1 2 3");
    let given = [("every", "500ms"), ("root", root.path().to_str().unwrap())];
    let mut load = Watched::new(make("machine.load", &given));
    assert_eq!(load.bodies::<Load>(2.0).len(), 5);
    let mut timer = Watched::new(make("timer.every", &[("interval", "1m30s")]));
    assert_eq!(timer.bodies::<Tick>(900.0).len(), 10);
    let text = "when;room;n\n0;007;1\n60;008;2\n";
    put(root.path(), "rows.csv", text);
    let path = root.path().join("rows.csv");
    let given = [
        ("path", path.to_str().unwrap()),
        ("time", "when"),
        ("time_format", "seconds"),
        ("separator", ";"),
        ("texts", "room"),
        ("integers", "n"),
        ("pace", "60"),
        ("passes", "forever"),
    ];
    let rows = Watched::new(make("replay.csv", &given)).bodies::<Value>(10.0);
    assert_eq!(rows.len(), 11);
    assert_eq!(rows[1].field("room"), Some(&Value::from("008")));
    assert_eq!(rows[1].field("n"), Some(&Value::Int(2)));
    let given = [
        ("run", "echo '{\"n\": 1}'"),
        ("format", "json"),
        ("once", "true"),
    ];
    let value = Live::new(make("command.shell", &given))
        .bodies::<Value>(1)
        .remove(0);
    assert!(value.field("n").is_some(), "{value:?}");
    let number = root.path().join("number");
    std::fs::write(&number, "4\n").unwrap();
    let given = [("path", number.to_str().unwrap()), ("format", "number")];
    let mut content = Live::new(make("file.content", &given));
    assert_eq!(content.bodies::<Number>(1)[0].value, 4.0);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (name, given, says) in [
        (
            "machine.lode",
            &[][..],
            "there are machine.load, machine.pressure",
        ),
        (
            "machine.load",
            &[("often", "5s")],
            "`often`: there is no such parameter",
        ),
        (
            "machine.load",
            &[("every", "5")],
            "`machine.load`, parameter `every`: `5` is no span",
        ),
        (
            "timer.every",
            &[],
            "parameter `interval`: this must be given",
        ),
        (
            "timer.daily",
            &[("at", "noon")],
            "`timer.daily`, parameter `at`: `noon`: that is no time of day",
        ),
        (
            "timer.daily",
            &[("at", "12:00"), ("zone", "Mars")],
            "parameter `zone`: time zone `Mars`",
        ),
        ("file.content", &[("path", "")], "may not be empty"),
        (
            "serial.lines",
            &[("path", "x"), ("baud", "fast")],
            "`fast` is not a whole number",
        ),
        (
            "serial.lines",
            &[("path", "x"), ("parity", "even?")],
            "`none`, `even`, `odd`",
        ),
        (
            "serial.bytes",
            &[("path", "x"), ("flow_control", "1")],
            "neither `true` nor `false`",
        ),
        (
            "replay.csv",
            &[("path", "x"), ("from", "May")],
            "`May` is not a point in time",
        ),
        (
            "replay.csv",
            &[("path", "x"), ("separator", "::")],
            "one character or `tab`",
        ),
        (
            "replay.nmea",
            &[("path", "x"), ("passes", "-1")],
            "a whole number or `forever`",
        ),
    ] {
        let failure = refused(name, given);
        assert!(failure.contains(says), "{failure}");
    }
}

#[test]
fn a_program_has_formats_of_its_own() {
    let run = "echo '1 2'; echo; echo '3 x'; sleep 0.3; echo 4; exec sleep 1000";
    let made = make_with("command.shell", &[("run", run)], words());
    assert!(made.control.is_none());
    let mut lines = Live::new(made.source);
    let why = lines.failure("line 3: `3 x`: `x` is a word");
    assert!(why.contains(run), "{why}");
    let numbers = lines.bodies::<Number>(4).into_iter();
    let numbers: Vec<f64> = numbers.map(|number| number.value).collect();
    assert_eq!(numbers, [1.0, 2.0, 3.0, 4.0]);
    lines.working();

    let root = tempdir().unwrap();
    put(root.path(), "level", "21 22\n");
    let path = root.path().join("level");
    let given = [("path", path.to_str().unwrap())];
    let mut content = Live::new(make_with("file.content", &given, words()).source);
    assert_eq!(content.bodies::<Number>(2)[1].value, 22.0);
    make_with("serial.lines", &[("path", "/dev/nowhere")], words());
}

const ROWS: &str = "time,n\n\
    2013-01-01T00:00:00Z,1\n\
    2013-01-01T00:00:10Z,2\n\
    soon,3\n\
    2013-01-01T00:00:40Z,4\n";

fn at(second: i64) -> Time {
    let start: Time = "2013-01-01T00:00:00Z".parse().unwrap();
    start + milieu_transfer::Span::from_seconds(second)
}

fn times(events: &[Event]) -> Vec<Time> {
    events.iter().map(Event::time).collect()
}

#[test]
fn recordings_lie_in_memory_and_are_stopped_and_moved_within() {
    let made = make_with("replay.csv", &[("lead", "15s")], in_memory(ROWS));
    let control = made.control.expect("it is a recording");
    let mut source = Watched::new(made.source);
    assert_eq!(times(&source.run(5.0)), [at(0)]);
    assert_eq!(control.position(Time::from_seconds(1_000_005)), Some(at(5)));
    control.pause();
    control.seek(at(20));
    assert_eq!(times(&source.poll()), [at(10)], "by its lead");
    let why = source.failure();
    assert!(why.starts_with("recording: 1 of 4 rows"), "{why}");
    assert!(why.contains("line 4: `time`: "), "{why}");
    assert!(source.run(1000.0).is_empty());
    control.resume();
    source.poll();
    assert_eq!(times(&source.run(20.0)), [at(40)]);

    // By its path it is called.
    let given = [("path", "morning"), ("pace", "immediate")];
    let made = make_with("replay.csv", &given, in_memory("n,m\n1,2\n"));
    let mut source = Watched::new(made.source);
    assert!(source.run(1.0).is_empty());
    assert!(
        source.failure().starts_with("morning: "),
        "{}",
        source.failure()
    );
    for (name, content) in [
        ("replay.csv", ""),
        ("replay.nmea", ""),
        ("replay.json_lines", "{\"time\": \"2013-01-01T00:00:00Z\"}"),
    ] {
        let made = make_with(name, &[("path", "")], in_memory(content));
        assert!(made.control.is_some());
        let events = Watched::new(made.source).run(1.0);
        assert_eq!(events.len(), content.len().min(1), "{name}");
    }

    // One in a file has a handle too.
    let root = tempdir().unwrap();
    put(root.path(), "rows.csv", ROWS);
    let path = root.path().join("rows.csv");
    let given = [("path", path.to_str().unwrap())];
    let made = make_with("replay.csv", &given, With::default());
    made.control.expect("it is a recording").seek(at(40));
    let mut source = Watched::new(made.source);
    assert_eq!(times(&source.run(1.0)), [at(40)]);
    assert!(matches!(source.status(), Status::Failing(_)));
}

#[test]
fn what_a_program_gives_has_to_be_of_use() {
    let path = [("path", "/nowhere")];
    for (name, given, with, says) in [
        (
            "machine.load",
            &[][..],
            words(),
            "`machine.load`: it reads no texts, of which a format makes events; there are \
             command.shell, file.content, serial.lines",
        ),
        ("serial.bytes", &path[..], words(), "it reads no texts"),
        ("replay.csv", &path[..], words(), "it reads no texts"),
        (
            "command.shell",
            &[("run", "true"), ("format", "number")],
            words(),
            "`command.shell`, parameter `format`: the program has a format of its own",
        ),
        (
            "file.content",
            &path[..],
            in_memory(ROWS),
            "`file.content`: it replays no recording, which could lie in memory; there are \
             replay.csv, replay.json_lines, replay.nmea",
        ),
        (
            "replay.nmea",
            &path[..],
            With {
                rows: Some(RowType::of::<Number>()),
                ..With::default()
            },
            "`replay.nmea`: it replays no rows, of which a type could be made; there are \
             replay.csv, replay.json_lines",
        ),
        (
            "replay.csv",
            &[],
            With::default(),
            "parameter `path`: this must be given",
        ),
        (
            "replay.csv",
            &[("lead", "long")],
            in_memory(ROWS),
            "`long` is no span",
        ),
        ("machine.lode", &[], words(), "there is no such source"),
    ] {
        let failure = refused_with(name, given, with);
        assert!(failure.contains(says), "{failure}");
    }
}
