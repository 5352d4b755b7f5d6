//! What earlier releases have written stays readable.
//!
//! `tests/goldens/VERSION/MODE.hex` holds the frames that this version wrote of
//! the sample, one a line. `MILIEU_GOLDENS=write` writes those of the present
//! version that are not there; a file that is there is never written again, and
//! neither may the sample change.

use std::fmt::Write;
use std::path::PathBuf;

use crate::sample::{Everything, everything, header};
use milieu_transfer::{Event, Header, Kind, Limits, Mode, Modes, Rights};

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "goldens"]
        .iter()
        .collect()
}

/// Three events of a stream.
fn events() -> [Event; 3] {
    let mut sequence = 6;
    [1.5, 1.5, -2.5].map(|double| {
        sequence += 1;
        let header = Header {
            sequence,
            ..header()
        };
        Event::new(
            header,
            Everything {
                double,
                ..everything()
            },
        )
    })
}

fn written(mode: &dyn Mode) -> String {
    let mut encoder = mode.encoder(Rights::ALL);
    let mut text = String::new();
    for event in events() {
        let mut frame = Vec::new();
        encoder.encode(&event, &mut frame).unwrap();
        for byte in frame {
            write!(text, "{byte:02x}").unwrap();
        }
        text.push('\n');
    }
    text
}

fn bytes(line: &str) -> Vec<u8> {
    let digits = line.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

#[test]
fn frames_of_every_release_are_understood() {
    let modes = Modes::standard();
    if std::env::var("MILIEU_GOLDENS").is_ok_and(|it| it == "write") {
        let folder = folder().join(env!("CARGO_PKG_VERSION"));
        std::fs::create_dir_all(&folder).unwrap();
        for offer in modes.offers() {
            let path = folder.join(format!("{}.hex", offer.name));
            if !path.exists() {
                std::fs::write(path, written(&**modes.named(&offer.name).unwrap())).unwrap();
            }
        }
    }
    let mut read = 0;
    for release in std::fs::read_dir(folder()).unwrap() {
        for file in std::fs::read_dir(release.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            let mode = modes.named(name).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(text.lines().count(), events().len());
            let mut decoder = mode.decoder(Limits::default(), Rights::ALL);
            for (line, event) in text.lines().zip(events()) {
                let frame = decoder.decode(&bytes(line)).unwrap();
                assert_eq!(frame.header(), event.header(), "{}", path.display());
                let frame = Kind::<Everything>::new()
                    .adopt(&frame, Rights::ALL)
                    .unwrap();
                let (found, expected) = (frame.get::<Everything>(), event.get::<Everything>());
                assert_eq!(found, expected, "{}", path.display());
            }
            read += 1;
        }
    }
    assert!(read >= modes.offers().len(), "only {read} files");
}

/// The encodings of a version do not change by accident: whoever changes one
/// gives it a new version.
#[test]
fn this_release_writes_what_it_wrote() {
    let folder = folder().join(env!("CARGO_PKG_VERSION"));
    let modes = Modes::standard();
    for offer in modes.offers() {
        let path = folder.join(format!("{}.hex", offer.name));
        let text = std::fs::read_to_string(&path).expect("MILIEU_GOLDENS=write makes it");
        assert_eq!(
            text,
            written(&**modes.named(&offer.name).unwrap()),
            "{offer}"
        );
    }
}
