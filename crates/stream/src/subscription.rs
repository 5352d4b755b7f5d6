//! Subscriptions: what is done with the events of flows.
//!
//! A [`Document`] is what a file of subscriptions says, whatever language it is
//! written in; [`language`](crate::language) reads and writes them.
//!
//! Source: A. Abram White, *Performance and Interoperability in Solar*, sections
//! 3.1 (names attached to publishers) and 8 (a subscriber's choice of a transfer
//! mode). Bindings to layers and contextual values are Milieu's.

use std::num::NonZeroU32;
use std::sync::Arc;

use milieu_transfer::Span;

use crate::flow::{Flow, Parameter};

/// Flows with a name, and what is done with flows.
///
/// The order within a list is that of the text; lists of different kinds have
/// no order among each other. Comments are not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// Flows that have a name within the document, `let hot = …`. Each may use
    /// those before it: where a flow of the document contains one of these, it
    /// is written by its name.
    pub flows: Vec<(Arc<str>, Flow)>,
    /// Who gets events.
    pub subscriptions: Vec<Subscription>,
    /// Flows that are published under a name of the naming tree.
    pub publications: Vec<Publication>,
    /// Flows that act on the context, or on the naming tree.
    pub bindings: Vec<Binding>,
}

/// A wish for the events of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// What it is called where it is looked after; no two of a document are
    /// called the same.
    pub name: Option<Arc<str>>,
    /// Which events.
    pub flow: Flow,
    /// Which of them arrive when the subscriber is slow.
    pub delivery: Delivery,
    /// The transfer mode by which they travel to another process: `json`. The
    /// best that both sides know where nothing is said.
    pub mode: Option<Arc<str>>,
}

/// What arrives when events come faster than they are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// The newest event that has not been taken yet: what comes later takes its
    /// place.
    Latest,
    /// Every event, by a queue.
    Every {
        /// How many events may wait.
        capacity: NonZeroU32,
        /// What happens to one that finds the queue full.
        overflow: Overflow,
    },
}

impl Default for Delivery {
    /// A queue of 1024 that drops its oldest.
    fn default() -> Delivery {
        Delivery::Every {
            capacity: NonZeroU32::new(1024).unwrap_or(NonZeroU32::MIN),
            overflow: Overflow::DropOldest,
        }
    }
}

/// What happens to an event that finds a queue full. Whatever is lost is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// The event that has waited longest makes room.
    DropOldest,
    /// The event that has come is dropped.
    DropNewest,
    /// The event is not accepted: its publisher is told and may try again, and
    /// with it waits whoever shares the flow.
    Refuse,
    /// The subscription ends, after what is in the queue.
    Close,
}

impl Overflow {
    /// All of them.
    pub const ALL: [Overflow; 4] = [
        Overflow::DropOldest,
        Overflow::DropNewest,
        Overflow::Refuse,
        Overflow::Close,
    ];

    /// How it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Overflow::DropOldest => "drop-oldest",
            Overflow::DropNewest => "drop-newest",
            Overflow::Refuse => "refuse",
            Overflow::Close => "close",
        }
    }
}

/// A flow under a name of the naming tree, to which others subscribe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The name: absolute, without placeholders and wildcards, canonical.
    pub name: Arc<str>,
    /// Its events.
    pub flow: Flow,
}

/// A flow that acts on the context, or on the naming tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The events that act.
    pub flow: Flow,
    /// On what.
    pub target: Target,
}

/// What the events of a flow act on.
///
/// Expressions are [`Parameter::Expression`] or [`Parameter::Function`], over
/// the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A layer, which each event activates or deactivates.
    Layer {
        /// Its name, without percent signs.
        layer: Arc<str>,
        /// The value that it is activated with; the layer's own where nothing
        /// is said.
        value: Option<Parameter>,
        /// Active while this holds for the last event; where nothing is said,
        /// every event activates.
        condition: Option<Parameter>,
        /// How long it stays active after the last event that activated it;
        /// until an event deactivates it, where nothing is said.
        duration: Option<Span>,
    },
    /// A name of the naming tree, which stands for the names that the last event
    /// says.
    Name {
        /// The name: absolute, without placeholders and wildcards, canonical.
        name: Arc<str>,
    },
    /// A contextual value, to which each event assigns.
    Value {
        /// Its name, perhaps with placeholders, canonical.
        name: Arc<str>,
        /// What is assigned.
        value: Parameter,
    },
}
