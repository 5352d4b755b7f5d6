//! Descriptions as text; results within them, in XML.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Application, Group, LostHost, Order, Schedule, Server, Test, Values};
use crate::Value;
use crate::result::{Results, TestResults, xml};

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
pub(crate) fn xml(group: &Group, results: Option<&Results>) -> String {
    let mut out = Xml::default();
    out.0
        .push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    out.open(0, "test-group", &[("name", &group.name)]);
    for test in &group.tests {
        let tests = results.iter().flat_map(|results| &results.tests);
        out.test(test, tests.into_iter().find(|it| it.name == test.name));
    }
    out.parameters(1, &group.properties);
    if let Some(results) = results {
        xml::run(&mut out, results);
    }
    out.close(0, "test-group");
    out.0
}

/// XML that is written.
#[derive(Default)]
pub(crate) struct Xml(String);

impl Xml {
    /// What a text in XML is: as it reads, or a text where that is said.
    pub(crate) fn value(text: &str, kind: Option<&str>) -> Value {
        match kind {
            Some("text") => Value::Text(text.to_owned()),
            _ => Value::guess(text),
        }
    }

    /// What has to be said of a value so that it is read as what it is.
    pub(crate) fn kind(value: &Value) -> Option<(&'static str, &'static str)> {
        let text = value.to_string();
        let is_read = Value::guess(&text) == *value && text.trim() == text;
        (!is_read).then_some(("type", "text"))
    }

    fn test(&mut self, test: &Test, results: Option<&TestResults>) {
        let mut attributes = vec![("name", test.name.clone())];
        for (name, value) in schedule(&test.schedule) {
            attributes.push((name, value.to_string()));
        }
        self.open(1, "test", &Xml::borrowed(&attributes));
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
                    self.empty(2, "var", &Xml::borrowed(&attributes));
                }
                Values::Enumeration { values } => {
                    self.open(2, "var", &Xml::borrowed(&attributes));
                    self.values(3, values);
                    self.close(2, "var");
                }
            }
        }
        self.parameters(2, &test.parameters);
        if let Some(results) = results {
            xml::test(self, results);
        }
        self.close(1, "test");
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
        let Application {
            name,
            kind,
            parameters,
        } = application;
        let is_own = matches!(&**kind, "star" | "planet");
        let mut attributes = Vec::new();
        let mut others = BTreeMap::new();
        if !is_own {
            attributes.extend([("name", name.clone()), ("class", kind.clone())]);
        } else if name != kind {
            attributes.push(("name", name.clone()));
        }
        for (name, value) in parameters {
            // As Figure 4 has them.
            let is_attribute = is_own && is_attribute(name) && Xml::kind(value).is_none();
            match is_attribute {
                true => attributes.push((name, value.to_string())),
                false => _ = others.insert(name.clone(), value.clone()),
            }
        }
        let tag = if is_own { kind } else { "app" };
        let attributes = Xml::borrowed(&attributes);
        if others.is_empty() {
            self.empty(3, tag, &attributes);
        } else {
            self.open(3, tag, &attributes);
            self.parameters(4, &others);
            self.close(3, tag);
        }
    }

    fn parameters(&mut self, depth: usize, parameters: &BTreeMap<String, Value>) {
        for (name, value) in parameters {
            if let Value::List(values) = value {
                self.open(depth, "param", &[("name", name)]);
                self.values(depth + 1, values);
                self.close(depth, "param");
                continue;
            }
            let text = value.to_string();
            let attributes = [("name", &**name), ("value", &*text)].into_iter();
            let attributes: Vec<_> = attributes.chain(Xml::kind(value)).collect();
            self.empty(depth, "param", &attributes);
        }
    }

    fn values(&mut self, depth: usize, values: &[Value]) {
        for value in values {
            let kind: Vec<_> = Xml::kind(value).into_iter().collect();
            self.text(depth, "value", &kind, &value.to_string());
        }
    }

    pub(crate) fn open(&mut self, depth: usize, tag: &str, attributes: &[(&str, &str)]) {
        self.tag(depth, tag, attributes, ">\n");
    }

    pub(crate) fn empty(&mut self, depth: usize, tag: &str, attributes: &[(&str, &str)]) {
        self.tag(depth, tag, attributes, "/>\n");
    }

    pub(crate) fn text(
        &mut self,
        depth: usize,
        tag: &str,
        attributes: &[(&str, &str)],
        text: &str,
    ) {
        let rest = format!(">{}</{tag}>\n", escaped(text));
        self.tag(depth, tag, attributes, &rest);
    }

    fn tag(&mut self, depth: usize, tag: &str, attributes: &[(&str, &str)], end: &str) {
        let _ = write!(self.0, "{:1$}<{tag}", "", depth * 2);
        for (name, value) in attributes {
            let _ = write!(self.0, " {name}=\"{}\"", escaped(value));
        }
        self.0.push_str(end);
    }

    pub(crate) fn close(&mut self, depth: usize, tag: &str) {
        let _ = writeln!(self.0, "{:1$}</{tag}>", "", depth * 2);
    }

    pub(crate) fn borrowed<'a>(attributes: &'a [(&'a str, String)]) -> Vec<(&'a str, &'a str)> {
        attributes
            .iter()
            .map(|(name, value)| (*name, &**value))
            .collect()
    }
}

/// Whether an application's parameter can stand as an attribute of its element.
fn is_attribute(name: &str) -> bool {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(is_inside)
        && name != "name"
        && !name.to_ascii_lowercase().starts_with("xml")
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
