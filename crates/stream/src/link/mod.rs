//! Links: one naming tree over several machines.
//!
//! ```text
//!  kitchen: Machine ── Link ── Port ═══ any engine ═══ Port ── Link ── Machine: garden
//!           /oven/temperature   announce ────────────▶   /oven/temperature
//!                               ◀──────────────── want
//!                               events ──────────────▶   subscribers, operators
//! ```
//!
//! A link joins a machine to all others that an [`Engine`] reaches. What
//! these publish stands in the machine's naming tree as if it were published
//! there, and nothing else knows whether it is.
//!
//! ```
//! use milieu_stream::engine::Hub;
//! use milieu_stream::link::Terms;
//! use milieu_stream::{Delivery, Flow, Streams, SystemClock, operators};
//! use milieu_transfer::Origin;
//!
//! let machine = |name: &str| {
//!     Streams::new(operators::catalogue(), SystemClock, Origin(name.into()), 1)
//! };
//! let (kitchen, garden) = (machine("kitchen"), machine("garden"));
//! let hub = Hub::new();
//! let links = [
//!     kitchen.join(hub.join("kitchen"), Terms::open()),
//!     garden.join(hub.join("garden"), Terms::open()),
//! ];
//! // A program has `Driving::join` and a thread for this.
//! let settle = || while links.iter().filter(|link| link.poll()).count() > 0 {};
//!
//! let mut seen = garden.subscribe(&Flow::Stream("/oven/temperature".into()), Delivery::default())?;
//! let oven = kitchen.publisher::<f64>("/oven/temperature")?;
//! settle();
//! let _ = oven.publish(180.0);
//! settle();
//! let event = seen.try_next().expect("it has come over");
//! assert_eq!(event.get::<f64>(), Some(&180.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it does
//!
//! - **Names are announced, events are fetched.** A machine announces what its
//!   own sources and flows publish, to those who may read it. Events of a name
//!   set out only while somebody at the other end reads them: a subscriber, an
//!   operator, a flow that is published. However many do, they travel once.
//!   Services and bindings stay where they are.
//! - **Names do not go round.** What was learned from a machine is announced to
//!   nobody, so that every machine has to reach every other one itself.
//! - **One name, several publishers.** On a machine that publishes a name itself
//!   that is what the name stands for there. Others take the one whose origin
//!   comes first in the order of texts, and of one origin its latest
//!   incarnation; when it goes, the next takes its place. A machine that has
//!   learned a name refuses to publish it too, as it would refuse its own.
//! - **Whoever leaves takes its names along**, and why is [told](Link::peers).
//!   Subscriptions stay, and go on when a machine comes with such a name, the
//!   same one in a new incarnation or another.
//! - **Rights are kept by the machine that grants them.** What a peer may read,
//!   publish, and see and set of private fields is what [`Terms`] say of it, in
//!   every mode; an event that sets what its sender may not set is dropped as denied. Only a peer in
//!   this process that may see all of a name gets events as they are; what others
//!   get is written once for all who keep up and want the same mode with the same
//!   rights. Who is behind gets frames of its own.
//! - **Nobody waits for slow machines.** Each edge has credit. Without any,
//!   events wait in a queue of that edge alone, and are dropped as the receiver's
//!   [delivery](Terms::delivery) says. Publishers are never refused for the sake
//!   of another machine: [`Overflow::Refuse`](crate::Overflow::Refuse) drops the
//!   newest here, and [`Overflow::Close`](crate::Overflow::Close) takes the name away at once.
//! - **Circles over several machines are not found out.** Flows of one machine that
//!   would depend on themselves are refused; one that reads its own name by way of
//!   a flow of another machine runs for as long as events come round.
//! - **The books balance.** Each end of an edge counts for itself
//!   ([`End`](crate::End)); what was sent and has neither arrived nor turned out to
//!   be missing is in flight. An event that others have overtaken is dropped as
//!   late, one that comes twice as a duplicate.
//! - **What is said is said until it has arrived.** What one machine wants the
//!   other to know, it knows in the end, whatever the engine loses, doubles or
//!   turns round: at most one control frame is under way to a peer, it is made
//!   of what is so when it sets out, and after a loss of what is so then.
//! - **Nobody is harmed by what a peer sends.** What cannot be understood, or is
//!   too much, is dropped and [counted](Refusals).
//!
//! Source: A. Abram White, *Performance and Interoperability in Solar*, sections
//! 3.2, 7 and 8.

mod arrival;
mod control;
mod fan;
mod local;
pub mod message;
mod offered;
mod peer;
mod pump;
mod state;
mod waiting;

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

use milieu_transfer::{Body, Limits, Modes, Type};

use crate::engine::{Channel, CloseReason, Engine, Peer, PeerId};
use crate::graph::{Edges, EndView};
use crate::names::{Change, Rights};
use crate::runtime::Streams;
use crate::subscription::Delivery;
use state::State;

pub use peer::{PeerView, Presence};

/// On what terms a machine joins others.
#[derive(Clone)]
pub struct Terms {
    /// What a peer may do here: [`read`](Rights::read) names of this machine and
    /// their [`private`](Rights::private) fields, [`publish`](Rights::publish)
    /// its own, and [`set`](Rights::set) private fields of these. It is asked once, when the peer comes.
    pub rights: Grants,
    /// The modes that are known here, what is liked best first.
    pub modes: Modes,
    /// The types that bodies of events get which come as bytes, where these say
    /// that they are of such a type, or of one that extends it. Others are values.
    pub types: Vec<&'static Type>,
    /// What this machine gets of others where it is slow.
    pub delivery: Delivery,
    /// How many frames of an edge may be under way to here.
    pub window: NonZeroU32,
    /// What events may be like that come.
    pub limits: Limits,
    /// How many names, and how many edges, each peer may have here, and how many
    /// events may wait for it.
    pub bounds: Bounds,
}

/// Says what a peer may do.
pub type Grants = Arc<dyn Fn(&Peer) -> Arc<Rights> + Send + Sync>;

/// What a peer may take of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Names that it has announced.
    pub names: usize,
    /// Edges that it reads, and those that have ended without it knowing yet. Of
    /// each name it has one at most.
    pub edges: usize,
    /// Events that wait for it, on all edges. With so many, one that comes meets
    /// what its edge does where it is full.
    pub waiting: usize,
}

impl Default for Bounds {
    /// 65,536 of each.
    fn default() -> Bounds {
        Bounds {
            names: 1 << 16,
            edges: 1 << 16,
            waiting: 1 << 16,
        }
    }
}

impl Terms {
    /// Every peer may do everything: for machines of one program.
    #[must_use]
    pub fn open() -> Terms {
        let all = Arc::new(Rights::all());
        Terms::of(Arc::new(move |_| Arc::clone(&all)))
    }

    /// The same terms, and bodies of this type stay so on the way: `get` of an event
    /// finds it also where it has come from another process, and so does that of an
    /// event of a type that extends it. Only `delta` and `data-stream` say
    /// which type that is; [`Type::adopt`] makes one of what came in other modes.
    #[must_use]
    pub fn typed<T: Body>(mut self) -> Terms {
        self.types.push(Type::of::<T>());
        self
    }

    /// Each peer may do what this says.
    #[must_use]
    pub fn with(rights: impl Fn(&Peer) -> Rights + Send + Sync + 'static) -> Terms {
        Terms::of(Arc::new(move |peer| Arc::new(rights(peer))))
    }

    fn of(rights: Grants) -> Terms {
        Terms {
            rights,
            types: Vec::new(),
            modes: Modes::standard(),
            delivery: Delivery::default(),
            window: NonZeroU32::new(256).unwrap_or(NonZeroU32::MIN),
            limits: Limits::default(),
            bounds: Bounds::default(),
        }
    }
}

/// What peers have sent and was not taken, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Frames and questions that nobody can understand.
    pub malformed: u64,
    /// What only makes sense after or before something else.
    pub misplaced: u64,
    /// Frames of another incarnation than the peer has said, and those that have
    /// been taken in a later one already.
    pub stale: u64,
    /// Names that the peer may not publish, or wanted and may not read.
    pub denied: u64,
    /// Names and edges beyond the peer's [`Bounds`].
    pub full: u64,
    /// Events on channels that are wanted no more.
    pub gone: u64,
}

/// What joins a machine to others, until it is dropped.
#[must_use = "the machine is alone again when this is dropped"]
pub struct Link {
    streams: Streams,
    inner: Arc<Inner>,
    pump: Option<pump::Pump>,
}

type SharedEngine = Arc<Mutex<Box<dyn Engine>>>;

struct Inner {
    /// Locked by orders to the machine alone, one after the other.
    state: Mutex<State>,
    /// Whether a poll has found something to do.
    is_busy: AtomicBool,
}

/// What was noticed while the machine was at work, for the next poll.
struct Notes {
    notes: Mutex<Vec<Note>>,
    waker: Waker,
}

enum Note {
    /// Names have changed.
    Names(Vec<Change>),
    /// What was learned under this number is read now, or no longer.
    Read(u64, bool),
    /// More has come than this edge holds.
    Over(PeerId, Channel),
}

impl Notes {
    fn add(&self, note: Note) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.push(note);
        let is_first = notes.len() == 1;
        drop(notes);
        if is_first {
            self.waker.wake_by_ref();
        }
    }

    fn take(&self) -> Vec<Note> {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut notes)
    }
}

impl Streams {
    /// Joins these streams to those of all machines that an engine reaches.
    /// Nothing happens but by [`Link::poll`]; a program that has a thread for its
    /// sources uses [`Driving::join`](crate::Driving::join) instead.
    pub fn join(&self, engine: impl Engine + 'static, terms: Terms) -> Link {
        self.join_woken(engine, terms, Waker::noop().clone())
    }

    /// As [`join`](Streams::join). The waker is woken when there is something to
    /// poll for.
    pub fn join_woken(&self, engine: impl Engine + 'static, terms: Terms, waker: Waker) -> Link {
        let notes = Arc::new(Notes {
            notes: Mutex::default(),
            waker,
        });
        let engine: SharedEngine = Arc::new(Mutex::new(Box::new(engine)));
        let state = State::new(self.identity(), engine, notes, terms);
        let inner = Arc::new(Inner {
            state: Mutex::new(state),
            is_busy: AtomicBool::new(false),
        });
        let joining = Arc::clone(&inner);
        self.order(move |machine, now| {
            let edges: Arc<dyn Edges> = joining.clone();
            machine.show_edges(Arc::downgrade(&edges));
            joining.state().begin(machine, now);
        });
        Link {
            streams: self.clone(),
            inner,
            pump: None,
        }
    }
}

impl Link {
    /// Takes in what peers have sent, and tells them what has changed here.
    /// Whether there was anything, as far as it is known already: within a
    /// callback, and where another thread runs the machine, it is done after this
    /// returns.
    pub fn poll(&self) -> bool {
        let inner = Arc::clone(&self.inner);
        self.streams.order(move |machine, now| {
            let is_busy = inner.state().step(machine, now);
            inner.is_busy.fetch_or(is_busy, Ordering::Relaxed);
        });
        self.inner.is_busy.swap(false, Ordering::Relaxed)
    }

    /// Who is there, and who was, by name. Nothing within a callback.
    #[must_use]
    pub fn peers(&self) -> Option<Vec<PeerView>> {
        self.ask(State::peers)
    }

    /// What has been refused so far. Nothing within a callback.
    #[must_use]
    pub fn refusals(&self) -> Option<Refusals> {
        self.ask(|state| state.refusals)
    }

    /// What has become of all events that went over edges that are no more: what
    /// went out, and what came in. Those that are there are in
    /// [`View::ends`](crate::View::ends). Nothing within a callback.
    #[must_use]
    pub fn ended(&self) -> Option<[crate::End; 2]> {
        self.ask(|state| state.ended.clone())
    }

    /// How many frames have been encoded for peers that keep up: one for each
    /// event, mode and set of rights. Nothing within a callback.
    #[must_use]
    pub fn encodings(&self) -> Option<u64> {
        self.ask(|state| state.encodings())
    }

    fn ask<A: Send + 'static>(
        &self,
        question: impl FnOnce(&State) -> A + Send + 'static,
    ) -> Option<A> {
        let inner = Arc::clone(&self.inner);
        self.streams.ask(move |_, _| question(&inner.state()))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.pump = None;
        let inner = Arc::clone(&self.inner);
        self.streams
            .order(move |machine, now| inner.state().finish(machine, now, CloseReason::Done));
    }
}

impl Inner {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Edges for Inner {
    fn ends(&self, into: &mut Vec<EndView>) {
        self.state().ends(into);
    }
}
