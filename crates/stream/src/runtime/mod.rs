//! Streams of a process: the machine, shared by threads.
//!
//! Nobody waits for the machine: whoever publishes or subscribes while it runs
//! leaves an order, which is carried out by whoever runs it. Callbacks and
//! operators may therefore publish and subscribe themselves.

mod alarm;
mod bound;
mod clock;
mod combine;
mod crew;
mod driving;
mod looks;
mod naming;
mod publisher;
mod queue;
mod slot;
mod stepping;
mod subscriber;

use std::collections::HashSet;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};

use milieu_keys::{Name, NameError};
use milieu_transfer::{Event, Origin, Stream, Time};

use crate::catalogue::Catalogue;
use crate::graph::{CannotRestore, Machine, NotRestored, SourceId, View};
use crate::names::Refusal;
use crate::operator::Now;
use alarm::Alarm;
use combine::Combiner;
use looks::Looks;

pub use bound::Bound;
pub use clock::{Clock, SystemClock, VirtualClock};
pub use crew::Blocking;
pub use driving::{Driving, Sourcing};
pub use naming::{CannotName, Drives, Named, Reader, Watching};
pub use publisher::{Published, Publisher};
pub use stepping::{SteppedSource, Stepping};
pub use subscriber::{Listening, Subscriber};

/// All streams of a process, or of a test. Clones are the same streams.
#[derive(Clone)]
pub struct Streams(Arc<Shared>);

struct Shared {
    machine: Combiner<Machine, Order>,
    clock: Arc<dyn Clock>,
    catalogue: Catalogue,
    origin: Origin,
    incarnation: u64,
    /// The names that publishers of this process have.
    names: Mutex<HashSet<Name>>,
    /// How many subscriptions want publishers to be told when they are full.
    refusing: AtomicUsize,
    /// Whom to tell when an operator wants to be woken earlier than before.
    alarm: OnceLock<Arc<Alarm>>,
    /// Who has looked at the graph, and until when that is measured.
    looks: Looks,
}

/// What the machine is to do.
enum Order {
    Publish(Arc<OnceLock<SourceId>>, Event),
    /// And measure how long it takes from this time on.
    Measure(Arc<OnceLock<SourceId>>, Event, Time),
    Do(Task),
}

type Task = Box<dyn FnOnce(&mut Machine, &Now<'_>) + Send>;

impl Streams {
    /// No streams yet. The origin is that of the events that are published here;
    /// the incarnation tells this life of the program from others.
    #[must_use]
    pub fn new(
        catalogue: Catalogue,
        clock: impl Clock + 'static,
        origin: Origin,
        incarnation: u64,
    ) -> Streams {
        Streams(Arc::new(Shared {
            machine: Combiner::new(Machine::new(origin.clone(), incarnation)),
            clock: Arc::new(clock),
            catalogue,
            origin,
            incarnation,
            names: Mutex::default(),
            refusing: AtomicUsize::new(0),
            alarm: OnceLock::new(),
            looks: Looks::default(),
        }))
    }

    /// The operators that flows may name.
    #[must_use]
    pub fn catalogue(&self) -> &Catalogue {
        &self.0.catalogue
    }

    fn clock(&self) -> &dyn Clock {
        &*self.0.clock
    }

    /// Who publishes here, and which life of the program this is.
    pub(crate) fn identity(&self) -> (Origin, u64) {
        (self.0.origin.clone(), self.0.incarnation)
    }

    /// Whether this is within a callback or an operator of these streams, where
    /// nobody can wait for what they answer.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.0.machine.is_at_work_here()
    }

    /// What time it is here.
    #[must_use]
    pub fn now(&self) -> Time {
        self.0.clock.now()
    }

    /// A picture of the operator graph with its books. Nothing while the graph
    /// runs in this very thread, which is what a callback or an operator does.
    #[must_use]
    pub fn view(&self) -> Option<View> {
        self.ask(|machine, _| machine.view())
    }

    /// As [`view`](Streams::view), with what happens in a second, and how long
    /// events take to subscribers.
    ///
    /// Rates are those since an earlier look, at most ten seconds ago: the first
    /// look has none. How long events take is measured for the next two minutes,
    /// as long as somebody looks; while nobody does it costs nothing.
    #[must_use]
    pub fn look(&self) -> Option<View> {
        let (now, view) = self.ask(|machine, now| {
            let now = now.get();
            machine.measure(now..now + looks::MEASURED);
            (now, machine.view())
        })?;
        Some(self.0.looks.add(now, view))
    }

    /// What all operators remember, as bytes for [`restore`](Streams::restore);
    /// as [`view`](Streams::view).
    #[must_use]
    pub fn snapshot(&self) -> Option<Vec<u8>> {
        let catalogue = self.catalogue().clone();
        self.ask(move |machine, _| machine.snapshot(&catalogue))
    }

    /// Takes a snapshot of an earlier life of the program: each operator goes on
    /// from its state when its flow is first subscribed to.
    ///
    /// # Errors
    /// If the bytes are no snapshot, or within a callback; nothing has then
    /// changed.
    pub fn restore(&self, bytes: Vec<u8>) -> Result<(), CannotRestore> {
        let catalogue = self.catalogue().clone();
        let restored = self.ask(move |machine, _| machine.restore(&bytes, &catalogue));
        restored.unwrap_or(Err(CannotRestore::Inside))
    }

    /// The states of the snapshot that no operator has got, and why; as
    /// [`view`](Streams::view).
    #[must_use]
    pub fn not_restored(&self) -> Option<Vec<NotRestored>> {
        self.ask(|machine, _| machine.not_restored())
    }

    /// When operators want to do something without an event; as
    /// [`view`](Streams::view).
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        self.ask(|machine, _| machine.due()).flatten()
    }

    /// Lets operators do what they wanted to do by now.
    pub fn wake(&self) {
        self.order(|machine, now| machine.wake(now));
    }

    /// Publishes an event of a source.
    #[inline]
    fn publish_from(&self, source: &Arc<OnceLock<SourceId>>, event: Event) {
        let source = Arc::clone(source);
        self.submit(match self.0.looks.measures(&*self.0.clock) {
            None => Order::Publish(source, event),
            Some(published) => Order::Measure(source, event, published),
        });
    }

    pub(crate) fn order(&self, order: impl FnOnce(&mut Machine, &Now<'_>) + Send + 'static) {
        self.submit(Order::Do(Box::new(order)));
    }

    #[inline]
    fn submit(&self, order: Order) {
        self.0.machine.submit(order, |machine, order| {
            let clock = || self.0.clock.now();
            let now = Now::new(&clock);
            match order {
                Order::Publish(source, event) => {
                    if let Some(source) = source.get() {
                        machine.publish(&now, *source, &event);
                    }
                }
                Order::Measure(source, event, published) => {
                    if let Some(source) = source.get() {
                        machine.publish_measured(&now, *source, &event, published);
                    }
                }
                Order::Do(order) => order(machine, &now),
            }
            if let Some(alarm) = self.0.alarm.get() {
                alarm.set(machine.due());
            }
        });
    }

    /// Asks the machine and waits for the answer. Nothing if it runs in this
    /// thread, further up.
    pub(crate) fn ask<A: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Machine, &Now<'_>) -> A + Send + 'static,
    ) -> Option<A> {
        if self.is_inside() {
            return None;
        }
        let answer = Arc::new(Mutex::new(None));
        // A channel of answers would be compiled for each kind of them.
        let (answered, done) = mpsc::channel::<()>();
        let place = Arc::clone(&answer);
        self.order(move |machine, now| {
            let answer = question(machine, now);
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
            drop(answered);
        });
        // Its end is that of the order, which may not have been carried out.
        _ = done.recv();
        let mut answer = answer.lock().unwrap_or_else(PoisonError::into_inner);
        answer.take()
    }

    fn stream(&self, name: Name) -> Arc<Stream> {
        Arc::new(Stream {
            name,
            origin: self.0.origin.clone(),
            incarnation: self.0.incarnation,
        })
    }

    /// Takes a name for a publisher.
    fn claim(&self, name: &str) -> Result<Name, CannotPublish> {
        let parsed = Name::parse(name).map_err(CannotPublish::NoName)?;
        let mut names = self.0.names.lock().unwrap_or_else(PoisonError::into_inner);
        match names.insert(parsed.clone()) {
            true => Ok(parsed),
            false => Err(CannotPublish::Taken(parsed)),
        }
    }

    fn give_back(&self, name: &Name) {
        let mut names = self.0.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.remove(name);
    }
}

/// Why nothing can be published under a name.
#[derive(Debug)]
pub enum CannotPublish {
    /// It is no name.
    NoName(NameError),
    /// Another publisher has it.
    Taken(Name),
    /// Something else stands there, or it cannot be taken.
    Refused(Refusal),
}

impl std::fmt::Display for CannotPublish {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CannotPublish::NoName(error) => error.fmt(f),
            CannotPublish::Refused(refusal) => refusal.fmt(f),
            CannotPublish::Taken(name) => write!(
                f,
                "`{}` has a publisher already; drop it first, or publish under another name and \
                 merge them",
                name.as_str()
            ),
        }
    }
}

impl std::error::Error for CannotPublish {}
