//! Descriptions of performance tests and catalogues of applications: reading,
//! showing what is wrong, and writing in both languages.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_bench::catalogue::Catalogue;
use milieu_bench::description::{Language, check, parse, write};
use milieu_bench::plan::Plan;
use milieu_diagnostics::Source;
use milieu_fuzz::can_be_shown;

// The text before the first line of `===` is a catalogue, the rest a description.
fuzz_target!(|text: &str| {
    let (catalogue, description) = text.split_once("\n===\n").unwrap_or(("", text));
    let catalogue = match Catalogue::parse(&Source::new("catalogue", catalogue)) {
        Ok(catalogue) => catalogue,
        Err(found) => {
            can_be_shown(catalogue, &found);
            Catalogue::default()
        }
    };
    let language = match description.trim_start().starts_with('<') {
        true => Language::Xml,
        false => Language::Toml,
    };
    let source = Source::new("description", description);
    let group = match parse(language, &source, &catalogue) {
        Ok((group, _)) => group,
        Err(found) => {
            assert!(!found.is_empty());
            return can_be_shown(description, &found);
        }
    };
    for test in &group.tests {
        let plan = Plan::new(test);
        assert!(
            plan.steps()
                .take(100)
                .all(|step| step.point < plan.points())
        );
        assert_eq!(plan.values(plan.points() - 1).len(), test.variables.len());
    }
    let toml = write(Language::Toml, &group);
    let read = parse(Language::Toml, &Source::new("written", &*toml), &catalogue);
    assert_eq!(read.map(|(group, _)| group).as_ref(), Ok(&group), "{toml}");
    assert!(check(&group, &catalogue).is_ok());
    let xml = write(Language::Xml, &group);
    let open = Catalogue::default();
    let read = parse(Language::Xml, &Source::new("written", &*xml), &open);
    let read = read.unwrap_or_else(|found| panic!("{xml}: {found:?}")).0;
    assert_eq!(write(Language::Xml, &read), xml);
    // Some characters are none in XML, and are replaced.
    if !xml.contains('\u{fffd}') {
        assert_eq!(read, group, "{xml}");
    }
});
