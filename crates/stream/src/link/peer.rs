//! What is known of a peer, and what it is still to be told.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use milieu_keys::Name;
use milieu_transfer::Mode;

use super::message::Ended;
use super::waiting::Load;
use crate::engine::{CloseReason, Peer};
use crate::names::Rights;

/// A peer, for pictures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerView {
    /// What the engine calls it.
    pub name: Arc<str>,
    /// Whether it is there.
    pub presence: Presence,
    /// Of whom its events are, and which of its lives it is in, if it has said so.
    pub identity: Option<(Arc<str>, u64)>,
    /// How many names it has announced that it may publish.
    pub names: usize,
}

/// Whether a peer is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is.
    Here,
    /// It was, and its names ended for this reason.
    Left(CloseReason),
}

/// A peer that is there.
pub(super) struct Known {
    pub peer: Peer,
    pub rights: Arc<Rights>,
    /// Nothing until one has something to say to the other.
    pub talk: Option<Box<Talk>>,
}

/// What has been said, and what is still to be.
#[derive(Default)]
pub(super) struct Talk {
    /// What it has said of itself.
    pub said: Option<Said>,
    /// The number of the last control frame from it, and of the last one to it.
    pub seen: u64,
    pub sequence: u64,
    /// What it does not know yet, and whether it may have been told something of
    /// that before.
    pub dirty: BTreeMap<Item, bool>,
    /// What the control frame says that is under way, and its receipt.
    pub under_way: Option<(u64, Vec<Item>)>,
    pub has_said_hello: bool,
    /// The names that it has announced, by its numbers.
    pub names: HashMap<u64, Name>,
    /// What it wants, by its channels.
    pub wants: BTreeMap<u32, Arc<str>>,
    /// Which of its wants will not be met, until it knows.
    pub ended: BTreeMap<u32, Ended>,
    /// How much waits for it.
    pub load: Load,
}

/// What a peer says of itself.
pub(super) struct Said {
    pub origin: Arc<str>,
    pub incarnation: u64,
    /// Those of its modes that are known here, by their place.
    pub modes: Vec<Option<Arc<dyn Mode>>>,
}

/// What a peer is to be told; what exactly shows when it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Item {
    Hello,
    /// Whether there is the name of this number.
    Name(u64),
    /// Whether something is wanted on this channel.
    Want(u32),
    /// That what it wants on this channel will not come.
    Ended(u32),
}

impl Talk {
    /// It has been told these.
    pub fn knows(&mut self, items: &[Item]) {
        for item in items {
            if let Item::Ended(channel) = item {
                self.ended.remove(channel);
            }
        }
    }
}

impl Known {
    pub fn talk(&mut self) -> &mut Talk {
        self.talk.get_or_insert_default()
    }

    /// It is to be told of something new.
    pub fn tell(&mut self, item: Item) {
        let talk = self.talk();
        if !talk.has_said_hello {
            talk.dirty.insert(Item::Hello, false);
        }
        talk.dirty.entry(item).or_insert(false);
    }

    /// It is to be told that something is over, unless it has never heard of it:
    /// what comes and goes while it takes nothing leaves nothing behind.
    pub fn tell_end(&mut self, item: Item) {
        let talk = self.talk();
        if talk.dirty.get(&item) == Some(&false) {
            talk.dirty.remove(&item);
        } else {
            talk.dirty.insert(item, true);
        }
    }

    /// What is known of it, for pictures.
    pub fn view(&self, presence: Presence) -> PeerView {
        let talk = self.talk.as_ref();
        let said = talk.and_then(|talk| talk.said.as_ref());
        PeerView {
            name: Arc::clone(&self.peer.name),
            presence,
            identity: said.map(|said| (Arc::clone(&said.origin), said.incarnation)),
            names: talk.map_or(0, |talk| talk.names.len()),
        }
    }
}
