//! What links say to each other: hearing it, and saying it until it has arrived.
//!
//! At most one control frame is under way to a peer. It is made of what is so
//! when it sets out, and what it says is said again if it is lost: whatever has
//! become of it meanwhile.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::sync::{Arc, PoisonError};

use milieu_transfer::Time;

use super::local::Wanted;
use super::message::{self, Message};
use super::offered::Offer;
use super::peer::{Item, Known, Said};
use super::state::State;
use crate::engine::{Channel, Frame, Outcome, Parcel, Payload, PeerId, Receipt};
use crate::graph::Machine;
use crate::operator::Now;

/// The channel for what links say to each other.
pub(super) const CONTROL: Channel = Channel(0);

/// How many control frames may come that have not been looked at. One is under
/// way at most; others have been lost.
pub(super) const CONTROL_WINDOW: u64 = 8;

/// How large a control frame becomes. What does not fit comes with the next.
const CONTROL_BYTES: usize = 1 << 16;

impl State {
    pub(super) fn control(
        &mut self,
        machine: &mut Machine,
        now: &Now<'_>,
        from: PeerId,
        frame: &Frame,
    ) {
        let Some(known) = self.peers.get_mut(&from) else {
            self.refusals.misplaced += 1;
            return;
        };
        let talk = known.talk();
        if frame.sequence <= talk.seen {
            self.refusals.stale += 1;
            return;
        }
        let messages = match &frame.payload {
            Payload::Bytes(bytes) if bytes.len() <= CONTROL_BYTES => message::decode(bytes).ok(),
            _ => None,
        };
        talk.seen = frame.sequence;
        let granted = frame.sequence.saturating_add(CONTROL_WINDOW);
        self.engine().grant(from, CONTROL, granted);
        let Some(messages) = messages else {
            self.refusals.malformed += 1;
            return;
        };
        for message in messages {
            self.hear(machine, now, from, frame.incarnation, message);
        }
    }

    fn hear(
        &mut self,
        machine: &mut Machine,
        now: &Now<'_>,
        from: PeerId,
        of: u64,
        message: Message,
    ) {
        let Some(known) = self.peers.get_mut(&from) else {
            return;
        };
        let bounds = self.terms.bounds;
        let talk = known.talk.get_or_insert_default();
        match (&talk.said, message) {
            (
                None,
                Message::Hello {
                    origin,
                    incarnation,
                    modes,
                },
            ) if incarnation == of => {
                let known = |offer| {
                    self.terms
                        .modes
                        .choose(std::slice::from_ref(offer))
                        .cloned()
                };
                talk.said = Some(Said {
                    origin,
                    incarnation,
                    modes: modes.iter().map(known).collect(),
                });
            }
            // After a loss that was none it comes again.
            (Some(said), Message::Hello { incarnation, .. }) if said.incarnation == incarnation => {
            }
            (Some(said), _) if said.incarnation != of => self.refusals.stale += 1,
            (None, _) | (_, Message::Hello { .. }) => self.refusals.misplaced += 1,
            (
                _,
                Message::Announce {
                    number,
                    name,
                    retains,
                },
            ) => {
                if !known.rights.publish.allows(name.as_str()) {
                    self.refusals.denied += 1;
                } else if talk.names.len() >= bounds.names {
                    self.refusals.full += 1;
                } else if let Entry::Vacant(free) = talk.names.entry(number) {
                    free.insert(name.clone());
                    self.offer(machine, now, from, &name, Offer { number, retains });
                }
            }
            (_, Message::Withdraw { number }) => self.withdrawn(machine, now, from, number),
            (
                _,
                Message::Want {
                    number,
                    channel,
                    delivery,
                    modes,
                },
            ) => {
                let wanted = Wanted {
                    number,
                    channel,
                    delivery,
                    modes,
                };
                self.want(machine, now, from, wanted);
            }
            (_, Message::Unwant { channel }) => {
                self.unwant(machine, from, channel);
            }
            (_, Message::Ended { channel, .. }) => self.not_sent(machine, now, from, channel),
        }
    }

    pub(super) fn receipt(&mut self, number: u64, outcome: Outcome) {
        let Some(id) = self.receipts.remove(&number) else {
            return;
        };
        let Some(talk) = self.peers.get_mut(&id).map(Known::talk) else {
            return;
        };
        if let Some((_, items)) = talk.under_way.take_if(|(its, _)| *its == number) {
            match outcome {
                // It may have come all the same.
                Outcome::Lost => talk
                    .dirty
                    .extend(items.into_iter().map(|item| (item, true))),
                Outcome::Delivered => talk.knows(&items),
            }
        }
        if !talk.dirty.is_empty() {
            self.untold.insert(id);
        }
    }

    /// Tells peers what they do not know yet. False: nobody could be told.
    pub(super) fn tell(&mut self) -> bool {
        let mut told = false;
        for id in std::mem::take(&mut self.untold) {
            told |= self.tell_peer(id);
        }
        told
    }

    fn tell_peer(&mut self, id: PeerId) -> bool {
        if self.engine().credit(id, CONTROL) == 0 {
            return false;
        }
        let most = CONTROL_BYTES.min(self.capabilities.bytes_max);
        let Some(talk) = self.peers.get(&id).and_then(|known| known.talk.as_ref()) else {
            return false;
        };
        if talk.under_way.is_some() || talk.dirty.is_empty() {
            return false;
        }
        let (mut bytes, mut items) = (message::begin(), Vec::new());
        for item in talk.dirty.keys() {
            let before = bytes.len();
            if let Some(message) = self.message(id, *item) {
                message::encode(&message, &mut bytes);
            }
            if bytes.len() > most && !items.is_empty() {
                bytes.truncate(before);
                break;
            }
            items.push(*item);
        }
        self.receipt_count += 1;
        let (receipt, incarnation) = (self.receipt_count, self.incarnation);
        let Some(talk) = self.peers.get_mut(&id).map(Known::talk) else {
            return false;
        };
        let parcel = Parcel {
            to: id,
            channel: CONTROL,
            frame: Frame {
                incarnation,
                sequence: talk.sequence + 1,
                time: Time::default(),
                mode: 0,
                schema: 0,
                payload: Payload::Bytes(bytes.into()),
            },
            receipt: self.capabilities.receipts.then_some(Receipt(receipt)),
        };
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        if engine.submit(&mut VecDeque::from([parcel])).is_err() {
            return false;
        }
        drop(engine);
        talk.sequence += 1;
        talk.has_said_hello = true;
        for item in &items {
            talk.dirty.remove(item);
        }
        if self.capabilities.receipts {
            talk.under_way = Some((receipt, items));
            self.receipts.insert(receipt, id);
        } else {
            talk.knows(&items);
            if !talk.dirty.is_empty() {
                self.untold.insert(id);
            }
        }
        true
    }

    /// What is so now.
    fn message(&self, to: PeerId, item: Item) -> Option<Message> {
        let known = self.peers.get(&to)?;
        Some(match item {
            Item::Hello => Message::Hello {
                origin: Arc::clone(&self.application),
                incarnation: self.incarnation,
                modes: self.terms.modes.offers(),
            },
            Item::Name(number) => match self.local.numbers.get(&number) {
                None => Message::Withdraw { number },
                Some(name) => Message::Announce {
                    number,
                    name: crate::names::name(name).ok()?,
                    retains: self.local.names.get(name)?.1,
                },
            },
            Item::Want(channel) => match self.offered.fetched(to, Channel(channel)) {
                None => Message::Unwant { channel },
                Some(learned) => Message::Want {
                    number: learned.offer.number,
                    channel,
                    delivery: self.terms.delivery,
                    modes: self.terms.modes.offers(),
                },
            },
            Item::Ended(channel) => Message::Ended {
                channel,
                why: *known.talk.as_ref()?.ended.get(&channel)?,
            },
        })
    }
}
