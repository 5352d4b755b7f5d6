//! Streams of a program, and what ties them to its contexts.
//!
//! ```text
//!  stream ──▶ layer, contextual value ──▶ every context, at its next sync
//!  layer  ──▶ names with %layer%      ──▶ subscriptions, without their noticing
//! ```
//!
//! ```
//! # use milieu::{Milieu, layer};
//! # use milieu::stream::Delivery;
//! layer! { /// It is hot.
//!     pub struct Heat = "heat"; }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let milieu = Milieu::open("hello-streams")?;
//! let weather = milieu.streams().publisher::<f64>("/weather/temperature")?;
//! let heat = milieu.flow("/weather/temperature | aggregate maximum 10m")?;
//! let _acting = heat.activates(|event| (*event.get::<f64>()? > 32.0).then_some(Heat))?;
//! # Ok(())
//! # }
//! ```
//!
//! Source: A. Abram White, *Performance and Interoperability in Solar*, section
//! 3.1 (context-sensitive names), and M. Raab, *Global and Thread-Local
//! Activation of Contextual Program Execution Environments* (layers).

mod act;
mod apply;
mod follow;
mod keep;
mod modes;

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use milieu_diagnostics::{Diagnostic, Source, render};
use milieu_stream::language::Language;
use milieu_stream::names::Query;
use milieu_stream::{
    Blocking, Bound, Catalogue, Clock, Definition, Delivery, Driving, Flow, Functions, Listening,
    Named, Streams, Subscriber, SystemClock, operators,
};
use milieu_transfer::{Event, Origin};

use crate::{Error, Milieu};

pub use act::Acting;
pub use apply::Applied;
pub use follow::ContextReader;
pub use keep::Keeping;
pub(crate) use modes::OwnModes;

/// What a program keeps for its streams.
#[derive(Default)]
pub(crate) struct Kept {
    streams: OnceLock<Streams>,
    driving: Mutex<Option<(Driving, Blocking)>>,
    functions: Mutex<Functions>,
    operators: Mutex<Vec<&'static Definition>>,
    clock: OnceLock<Arc<dyn Clock>>,
    followed: follow::Followed,
    pub(crate) modes: modes::OwnModes,
}

/// A flow of a program: what can be done with its events.
pub struct Stream<'m> {
    milieu: &'m Milieu,
    flow: Flow,
}

impl Milieu {
    /// Registers Rust functions that flows may name, before the first use of
    /// [`streams`](Milieu::streams).
    ///
    /// # Errors
    /// If streams are in use already.
    pub fn functions(&self, register: impl FnOnce(&mut Functions)) -> Result<(), Error> {
        if self.kept.streams.get().is_some() {
            let text = "functions are registered before streams are used for the first time";
            return Err(Error::Flow(text.to_owned()));
        }
        register(
            &mut self
                .kept
                .functions
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        );
        Ok(())
    }

    /// Makes operators of the program known to flows, before the first use of
    /// [`streams`](Milieu::streams). One that has the name of another takes its
    /// place.
    ///
    /// # Errors
    /// If streams are in use already.
    pub fn operators(
        &self,
        definitions: impl IntoIterator<Item = &'static Definition>,
    ) -> Result<(), Error> {
        if self.kept.streams.get().is_some() {
            let text = "operators are made known before streams are used for the first time";
            return Err(Error::Flow(text.to_owned()));
        }
        let known = self.kept.operators.lock();
        known
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .extend(definitions);
        Ok(())
    }

    /// Gives streams another clock than the system's, before their first use: a
    /// test decides what time it is.
    ///
    /// # Errors
    /// If streams are in use already, or have another clock.
    pub fn clock(&self, clock: impl Clock + 'static) -> Result<(), Error> {
        let text = "streams get their clock once, before they are used for the first time";
        let late = || Error::Flow(text.to_owned());
        if self.kept.streams.get().is_some() {
            return Err(late());
        }
        self.kept.clock.set(Arc::new(clock)).map_err(|_| late())
    }

    /// The streams of this program.
    pub fn streams(&self) -> &Streams {
        self.kept.streams.get_or_init(|| {
            let own = self.kept.operators.lock();
            let own = own.unwrap_or_else(std::sync::PoisonError::into_inner);
            let known = operators::catalogue();
            let mut catalogue = Catalogue::new(known.iter().chain(own.iter().copied()));
            drop(own);
            let functions = self.kept.functions.lock();
            *catalogue.functions_mut() = functions
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .clone();
            let author = self.files.author();
            let origin = format!("{}/{}/{}", author.host, author.program, author.process);
            let since = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            let incarnation = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
            let clock = self.kept.clock.get().cloned();
            let clock = clock.unwrap_or_else(|| Arc::new(SystemClock));
            Streams::new(catalogue, clock, Origin(origin.into()), incarnation)
        })
    }

    /// The thread that polls sources and lets operators do what they do as time
    /// passes; it is started when it is first asked for.
    ///
    /// # Errors
    /// If the system has no thread or descriptor left.
    pub fn driving(&self) -> Result<Driving, Error> {
        Ok(self.driven(Blocking::default())?.0)
    }

    /// As [`driving`](Milieu::driving), with these terms for operators that may take
    /// long. Whoever asks for it first decides, sources included.
    ///
    /// # Errors
    /// As there, or if it was started on other terms.
    pub fn drive_with(&self, terms: Blocking) -> Result<Driving, Error> {
        match self.driven(terms)? {
            (driving, known) if known == terms => Ok(driving),
            (_, known) => Err(Error::Flow(format!(
                "streams are driven already, with {} threads, queues of {} and a limit of {}; say \
                 on what terms before the first source, and before they are driven otherwise",
                known.threads,
                known.capacity,
                known.limit.in_units()
            ))),
        }
    }

    fn driven(&self, terms: Blocking) -> Result<(Driving, Blocking), Error> {
        let driving = self.kept.driving.lock();
        let mut driving = driving.unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(driven) = &*driving {
            return Ok(driven.clone());
        }
        let started = self.streams().drive_with(terms).map_err(Error::System)?;
        Ok(driving.insert((started, terms)).clone())
    }

    /// A flow, written as a pipeline:
    /// `/weather/temperature | filter value > 32 | aggregate mean 10m`.
    ///
    /// What is done with the flow is said by what is returned: `subscribe` and its
    /// like in the text are errors. A text with them is [applied](Milieu::apply).
    ///
    /// # Errors
    /// If it is not one flow; the text shows where.
    pub fn flow(&self, text: &str) -> Result<Stream<'_>, Error> {
        let source = Source::new("flow", text);
        let flow = Language::Pipeline.flow(&source, self.streams().catalogue());
        self.stream_of(flow.map_err(|wrong| shown(&source, &wrong))?)
    }

    /// A flow that was built before.
    ///
    /// # Errors
    /// If layers cannot be followed that its names depend on.
    pub fn stream_of(&self, flow: Flow) -> Result<Stream<'_>, Error> {
        self.follow_layers_of(&flow)?;
        Ok(Stream { milieu: self, flow })
    }
}

/// A flow's mistakes, as a person should read them.
fn shown(source: &Source, wrong: &[Diagnostic]) -> Error {
    Error::Flow(render(source, wrong, false))
}

fn of_flow(wrong: &Diagnostic) -> Error {
    Error::Flow(render(
        &Source::new("flow", ""),
        std::slice::from_ref(wrong),
        false,
    ))
}

fn of_naming(wrong: impl std::fmt::Display) -> Error {
    Error::Naming(wrong.to_string())
}

/// The queries that a flow reads.
fn queries(flow: &Flow) -> Vec<Query> {
    let mut queries = Vec::new();
    flow.visit(&mut |flow| {
        if let Flow::Stream(name) = flow {
            queries.extend(Query::parse(name));
        }
    });
    queries
}

impl Stream<'_> {
    /// The flow itself.
    #[must_use]
    pub fn as_flow(&self) -> &Flow {
        &self.flow
    }

    /// Subscribes by a queue. Names that depend on layers follow those that are
    /// active globally.
    ///
    /// # Errors
    /// If an operator refuses its parameters.
    pub fn subscribe(&self, delivery: Delivery) -> Result<Subscriber, Error> {
        let streams = self.milieu.streams();
        let subscriber = streams.subscribe(&self.flow, delivery);
        subscriber.map_err(|wrong| of_flow(&wrong))
    }

    /// Subscribes by a callback, which must neither block nor take long.
    ///
    /// # Errors
    /// If an operator refuses its parameters.
    pub fn listen(
        &self,
        callback: impl FnMut(&Event) + Send + 'static,
    ) -> Result<Listening, Error> {
        let listening = self.milieu.streams().listen(&self.flow, callback);
        listening.map_err(|wrong| of_flow(&wrong))
    }

    /// Publishes what the flow makes under a name.
    ///
    /// # Errors
    /// If something stands there, or the flow reads the name itself.
    pub fn publish(&self, name: &str) -> Result<Named, Error> {
        self.milieu
            .streams()
            .publish(name, &self.flow)
            .map_err(of_naming)
    }

    /// Lets a name stand for the names that each event of the flow says; see
    /// [`Streams::bind_flow`].
    ///
    /// # Errors
    /// If something stands there, or the flow reads the name itself.
    pub fn bind(&self, name: &str) -> Result<Bound, Error> {
        let bound = self.milieu.streams().bind_flow(name, &self.flow);
        bound.map_err(of_naming)
    }
}
