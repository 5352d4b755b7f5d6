//! `transform`: other events instead.

use std::sync::Arc;

use milieu_diagnostics::Diagnostic;
use milieu_transfer::{Event, Map, Time, Value};

use super::parameters::required;
use super::quality::carried;
use super::terms::{Id, Terms, unknown};
use super::{Example, Page};
use crate::catalogue::{Arguments, Definition, Inputs, Kind};
use crate::flow::Parameter;
use crate::functions::{Function, TransformFunction};
use crate::operator::{Fate, Operator, Output, Reason};

pub(super) static PAGE: Page = Page {
    definition: &TRANSFORM,
    details: "\
Either fields that become expressions, `{celsius: (value - 32.0) / 1.8, room: room}`, or one \
expression that becomes the whole, or `$name` of a Rust function.

The new event has the time of the old one. A failure of the sensor goes along. So does the \
accuracy where only fields are chosen or renamed; it does not where something is computed, as \
nobody knows what that makes of it. What cannot be computed is dropped as `fault`.",
    examples: &[
        Example {
            shows: "degrees Celsius",
            flow: "/weather/temperature | transform {celsius: (value - 32.0) / 1.8}",
            lines: "\
1 /weather/temperature 90.5
@1 {\"celsius\": 32.5}",
        },
        Example {
            shows: "coordinates to rooms",
            flow: "/people/anna/position | transform {room: x < 5.0 ? \"005\" : \"007\"}",
            lines: "\
1 /people/anna/position {\"x\": 2.5, \"y\": 1.0}
@1 {\"room\": \"005\"}
2 /people/anna/position {\"x\": 7.5, \"y\": 1.0}
@2 {\"room\": \"007\"}",
        },
    ],
};

static TRANSFORM: Definition = Definition {
    name: "transform",
    summary: "Publishes another event for each event.",
    inputs: Inputs::One,
    parameters: &[required(
        "into",
        Kind::Fields,
        "The fields of the new event, or what becomes the whole of it.",
    )],
    make,
};

fn make(arguments: &Arguments<'_>) -> Result<Box<dyn Operator>, Diagnostic> {
    let mut terms = Terms::new();
    let into = match arguments.given("into") {
        Some(Parameter::Fields(fields)) => {
            let mut ids = Vec::with_capacity(fields.len());
            for (name, text) in fields {
                let term = Parameter::Expression(Arc::clone(text));
                let id = terms.add_parameter(arguments, &term)?;
                ids.push((Value::Text(Arc::clone(name)), id));
            }
            Into::Fields(ids)
        }
        Some(Parameter::Function(name)) => match arguments.functions.get(name) {
            Some(Function::Transform(run)) => {
                let (run, name) = (Arc::clone(run), Arc::clone(name));
                return Ok(Box::new(Call {
                    run,
                    name,
                    fault: None,
                }));
            }
            Some(Function::Value(_) | Function::Condition(_)) => {
                Into::Whole(terms.add_parameter(arguments, &Parameter::Function(Arc::clone(name)))?)
            }
            None => return Err(unknown(arguments, name)),
        },
        Some(parameter @ Parameter::Expression(_)) => {
            Into::Whole(terms.add_parameter(arguments, parameter)?)
        }
        // No text says it: it is for flows that ask several things of an event.
        Some(Parameter::List(parts)) => {
            let ids = parts
                .iter()
                .map(|part| terms.add_parameter(arguments, part));
            Into::List(ids.collect::<Result<_, _>>()?)
        }
        _ => return Err(arguments.wrong("into", "is to be fields, an expression or a function")),
    };
    let chooses = match &into {
        Into::Whole(id) => terms.is_path(*id),
        Into::List(ids) => ids.iter().all(|id| terms.is_path(*id)),
        Into::Fields(fields) => fields.iter().all(|(_, id)| terms.is_path(*id)),
    };
    Ok(Box::new(Transform {
        terms,
        into,
        chooses,
    }))
}

struct Transform {
    terms: Terms,
    into: Into,
    /// Whether fields are only chosen and renamed.
    chooses: bool,
}

enum Into {
    Fields(Vec<(Value, Id)>),
    Whole(Id),
    List(Vec<Id>),
}

impl Transform {
    fn compute(&mut self, event: &Event) -> Result<Value, Reason> {
        self.terms.read(event);
        match &self.into {
            Into::Whole(id) => self.terms.value(*id, event),
            Into::List(ids) => {
                let parts = ids.iter().map(|id| self.terms.value(*id, event));
                Ok(Value::List(parts.collect::<Result<_, _>>()?))
            }
            Into::Fields(fields) => {
                let mut map = Map::default();
                for (name, id) in fields {
                    map.set(name.clone(), self.terms.value(*id, event)?);
                }
                Ok(map.into())
            }
        }
    }
}

impl Operator for Transform {
    fn event(&mut self, _: usize, event: &Event, out: &mut Output<'_>) -> Fate {
        match self.compute(event) {
            Ok(body) => {
                out.emit_value(event.time(), carried(event, self.chooses), body);
                Fate::Used
            }
            Err(reason) => Fate::Dropped(reason),
        }
    }

    fn is_like(&self, _: &dyn Operator, _: Time) -> bool {
        true
    }

    fn fault(&self) -> Option<&str> {
        self.terms.fault()
    }
}

/// A Rust function that publishes for itself.
struct Call {
    run: TransformFunction,
    name: Arc<str>,
    fault: Option<String>,
}

impl Operator for Call {
    fn event(&mut self, _: usize, event: &Event, out: &mut Output<'_>) -> Fate {
        (self.run)(event, out).unwrap_or_else(|failed| {
            if let Some(why) = failed.why {
                self.fault = Some(format!("`${}` has failed: {why}", self.name));
            }
            Fate::Dropped(failed.reason)
        })
    }

    fn is_like(&self, _: &dyn Operator, _: Time) -> bool {
        true
    }

    fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }
}
