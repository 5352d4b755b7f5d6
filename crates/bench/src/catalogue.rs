//! Catalogues: which kinds of applications a machine runs, and how.
//!
//! A description names kinds; the owner of a machine says here what they are. So
//! nobody who may send descriptions can choose a command.
//!
//! ```toml
//! ["solar.test.cases.SolarThroughput"]
//! command = ["throughput", "--star", "{starHost}"]
//! parameters.iterations = "integer"
//! parameters.starHost = "text"
//! parameters.randomInstance.stringLength = { kind = "integer", default = 0 }
//!
//! [star]
//! command = ["broker"]
//! service = true
//! ready = "listening on (?<port>[0-9]+)"
//! ```
//!
//! - `command`: the program and its arguments; `{name}` is a parameter. There is
//!   no shell: what a parameter holds stays within its argument.
//! - `parameters`: what the kind takes; anything, if this is left out.
//! - `result`: a pattern whose groups are what was measured, read from the output
//!   (`throughput=(?<throughput>[0-9.]+)`; a group without a name is `value`).
//!   Without it the application speaks lines of JSON ([`crate::run::protocol`]).
//! - `service`: it measures nothing; it starts first and is stopped when all
//!   others have ended.
//! - `ready`: a pattern in its output, or `true` if it says so in JSON; what comes
//!   later waits for it. Named groups are parameters of what comes later:
//!   `{star.port}`.
//! - `environment`, `folder`: of the process.
//! - `when`: it is a command of the host, which a description calls like an
//!   application: `before-test`, `before-step`, `after-step`, `after-test`, or
//!   `request`, for whoever asks the server. It has no result, and has to succeed.
//!
//! `properties` is no kind: it has commands that say what the host is, and what they
//! say stands in each result.
//!
//! ```toml
//! [properties]
//! compiler = ["cc", "--version"]
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;

use milieu_diagnostics::{Diagnostic, Source};
use regex::Regex;
use serde::{Deserialize, Deserializer, Serialize};
use toml::Spanned;
use toml::de::{DeTable, Deserializer as TomlDeserializer, ValueDeserializer};

use crate::{Kind, Value};

/// The table that is no kind.
const PROPERTIES: &str = "properties";

/// The kinds of applications that a machine runs.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    entries: BTreeMap<String, Entry>,
    properties: BTreeMap<String, Vec<String>>,
}

/// A kind of application, and how it is run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What it takes; `None` takes anything.
    #[serde(default, deserialize_with = "flattened")]
    pub parameters: Option<BTreeMap<String, Parameter>>,
    /// What reads its results from its output.
    #[serde(default)]
    pub result: Option<Pattern>,
    /// It measures nothing and runs as long as others do.
    #[serde(default)]
    pub service: bool,
    /// How it tells that it is ready; what comes later does not wait if this is left
    /// out.
    #[serde(default)]
    pub ready: Option<Ready>,
    /// Variables of its environment, beside those of the server.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Where it runs.
    #[serde(default)]
    pub folder: Option<PathBuf>,
    /// When it runs, if it is a command of the host and no application.
    #[serde(default)]
    pub when: Option<When>,
}

/// When a command of a host runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// Once, before the first step of a test; again before it goes on after an
    /// interruption.
    BeforeTest,
    /// Before anything else of each step.
    BeforeStep,
    /// After everything else of each step, also of one that failed.
    AfterStep,
    /// Once, after the last step of a test, or before it is interrupted.
    AfterTest,
    /// When somebody asks the server for it.
    Request,
}

/// A parameter that a kind of application takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// What it holds.
    pub kind: Kind,
    /// What it is where nobody says; `None`: somebody has to.
    pub default: Option<Value>,
}

/// How an application tells that it is ready.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Ready {
    /// Its output shows it.
    Shows(Pattern),
    /// It says so in JSON, if true.
    Says(bool),
}

/// A regular expression.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// Reads a regular expression.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(text: &str) -> Result<Pattern, String> {
        Regex::new(text).map(Pattern).map_err(|error| {
            let lines = error.to_string();
            lines.lines().last().unwrap_or_default().trim().to_owned()
        })
    }

    /// What the groups matched in a line, `value` where a group has no name.
    #[must_use]
    pub fn groups(&self, line: &str) -> Option<BTreeMap<String, String>> {
        let captures = self.0.captures(line)?;
        let names = self.0.capture_names().enumerate().skip(1);
        let matched = names.filter_map(|(index, name)| {
            let text = captures.get(index)?.as_str().to_owned();
            Some((name.unwrap_or("value").to_owned(), text))
        });
        Some(matched.collect())
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pattern, D::Error> {
        let text = String::deserialize(deserializer)?;
        Pattern::new(&text).map_err(serde::de::Error::custom)
    }
}

impl Catalogue {
    /// Reads a catalogue in TOML. `folder` is where relative folders and programs
    /// with a `/` begin.
    ///
    /// # Errors
    /// All mistakes, each with its place.
    pub fn parse(source: &Source) -> Result<Catalogue, Vec<Diagnostic>> {
        let (entries, properties) = read(&source.text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            vec![
                Diagnostic::error("this is no catalogue of applications")
                    .code("syntax")
                    .label(span.into(), error.message()),
            ]
        })?;
        let mut found = Vec::new();
        for (name, command) in &properties {
            if command.get_ref().is_empty() {
                let wrong = Diagnostic::error(format!("the property `{name}` has no command"))
                    .code("catalogue")
                    .label(command.span().into(), "nothing can be run")
                    .help("write `NAME = [\"program\", \"argument\"]`");
                found.push(wrong);
            }
        }
        for (name, entry) in &entries {
            let wrong = |message: String, label: &str, help: &str| {
                Diagnostic::error(message)
                    .code("catalogue")
                    .label(name.span().into(), label)
                    .help(help)
            };
            let known = entry.get_ref();
            if known.command.is_empty() {
                found.push(wrong(
                    format!("`{}` has no command", name.get_ref()),
                    "nothing can be run",
                    "write `command = [\"program\", \"argument\"]`",
                ));
            }
            if known.service && known.result.is_some() {
                found.push(wrong(
                    format!("`{}` is a service and has a result", name.get_ref()),
                    "services are stopped when all others have ended",
                    "leave out `service` or `result`",
                ));
            }
            let measures = known.service || known.result.is_some() || known.ready.is_some();
            if known.when.is_some() && measures {
                found.push(wrong(
                    format!(
                        "`{}` is a command of the host and an application",
                        name.get_ref()
                    ),
                    "commands run to their end, and measure nothing",
                    "leave out `when`, or `service`, `result` and `ready`",
                ));
            }
            let texts = known.command.iter().chain(known.environment.values());
            for hole in texts.flat_map(|text| holes(text)) {
                // `{star.port}` is what a service has said.
                let is_known = match &known.parameters {
                    Some(parameters) => parameters.contains_key(hole) || hole.contains('.'),
                    None => true,
                };
                if !is_known {
                    found.push(wrong(
                        format!("`{}` takes no parameter `{hole}`", name.get_ref()),
                        "its command or environment has it",
                        &format!("write `parameters.{hole} = \"text\"`"),
                    ));
                }
            }
        }
        match found.is_empty() {
            true => Ok(Catalogue {
                entries: entries
                    .into_iter()
                    .map(|(name, entry)| (name.into_inner(), entry.into_inner()))
                    .collect(),
                properties: properties
                    .into_iter()
                    .map(|(name, command)| (name, command.into_inner()))
                    .collect(),
            }),
            false => Err(found),
        }
    }

    /// Adds a kind, or replaces it.
    pub fn insert(&mut self, name: impl Into<String>, entry: Entry) {
        self.entries.insert(name.into(), entry);
    }

    /// The commands that say what this machine is, by the name of the property.
    #[must_use]
    pub fn properties(&self) -> &BTreeMap<String, Vec<String>> {
        &self.properties
    }

    /// How applications of a kind are run.
    #[must_use]
    pub fn get(&self, kind: &str) -> Option<&Entry> {
        self.entries.get(kind)
    }

    /// The kinds that are known.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Whether nothing is known; descriptions are then not checked against it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Entry {
    /// What others have to know to run it.
    pub(crate) fn manner(&self) -> Manner {
        Manner {
            is_service: self.service,
            waits: !matches!(self.ready, None | Some(Ready::Says(false))),
            when: self.when,
        }
    }
}

/// How applications of a kind take part in a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manner {
    /// It measures nothing.
    pub is_service: bool,
    /// It tells when it is ready.
    pub waits: bool,
    /// It is a command of its host.
    #[serde(default)]
    pub when: Option<When>,
}

type Entries = BTreeMap<Spanned<String>, Spanned<Entry>>;
type Properties = BTreeMap<String, Spanned<Vec<String>>>;

fn read(text: &str) -> Result<(Entries, Properties), toml::de::Error> {
    let mut root = DeTable::parse(text)?;
    let properties = match root.get_mut().remove_entry(PROPERTIES) {
        Some((_, table)) => Properties::deserialize(ValueDeserializer::from(table))?,
        None => Properties::default(),
    };
    let entries = Entries::deserialize(TomlDeserializer::from(root))?;
    Ok((entries, properties))
}

/// The names in `{…}` of a text.
fn holes(text: &str) -> impl Iterator<Item = &str> {
    pieces(text).filter_map(|piece| match piece {
        Piece::Hole(name) => Some(name),
        Piece::Text(_) => None,
    })
}

enum Piece<'a> {
    Text(&'a str),
    Hole(&'a str),
}

/// The text between holes, and the holes. Braces around anything else than a
/// name are text.
fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let is_name = |name: &str| {
        let is_allowed = |c: char| c.is_alphanumeric() || "._-".contains(c);
        !name.is_empty() && name.chars().all(is_allowed)
    };
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut from = 0;
        while let Some(open) = rest[from..].find('{').map(|at| from + at) {
            let close = rest[open..].find('}').map(|at| open + at);
            match close {
                Some(close) if is_name(&rest[open + 1..close]) => {
                    if open > 0 {
                        let (text, behind) = rest.split_at(open);
                        rest = behind;
                        return Some(Piece::Text(text));
                    }
                    let name = &rest[1..close];
                    rest = &rest[close + 1..];
                    return Some(Piece::Hole(name));
                }
                _ => from = open + 1,
            }
        }
        Some(Piece::Text(std::mem::take(&mut rest)))
    })
}

/// A text with its holes filled.
///
/// # Errors
/// The name for which there is no value.
pub(crate) fn fill(text: &str, parameters: &BTreeMap<String, Value>) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Hole(name) => match parameters.get(name) {
                Some(value) => filled.push_str(&value.to_string()),
                None => return Err(name.to_owned()),
            },
        }
    }
    Ok(filled)
}

/// Parameters may stand in tables within each other: dots in names are tables.
fn flattened<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, Parameter>>, D::Error> {
    let table: BTreeMap<String, Declared> = Deserialize::deserialize(deserializer)?;
    let mut parameters = BTreeMap::new();
    flatten("", table, &mut parameters).map_err(serde::de::Error::custom)?;
    Ok(Some(parameters))
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Declared {
    Kind(Kind),
    Parameter { kind: Kind, default: Option<Value> },
    Table(BTreeMap<String, Declared>),
}

fn flatten(
    before: &str,
    table: BTreeMap<String, Declared>,
    into: &mut BTreeMap<String, Parameter>,
) -> Result<(), String> {
    for (name, declared) in table {
        let name = match before {
            "" => name,
            _ => format!("{before}.{name}"),
        };
        let (kind, default) = match declared {
            Declared::Table(table) => {
                flatten(&name, table, into)?;
                continue;
            }
            Declared::Kind(kind) => (kind, None),
            Declared::Parameter { kind, default } => (kind, default),
        };
        let default = match default {
            None => None,
            Some(value) => Some(
                value
                    .convert(&kind)
                    .ok_or_else(|| format!("the default of `{name}` is not {kind}"))?,
            ),
        };
        into.insert(name, Parameter { kind, default });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Catalogue, Vec<Diagnostic>> {
        Catalogue::parse(&Source::new("applications.toml", text))
    }

    #[test]
    fn parameters_are_typed_and_dotted() {
        let catalogue = parse(
            "[t]\ncommand = [\"t\", \"{iterations}\"]\nparameters.iterations = \"integer\"\n\
             parameters.star = [\"text\", \"integer\"]\n\
             parameters.randomInstance.stringLength = { kind = \"integer\", default = 7.0 }\n",
        );
        let catalogue = catalogue.unwrap();
        let parameters = catalogue.get("t").unwrap().parameters.as_ref().unwrap();
        assert_eq!(parameters["iterations"].kind, Kind::Integer);
        let pair = Kind::List(vec![Kind::Text, Kind::Integer]);
        assert_eq!(parameters["star"].kind, pair);
        let length = &parameters["randomInstance.stringLength"];
        assert_eq!(length.default, Some(Value::Integer(7)));
    }

    #[test]
    fn mistakes_have_places() {
        for (text, message) in [
            ("[t]\ncommand = []\n", "`t` has no command"),
            (
                "[t]\ncommand = [\"{x}\"]\nparameters.y = \"text\"\n",
                "`t` takes no parameter `x`",
            ),
            (
                "[t]\ncommand = [\"t\"]\nservice = true\nresult = \"(.)\"\n",
                "`t` is a service and has a result",
            ),
            (
                "[t]\ncommand = [\"t\"]\nwhen = \"before-step\"\nresult = \"(.)\"\n",
                "`t` is a command of the host and an application",
            ),
            (
                "[properties]\ncompiler = []\n",
                "the property `compiler` has no command",
            ),
        ] {
            let found = parse(text).unwrap_err();
            assert_eq!(found[0].message, message);
            assert!(found[0].span().is_some());
        }
        for text in [
            "[t]\ncommand = [\"t\"]\nresult = \"(\"\n",
            "[t]\ncomand = [\"t\"]\n",
            "[t]\ncommand = [\"t\"]\nwhen = \"later\"\n",
            "[properties]\ncompiler = \"cc --version\"\n",
            "[t]\ncommand = [\"t\"]\nparameters.x = \"lnog\"\n",
            "[t]\ncommand = [\"t\"]\nparameters.x = { kind = \"integer\", default = 1.5 }\n",
        ] {
            let found = parse(text).unwrap_err();
            assert_eq!(found[0].message, "this is no catalogue of applications");
            assert!(found[0].span().is_some());
        }
    }

    #[test]
    fn holes_are_filled_within_their_argument() {
        let value = Value::Text("a b; rm -rf / {y}".into());
        let parameters = BTreeMap::from([("x".to_owned(), value)]);
        let filled = fill("-n={x}{{x}", &parameters).unwrap();
        assert_eq!(filled, "-n=a b; rm -rf / {y}{a b; rm -rf / {y}");
        assert_eq!(
            fill("{not a name} {}", &parameters).unwrap(),
            "{not a name} {}"
        );
        assert_eq!(fill("{z}", &parameters), Err("z".to_owned()));
    }
}
