//! What other machines publish, and what of it is read here.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use milieu_keys::Name;
use milieu_transfer::{Origin, Stream};

use super::Note;
use super::arrival::Arrival;
use super::control::CONTROL;
use super::peer::{Item, Known};
use super::state::State;
use crate::engine::{Channel, PeerId};
use crate::graph::{Machine, SourceId};
use crate::operator::Now;

/// What other machines publish.
#[derive(Default)]
pub(super) struct Offered {
    pub names: BTreeMap<Name, Offers>,
    /// What of it stands in the naming tree, by the numbers that it has here.
    pub learned: BTreeMap<u64, Learned>,
    /// How many there have been.
    learned_count: u64,
    /// The number of the last channel.
    last_channel: u32,
    /// What is fetched.
    pub arrivals: BTreeMap<(PeerId, Channel), Arrival>,
}

/// Who publishes a name, in the order in which they are preferred.
#[derive(Default)]
pub(super) struct Offers {
    by: BTreeMap<Publisher, Offer>,
    /// The one that the name stands for, by its number.
    taken: Option<u64>,
}

type Publisher = (Arc<str>, Reverse<u64>, PeerId);

/// What a peer publishes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Offer {
    pub number: u64,
    pub retains: bool,
}

/// What stands in the naming tree.
pub(super) struct Learned {
    pub name: Name,
    pub peer: PeerId,
    pub offer: Offer,
    source: SourceId,
    pub channel: Option<Channel>,
}

impl Offered {
    /// What comes from a peer on a channel.
    pub fn fetched(&self, peer: PeerId, channel: Channel) -> Option<&Learned> {
        let arrival = self.arrivals.get(&(peer, channel))?;
        self.learned.get(&arrival.learned)
    }
}

impl State {
    /// A peer publishes a name.
    pub(super) fn offer(
        &mut self,
        machine: &mut Machine,
        now: &Now<'_>,
        id: PeerId,
        name: &Name,
        offer: Offer,
    ) {
        if let Some(publisher) = self.publisher(id) {
            let offers = self.offered.names.entry(name.clone()).or_default();
            offers.by.insert(publisher, offer);
            self.settle(machine, now, name);
        }
    }

    /// A peer no longer publishes the name of this number.
    pub(super) fn withdrawn(
        &mut self,
        machine: &mut Machine,
        now: &Now<'_>,
        id: PeerId,
        number: u64,
    ) {
        let talk = self.peers.get_mut(&id).map(Known::talk);
        let name = talk.and_then(|talk| talk.names.remove(&number));
        let (Some(name), Some(publisher)) = (name, self.publisher(id)) else {
            return;
        };
        if let Some(offers) = self.offered.names.get_mut(&name) {
            // It may have announced the name again.
            let its = offers.by.get(&publisher);
            if its.is_some_and(|offer| offer.number == number) {
                offers.by.remove(&publisher);
            }
        }
        self.settle(machine, now, &name);
    }

    fn publisher(&self, id: PeerId) -> Option<Publisher> {
        let said = self.peers.get(&id)?.talk.as_ref()?.said.as_ref()?;
        Some((Arc::clone(&said.origin), Reverse(said.incarnation), id))
    }

    /// Lets a name stand for the publisher that is preferred now.
    pub(super) fn settle(&mut self, machine: &mut Machine, now: &Now<'_>, name: &Name) {
        let Some(offers) = self.offered.names.get_mut(name) else {
            return;
        };
        let first = offers.by.first_key_value();
        let wanted = first.map(|((_, _, id), offer)| (*id, *offer));
        let learned = offers
            .taken
            .and_then(|taken| self.offered.learned.get(&taken));
        let taken = learned.map(|learned| (learned.peer, learned.offer));
        if wanted == taken {
            if wanted.is_none() {
                self.offered.names.remove(name);
            }
            return;
        }
        if let Some(taken) = offers.taken.take() {
            self.forget(machine, now, taken);
        }
        match wanted {
            Some((peer, offer)) => self.learn(machine, now, name, peer, offer),
            None => drop(self.offered.names.remove(name)),
        }
    }

    fn learn(
        &mut self,
        machine: &mut Machine,
        now: &Now<'_>,
        name: &Name,
        peer: PeerId,
        offer: Offer,
    ) {
        let Some((origin, Reverse(incarnation), _)) = self.publisher(peer) else {
            return;
        };
        let stream = Arc::new(Stream {
            name: name.clone(),
            origin: Origin(origin),
            incarnation,
        });
        self.offered.learned_count += 1;
        let number = self.offered.learned_count;
        let notes = Arc::clone(&self.notes);
        let tell = move |is| notes.add(Note::Read(number, is));
        // Where something stands at the name it is tried again once that has gone.
        let Ok(source) = machine.add_remote(now, stream, offer.retains, tell) else {
            return;
        };
        let learned = Learned {
            name: name.clone(),
            peer,
            offer,
            source,
            channel: None,
        };
        self.offered.learned.insert(number, learned);
        if let Some(offers) = self.offered.names.get_mut(name) {
            offers.taken = Some(number);
        }
    }

    /// Takes out of the naming tree what was learned.
    pub(super) fn forget(&mut self, machine: &mut Machine, now: &Now<'_>, number: u64) {
        self.read(number, false);
        if let Some(learned) = self.offered.learned.remove(&number) {
            machine.remove_source(now, learned.source);
        }
    }

    /// What was learned is read here now, or no longer.
    pub(super) fn read(&mut self, number: u64, is: bool) {
        let Some(learned) = self.offered.learned.get_mut(&number) else {
            return;
        };
        let peer = learned.peer;
        let channel = match (is, learned.channel) {
            (true, None) => {
                let arrivals = &self.offered.arrivals;
                let is_used = |channel| arrivals.contains_key(&(peer, channel));
                let channel = channel_after(Channel(self.offered.last_channel), is_used);
                self.offered.last_channel = channel.0;
                learned.channel = Some(channel);
                let window = u64::from(self.terms.window.get());
                let known = self.peers.get(&peer);
                let may_set =
                    known.is_some_and(|known| known.rights.set.allows(learned.name.as_str()));
                let rights = match may_set {
                    true => milieu_transfer::Rights::SET,
                    false => milieu_transfer::Rights::NONE,
                };
                let arrival = Arrival::new(number, learned.source, rights, window);
                self.offered.arrivals.insert((peer, channel), arrival);
                self.engine().grant(peer, channel, window);
                channel
            }
            (false, Some(channel)) => {
                learned.channel = None;
                if let Some(arrival) = self.offered.arrivals.remove(&(peer, channel)) {
                    self.add_up(&arrival.end());
                }
                self.engine().shut(peer, channel);
                channel
            }
            _ => return,
        };
        if let Some(known) = self.peers.get_mut(&peer) {
            let item = Item::Want(channel.0);
            match is {
                true => known.tell(item),
                false => known.tell_end(item),
            }
            self.untold.insert(peer);
        }
    }

    /// What was wanted will not come: the name is as if it had been withdrawn.
    pub(super) fn not_sent(
        &mut self,
        machine: &mut Machine,
        now: &Now<'_>,
        id: PeerId,
        channel: u32,
    ) {
        let Some(learned) = self.offered.fetched(id, Channel(channel)) else {
            return;
        };
        let number = learned.offer.number;
        self.withdrawn(machine, now, id, number);
    }
}

/// The next channel for events that is not used: they come round.
fn channel_after(last: Channel, is_used: impl Fn(Channel) -> bool) -> Channel {
    let mut next = last;
    loop {
        next = Channel(next.0.wrapping_add(1));
        if next != CONTROL && !is_used(next) {
            return next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_that_come_round_pass_by_those_in_use() {
        let is_used = |channel| [Channel(1), Channel(2)].contains(&channel);
        let last = Channel(u32::MAX - 1);
        assert_eq!(channel_after(last, is_used), Channel(u32::MAX));
        assert_eq!(channel_after(Channel(u32::MAX), is_used), Channel(3));
        assert_eq!(channel_after(CONTROL, |_| false), Channel(1));
    }
}
