//! A description, from the elements of either language, with all that is wrong with it.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use milieu_diagnostics::{Diagnostic, Span};
use milieu_expressions::Expression;
use milieu_keys::rules::nearest;

use super::tree::{Entry, Node};
use super::{
    Application, Group, LostHost, Order, STEPS_MAX, Schedule, Server, Test, Values, Variable,
};
use crate::catalogue::Catalogue;
use crate::{Kind, Value};

/// The group that an element describes. What is wrong is added to `found`.
pub(super) fn group(node: &Node, catalogue: &Catalogue, found: &mut Vec<Diagnostic>) -> Group {
    let mut builder = Builder { catalogue, found };
    let mut attributes = Attributes::of(node);
    let name = attributes.text("name", &mut builder).unwrap_or_default();
    attributes.finish(&mut builder);
    let properties = builder.parameters(&node.parameters);
    let mut names = Names::default();
    let mut tests = Vec::new();
    for node in &node.nodes {
        if builder.is(node, "test", "a group has tests") {
            let test = builder.test(node);
            names.add(&test.name, node.word.span, "test", builder.found);
            tests.push(test);
        }
    }
    if tests.is_empty() {
        let nothing = Diagnostic::error("there is no test").code("description");
        builder
            .found
            .push(nothing.label(node.word.span, "a group has one at least"));
    }
    Group {
        name,
        tests,
        properties,
    }
}

/// The attributes of an element, taken one by one.
struct Attributes<'a> {
    node: &'a Node,
    known: Vec<&'static str>,
}

impl<'a> Attributes<'a> {
    fn of(node: &'a Node) -> Attributes<'a> {
        Attributes {
            node,
            known: Vec::new(),
        }
    }

    fn take(&mut self, name: &'static str) -> Option<&'a Entry> {
        self.known.push(name);
        let mut entries = self.node.attributes.iter();
        entries.find(|entry| entry.name.text == name)
    }

    fn text(&mut self, name: &'static str, builder: &mut Builder) -> Option<String> {
        let entry = self.take(name)?;
        match builder.convert(entry, &Kind::Text)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn integer(&mut self, name: &'static str, least: i64, builder: &mut Builder) -> Option<i64> {
        let entry = self.take(name)?;
        match builder.convert(entry, &Kind::Integer)? {
            Value::Integer(value) if value >= least => Some(value),
            _ => {
                builder.wrong(
                    entry.span,
                    format!("`{name}` is {least} at least"),
                    "this is less",
                );
                None
            }
        }
    }

    /// One of several words.
    fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        choices: &[(&str, T)],
        builder: &mut Builder,
    ) -> Option<T> {
        let entry = self.take(name)?;
        let text = entry.value.to_string();
        let found = choices.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            let help = format!("there are {}", words.join(", "));
            builder.found.push(
                wrong(entry.span, format!("`{text}` is no `{name}`"), "not known").help(help),
            );
        }
        found.map(|(_, value)| *value)
    }

    /// Complains about what nobody took.
    fn finish(self, builder: &mut Builder) {
        let mut seen = BTreeSet::new();
        for entry in &self.node.attributes {
            let name = &entry.name;
            if !seen.insert(&name.text) {
                builder.wrong(
                    name.span,
                    format!("`{}` is given twice", name.text),
                    "again here",
                );
            }
            if self.known.contains(&&*name.text) {
                continue;
            }
            let message = format!("a {} has no `{}`", self.node.word.text, name.text);
            let unknown = wrong(name.span, message, "not known");
            builder
                .found
                .push(match nearest(&name.text, self.known.iter().copied()) {
                    Some(meant) => unknown.help(format!("did you mean `{meant}`?")),
                    None => unknown.help(format!(
                        "there are {}; what applications are told stands in `parameters`",
                        self.known.join(", ")
                    )),
                });
        }
    }
}

fn wrong(at: Span, message: impl Into<String>, label: impl Into<String>) -> Diagnostic {
    Diagnostic::error(message)
        .code("description")
        .label(at, label)
}

/// Names that have to differ.
#[derive(Default)]
struct Names(BTreeMap<String, Span>);

impl Names {
    fn add(&mut self, name: &str, at: Span, what: &str, found: &mut Vec<Diagnostic>) {
        if let Some(before) = self.0.insert(name.to_owned(), at) {
            found.push(
                wrong(
                    at,
                    format!("two of the name `{name}`: {what}"),
                    "the second one",
                )
                .label(before, "the first one")
                .help("give each a `name` of its own"),
            );
        }
    }
}

struct Builder<'c, 'f> {
    catalogue: &'c Catalogue,
    found: &'f mut Vec<Diagnostic>,
}

/// A parameter, where it holds, and whether somebody takes it.
struct Told<'a> {
    entry: &'a Entry,
    is_taken: bool,
}

impl<'c> Builder<'c, '_> {
    fn wrong(&mut self, at: Span, message: impl Into<String>, label: &str) {
        self.found.push(wrong(at, message, label));
    }

    /// Whether an element is one that stands here.
    fn is(&mut self, node: &Node, word: &str, otherwise: &str) -> bool {
        let is = node.word.text == word;
        if !is {
            let message = format!("`{}` has no meaning here", node.word.text);
            self.wrong(node.word.span, message, otherwise);
        }
        is
    }

    fn convert(&mut self, entry: &Entry, kind: &Kind) -> Option<Value> {
        let value = entry.value.convert(kind);
        if value.is_none() {
            let message = format!("`{}` is {kind}", entry.name.text);
            self.wrong(entry.span, message, "this is none");
        }
        value
    }

    fn parameters(&mut self, entries: &[Entry]) -> BTreeMap<String, Value> {
        let mut names = Names::default();
        let mut parameters = BTreeMap::new();
        for entry in entries {
            names.add(&entry.name.text, entry.name.span, "parameter", self.found);
            parameters.insert(entry.name.text.clone(), entry.value.clone());
        }
        parameters
    }

    fn test(&mut self, node: &Node) -> Test {
        let mut attributes = Attributes::of(node);
        let name = attributes
            .text("name", self)
            .unwrap_or_else(|| "test".into());
        let schedule = self.schedule(&mut attributes);
        attributes.finish(self);
        let parameters = self.parameters(&node.parameters);
        let (mut servers, mut variables) = (Vec::new(), Vec::new());
        let mut names = Names::default();
        let mut swept = Names::default();
        for child in &node.nodes {
            match &*child.word.text {
                "server" => servers.push(self.server(child, &mut names)),
                "variable" => {
                    let Some(variable) = self.variable(child) else {
                        continue;
                    };
                    let at = child.word.span;
                    swept.add(&variable.name, at, "variable", self.found);
                    variables.push(variable);
                }
                _ => _ = self.is(child, "server", "a test has servers and variables"),
            }
        }
        if !servers
            .iter()
            .any(|server: &Server| !server.applications.is_empty())
        {
            let message = format!("the test `{name}` runs nothing");
            self.wrong(
                node.word.span,
                message,
                "it needs a server with an application",
            );
        }
        let each = schedule.warm_up.saturating_add(schedule.repetitions.get());
        let counts = variables.iter().map(|variable| variable.values.count());
        let steps = counts.fold(u64::from(each), u64::saturating_mul);
        if steps > STEPS_MAX {
            let message = format!("the test `{name}` has {steps} steps");
            self.wrong(node.word.span, message, "there may be 1000000");
        }
        let mut searched = variables
            .iter()
            .filter(|variable| variable.condition.is_some());
        if let (Some(first), Some(second)) = (searched.next(), searched.next()) {
            let message = format!("`{}` and `{}` are both searched", first.name, second.name);
            self.wrong(node.word.span, message, "a test searches one variable");
        }
        // What is told is known only where all variables are.
        let swept = node
            .nodes
            .iter()
            .filter(|child| child.word.text == "variable");
        if swept.count() == variables.len() {
            self.check(node, &variables);
        }
        Test {
            name,
            servers,
            variables,
            parameters,
            schedule,
        }
    }

    fn schedule(&mut self, attributes: &mut Attributes) -> Schedule {
        let usual = Schedule::default();
        let repetitions = attributes.integer("repetitions", 1, self);
        let repetitions = repetitions.and_then(|count| NonZeroU32::new(u32::try_from(count).ok()?));
        let warm_up = attributes.integer("warm-up", 0, self);
        let warm_up = warm_up.and_then(|count| u32::try_from(count).ok());
        let orders = [
            ("sequential", Order::Sequential),
            ("interleaved", Order::Interleaved),
            ("random", Order::Random),
        ];
        let lost = [
            ("retry", LostHost::Retry),
            ("skip", LostHost::Skip),
            ("fail", LostHost::Fail),
        ];
        let order = attributes.choice("order", &orders, self);
        let seed = attributes.integer("seed", 0, self);
        let timeout = attributes.take("timeout").and_then(|entry| {
            let seconds = self.convert(entry, &Kind::Number)?.number()?;
            let is_fine = seconds > 0.0 && seconds <= 1e9;
            if !is_fine {
                self.wrong(
                    entry.span,
                    "`timeout` is a number of seconds above 0",
                    "this is none",
                );
            }
            is_fine.then_some(seconds)
        });
        Schedule {
            repetitions: repetitions.unwrap_or(usual.repetitions),
            warm_up: warm_up.unwrap_or(usual.warm_up),
            order: order.unwrap_or(usual.order),
            seed: seed.map_or(usual.seed, i64::unsigned_abs),
            timeout_seconds: timeout.unwrap_or(usual.timeout_seconds),
            lost_host: attributes
                .choice("lost-host", &lost, self)
                .unwrap_or(usual.lost_host),
        }
    }

    fn server(&mut self, node: &Node, names: &mut Names) -> Server {
        let mut attributes = Attributes::of(node);
        let host = attributes.text("host", self);
        if let Some(entry) = attributes
            .take("host")
            .filter(|_| host.as_deref() == Some(""))
        {
            self.wrong(
                entry.span,
                "a host has a name",
                "leave it out for this machine",
            );
        }
        let port = attributes.integer("port", 1, self);
        let port = port.and_then(|port| match u16::try_from(port) {
            Ok(port) => Some(port),
            Err(_) => {
                let at = attributes
                    .take("port")
                    .map_or(node.word.span, |entry| entry.span);
                self.wrong(at, "ports end with 65535", "this is none");
                None
            }
        });
        attributes.finish(self);
        let parameters = self.parameters(&node.parameters);
        let mut applications = Vec::new();
        for child in &node.nodes {
            if self.is(child, "application", "a server has applications") {
                let application = self.application(child);
                names.add(
                    &application.name,
                    child.word.span,
                    "application",
                    self.found,
                );
                applications.push(application);
            }
        }
        Server {
            host,
            port,
            applications,
            parameters,
        }
    }

    fn application(&mut self, node: &Node) -> Application {
        let mut attributes = Attributes::of(node);
        let kind = attributes.text("kind", self).unwrap_or_default();
        let name = attributes
            .text("name", self)
            .unwrap_or_else(|| kind.clone());
        attributes.finish(self);
        if kind.is_empty() {
            self.wrong(
                node.word.span,
                "this application has no `kind`",
                "what is to run?",
            );
        }
        let is_plain = |c: char| c.is_alphanumeric() || "._- ()#:/".contains(c);
        if !name.chars().all(is_plain) {
            let message = "names of applications are letters, digits, blanks and ._-()#:/";
            self.wrong(node.word.span, message, "this one has others");
        }
        Application {
            name,
            kind,
            parameters: self.parameters(&node.parameters),
        }
    }

    fn variable(&mut self, node: &Node) -> Option<Variable> {
        let mut attributes = Attributes::of(node);
        let name = attributes.text("name", self);
        let values = attributes.take("values");
        let range = ["start", "end", "step"].map(|name| attributes.take(name));
        let condition = attributes
            .take("while")
            .and_then(|entry| self.condition(entry));
        attributes.finish(self);
        let at = node.word.span;
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            self.wrong(at, "a variable has a name", "the parameter that it sets");
            return None;
        };
        let values = match (values, range) {
            (Some(entry), [None, None, None]) => self.enumeration(entry),
            (None, [Some(start), Some(end), step]) => self.range(at, start, end, step),
            _ => {
                self.found.push(
                    wrong(at, format!("which values does `{name}` take?"), "here")
                        .help("write `values = […]`, or `start`, `end` and `step`"),
                );
                None
            }
        };
        values.map(|values| Variable {
            name,
            values,
            condition,
        })
    }

    /// A condition on what is measured.
    fn condition(&mut self, entry: &Entry) -> Option<String> {
        let text = entry.value.to_string();
        let Err(found) = Expression::parse(&text) else {
            return Some(text);
        };
        let why = found.first().map(ToString::to_string).unwrap_or_default();
        let wrong = wrong(entry.span, "this is no condition", why);
        self.found
            .push(wrong.help("write one like `latency.p99 < 0.01 && failed == 0`"));
        None
    }

    fn enumeration(&mut self, entry: &Entry) -> Option<Values> {
        let values = match &entry.value {
            Value::List(values) => values.clone(),
            Value::Text(text) => {
                let parts = text.split(',').map(str::trim);
                parts.map(Value::guess).collect()
            }
            single => vec![single.clone()],
        };
        if values.is_empty() {
            self.wrong(entry.span, "there is no value", "name one at least");
            return None;
        }
        let twice = values.iter().enumerate();
        let mut twice = twice.filter(|(index, value)| values[..*index].contains(value));
        if let Some((_, value)) = twice.next() {
            let help = "for more measurements of one value there are `repetitions`";
            let message = format!("the value `{value}` is there twice");
            self.found
                .push(wrong(entry.span, message, "each makes a point of its own").help(help));
            return None;
        }
        Some(Values::Enumeration { values })
    }

    fn range(
        &mut self,
        at: Span,
        start: &Entry,
        end: &Entry,
        step: Option<&Entry>,
    ) -> Option<Values> {
        let mut number = |entry: &Entry| {
            let number = self.convert(entry, &Kind::Number);
            number.map(|number| entry.value.convert(&Kind::Integer).unwrap_or(number))
        };
        let (first, last) = (number(start), number(end));
        let each = step.map_or(Some(Value::Integer(1)), number);
        let values = Values::Range {
            start: first?,
            end: last?,
            step: each?,
        };
        if values.count() == 0 {
            let at = step.map_or(at, |step| step.span);
            self.found.push(
                wrong(
                    at,
                    "no step leads from `start` to `end`",
                    "in this direction",
                )
                .help("write a `step` above 0 upwards, and below 0 downwards"),
            );
            return None;
        }
        if values.count() > STEPS_MAX {
            let message = format!("a variable of {} values", values.count());
            self.wrong(at, message, "there may be 1000000");
            return None;
        }
        Some(values)
    }

    /// Checks kinds and parameters against the catalogue.
    fn check(&mut self, node: &Node, variables: &[Variable]) {
        if self.catalogue.is_empty() {
            return;
        }
        let catalogue = self.catalogue;
        let mut is_open = false;
        let mut of_test: Vec<Told> = told(&node.parameters);
        let mut swept = vec![false; variables.len()];
        let mut needed: Vec<Need> = Vec::new();
        for variable in variables {
            if let Some(fixed) = of_test
                .iter()
                .find(|it| it.entry.name.text == variable.name)
            {
                let message = format!("`{}` is a variable and has a value", variable.name);
                let at = fixed.entry.name.span;
                self.found
                    .push(wrong(at, message, "remove this, or the variable"));
            }
        }
        for server in node.nodes.iter().filter(|node| node.word.text == "server") {
            let is_elsewhere = server.attributes.iter().any(|it| it.name.text == "host");
            let mut of_server = told(&server.parameters);
            let mut is_server_open = false;
            let of_others = needed.len();
            for application in &server.nodes {
                let kind = application
                    .attributes
                    .iter()
                    .find(|it| it.name.text == "kind");
                let Some(kind) = kind else { continue };
                let name = kind.value.to_string();
                let Some(entry) = catalogue.get(&name) else {
                    // Another host has a catalogue of its own.
                    is_server_open = true;
                    if !is_elsewhere {
                        self.unknown_kind(&name, kind.span);
                    }
                    continue;
                };
                let Some(declared) = &entry.parameters else {
                    is_server_open = true;
                    continue;
                };
                let mut own = told(&application.parameters);
                let before = needed.len();
                for (name, parameter) in declared {
                    let is_of = |it: &&mut Told| it.entry.name.text == *name;
                    let levels = [&mut own, &mut of_server, &mut of_test];
                    let mut held = None;
                    for level in levels {
                        if let Some(told) = level.iter_mut().find(is_of) {
                            told.is_taken = true;
                            held = held.or(Some(told.entry));
                        }
                    }
                    if let Some(entry) = held {
                        self.convert(entry, &parameter.kind);
                    }
                    let variable = variables.iter().position(|it| it.name == *name);
                    if let Some(index) = variable {
                        swept[index] = true;
                        self.check_variable(node, &variables[index], &parameter.kind);
                    }
                    if held.is_none() && variable.is_none() && parameter.default.is_none() {
                        let message = format!("`{}` needs `{name}`", kind.value);
                        let help =
                            format!("write `parameters.{name}` here, at the server or at the test");
                        let at = application.word.span;
                        needed.push(Need {
                            name,
                            wrong: wrong(at, message, "nobody says it").help(help),
                        });
                    }
                }
                let meant = self.untaken(&own, declared.keys());
                Need::drop(&mut needed, before, &meant);
            }
            let known = || kinds(catalogue, server).flat_map(BTreeMap::keys);
            if !is_server_open {
                let meant = self.untaken(&of_server, known());
                Need::drop(&mut needed, of_others, &meant);
            }
            is_open |= is_server_open;
        }
        if !is_open {
            let meant = self.check_test(node, variables, &of_test, &swept);
            Need::drop(&mut needed, 0, &meant);
        }
        self.found.extend(needed.into_iter().map(|need| need.wrong));
    }

    /// Checks that somebody takes what is told to the whole test. Returns what was
    /// meant.
    fn check_test(
        &mut self,
        node: &Node,
        variables: &[Variable],
        of_test: &[Told],
        swept: &[bool],
    ) -> Vec<&'c str> {
        let catalogue = self.catalogue;
        let servers = node.nodes.iter();
        let known = servers.flat_map(|server| kinds(catalogue, server));
        let known: BTreeSet<&String> = known.flat_map(BTreeMap::keys).collect();
        let mut meant = self.untaken(of_test, known.iter().copied());
        let nodes = node
            .nodes
            .iter()
            .filter(|node| node.word.text == "variable");
        for (variable, (is_taken, node)) in variables.iter().zip(swept.iter().zip(nodes)) {
            if !is_taken {
                let at = node.attributes.iter().find(|it| it.name.text == "name");
                let at = at.map_or(node.word.span, |entry| entry.span);
                meant.extend(self.untaken_name(&variable.name, at, known.iter().copied()));
            }
        }
        meant
    }

    fn check_variable(&mut self, node: &Node, variable: &Variable, kind: &Kind) {
        let is_wrong = |value: &Value| value.convert(kind).is_none();
        let mut values = (0..variable.values.count()).map(|index| variable.values.at(index));
        let Some(value) = values.find(is_wrong) else {
            return;
        };
        let mut nodes = node
            .nodes
            .iter()
            .filter(|node| node.word.text == "variable");
        let is_it = |node: &&Node| {
            let mut attributes = node.attributes.iter();
            attributes.any(|it| it.name.text == "name" && it.value.to_string() == variable.name)
        };
        let at = nodes
            .find(is_it)
            .map_or(node.word.span, |node| node.word.span);
        let message = format!("`{}` is {kind}", variable.name);
        self.found
            .push(wrong(at, message, format!("one of its values is {value}")));
    }

    fn unknown_kind(&mut self, name: &str, at: Span) {
        let unknown = wrong(at, format!("nothing is known of `{name}`"), "here");
        self.found
            .push(match nearest(name, self.catalogue.kinds()) {
                Some(meant) => unknown.help(format!("did you mean `{meant}`?")),
                None => {
                    let kinds: Vec<&str> = self.catalogue.kinds().collect();
                    unknown.help(format!("the catalogue has {}", kinds.join(", ")))
                }
            });
    }

    /// Says what nobody takes. Returns what was meant.
    fn untaken<'k>(
        &mut self,
        told: &[Told],
        known: impl Iterator<Item = &'k String> + Clone,
    ) -> Vec<&'k str> {
        let untaken = told.iter().filter(|it| !it.is_taken);
        untaken
            .filter_map(|it| {
                let name = &it.entry.name;
                self.untaken_name(&name.text, name.span, known.clone())
            })
            .collect()
    }

    fn untaken_name<'k>(
        &mut self,
        name: &str,
        at: Span,
        known: impl Iterator<Item = &'k String>,
    ) -> Option<&'k str> {
        let unknown = wrong(
            at,
            format!("no application here takes `{name}`"),
            "not known",
        );
        let known: Vec<&str> = known.map(String::as_str).collect();
        let meant = nearest(name, known.iter().copied());
        self.found.push(match meant {
            Some(meant) => unknown.help(format!("did you mean `{meant}`?")),
            None if known.is_empty() => unknown.help("remove it; they take no parameters"),
            None => unknown.help(format!("they take {}", known.join(", "))),
        });
        meant
    }
}

/// A parameter that nobody says.
struct Need<'k> {
    name: &'k str,
    wrong: Diagnostic,
}

impl Need<'_> {
    /// Drops what is said, from a place on, under a name that was mistyped: it is one
    /// mistake.
    fn drop(needed: &mut Vec<Need>, from: usize, meant: &[&str]) {
        let mut index = 0;
        needed.retain(|need| {
            index += 1;
            index <= from || !meant.contains(&need.name)
        });
    }
}

fn told(entries: &[Entry]) -> Vec<Told<'_>> {
    let told = |entry| Told {
        entry,
        is_taken: false,
    };
    entries.iter().map(told).collect()
}

/// What the kinds of a server take.
fn kinds<'c>(
    catalogue: &'c Catalogue,
    server: &Node,
) -> impl Iterator<Item = &'c BTreeMap<String, crate::catalogue::Parameter>> + Clone {
    let kinds = server.nodes.iter().filter_map(move |application| {
        let kind = application
            .attributes
            .iter()
            .find(|it| it.name.text == "kind")?;
        catalogue.get(&kind.value.to_string())?.parameters.as_ref()
    });
    kinds.collect::<Vec<_>>().into_iter()
}
