//! Clients that mean no good, or know no better. Each gets an answer that says
//! where it went wrong and what to do, and the station goes on.

use crate::support::{Bench, Open, assert_status, body};
use std::io::{Read, Write};
use std::time::Duration;

/// A station that loses patience fast.
fn impatient() -> Bench {
    Bench::new(&["--patience=0.4", "--connections=16"])
}

#[test]
fn a_head_that_is_too_long() {
    let bench = Bench::new(&[]);
    let answer = bench.get("/", &format!("X-Long: {}\r\n", "x".repeat(100_000)));
    assert_status(&answer, 431);
    assert!(
        body(&answer).contains("keep it below 16384 bytes and 64 headers"),
        "{answer}"
    );
    let answer = bench.get("/", &"X-Many: 1\r\n".repeat(200));
    assert_status(&answer, 431);
    let answer = bench.get(&format!("/{}", "a".repeat(70_000)), "");
    assert!(body(&answer).contains("16384"), "{answer}");
    bench.assert_alive();
}

#[test]
fn what_is_no_http() {
    let bench = Bench::new(&[]);
    for request in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHo st: x\r\n\r\n",
    ] {
        let answer = bench.raw(request);
        assert_status(&answer, 400);
        assert!(
            body(&answer).starts_with("request head: it is not HTTP/1.1; send"),
            "{answer}"
        );
    }
    bench.assert_alive();
}

#[test]
fn slow_clients_are_told_and_do_not_keep_others_out() {
    let bench = impatient();
    // More than the station serves at once, each sending a letter now and then.
    let mut slow: Vec<_> = (0..40).map(|_| bench.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET / HTTP/1.1\r\nX-Slow: ").unwrap();
    }
    bench.assert_alive();
    let mut answer = String::new();
    let _ = slow[0].read_to_string(&mut answer);
    assert_status(&answer, 408);
    assert!(
        body(&answer).contains("request head: it was not complete within 0.4 s; send it faster"),
        "{answer}"
    );
}

#[test]
fn connections_that_say_nothing_are_closed() {
    let bench = impatient();
    let mut silent: Vec<_> = (0..40).map(|_| bench.connect()).collect();
    bench.assert_alive();
    let mut answer = String::new();
    let _ = silent[0].read_to_string(&mut answer);
    assert_eq!(answer, "");
}

#[test]
fn a_body_that_never_comes() {
    let bench = impatient();
    let head = format!(
        "POST /language HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\nConnection: close\r\n\r\nlang",
        bench.address()
    );
    let answer = bench.raw(head.as_bytes());
    assert_status(&answer, 408);
    assert!(
        body(&answer).starts_with("request body: it was not complete"),
        "{answer}"
    );
    bench.assert_alive();
}

#[test]
fn methods_that_do_nothing_here() {
    let bench = Bench::new(&[]);
    for (method, target) in [
        ("DELETE", "/"),
        ("TRACE", "/"),
        ("PUT", "/language"),
        ("BREW", "/"),
        ("GET", "/language"),
    ] {
        let answer = bench.request(method, target, "", b"");
        assert_status(&answer, 405);
        assert!(
            body(&answer).starts_with(&format!("method: `{method}` does nothing at `{target}`; ")),
            "{answer}"
        );
        assert!(answer.contains("content-security-policy"), "{answer}");
    }
    bench.assert_alive();
}

#[test]
fn cookies_that_are_none_of_ours() {
    let bench = Bench::new(&[]);
    let mut request = format!(
        "GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nCookie: ",
        bench.address()
    )
    .into_bytes();
    request.extend_from_slice(b"weather-station-session=\xff\xfe\xfd\r\n\r\n");
    let answer = bench.raw(&request);
    assert_status(&answer, 400);
    assert!(
        body(&answer).starts_with("cookie weather-station-session: "),
        "{answer}"
    );
    assert!(
        answer.contains("set-cookie: weather-station-session=; Path=/; Max-Age=0"),
        "{answer}"
    );
    for value in ["%/language", "../../../etc", "\"quoted\"", ""] {
        assert_status(
            &bench.get("/", &format!("Cookie: weather-station-session={value}\r\n")),
            400,
        );
    }
    let mut request = format!(
        "GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nCookie: ",
        bench.address()
    )
    .into_bytes();
    request.extend_from_slice(b"another=\xff\xfe; \r\n\r\n");
    assert_status(&bench.raw(&request), 200);
}

#[test]
fn paths_that_climb() {
    let bench = Bench::new(&[]);
    for target in [
        "/assets/../Cargo.toml",
        "/assets/..%2f..%2fetc%2fpasswd",
        "/assets/%2e%2e/%2e%2e/etc/passwd",
        "/..%5c..%5cetc",
        "/assets/%ff%fe",
        "/assets/style.css%00",
        "//etc/passwd",
    ] {
        let answer = bench.get(target, "");
        assert_status(&answer, 404);
        assert!(
            body(&answer).starts_with("address: there is no"),
            "{answer}"
        );
        assert!(!answer.contains("root:") && !answer.contains("[package]"));
    }
    assert_status(&bench.get("/assets/style.css", ""), 200);
}

#[test]
fn forms_with_impossible_values() {
    let bench = Bench::new(&[]);
    for (target, form, told) in [
        (
            "/language",
            "language=xx",
            "language: `xx` is not possible; choose one of en, de, fr, es and ar",
        ),
        (
            "/language",
            "language=%1b[2J",
            "language: `\u{fffd}[2J` is not possible",
        ),
        ("/language", "", "language: the form lacks this field"),
        (
            "/station",
            "station=JFK%00",
            "station: `JFK\u{fffd}` is not possible",
        ),
        (
            "/station",
            "station=jfk&hours=48",
            "station: `jfk` is not possible; choose one of EWR, JFK and LGA",
        ),
        (
            "/speed",
            "speed=-1",
            "speed: `-1` is not possible; give a whole number from 0 to 86400",
        ),
        ("/speed", "speed=99999999999999999999", "speed: "),
        ("/speed", "speed=86401", "speed: "),
        (
            "/speed",
            "speed=60&hours=47",
            "hours: `47` is not possible; give 24, 48 or 168",
        ),
        (
            "/time",
            "time=2014-01-01T00:00",
            "time: `2014-01-01T00:00` is not possible; give a time within",
        ),
        (
            "/time",
            "time=yesterday",
            "time: `yesterday` is not possible",
        ),
    ] {
        let answer = bench.post(target, "", form);
        assert_status(&answer, 422);
        assert!(body(&answer).starts_with(told), "{told}: {answer}");
    }
    assert_status(&bench.post("/language", "", "language=%ff%fe"), 422);
    assert_status(&bench.post("/language", "", "language=de&language=en"), 422);
    let answer = bench.post("/language", "", &"x".repeat(100_000));
    assert_status(&answer, 413);
    let answer = bench.request(
        "POST",
        "/language",
        "Content-Type: application/json\r\n",
        b"{}",
    );
    assert_status(&answer, 415);
    assert!(
        body(&answer).starts_with("request body: it is not a form; send it as"),
        "{answer}"
    );
    let answer = bench.get("/?hours=1000000000", "");
    assert_status(&answer, 422);
    assert!(
        bench.get("/health", "").contains(r#""speed":0"#),
        "none of it had an effect"
    );
    bench.assert_alive();
}

#[test]
fn pages_of_other_sites() {
    let bench = Bench::new(&[]);
    let answer = bench.post("/speed", "Origin: https://example.org\r\n", "speed=60");
    assert_status(&answer, 403);
    assert!(body(&answer).starts_with("header Origin: "), "{answer}");
    assert_status(
        &bench.post("/speed", "Sec-Fetch-Site: cross-site\r\n", "speed=60"),
        403,
    );
    let answer = bench.raw(b"GET / HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n");
    assert_status(&answer, 421);
    assert!(body(&answer).contains("--address"), "{answer}");
    let answer = bench.raw(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_status(&answer, 400);
    assert!(body(&answer).starts_with("header Host: "), "{answer}");
    assert_status(
        &bench.post(
            "/speed",
            &format!("Origin: http://{}\r\n", bench.address()),
            "speed=0",
        ),
        303,
    );
}

#[test]
fn more_open_pages_than_there_are_places() {
    let bench = Bench::new(&["--connections=8"]);
    let mut open: Vec<Open> = (0..4).map(|_| Open::new(&bench, "")).collect();
    open.iter_mut()
        .for_each(|page| page.wait_for("event: panels"));
    let answer = bench.get("/events", "");
    assert_status(&answer, 503);
    assert!(
        answer.contains("retry-after: 5") && body(&answer).starts_with("events: as many pages"),
        "{answer}"
    );
    bench.assert_alive();
    drop(open);
    while !bench.get("/health", "").contains(r#""free_streams":4"#) {
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut again = Open::new(&bench, "");
    again.wait_for("event: panels");
}

#[test]
fn clients_that_leave_in_the_middle() {
    let bench = Bench::new(&[]);
    for request in [
        &b"GET"[..],
        b"GET / HTTP/1.1\r\n",
        b"POST /speed HTTP/1.1\r\nContent-Length: 9\r\n\r\nspe",
    ] {
        let mut stream = bench.connect();
        stream.write_all(request).unwrap();
    }
    for _ in 0..50 {
        let mut stream = bench.connect();
        write!(
            stream,
            "GET / HTTP/1.1\r\nHost: {}\r\n\r\n",
            bench.address()
        )
        .unwrap();
    }
    bench.assert_alive();
}
