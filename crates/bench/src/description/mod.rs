//! Descriptions of tests: what runs where, with which parameters, and what is swept.
//!
//! A [`Group`] has tests, a [`Test`] has servers, a [`Server`] has applications
//! (Solar paper, section 4.1.1). Parameters stand at the test, at a server and at
//! an application; the innermost one holds. [`Variable`]s are parameters of the
//! whole test whose values change from step to step.
//!
//! A description is written in TOML, in the paper's XML (its Figures 3 and 4), or
//! in Rust, which is to fill in these structs. [`parse`] reads a text, [`write()`]
//! writes one, and both languages say the same.

mod build;
mod toml;
mod tree;
mod write;
mod xml;

pub(crate) use write::{Xml, escaped};

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use milieu_diagnostics::{Diagnostic, Source};
use serde::{Deserialize, Serialize};

use crate::Value;
use crate::catalogue::Catalogue;

/// How many steps a sweep may have, repetitions included.
pub const STEPS_MAX: u64 = 1_000_000;

/// Tests that belong together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// What the group is called.
    pub name: String,
    /// The tests, in their order.
    pub tests: Vec<Test>,
    /// Free properties: of the environment, and of how results are to be drawn.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, Value>,
}

/// One test: every step is a run of its applications with other values of its variables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Test {
    /// What the test is called; unique in its group.
    pub name: String,
    /// Where its applications run.
    pub servers: Vec<Server>,
    /// What is swept; the first one is the outermost loop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// Parameters of all applications.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Value>,
    /// How steps are repeated and ordered.
    #[serde(default)]
    pub schedule: Schedule,
}

/// How the steps of a test are repeated and ordered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Schedule {
    /// How often each combination of values is measured.
    pub repetitions: NonZeroU32,
    /// How often each combination runs before it is measured.
    pub warm_up: u32,
    /// In which order steps run.
    pub order: Order,
    /// What a random order is made from; the same seed gives the same order.
    pub seed: u64,
    /// How long a step may take, in seconds.
    pub timeout_seconds: f64,
    /// What becomes of a step whose host is lost.
    pub lost_host: LostHost,
}

impl Default for Schedule {
    fn default() -> Schedule {
        Schedule {
            repetitions: NonZeroU32::MIN,
            warm_up: 0,
            order: Order::default(),
            seed: 1,
            timeout_seconds: 600.0,
            lost_host: LostHost::default(),
        }
    }
}

/// In which order the steps of a test run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// All repetitions of one combination, then the next.
    Sequential,
    /// All combinations once, then all again: what drifts meets all of them alike.
    #[default]
    Interleaved,
    /// As interleaved, each round in a random order of its own.
    Random,
}

/// What becomes of a step whose host is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LostHost {
    /// It runs again when the host is back, three times at most.
    #[default]
    Retry,
    /// It stays without a value, and the test goes on.
    Skip,
    /// The test ends.
    Fail,
}

/// A host and what runs on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// The host's name or address; none is this machine, without a test server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Where its test server listens; none is [`Server::PORT`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// What runs there, in the order in which it is started.
    pub applications: Vec<Application>,
    /// Parameters of what runs there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Value>,
}

impl Server {
    /// The port of test servers, the paper's.
    pub const PORT: u16 = 8108;

    /// What this machine is called in results.
    pub const HERE: &str = "here";

    /// What the server is called in results.
    #[must_use]
    pub fn name(&self) -> String {
        match (&self.host, self.port) {
            (None, _) => Server::HERE.into(),
            (Some(host), None) => host.clone(),
            (Some(host), Some(port)) => format!("{host}:{port}"),
        }
    }
}

/// A process of a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Application {
    /// What it is called; unique in its test.
    pub name: String,
    /// Its kind, the paper's class: the catalogue of the host knows what that runs.
    pub kind: String,
    /// Its own parameters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Value>,
}

/// A parameter of the whole test that takes one value after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variable {
    /// The parameter.
    pub name: String,
    /// Its values.
    #[serde(flatten)]
    pub values: Values,
    /// A condition on what is measured: not all values are measured, but the last
    /// one is searched for which it holds ([`Found`](crate::result::Found)).
    #[serde(default, rename = "while", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
}

/// The values of a variable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Values {
    /// These, in this order.
    Enumeration {
        /// The values.
        values: Vec<Value>,
    },
    /// From `start` in steps of `step` up to and with `end`.
    Range {
        /// The first value.
        start: Value,
        /// The last value, if a step meets it.
        end: Value,
        /// From one to the next; not 0, and in the direction of `end`.
        step: Value,
    },
}

impl Variable {
    /// The values, in their order; a description that was read has at most
    /// [`STEPS_MAX`].
    #[must_use]
    pub fn all(&self) -> Vec<Value> {
        let count = self.values.count();
        (0..count).map(|index| self.values.at(index)).collect()
    }
}

impl Values {
    /// How many values there are; 0 for a range that makes no sense.
    #[must_use]
    pub fn count(&self) -> u64 {
        match self {
            Values::Enumeration { values } => values.len() as u64,
            Values::Range { start, end, step } => {
                let numbers = (start.number(), end.number(), step.number());
                let (Some(start), Some(end), Some(step)) = numbers else {
                    return 0;
                };
                // 0.1 three times is not quite 0.3.
                let steps = ((end - start) / step + 1e-9).floor();
                match steps >= 0.0 && step != 0.0 {
                    #[expect(
                        clippy::cast_possible_truncation,
                        clippy::cast_sign_loss,
                        reason = "it is not negative, and saturates"
                    )]
                    true => (steps as u64).saturating_add(1),
                    false => 0,
                }
            }
        }
    }

    pub(crate) fn at(&self, index: u64) -> Value {
        match self {
            Values::Enumeration { values } => {
                values[usize::try_from(index).expect("there are so many")].clone()
            }
            Values::Range {
                start: Value::Integer(start),
                step: Value::Integer(step),
                ..
            } => {
                let steps = i64::try_from(index).unwrap_or(i64::MAX);
                Value::Integer(start.saturating_add(step.saturating_mul(steps)))
            }
            Values::Range { start, step, .. } => {
                let number = |value: &Value| value.number().expect("a number was checked");
                #[expect(clippy::cast_precision_loss, reason = "a few steps")]
                let value = number(start) + number(step) * index as f64;
                // 0.1 three times is 0.3 to whoever wrote it.
                let rounded: f64 = format!("{value:.12}").parse().unwrap_or(value);
                Value::Number(match (rounded - value).abs() <= 1e-9 * value.abs() {
                    true => rounded,
                    false => value,
                })
            }
        }
    }
}

/// The languages of descriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// TOML, ours.
    Toml,
    /// The paper's XML.
    Xml,
}

impl Language {
    /// The language of a file of this name.
    #[must_use]
    pub fn of(path: &std::path::Path) -> Option<Language> {
        match path.extension()?.to_str()? {
            "toml" => Some(Language::Toml),
            "xml" => Some(Language::Xml),
            _ => None,
        }
    }
}

/// What a text describes, with what is wrong with it, checked against what the
/// applications expect as far as the catalogue knows them.
///
/// # Errors
/// All mistakes, each with its place. Warnings come with a description.
pub fn parse(
    language: Language,
    source: &Source,
    catalogue: &Catalogue,
) -> Result<(Group, Vec<Diagnostic>), Vec<Diagnostic>> {
    let root = match language {
        Language::Toml => toml::read(&source.text),
        Language::Xml => xml::read(&source.text),
    };
    let mut found = Vec::new();
    let group = match root {
        Ok(root) => build::group(&root, catalogue, &mut found),
        Err(error) => {
            found.push(error);
            Group::default()
        }
    };
    found.sort_by_key(|it| it.span().map(|span| span.start));
    match found.iter().any(Diagnostic::is_error) {
        true => Err(found),
        false => Ok((group, found)),
    }
}

/// Checks a description that was made in Rust, or one for another catalogue.
///
/// # Errors
/// All mistakes, without places.
pub fn check(group: &Group, catalogue: &Catalogue) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    // What was built is written and read again, so that there is one check.
    let text = write(Language::Toml, group);
    match parse(Language::Toml, &Source::new(&group.name, text), catalogue) {
        Ok((_, warnings)) => Ok(warnings),
        Err(found) => Err(found),
    }
}

/// The description in a language; reading it gives the same description.
#[must_use]
pub fn write(language: Language, group: &Group) -> String {
    match language {
        Language::Toml => write::toml(group),
        Language::Xml => write::xml(group, None),
    }
}

/// The description in the paper's XML, with results.
pub(crate) fn with_results(group: &Group, results: &crate::result::Results) -> String {
    write::xml(group, Some(results))
}
