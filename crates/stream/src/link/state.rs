//! A link at work: it is polled, and does what has to be done.
//!
//! All of this happens while the machine is at work for the link. What others
//! notice while the machine is at work for them they leave as notes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::task::Poll;

use milieu_transfer::{Mode, Origin};

use super::control::{CONTROL, CONTROL_WINDOW};
use super::local::Local;
use super::message::{self, Question};
use super::offered::Offered;
use super::peer::{Item, Known, PeerView, Presence};
use super::{Note, Notes, Refusals, SharedEngine, Terms};
use crate::books::Dropped;
use crate::engine::{
    Capabilities, Channel, CloseReason, Engine, Frame, News, Peer, PeerId, Receipt,
};
use crate::graph::{End, EndView, Machine};
use crate::names::{Change, Query, Rights, WatchId};
use crate::operator::{Now, Reason};

/// How often a poll goes round before others have the machine.
const ROUNDS_MAX: usize = 16;

/// How many peers are remembered that have left.
const LEFT_MAX: usize = 256;

pub(super) struct State {
    pub application: Arc<str>,
    pub incarnation: u64,
    pub engine: SharedEngine,
    pub capabilities: Capabilities,
    pub notes: Arc<Notes>,
    pub terms: Terms,
    pub peers: BTreeMap<PeerId, Known>,
    left: VecDeque<PeerView>,
    pub local: Local,
    pub offered: Offered,
    /// Peers that are to be told something.
    pub untold: BTreeSet<PeerId>,
    /// Whose control frame a receipt is about.
    pub receipts: BTreeMap<u64, PeerId>,
    pub receipt_count: u64,
    question_count: u64,
    /// Which edge a question is about.
    questions: BTreeMap<(PeerId, u64), Channel>,
    watch: Option<WatchId>,
    pub refusals: Refusals,
    /// What went over edges that are no more.
    pub ended: [End; 2],
    /// How many frames were encoded for names that nobody wants any more.
    pub encoded: u64,
    /// Kept for its room.
    news: Vec<News>,
}

impl State {
    pub fn new(
        (origin, incarnation): (Origin, u64),
        engine: SharedEngine,
        notes: Arc<Notes>,
        terms: Terms,
    ) -> State {
        let capabilities = {
            let engine = engine.lock().unwrap_or_else(PoisonError::into_inner);
            engine.capabilities()
        };
        State {
            application: origin.0,
            incarnation,
            engine,
            capabilities,
            notes,
            terms,
            peers: BTreeMap::new(),
            left: VecDeque::new(),
            local: Local::default(),
            offered: Offered::default(),
            untold: BTreeSet::new(),
            receipts: BTreeMap::new(),
            receipt_count: 0,
            question_count: 0,
            questions: BTreeMap::new(),
            watch: None,
            refusals: Refusals::default(),
            ended: [
                End::Out {
                    offered: 0,
                    sent: 0,
                    dropped: Dropped::default(),
                    waiting: 0,
                },
                End::In {
                    arrived: 0,
                    taken: 0,
                    dropped: Dropped::default(),
                    missing: 0,
                },
            ],
            encoded: 0,
            news: Vec::new(),
        }
    }

    pub fn engine(&self) -> MutexGuard<'_, Box<dyn Engine>> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to watch the names of the machine.
    pub fn begin(&mut self, machine: &mut Machine, now: &Now<'_>) {
        let notes = Arc::clone(&self.notes);
        if let Ok(all) = Query::parse("/**") {
            let told = move |changes: &[Change]| notes.add(Note::Names(changes.to_vec()));
            self.watch = machine.watch(now, all, Rights::all(), told).ok();
        }
        self.notes.waker.wake_by_ref();
    }

    /// Leaves the others.
    pub fn finish(&mut self, machine: &mut Machine, now: &Now<'_>, reason: CloseReason) {
        if let Some(watch) = self.watch.take() {
            machine.unwatch(watch);
        }
        self.engine().close(reason);
        self.peers.clear();
        self.offered.names.clear();
        while let Some((number, _)) = self.offered.learned.first_key_value() {
            self.forget(machine, now, *number);
        }
        while let Some(name) = self.local.fans.keys().next().cloned() {
            self.end_fan(machine, &name);
        }
    }

    /// Does what there is to do. False: there was nothing.
    pub fn step(&mut self, machine: &mut Machine, now: &Now<'_>) -> bool {
        let mut is_busy = false;
        for _ in 0..ROUNDS_MAX {
            let notes = self.notes.take();
            let mut round = !notes.is_empty();
            for note in notes {
                self.note(machine, now, note);
            }
            let mut news = std::mem::take(&mut self.news);
            let polled = self.engine().poll(&self.notes.waker, &mut news);
            round |= polled == Poll::Ready(());
            for news in news.drain(..) {
                self.take_in(machine, now, news);
            }
            self.news = news;
            round |= self.tell();
            if !round {
                return is_busy;
            }
            is_busy = true;
        }
        // Others come first.
        self.notes.waker.wake_by_ref();
        is_busy
    }

    fn note(&mut self, machine: &mut Machine, now: &Now<'_>, note: Note) {
        match note {
            Note::Names(changes) => {
                for change in changes {
                    self.look_at(machine, change.name().as_str());
                    if let Change::Left(name) = change {
                        self.settle(machine, now, &name);
                    }
                }
            }
            Note::Read(number, is) => self.read(number, is),
            Note::Over(peer, channel) => self.over(machine, peer, channel),
        }
    }

    fn take_in(&mut self, machine: &mut Machine, now: &Now<'_>, news: News) {
        match news {
            News::Joined(peer) => self.meet(peer),
            News::Left(peer, reason) => self.leave(machine, now, peer, reason),
            News::Frame(from, CONTROL, frame) => self.control(machine, now, from, &frame),
            News::Frame(from, channel, frame) => self.event(machine, now, from, channel, frame),
            News::Receipt(Receipt(number), outcome) => self.receipt(number, outcome),
            News::Credit(peer, CONTROL) => {
                if self
                    .peers
                    .get(&peer)
                    .is_some_and(|peer| peer.talk.is_some())
                {
                    self.untold.insert(peer);
                }
            }
            News::Credit(peer, channel) => {
                let talk = self.peers.get(&peer).and_then(|known| known.talk.as_ref());
                let name = talk.and_then(|talk| talk.wants.get(&channel.0));
                if let Some(fanned) = name.and_then(|name| self.local.fans.get(name)) {
                    fanned.fan.resume(peer, channel);
                }
            }
            News::Request(from, number, question) => self.answer(from, number, &question),
            News::Reply(from, number, _) => {
                let channel = self.questions.remove(&(from, number));
                let arrivals = &mut self.offered.arrivals;
                let arrival = channel.and_then(|channel| arrivals.get_mut(&(from, channel)));
                // The frame that says all may be lost too: then it is asked for again.
                if let Some(arrival) = arrival {
                    arrival.is_asked = false;
                }
            }
        }
    }

    fn meet(&mut self, peer: Peer) {
        self.engine().grant(peer.id, CONTROL, CONTROL_WINDOW);
        let id = peer.id;
        let mut known = Known {
            rights: (self.terms.rights)(&peer),
            peer,
            talk: None,
        };
        for (name, (number, _)) in &self.local.names {
            if known.rights.read.allows(name) {
                known.tell(Item::Name(*number));
                self.untold.insert(id);
            }
        }
        self.peers.insert(id, known);
    }

    fn leave(&mut self, machine: &mut Machine, now: &Now<'_>, id: PeerId, reason: CloseReason) {
        self.untold.remove(&id);
        let Some(known) = self.peers.get(&id) else {
            return;
        };
        let view = known.view(Presence::Left(reason));
        let names: Vec<_> = known
            .talk
            .iter()
            .flat_map(|talk| talk.names.keys().copied())
            .collect();
        let wants: Vec<_> = known
            .talk
            .iter()
            .flat_map(|talk| talk.wants.clone())
            .collect();
        for name in names {
            self.withdrawn(machine, now, id, name);
        }
        self.peers.remove(&id);
        for (channel, name) in wants {
            self.end_edge(machine, &name, id, channel);
        }
        self.untold.remove(&id);
        self.receipts.retain(|_, peer| *peer != id);
        self.questions.retain(|(peer, _), _| *peer != id);
        if self.left.len() == LEFT_MAX {
            self.left.pop_front();
        }
        self.left.push_back(view);
    }

    fn event(
        &mut self,
        machine: &mut Machine,
        now: &Now<'_>,
        from: PeerId,
        channel: Channel,
        frame: Frame,
    ) {
        let known = self.peers.get(&from);
        let said = known.and_then(|known| known.talk.as_ref()?.said.as_ref());
        let arrival = self.offered.arrivals.get_mut(&(from, channel));
        let (Some(arrival), Some(said)) = (arrival, said) else {
            self.refusals.gone += 1;
            return;
        };
        if frame.incarnation != said.incarnation {
            self.refusals.stale += 1;
            arrival.refuse(Reason::Stale);
            return;
        }
        let mode = |number: u32| -> Option<&dyn Mode> {
            let place = (number as usize).checked_sub(1)?;
            said.modes.get(place)?.as_deref()
        };
        let taken = arrival.take(frame, &self.terms, mode);
        let source = arrival.source;
        if let Some(frames) = arrival.grant(u64::from(self.terms.window.get())) {
            let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
            engine.grant(from, channel, frames);
        }
        match taken {
            Ok(event) => {
                machine.publish(now, source, &event);
            }
            Err(Reason::Lost) if !arrival.is_asked => {
                arrival.is_asked = true;
                self.ask_for_whole(from, channel);
            }
            Err(_) => {}
        }
    }

    fn ask_for_whole(&mut self, from: PeerId, channel: Channel) {
        self.question_count += 1;
        let number = self.question_count;
        let question = message::encode_question(Question::Whole(channel.0));
        let asked = self.engine().request(from, number, question.into());
        match asked {
            Ok(()) => drop(self.questions.insert((from, number), channel)),
            Err(_) => {
                if let Some(arrival) = self.offered.arrivals.get_mut(&(from, channel)) {
                    arrival.is_asked = false;
                }
            }
        }
    }

    fn answer(&mut self, from: PeerId, number: u64, question: &[u8]) {
        let is_met = match message::decode_question(question) {
            Ok(Question::Whole(channel)) => {
                let talk = self.peers.get(&from).and_then(|known| known.talk.as_ref());
                let name = talk.and_then(|talk| talk.wants.get(&channel));
                let fanned = name.and_then(|name| self.local.fans.get(name));
                fanned.is_some_and(|its| its.fan.repeat(from, Channel(channel)))
            }
            Err(_) => {
                self.refusals.malformed += 1;
                false
            }
        };
        let answer: Arc<[u8]> = Arc::from([u8::from(is_met)]);
        self.engine().reply(from, number, answer);
    }

    pub fn peers(&self) -> Vec<PeerView> {
        let here = self.peers.values().map(|known| known.view(Presence::Here));
        let mut all: Vec<PeerView> = self.left.iter().cloned().chain(here).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    pub fn ends(&self, into: &mut Vec<EndView>) {
        let name_of = |id: PeerId| {
            let known = self.peers.get(&id);
            known.map_or_else(|| "".into(), |known| Arc::clone(&known.peer.name))
        };
        let first = into.len();
        for (name, fanned) in &self.local.fans {
            fanned.fan.ends(|edge, end| {
                into.push(EndView {
                    peer: name_of(edge.peer),
                    name: Arc::clone(name),
                    channel: edge.channel.0,
                    end,
                });
            });
        }
        for learned in self.offered.learned.values() {
            let Some(channel) = learned.channel else {
                continue;
            };
            if let Some(arrival) = self.offered.arrivals.get(&(learned.peer, channel)) {
                into.push(EndView {
                    peer: name_of(learned.peer),
                    name: learned.name.as_str().into(),
                    channel: channel.0,
                    end: arrival.end(),
                });
            }
        }
        let key = |link: &EndView| (Arc::clone(&link.name), Arc::clone(&link.peer), link.channel);
        into[first..].sort_by_key(key);
    }

    pub fn encodings(&self) -> u64 {
        let fans = self.local.fans.values();
        self.encoded + fans.map(|fanned| fanned.fan.encodings()).sum::<u64>()
    }

    /// Adds what an edge has counted to that of all that have ended.
    pub fn add_up(&mut self, end: &End) {
        let [out, into] = &mut self.ended;
        let all = match end {
            End::Out { .. } => out,
            End::In { .. } => into,
        };
        all.add(end);
    }
}
