//! Results of performance tests, and every report on them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_bench::compare::{compare, differences};
use milieu_bench::report::{ALL, Options, Picture, Scale};
use milieu_bench::result::Results;
use milieu_bench::run::protocol::message;

fuzz_target!(|text: &str| {
    for line in text.lines() {
        let _ = message(line);
    }
    let Ok(results) = Results::parse(text) else {
        return;
    };
    let logarithmic = Options {
        picture: Picture {
            x_scale: Scale::Log,
            y_scale: Scale::Log,
            ..Picture::default()
        },
        ..Options::default()
    };
    for report in ALL {
        for options in [&Options::default(), &logarithmic] {
            let Ok(written) = report.write(&results, options) else {
                continue;
            };
            // Whatever stands in a result, pictures are well-formed.
            let written = String::from_utf8(written).expect("reports but PNG are texts");
            if written.starts_with("<svg ") {
                roxmltree::Document::parse(&written).expect("a picture");
            }
        }
    }
    let _ = compare(&results, &results, 0.01);
    assert!(differences(&results, &results).is_empty());
    // In XML there is all that XML can have. JSON may have what no run can give: names
    // of points that are there twice.
    if text.trim_start().starts_with('<') {
        let xml = results.to_xml();
        let read = Results::parse(&xml).unwrap_or_else(|why| panic!("{why}: {xml}"));
        assert_eq!(read.to_xml(), xml);
    }
});
