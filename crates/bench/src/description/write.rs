//! Descriptions as text; results within them, in XML.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Application, Group, LostHost, Order, Schedule, Server, Test, Values};
use crate::Value;
use crate::result::{Results, TestResults};

/// The group in TOML.
pub(super) fn toml(group: &Group) -> String {
    let mut out = String::new();
    line(&mut out, "name", &quoted(&group.name));
    toml_table(&mut out, "properties", &group.properties);
    for test in &group.tests {
        out.push_str("\n[[test]]\n");
        line(&mut out, "name", &quoted(&test.name));
        for (name, value) in schedule(&test.schedule) {
            line(&mut out, name, &toml_value(&value));
        }
        toml_table(&mut out, "test.parameters", &test.parameters);
        for variable in &test.variables {
            out.push_str("\n[[test.variable]]\n");
            line(&mut out, "name", &quoted(&variable.name));
            match &variable.values {
                Values::Enumeration { values } => {
                    line(
                        &mut out,
                        "values",
                        &toml_value(&Value::List(values.clone())),
                    );
                }
                Values::Range { start, end, step } => {
                    for (name, value) in [("start", start), ("end", end), ("step", step)] {
                        line(&mut out, name, &toml_value(value));
                    }
                }
            }
            if let Some(condition) = &variable.condition {
                line(&mut out, "while", &quoted(condition));
            }
        }
        for server in &test.servers {
            out.push_str("\n[[test.server]]\n");
            if let Some(host) = &server.host {
                line(&mut out, "host", &quoted(host));
            }
            if let Some(port) = server.port {
                line(&mut out, "port", &port.to_string());
            }
            toml_table(&mut out, "test.server.parameters", &server.parameters);
            for application in &server.applications {
                out.push_str("\n[[test.server.application]]\n");
                line(&mut out, "name", &quoted(&application.name));
                line(&mut out, "kind", &quoted(&application.kind));
                toml_table(
                    &mut out,
                    "test.server.application.parameters",
                    &application.parameters,
                );
            }
        }
    }
    out
}

fn line(out: &mut String, name: &str, value: &str) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "{name} = {value}");
}

fn toml_table(out: &mut String, name: &str, values: &BTreeMap<String, Value>) {
    if values.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n[{name}]");
    for (name, value) in values {
        line(out, &quoted(name), &toml_value(value));
    }
}

fn toml_value(value: &Value) -> String {
    match value {
        Value::Text(text) => quoted(text),
        Value::List(values) => {
            let values: Vec<String> = values.iter().map(toml_value).collect();
            format!("[{}]", values.join(", "))
        }
        plain => plain.to_string(),
    }
}

/// A text as TOML has it between quotes.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => _ = write!(out, "\\u{:04X}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// What differs from the usual schedule.
fn schedule(schedule: &Schedule) -> Vec<(&'static str, Value)> {
    let usual = Schedule::default();
    let mut told = Vec::new();
    if schedule.repetitions != usual.repetitions {
        told.push((
            "repetitions",
            Value::Integer(schedule.repetitions.get().into()),
        ));
    }
    if schedule.warm_up != usual.warm_up {
        told.push(("warm-up", Value::Integer(schedule.warm_up.into())));
    }
    if schedule.order != usual.order {
        let order = match schedule.order {
            Order::Sequential => "sequential",
            Order::Interleaved => "interleaved",
            Order::Random => "random",
        };
        told.push(("order", Value::Text(order.into())));
    }
    if schedule.seed != usual.seed {
        let seed = i64::try_from(schedule.seed).unwrap_or(i64::MAX);
        told.push(("seed", Value::Integer(seed)));
    }
    if schedule.timeout_seconds.to_bits() != usual.timeout_seconds.to_bits() {
        told.push(("timeout", Value::Number(schedule.timeout_seconds)));
    }
    if schedule.lost_host != usual.lost_host {
        let lost = match schedule.lost_host {
            LostHost::Retry => "retry",
            LostHost::Skip => "skip",
            LostHost::Fail => "fail",
        };
        told.push(("lost-host", Value::Text(lost.into())));
    }
    told
}

/// The group as the paper's XML, with the results that there are (Figure 4).
pub(crate) fn xml(group: &Group, results: &Results) -> String {
    let mut out = Xml::default();
    out.0
        .push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    out.open(0, "test-group", &[("name", &group.name)]);
    for test in &group.tests {
        let of_test = results.tests.iter().find(|it| it.name == test.name);
        out.test(test, of_test);
    }
    out.parameters(1, &group.properties);
    out.close(0, "test-group");
    out.0
}

#[derive(Default)]
struct Xml(String);

impl Xml {
    fn test(&mut self, test: &Test, results: Option<&TestResults>) {
        let mut attributes = vec![("name", test.name.clone())];
        for (name, value) in schedule(&test.schedule) {
            attributes.push((name, value.to_string()));
        }
        self.open(1, "test", &borrowed(&attributes));
        for server in &test.servers {
            self.server(server);
        }
        for variable in &test.variables {
            let mut attributes = vec![("name", variable.name.clone())];
            if let Some(condition) = &variable.condition {
                attributes.push(("while", condition.clone()));
            }
            match &variable.values {
                Values::Range { start, end, step } => {
                    attributes.push(("start", start.to_string()));
                    attributes.push(("end", end.to_string()));
                    attributes.push(("step", step.to_string()));
                    self.empty(2, "var", &borrowed(&attributes));
                }
                Values::Enumeration { values } => {
                    self.open(2, "var", &borrowed(&attributes));
                    for value in values {
                        let text = escaped(&value.to_string());
                        let _ = writeln!(self.0, "      <value>{text}</value>");
                    }
                    self.close(2, "var");
                }
            }
        }
        self.parameters(2, &test.parameters);
        for point in results.iter().flat_map(|results| &results.points) {
            self.point(point);
        }
        self.close(1, "test");
    }

    fn point(&mut self, point: &crate::result::Point) {
        for (metric, statistics) in &point.metrics {
            let [min, max, mean, deviation] = [
                statistics.minimum,
                statistics.maximum,
                statistics.mean,
                statistics.deviation,
            ]
            .map(|number| Value::Number(number).to_string());
            let mut attributes = vec![
                ("min", &*min),
                ("max", &*max),
                ("mean", &*mean),
                ("std-dev", &*deviation),
            ];
            if metric != crate::run::VALUE {
                attributes.insert(0, ("name", metric));
            }
            self.open(2, "result", &attributes);
            for (name, value) in &point.variables {
                self.empty(3, "var", &[("name", name), ("value", &value.to_string())]);
            }
            let values = point.values.iter().filter(|value| value.metric == *metric);
            for value in values {
                let number = Value::Number(value.value).to_string();
                self.empty(
                    3,
                    "value",
                    &[
                        ("app-name", &value.application),
                        ("error", "false"),
                        ("value", &number),
                    ],
                );
            }
            for failure in &point.failures {
                self.empty(
                    3,
                    "value",
                    &[
                        ("app-name", &failure.application),
                        ("error", "true"),
                        ("value", &failure.message),
                    ],
                );
            }
            self.close(2, "result");
        }
    }

    fn server(&mut self, server: &Server) {
        let port = server.port.map(|port| port.to_string());
        let mut attributes = Vec::new();
        if let Some(host) = &server.host {
            attributes.push(("host", &**host));
        }
        if let Some(port) = &port {
            attributes.push(("port", port));
        }
        self.open(2, "server", &attributes);
        for application in &server.applications {
            self.application(application);
        }
        self.parameters(3, &server.parameters);
        self.close(2, "server");
    }

    fn application(&mut self, application: &Application) {
        let own = matches!(&*application.kind, "star" | "planet");
        let (tag, mut attributes) = match own {
            true => (&*application.kind, Vec::new()),
            false => (
                "app",
                vec![("name", &*application.name), ("class", &*application.kind)],
            ),
        };
        if own && application.name != application.kind {
            attributes.push(("name", &application.name));
        }
        if application.parameters.is_empty() {
            self.empty(3, tag, &attributes);
        } else {
            self.open(3, tag, &attributes);
            self.parameters(4, &application.parameters);
            self.close(3, tag);
        }
    }

    fn parameters(&mut self, depth: usize, parameters: &BTreeMap<String, Value>) {
        for (name, value) in parameters {
            self.empty(
                depth,
                "param",
                &[("name", name), ("value", &value.to_string())],
            );
        }
    }

    fn open(&mut self, depth: usize, tag: &str, attributes: &[(&str, &str)]) {
        self.tag(depth, tag, attributes, ">\n");
    }

    fn empty(&mut self, depth: usize, tag: &str, attributes: &[(&str, &str)]) {
        self.tag(depth, tag, attributes, "/>\n");
    }

    fn tag(&mut self, depth: usize, tag: &str, attributes: &[(&str, &str)], end: &str) {
        let _ = write!(self.0, "{:1$}<{tag}", "", depth * 2);
        for (name, value) in attributes {
            let _ = write!(self.0, " {name}=\"{}\"", escaped(value));
        }
        self.0.push_str(end);
    }

    fn close(&mut self, depth: usize, tag: &str) {
        let _ = writeln!(self.0, "{:1$}</{tag}>", "", depth * 2);
    }
}

fn borrowed<'a>(attributes: &'a [(&'a str, String)]) -> Vec<(&'a str, &'a str)> {
    attributes
        .iter()
        .map(|(name, value)| (*name, &**value))
        .collect()
}

/// A text as XML has it, in attributes too. Characters that XML does not have
/// are replaced.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\t' | '\n' | '\r' => _ = write!(out, "&#{};", u32::from(c)),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
