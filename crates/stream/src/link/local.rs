//! What this machine publishes, and who wants it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use milieu_transfer::Event;

use super::fan::{Edge, Fan, Form};
use super::message::Ended;
use super::peer::{Item, Known};
use super::state::State;
use super::waiting::Waiting;
use crate::engine::{Channel, PeerId};
use crate::graph::{Machine, Planned, ReaderId, SubscriptionId};
use crate::names::{LayerValues, Query, Rights, Scope};
use crate::operator::Now;
use crate::subscription::Delivery;

/// What this machine publishes.
#[derive(Default)]
pub(super) struct Local {
    /// The names with their numbers, and whether they retain.
    pub names: BTreeMap<Arc<str>, (u64, bool)>,
    pub numbers: BTreeMap<u64, Arc<str>>,
    /// How many names there have been.
    count: u64,
    /// The names that others want.
    pub fans: HashMap<Arc<str>, Fanned>,
}

/// A name that others want.
pub(super) struct Fanned {
    pub fan: Fan,
    subscription: SubscriptionId,
    /// It may read this name and no other: whatever the name comes to stand for,
    /// nobody gets events by it that have another name.
    reader: ReaderId,
}

/// What a peer wants.
pub(super) struct Wanted {
    pub number: u64,
    pub channel: u32,
    pub delivery: Delivery,
    pub modes: Vec<milieu_transfer::Offer>,
}

impl State {
    /// Sees what this machine publishes under a name now.
    pub(super) fn look_at(&mut self, machine: &mut Machine, name: &str) {
        let known = self.local.names.get(name).map(|(_, retains)| *retains);
        let is = machine.publishes(name);
        if known == is {
            return;
        }
        if let Some((number, _)) = self.local.names.remove(name) {
            self.local.numbers.remove(&number);
            self.end_fan(machine, name);
            self.tell_of(name, |known| known.tell_end(Item::Name(number)));
        }
        if let Some(retains) = is {
            self.local.count += 1;
            let (number, name) = (self.local.count, Arc::<str>::from(name));
            self.local.numbers.insert(number, Arc::clone(&name));
            self.local
                .names
                .insert(Arc::clone(&name), (number, retains));
            self.tell_of(&name, |known| known.tell(Item::Name(number)));
        }
    }

    /// Tells all who may read a name something of it.
    fn tell_of(&mut self, name: &str, tell: impl Fn(&mut Known)) {
        for (id, known) in &mut self.peers {
            if known.rights.read.allows(name) {
                tell(known);
                self.untold.insert(*id);
            }
        }
    }

    /// Nobody gets events of a name any more.
    pub(super) fn end_fan(&mut self, machine: &mut Machine, name: &str) {
        let Some(fanned) = self.local.fans.remove(name) else {
            return;
        };
        let fan = fanned.fan;
        drop(machine.unsubscribe(fanned.subscription));
        machine.remove_reader(fanned.reader);
        self.encoded += fan.encodings();
        let mut edges = Vec::new();
        fan.ends(|edge, _| edges.push((edge.peer, edge.channel)));
        for (peer, channel) in edges {
            self.take_edge(&fan, peer, channel);
            if let Some(talk) = self
                .peers
                .get_mut(&peer)
                .and_then(|known| known.talk.as_mut())
            {
                talk.wants.remove(&channel.0);
            }
        }
    }

    /// A peer wants a name.
    pub(super) fn want(
        &mut self,
        machine: &mut Machine,
        now: &Now<'_>,
        id: PeerId,
        wanted: Wanted,
    ) {
        let Wanted {
            number,
            channel,
            delivery,
            modes,
        } = wanted;
        let Some(known) = self.peers.get_mut(&id) else {
            return;
        };
        let bounds = self.terms.bounds;
        // It may have gone while the want was under way: then it is told so.
        let Some(name) = self.local.numbers.get(&number).cloned() else {
            self.refusals.misplaced += u64::from(number == 0 || number > self.local.count);
            return;
        };
        let talk = known.talk();
        if channel == 0 || talk.wants.contains_key(&channel) {
            // The control channel, or one that was repeated after a loss.
            self.refusals.misplaced += u64::from(channel == 0);
            return;
        }
        let may_read = known.rights.read.allows(&name);
        let fanned = self.local.fans.get(&name);
        if let Some(former) = fanned.and_then(|fanned| fanned.fan.channel_of(id)) {
            // Events of a name travel once: what is wanted later takes its place.
            self.refusals.misplaced += 1;
            self.unwant(machine, id, former.0);
        }
        let form = if !may_read {
            self.refusals.denied += 1;
            Err(Ended::Denied)
        } else if self.edges_of(id) >= bounds.edges {
            self.refusals.full += 1;
            Err(Ended::Full)
        } else {
            self.form(id, &name, &modes)
        };
        let Some(known) = self.peers.get_mut(&id) else {
            return;
        };
        match form {
            Ok(form) => {
                known.talk().wants.insert(channel, Arc::clone(&name));
                let queue = Waiting::new(known.talk().load.clone(), bounds.waiting);
                let edge = Edge::new(id, Channel(channel), form, delivery, queue);
                self.send(machine, now, &name, edge);
            }
            Err(why) if known.talk().ended.len() < bounds.edges => {
                known.talk().ended.insert(channel, why);
                known.tell(Item::Ended(channel));
                self.untold.insert(id);
            }
            Err(_) => {}
        }
    }

    /// How many edges a peer has, with those of whose end it does not know yet.
    fn edges_of(&self, id: PeerId) -> usize {
        let talk = self.peers.get(&id).and_then(|known| known.talk.as_ref());
        talk.map_or(0, |talk| talk.wants.len() + talk.ended.len())
    }

    /// How events of a name are written for a peer.
    fn form(
        &self,
        id: PeerId,
        name: &str,
        wanted: &[milieu_transfer::Offer],
    ) -> Result<Form, Ended> {
        let known = self.peers.get(&id).ok_or(Ended::Denied)?;
        let sees_all = known.rights.private.allows(name);
        if sees_all && known.peer.is_here && self.capabilities.events {
            return Ok(Form::AsIs);
        }
        let rights = match sees_all {
            true => milieu_transfer::Rights::READ,
            false => milieu_transfer::Rights::NONE,
        };
        let mode = self.terms.modes.choose(wanted).ok_or(Ended::Mode)?;
        let is_it = |offer: &milieu_transfer::Offer| {
            *offer.name == *mode.name() && offer.version == mode.version()
        };
        let place = self.terms.modes.offers().iter().position(is_it);
        let number = place.ok_or(Ended::Mode)? as u32 + 1;
        Ok(Form::Written(Arc::clone(mode), number, rights))
    }

    fn send(&mut self, machine: &mut Machine, now: &Now<'_>, name: &Arc<str>, edge: Edge) {
        if let Some(fanned) = self.local.fans.get(name) {
            let last: Vec<Event> = machine.last_events(fanned.subscription);
            fanned.fan.add(edge, &last);
            return;
        }
        let Ok(query) = Query::parse(name) else {
            return;
        };
        let Ok(read) = Scope::new([query.clone()]) else {
            return;
        };
        let rights = Rights {
            read,
            ..Rights::default()
        };
        let reader = machine.add_reader(LayerValues::default(), rights);
        let notes = Arc::clone(&self.notes);
        let fan = Fan::new(Arc::clone(&self.engine), notes, self.incarnation);
        fan.add(edge, &[]);
        let planned = Planned::of_query(query);
        let receiver = Box::new(fan.clone());
        // It gets the last event at once, where there is one.
        let subscription = machine.subscribe(
            now,
            planned,
            reader,
            Arc::clone(&self.application),
            receiver,
        );
        let fanned = Fanned {
            fan,
            subscription,
            reader,
        };
        self.local.fans.insert(Arc::clone(name), fanned);
    }

    /// A peer wants nothing more on a channel. Whether it did.
    pub(super) fn unwant(&mut self, machine: &mut Machine, id: PeerId, channel: u32) -> bool {
        let talk = self.peers.get_mut(&id).map(Known::talk);
        let name = talk.and_then(|talk| talk.wants.remove(&channel));
        if let Some(name) = &name {
            self.end_edge(machine, name, id, channel);
        }
        name.is_some()
    }

    /// Ends an edge, and the subscription where it was the last.
    pub(super) fn end_edge(&mut self, machine: &mut Machine, name: &str, id: PeerId, channel: u32) {
        let Some(Fanned { fan, .. }) = self.local.fans.get(name) else {
            return;
        };
        let fan = fan.clone();
        self.take_edge(&fan, id, Channel(channel));
        if fan.is_empty() {
            self.end_fan(machine, name);
        }
    }

    fn take_edge(&mut self, fan: &Fan, id: PeerId, channel: Channel) {
        if let Some(edge) = fan.remove(id, channel) {
            self.add_up(&edge.end());
            self.engine().leave(id, channel);
        }
    }

    /// More has come than an edge holds, which was to end then. It takes the place
    /// of that edge in what it may have until the peer knows.
    pub(super) fn over(&mut self, machine: &mut Machine, id: PeerId, channel: Channel) {
        if !self.unwant(machine, id, channel.0) {
            return;
        }
        if let Some(known) = self.peers.get_mut(&id) {
            known.talk().ended.insert(channel.0, Ended::Overflow);
            known.tell(Item::Ended(channel.0));
            self.untold.insert(id);
        }
    }
}
