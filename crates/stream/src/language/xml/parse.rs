//! From elements to what they say.

use milieu_diagnostics::Diagnostic;
use milieu_keys::rules::nearest;

use super::super::draft::{Argument, Draft, Input, Pipeline, Step, Text, Use, Value};
use super::super::{NESTING_MAX, Read, parameter, sinks, too_deep};
use super::tree::{self, Element};
use super::{INPUTS, NAMESPACE};

/// Reads a text. What is wrong within an element leaves that out.
pub(in super::super) fn parse(text: &str) -> (Draft, Vec<Diagnostic>) {
    let (mut draft, mut diagnostics) = (Draft::default(), Vec::new());
    match tree::read(text) {
        Err(found) => diagnostics.push(found),
        Ok(root) if root.name.text != "subscriptions" => diagnostics.push(wrong_root(&root)),
        Ok(root) => {
            diagnostics.extend(no_text(&root));
            diagnostics.extend(unknown_attribute(&root, &[]));
            for element in root.elements {
                if let Err(found) = used(element, &mut draft) {
                    diagnostics.push(found);
                }
            }
        }
    }
    (draft, diagnostics)
}

fn wrong_root(root: &Element) -> Diagnostic {
    Diagnostic::error("these are no subscriptions")
        .code("syntax")
        .label(root.name.span, "expected `subscriptions`")
        .help(format!("write `<subscriptions xmlns=\"{NAMESPACE}\">`"))
}

/// An element that does something with a flow.
fn used(element: Element, draft: &mut Draft) -> Read<()> {
    if element.name.text == "let" {
        let name = required(&element, "name")?;
        if let Some(found) = unknown_attribute(&element, &["name"]) {
            return Err(found);
        }
        let pipeline = pipeline(element, 0)?;
        draft.flows.push((name, pipeline));
        return Ok(());
    }
    if sinks::get(&element.name.text).is_none() {
        return Err(unknown_element(&element));
    }
    let sink = Step {
        operator: element.name.clone(),
        arguments: attributes(&element),
    };
    let pipeline = pipeline(element, 0)?;
    draft.uses.push(Use { sink, pipeline });
    Ok(())
}

/// Inputs and operators.
fn pipeline(element: Element, depth: usize) -> Read<Pipeline> {
    if let Some(found) = no_text(&element) {
        return Err(found);
    }
    let span = element.span;
    let (mut inputs, mut steps) = (Vec::new(), Vec::new());
    for element in element.elements {
        let is_input = INPUTS.contains(&element.name.text.as_str());
        if is_input && !steps.is_empty() {
            return Err(Diagnostic::error("inputs stand before operators")
                .code("flow")
                .label(element.name.span, "this comes too late")
                .help("put it before the operators, or put what is before it into a `<flow>`"));
        }
        if is_input {
            inputs.push(input(element, depth)?);
        } else {
            steps.push(step(element)?);
        }
    }
    if inputs.is_empty() {
        return Err(Diagnostic::error("there is no flow here")
            .code("flow")
            .label(span, "expected an input")
            .help("write `<stream name=\"/weather/temperature\"/>` first"));
    }
    Ok(Pipeline {
        inputs,
        steps,
        span,
    })
}

fn input(element: Element, depth: usize) -> Read<Input> {
    let name = match element.name.text.as_str() {
        "stream" => "name",
        "use" => "flow",
        _ if depth == NESTING_MAX => return Err(too_deep(element.span)),
        _ => {
            return match unknown_attribute(&element, &[]) {
                Some(found) => Err(found),
                None => Ok(Input::Pipeline(pipeline(element, depth + 1)?)),
            };
        }
    };
    let text = required(&element, name)?;
    let found = unknown_attribute(&element, &[name]).or_else(|| no_text(&element));
    match (found, element.elements.first()) {
        (Some(found), _) => Err(found),
        (_, Some(inner)) => Err(unknown_element(inner)),
        _ if name == "name" => Ok(Input::Stream(text)),
        _ => Ok(Input::Use(text)),
    }
}

fn step(element: Element) -> Read<Step> {
    if let Some(found) = no_text(&element) {
        return Err(found);
    }
    let mut arguments = attributes(&element);
    for inner in element.elements {
        arguments.push(told(inner)?);
    }
    Ok(Step {
        operator: element.name,
        arguments,
    })
}

/// A parameter that is an element.
fn told(element: Element) -> Read<Argument> {
    if let Some(found) = unknown_attribute(&element, &[]) {
        return Err(found);
    }
    let value = match element.text {
        Some(text) if element.elements.is_empty() => Value::Text(text),
        Some(text) => return Err(no_text_here(&text)),
        None => {
            let fields = element.elements.into_iter().map(field);
            Value::Table(fields.collect::<Read<_>>()?, element.span)
        }
    };
    let name = Some(element.name);
    Ok(Argument { name, value })
}

fn field(element: Element) -> Read<(Text, Value)> {
    if element.name.text != "field" {
        return Err(Diagnostic::error("this is no field")
            .code("parameter")
            .label(element.name.span, "expected `field`")
            .help("write `<field name=\"mean\">value / 2</field>`"));
    }
    let name = required(&element, "name")?;
    if let Some(found) = unknown_attribute(&element, &["name"]) {
        return Err(found);
    }
    match (element.text, element.elements.first()) {
        (_, Some(inner)) => Err(unknown_element(inner)),
        (Some(text), None) => Ok((name, Value::Text(text))),
        (None, None) => Err(Diagnostic::error("the field is empty")
            .code("parameter")
            .label(element.span, "expected an expression between the tags")
            .help("write `<field name=\"mean\">value / 2</field>`")),
    }
}

fn attributes(element: &Element) -> Vec<Argument> {
    let attributes = element.attributes.iter().map(|(name, value)| Argument {
        name: Some(name.clone()),
        value: Value::Text(value.clone()),
    });
    attributes.collect()
}

fn required(element: &Element, name: &str) -> Read<Text> {
    element.attribute(name).cloned().ok_or_else(|| {
        Diagnostic::error(format!("`{}` lacks its `{name}`", element.name.text))
            .code("syntax")
            .label(element.span, "it must be told")
            .help(format!("write `<{} {name}=\"…\">`", element.name.text))
    })
}

fn unknown_attribute(element: &Element, known: &[&str]) -> Option<Diagnostic> {
    let mut attributes = element.attributes.iter();
    let (name, _) = attributes.find(|(name, _)| !known.contains(&name.text.as_str()))?;
    let found = Diagnostic::error(format!("`{}` has no meaning here", name.text))
        .code("syntax")
        .label(name.span, "this is not known");
    Some(match nearest(&name.text, known.iter().copied()) {
        Some(meant) => found.help(format!("did you mean `{meant}`?")),
        None => found.help("leave it out"),
    })
}

fn unknown_element(element: &Element) -> Diagnostic {
    let mut words = vec!["let"];
    words.extend(sinks::SINKS.iter().map(|sink| sink.word));
    let found = Diagnostic::error(format!("`{}` cannot stand here", element.name.text))
        .code("syntax")
        .label(element.name.span, "this is not known");
    match nearest(&element.name.text, words.iter().copied()) {
        Some(meant) => found.help(format!("did you mean `{meant}`?")),
        None => found.note(format!("known are {}", parameter::listed(&words))),
    }
}

fn no_text(element: &Element) -> Option<Diagnostic> {
    element.text.as_ref().map(no_text_here)
}

fn no_text_here(text: &Text) -> Diagnostic {
    Diagnostic::error("text cannot stand here")
        .code("syntax")
        .label(text.span, "expected elements only")
        .help("write parameters as attributes; a comment is `<!-- … -->`")
}
