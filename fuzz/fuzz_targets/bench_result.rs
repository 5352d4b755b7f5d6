//! Results of performance tests, and every report on them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_bench::compare::compare;
use milieu_bench::report::{ALL, Options};
use milieu_bench::result::Results;
use milieu_bench::run::protocol::message;

fuzz_target!(|text: &str| {
    for line in text.lines() {
        let _ = message(line);
    }
    let Ok(results) = Results::parse(text) else {
        return;
    };
    for report in ALL {
        let _ = report.write(&results, &Options::default());
    }
    let _ = compare(&results, &results, 0.01);
});
