//! From an environment to its specification and back.

use milieu::{
    Choice, Environment, Text,
    diagnostics::{Source, render},
    keys::{Rules, Specification},
    specification_of,
};

#[derive(Choice, Clone, Copy, Debug, PartialEq)]
#[repr(u32)]
enum Unit {
    Celsius,
    #[choice("K, or kelvin")]
    Kelvin,
}

/// Everything that a struct can say.
#[derive(Environment)]
#[environment(root = "/station")]
struct Station {
    /// The language of the pages.
    ///
    /// Visitors choose; "quotes", \ and = are text.
    #[key("%session%/language", default = "en", env = ["LC_ALL", "LANG"], opt = 'l', opt/long = "language", check/validation = r"^[a-z]{2}(-[A-Z]{2})?$", check/validation/message = "as in `de-AT`")]
    language: Text,
    #[key("%room%%floor%/unit", default = "K, or kelvin")]
    unit: Unit,
    #[key("%a b c%/limits", default = -5, range = "-10-60", readonly)]
    limit: i16,
    #[key(default = "  two\n\tlines ; and # all\\", meta("x/own" = "=mine"))]
    motto: Text,
    #[key("a\\/b", default = 2.5, type = "double", unit = "m/s")]
    speed: f64,
    #[key("files/count", default = "", check/length = "0-3", example = "ab")]
    empty: Text,
    #[part("/station/wind")]
    wind: Limits,
    verbose: bool,
}

#[derive(Environment)]
#[environment(at = limits)]
struct Limits {
    low: u64,
    #[key(default = 7)]
    high: u64,
}

fn metadata<E: Environment>() -> Vec<(String, Vec<(String, String)>)> {
    let owned = |pairs: &[(&str, &str)]| {
        let pairs = pairs
            .iter()
            .map(|(key, value)| ((*key).into(), (*value).into()));
        pairs.collect()
    };
    let values = E::VALUES.iter();
    values
        .map(|value| (value.pattern.into(), owned(value.metadata)))
        .collect()
}

#[test]
fn an_exported_environment_is_read_as_the_same_specification() {
    let text = specification_of::<Station>();
    let source = Source::new("station.ini", text);
    let (read, mut found) = Specification::parse(&source);
    found.extend(read.check(&source));
    assert!(
        found.is_empty(),
        "{}\n{}",
        source.text,
        render(&source, &found, false)
    );
    let keys = read
        .keys
        .iter()
        .map(|key| (key.pattern.as_str().to_owned(), key.metadata.clone()));
    assert_eq!(keys.collect::<Vec<_>>(), metadata::<Station>());
    assert_eq!(read.to_ini(), source.text);
}

#[test]
fn the_rules_of_an_exported_value_are_those_of_the_struct() {
    let (read, _) =
        Specification::parse(&Source::new("station.ini", specification_of::<Station>()));
    for (key, value) in read.keys.iter().zip(Station::VALUES) {
        let (exported, own) = (
            Rules::from_metadata(&key.borrowed()).unwrap(),
            Rules::from_metadata(value.metadata).unwrap(),
        );
        assert_eq!(exported.default(), own.default(), "{}", value.pattern);
        assert_eq!(exported.variants(), own.variants());
        assert_eq!(exported.read_only(), own.read_only());
    }
}

/// What the compiler makes of the export of `Small`, which a test keeps in step.
mod again {
    milieu::environment!("tests/small.ini");
}

/// A small one.
#[derive(Environment)]
#[environment(root = "/sw/small", at = small)]
struct Small {
    /// The language of the greeting.
    #[key("%session%/language", default = "en", opt/long = "language")]
    language: Text,
    #[key(default = 3, range = "1-10")]
    times: u32,
}

#[test]
fn the_compiler_makes_the_same_environment_of_the_export() {
    assert_eq!(specification_of::<Small>(), include_str!("small.ini"));
    assert_eq!(
        specification_of::<again::Environment>(),
        specification_of::<Small>()
    );
    let kinds = |values: &[milieu::context::Descriptor]| {
        values.iter().map(|value| value.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(again::Environment::VALUES), kinds(Small::VALUES));
    let (again, small) = (again::Environment::initial(), Small::initial());
    assert_eq!(again.sw.small.language, small.language);
    assert_eq!(again.sw.small.times, small.times);
}
