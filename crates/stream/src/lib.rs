//! Streams of events: from sources, through operators that subscribers share, to
//! subscribers.
//!
//! ```text
//!  Source ──▶ Feed ──▶ ┌───────── Machine ─────────┐ ──▶ callback, queue, layer
//!  (polled)            │ operators, hash-consed,   │
//!  Publisher ────────▶ │ shared by equal flows     │ ──▶ engine ──▶ other machines
//!                      └───────────▲───────────────┘
//!      subscription (a Flow) ──────┘ names looked up in the naming tree
//! ```
//!
//! A [`Flow`] says what a subscriber wants: names, and operators over flows. It
//! is text or built in Rust, and knows nothing of how it is run. The
//! [`Catalogue`] knows the operators: their parameters, for every language that
//! flows are written in, and how to make one. A [`Link`](link::Link) joins the
//! machine to others over an [`Engine`](engine::Engine), so that all have one
//! naming tree.
//!
//! Properties kept:
//! - the machine has no clock, no thread and no I/O: time and events are handed
//!   in, so that runs repeat;
//! - flows that are equal run once, whoever subscribes;
//! - the books balance: every event that went into a node or a queue came out,
//!   was dropped for a reason that is counted, or is still in there.
//!
//! Source: A. Abram White, *Performance and Interoperability in Solar*, section 3.

mod books;
mod catalogue;
pub mod drive;
pub mod engine;
mod flow;
mod functions;
mod graph;
pub mod language;
mod latency;
pub mod link;
pub mod names;
mod operator;
pub mod operators;
mod receiver;
pub mod rehearsal;
mod room;
mod runtime;
mod source;
mod subscription;
mod sync;

pub use books::{Books, Dropped};
pub use catalogue::{Arguments, Catalogue, Declared, Definition, Inputs, Kind};
pub use flow::{Flow, Operation, Parameter};
pub use functions::{Failed, Functions};
pub use graph::{
    CannotRestore, EdgeView, End, EndView, Machine, NodeView, NotRestored, Planned, PublicationId,
    ReaderId, SourceId, SubscriberView, SubscriptionId, View, WhyNot,
};
pub use latency::{Delays, Latency};
pub use operator::{Fate, Now, Operator, Output, Reason, Settled};
pub use receiver::{Delivered, Receiver, Tally};
pub use runtime::{
    Blocking, Bound, CannotName, CannotPublish, Clock, Drives, Driving, Listening, Named,
    Published, Publisher, Reader, Sourcing, SteppedSource, Stepping, Streams, Subscriber,
    SystemClock, VirtualClock, Watching,
};
pub use source::{Feed, Source, Status, Wait};
pub use subscription::{Binding, Delivery, Document, Overflow, Publication, Subscription, Target};
