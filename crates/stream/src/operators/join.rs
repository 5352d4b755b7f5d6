//! `join`: an event together with the latest ones of other streams.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;

use milieu_diagnostics::Diagnostic;
use milieu_transfer::{Event, Map, Rights, Span, Time, Value};

use super::groups::Groups;
use super::parameters::{FORGET, GROUPS, forget, groups, optional, required};
use super::quality::{carried, failure};
use super::terms::{Id, Terms};
use super::{Example, Page, alike};
use crate::catalogue::{Arguments, Declared, Definition, Inputs, Kind};
use crate::operator::{Fate, Operator, Output, Reason};

pub(super) static PAGE: Page = Page {
    definition: &JOIN,
    details: "\
Each event of the first input becomes one event, in which every input has the field that `as` \
names: the body of this event, and those of the events of the other inputs that came last. With \
`on` only events belong together for which the expression has the same value; it is computed of \
the events of all inputs.

Where another input has said nothing yet, or nothing that is `fresh`, the event is dropped as \
`filtered`; with `optional` the field is null instead. Events of the first input that belong to \
a failed sensor make events that say so. An event of another input whose sensor has failed is \
dropped as `failed`, and what came before it is forgotten: it is not to be trusted any more. \
The result has the time of the event of the first input, and no accuracy, as its numbers are of \
different kinds.",
    examples: &[Example {
        shows: "how much colder it is outside",
        flow: "(/inside/temperature, /outside/temperature | join \"inside outside\") \
| transform inside - outside",
        lines: "\
1 /inside/temperature 20.0
2 /outside/temperature 5.0
3 /inside/temperature 21.0
@3 16.0",
    }],
};

static JOIN: Definition = Definition {
    name: "join",
    summary: "Joins each event of the first input with the latest ones of the others.",
    inputs: Inputs::Ordered(2),
    parameters: &[
        required(
            "as",
            Kind::Text,
            "The names of the fields, one for each input, with blanks between.",
        ),
        optional(
            "on",
            Kind::Expression,
            "What events have to have in common.",
        ),
        optional(
            "fresh",
            Kind::Span,
            "How much older the others may be, by their times.",
        ),
        Declared {
            default: Some("false"),
            ..optional("optional", Kind::Flag, "Whether others may be missing.")
        },
        GROUPS,
        FORGET,
    ],
    make,
};

fn make(arguments: &Arguments<'_>) -> Result<Box<dyn Operator>, Diagnostic> {
    let mut terms = Terms::new();
    let names = arguments.text("as")?.unwrap_or_default();
    let names: Vec<Arc<str>> = names.split_whitespace().map(Into::into).collect();
    if names.len() != arguments.inputs {
        let why = format!(
            "names {} fields for {} inputs",
            names.len(),
            arguments.inputs
        );
        return Err(arguments.wrong("as", &why).help("name one for each input"));
    }
    if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
        return Err(arguments.wrong("as", "names a field twice"));
    }
    let forget = forget(arguments)?;
    let most = groups(arguments)?;
    Ok(Box::new(Join {
        on: terms.add(arguments, "on")?,
        terms,
        others: names[1..]
            .iter()
            .map(|_| Groups::new(most, forget))
            .collect(),
        names: names.into_iter().map(Value::Text).collect(),
        fresh: arguments.length("fresh")?,
        optional: arguments.flag("optional")?,
    }))
}

struct Join {
    terms: Terms,
    on: Option<Id>,
    names: Vec<Value>,
    fresh: Option<Span>,
    optional: bool,
    /// The latest event of each input but the first.
    others: Vec<Groups<Option<Event>>>,
}

impl Join {
    fn join(&mut self, input: usize, event: &Event, out: &mut Output<'_>) -> Result<(), Reason> {
        self.terms.read(event);
        let key = self.terms.key(self.on, event)?;
        if let Some(other) = input.checked_sub(1) {
            let others = self.others.get_mut(other).ok_or(Reason::Type)?;
            let latest = others.get(key, out.now()).ok_or(Reason::Overflow)?;
            let failed = failure(event).is_some();
            *latest = (!failed).then(|| event.clone());
            return if failed { Err(Reason::Failed) } else { Ok(()) };
        }
        let mut body = Map::default();
        body.set(self.names[0].clone(), whole(event)?);
        for (others, name) in self.others.iter_mut().zip(&self.names[1..]) {
            let latest = others.known(&key, out.now()).and_then(Option::as_ref);
            let fresh = |latest: &&Event| match self.fresh {
                Some(fresh) => latest.time() + fresh >= event.time(),
                None => true,
            };
            let value = match latest.filter(fresh) {
                Some(latest) => whole(latest)?,
                None if self.optional => Value::Null,
                None => return Err(Reason::Filtered),
            };
            body.set(name.clone(), value);
        }
        out.emit_value(event.time(), carried(event, false), Value::from(body));
        Ok(())
    }
}

/// The body, with what is private in it still marked so.
fn whole(event: &Event) -> Result<Value, Reason> {
    event.value(Rights::READ).map_err(|_| Reason::Fault)
}

impl Operator for Join {
    fn event(&mut self, input: usize, event: &Event, out: &mut Output<'_>) -> Fate {
        match self.join(input, event, out) {
            Ok(()) => Fate::Used,
            Err(reason) => Fate::Dropped(reason),
        }
    }

    fn fault(&self) -> Option<&str> {
        self.terms.fault()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn is_like(&self, other: &dyn Operator, now: Time) -> bool {
        alike(other, |other: &Join| {
            let mut others = self.others.iter().zip(&other.others);
            others.all(|(ours, theirs)| ours.is_like(theirs, now))
        })
    }

    fn snapshot(&self) -> Value {
        let others: Vec<Value> = self.others.iter().map(Groups::save).collect();
        others.into()
    }

    fn restore(&mut self, state: &Value) -> Result<(), String> {
        let states = super::state::parts(state, self.others.len())?;
        let before = self.snapshot();
        for (others, state) in self.others.iter_mut().zip(states) {
            if let Err(wrong) = others.restore(state) {
                return self.restore(&before).and(Err(wrong));
            }
        }
        Ok(())
    }
}
