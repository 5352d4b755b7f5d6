//! Ratios: how many times larger everything is than with one value of a variable.
//!
//! Values of the same round were measured next to each other, so what drifts
//! cancels out ([`Ratio`]).

use std::collections::BTreeSet;
use std::fmt::Write;

use super::scale::short;
use super::series::{metrics, tests};
use super::table::cell;
use super::{Options, Report, unknown};
use crate::result::{Point, Results};
use crate::statistics::Ratio;

/// A table of ratios in Markdown.
pub(super) struct Ratios;

impl Report for Ratios {
    fn name(&self) -> &'static str {
        "ratios"
    }

    fn summary(&self) -> &'static str {
        "a table in Markdown: how many times the value of --baseline"
    }

    fn write(&self, results: &Results, options: &Options) -> Result<Vec<u8>, String> {
        let (name, value) = options
            .baseline
            .as_ref()
            .ok_or("ratios need --baseline VARIABLE=VALUE: to what?")?;
        let tests = tests(results, options)?;
        let metrics = metrics(&tests, options, &[])?;
        let points = tests.iter().flat_map(|test| &test.points);
        let variables = points.flat_map(|point| point.variables.keys());
        let variables: BTreeSet<&str> = variables.map(String::as_str).collect();
        if !variables.contains(&**name) {
            return Err(unknown("variable", name, variables.into_iter()));
        }
        let mut rows = String::new();
        for test in &tests {
            for ours in &test.points {
                let is_baseline = |point: &&Point| {
                    let others = |point: &Point| {
                        let mut variables = point.variables.clone();
                        variables
                            .remove(name)
                            .map(|value| (variables, value.to_string()))
                    };
                    match (others(ours), others(point)) {
                        (Some((ours, _)), Some((theirs, told))) => ours == theirs && told == *value,
                        _ => false,
                    }
                };
                let Some(theirs) = test.points.iter().find(is_baseline) else {
                    continue;
                };
                if std::ptr::eq(ours, theirs) {
                    continue;
                }
                for metric in &metrics {
                    let Some(ratio) = test.ratio(metric, ours, theirs) else {
                        continue;
                    };
                    let variables = ours.variables.iter();
                    let variables: Vec<String> = variables
                        .map(|(name, value)| format!("{name} = {value}"))
                        .collect();
                    let _ = writeln!(
                        rows,
                        "| {} | {} | {} | {} |",
                        cell(&test.name),
                        cell(&variables.join(", ")),
                        cell(metric),
                        numbers(&ratio)
                    );
                }
            }
        }
        if rows.is_empty() {
            return Err(format!(
                "no point has a pair with {name} = {value}, both above 0; is it one of its values?"
            ));
        }
        let mut out = format!("# {}\n\n", cell(&results.group.name));
        let _ = writeln!(
            out,
            "Compared to {} = {}, round by round.\n\n\
             | test | variables | metric | ratio | low | high | rounds |\n\
             |---|---|---|---|---|---|---|",
            cell(name),
            cell(value)
        );
        out.push_str(&rows);
        Ok(out.into_bytes())
    }
}

fn numbers(ratio: &Ratio) -> String {
    let (low, high) = match ratio.confidence {
        Some((low, high)) => (short(low), short(high)),
        None => (String::new(), String::new()),
    };
    format!("{} | {low} | {high} | {}", short(ratio.ratio), ratio.pairs)
}
