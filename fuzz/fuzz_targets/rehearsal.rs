//! Cases of flows: reading them, running them in virtual time, and showing what
//! is wrong in its place.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_diagnostics::{Source, render};
use milieu_stream::operators;
use milieu_stream::rehearsal::{Wrong, cases, rehearse};

fuzz_target!(|text: &str| {
    let source = Source::new("fuzz.cases", text);
    let cases = match cases(&source) {
        Ok(cases) => cases,
        Err(found) => {
            drop(render(&source, &[found], false));
            return;
        }
    };
    let catalogue = operators::catalogue();
    for case in cases {
        match rehearse(&case, &catalogue) {
            // What it found is a case that holds.
            Ok(found) => {
                let mut again = case.clone();
                again.lines.clone_from(&found);
                assert_eq!(rehearse(&again, &catalogue).ok(), Some(found));
            }
            Err(Wrong::Line(found)) => {
                drop(render(&Source::new("x", &case.lines), &[found], false))
            }
            Err(_) => {}
        }
    }
});
