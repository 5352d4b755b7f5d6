//! Specifications: parsing, checking, showing what is wrong, and writing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_diagnostics::{Severity, Source};
use milieu_fuzz::can_be_shown;
use milieu_keys::Specification;

fuzz_target!(|text: &str| {
    let source = Source {
        name: "fuzz.ini".to_owned(),
        text: text.to_owned(),
    };
    let (specification, mut diagnostics) = Specification::parse(&source);
    diagnostics.extend(specification.check(&source));
    can_be_shown(text, &diagnostics);
    if diagnostics
        .iter()
        .all(|found| found.severity != Severity::Error)
    {
        written(&specification);
    }
});

/// What is written reads as the same keys and layers, and is written the same.
fn written(specification: &Specification) {
    let source = Source {
        name: "written.ini".to_owned(),
        text: specification.to_ini(),
    };
    let (read, diagnostics) = Specification::parse(&source);
    assert!(
        diagnostics
            .iter()
            .all(|found| found.severity != Severity::Error),
        "{diagnostics:?} in {:?}",
        source.text
    );
    assert_eq!(&read, specification);
    assert_eq!(read.to_ini(), source.text);
}
