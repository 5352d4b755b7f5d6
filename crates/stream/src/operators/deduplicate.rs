//! `deduplicate`: every event once.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use milieu_diagnostics::Diagnostic;
use milieu_transfer::{Event, Span, Time, Value};

use super::key::Key;
use super::parameters::{defaulting, optional};
use super::state::{State, are_same};
use super::terms::{Id, Terms};
use super::{Example, Page, alike};
use crate::catalogue::{Arguments, Declared, Definition, Inputs, Kind};
use crate::operator::{Fate, Operator, Output, Reason};

pub(super) static PAGE: Page = Page {
    definition: &DEDUPLICATE,
    details: "\
Without `of` an event is the same if publisher, name, incarnation and number are the same: it has \
come by two ways. With `of` it is the same if the value is, whoever says so. The first one goes \
on, later ones are dropped as `duplicate` until `within` has passed since the first one came. At \
most `remember` are remembered; beyond that the oldest is forgotten. Events of failed sensors are \
like others.",
    examples: &[Example {
        shows: "a badge that two readers have seen",
        flow: "/readers/a, /readers/b | merge | deduplicate within=5s of=badge",
        lines: "\
1 /readers/a {\"badge\": 17}
@1 {\"badge\": 17}
2 /readers/b {\"badge\": 17}
7 /readers/b {\"badge\": 17}
@7 {\"badge\": 17}",
    }],
};

static DEDUPLICATE: Definition = Definition {
    name: "deduplicate",
    summary: "Lets of equal events only the first one go on.",
    inputs: Inputs::One,
    parameters: &[
        Declared {
            positional: true,
            ..defaulting(
                "within",
                Kind::Span,
                "1m",
                "How long events are remembered.",
            )
        },
        optional(
            "of",
            Kind::Expression,
            "What makes events equal; without it they are one event.",
        ),
        defaulting(
            "remember",
            Kind::Integer,
            "10000",
            "How many events are remembered.",
        ),
    ],
    make,
};

fn make(arguments: &Arguments<'_>) -> Result<Box<dyn Operator>, Diagnostic> {
    let mut terms = Terms::new();
    Ok(Box::new(Deduplicate {
        of: terms.add(arguments, "of")?,
        terms,
        within: arguments.waiting("within")?,
        remember: arguments.count("remember", 100_000_000)?.unwrap_or(1),
        seen: HashMap::new(),
        order: VecDeque::new(),
    }))
}

struct Deduplicate {
    terms: Terms,
    of: Option<Id>,
    within: Span,
    remember: usize,
    /// When the first of each came.
    seen: HashMap<Key, Time>,
    /// The same, the oldest first.
    order: VecDeque<(Time, Key)>,
}

impl Deduplicate {
    fn decide(&mut self, event: &Event, out: &Output<'_>) -> Result<(), Reason> {
        let now = out.now();
        let key = match self.of {
            None => identity(event),
            Some(of) => {
                self.terms.read(event);
                Key::new(self.terms.value(of, event)?)
            }
        };
        while let Some((seen, _)) = self.order.front() {
            if !self.is_over(*seen, now) {
                break;
            }
            self.forget();
        }
        if self.seen.contains_key(&key) {
            return Err(Reason::Duplicate);
        }
        if self.seen.len() >= self.remember {
            self.forget();
        }
        self.seen.insert(key.clone(), now);
        self.order.push_back((now, key));
        Ok(())
    }

    /// Whether what came then is not remembered any more. A clock that is set
    /// back must not let it be remembered for long.
    fn is_over(&self, seen: Time, now: Time) -> bool {
        seen + self.within < now || seen > now
    }

    /// Forgets the oldest.
    fn forget(&mut self) {
        if let Some((_, key)) = self.order.pop_front() {
            self.seen.remove(&key);
        }
    }
}

/// What tells one event from all others.
fn identity(event: &Event) -> Key {
    let header = event.header();
    let parts = [
        header.stream.name.as_str().into(),
        Value::Text(Arc::clone(&header.stream.origin.0)),
        header.stream.incarnation.into(),
        header.sequence.into(),
    ];
    Key::new(Value::List(Arc::new(parts)))
}

impl Operator for Deduplicate {
    fn event(&mut self, _: usize, event: &Event, out: &mut Output<'_>) -> Fate {
        match self.decide(event, out) {
            Ok(()) => Fate::Passed,
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
        alike(other, |other: &Deduplicate| {
            let forgotten = |of: &Deduplicate| {
                let over = of
                    .order
                    .iter()
                    .take_while(|(seen, _)| self.is_over(*seen, now));
                over.count()
            };
            let (ours, theirs) = (forgotten(self), forgotten(other));
            are_same(self.order.range(ours..), other.order.range(theirs..))
        })
    }

    fn snapshot(&self) -> Value {
        self.order.save()
    }

    fn restore(&mut self, state: &Value) -> Result<(), String> {
        self.order = State::load(state)?;
        let seen = self.order.iter();
        self.seen = seen.map(|(seen, key)| (key.clone(), *seen)).collect();
        Ok(())
    }
}
