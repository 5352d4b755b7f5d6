//! The program itself: its help, its exit codes, and its end by a signal.

use crate::support::{self, LONG, arguments, machine};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The program with the settings of that machine, and no others.
fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weather-station"));
    command
        .env_clear()
        .env("XDG_CONFIG_HOME", folder.join("home"))
        .env("XDG_CONFIG_DIRS", folder.join("system"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn said(folder: &Path, arguments: &[&str]) -> (String, String, Option<i32>) {
    let Output {
        stdout,
        stderr,
        status,
    } = program(folder).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(stdout), text(stderr), status.code())
}

#[test]
fn the_help_is_the_specifications() {
    let folder = machine();
    let (help, errors, code) = said(folder.path(), &["--help"]);
    assert_eq!((errors.as_str(), code), ("", Some(0)));
    for text in [
        "--station=CODE",
        "EWR, JFK or LGA",
        "-p",
        "WEATHER_STATION_PORT",
        "Exit codes:",
    ] {
        assert!(help.contains(text), "{text} in\n{help}");
    }
    let (version, _, code) = said(folder.path(), &["--version"]);
    assert!(version.contains(env!("CARGO_PKG_VERSION")));
    assert_eq!(code, Some(0));
}

#[test]
fn what_is_wrong_is_said_with_place_and_remedy() {
    let folder = machine();
    let (out, error, code) = said(folder.path(), &["--port=many"]);
    assert_eq!((out.as_str(), code), ("", Some(2)));
    assert!(error.starts_with("weather-station: "), "{error}");
    assert!(
        error.contains("--port") && error.contains("many"),
        "{error}"
    );
    let mut command = program(folder.path());
    command.env("WEATHER_STATION_PORT", "-1");
    let output = command.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("WEATHER_STATION_PORT"), "{error}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_replay_that_fails_is_in_the_log() {
    let folder = machine();
    let file = folder.path().join("own.csv");
    let year = concat!(env!("CARGO_MANIFEST_DIR"), "/data/weather-2013.csv");
    std::fs::copy(year, &file).unwrap();
    let recording = format!("--recording={}", file.display());
    let mut child = program(folder.path())
        .args(arguments(folder.path(), &[recording]))
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    lines.read_line(&mut line).unwrap();
    let address = line.trim().trim_start_matches("http://");
    let address = address.trim_end_matches('/');
    std::fs::remove_file(&file).unwrap();
    let form = "time=2013-05-09T12:00";
    let request = format!(
        "POST /time HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    );
    support::assert_status(&support::ask(address, &request), 303);
    // Whoever waits too long is ended, so that the log ends, too.
    let pid = rustix::process::Pid::from_child(&child);
    let (done, waiting) = std::sync::mpsc::channel::<()>();
    let guard = std::thread::spawn(move || {
        let _ = waiting.recv_timeout(LONG);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    });
    line.clear();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    errors.read_line(&mut line).unwrap();
    drop(done);
    guard.join().unwrap();
    child.wait().unwrap();
    let said = format!("weather-station: the replay fails: {}: ", file.display());
    assert!(line.starts_with(&said), "{line}");
}

#[test]
fn a_signal_ends_it_with_open_pages_and_keeps_what_was_chosen() {
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let folder = machine();
        let mut child = program(folder.path())
            .args(arguments(folder.path(), &[]))
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let address = line
            .trim()
            .trim_start_matches("http://")
            .trim_end_matches('/')
            .to_owned();
        let id = "0123456789abcdef0123456789abcdef";
        let form = "language=es";
        let cookie = format!("Cookie: weather-station-session={id}\r\n");
        let answer = support::ask(
            &address,
            &format!(
                "POST /language HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{cookie}Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
                form.len()
            ),
        );
        support::assert_status(&answer, 303);
        let mut page = support::Open::at(&address, &cookie);
        page.wait_for("event: panels");

        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, signal).unwrap();
        page.wait_for_end();
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if begun.elapsed() > LONG {
                child.kill().unwrap();
                panic!("it does not end");
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut errors = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut errors)
            .unwrap();
        assert_eq!((status.code(), errors.as_str()), (Some(0), ""));
        let file = folder
            .path()
            .join("home/weather-station/weather-station.ini");
        let settings = std::fs::read_to_string(file).unwrap();
        assert!(settings.contains(id), "{settings}");
    }
}
