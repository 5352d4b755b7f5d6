//! `debounce`: what lasts.

use std::any::Any;
use std::collections::HashMap;

use milieu_diagnostics::Diagnostic;
use milieu_transfer::{Event, Span, Time, Value};

use super::groups::Groups;
use super::key::Key;
use super::parameters::{BY, FORGET, GROUPS, forget, groups, optional, required};
use super::state::{State, parts, state};
use super::terms::{Id, Terms, trusted};
use super::timers::Timers;
use super::{Example, Page, alike};
use crate::catalogue::{Arguments, Definition, Inputs, Kind};
use crate::operator::{Fate, Operator, Output, Reason};

pub(super) static PAGE: Page = Page {
    definition: &DEBOUNCE,
    details: "\
Without `of` an event goes on when no other one has come for the span; what came before it is \
dropped as `superseded`. With `of` it is a value that has to last: the event that brought it goes \
on when for the span no event has said anything else. Events that say the same as the one before \
are dropped as `duplicate`, and those of a value that did not last as `superseded`.

It counts when events come, not when they happened. With `of`, events of failed sensors are \
dropped as `failed`; without it they are like others.",
    examples: &[
        Example {
            shows: "a contact that bounces",
            flow: "/doors/front | debounce 50ms",
            lines: "\
1 /doors/front true
1.01 /doors/front false
1.02 /doors/front true
clock 1.07
@1.07 true",
        },
        Example {
            shows: "a room that somebody really went to",
            flow: "/people/anna/position | debounce 5s of=room",
            lines: "\
0 /people/anna/position {\"room\": \"005\"}
4 /people/anna/position {\"room\": \"005\"}
clock 5
@5 {\"room\": \"005\"}
10 /people/anna/position {\"room\": \"007\"}
12 /people/anna/position {\"room\": \"005\"}
clock 30",
        },
    ],
};

static DEBOUNCE: Definition = Definition {
    name: "debounce",
    summary: "Lets an event go on when nothing else has come for a while.",
    inputs: Inputs::One,
    parameters: &[
        required("span", Kind::Span, "For how long nothing else must come."),
        optional("of", Kind::Expression, "The value that has to last."),
        BY,
        GROUPS,
        FORGET,
    ],
    make,
};

fn make(arguments: &Arguments<'_>) -> Result<Box<dyn Operator>, Diagnostic> {
    let mut terms = Terms::new();
    let most = groups(arguments)?;
    Ok(Box::new(Debounce {
        of: terms.add(arguments, "of")?,
        by: terms.add(arguments, "by")?,
        terms,
        span: arguments.waiting("span")?,
        most,
        waiting: HashMap::new(),
        settled: Groups::new(most, forget(arguments)?),
        timers: Timers::default(),
    }))
}

struct Debounce {
    terms: Terms,
    of: Option<Id>,
    by: Option<Id>,
    span: Span,
    most: usize,
    waiting: HashMap<Key, Waiting>,
    /// The value that lasted, where it is values that have to.
    settled: Groups<Option<Key>>,
    timers: Timers,
}

/// An event that goes on if nothing else comes.
struct Waiting {
    event: Event,
    value: Option<Key>,
    until: Time,
}

state!(Waiting {
    event,
    value,
    until
});

impl Debounce {
    fn advance(&mut self, until: Time, out: &mut Output<'_>) {
        while let Some(key) = self.timers.take(until) {
            let Some(waiting) = self.waiting.get(&key) else {
                continue;
            };
            if waiting.until > until {
                self.timers.set(waiting.until, key);
                continue;
            }
            if let Some(Waiting { event, value, .. }) = self.waiting.remove(&key) {
                if value.is_some() {
                    if let Some(settled) = self.settled.get(key, out.now()) {
                        *settled = value;
                    }
                }
                out.pass(event);
            }
        }
    }

    fn take(&mut self, event: &Event, out: &mut Output<'_>) -> Result<(), Reason> {
        self.terms.read(event);
        let group = self.terms.key(self.by, event)?;
        let value = match self.of {
            None => None,
            Some(of) => {
                trusted(event)?;
                Some(Key::new(self.terms.value(of, event)?))
            }
        };
        if value.is_some() {
            let settled = self
                .settled
                .get(group.clone(), out.now())
                .ok_or(Reason::Overflow)?;
            if *settled == value {
                if self.waiting.remove(&group).is_some() {
                    out.drop(Reason::Superseded, 1);
                }
                return Err(Reason::Duplicate);
            }
        }
        let until = out.now() + self.span;
        let is_full = self.waiting.len() >= self.most;
        match self.waiting.get_mut(&group) {
            Some(waiting) if value.is_some() && waiting.value == value => {
                return Err(Reason::Duplicate);
            }
            Some(waiting) => {
                // A clock that is set back must not make it wait long.
                if waiting.until > until {
                    self.timers.set(until, group);
                }
                let event = event.clone();
                *waiting = Waiting {
                    event,
                    value,
                    until,
                };
                out.drop(Reason::Superseded, 1);
            }
            None if is_full => return Err(Reason::Overflow),
            None => {
                self.timers.set(until, group.clone());
                let event = event.clone();
                self.waiting.insert(
                    group,
                    Waiting {
                        event,
                        value,
                        until,
                    },
                );
            }
        }
        Ok(())
    }
}

impl Operator for Debounce {
    fn event(&mut self, _: usize, event: &Event, out: &mut Output<'_>) -> Fate {
        self.advance(out.now(), out);
        match self.take(event, out) {
            Ok(()) => Fate::Held,
            Err(reason) => Fate::Dropped(reason),
        }
    }

    fn wake(&mut self, out: &mut Output<'_>) {
        self.advance(out.now(), out);
    }

    fn due(&self) -> Option<Time> {
        self.timers.due()
    }

    fn held(&self) -> usize {
        self.waiting.len()
    }

    fn fault(&self) -> Option<&str> {
        self.terms.fault()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn is_like(&self, other: &dyn Operator, now: Time) -> bool {
        // When they are looked at follows from that, or is in vain.
        alike(other, |other: &Debounce| {
            self.waiting.is_same(&other.waiting) && self.settled.is_like(&other.settled, now)
        })
    }

    fn snapshot(&self) -> Value {
        vec![self.waiting.save(), self.settled.save()].into()
    }

    fn restore(&mut self, state: &Value) -> Result<(), String> {
        let parts = parts(state, 2)?;
        let waiting: HashMap<Key, Waiting> = State::load(&parts[0])?;
        self.settled.restore(&parts[1])?;
        self.timers.clear();
        for (key, waiting) in &waiting {
            self.timers.set(waiting.until, key.clone());
        }
        self.waiting = waiting;
        Ok(())
    }
}
