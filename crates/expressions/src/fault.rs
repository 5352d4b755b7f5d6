//! What goes wrong while an expression runs.

use std::fmt;

use milieu_diagnostics::{Diagnostic, Span};

use crate::kind::Kind;

/// An error of CEL: an expression that runs into one has no value.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault(Box<(Wrong, Span)>);

/// What went wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum Wrong {
    /// The event has no such field.
    NoField(String),
    /// A map has no such key, shown as text.
    NoKey(String),
    /// A list has no element of this number.
    NoElement(i64),
    /// A whole number does not fit into 64 bits, or a time into its range.
    Overflow,
    /// A whole number was divided by zero.
    DivisionByZero,
    /// The operator or function is not defined for these.
    NoOverload(&'static str, Vec<Kind>),
    /// A text or number cannot be converted; shown, and into what.
    NoConversion(String, Kind),
    /// A text is no regular expression; the reason.
    NoPattern(String),
    /// A text names no time zone that is known.
    NoZone(String),
    /// A map would have a key twice.
    DuplicateKey(String),
    /// It took more steps than it may.
    TooLong,
    /// The result is not of the kind that was asked for, but of this one.
    NotAsked {
        /// What was asked for.
        asked: Kind,
        /// What the result is.
        found: Kind,
    },
    /// A field is of another kind than the closures were made for. Never seen
    /// outside: they are made anew.
    Changed,
}

impl Fault {
    pub(crate) fn new(what: Wrong, span: Span) -> Fault {
        Fault(Box::new((what, span)))
    }

    /// What went wrong.
    #[must_use]
    pub fn what(&self) -> &Wrong {
        &self.0.0
    }

    /// The part of the expression that it happened in.
    #[must_use]
    pub fn span(&self) -> Span {
        self.0.1
    }

    /// The fault as a diagnostic of the expression's text.
    #[must_use]
    pub fn diagnostic(&self) -> Diagnostic {
        let label = match self.what() {
            Wrong::NoField(_) | Wrong::NoKey(_) | Wrong::NoElement(_) => "not there",
            _ => "here",
        };
        let found = Diagnostic::error(self.what().to_string());
        let found = found.code("fault").label(self.span(), label);
        match self.what().help() {
            Some(help) => found.help(help),
            None => found,
        }
    }
}

impl Wrong {
    /// The way out.
    fn help(&self) -> Option<String> {
        Some(match self {
            Wrong::NoField(path) => match path.rsplit_once('.') {
                Some(_) => format!("ask `has({path})` first"),
                None => format!("ask `has(value.{path})` first"),
            },
            Wrong::NoKey(_) => "ask `has(map.field)` or `key in map` first".to_owned(),
            Wrong::NoElement(_) => "compare with `size(list)` first".to_owned(),
            Wrong::Overflow => "compute with `double(x)`".to_owned(),
            Wrong::DivisionByZero => "ask `x != 0` first, or divide doubles".to_owned(),
            Wrong::NoOverload(name, kinds) => return overload_help(name, kinds),
            Wrong::NoConversion(_, Kind::Span) => {
                "durations are written `1h30m`, `10s`, `250ms`".to_owned()
            }
            Wrong::NoConversion(_, Kind::Time) => {
                "times are written `2026-01-31T12:00:00Z`, in the years 1678 to 2261".to_owned()
            }
            Wrong::NoZone(_) => {
                "zones are written `UTC`, `+02:00` or `-05:30`; names of places are not known"
                    .to_owned()
            }
            Wrong::TooLong => "go through shorter lists, or raise the limit of steps".to_owned(),
            _ => return None,
        })
    }
}

/// What to do where an operator is not defined for its operands.
pub(crate) fn overload_help(name: &str, kinds: &[Kind]) -> Option<String> {
    let [left, right] = kinds else { return None };
    let is_arithmetic = matches!(name, "+" | "-" | "*" | "/" | "%");
    Some(match (left, right) {
        (Kind::Double, Kind::Int | Kind::Uint) | (Kind::Int | Kind::Uint, Kind::Double)
            if is_arithmetic && name != "%" =>
        {
            "both must be of one kind: write a literal as `2.0`, or convert with `double(x)`"
                .to_owned()
        }
        (Kind::Uint, Kind::Int) | (Kind::Int, Kind::Uint) if is_arithmetic => {
            "both must be of one kind: write a literal as `2u`, or convert with `int(x)`".to_owned()
        }
        (Kind::Double, _) | (_, Kind::Double) if name == "%" => {
            "remainders are of whole numbers: convert with `int(x)`".to_owned()
        }
        (Kind::Text, _) | (_, Kind::Text) if name == "+" => {
            "texts are joined with texts: convert with `string(x)`".to_owned()
        }
        (Kind::Time, number) | (Kind::Span, number) if number.is_number() => {
            "durations are written `duration(\"10s\")`".to_owned()
        }
        (Kind::Null, _) | (_, Kind::Null) => "ask `x != null` first".to_owned(),
        _ => return None,
    })
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::NoField(path) => write!(f, "the event has no field `{path}`"),
            Wrong::NoKey(key) => write!(f, "the map has no key {key}"),
            Wrong::NoElement(index) => write!(f, "the list has no element {index}"),
            Wrong::Overflow => f.write_str("the result is out of range"),
            Wrong::DivisionByZero => f.write_str("a whole number is divided by zero"),
            Wrong::NoOverload(name, kinds) => {
                write!(f, "`{name}` is not defined for ")?;
                for (at, kind) in kinds.iter().enumerate() {
                    let between = if at == 0 { "" } else { " and " };
                    write!(f, "{between}{kind}")?;
                }
                Ok(())
            }
            Wrong::NoConversion(shown, kind) => write!(f, "{shown} is no {kind}"),
            Wrong::NoPattern(why) => write!(f, "the regular expression is wrong: {why}"),
            Wrong::NoZone(text) => write!(f, "{text:?} is no time zone"),
            Wrong::DuplicateKey(key) => write!(f, "the map would have the key {key} twice"),
            Wrong::TooLong => f.write_str("the expression takes too many steps"),
            Wrong::NotAsked { asked, found } => {
                write!(f, "the result is of kind {found} and not {asked}")
            }
            Wrong::Changed => f.write_str("a field is of another kind than before"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Span { start, end } = self.span();
        write!(f, "{} (at {start}..{end})", self.what())?;
        match self.what().help() {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Fault {}
