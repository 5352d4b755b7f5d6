//! What the station watches: the recording, the tamper input, the machine.

use crate::support::{Bench, LONG, Open, assert_status, body};
use milieu::stream::Delivery;
use milieu::transfer::{Rights, Value};
use std::path::Path;

/// A bench whose recording is a file of one day, which the test may change.
fn own_recording(folder: &Path) {
    let year = concat!(env!("CARGO_MANIFEST_DIR"), "/data/weather-2013.csv");
    let year = std::fs::read_to_string(year).unwrap();
    let day = |line: &&str| line.starts_with("time,") || line.starts_with("2013-05-08");
    let day: Vec<&str> = year.lines().filter(day).collect();
    std::fs::write(folder.join("own.csv"), day.join("\n") + "\n").unwrap();
}

#[test]
fn a_begin_outside_the_recording_is_wrapped_into_it() {
    for (begin, time) in [
        ("2014-02-01T00:00", "2013-02-02T06:00:00Z"),
        ("2012-12-31T06:00", "2013-12-30T00:00:00Z"),
    ] {
        let bench = Bench::new(&[&format!("--start={begin}")]);
        let health = bench.get("/health", "");
        assert!(health.contains(&format!(r#""time":"{time}""#)), "{health}");
        assert!(health.contains(r#""status":"ok""#), "{health}");
        let milieu = bench.running.milieu().expect("it has not ended");
        let observations = milieu.flow("/weather/observations").unwrap();
        let mut observations = observations.subscribe(Delivery::Latest).unwrap();
        assert!(observations.wait_for(LONG).is_some(), "{begin}");
    }
}

#[test]
fn a_replay_that_fails_says_so_and_goes_on_if_it_can() {
    let folder = tempfile::tempdir().unwrap();
    own_recording(folder.path());
    let file = folder.path().join("own.csv");
    let bench = Bench::new(&[&format!("--recording={}", file.display())]);
    bench.until_health(r#""status":"ok""#);
    let aside = folder.path().join("aside.csv");
    std::fs::rename(&file, &aside).unwrap();
    // Whoever jumps reads the file again.
    assert_status(&bench.post("/time", "", "time=2013-05-08T17:30"), 303);
    bench.until_health("it is replayed when it comes");
    bench.until_health(r#""status":"the replay fails""#);
    std::fs::rename(&aside, &file).unwrap();
    bench.until_health(r#""status":"ok""#);
    std::fs::write(&file, "time,station\n").unwrap();
    bench.post("/time", "", "time=2013-05-08T18:30");
    bench.until_health("own.csv: it has no column");
    let page = bench.get("/", "");
    assert!(body(&page).contains("own.csv: it has no column"));
    bench.assert_alive();
}

#[test]
fn what_cannot_be_is_kept_from_the_days_extremes() {
    let bench = Bench::new(&[]);
    let milieu = bench.running.milieu().expect("it has not ended");
    let subscribed = |flow: &str| {
        let flow = milieu.flow(flow).unwrap();
        flow.subscribe(Delivery::default()).unwrap()
    };
    let begin = "/weather/observations | filter time == timestamp('2013-05-08T16:00:00Z')";
    assert!(subscribed(begin).wait_for(LONG).is_some());
    let mut days = subscribed("/weather/day | filter group == 'JFK' | transform minimum");
    // The hours of the day before come at once. For 02:00 were -10.5 °C reported.
    bench.post("/time", "", "time=2013-05-09T03:00");
    for _ in 0..24 {
        let day = days.wait_for(LONG).expect("one for each other hour");
        let minimum = day.value(Rights::ALL).unwrap();
        assert!(
            matches!(minimum, Value::Double(it) if it > 0.0),
            "{minimum:?}"
        );
    }
}

#[test]
fn an_alarm_from_before_the_start_is_on_the_first_page() {
    let bench = Bench::prepared(&[], |folder| {
        std::fs::write(folder.join("tamper.txt"), "1\n").unwrap();
    });
    assert!(bench.get("/", "").contains("Tampering detected"));
}

#[test]
fn a_chip_that_is_not_there_is_said_and_harms_nothing() {
    let bench = Bench::prepared(&[], |folder| {
        let chip = folder.join("gpiochip7");
        let settings = format!(
            "[/hw/pi/bench/gpio]\nkind = line\nfolder = {}\ntamper = 7\n",
            chip.display()
        );
        let file = folder.join("home/weather-station/weather-station.ini");
        std::fs::write(file, settings).unwrap();
    });
    let health = bench.get("/health", "");
    for said in ["gpiochip7 7: ", "there is no such chip", r#""status":"ok""#] {
        assert!(health.contains(said), "{said} in {health}");
    }
    let page = bench.get("/", "");
    assert_status(&page, 200);
    assert!(page.contains("there is no such chip; `gpiodetect` lists those that there are"));
    assert!(!page.contains("Tampering detected"));
}

/// A laptop's files: one thing of each kind that has a tile.
fn laptop(folder: &Path) {
    let flat = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
    for (file, content) in [
        (
            "proc/pressure/cpu",
            "some avg10=12.50 avg60=3.40 avg300=0.00 total=1\n",
        ),
        ("proc/pressure/io", flat),
        ("proc/pressure/memory", flat),
        (
            "proc/meminfo",
            "MemTotal: 8000000 kB\nMemAvailable: 6000000 kB\n",
        ),
        (
            "proc/net/dev",
            "Inter-|\n face |\n eth0: 1500000 9 0 0 0 0 0 0 2500000 9 0 0 0 0 0 0\n",
        ),
        ("sys/devices/system/cpu/online", "0-3\n"),
        ("sys/class/thermal/thermal_zone0/temp", "45500\n"),
        ("sys/class/thermal/thermal_zone0/type", "package\n"),
        ("sys/class/hwmon/hwmon0/name", "thinkpad\n"),
        ("sys/class/hwmon/hwmon0/fan1_input", "900\n"),
        ("sys/class/power_supply/BAT0/type", "Battery\n"),
        ("sys/class/power_supply/BAT0/capacity", "81\n"),
        ("sys/class/power_supply/BAT0/status", "Discharging\n"),
        ("sys/class/power_supply/AC/type", "Mains\n"),
        ("sys/class/power_supply/AC/online", "0\n"),
    ] {
        let file = folder.join("machine").join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    }
}

/// A tile as the page has it, up to its value.
fn tile(name: &str, value: &str) -> String {
    format!("<h3><bdi>{name}</bdi></h3><p class=\"value\">{value}</p>")
}

#[test]
fn what_the_machine_says_is_on_the_page() {
    let bench = Bench::prepared(&["--interval=1"], laptop);
    let page = bench.get("/", "");
    for (name, value, more) in [
        ("Load", "0.42", "5 min 0.39 · 15 min 0.23"),
        ("Load", "0.42", "Processors: 4"),
        (
            "Waiting for processors",
            "12.5%",
            "of the last 10 s · 3.4% of the last minute",
        ),
        ("Waiting for disks", "0.0%", ""),
        ("Waiting for memory", "0.0%", ""),
        ("Memory in use", "25%", "6.1 GB of 8.2 GB available"),
        ("package", "45.5 °C", ""),
        ("thinkpad fan1", "900 rpm", ""),
        ("Battery BAT0", "81%", "Discharging"),
        ("Adapter AC", "Unplugged", ""),
    ] {
        assert!(page.contains(&tile(name, value)), "{name} {value}");
        assert!(page.contains(more), "{more}");
    }
    assert!(page.contains("<bdi>Network eth0</bdi>"));
    assert!(page.contains("received 1.5 MB · sent 2.5 MB in all"));
    assert!(!page.contains("Without a reading"));
    // What changes changes the open page.
    let mut open = Open::new(&bench, "");
    let file = bench.file("machine/proc/meminfo");
    std::fs::write(file, "MemTotal: 8000000 kB\nMemAvailable: 2000000 kB\n").unwrap();
    open.wait_for("2.0 GB of 8.2 GB available");
    let file = bench.file("machine/sys/class/power_supply/AC/online");
    std::fs::write(file, "1\n").unwrap();
    open.wait_for("Plugged in");
}

#[test]
fn what_a_machine_has_not_is_absent_and_no_failure() {
    let bench = Bench::new(&[]);
    let page = bench.get("/", "");
    assert!(page.contains(&tile("Load", "0.42")));
    for name in ["Memory in use", "Battery", "Adapter", "Network"] {
        assert!(!page.contains(&format!("<h3><bdi>{name}")), "{name}");
    }
    assert!(page.contains("<summary>Without a reading: 7</summary>"),);
    assert!(page.contains("there is no battery here"));
    assert!(!page.contains("Cannot be read"));
    bench.until_health(r#""status":"ok""#);
}
