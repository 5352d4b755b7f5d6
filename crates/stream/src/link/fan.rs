//! The sending end: one subscription for all machines that want a name.
//!
//! A machine that keeps up gets each event while it runs through the graph, in a
//! frame that all share who want the same mode with the same rights. One that
//! has no credit has a queue of its own, and is written to by an encoder of its
//! own, until it has caught up. Whenever its encoder is another, the frames have
//! another number as their schema, and the first of them says all.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use milieu_transfer::{Event, Mode, Outlet, ReceiverId, Rights};

use super::waiting::Waiting;
use super::{Note, Notes, SharedEngine};
use crate::books::Dropped;
use crate::engine::{Channel, Frame, Parcel, Payload, PeerId, Receipt, Refused};
use crate::graph::End;
use crate::operator::Reason;
use crate::receiver::{Delivered, Receiver};
use crate::room::{Place, Room};
use crate::subscription::Delivery;

/// The receipts of events are not told apart: only their credit matters.
pub(super) const OF_EVENT: Receipt = Receipt(0);

/// All machines that want a name. Clones are the same.
#[derive(Clone)]
pub(super) struct Fan(Arc<Mutex<State>>);

struct State {
    engine: SharedEngine,
    notes: Arc<Notes>,
    incarnation: u64,
    outlet: Outlet,
    edges: Vec<Edge>,
    /// Kept for its room.
    batch: VecDeque<Parcel>,
}

/// How events are written for a machine.
#[derive(Clone)]
pub(super) enum Form {
    /// Not at all.
    AsIs,
    /// In a mode, which frames call by this number.
    Written(Arc<dyn Mode>, u32, Rights),
}

/// The way to a machine.
pub(super) struct Edge {
    pub peer: PeerId,
    pub channel: Channel,
    form: Form,
    writer: Writer,
    /// How many encoders there have been.
    writers: u32,
    sequence: u64,
    queue: Waiting,
    room: Room,
    is_over: bool,
    offered: u64,
    sent: u64,
    dropped: Dropped,
}

/// Who writes the frames of an edge.
enum Writer {
    /// The outlet of all.
    Shared(ReceiverId),
    /// An outlet of its own.
    Own(Box<Outlet>),
    /// Nobody yet.
    None,
}

impl Edge {
    pub fn new(
        peer: PeerId,
        channel: Channel,
        form: Form,
        delivery: Delivery,
        queue: Waiting,
    ) -> Edge {
        Edge {
            peer,
            channel,
            form,
            writer: Writer::None,
            writers: 0,
            sequence: 0,
            queue,
            room: Room::of(delivery),
            is_over: false,
            offered: 0,
            sent: 0,
            dropped: Dropped::default(),
        }
    }

    pub fn end(&self) -> End {
        End::Out {
            offered: self.offered,
            sent: self.sent,
            dropped: self.dropped.clone(),
            waiting: self.queue.len() as u64,
        }
    }

    fn drop_for(&mut self, reason: Reason) {
        self.dropped.add(reason, 1);
    }

    /// Lets an event wait. False: there was no room, and the edge ends.
    fn wait(&mut self, event: &Event) -> bool {
        let waiting = self.queue.len();
        let place = match self.queue.is_peer_full() {
            true => self.room.beyond(waiting),
            false => self.room.place(waiting),
        };
        match place {
            Place::Last => {}
            Place::InsteadOfFirst(reason) => {
                self.queue.pop();
                self.drop_for(reason);
            }
            Place::Nowhere(reason) => {
                self.drop_for(reason);
                return true;
            }
            // Nobody holds up publishers of other machines.
            Place::Refused => {
                self.drop_for(Reason::Overflow);
                return true;
            }
            Place::End(reason) => {
                self.drop_for(reason);
                return false;
            }
        }
        self.queue.push(event.clone());
        true
    }

    /// The next frame. The last one that there is credit for is asked after: if
    /// it is lost, its credit comes back, and the edge goes on.
    fn parcel(
        &mut self,
        incarnation: u64,
        event: &Event,
        payload: Payload,
        is_last: bool,
    ) -> Parcel {
        self.sequence += 1;
        self.sent += 1;
        let (mode, schema) = match &self.form {
            Form::AsIs => (0, 0),
            Form::Written(_, number, _) => (*number, self.writers),
        };
        Parcel {
            to: self.peer,
            channel: self.channel,
            frame: Frame {
                incarnation,
                sequence: self.sequence,
                time: event.time(),
                mode,
                schema,
                payload,
            },
            receipt: is_last.then_some(OF_EVENT),
        }
    }

    /// The frame of this number was refused.
    fn take_back(&mut self, why: Refused) {
        self.sequence -= 1;
        self.sent -= 1;
        self.drop_for(match why {
            Refused::NoCredit => Reason::Overflow,
            Refused::Gone | Refused::Closed => Reason::Gone,
            Refused::TooLarge => Reason::Size,
            Refused::NotBytes => Reason::Denied,
        });
    }
}

impl Fan {
    pub fn new(engine: SharedEngine, notes: Arc<Notes>, incarnation: u64) -> Fan {
        Fan(Arc::new(Mutex::new(State {
            engine,
            notes,
            incarnation,
            outlet: Outlet::default(),
            edges: Vec::new(),
            batch: VecDeque::new(),
        })))
    }

    /// Adds an edge, which gets these events first.
    pub fn add(&self, mut edge: Edge, first: &[Event]) {
        let mut state = self.state();
        for event in first {
            edge.offered += 1;
            // What ends because of these ends with the next event.
            edge.wait(event);
        }
        state.edges.push(edge);
        let last = state.edges.len() - 1;
        state.catch_up(last);
    }

    /// Takes an edge out. What waits there is dropped.
    pub fn remove(&self, peer: PeerId, channel: Channel) -> Option<Edge> {
        let mut state = self.state();
        let at = state.at(peer, channel)?;
        state.unshare(at);
        let mut edge = state.edges.swap_remove(at);
        let waiting = edge.queue.clear();
        edge.dropped.add(Reason::Gone, waiting as u64);
        Some(edge)
    }

    /// On which channel a peer gets the events.
    pub fn channel_of(&self, peer: PeerId) -> Option<Channel> {
        let state = self.state();
        let its = state.edges.iter().find(|edge| edge.peer == peer);
        its.map(|edge| edge.channel)
    }

    pub fn is_empty(&self) -> bool {
        self.state().edges.is_empty()
    }

    /// There is credit again.
    pub fn resume(&self, peer: PeerId, channel: Channel) {
        let mut state = self.state();
        if let Some(at) = state.at(peer, channel) {
            state.catch_up(at);
        }
    }

    /// The next frame says all. False: there is no such edge.
    pub fn repeat(&self, peer: PeerId, channel: Channel) -> bool {
        let mut state = self.state();
        let Some(at) = state.at(peer, channel) else {
            return false;
        };
        if let Writer::Shared(receiver) = state.edges[at].writer {
            state.outlet.lost(receiver);
        } else {
            state.edges[at].writer = Writer::None;
        }
        true
    }

    /// What the edges have counted.
    pub fn ends(&self, mut tell: impl FnMut(&Edge, End)) {
        for edge in &self.state().edges {
            tell(edge, edge.end());
        }
    }

    /// How many frames have been encoded for those that keep up.
    pub fn encodings(&self) -> u64 {
        self.state().outlet.encodings()
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn at(&self, peer: PeerId, channel: Channel) -> Option<usize> {
        let is_it = |edge: &Edge| (edge.peer, edge.channel) == (peer, channel);
        self.edges.iter().position(is_it)
    }

    /// The edge is no longer written to by the outlet of all.
    fn unshare(&mut self, at: usize) {
        let writer = &mut self.edges[at].writer;
        if let Writer::Shared(receiver) = *writer {
            self.outlet.leave(receiver);
            *writer = Writer::None;
        }
    }

    fn publish(&mut self, event: &Event) {
        let engine = Arc::clone(&self.engine);
        let mut engine = engine.lock().unwrap_or_else(PoisonError::into_inner);
        for at in 0..self.edges.len() {
            let edge = &mut self.edges[at];
            if edge.is_over {
                continue;
            }
            edge.offered += 1;
            let credit = engine.credit(edge.peer, edge.channel);
            if credit == 0 || !edge.queue.is_empty() {
                self.fall_behind(at, event);
                continue;
            }
            if matches!(edge.form, Form::AsIs) {
                let payload = Payload::Event(event.clone());
                let parcel = edge.parcel(self.incarnation, event, payload, credit == 1);
                self.batch.push_back(parcel);
            }
        }
        let State {
            outlet,
            edges,
            batch,
            incarnation,
            ..
        } = self;
        let mut next = 0;
        outlet.publish(event, |receiver, frame| {
            // Both mostly have one order.
            let is_its = |edge: &Edge| matches!(edge.writer, Writer::Shared(id) if id == receiver);
            let count = edges.len();
            let mut places = (next..count).chain(0..next.min(count));
            let Some(at) = places.find(|at| is_its(&edges[*at])) else {
                return;
            };
            next = at + 1;
            let edge = &mut edges[at];
            match frame {
                Ok(bytes) => {
                    let is_last = engine.credit(edge.peer, edge.channel) == 1;
                    let payload = Payload::Bytes(Arc::clone(bytes));
                    batch.push_back(edge.parcel(*incarnation, event, payload, is_last));
                }
                Err(_) => edge.drop_for(Reason::Malformed),
            }
        });
        while let Err(why) = engine.submit(&mut self.batch) {
            let Some(parcel) = self.batch.pop_front() else {
                break;
            };
            if let Some(at) = self.at(parcel.to, parcel.channel) {
                self.edges[at].take_back(why);
                if let Writer::Shared(receiver) = self.edges[at].writer {
                    self.outlet.lost(receiver);
                }
            }
        }
    }

    fn fall_behind(&mut self, at: usize, event: &Event) {
        self.unshare(at);
        let edge = &mut self.edges[at];
        if !edge.wait(event) {
            edge.is_over = true;
            self.notes.add(Note::Over(edge.peer, edge.channel));
        }
    }

    /// Sends what waits, as far as there is credit. Whoever has caught up shares
    /// frames with the others.
    fn catch_up(&mut self, at: usize) {
        let engine = Arc::clone(&self.engine);
        let mut engine = engine.lock().unwrap_or_else(PoisonError::into_inner);
        let edge = &mut self.edges[at];
        loop {
            let credit = engine.credit(edge.peer, edge.channel);
            let Some(event) = (credit > 0).then(|| edge.queue.pop()).flatten() else {
                break;
            };
            let payload = match &edge.form {
                Form::AsIs => Ok(Payload::Event(event.clone())),
                Form::Written(mode, _, rights) => {
                    if matches!(edge.writer, Writer::None) {
                        let mut outlet = Box::<Outlet>::default();
                        outlet.join(mode, *rights);
                        edge.writer = Writer::Own(outlet);
                        edge.writers += 1;
                    }
                    let mut payload = Err(());
                    if let Writer::Own(outlet) = &mut edge.writer {
                        outlet.publish(&event, |_, frame| {
                            payload = frame.cloned().map(Payload::Bytes).map_err(|_| ());
                        });
                    }
                    payload
                }
            };
            let Ok(payload) = payload else {
                edge.drop_for(Reason::Malformed);
                continue;
            };
            let parcel = edge.parcel(self.incarnation, &event, payload, credit == 1);
            self.batch.push_back(parcel);
            if let Err(why) = engine.submit(&mut self.batch) {
                self.batch.clear();
                edge.take_back(why);
                edge.writer = Writer::None;
            }
        }
        if edge.queue.is_empty() && !matches!(edge.writer, Writer::Shared(_)) {
            if let Form::Written(mode, _, rights) = &edge.form {
                edge.writer = Writer::Shared(self.outlet.join(mode, *rights));
                edge.writers += 1;
            }
        }
    }
}

impl Receiver for Fan {
    fn event(&mut self, event: &Event) -> Delivered {
        self.state().publish(event);
        Delivered::Taken
    }
}
