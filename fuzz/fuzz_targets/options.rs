//! Command lines and environments, against whatever specification.
//!
//! The first text is a specification, the lines of the second are the
//! arguments, those of the third variables, `NAME=value`.
#![no_main]

use std::ffi::OsString;

use libfuzzer_sys::fuzz_target;
use milieu_diagnostics::Source;
use milieu_fuzz::texts;
use milieu_keys::{Options, Parsed, Specification};

fuzz_target!(|input: &str| {
    let [text, arguments, variables] = texts(input);
    let source = Source {
        name: "fuzz.ini".to_owned(),
        text: text.to_owned(),
    };
    let (specification, _) = Specification::parse(&source);
    let metadata: Vec<Vec<(&str, &str)>> = specification
        .keys
        .iter()
        .map(|key| {
            let pairs = key.metadata.iter();
            pairs
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect()
        })
        .collect();
    let entries = specification
        .keys
        .iter()
        .zip(&metadata)
        .map(|(key, metadata)| (key.pattern.as_str(), metadata.as_slice()));
    let Ok(options) = Options::new("fuzz", entries) else {
        return;
    };
    let variable = |name: &str| {
        variables
            .lines()
            .filter_map(|line| line.split_once('='))
            .find_map(|(other, value)| (other == name).then(|| OsString::from(value)))
    };
    for width in [0, 80] {
        assert!(
            !options
                .clone()
                .with_width(width)
                .help::<&str>(&[])
                .is_empty()
        );
    }
    let parsed = options.parse(arguments.lines().map(OsString::from), variable);
    match parsed {
        Ok(Parsed::Keys(keys)) => {
            for key in keys.iter() {
                assert!(milieu_keys::Name::parse(key.name()).is_ok());
            }
        }
        Ok(Parsed::Help(text) | Parsed::Version(text)) => assert!(!text.is_empty()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
