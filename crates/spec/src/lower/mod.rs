//! Lowering: from a checked specification to the environment of one target.
//!
//! Placeholders vanish from identifiers (`/sw/pi/%session%/language` becomes
//! `sw.pi.language`), names become a tree of branches, and what the target
//! cannot express is reported where the specification says it.

mod layers;
mod report;

use std::collections::{HashMap, HashSet};

use milieu_diagnostics::{Diagnostic, Source, Span};
use milieu_keys::{
    KeySpec, Options, Pattern, Rules, Scalar, Specification,
    options::{Entry, Program},
};

use crate::{
    backend::{Capabilities, Settings},
    identifiers::snake_case,
    ir::{Branch, Environment, Literal, Member, Value},
};

/// Lowers the branch that the settings ask for, or everything.
pub(crate) fn lower(
    source: &Source,
    mut specification: Specification,
    capabilities: Capabilities,
    settings: &Settings,
) -> (Environment, Vec<Diagnostic>) {
    let mut lowering = Lowering {
        capabilities,
        diagnostics: Vec::new(),
        branches: HashSet::new(),
        arrays: HashSet::new(),
        entries: Vec::new(),
        values: Vec::new(),
        root: branch(String::from("/"), String::new()),
    };
    let root = lowering.root_levels(settings.root.as_deref());
    let keys = lowering.keys_below(&specification, &root);
    let options = lowering.options(&settings.program, &keys);
    lowering.entries = options.entries().to_vec();
    for (key, levels) in &keys {
        lowering.key(key, levels);
    }
    if capabilities.identifiers {
        lowering.report_collisions();
    }
    let layers = lowering.layers(&specification);
    specification
        .keys
        .retain(|key| key.pattern.identifiers().starts_with(&root));
    let environment = Environment {
        title: title(&source.name),
        text: source.text.clone(),
        root: lowering.root,
        values: lowering.values,
        layers,
        options,
        specification,
    };
    (environment, lowering.diagnostics)
}

struct Lowering {
    capabilities: Capabilities,
    diagnostics: Vec<Diagnostic>,
    /// Levels that other keys stand below.
    branches: HashSet<Vec<String>>,
    /// What arrays stand at, where the target has a field for them.
    arrays: HashSet<Vec<String>>,
    /// What the command line and variables set.
    entries: Vec<Entry>,
    values: Vec<Value>,
    root: Branch,
}

impl Lowering {
    fn root_levels(&mut self, root: Option<&str>) -> Vec<String> {
        match root.map(Pattern::parse) {
            None => Vec::new(),
            Some(Ok(pattern)) => pattern.identifiers(),
            Some(Err(error)) => {
                let message = format!("the root `{}` is no name: {error}", root.unwrap_or("/"));
                self.diagnostics
                    .push(Diagnostic::error(message).code("root"));
                Vec::new()
            }
        }
    }

    /// The keys below `root` with their levels from there on.
    fn keys_below<'s>(
        &mut self,
        specification: &'s Specification,
        root: &[String],
    ) -> Vec<(&'s KeySpec, Vec<String>)> {
        let every: Vec<_> = specification
            .keys
            .iter()
            .filter(|key| !key.is_removed())
            .map(|key| (key, self.levels_of(key)))
            .collect();
        let keys: Vec<_> = every
            .iter()
            .filter_map(|(key, levels)| Some((*key, levels.strip_prefix(root)?.to_vec())))
            .collect();
        for (key, levels) in &keys {
            let above = (0..levels.len()).map(|length| levels[..length].to_vec());
            self.branches.extend(above);
            if self.capabilities.identifiers && key.is_array() {
                self.arrays.insert(levels.clone());
            }
        }
        if !root.is_empty() && !keys.iter().any(|(_, levels)| !levels.is_empty()) {
            let tops: Vec<_> = unique(every.iter().filter_map(|(_, levels)| levels.first()))
                .map(|level| format!("`/{level}`"))
                .collect();
            self.diagnostics.push(
                Diagnostic::error(format!("there is nothing below `/{}`", root.join("/")))
                    .code("root")
                    .help(format!("the specification has {}", tops.join(", "))),
            );
        }
        keys
    }

    /// The levels that lead to a value. That of an array's number is one of them
    /// where the target shows names, and none where it has a field.
    fn levels_of(&self, key: &KeySpec) -> Vec<String> {
        match self.capabilities.identifiers {
            true => key.levels(),
            false => key.pattern.identifiers(),
        }
    }

    fn options(&mut self, program: &str, keys: &[(&KeySpec, Vec<String>)]) -> Options {
        let metadata: Vec<_> = keys.iter().map(|(key, _)| key.borrowed()).collect();
        let declared = keys
            .iter()
            .zip(&metadata)
            .map(|((key, _), metadata)| (key.pattern.as_str(), metadata.as_slice()));
        match Options::new(program, declared) {
            Ok(options) => options,
            Err(declaration) => {
                let key = keys
                    .iter()
                    .find(|(key, _)| key.pattern.as_str() == declaration.pattern)
                    .map(|(key, _)| *key);
                self.diagnostics
                    .push(report::options_contradict(key, &declaration.error));
                nothing_to_set(program)
            }
        }
    }

    fn key(&mut self, key: &KeySpec, levels: &[String]) {
        let is_branch = self.branches.contains(levels);
        if key.only_describes() {
            if is_branch {
                self.describe(key, levels);
            }
            if is_branch || (self.arrays.contains(levels) && !key.is_array()) {
                return;
            }
        }
        let Some(mut value) = self.value(key) else {
            return;
        };
        if self.capabilities.identifiers && key.is_inside_array() {
            if !self.capabilities.inside_arrays {
                self.diagnostics.push(report::inside_array(key));
            }
            return;
        }
        let has_command = value.metadata("command").is_some();
        let inside = is_branch && has_command && value.metadata("identifier").is_none();
        let own = match (inside, levels.split_last()) {
            (true, _) => levels,
            (false, Some((_, parents))) => parents,
            (false, None) => &[],
        };
        let identifier = self.identifier_of(&value, levels, is_branch);
        let names: Option<Vec<String>> = own.iter().map(|level| snake_case(level)).collect();
        match (names, identifier) {
            (Some(mut names), Some(identifier)) => {
                names.push(identifier);
                value.identifiers = names;
            }
            _ if self.capabilities.identifiers => {
                self.diagnostics.push(report::has_no_identifier(&value));
                return;
            }
            _ => {}
        }
        let index = self.values.len();
        self.values.push(value);
        descend(&mut self.root, own)
            .members
            .push(Member::Value(index));
    }

    /// The last identifier of a value: what the specification says, or the last
    /// level, or `command` for the value that names the command given.
    fn identifier_of(
        &mut self,
        value: &Value,
        levels: &[String],
        is_branch: bool,
    ) -> Option<String> {
        if let Some(identifier) = value.metadata("identifier") {
            return Some(identifier.to_owned());
        }
        if is_branch {
            if value.metadata("command").is_some() {
                return Some("command".to_owned());
            }
            if self.capabilities.identifiers {
                self.diagnostics.push(report::is_value_and_branch(value));
            }
        }
        levels.last().and_then(|level| snake_case(level))
    }

    fn describe(&mut self, key: &KeySpec, levels: &[String]) {
        let description = key.get("description").map(str::to_owned);
        descend(&mut self.root, levels).description = description;
    }

    fn value(&mut self, key: &KeySpec) -> Option<Value> {
        // `check` has accepted the metadata, so that this reports nothing new;
        // it is here so that a mistake there shows as a diagnostic.
        let rules = match Rules::from_metadata(&key.borrowed()) {
            Ok(rules) => rules,
            Err(error) => {
                self.diagnostics.push(
                    Diagnostic::error(error.message.clone()).label(key.span, "in this section"),
                );
                return None;
            }
        };
        // Where somebody has to give a value, nobody reads the zero.
        let default = match rules.initial() {
            Ok(scalar) => literal(&scalar),
            Err(_) => literal(&rules.type_().zero()),
        };
        Some(Value {
            pattern: key.pattern.as_str().to_owned(),
            identifiers: Vec::new(),
            type_: *rules.type_(),
            is_array: key.is_array(),
            variants: rules.variants().to_vec(),
            default,
            read_only: rules.read_only(),
            required: rules.required(),
            layers: key.pattern.layers().map(str::to_owned).collect(),
            entry: self
                .entries
                .iter()
                .find(|entry| *entry.pattern() == key.pattern)
                .cloned(),
            metadata: key.metadata.clone(),
            span: key.span,
        })
    }

    fn report_collisions(&mut self) {
        let mut found = Vec::new();
        collisions(&self.root, &self.values, &mut found);
        self.diagnostics.extend(found);
    }
}

/// A file name without its folders.
fn title(name: &str) -> String {
    name.rsplit('/').next().unwrap_or(name).to_owned()
}

fn branch(name: String, identifier: String) -> Branch {
    Branch {
        name,
        identifier,
        description: None,
        members: Vec::new(),
    }
}

/// The branch of these levels, made where it is missing.
fn descend<'b>(mut at: &'b mut Branch, levels: &[String]) -> &'b mut Branch {
    for level in levels {
        let name = format!("{}/{level}", at.name.trim_end_matches('/'));
        let position = at
            .members
            .iter()
            .position(|member| matches!(member, Member::Branch(branch) if branch.name == name));
        let position = position.unwrap_or_else(|| {
            let identifier = snake_case(level).unwrap_or_default();
            at.members.push(Member::Branch(branch(name, identifier)));
            at.members.len() - 1
        });
        let Member::Branch(below) = &mut at.members[position] else {
            unreachable!("the position is that of a branch")
        };
        at = below;
    }
    at
}

fn collisions(branch: &Branch, values: &[Value], found: &mut Vec<Diagnostic>) {
    let mut first: HashMap<&str, (&str, Span)> = HashMap::new();
    for member in &branch.members {
        let (identifier, name, span) = match member {
            Member::Value(index) => {
                let value = &values[*index];
                let Some(identifier) = value.identifiers.last() else {
                    continue;
                };
                (identifier.as_str(), value.pattern.as_str(), value.span)
            }
            Member::Branch(below) => {
                collisions(below, values, found);
                let Some(span) = first_span(below, values) else {
                    continue;
                };
                (below.identifier.as_str(), below.name.as_str(), span)
            }
        };
        if let Some(other) = first.insert(identifier, (name, span)) {
            found.push(report::same_identifier(other, (name, span), identifier));
        }
    }
}

fn first_span(branch: &Branch, values: &[Value]) -> Option<Span> {
    branch.members.iter().find_map(|member| match member {
        Member::Value(index) => Some(values[*index].span),
        Member::Branch(below) => first_span(below, values),
    })
}

/// The command line of a program that has none.
fn nothing_to_set(program: &str) -> Options {
    match Options::new(Program::new(program), []) {
        Ok(options) => options,
        Err(_) => unreachable!("without keys nothing can contradict"),
    }
}

fn literal(scalar: &Scalar<'_>) -> Literal {
    match *scalar {
        Scalar::Boolean(value) => Literal::Boolean(value),
        Scalar::Signed(value) => Literal::Signed(value),
        Scalar::Unsigned(value) => Literal::Unsigned(value),
        Scalar::Float(value) => Literal::Float(value),
        Scalar::Text(value) => Literal::Text(value.to_owned()),
        Scalar::Variant(value) => Literal::Variant(value),
    }
}

fn unique<'a>(levels: impl Iterator<Item = &'a String>) -> impl Iterator<Item = &'a String> {
    let mut seen = HashSet::new();
    levels.filter(move |level| seen.insert(level.as_str()))
}
