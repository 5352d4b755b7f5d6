//! Programs whose output lines are events.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{self, Live, put};
use milieu_adapters::{Format, Number, Text, command};
use milieu_stream::Status;
use serde::{Deserialize, Serialize};
use tempfile::tempdir;

fn text(text: &str) -> Text {
    Text {
        text: text.to_owned(),
    }
}

/// Whether a process runs; one that has ended and was not waited for does not.
fn runs(process: &str) -> bool {
    let Ok(state) = fs::read_to_string(format!("/proc/{}/stat", process.trim())) else {
        return false;
    };
    !state.contains(") Z ")
}

#[track_caller]
fn until(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "it does not happen"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn lines_are_events_as_soon_as_they_are_written() {
    let script = "echo one; echo; printf 'two\\r\\n'; exec sleep 1000";
    let mut source = Live::new(command::shell(script));
    assert_eq!(source.bodies::<Text>(2), [text("one"), text("two")]);
    source.working();
}

#[test]
fn a_last_line_without_an_end_is_one_and_an_end_is_told() {
    let mut source = Live::new(command::lines("printf", ["a\\nb"]).once());
    assert_eq!(source.bodies::<Text>(2), [text("a"), text("b")]);
    source.status(|status| *status == Status::Ended);
}

#[test]
fn lines_are_numbers_and_json_and_what_is_neither_is_told_with_its_line() {
    let script = "echo 21.5; echo NaN; cat $gate; echo -3e2; exec sleep 1000";
    let folder = tempdir().unwrap();
    let gate = folder.path().join("gate");
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, 0o600.into()).unwrap();
    let command = command::shell(script).format(Format::number());
    let mut source = Live::new(command.variable("gate", &gate));
    assert_eq!(source.bodies::<Number>(1)[0].value, 21.5);
    let failure = source.failure("is not a number");
    assert!(failure.contains("line 2: `NaN`"), "{failure}");
    fs::write(&gate, "").unwrap();
    assert_eq!(source.bodies::<Number>(1)[0].value, -300.0);
    source.working();

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Room {
        temperature_celsius: f64,
    }
    let script = r#"echo '{"temperature_celsius": 21}'; echo '{}'; exec sleep 1000"#;
    let mut source = Live::new(command::shell(script).format(Format::json::<Room>()));
    assert_eq!(source.bodies::<Room>(1)[0].temperature_celsius, 21.0);
    source.failure("missing field `temperature_celsius`");
}

#[test]
fn a_program_that_fails_is_started_again_and_says_why_meanwhile() {
    let folder = tempdir().unwrap();
    let script = "echo x >> runs; [ -e good ] && echo fine && exec sleep 1000; \
                  echo 'no sensor at bus 1' >&2; exit 3";
    let mut source = Live::new(command::shell(script).folder(folder.path()));
    let failure = source.failure("exit status: 3");
    assert!(
        failure.contains("after saying `no sensor at bus 1`"),
        "{failure}"
    );
    assert!(failure.contains("again in 1 s"), "{failure}");
    put(folder.path(), "good", "");
    assert_eq!(source.bodies::<Text>(1), [text("fine")]);
    source.working();
    assert_eq!(
        fs::read_to_string(folder.path().join("runs")).unwrap(),
        "x\nx\n"
    );
}

#[test]
fn a_program_that_is_not_there_is_named_and_found_when_it_comes() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("sensor");
    let mut source = Live::new(command::lines(&path, [""; 0]));
    let failure = source.failure("cannot be started");
    assert!(failure.contains("sensor"), "{failure}");
    assert!(failure.contains("is it installed"), "{failure}");
    // Written elsewhere first, so that nobody has it open for writing.
    let script = "#!/bin/sh\necho here\nexec sleep 1000\n";
    put(folder.path(), "draft", script);
    let chmod = std::process::Command::new("chmod");
    let mut chmod = chmod;
    chmod.arg("755").arg(folder.path().join("draft"));
    assert!(chmod.status().unwrap().success());
    fs::rename(folder.path().join("draft"), &path).unwrap();
    assert_eq!(source.bodies::<Text>(1), [text("here")]);
}

#[test]
fn a_program_and_its_children_die_with_the_source() {
    let mut source = Live::new(command::shell("sleep 1000 & echo $!; echo $$; wait"));
    let processes = source.bodies::<Text>(2);
    assert!(processes.iter().all(|process| runs(&process.text)));
    source.driver.remove(source.id);
    until(|| !processes.iter().any(|process| runs(&process.text)));
    // And the program was waited for.
    until(|| !Path::new("/proc").join(processes[1].text.trim()).exists());
}

#[test]
fn what_a_program_leaves_behind_dies_with_it() {
    let mut source = Live::new(command::shell("sleep 1000 & echo $!").once());
    let left = source.bodies::<Text>(1).remove(0);
    source.status(|status| *status == Status::Ended);
    until(|| !runs(&left.text));
}

#[test]
fn a_program_that_closes_its_output_still_runs() {
    let script = "exec >&- 2>&-; sleep 0.2; exit 4";
    let mut source = Live::new(command::shell(script).once());
    source.failure("exit status: 4");
}

#[test]
fn a_program_is_run_every_so_often() {
    let command = command::lines("echo", ["now"]);
    // From before the first run, which may be late on a busy machine; the second may be soon.
    let begun = Instant::now();
    let mut source = Live::new(command.every(Duration::from_millis(50)));
    let events = source.events(3);
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(50), "{took:?}");
    assert_eq!(support::bodies::<Text>(&events)[0], text("now"));
    source.working();
}

#[test]
fn what_a_program_says_wrong_stays_told_when_it_ends_well() {
    let command = command::lines("echo", ["much"]).format(Format::number());
    let mut source = Live::new(command.every(Duration::from_millis(20)));
    source.failure("`much`: that is not a number");
    assert!(source.is_silent(200));
    source.failure("`much`: that is not a number");
    let mut source = Live::new(
        command::lines("echo", ["much"])
            .format(Format::number())
            .once(),
    );
    source.failure("`much`: that is not a number");
    until(|| matches!(source.driver.status(source.id), Some(Status::Failing(_))));
}

#[test]
fn a_program_that_never_stops_writing_starves_nobody() {
    let mut source = Live::new(command::lines("yes", ["x"; 1]));
    source.events(1);
    let quick = command::lines("echo", ["quick"]).once();
    let id = source.driver.add(support::stream(), quick);
    until(|| source.driver.status(id) == Some(Status::Ended));
}

#[test]
fn a_line_without_end_is_told_and_not_kept() {
    let script = "head -c 200000 /dev/zero; echo; sleep 0.3; echo fine; exec sleep 1000";
    let mut source = Live::new(command::shell(script));
    source.failure("line 1: it is longer than 65536 bytes");
    assert_eq!(source.bodies::<Text>(1), [text("fine")]);
}
