//! Tables: comma-separated values, and Markdown.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::scale::short;
use super::series::{metrics, tests};
use super::{Column, Options, Report};
use crate::result::{Offset, Point, Results};
use crate::statistics::Statistics;

/// Comma-separated values: a row for each point and metric.
pub(super) struct Csv;
/// Markdown, for a text beside it.
pub(super) struct Markdown;

/// A table of texts.
pub(super) struct Table {
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

const STATISTICS: [&str; 7] = ["count", "mean", "low", "high", "std-dev", "min", "max"];

/// All points; `show` writes a number.
pub(super) fn table(
    results: &Results,
    options: &Options,
    show: impl Fn(f64) -> String,
) -> Result<Table, String> {
    let tests = tests(results, options)?;
    let metrics = metrics(&tests, options, &[])?;
    let mut variables: Vec<&String> = Vec::new();
    for name in tests
        .iter()
        .flat_map(|it| &it.points)
        .flat_map(|it| it.variables.keys())
    {
        if !variables.contains(&name) {
            variables.push(name);
        }
    }
    let mut head = vec!["test".to_owned()];
    head.extend(variables.iter().map(|name| (*name).clone()));
    head.push("metric".into());
    head.extend(STATISTICS.map(str::to_owned));
    head.extend(crate::statistics::PERCENTILES.map(|percent| format!("p{percent}")));
    head.extend(options.columns.iter().map(|column| column.name.clone()));
    head.push("failed".into());
    let mut rows = Vec::new();
    let mut computed = Computed::default();
    for test in tests {
        for point in &test.points {
            let before = |metric: &str| {
                let mut row = vec![test.name.clone()];
                row.extend(variables.iter().map(|name| {
                    let value = point.variables.get(*name);
                    value.map(ToString::to_string).unwrap_or_default()
                }));
                row.push(metric.to_owned());
                row
            };
            for metric in &metrics {
                let Some(statistics) = point.metrics.get(*metric) else {
                    continue;
                };
                let mut row = before(metric);
                row.extend(numbers(statistics, &show));
                for column in &options.columns {
                    let number = computed.of(point, column);
                    row.push(number.map(&show).unwrap_or_default());
                }
                row.push(failed(point));
                rows.push(row);
            }
            // Work that failed is in the table, too.
            if point.metrics.is_empty() {
                let mut row = before("");
                row.resize(head.len() - 1, String::new());
                row.push(failed(point));
                rows.push(row);
            }
        }
    }
    match computed.nowhere(options) {
        Some(why) => Err(why),
        None => Ok(Table { head, rows }),
    }
}

/// Which columns could be computed somewhere, and why others could not.
#[derive(Default)]
struct Computed<'o> {
    fine: BTreeSet<&'o str>,
    faults: BTreeMap<&'o str, String>,
}

impl<'o> Computed<'o> {
    /// The number of a column; where something else is missing, it is, too.
    fn of(&mut self, point: &Point, column: &'o Column) -> Option<f64> {
        match point.compute(&column.expression) {
            Ok(number) => {
                self.fine.insert(&column.name);
                Some(number)
            }
            Err(fault) => {
                self.faults.insert(&column.name, fault.to_string());
                None
            }
        }
    }

    /// A column that is empty is a mistake.
    fn nowhere(&self, options: &Options) -> Option<String> {
        let names = options.columns.iter().map(|column| &*column.name);
        let mut empty = names.filter(|name| !self.fine.contains(name));
        let why = empty.find_map(|name| Some((name, self.faults.get(name)?)));
        why.map(|(name, fault)| format!("the column `{name}` cannot be computed: {fault}"))
    }
}

fn failed(point: &Point) -> String {
    point.failures.len().to_string()
}

fn numbers<'a>(
    statistics: &'a Statistics,
    show: &'a impl Fn(f64) -> String,
) -> impl Iterator<Item = String> + 'a {
    let (low, high) = match statistics.confidence {
        Some((low, high)) => (show(low), show(high)),
        None => (String::new(), String::new()),
    };
    let first = [
        statistics.count.to_string(),
        show(statistics.mean),
        low,
        high,
    ];
    let more = [statistics.deviation, statistics.minimum, statistics.maximum].map(show);
    // Whoever wrote the result may have had others.
    let percentiles = crate::statistics::PERCENTILES.iter().map(|percent| {
        let mut known = statistics.percentiles.iter();
        let Some((_, value)) = known.find(|(it, _)| it.to_bits() == percent.to_bits()) else {
            return String::new();
        };
        // Of ten values none is the largest of a hundred.
        #[expect(clippy::cast_precision_loss, reason = "nobody measures 2^53 times")]
        let is_known = statistics.count as f64 * (100.0 - percent) >= 100.0 - 1e-6;
        if is_known {
            show(*value)
        } else {
            String::new()
        }
    });
    first.into_iter().chain(more).chain(percentiles)
}

impl Report for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn summary(&self) -> &'static str {
        "comma-separated values: a row for each point and metric"
    }

    fn write(&self, results: &Results, options: &Options) -> Result<Vec<u8>, String> {
        let table = table(results, options, |number| number.to_string())?;
        let mut out = String::new();
        for row in std::iter::once(&table.head).chain(&table.rows) {
            let cells: Vec<String> = row.iter().map(|cell| quoted(cell)).collect();
            let _ = writeln!(out, "{}", cells.join(","));
        }
        Ok(out.into_bytes())
    }
}

/// A cell as RFC 4180 has it; one that a spreadsheet would take for a formula
/// stays a text.
fn quoted(cell: &str) -> String {
    let is_number = cell.parse::<f64>().is_ok_and(f64::is_finite);
    let is_formula = !is_number && cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let cell = match is_formula {
        true => format!("'{cell}"),
        false => cell.to_owned(),
    };
    match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    }
}

impl Report for Markdown {
    fn name(&self) -> &'static str {
        "markdown"
    }

    fn summary(&self) -> &'static str {
        "a table in Markdown, with hosts and what failed"
    }

    fn write(&self, results: &Results, options: &Options) -> Result<Vec<u8>, String> {
        let table = table(results, options, short)?;
        // Columns without content are left out of a page.
        let is_shown = |column: usize| table.rows.iter().any(|row| !row[column].is_empty());
        let shown: Vec<usize> = (0..table.head.len())
            .filter(|column| is_shown(*column))
            .collect();
        let line = |row: &[String]| {
            let cells: Vec<String> = shown.iter().map(|column| cell(&row[*column])).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let mut out = format!("# {}\n\n", cell(&results.group.name));
        if table.rows.is_empty() {
            out.push_str("Nothing was measured.\n");
        } else {
            out.push_str(&line(&table.head));
            let _ = writeln!(out, "|{}", "---|".repeat(shown.len()));
        }
        table.rows.iter().for_each(|row| out.push_str(&line(row)));
        searched(results, &mut out);
        warm_up(results, &mut out);
        failures(results, &mut out);
        hosts(results, &mut out);
        Ok(out.into_bytes())
    }
}

/// What searches have found.
fn searched(results: &Results, out: &mut String) {
    let found = results.tests.iter().flat_map(|test| &test.found);
    let lines: Vec<String> = found.map(|found| cell(&found.to_string())).collect();
    if !lines.is_empty() {
        let _ = writeln!(out, "\nFound:\n\n- {}", lines.join("\n- "));
    }
}

/// Whether the first round that counts is like those after it.
fn warm_up(results: &Results, out: &mut String) {
    let mut lines = String::new();
    for test in &results.tests {
        for metric in test.metrics() {
            let Some(ratio) = test.first_round(metric) else {
                continue;
            };
            let (low, high) = ratio.confidence.unwrap_or((ratio.ratio, ratio.ratio));
            let verdict = match ratio.differs() {
                true => "more warm-up is needed",
                false => "the warm-up suffices",
            };
            let _ = writeln!(
                lines,
                "- {}, {}: {} times ({} to {}): {verdict}",
                cell(&test.name),
                cell(metric),
                short(ratio.ratio),
                short(low),
                short(high)
            );
        }
    }
    if !lines.is_empty() {
        let _ = write!(out, "\nThe first round beside those after it:\n\n{lines}");
    }
}

/// What failed, and why, each reason once.
fn failures(results: &Results, out: &mut String) {
    let mut reasons: Vec<(String, usize)> = Vec::new();
    let points = results.tests.iter().flat_map(|test| &test.points);
    for failure in points.flat_map(|point| &point.failures) {
        let reason = match &*failure.application {
            "" => failure.message.clone(),
            application => format!("{application}: {}", failure.message),
        };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => reasons.push((reason, 1)),
        }
    }
    if !reasons.is_empty() {
        out.push_str("\nFailed:\n\n");
    }
    for (reason, count) in reasons {
        let _ = writeln!(out, "- {} ({count} times)", cell(&reason));
    }
}

fn hosts(results: &Results, out: &mut String) {
    if results.hosts.is_empty() {
        return;
    }
    let (milieu, started) = (cell(&results.milieu), cell(&results.started));
    let _ = writeln!(out, "\nMeasured {started} by milieu {milieu} on:\n");
    for (name, host) in &results.hosts {
        #[expect(clippy::cast_precision_loss, reason = "one digit is shown")]
        let memory = host.memory_bytes as f64 / f64::from(1 << 30);
        let _ = writeln!(
            out,
            "- {}: {}, {} cores, {memory:.1} GiB, {}, Linux {}{}{}",
            cell(name),
            cell(&host.processor),
            host.cores,
            cell(&host.system),
            cell(&host.kernel),
            cell(&host.more()),
            host.clock_offset.as_ref().map(clocks).unwrap_or_default()
        );
    }
}

/// How far the clocks of a host are ahead.
fn clocks(offset: &Offset) -> String {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds are shown")]
    let [monotonic, real, error] =
        [offset.monotonic_ns, offset.real_ns, offset.error_ns].map(|it| it as f64 / 1e6);
    format!(
        "; clocks ahead by {monotonic:.3} ms (monotonic) and {real:.3} ms (time of day), \
         to ± {error:.3} ms"
    )
}

/// A text that stays within its cell and is no markup.
pub(super) fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' => {
                out.push('\\');
                out.push(c);
            }
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
