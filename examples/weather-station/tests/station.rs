//! The station from outside: pages, choices, news, the end.

use crate::support::{self, Bench, Open, assert_status, body};
use milieu::transfer::{Rights, Value};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

#[test]
fn a_page_shows_the_weather_and_the_machine() {
    let bench = Bench::new(&[]);
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
    let bench = Bench::new(&[]);
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
    let bench = Bench::new(&[]);
    let (anna, bert) = (bench.visitor(), bench.visitor());
    assert_status(&bench.post("/station", &anna, "station=EWR&hours=24"), 303);
    assert!(bench.get("/", &anna).contains("<bdi>Newark Liberty</bdi>"));
    assert!(bench.get("/", &bert).contains("<bdi>John F. Kennedy</bdi>"));
}

#[test]
fn gaps_and_implausible_readings_are_said() {
    let bench = Bench::new(&[]);
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
    let bench = Bench::new(&[]);
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
    let bench = Bench::new(&[]);
    let mut page = Open::new(&bench, "");
    bench.tamper("1\n");
    page.wait_for("Tampering detected");
    bench.tamper("perhaps\n");
    page.wait_for("`perhaps`: that is neither `1` nor `0`; write one of them");
    assert!(bench.get("/", "").contains("Tampering detected"));
    bench.tamper("0\n");
    page.wait_for(r#""alarm":"""#);
}

#[test]
fn the_replays_speed_is_everybodys() {
    let bench = Bench::new(&[]);
    let mut page = Open::new(&bench, "");
    page.wait_for(r#""speed":0"#);
    assert_status(&bench.post("/speed", "", "speed=86400"), 303);
    page.wait_for(r#""speed":86400"#);
    page.wait_for(r#""time":"2013-05-10T"#);
}

#[test]
fn two_stations_share_their_settings() {
    let bench = Bench::new(&[]);
    let mut other = bench.beside();
    let visitor = bench.visitor();
    let mut page = Open::at(&other.address().to_string(), &visitor);
    page.wait_for("event: panels");
    bench.post("/language", &visitor, "language=fr");
    page.wait_for("event: reload");
    bench.post("/station", &visitor, "station=EWR");
    page.wait_for("Newark Liberty");
    other.end();
}

/// The command, as it is built beside these tests: with the features of the whole
/// workspace, so that nothing is built twice.
fn milieu() -> &'static Path {
    static MILIEU: OnceLock<PathBuf> = OnceLock::new();
    MILIEU.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--workspace", "--all-features"])
            .args(["--lib", "--bins", "--examples", "--target-dir"])
            .arg(target)
            .status();
        assert!(built.unwrap().success());
        target.join("debug/milieu")
    })
}

/// What somebody types in a terminal: the real `milieu key set`. Its exit code, and what
/// it says.
fn set_in_a_terminal(bench: &Bench, further: &[&str], value: &str) -> (Option<i32>, String) {
    let output = Command::new(milieu())
        .args(["key", "set", "--app", "weather-station"])
        .args(further)
        .args(["/sw/pi/%/station", value])
        .env("XDG_CONFIG_HOME", bench.file("home"))
        .env("XDG_CONFIG_DIRS", bench.file("home/system"))
        .env_remove("MILIEU_SPEC")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

#[test]
fn what_a_terminal_sets_changes_the_open_page() {
    let bench = Bench::new(&[]);
    let mut page = Open::new(&bench, "");
    page.wait_for("John F. Kennedy");
    let done = (Some(0), String::new());
    assert_eq!(set_in_a_terminal(&bench, &[], "EWR"), done);
    page.wait_for("Newark Liberty");
    // Whoever knows the specification is told; without it a wrong value
    // changes no page, and the next right one counts again.
    let specification = concat!(env!("CARGO_MANIFEST_DIR"), "/weather-station.ini");
    let (code, said) = set_in_a_terminal(&bench, &["--spec", specification], "nowhere");
    assert!(code == Some(3) && said.contains("EWR"), "{code:?} {said}");
    assert_eq!(set_in_a_terminal(&bench, &[], "nowhere"), done);
    assert_eq!(set_in_a_terminal(&bench, &[], "LGA"), done);
    page.wait_for("LaGuardia");
}

#[test]
fn another_window_learns_of_the_language() {
    let bench = Bench::new(&[]);
    let visitor = bench.visitor();
    let mut page = Open::new(&bench, &visitor);
    page.wait_for("event: panels");
    bench.post("/language", &visitor, "language=fr");
    page.wait_for("event: reload");
}

#[test]
fn ending_wakes_every_thread_and_closes_every_page() {
    let mut bench = Bench::new(&["--interval=3600"]);
    let mut page = Open::new(&bench, "");
    page.wait_for("event: panels");
    bench.running.end();
    page.wait_for_end();
    assert_eq!(bench.running.threads(), 0, "all are joined");
    assert!(std::net::TcpStream::connect(bench.address()).is_err());
}

#[test]
fn choices_survive_a_restart() {
    let mut bench = Bench::new(&[]);
    let (anna, bert) = (bench.visitor(), bench.visitor());
    assert_status(&bench.post("/language", &anna, "language=de"), 303);
    assert_status(&bench.post("/station", &anna, "station=LGA"), 303);
    assert_status(&bench.post("/language", &bert, "language=ar"), 303);
    bench.restart();
    let page = bench.get("/", &anna);
    assert!(page.contains(r#"<html lang="de""#), "{page:.600}");
    assert!(page.contains("<bdi>LaGuardia</bdi>"));
    assert!(bench.get("/", &bert).contains(r#"<html lang="ar""#));
    assert!(bench.get("/", "").contains(r#"<html lang="en""#));
    // What the user wrote stays, and of what the program brings nothing is written.
    let settings = bench.settings();
    assert!(settings.starts_with("# How the bench is wired.\n[/hw/pi/bench/gpio]\n"));
    for never in ["Wetterstation", "active", "port", "profile"] {
        assert!(!settings.contains(never), "{never} in\n{settings}");
    }
}

#[test]
fn choices_are_written_while_the_station_runs() {
    let bench = Bench::new(&[]);
    let visitor = bench.visitor();
    bench.post("/language", &visitor, "language=fr");
    let id = visitor.trim().split('=').nth(1).unwrap();
    let begun = std::time::Instant::now();
    while !bench.settings().contains(id) {
        assert!(begun.elapsed() < support::LONG, "{}", bench.settings());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn choices_that_cannot_be_written_are_kept_until_they_can() {
    let bench = Bench::new(&[]);
    let until = |what: &str| bench.until_health(what);
    let (anna, bert) = (bench.visitor(), bench.visitor());
    // Something else has taken the folder's place.
    let (folder, aside) = (bench.file("home/weather-station"), bench.file("home/aside"));
    std::fs::rename(&folder, &aside).unwrap();
    std::fs::write(&folder, "").unwrap();
    bench.post("/language", &anna, "language=fr");
    until(r#""status":"choices are not kept""#);
    assert!(bench.get("/", &anna).contains(r#"<html lang="fr""#));
    std::fs::remove_file(&folder).unwrap();
    std::fs::rename(&aside, &folder).unwrap();
    bench.post("/language", &bert, "language=de");
    until(r#""status":"ok""#);
    let settings = bench.settings();
    assert!(
        settings.contains("language = fr") && settings.contains("language = de"),
        "{settings}"
    );
}

#[test]
fn the_oldest_sessions_are_forgotten() {
    let mut bench = Bench::new(&["--sessions=2"]);
    let visitors: Vec<String> = (0..3).map(|_| bench.visitor()).collect();
    for visitor in &visitors[..2] {
        bench.post("/language", visitor, "language=de");
    }
    // The first one chooses again, so the second is now the oldest.
    bench.post("/station", &visitors[0], "station=EWR");
    bench.post("/language", &visitors[2], "language=de");
    let german =
        |bench: &Bench, visitor: &str| bench.get("/", visitor).contains(r#"lang="de" dir"#);
    let all = |bench: &Bench| {
        visitors
            .iter()
            .map(|v| german(bench, v))
            .collect::<Vec<_>>()
    };
    assert_eq!(all(&bench), [true, false, true]);
    bench.restart();
    assert_eq!(all(&bench), [true, false, true]);
    let lines = bench.settings();
    assert_eq!(lines.matches("language").count(), 2, "{lines}");
    // A station that is to keep fewer forgets the oldest of those that it finds, whose order
    // is not that of their names.
    bench.arguments = vec!["--sessions=20".to_owned()];
    bench.restart();
    let more: Vec<String> = (0..8).map(|_| bench.visitor()).collect();
    for visitor in more.iter().chain([&visitors[0]]) {
        bench.post("/language", visitor, "language=de");
    }
    bench.arguments = vec!["--sessions=1".to_owned()];
    bench.restart();
    assert_eq!(all(&bench), [true, false, false]);
    assert!(!more.iter().any(|visitor| german(&bench, visitor)));
    bench.running.end();
    let lines = bench.settings();
    assert_eq!(lines.matches("language").count(), 1, "{lines}");
}

#[test]
fn the_profile_chooses_the_tamper_input_while_the_station_runs() {
    let bench = Bench::new(&[]);
    let until = |what: &str| bench.until_health(what);
    until("tamper.txt");
    let mut page = Open::new(&bench, "");
    page.wait_for(r#""tamper":false"#);
    std::fs::write(bench.file("profile"), "other\0").unwrap();
    until("gpio/gpio7/value");
    page.wait_for("Hardware profile: other");
    bench.tamper("1\n");
    std::fs::write(bench.file("gpio/gpio7/value"), "1\n").unwrap();
    page.wait_for("Tampering detected");
    // What cannot be a profile leaves everything as it is, and says so.
    std::fs::write(bench.file("profile"), "\n").unwrap();
    page.wait_for("it holds no identifier; write one into its first line");
    until("it holds no identifier");
    // A machine that no settings describe has no input, and no alarm.
    std::fs::write(bench.file("profile"), "unknown").unwrap();
    until(r#""tamper_input":null"#);
    page.wait_for(r#""alarm":"""#);
    // Settings that come describe it.
    let settings = bench.settings();
    let folder = bench.folder.path().display();
    let unknown =
        format!("{settings}\n[/hw/pi/unknown/gpio]\nfolder = {folder}\ntamper = tamper.txt\n");
    std::fs::write(
        bench.file("home/weather-station/weather-station.ini"),
        unknown,
    )
    .unwrap();
    page.wait_for("Tampering detected");
}

#[test]
fn a_busy_machine_renews_pages_less_often_for_a_while() {
    let bench = Bench::new(&["--interval=1"]);
    assert!(bench.get("/health", "").contains(r#""refresh":1.0"#));
    let stalls = |share: u32| {
        let line = format!("some avg10={share}.0 avg60=0.0 avg300=0.0 total=1\n");
        std::fs::write(bench.file("machine/proc/pressure/cpu"), line).unwrap();
    };
    stalls(90);
    bench.until_health(r#""refresh":5.0"#);
}

#[test]
fn everything_has_a_name_that_others_subscribe_to() {
    let bench = Bench::new(&["--speed=86400"]);
    let milieu = bench.running.milieu().expect("it has not ended");
    let mut agreed = milieu
        .flow("/weather/temperature | filter sensors == 3")
        .unwrap()
        .subscribe(milieu::stream::Delivery::default())
        .unwrap();
    let mut load = milieu
        .flow("/machine/load | transform one_minute")
        .unwrap()
        .subscribe(milieu::stream::Delivery::Latest)
        .unwrap();
    let event = load.wait_for(support::LONG).expect("the last one at once");
    assert_eq!(event.value(Rights::ALL).unwrap(), Value::Double(0.42));
    let event = agreed.wait_for(support::LONG).expect("three airports");
    let value = event.value(Rights::ALL).unwrap();
    assert!(
        matches!(value.field("value"), Some(Value::Double(v)) if (10.0..30.0).contains(v)),
        "{value:?}"
    );
    milieu.streams().view().unwrap().audit().unwrap();
}

#[test]
fn the_command_line_says_what_new_visitors_see() {
    let bench = Bench::new(&["--station=EWR"]);
    let visitor = bench.visitor();
    assert!(
        bench
            .get("/", &visitor)
            .contains("<bdi>Newark Liberty</bdi>")
    );
    bench.post("/station", &visitor, "station=JFK");
    assert!(
        bench
            .get("/", &visitor)
            .contains("<bdi>John F. Kennedy</bdi>")
    );
    assert!(bench.get("/", "").contains("<bdi>Newark Liberty</bdi>"));
}

#[test]
fn what_cannot_start_says_where_and_what_to_do() {
    let bench = Bench::new(&[]);
    let fails = |arguments: &[String]| {
        let begun = match support::open(bench.folder.path(), arguments) {
            Ok(milieu::Start::Run(milieu)) => weather_station::start(*milieu),
            Ok(milieu::Start::Say(text)) => panic!("{text}"),
            Err(error) => Err(error.into()),
        };
        let error = begun.err().expect("it does not start");
        (error.to_string(), error.exit_code())
    };
    let argument = |text: &str| [text.to_owned()];

    std::fs::write(bench.file("broken.csv"), "time,station\n").unwrap();
    let file = bench.file("broken.csv").display().to_string();
    let (error, code) = fails(&[format!("--recording={file}")]);
    assert!(
        error.contains("broken.csv: it has no column `temperature_celsius`"),
        "{error}"
    );
    assert_eq!(code, 2);
    for (wrong, place, remedy) in [
        ("--speed=fast", "--speed", "fast"),
        ("--connections=3", "--connections", "8-10000"),
        ("--address=here", "--address", "here"),
        ("--station=XYZ", "--station", "EWR"),
        ("--interval=0", "--interval", "1-3600"),
        ("--no-such-option", "--no-such-option", "--help"),
    ] {
        let (error, code) = fails(&argument(wrong));
        assert!(error.contains(place) && error.contains(remedy), "{error}");
        assert_eq!(code, 2, "{error}");
    }
    let (error, _) = fails(&argument("--start=yesterday"));
    assert_eq!(
        error,
        "option --start: /sw/pi/replay/start: `yesterday` is no time; give one such as 2013-05-08T12:00"
    );
    std::fs::write(bench.file("profile"), "\n").unwrap();
    let (error, _) = fails(&[]);
    assert!(
        error.contains("option --profile") && error.contains("write one into its first line"),
        "{error}"
    );
    let profile = std::fs::File::create(bench.file("profile")).unwrap();
    profile.set_len((1 << 20) + 1).unwrap();
    let (error, code) = fails(&[]);
    let said = "/profile: it is longer than 1 MiB and is not read; name a shorter file";
    assert!(
        error.starts_with("option --profile: /hw/pi/profile: ") && error.ends_with(said),
        "{error}"
    );
    assert_eq!(code, 2);

    std::fs::write(bench.file("profile"), "bench").unwrap();
    let settings = bench.file("home/weather-station/weather-station.ini");
    for (broken, place, said) in [
        (
            "[/sw/pi/web]\nconnections = 99999\n",
            "weather-station.ini:2",
            "8 to 10000",
        ),
        ("[/sw/pi/web\nport = 1\n", "weather-station.ini:1", "]"),
        (
            "[/sw/pi/anna]\n\nlanguage = klingon\n",
            "weather-station.ini:3",
            "browser, en, de",
        ),
    ] {
        std::fs::write(&settings, broken).unwrap();
        let (error, code) = fails(&[]);
        assert!(error.contains(place) && error.contains(said), "{error}");
        assert_eq!(code, 2, "{error}");
        assert_eq!(
            std::fs::read_to_string(&settings).unwrap(),
            broken,
            "nothing is lost"
        );
    }
}

#[test]
fn an_address_that_is_taken_says_so() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let milieu::Start::Run(milieu) = milieu::Milieu::builder("weather-station")
        .files(Vec::new())
        .arguments::<weather_station::environment::Environment>(
            weather_station::program(),
            vec![format!("--port={port}").into()],
            |_| None,
        )
        .start()
        .unwrap()
    else {
        panic!("it is to run");
    };
    let error = weather_station::start(*milieu).err().unwrap();
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("address 127.0.0.1:{port}: cannot listen")),
        "{text}"
    );
    assert!(text.contains("--port"), "{text}");
    assert_eq!(error.exit_code(), 1);
}
