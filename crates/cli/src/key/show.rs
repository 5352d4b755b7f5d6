//! Keys as people read them: one line each, nothing that steers a terminal.

use milieu_keys::{Key, Namespace, Origin, SourceOf};
use milieu_store::{Candidate, Explanation, Via, ini};

use super::json::Object;

/// `user     /sw/pi/anna/language = de  (station.ini:2)`
pub(super) fn long(key: &Key) -> String {
    let (name, value) = (ini::encode_name(key.name()), ini::encode_value(key.value()));
    format!(
        "{:8} {name} = {value}  ({})\n",
        key.namespace().as_str(),
        origin(key)
    )
}

/// Where a value came from, as something that can be opened.
pub(super) fn origin(key: &Key) -> String {
    let origin = key.origin();
    match &*origin.source {
        SourceOf::Specification(path) if origin.line > 0 => format!("{path}:{}", origin.line),
        SourceOf::Specification(path) => path.clone(),
        _ => origin.to_string(),
    }
}

/// The cascade as a table, the key and its value above it.
pub(super) fn explanation(explanation: &Explanation) -> String {
    let name = ini::encode_name(explanation.name.as_str());
    let winner = explanation
        .candidates
        .iter()
        .position(|candidate| candidate.key.is_some());
    let mut out = match explanation
        .winner()
        .and_then(|candidate| candidate.key.as_ref())
    {
        Some(key) => format!("{name} = {}\n", ini::encode_value(key.value())),
        None => format!("{name} has no value\n"),
    };
    let values: Vec<String> = explanation.candidates.iter().map(value).collect();
    let width = values
        .iter()
        .map(|value| value.chars().count())
        .max()
        .unwrap_or(0);
    for input in &explanation.inputs {
        let origin = Origin::new(input.clone());
        out.push_str(&format!(
            "  {:8} {:8} {:width$}  {origin}\n",
            "proc", "at run", ""
        ));
    }
    for (index, (candidate, value)) in explanation.candidates.iter().zip(&values).enumerate() {
        let state = state(candidate, winner == Some(index));
        let place = candidate
            .key
            .as_ref()
            .map_or_else(|| path(&candidate.source).to_owned(), origin);
        let other = match candidate.via {
            Via::Name => String::new(),
            Via::Override => format!("  (override {})", ini::encode_name(candidate.name.as_str())),
            Via::Fallback => format!("  (fallback {})", ini::encode_name(candidate.name.as_str())),
        };
        let namespace = candidate.namespace.as_str();
        out.push_str(&format!(
            "  {namespace:8} {state:8} {value:width$}  {place}{other}\n"
        ));
    }
    out
}

/// The cascade as lines of JSON, one for each candidate. What a program is told
/// when it starts is not known here and left out.
pub(super) fn explanation_json(explanation: &Explanation) -> String {
    let winner = explanation
        .candidates
        .iter()
        .position(|candidate| candidate.key.is_some());
    let lines = explanation
        .candidates
        .iter()
        .enumerate()
        .map(|(index, candidate)| {
            let via = match candidate.via {
                Via::Name => "name",
                Via::Override => "override",
                Via::Fallback => "fallback",
            };
            let line = candidate.key.as_ref().map_or(0, |key| key.origin().line);
            Object::new()
                .text("name", candidate.name.as_str())
                .text("via", via)
                .text("namespace", candidate.namespace.as_str())
                .text("state", state(candidate, winner == Some(index)))
                .optional("value", candidate.key.as_ref().map(Key::value))
                .origin(&candidate.source, line)
                .line()
        });
    lines.collect()
}

fn state(candidate: &Candidate, wins: bool) -> &'static str {
    match &candidate.key {
        Some(_) if wins => "wins",
        Some(_) => "loses",
        None if candidate.exists || candidate.namespace == Namespace::Default => "unset",
        None => "no file",
    }
}

fn value(candidate: &Candidate) -> String {
    candidate.key.as_ref().map_or_else(String::new, |key| {
        ini::encode_value(key.value()).into_owned()
    })
}

fn path(source: &SourceOf) -> &str {
    match source {
        SourceOf::File(path) | SourceOf::Specification(path) => path,
        _ => "",
    }
}
