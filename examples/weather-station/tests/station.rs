//! The station from outside: pages, choices, news, the end.

mod support;

use support::{Bench, Open, assert_status, body};

#[test]
fn a_page_shows_the_weather_and_the_machine() {
    let bench = Bench::new(|_| {});
    let page = bench.get("/", "");
    assert_status(&page, 200);
    for text in [
        "John F. Kennedy",
        "Wednesday, 8 May 2013",
        "12:30",
        "0.42",
        "Hardware profile: bench",
        "Quiet",
    ] {
        assert!(body(&page).contains(text), "{text}");
    }
    for header in [
        "content-security-policy: default-src 'none'",
        "x-content-type-options: nosniff",
        "HttpOnly",
    ] {
        assert!(page.contains(header), "{header}");
    }
    assert!(
        !body(&page).contains("https://"),
        "a page needs nothing from elsewhere"
    );
}

#[test]
fn the_browsers_language_counts_until_one_is_chosen() {
    let bench = Bench::new(|_| {});
    let visitor = bench.visitor();
    let german = "Accept-Language: de-AT,de;q=0.9\r\n";
    assert!(
        bench
            .get("/", &format!("{visitor}{german}"))
            .contains("<title>Wetterstation</title>")
    );
    assert_status(&bench.post("/language", &visitor, "language=ar"), 303);
    let page = bench.get("/", &format!("{visitor}{german}"));
    assert!(page.contains(r#"<html lang="ar" dir="rtl">"#));
    assert!(
        bench.get("/", "").contains(r#"<html lang="en" dir="ltr">"#),
        "other visitors see what they saw"
    );
}

#[test]
fn each_visitor_looks_at_a_station() {
    let bench = Bench::new(|_| {});
    let (anna, bert) = (bench.visitor(), bench.visitor());
    assert_status(&bench.post("/station", &anna, "station=EWR&hours=24"), 303);
    assert!(bench.get("/", &anna).contains("<bdi>Newark Liberty</bdi>"));
    assert!(bench.get("/", &bert).contains("<bdi>John F. Kennedy</bdi>"));
}

#[test]
fn gaps_and_implausible_readings_are_said() {
    let bench = Bench::new(|_| {});
    let visitor = bench.visitor();
    bench.post("/station", &visitor, "station=EWR");
    assert_status(&bench.post("/time", &visitor, "time=2013-02-12T08:20"), 303);
    let page = bench.get("/", &visitor);
    assert!(page.contains("12 Feb 03:00: Wind 468.7 m/s was reported. That is implausible, possible here is 0.0 m/s to 75.0 m/s."));
    assert!(page.contains("<s>468.7 m/s</s>"));
    bench.post("/time", &visitor, "time=2013-10-26T04:30");
    let page = bench.get("/", &visitor);
    assert!(page.contains("No observation since 25 Oct 19:00"));
    assert!(page.contains("Hours without an observation: 5 of 48"));
    assert!(page.contains(r#"<rect class="gap""#));
}

#[test]
fn tampering_is_on_every_open_page_at_once_and_goes_again() {
    let bench = Bench::new(|_| {});
    let mut english = Open::new(&bench, "");
    let mut german = Open::new(&bench, "Accept-Language: de\r\n");
    english.wait_for(r#""tamper":false"#);
    german.wait_for(r#""tamper":false"#);
    bench.tamper("1\n");
    english.wait_for("Tampering detected");
    german.wait_for("Manipulation erkannt");
    assert!(bench.get("/", "").contains("Tampering detected"));
    bench.tamper("0\n");
    english.wait_for(r#""alarm":"""#);
    german.wait_for(r#""alarm":"""#);
    assert!(!bench.get("/", "").contains("Tampering detected"));
}

#[test]
fn a_broken_tamper_input_is_said_and_changes_no_alarm() {
    let bench = Bench::new(|_| {});
    let mut page = Open::new(&bench, "");
    bench.tamper("1\n");
    page.wait_for("Tampering detected");
    bench.tamper("perhaps\n");
    page.wait_for("`perhaps` is neither `1` nor `0`; write one of them");
    assert!(bench.get("/", "").contains("Tampering detected"));
    bench.tamper("0\n");
    page.wait_for(r#""alarm":"""#);
}

#[test]
fn the_replays_speed_is_everybodys() {
    let bench = Bench::new(|_| {});
    let mut page = Open::new(&bench, "");
    page.wait_for(r#""speed":0"#);
    assert_status(&bench.post("/speed", "", "speed=86400"), 303);
    page.wait_for(r#""speed":86400"#);
    page.wait_for(r#""time":"2013-05-10T"#);
}

#[test]
fn another_window_learns_of_the_language() {
    let bench = Bench::new(|_| {});
    let visitor = bench.visitor();
    let mut page = Open::new(&bench, &visitor);
    page.wait_for("event: panels");
    bench.post("/language", &visitor, "language=fr");
    page.wait_for("event: reload");
}

#[test]
fn ending_wakes_every_thread_and_closes_every_page() {
    let mut bench =
        Bench::new(|configuration| configuration.interval = std::time::Duration::from_secs(3600));
    let mut page = Open::new(&bench, "");
    page.wait_for("event: panels");
    bench.running.end();
    page.wait_for_end();
    assert!(std::net::TcpStream::connect(bench.address()).is_err());
}

#[test]
fn what_cannot_start_says_where_and_what_to_do() {
    use weather_station::{Configuration, start};
    let bench = Bench::new(|_| {});
    let taken = Configuration {
        port: bench.address().port(),
        ..Configuration::default()
    };
    let error = start(taken).err().unwrap().to_string();
    assert!(
        error.starts_with(&format!("address {}: cannot listen", bench.address())),
        "{error}"
    );
    assert!(error.contains("--port"), "{error}");
    let file = bench.file("broken.csv");
    std::fs::write(&file, "time,station\n").unwrap();
    let broken = Configuration {
        port: 0,
        recording: Some(file),
        ..Configuration::default()
    };
    let error = start(broken).err().unwrap().to_string();
    assert!(
        error.contains("broken.csv: line 1 does not name the column `temperature_celsius`"),
        "{error}"
    );
}
