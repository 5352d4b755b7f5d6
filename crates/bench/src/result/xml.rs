//! Results in the paper's XML (Solar, Figure 4), which is the description with
//! more in it.
//!
//! | element | in | attributes | contains |
//! |---|---|---|---|
//! | `result` | `test` | `name` of the metric, `min`, `max`, `mean`, `std-dev` | `var`, `value` |
//! | `var` | `result`, `found` | `name`, `value` | |
//! | `value` | `result` | `app-name`, `error`, `value`, `round` | |
//! | `percentile` | `result` | `percent`, `value` | |
//! | `found` | `test` | `variable`, `value`, `is-bounded`, `is-sure` | `var`, `undecided` |
//! | `run` | `test-group` | `milieu`, `started`, `ended` | `host` |
//! | `host` | `run` | what is known of it | `property`, `count`, `lack`, with `name` and `value` |
//!
//! The paper has `result` with `var` and `value`. A `round` is written where it is
//! not the first one. Percentiles, and `count`, are written of distributions, whose
//! values are no longer there; all other statistics follow from the values and are
//! made again.

use std::collections::BTreeMap;

use milieu_diagnostics::Source;
use roxmltree::{Document, Node};

use super::{Failure, Found, Host, Offset, Point, PointValue, Results, TestResults};
use crate::Value;
use crate::catalogue::Catalogue;
use crate::description::{Language, Xml, parse as describe};
use crate::run::VALUE;
use crate::statistics::Statistics;

/// Writes what came out of a test.
pub(crate) fn test(out: &mut Xml, results: &TestResults) {
    for point in &results.points {
        let mut failures = &point.failures[..];
        for (metric, statistics) in &point.metrics {
            result(out, point, Some((metric, statistics)), failures);
            failures = &[];
        }
        // Where nothing was measured, that is said, too.
        if point.metrics.is_empty() {
            result(out, point, None, failures);
        }
    }
    for found in &results.found {
        let value = found.value.as_ref().map(Value::to_string);
        let [is_bounded, is_sure] = [found.is_bounded, found.is_sure].map(|is| is.to_string());
        let mut attributes = vec![("variable", &*found.variable)];
        if let (Some(text), Some(value)) = (&value, &found.value) {
            attributes.push(("value", text));
            attributes.extend(Xml::kind(value));
        }
        attributes.extend([("is-bounded", &*is_bounded), ("is-sure", &*is_sure)]);
        out.open(2, "found", &attributes);
        variables(out, &found.others);
        for why in &found.undecided {
            out.text(3, "undecided", &[], why);
        }
        out.close(2, "found");
    }
}

fn result(
    out: &mut Xml,
    point: &Point,
    measured: Option<(&String, &Statistics)>,
    failures: &[Failure],
) {
    let number = |number: f64| Value::Number(number).to_string();
    let values: Vec<&PointValue> = match measured {
        Some((metric, _)) => {
            let values = point.values.iter();
            values.filter(|value| value.metric == *metric).collect()
        }
        None => Vec::new(),
    };
    let mut attributes = Vec::new();
    if let Some((metric, statistics)) = measured {
        if metric != VALUE {
            attributes.push(("name", metric.clone()));
        }
        attributes.extend([
            ("min", number(statistics.minimum)),
            ("max", number(statistics.maximum)),
            ("mean", number(statistics.mean)),
            ("std-dev", number(statistics.deviation)),
        ]);
        if values.is_empty() {
            attributes.push(("count", statistics.count.to_string()));
        }
    }
    out.open(2, "result", &Xml::borrowed(&attributes));
    variables(out, &point.variables);
    for value in &values {
        told(
            out,
            &value.application,
            value.round,
            false,
            &number(value.value),
        );
    }
    for failure in failures {
        let (application, round) = (&failure.application, failure.round);
        told(out, application, round, true, &failure.message);
    }
    if let Some((_, statistics)) = measured.filter(|_| values.is_empty()) {
        for (percent, value) in &statistics.percentiles {
            let (percent, value) = (number(*percent), number(*value));
            out.empty(3, "percentile", &[("percent", &percent), ("value", &value)]);
        }
    }
    out.close(2, "result");
}

fn variables(out: &mut Xml, variables: &BTreeMap<String, Value>) {
    for (name, value) in variables {
        let text = value.to_string();
        let attributes = [("name", &**name), ("value", &*text)];
        let attributes = attributes.into_iter().chain(Xml::kind(value));
        out.empty(3, "var", &attributes.collect::<Vec<_>>());
    }
}

/// What an application said.
fn told(out: &mut Xml, application: &str, round: u32, is_error: bool, value: &str) {
    let round = round.to_string();
    let error = if is_error { "true" } else { "false" };
    let mut attributes = vec![
        ("app-name", application),
        ("error", error),
        ("value", value),
    ];
    if round != "0" {
        attributes.push(("round", &*round));
    }
    out.empty(3, "value", &attributes);
}

/// What the clocks of a host show, at the beginning and at the end.
const OFFSETS: [[&str; 3]; 2] = [
    ["monotonic-ns", "real-ns", "error-ns"],
    ["ended-monotonic-ns", "ended-real-ns", "ended-error-ns"],
];
/// What else is known of a host.
const PARTS: [&str; 3] = ["property", "count", "lack"];

/// Writes where and when it was.
pub(crate) fn run(out: &mut Xml, results: &Results) {
    let attributes = [
        ("milieu", &*results.milieu),
        ("started", &*results.started),
        ("ended", &*results.ended),
    ];
    out.open(1, "run", &attributes);
    for (server, host) in &results.hosts {
        let [cores, memory] = [host.cores, host.memory_bytes].map(|number| number.to_string());
        let mut attributes = vec![
            ("server", server.clone()),
            ("name", host.name.clone()),
            ("system", host.system.clone()),
            ("kernel", host.kernel.clone()),
            ("processor", host.processor.clone()),
            ("cores", cores),
            ("memory-bytes", memory),
        ];
        if !host.milieu.is_empty() {
            attributes.push(("milieu", host.milieu.clone()));
        }
        if let Some(governor) = &host.governor {
            attributes.push(("governor", governor.clone()));
        }
        let offsets = [&host.clock_offset, &host.clock_offset_ended];
        for (names, offset) in OFFSETS.iter().zip(offsets) {
            let Some(offset) = offset else { continue };
            let numbers = [offset.monotonic_ns, offset.real_ns, offset.error_ns];
            let numbers = numbers.map(|number| number.to_string());
            attributes.extend(names.iter().copied().zip(numbers));
        }
        let attributes = Xml::borrowed(&attributes);
        let parts = PARTS
            .iter()
            .zip([&host.properties, &host.counts, &host.lacks]);
        let parts = parts.flat_map(|(tag, part)| part.iter().map(move |it| (*tag, it)));
        let parts: Vec<(&str, (&String, &String))> = parts.collect();
        if parts.is_empty() {
            out.empty(2, "host", &attributes);
            continue;
        }
        out.open(2, "host", &attributes);
        for (tag, (name, value)) in parts {
            out.empty(3, tag, &[("name", name), ("value", value)]);
        }
        out.close(2, "host");
    }
    out.close(1, "run");
}

/// Reads results.
pub(super) fn parse(text: &str) -> Result<Results, String> {
    let source = Source::new("results", text);
    let described = describe(Language::Xml, &source, &Catalogue::default());
    let (group, _) = described.map_err(|found| {
        let first = found.first();
        let message = first.map(ToString::to_string).unwrap_or_default();
        let at = first.and_then(|found| found.span());
        let line = at.map(|at| text[..at.start].matches('\n').count() + 1);
        line.map_or(message.clone(), |line| format!("line {line}: {message}"))
    })?;
    let document = Document::parse(text).map_err(|error| error.to_string())?;
    let root = document.root_element();
    let mut tests = Vec::new();
    for (node, test) in elements(root, "test").zip(&group.tests) {
        let mut points: Vec<Point> = Vec::new();
        for node in elements(node, "result") {
            read_result(&mut points, node)?;
        }
        let found = elements(node, "found").map(read_found);
        tests.push(TestResults {
            name: test.name.clone(),
            points,
            found: found.collect::<Result<_, String>>()?,
            ..TestResults::default()
        });
    }
    let mut results = Results {
        tests,
        ..Results::new(group)
    };
    for run in elements(root, "run") {
        let of = |name| run.attribute(name).unwrap_or_default().to_owned();
        results.milieu = of("milieu");
        results.started = of("started");
        results.ended = of("ended");
        for host in elements(run, "host") {
            let server = host.attribute("server").unwrap_or_default();
            results.hosts.insert(server.to_owned(), read_host(host)?);
        }
    }
    Ok(results)
}

fn elements<'a, 'i>(node: Node<'a, 'i>, tag: &str) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(move |child| child.has_tag_name(tag))
}

/// An attribute that is a number, or has another form.
fn parsed<T: std::str::FromStr>(node: Node, name: &str) -> Result<Option<T>, String> {
    let Some(text) = node.attribute(name) else {
        return Ok(None);
    };
    let read = text.parse().map(Some);
    read.map_err(|_| wrong(node, &format!("`{text}` is no `{name}`")))
}

fn finite(node: Node, name: &str) -> Result<Option<f64>, String> {
    match parsed::<f64>(node, name)? {
        Some(number) if !number.is_finite() => {
            Err(wrong(node, &format!("`{number}` is no `{name}`")))
        }
        number => Ok(number),
    }
}

fn wrong(node: Node, message: &str) -> String {
    let at = node.document().text_pos_at(node.range().start);
    format!("line {}: {message}", at.row)
}

fn needed<T>(node: Node, name: &str, value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| {
        wrong(
            node,
            &format!("`{}` lacks its `{name}`", node.tag_name().name()),
        )
    })
}

fn read_variables(node: Node) -> Result<BTreeMap<String, Value>, String> {
    let variables = elements(node, "var").map(|variable| {
        let name = needed(variable, "name", variable.attribute("name"))?;
        let value = needed(variable, "value", variable.attribute("value"))?;
        Ok((
            name.to_owned(),
            Xml::value(value, variable.attribute("type")),
        ))
    });
    variables.collect()
}

/// A `result` has one metric of a point.
fn read_result(points: &mut Vec<Point>, node: Node) -> Result<(), String> {
    let variables = read_variables(node)?;
    let at = match points.iter().position(|point| point.variables == variables) {
        Some(at) => at,
        None => {
            points.push(Point {
                variables,
                ..Point::default()
            });
            points.len() - 1
        }
    };
    let point = &mut points[at];
    let metric = node.attribute("name").unwrap_or(VALUE).to_owned();
    let mut numbers = 0;
    for value in elements(node, "value") {
        let application = value.attribute("app-name").unwrap_or_default().to_owned();
        let round = parsed(value, "round")?;
        if parsed(value, "error")?.unwrap_or(false) {
            point.failures.push(Failure {
                application,
                round: round.unwrap_or(0),
                message: value.attribute("value").unwrap_or_default().to_owned(),
            });
            continue;
        }
        let number = needed(value, "value", finite(value, "value")?)?;
        numbers += 1;
        let is_before = |it: &&PointValue| it.metric == metric && it.application == application;
        let before = point.values.iter().filter(is_before).count();
        point.values.push(PointValue {
            round: round.unwrap_or(u32::try_from(before).unwrap_or(u32::MAX)),
            metric: metric.clone(),
            application,
            value: number,
        });
    }
    if numbers > 0 {
        // What is written beside the values follows from them.
        point.summarize(&metric);
    } else if let Some(count) = parsed(node, "count")? {
        let of = |name| needed(node, name, finite(node, name)?);
        let percentiles = elements(node, "percentile").map(|node| {
            let of = |name| needed(node, name, finite(node, name)?);
            Ok((of("percent")?, of("value")?))
        });
        let statistics = Statistics {
            count,
            minimum: of("min")?,
            maximum: of("max")?,
            mean: of("mean")?,
            deviation: of("std-dev")?,
            percentiles: percentiles.collect::<Result<_, String>>()?,
            confidence: None,
        };
        point.metrics.insert(metric, statistics);
    }
    Ok(())
}

fn read_found(node: Node) -> Result<Found, String> {
    let value = node.attribute("value");
    let undecided = elements(node, "undecided");
    Ok(Found {
        variable: node.attribute("variable").unwrap_or_default().to_owned(),
        others: read_variables(node)?,
        value: value.map(|value| Xml::value(value, node.attribute("type"))),
        is_bounded: parsed(node, "is-bounded")?.unwrap_or(false),
        is_sure: parsed(node, "is-sure")?.unwrap_or(false),
        undecided: undecided
            .map(|why| why.text().unwrap_or_default().to_owned())
            .collect(),
    })
}

fn read_host(node: Node) -> Result<Host, String> {
    let of = |name| node.attribute(name).unwrap_or_default().to_owned();
    let offset = |[monotonic, real, error]: [&str; 3]| {
        let Some(monotonic_ns) = parsed(node, monotonic)? else {
            return Ok(None);
        };
        Ok::<_, String>(Some(Offset {
            monotonic_ns,
            real_ns: parsed(node, real)?.unwrap_or(0),
            error_ns: parsed(node, error)?.unwrap_or(0),
        }))
    };
    let part = |tag| {
        let named = elements(node, tag).map(|part| {
            let name = needed(part, "name", part.attribute("name"))?;
            Ok((
                name.to_owned(),
                part.attribute("value").unwrap_or_default().to_owned(),
            ))
        });
        named.collect::<Result<BTreeMap<String, String>, String>>()
    };
    let [begun, ended] = OFFSETS;
    let [properties, counts, lacks] = PARTS;
    Ok(Host {
        name: of("name"),
        system: of("system"),
        kernel: of("kernel"),
        processor: of("processor"),
        cores: parsed(node, "cores")?.unwrap_or(0),
        memory_bytes: parsed(node, "memory-bytes")?.unwrap_or(0),
        governor: node.attribute("governor").map(str::to_owned),
        milieu: of("milieu"),
        properties: part(properties)?,
        counts: part(counts)?,
        lacks: part(lacks)?,
        clock_offset: offset(begun)?,
        clock_offset_ended: offset(ended)?,
    })
}
