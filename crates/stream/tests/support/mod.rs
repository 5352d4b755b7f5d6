//! A catalogue with an operator of every shape, for tests of the languages:
//! they know operators by their definitions only.

use milieu_diagnostics::Diagnostic;
use milieu_stream::{
    Arguments, Catalogue, Declared, Definition, Fate, Inputs, Kind, Operator, Output, Parameter,
};
use milieu_transfer::Event;

/// Whatever it is called, it lets events pass.
struct Pass;

impl Operator for Pass {
    fn event(&mut self, _: usize, _: &Event, _: &mut Output<'_>) -> Fate {
        Fate::Passed
    }
}

/// As operators do, it has an opinion on what it is told.
fn make(arguments: &Arguments<'_>) -> Result<Box<dyn Operator>, Diagnostic> {
    match arguments.given("count") {
        Some(Parameter::Integer(0)) => Err(Diagnostic::error("`count` has to be 1 at least")),
        _ => Ok(Box::new(Pass)),
    }
}

const fn positional(name: &'static str, kind: Kind, default: Option<&'static str>) -> Declared {
    Declared {
        name,
        kind,
        positional: true,
        default,
        summary: "What the operator is told first.",
    }
}

const fn named(name: &'static str, kind: Kind, default: Option<&'static str>) -> Declared {
    Declared {
        name,
        kind,
        positional: false,
        default,
        summary: "What the operator is told by name.",
    }
}

const NONE: Option<&str> = Some("");

const FUNCTIONS: &[&str] = &["minimum", "maximum", "mean", "count", "percentile"];

macro_rules! define {
    ($($name:literal $inputs:expr => [$($parameter:expr),* $(,)?];)*) => {
        static DEFINITIONS: &[Definition] = &[$(Definition {
            name: $name,
            summary: "An operator of the tests.",
            inputs: $inputs,
            parameters: &[$($parameter),*],
            make,
        }),*];
    };
}

define! {
    "filter" Inputs::One => [positional("condition", Kind::Expression, None)];
    "transform" Inputs::One => [
        positional("to", Kind::Fields, None),
        named("type", Kind::Text, NONE),
    ];
    "merge" Inputs::Unordered => [];
    "aggregate" Inputs::One => [
        positional("functions", Kind::Functions(FUNCTIONS), None),
        positional("window", Kind::Span, NONE),
        named("every", Kind::Span, NONE),
        named("count", Kind::Integer, NONE),
        named("session", Kind::Span, NONE),
        named("of", Kind::Expression, Some("value")),
        named("by", Kind::Expression, NONE),
    ];
    "change" Inputs::One => [positional("by", Kind::Number, Some("0"))];
    "vote" Inputs::Unordered => [
        positional("rule", Kind::Choice(&["majority", "all", "median"]), Some("majority")),
        named("quorum", Kind::Integer, Some("2")),
    ];
    "deduplicate" Inputs::One => [
        positional("window", Kind::Span, Some("1m")),
        named("sequence", Kind::Flag, Some("true")),
    ];
    "hysteresis" Inputs::One => [
        named("on", Kind::Expression, None),
        named("off", Kind::Expression, None),
    ];
    "join" Inputs::Ordered(2) => [
        positional("window", Kind::Span, None),
        named("to", Kind::Fields, NONE),
    ];
}

/// The catalogue.
pub fn catalogue() -> Catalogue {
    Catalogue::new(DEFINITIONS)
}
