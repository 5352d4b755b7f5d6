//! Subscriptions in Rust.
//!
//! ```
//! use milieu_stream::language::build::{Builder, given, minutes};
//! use milieu_stream::operators;
//!
//! let catalogue = operators::catalogue();
//! let builder = Builder::new(&catalogue);
//! let hot = builder.stream("/weather/temperature").filter("value > 32").named("hot");
//! hot.publish("/weather/heat");
//! hot.subscribe(("latest", given("name", "heat")));
//! hot.activate(("heat", given("for", minutes(10))));
//! let document = builder.finish()?;
//! # assert_eq!((document.flows.len(), document.subscriptions.len()), (1, 1));
//! # Ok::<(), milieu_stream::language::build::Mistakes>(())
//! ```
//!
//! An operator is a method with its arguments: nothing, `()`; a value, which is
//! the first parameter; or several in a tuple, by their places or as [`given`].
//! [`apply`](FlowBuilder::apply) takes the operator's name, whatever the
//! catalogue has. Mistakes are found when everything has been said, by
//! [`Builder::finish`], each with the line that made it.

mod arguments;
mod grown;

use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::panic::Location;

use milieu_diagnostics::{Diagnostic, Source, Span, render};

pub use arguments::{
    Arguments, Told, days, fields, function, given, hours, microseconds, milliseconds, minutes,
    nanoseconds, seconds,
};

pub use grown::Grown;

use super::draft::{Input, Step, Text};
use super::lower::{Lowering, Measured};
use crate::catalogue::Catalogue;
use crate::subscription::Document;

/// Collects subscriptions.
#[derive(Debug)]
pub struct Builder<'c> {
    state: RefCell<State<'c>>,
}

#[derive(Debug)]
struct State<'c> {
    lowering: Lowering<'c>,
    document: Document,
    /// What has been called, a line each: what mistakes point into.
    calls: String,
}

/// What is wrong with subscriptions that were built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes {
    /// The calls, each with its place in the program.
    pub source: Source,
    /// What is wrong with them; never nothing.
    pub diagnostics: Vec<Diagnostic>,
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(render(&self.source, &self.diagnostics, false).trim_end())
    }
}

impl Error for Mistakes {}

impl<'c> Builder<'c> {
    /// A builder of flows of these operators.
    #[must_use]
    pub fn new(catalogue: &'c Catalogue) -> Builder<'c> {
        let state = State {
            lowering: Lowering::new(catalogue),
            document: Document::default(),
            calls: String::new(),
        };
        Builder {
            state: RefCell::new(state),
        }
    }

    /// The events of a name, of names with wildcards, or of one that follows a
    /// layer.
    #[track_caller]
    pub fn stream(&self, name: &str) -> FlowBuilder<'_, 'c> {
        let mut state = self.state.borrow_mut();
        let (_, name) = state.call_with_text("stream", name, Location::caller());
        let flow = state.lowering.stream(&name);
        self.flow_of(vec![flow])
    }

    /// A flow that has been [`named`](FlowBuilder::named).
    #[track_caller]
    pub fn flow(&self, name: &str) -> FlowBuilder<'_, 'c> {
        let mut state = self.state.borrow_mut();
        let (_, name) = state.call_with_text("flow", name, Location::caller());
        let flow = state.lowering.input(&Input::Use(name));
        self.flow_of(vec![flow])
    }

    /// What has been said.
    ///
    /// # Errors
    /// All mistakes.
    pub fn finish(self) -> Result<Document, Mistakes> {
        let state = self.state.into_inner();
        let diagnostics = state.lowering.diagnostics;
        if diagnostics.is_empty() {
            return Ok(state.document);
        }
        Err(Mistakes {
            source: Source::new("subscriptions in Rust", state.calls),
            diagnostics,
        })
    }

    fn flow_of(&self, flows: Vec<Option<Measured>>) -> FlowBuilder<'_, 'c> {
        FlowBuilder {
            builder: self,
            flows,
        }
    }
}

/// A flow that is being built. It may be used any number of times.
#[derive(Clone, Debug)]
#[must_use = "a flow does nothing before somebody subscribes, or it is published"]
pub struct FlowBuilder<'b, 'c> {
    builder: &'b Builder<'c>,
    /// What the next operator reads; nothing is known of a flow with mistakes.
    flows: Vec<Option<Measured>>,
}

impl<'b, 'c> FlowBuilder<'b, 'c> {
    /// Several flows for the next operator: `a.and(&b).merge()`.
    pub fn and(&self, other: &FlowBuilder<'b, 'c>) -> FlowBuilder<'b, 'c> {
        let flows = [&*self.flows, &*other.flows].concat();
        self.builder.flow_of(flows)
    }

    /// Lets the operator of this name read the flow.
    #[track_caller]
    pub fn apply(&self, operator: &str, arguments: impl Arguments) -> FlowBuilder<'b, 'c> {
        let mut state = self.builder.state.borrow_mut();
        let step = state.call(operator, arguments, Location::caller());
        let flow = state.lowering.step(&step, self.flows.clone());
        self.builder.flow_of(vec![flow])
    }

    /// Gives the flow a name within the document.
    #[track_caller]
    pub fn named(&self, name: &str) -> FlowBuilder<'b, 'c> {
        let mut state = self.builder.state.borrow_mut();
        let (call, name) = state.call_with_text("named", name, Location::caller());
        let flow = state.lowering.one(self.flows.clone(), call);
        let flow = state.lowering.name(&name, flow);
        if let Some(flow) = &flow {
            let named = (name.text.into(), flow.flow.clone());
            state.document.flows.push(named);
        }
        self.builder.flow_of(vec![flow])
    }

    /// Hands the events to a subscriber: `latest` or `every` event, `capacity`
    /// and `overflow` of the queue, `name` and transfer `mode`.
    #[track_caller]
    pub fn subscribe(&self, arguments: impl Arguments) {
        self.sink("subscribe", arguments, Location::caller());
    }

    /// Publishes the events under a name of the naming tree.
    #[track_caller]
    pub fn publish(&self, name: &str) {
        self.sink("publish", name, Location::caller());
    }

    /// Makes a name stand for those that the last event names.
    #[track_caller]
    pub fn bind(&self, name: &str) {
        self.sink("bind", name, Location::caller());
    }

    /// Activates a layer: its name; `while` an expression holds, with a `value`,
    /// `for` some time.
    #[track_caller]
    pub fn activate(&self, arguments: impl Arguments) {
        self.sink("activate", arguments, Location::caller());
    }

    /// Assigns to a contextual value: its name, and an expression.
    #[track_caller]
    pub fn set(&self, arguments: impl Arguments) {
        self.sink("set", arguments, Location::caller());
    }

    fn sink(&self, word: &str, arguments: impl Arguments, at: &Location) {
        let state = &mut *self.builder.state.borrow_mut();
        let step = state.call(word, arguments, at);
        let flow = state.lowering.one(self.flows.clone(), step.operator.span);
        state.lowering.sink(&step, flow, &mut state.document);
    }
}

macro_rules! operators {
    ($($(#[$what:meta])* $name:ident)*) => {
        impl<'b, 'c> FlowBuilder<'b, 'c> {
            $(
                $(#[$what])*
                #[track_caller]
                pub fn $name(&self, arguments: impl Arguments) -> FlowBuilder<'b, 'c> {
                    self.apply(stringify!($name), arguments)
                }
            )*

            /// Reads several flows as one: [`apply`](Self::apply) of `merge`.
            #[track_caller]
            pub fn merge(&self) -> FlowBuilder<'b, 'c> {
                self.apply("merge", ())
            }
        }

        /// The operators that have a method which takes arguments.
        pub(super) const METHODS: &[&str] = &[$(stringify!($name)),*];
    };
}

operators! {
    /// Lets those events go on for which a condition holds: [`apply`](Self::apply) of `filter`.
    filter
    /// Publishes another event for each event: [`apply`](Self::apply) of `transform`.
    transform
    /// Publishes what readings of a window come to: [`apply`](Self::apply) of `aggregate`.
    aggregate
    /// Lets those events go on that say something else than the last one did: [`apply`](Self::apply) of `change`.
    change
    /// Lets those events go on that are a new high or low: [`apply`](Self::apply) of `extreme`.
    extreme
    /// Publishes what sensors agree on: [`apply`](Self::apply) of `vote`.
    vote
    /// Drops numbers that lie far from those before them: [`apply`](Self::apply) of `outliers`.
    outliers
    /// Lets of equal events only the first one go on: [`apply`](Self::apply) of `deduplicate`.
    deduplicate
    /// Lets an event go on when nothing else has come for a while: [`apply`](Self::apply) of `debounce`.
    debounce
    /// Publishes true when one condition begins to hold and false when another one does: [`apply`](Self::apply) of `hysteresis`.
    hysteresis
    /// Joins each event of the first flow with the latest ones of the others: [`apply`](Self::apply) of `join`.
    join
    /// Lets the last event of every span of time go on: [`apply`](Self::apply) of `sample`.
    sample
    /// Lets the first event of every span of time go on: [`apply`](Self::apply) of `throttle`.
    throttle
    /// Keeps a set, and publishes it when someone joins or leaves: [`apply`](Self::apply) of `members`.
    members
}

impl State<'_> {
    /// Notes a call and gives it as a step.
    fn call(&mut self, method: &str, arguments: impl Arguments, at: &Location) -> Step {
        let step = called(method, arguments, &mut self.calls);
        self.calls.push_str(&format!(") // {at}\n"));
        step
    }

    /// Notes a call that has one text: where its name stands, and the text.
    fn call_with_text(&mut self, method: &str, text: &str, at: &Location) -> (Span, Text) {
        let step = self.call(method, (), at);
        self.calls.truncate(step.operator.span.end + 1);
        let text = arguments::quote(text, &mut self.calls);
        self.calls.push_str(&format!(") // {at}\n"));
        (step.operator.span, text)
    }
}

/// Notes a call up to its closing bracket and gives it as a step.
fn called(method: &str, arguments: impl Arguments, calls: &mut String) -> Step {
    calls.push('.');
    let start = calls.len();
    calls.push_str(method);
    let operator = Text::plain(method, start);
    calls.push('(');
    let arguments = arguments::write(arguments, calls);
    Step {
        operator,
        arguments,
    }
}
