//! From what a text says to what is meant: names, operators and parameters are
//! looked up and checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use milieu_diagnostics::{Diagnostic, Span};
use milieu_keys::rules::nearest;
use milieu_keys::{NameError, Pattern};

use super::draft::{Argument, Draft, Input, Pipeline, Step, Text, next_place};
use super::{NESTING_MAX, parameter, sinks};
use crate::catalogue::{Catalogue, Declared, Definition, Inputs};
use crate::flow::{Flow, Parameter};
use crate::subscription::Document;

/// How many operators a flow may have, those of named flows counted wherever
/// they are used.
pub(super) const OPERATORS_MAX: usize = 4096;
/// How many operators an event may run through one after the other.
pub(super) const LENGTH_MAX: usize = 256;

/// A flow and how large it is: a few names could stand for more operators than
/// memory holds.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub flow: Flow,
    operators: usize,
    length: usize,
    /// How deeply it lies in itself where it is written without names.
    nesting: usize,
}

/// Reads a draft, of which this is wrong already.
pub(super) fn whole(
    draft: &Draft,
    mut diagnostics: Vec<Diagnostic>,
    catalogue: &Catalogue,
) -> Result<Document, Vec<Diagnostic>> {
    match document(draft, catalogue) {
        Ok(document) if diagnostics.is_empty() => Ok(document),
        Ok(_) => Err(diagnostics),
        Err(found) => {
            diagnostics.extend(found);
            diagnostics.sort_by_key(|found| found.span().map(|span| span.start));
            Err(diagnostics)
        }
    }
}

/// Reads a draft.
pub(super) fn document(draft: &Draft, catalogue: &Catalogue) -> Result<Document, Vec<Diagnostic>> {
    let mut lowering = Lowering::new(catalogue);
    let mut document = Document::default();
    for (name, pipeline) in &draft.flows {
        let flow = lowering.pipeline(pipeline);
        if let Some(measured) = lowering.name(name, flow) {
            document
                .flows
                .push((name.text.as_str().into(), measured.flow));
        }
    }
    for used in &draft.uses {
        let flow = lowering.pipeline(&used.pipeline);
        lowering.sink(&used.sink, flow, &mut document);
    }
    if lowering.diagnostics.is_empty() {
        Ok(document)
    } else {
        Err(lowering.diagnostics)
    }
}

/// What is known while a document is read. Where nothing can be made of
/// something it is left out, and what is wrong with it is said once.
#[derive(Debug)]
pub(super) struct Lowering<'a> {
    catalogue: &'a Catalogue,
    /// Flows with a name; nothing is known of those with mistakes.
    flows: BTreeMap<String, Option<Measured>>,
    pub diagnostics: Vec<Diagnostic>,
}

impl<'a> Lowering<'a> {
    pub fn new(catalogue: &'a Catalogue) -> Lowering<'a> {
        Lowering {
            catalogue,
            flows: BTreeMap::new(),
            diagnostics: Vec::new(),
        }
    }

    /// Gives a name to a flow.
    pub fn name(&mut self, name: &Text, flow: Option<Measured>) -> Option<Measured> {
        if !sinks::may_name_flow(&name.text) {
            self.diagnostics.push(
                Diagnostic::error(format!("`{}` cannot be the name of a flow", name.text))
                    .code("name")
                    .label(name.span, "a name has letters, digits and `_`")
                    .help("write it as `hot`; a name of the naming tree is given by `publish`"),
            );
            return None;
        }
        if self.flows.contains_key(&name.text) {
            self.diagnostics.push(
                Diagnostic::error(format!("there is another flow `{}`", name.text))
                    .code("name")
                    .label(name.span, "the second one")
                    .help("give it another name"),
            );
            return None;
        }
        self.flows.insert(name.text.clone(), flow.clone());
        flow
    }

    /// Adds what is done with a flow to the document.
    pub fn sink(&mut self, step: &Step, flow: Option<Measured>, document: &mut Document) {
        let Some(sink) = sinks::get(&step.operator.text) else {
            let words = sinks::SINKS.map(|sink| sink.word);
            self.diagnostics.push(
                Diagnostic::error(format!("nothing is called `{}`", step.operator.text))
                    .code("operator")
                    .label(step.operator.span, "what shall be done with the flow?")
                    .help(format!("write one of {}", parameter::listed(&words))),
            );
            return;
        };
        let given = self.parameters(&step.operator, sink.parameters, &step.arguments);
        let (Some(flow), Some(given)) = (flow, given) else {
            return;
        };
        if let Err(found) = sinks::add(step, &given, flow.flow, document) {
            self.diagnostics.push(found);
        }
    }

    pub fn pipeline(&mut self, pipeline: &Pipeline) -> Option<Measured> {
        let inputs = pipeline.inputs.iter().map(|input| self.input(input));
        let mut flows: Vec<Option<Measured>> = inputs.collect();
        for step in &pipeline.steps {
            flows = vec![self.step(step, flows)];
        }
        self.one(flows, pipeline.span)
    }

    /// The one flow that these have to be.
    pub fn one(&mut self, mut flows: Vec<Option<Measured>>, at: Span) -> Option<Measured> {
        if flows.len() > 1 {
            self.diagnostics.push(
                Diagnostic::error("several flows do not make one")
                    .code("flow")
                    .label(at, format!("here are {}", flows.len()))
                    .help("let an operator such as `merge` read them"),
            );
            return None;
        }
        flows.pop().flatten()
    }

    pub fn input(&mut self, input: &Input) -> Option<Measured> {
        match input {
            Input::Pipeline(pipeline) => self.pipeline(pipeline),
            Input::Stream(name) => self.stream(name),
            Input::Use(name) => match self.flows.get(&name.text) {
                Some(flow) => flow.clone(),
                None => {
                    let known = self.flows.keys().map(String::as_str);
                    let meant = nearest(&name.text, known);
                    self.diagnostics.push(unknown_flow(name, meant));
                    None
                }
            },
        }
    }

    pub fn stream(&mut self, name: &Text) -> Option<Measured> {
        if let Err(found) = parameter::check_characters(name) {
            self.diagnostics.push(found);
            return None;
        }
        match Pattern::parse(&name.text) {
            Ok(pattern) => Some(Measured {
                flow: Flow::Stream(pattern.as_str().into()),
                operators: 0,
                length: 0,
                nesting: 0,
            }),
            Err(error) => {
                self.diagnostics.push(bad_name(name, &error));
                None
            }
        }
    }

    /// What an operator makes of flows.
    pub fn step(&mut self, step: &Step, inputs: Vec<Option<Measured>>) -> Option<Measured> {
        let name = &step.operator;
        let Some(definition) = self.catalogue.get(&name.text) else {
            self.unknown_operator(name);
            return None;
        };
        let count = inputs.len();
        let parameters = self.parameters(name, definition.parameters, &step.arguments);
        if let Some(found) = wrong_count(name, definition, count) {
            self.diagnostics.push(found);
            return None;
        }
        let inputs: Vec<Measured> = inputs.into_iter().collect::<Option<_>>()?;
        let operators = 1 + inputs.iter().map(|input| input.operators).sum::<usize>();
        let length = 1 + inputs.iter().map(|input| input.length).max().unwrap_or(0);
        let nesting = inputs.iter().map(|input| input.nesting).max().unwrap_or(0);
        let nesting = nesting + usize::from(count > 1);
        if operators > OPERATORS_MAX || length > LENGTH_MAX || nesting > NESTING_MAX {
            self.diagnostics.push(too_large(name, operators, length));
            return None;
        }
        let inputs = inputs.into_iter().map(|input| input.flow).collect();
        let flow = self.catalogue.operation(definition, parameters?, inputs);
        if let Some(found) = refused(self.catalogue, &flow, name) {
            self.diagnostics.push(found);
            return None;
        }
        Some(Measured {
            flow,
            operators,
            length,
            nesting,
        })
    }

    fn unknown_operator(&mut self, name: &Text) {
        let known = self.catalogue.iter().map(|definition| definition.name);
        let known: Vec<&str> = known.collect();
        let mut found = Diagnostic::error(format!("there is no operator `{}`", name.text))
            .code("operator")
            .label(name.span, "this is not known");
        if let Some(meant) = nearest(&name.text, known.iter().copied()) {
            found = found.help(format!("did you mean `{meant}`?"));
        }
        let found = match sinks::get(&name.text) {
            Some(_) => Diagnostic::error(format!("`{}` ends a flow", name.text))
                .code("operator")
                .label(name.span, "nothing can be made of it here")
                .help("write it last, or give the flow a name by `let` and use that twice"),
            None => found.note(format!("known are {}", parameter::listed(&known))),
        };
        self.diagnostics.push(found);
    }

    /// What an operator or sink is told, in no order and without defaults.
    fn parameters(
        &mut self,
        operator: &Text,
        declared: &'static [Declared],
        arguments: &[Argument],
    ) -> Option<Vec<(Arc<str>, Parameter)>> {
        let mut given: Vec<(&'static Declared, Option<Parameter>)> = Vec::new();
        let before = self.diagnostics.len();
        for (at, argument) in arguments.iter().enumerate() {
            let found = match &argument.name {
                Some(name) => declared.iter().find(|known| known.name == name.text),
                None => next_place(declared, &arguments[..at]),
            };
            let Some(known) = found else {
                self.diagnostics.push(surplus(operator, declared, argument));
                continue;
            };
            if given.iter().any(|(other, _)| other.name == known.name) {
                self.diagnostics
                    .push(given_twice(operator, known, argument));
                continue;
            }
            match parameter::read(known, &argument.value) {
                Ok(parameter) => given.push((known, Some(parameter))),
                Err(found) => {
                    given.push((known, None));
                    self.diagnostics.push(found);
                }
            }
        }
        for known in declared {
            if known.default.is_none() && given.iter().all(|(other, _)| other.name != known.name) {
                self.diagnostics.push(missing(operator, known));
            }
        }
        let is_told = |(known, parameter): (&'static Declared, Option<Parameter>)| {
            let parameter =
                parameter.filter(|it| parameter::default(known).as_ref() != Some(it))?;
            Some((known.name.into(), parameter))
        };
        let clean = self.diagnostics.len() == before;
        clean.then(|| given.into_iter().filter_map(is_told).collect())
    }
}

/// What the operator itself has against its parameters. Functions need not have
/// been registered yet; without them it is asked when somebody subscribes.
fn refused(catalogue: &Catalogue, flow: &Flow, name: &Text) -> Option<Diagnostic> {
    let Flow::Operation(operation) = flow else {
        return None;
    };
    let is_function = |(_, it): &(_, Parameter)| matches!(it, Parameter::Function(_));
    if operation.parameters.iter().any(is_function) {
        return None;
    }
    let mut found = catalogue.make(operation).err()?;
    // Its places are those of texts of its own.
    found.labels.clear();
    Some(found.code("parameter").label(name.span, "told here"))
}

fn unknown_flow(name: &Text, meant: Option<&str>) -> Diagnostic {
    let found = Diagnostic::error(format!("there is no flow `{}` above", name.text))
        .code("flow")
        .label(name.span, "this has no meaning yet")
        .help(format!(
            "a name of the naming tree starts with `/`: `/{}`",
            name.text
        ));
    match meant {
        Some(meant) => found.help(format!("did you mean `{meant}`?")),
        None => found.help("define it above the place where it is used"),
    }
}

/// The trouble with a name of the naming tree.
pub(super) fn bad_name(name: &Text, error: &NameError) -> Diagnostic {
    let found = Diagnostic::error("this is no name")
        .code("name")
        .label(name.part(error.at, error.end), error.message.clone());
    if error.help.is_empty() {
        return found;
    }
    found.help(error.help.clone())
}

fn wrong_count(name: &Text, definition: &Definition, count: usize) -> Option<Diagnostic> {
    let (least, asks, help) = match definition.inputs {
        Inputs::One if count == 1 => return None,
        Inputs::One => (
            1,
            "one flow".to_owned(),
            "merge them first, or write it for each of them",
        ),
        Inputs::Unordered => (1, "one flow at least".to_owned(), "put them before it"),
        Inputs::Ordered(least) => (
            least,
            format!("{least} flows at least"),
            "put the others before it, with commas between them",
        ),
    };
    if definition.inputs != Inputs::One && count >= least {
        return None;
    }
    let found = Diagnostic::error(format!("`{}` reads {asks}", name.text))
        .code("flow")
        .label(name.span, format!("here it would read {count}"));
    Some(found.help(help))
}

fn too_large(name: &Text, operators: usize, length: usize) -> Diagnostic {
    let why = if operators > OPERATORS_MAX {
        format!("with this one it has more than {OPERATORS_MAX} operators")
    } else if length > LENGTH_MAX {
        format!("an event would run through more than {LENGTH_MAX} operators")
    } else {
        format!("more than {NESTING_MAX} operators of several flows read each other")
    };
    Diagnostic::error("the flow is too large")
        .code("limit")
        .label(name.span, why)
        .help("publish a part of it under a name and subscribe to that")
}

fn surplus(operator: &Text, declared: &[Declared], argument: &Argument) -> Diagnostic {
    let names: Vec<&str> = declared.iter().map(|known| known.name).collect();
    let found = match &argument.name {
        Some(name) => {
            let found = Diagnostic::error(format!(
                "`{}` has no parameter `{}`",
                operator.text, name.text
            ))
            .label(name.span, "this is not known");
            match nearest(&name.text, names.iter().copied()) {
                Some(meant) => found.help(format!("did you mean `{meant}`?")),
                None => found,
            }
        }
        None => {
            let found = Diagnostic::error(format!("`{}` takes no more here", operator.text))
                .label(argument.value.span(), "what is this?");
            match names.is_empty() {
                true => found.help("leave it out"),
                false => found.help("write the name of its parameter and `=` before it"),
            }
        }
    };
    let found = found.code("parameter");
    if names.is_empty() {
        return found.note(format!("`{}` has no parameters", operator.text));
    }
    found.note(format!("its parameters are {}", parameter::listed(&names)))
}

fn given_twice(operator: &Text, known: &Declared, argument: &Argument) -> Diagnostic {
    let span: Span = argument.value.span();
    Diagnostic::error(format!(
        "`{}` of `{}` is given twice",
        known.name, operator.text
    ))
    .code("parameter")
    .label(span, "here again")
    .help("leave one of them out")
}

fn missing(operator: &Text, known: &Declared) -> Diagnostic {
    Diagnostic::error(format!("`{}` lacks its `{}`", operator.text, known.name))
        .code("parameter")
        .label(operator.span, "it must be told")
        .note(format!("`{}`: {}", known.name, known.summary))
}
