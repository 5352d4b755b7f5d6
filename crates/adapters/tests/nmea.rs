//! Positions of receivers: sentences of one's own, and a recorded flight that
//! another reader of NMEA has to understand in the same way.

use std::path::PathBuf;
use std::process::Command;

use crate::support::Live;
use milieu_adapters::command;
use milieu_adapters::nmea::{self, Fix, Position, Receiver};

/// With its checksum.
fn sentence(body: &str) -> String {
    let sum = body.bytes().fold(0, |sum, byte| sum ^ byte);
    format!("${body}*{sum:02X}")
}

fn positions(receiver: &mut Receiver, bodies: &[&str]) -> Vec<Position> {
    let mut positions = Vec::new();
    for body in bodies {
        let line = sentence(body);
        receiver
            .sentence(&line, |position| positions.push(position))
            .unwrap();
    }
    positions
}

const RMC: &str = "GPRMC,110124.50,A,5505.330990,N,03858.587325,W,152.6,86.2,310317,8.9,E,D";
const GGA: &str = "GPGGA,110124.50,5505.330990,N,03858.587325,W,2,09,0.9,2177.0,M,14.0,M,,";

#[test]
fn the_sentences_of_a_moment_are_one_position() {
    let mut receiver = Receiver::default();
    assert_eq!(positions(&mut receiver, &[RMC, "GPGSV,1,1,00", GGA]), []);
    let later = RMC.replace("110124", "110125");
    let found = positions(&mut receiver, &[&later]);
    let [position] = &found[..] else {
        panic!("{found:?}")
    };
    assert!((position.latitude_degrees - 55.088_849_8).abs() < 1e-6);
    assert!((position.longitude_degrees + 38.976_455_4).abs() < 1e-6);
    assert_eq!(position.altitude_metres, Some(2177.0));
    assert!((position.speed_metres_per_second.unwrap() - 78.504_2).abs() < 1e-3);
    assert_eq!(position.course_degrees, Some(86.2));
    assert_eq!(position.fix, Fix::Differential);
    assert_eq!(
        (position.satellites, position.horizontal_dilution),
        (Some(9), Some(0.9))
    );
    assert_eq!(
        position.time.unwrap().to_string(),
        "2017-03-31T11:01:24.500Z"
    );
    // Now it is known that GGA is the last of a moment.
    let later = GGA.replace("110124", "110125");
    assert_eq!(positions(&mut receiver, &[&later]).len(), 1);
    let next = [
        RMC.replace("110124", "110126"),
        GGA.replace("110124", "110126"),
    ];
    assert_eq!(positions(&mut receiver, &[&next[0]]), []);
    assert_eq!(positions(&mut receiver, &[&next[1]]).len(), 1);
    receiver.finish(|position| panic!("{position:?} was told already"));
}

#[test]
fn other_satellites_and_other_sentences_say_the_same() {
    let mut receiver = Receiver::default();
    let gns = "GNGNS,120000.00,4717.11,S,00833.91,E,AN,11,0.8,499.6,48.0,,0";
    let gll = "GLGLL,4717.12,S,00833.91,E,120001.00,A,A";
    let found = positions(&mut receiver, &[gns, gll]);
    assert_eq!(found[0].altitude_metres, Some(499.6));
    assert!(found[0].latitude_degrees < -47.0);
    assert_eq!((found[0].fix, found[0].time), (Fix::Satellites, None));
    receiver.finish(|position| assert_eq!(position.satellites, None));
}

#[test]
fn a_receiver_without_a_fix_has_no_position() {
    let mut receiver = Receiver::default();
    assert_eq!(receiver.has_fix(), None);
    let lost = RMC.replace(",A,", ",V,");
    assert_eq!(
        positions(&mut receiver, &[&lost, "GPGGA,110125,,,,,0,00,,,M,,M,,"]),
        []
    );
    assert_eq!(receiver.has_fix(), Some(false));
    positions(&mut receiver, &[RMC]);
    assert_eq!(receiver.has_fix(), Some(true));
    positions(&mut receiver, &["GPRMC,,V,,,,,,,,,,N"]);
    assert_eq!(receiver.has_fix(), Some(false));
}

#[test]
fn what_is_wrong_with_a_line_is_said() {
    let wrong = |line: &str| {
        let mut receiver = Receiver::default();
        receiver
            .sentence(line, |position| panic!("{position:?}"))
            .unwrap_err()
    };
    for (line, says) in [
        ("", "begin with `$`"),
        ("$GPRMC,110124", "no checksum"),
        ("$GPRMC*+5", "two hexadecimal digits"),
        ("$GPRMC,110124*00", "its checksum is"),
    ] {
        assert!(wrong(line).contains(says), "{line}: {}", wrong(line));
    }
    for (from, to, says) in [
        ("110124.50", "250000", "not a time of day"),
        ("110124.50", "é10124", "not a time of day"),
        ("5505.330990", "9505.330990", "not a latitude"),
        ("5505.330990", "5575.330990", "not a latitude"),
        ("5505.330990", "-505.330990", "not a latitude"),
        ("5505.330990", "5é.330990", "not a latitude"),
        (",N,", ",X,", "not a latitude"),
        ("152.6", "fast", "`fast` stands where a number should"),
        ("310317", "320317", "not a date"),
    ] {
        let line = sentence(&RMC.replace(from, to));
        assert!(wrong(&line).contains(says), "{line}: {}", wrong(&line));
    }
    assert!(wrong(&format!("${}*00", "x".repeat(1000))).contains("longer than"));
}

/// Whatever characters stand in a sentence, it is understood or refused.
#[test]
fn no_line_breaks_the_receiver() {
    let alphabet: Vec<char> = "0159.,-+*$ANSWEVDé\u{0}".chars().collect();
    let mut receiver = Receiver::default();
    let mut seed = 1u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    let mut understood = 0;
    for round in 0..20_000 {
        let mut body: Vec<char> = [RMC, GGA][round % 2].chars().collect();
        for _ in 0..random(4) {
            let at = 5 + random(body.len() - 5);
            body[at] = alphabet[random(alphabet.len())];
        }
        let body: String = body.into_iter().collect();
        let taken = receiver.sentence(&sentence(&body), |position| {
            assert!(position.latitude_degrees.abs() <= 90.0, "{body}");
            assert!(position.longitude_degrees.abs() <= 180.0, "{body}");
        });
        understood += usize::from(taken.is_ok());
    }
    assert!((1000..19_000).contains(&understood), "{understood}");
}

/// A file of a package that only tests use.
fn recording(package: &str, file: &str) -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version=1", "--locked"]);
    cargo.args([
        "--manifest-path",
        concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
    ]);
    let output = cargo.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let found = packages
        .iter()
        .find(|known| known["name"] == package)
        .unwrap();
    let manifest = PathBuf::from(found["manifest_path"].as_str().unwrap());
    manifest.with_file_name(file)
}

#[test]
fn a_recorded_flight_is_understood_as_another_reader_does() {
    let text = std::fs::read_to_string(recording("nmea", "tests/data/nmea1.log")).unwrap();
    let mut receiver = Receiver::default();
    let mut found = Vec::new();
    let mut expected = Vec::new();
    for line in text.lines() {
        receiver
            .sentence(line, |position| found.push(position))
            .unwrap();
        if let Ok(::nmea::ParseResult::GGA(gga)) = ::nmea::parse_str(line) {
            let place = gga.latitude.zip(gga.longitude);
            let is_valid = gga.fix_type.is_some_and(|fix| fix.is_valid());
            expected.extend(place.filter(|_| is_valid).map(|place| (place, gga)));
        }
    }
    receiver.finish(|position| found.push(position));
    assert!(expected.len() > 900, "{}", expected.len());
    assert_eq!(found.len(), expected.len());
    for (position, ((latitude, longitude), gga)) in found.iter().zip(expected) {
        assert!((position.latitude_degrees - latitude).abs() < 1e-9);
        assert!((position.longitude_degrees - longitude).abs() < 1e-9);
        assert_eq!(position.satellites, gga.fix_satellites);
        let altitude = gga.altitude.map(f64::from);
        assert!((position.altitude_metres.unwrap() - altitude.unwrap()).abs() < 0.01);
    }
    assert!(found.windows(2).all(|pair| pair[0].time < pair[1].time));
}

#[test]
fn a_receiver_is_a_source_that_says_whether_it_has_a_fix() {
    let lines = [
        "5330,N*00".to_owned(),
        sentence(&RMC.replace(",A,", ",V,")),
        sentence("GPGSV,1,1,00"),
    ];
    let script = format!("printf '{}\\n'; read x < gate; ", lines.join("\\n"))
        + &format!(
            "printf '{}\\n{}\\n'; sleep 1000",
            sentence(RMC),
            sentence(&RMC.replace("4.50", "5.50"))
        );
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, 0o600.into()).unwrap();
    let command = command::shell(&script).folder(folder.path());
    let mut source = Live::new(command.format(nmea::positions()));
    source.failure("no fix");
    std::fs::write(&gate, "go\n").unwrap();
    assert_eq!(source.bodies::<Position>(2)[0].fix, Fix::Differential);
    source.working();
}
