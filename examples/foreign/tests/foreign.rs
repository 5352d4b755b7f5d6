//! The program with the script and the page that read it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Far longer than anything here takes; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that is ended with the test, and its first line that says this.
struct Program(Child, String);

impl Program {
    fn start(command: &mut Command, says: &str) -> Option<Program> {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.find_map(|line| line.ok().filter(|line| line.contains(says)));
        // Whoever stops reading stops the program.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Program(child, line.expect("the program says where it is")))
    }

    fn served() -> Program {
        let mut command = Command::new(env!("CARGO_BIN_EXE_foreign"));
        Program::start(&mut command, "http://").unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_script_reads_a_flow() {
    let served = Program::served();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/subscribe.py");
    let flow = "/machine/load | filter value.one_minute >= 0";
    let said = Command::new("python3")
        .args([script, &served.1, flow, "2"])
        .output();
    let Ok(said) = said else {
        eprintln!("skipped: there is no python3");
        return;
    };
    let text = String::from_utf8(said.stdout).unwrap();
    assert_eq!(
        text.lines().count(),
        2,
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
    for line in text.lines() {
        assert!(
            line.contains(" /machine/load {") && line.contains("one_minute"),
            "{line}"
        );
    }
    let lines = std::fs::read_to_string(script).unwrap().lines().count();
    assert!(lines <= 20, "the script has {lines} lines");
}

/// Asks a program that speaks HTTP and JSON.
fn ask(port: &str, method: &str, path: &str, body: &Value) -> Value {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let body = body.to_string();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        answer.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut bytes = vec![0; length];
    answer.read_exact(&mut bytes).unwrap();
    serde_json::from_slice::<Value>(&bytes).unwrap()["value"].clone()
}

#[test]
fn a_page_shows_events_that_come_by_both_ways() {
    let mut command = Command::new("chromedriver");
    let Some(driver) = Program::start(command.arg("--port=0"), "successfully on port ") else {
        eprintln!("skipped: there is no chromedriver; install chromium and chromium-driver");
        return;
    };
    let port = driver.1.split("successfully on port ").nth(1).unwrap();
    let port = port.trim_end_matches('.');
    let profile = tempfile::tempdir().unwrap();
    let served = Program::served();
    let session = ask(
        port,
        "POST",
        "/session",
        &json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": [
                "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--no-first-run", "--disable-background-networking",
                format!("--user-data-dir={}", profile.path().display()),
            ]}
        }}}),
    );
    let session = format!("/session/{}", session["sessionId"].as_str().unwrap());
    ask(
        port,
        "POST",
        &format!("{session}/url"),
        &json!({"url": served.1}),
    );
    let script =
        "return ['load', 'memory', 'state'].map(id => document.getElementById(id).textContent)";
    let until = Instant::now() + PATIENCE;
    loop {
        let path = format!("{session}/execute/sync");
        let said = ask(port, "POST", &path, &json!({"script": script, "args": []}));
        let text = |at: usize| said[at].as_str().unwrap_or_default().to_owned();
        if text(0).contains("one_minute") && text(1).starts_with('{') && text(2) == "connected" {
            break;
        }
        assert!(Instant::now() < until, "{said}");
        std::thread::sleep(Duration::from_millis(100));
    }
    // Browsers stay if nobody ends them.
    ask(port, "DELETE", &session, &json!({}));
}
