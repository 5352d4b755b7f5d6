//! What can be done with a flow, declared as operators are, so that every
//! language says it in the same way.

use std::num::NonZeroU32;
use std::sync::Arc;

use milieu_diagnostics::{Diagnostic, Span};
use milieu_keys::Pattern;

use super::draft::{Argument, Step, Text, Value};
use super::lower::bad_name;
use super::{parameter, scan};
use crate::catalogue::{Declared, Kind};
use crate::flow::{Flow, Parameter};
use crate::subscription::{
    Binding, Delivery, Document, Overflow, Publication, Subscription, Target,
};

/// Something that can be done with a flow.
pub(super) struct Sink {
    pub word: &'static str,
    pub summary: &'static str,
    pub parameters: &'static [Declared],
}

/// A parameter that need not be given and then has no value.
const OPTIONAL: Option<&str> = Some("");

const fn optional(name: &'static str, kind: Kind, summary: &'static str) -> Declared {
    Declared {
        name,
        kind,
        positional: false,
        default: OPTIONAL,
        summary,
    }
}

const fn required(name: &'static str, summary: &'static str) -> Declared {
    Declared {
        name,
        kind: Kind::Text,
        positional: true,
        default: None,
        summary,
    }
}

/// All of them.
pub(super) const SINKS: [Sink; 5] = [
    Sink {
        word: "subscribe",
        summary: "Hands the events to the subscriber.",
        parameters: &[
            Declared {
                name: "delivery",
                kind: Kind::Choice(&["latest", "every"]),
                positional: true,
                default: Some("every"),
                summary: "Whether the newest event is delivered, or every event by a queue.",
            },
            optional(
                "capacity",
                Kind::Integer,
                "How many events may wait in the queue; 1024 unless given.",
            ),
            optional(
                "overflow",
                Kind::Choice(&["drop-oldest", "drop-newest", "refuse", "close"]),
                "What happens to an event that finds the queue full; `drop-oldest` unless given.",
            ),
            optional("name", Kind::Text, "What the subscription is called."),
            optional("mode", Kind::Text, "The transfer mode between processes."),
        ],
    },
    Sink {
        word: "publish",
        summary: "Publishes the events under a name of the naming tree.",
        parameters: &[required(
            "name",
            "The name, without placeholders and wildcards.",
        )],
    },
    Sink {
        word: "bind",
        summary: "Makes a name stand for the names that the last event says.",
        parameters: &[required(
            "name",
            "The name, without placeholders and wildcards.",
        )],
    },
    Sink {
        word: "activate",
        summary: "Activates a layer, or deactivates it.",
        parameters: &[
            required("layer", "The name of the layer, without percent signs."),
            optional(
                "while",
                Kind::Expression,
                "Active while this holds for the last event; every event activates unless given.",
            ),
            optional(
                "value",
                Kind::Expression,
                "The value that the layer is activated with.",
            ),
            optional(
                "for",
                Kind::Span,
                "How long the layer stays active after the last event that activated it.",
            ),
        ],
    },
    Sink {
        word: "set",
        summary: "Assigns to a contextual value.",
        parameters: &[
            required("name", "The name of the contextual value."),
            Declared {
                name: "value",
                kind: Kind::Expression,
                positional: true,
                default: Some("value"),
                summary: "What is assigned.",
            },
        ],
    },
];

/// The one of this word.
pub(super) fn get(word: &str) -> Option<&'static Sink> {
    SINKS.iter().find(|sink| sink.word == word)
}

/// What a sink is told, by name.
pub(super) type Given = Vec<(Arc<str>, Parameter)>;

fn find<'a>(given: &'a Given, name: &str) -> Option<&'a Parameter> {
    let mut found = given.iter().filter(|(known, _)| **known == *name);
    found.next().map(|(_, parameter)| parameter)
}

fn text(given: &Given, name: &str) -> Option<Arc<str>> {
    match find(given, name)? {
        Parameter::Text(text) => Some(text.clone()),
        _ => None,
    }
}

/// The argument with this name, or else the first that has none.
fn argument<'a>(step: &'a Step, name: &str) -> Option<&'a Argument> {
    let named = |argument: &&Argument| argument.name.as_ref().is_some_and(|it| it.text == name);
    let arguments = step.arguments.iter();
    let found = arguments.clone().find(named);
    found.or_else(|| arguments.clone().find(|argument| argument.name.is_none()))
}

/// The text of an argument and where it stands.
fn written<'a>(step: &'a Step, name: &str) -> Option<&'a Text> {
    match &argument(step, name)?.value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// Where an argument stands.
fn place(step: &Step, name: &str) -> Span {
    argument(step, name).map_or(step.operator.span, |argument| argument.value.span())
}

/// Adds to the document what a sink does with a flow.
pub(super) fn add(
    step: &Step,
    given: &Given,
    flow: Flow,
    document: &mut Document,
) -> Result<(), Diagnostic> {
    match step.operator.text.as_str() {
        "subscribe" => {
            let subscription = subscription(step, given, flow)?;
            let same = |known: &Subscription| known.name == subscription.name;
            if subscription.name.is_some() && document.subscriptions.iter().any(same) {
                return Err(twice(step, "subscription"));
            }
            document.subscriptions.push(subscription);
        }
        "publish" => {
            let name = published(step)?;
            if is_taken(document, &name) {
                return Err(twice(step, "publication").note("two flows under one name: merge them"));
            }
            document.publications.push(Publication { name, flow });
        }
        "bind" => {
            let name = published(step)?;
            if is_taken(document, &name) {
                return Err(twice(step, "publication"));
            }
            let target = Target::Name { name };
            document.bindings.push(Binding { flow, target });
        }
        "activate" => {
            let target = layer(step, given)?;
            document.bindings.push(Binding { flow, target });
        }
        _ => {
            let written = required_text(step, "name")?;
            let name = pattern(written)?.as_str().into();
            let assigned = Parameter::Expression("value".into());
            let value = find(given, "value").cloned().unwrap_or(assigned);
            let target = Target::Value { name, value };
            document.bindings.push(Binding { flow, target });
        }
    }
    Ok(())
}

/// Whether something stands at a name already.
fn is_taken(document: &Document, name: &str) -> bool {
    let mut bound = document.bindings.iter();
    bound.any(|known| matches!(&known.target, Target::Name { name: known } if **known == *name))
        || document
            .publications
            .iter()
            .any(|known| *known.name == *name)
}

fn required_text<'a>(step: &'a Step, name: &str) -> Result<&'a Text, Diagnostic> {
    written(step, name).ok_or_else(|| {
        Diagnostic::error(format!("`{}` lacks its `{name}`", step.operator.text))
            .code("parameter")
            .label(step.operator.span, "it must be given")
    })
}

fn twice(step: &Step, what: &str) -> Diagnostic {
    Diagnostic::error(format!("there is another {what} of this name"))
        .code("name")
        .label(place(step, "name"), "the second one")
        .help("give it another name")
}

fn pattern(name: &Text) -> Result<Pattern, Diagnostic> {
    Pattern::parse(&name.text).map_err(|error| bad_name(name, &error))
}

fn published(step: &Step) -> Result<Arc<str>, Diagnostic> {
    let name = required_text(step, "name")?;
    let pattern = pattern(name)?;
    let is_wild = pattern
        .level_patterns()
        .iter()
        .any(|level| matches!(level.literal(), Some("*" | "**")));
    if pattern.is_contextual() || is_wild || pattern.level_patterns().is_empty() {
        return Err(Diagnostic::error("a flow has one name here")
            .code("name")
            .label(name.span, "this is none, or stands for several")
            .help("write a name without placeholders and wildcards, as `/weather/heat`"));
    }
    Ok(pattern.as_str().into())
}

fn subscription(step: &Step, given: &Given, flow: Flow) -> Result<Subscription, Diagnostic> {
    Ok(Subscription {
        name: text(given, "name"),
        flow,
        delivery: delivery(step, given)?,
        mode: text(given, "mode"),
    })
}

fn delivery(step: &Step, given: &Given) -> Result<Delivery, Diagnostic> {
    let is_latest = text(given, "delivery").is_some_and(|word| *word == *"latest");
    for word in ["capacity", "overflow"] {
        if is_latest && find(given, word).is_some() {
            return Err(Diagnostic::error(format!("`latest` has no `{word}`"))
                .code("parameter")
                .label(place(step, word), "only the newest event is kept")
                .help(format!("leave `{word}` out, or write `every`")));
        }
    }
    if is_latest {
        return Ok(Delivery::Latest);
    }
    let Delivery::Every { capacity, overflow } = Delivery::default() else {
        return Ok(Delivery::Latest);
    };
    let capacity = match find(given, "capacity") {
        Some(Parameter::Integer(number)) => {
            let number = u32::try_from(*number).ok().and_then(NonZeroU32::new);
            number.ok_or_else(|| {
                Diagnostic::error("a queue has room for one event at least")
                    .code("parameter")
                    .label(place(step, "capacity"), "not this one")
                    .help(format!("write a number from 1 to {}", u32::MAX))
            })?
        }
        _ => capacity,
    };
    let overflow = text(given, "overflow").map_or(overflow, |word| {
        let mut all = Overflow::ALL.into_iter();
        all.find(|known| *known.as_str() == *word)
            .unwrap_or(overflow)
    });
    Ok(Delivery::Every { capacity, overflow })
}

fn layer(step: &Step, given: &Given) -> Result<Target, Diagnostic> {
    let name = required_text(step, "layer")?;
    let is_layer = !name.text.is_empty()
        && Pattern::parse(&format!("/%{}%", name.text)).is_ok_and(|pattern| {
            matches!(pattern.level_patterns(), [level] if level.layer() == Some(&name.text))
        });
    if !is_layer {
        return Err(Diagnostic::error("this is not the name of a layer")
            .code("name")
            .label(
                name.span,
                "a layer's name has no blanks and no percent signs",
            )
            .help("write it as `battery_low`"));
    }
    Ok(Target::Layer {
        layer: name.text.as_str().into(),
        value: find(given, "value").cloned(),
        condition: find(given, "while").cloned(),
        duration: match find(given, "for") {
            Some(Parameter::Span(span)) => Some(*span),
            _ => None,
        },
    })
}

/// Everything that is done with flows, as sinks with what they are told.
pub(super) fn all(document: &Document) -> Vec<(&'static Sink, Given, &Flow)> {
    let mut all = Vec::new();
    let mut push = |sink: &'static Sink, given: Vec<(&str, Option<Parameter>)>, flow| {
        let given = given
            .into_iter()
            .filter_map(|(name, parameter)| Some((Arc::from(name), parameter?)))
            .filter(|(name, parameter): &(Arc<str>, _)| !is_default(sink, name, parameter));
        all.push((sink, given.collect(), flow));
    };
    let [subscribe, publish, bind, activate, set] = &SINKS;
    let text = |text: &Arc<str>| Some(Parameter::Text(text.clone()));
    for publication in &document.publications {
        push(
            publish,
            vec![("name", text(&publication.name))],
            &publication.flow,
        );
    }
    for subscription in &document.subscriptions {
        let mut given = told(subscription.delivery);
        given.push(("name", subscription.name.as_ref().and_then(text)));
        given.push(("mode", subscription.mode.as_ref().and_then(text)));
        push(subscribe, given, &subscription.flow);
    }
    for binding in &document.bindings {
        match &binding.target {
            Target::Layer {
                layer,
                value,
                condition,
                duration,
            } => push(
                activate,
                vec![
                    ("layer", text(layer)),
                    ("while", condition.clone()),
                    ("value", value.clone()),
                    ("for", duration.map(Parameter::Span)),
                ],
                &binding.flow,
            ),
            Target::Name { name } => push(bind, vec![("name", text(name))], &binding.flow),
            Target::Value { name, value } => push(
                set,
                vec![("name", text(name)), ("value", Some(value.clone()))],
                &binding.flow,
            ),
        }
    }
    all
}

fn is_default(sink: &Sink, name: &str, parameter: &Parameter) -> bool {
    let declared = sink.parameters.iter().find(|known| known.name == name);
    declared.and_then(parameter::default).as_ref() == Some(parameter)
}

fn told(delivery: Delivery) -> Vec<(&'static str, Option<Parameter>)> {
    let text = |text: &str| Some(Parameter::Text(text.into()));
    match delivery {
        Delivery::Latest => vec![("delivery", text("latest"))],
        every if every == Delivery::default() => Vec::new(),
        Delivery::Every { capacity, overflow } => vec![
            (
                "capacity",
                Some(Parameter::Integer(i64::from(capacity.get()))),
            ),
            ("overflow", text(overflow.as_str())),
        ],
    }
}

/// Whether a flow of a document may have this name.
pub(super) fn may_name_flow(name: &str) -> bool {
    scan::is_word(name) && name != "let" && name != "_"
}
