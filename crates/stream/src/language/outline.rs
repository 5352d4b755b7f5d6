//! Flows as people write them: inputs, and operators one after the other.

use std::collections::HashMap;
use std::sync::Arc;

use super::sinks::{self, Given, Sink};
use crate::catalogue::{Catalogue, Declared};
use crate::flow::{Flow, Operation, Parameter};
use crate::subscription::Document;

/// A document as all writers write it.
pub(super) struct Outline<'a> {
    pub flows: Vec<(&'a str, Line<'a>)>,
    pub uses: Vec<(&'static Sink, Given, Line<'a>)>,
}

/// Inputs, and operators that they run through one after the other.
pub(super) struct Line<'a> {
    pub inputs: Vec<Piece<'a>>,
    pub steps: Vec<&'a Operation>,
}

/// An input.
pub(super) enum Piece<'a> {
    Stream(&'a str),
    /// A flow that has a name in the document.
    Use(&'a str),
    Line(Line<'a>),
}

impl<'a> Outline<'a> {
    pub fn new(document: &'a Document) -> Outline<'a> {
        let mut names = HashMap::new();
        let mut flows = Vec::new();
        for (name, flow) in &document.flows {
            flows.push((&**name, line(flow, &names)));
            names.entry(flow).or_insert(&**name);
        }
        let uses = sinks::all(document).into_iter();
        let uses = uses.map(|(sink, given, flow)| (sink, given, line(flow, &names)));
        Outline {
            uses: uses.collect(),
            flows,
        }
    }
}

fn line<'a>(flow: &'a Flow, names: &HashMap<&'a Flow, &'a str>) -> Line<'a> {
    let mut steps = Vec::new();
    let mut flow = flow;
    let inputs = loop {
        match (names.get(flow), flow) {
            (Some(name), _) => break vec![Piece::Use(name)],
            (None, Flow::Stream(name)) => break vec![Piece::Stream(name)],
            (None, Flow::Operation(operation)) => {
                steps.push(&**operation);
                match &*operation.inputs {
                    [input] => flow = input,
                    inputs => break inputs.iter().map(|input| piece(input, names)).collect(),
                }
            }
        }
    };
    steps.reverse();
    Line { inputs, steps }
}

fn piece<'a>(flow: &'a Flow, names: &HashMap<&'a Flow, &'a str>) -> Piece<'a> {
    let mut line = line(flow, names);
    match (line.inputs.pop(), line.steps.is_empty()) {
        (Some(input), true) if line.inputs.is_empty() => input,
        (input, _) => {
            line.inputs.extend(input);
            Piece::Line(line)
        }
    }
}

/// A parameter that is to be written.
pub(super) struct Told<'a> {
    pub name: &'a str,
    /// How it is declared; nothing is known of what the catalogue does not have.
    pub declared: Option<&'static Declared>,
    pub parameter: &'a Parameter,
    /// Whether it can be told by its place.
    pub is_positional: bool,
}

/// What an operator is told.
pub(super) fn told<'a>(operation: &'a Operation, catalogue: &Catalogue) -> Vec<Told<'a>> {
    let definition = catalogue.get(&operation.operator);
    told_of(
        &operation.parameters,
        definition.map_or(&[], |definition| definition.parameters),
    )
}

/// What an operator or sink with these declarations is told.
pub(super) fn told_of<'a>(
    parameters: &'a [(Arc<str>, Parameter)],
    declared: &'static [Declared],
) -> Vec<Told<'a>> {
    let mut places = declared.iter().filter(|known| known.positional);
    let mut in_order = true;
    let told = parameters.iter().map(|(name, parameter)| {
        in_order = in_order && places.next().is_some_and(|known| known.name == &**name);
        Told {
            name,
            declared: declared.iter().find(|known| known.name == &**name),
            parameter,
            is_positional: in_order,
        }
    });
    told.collect()
}
