//! Sources by name.

use std::collections::HashSet;

use crate::support::{Live, Watched, put};
use milieu_adapters::machine::Load;
use milieu_adapters::timer::Tick;
use milieu_adapters::{Number, catalogue};
use milieu_stream::Source;
use milieu_transfer::Value;
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
