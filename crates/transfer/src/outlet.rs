//! Shared serialization: what many receivers want in the same form is encoded
//! once.

use std::fmt;
use std::sync::Arc;

use crate::error::Error;
use crate::event::Event;
use crate::mode::{Encode, Mode};
use crate::private::Rights;

/// Encodes the events of a stream for all its receivers: once for each mode and
/// set of rights in use, whatever their number, and not at all for a mode that
/// nobody wants.
///
/// ```
/// # use std::sync::Arc;
/// # use milieu_transfer::{Delta, Event, Header, Mode, Name, Origin, Outlet, Rights, Stream, Time};
/// let delta: Arc<dyn Mode> = Arc::new(Delta::default());
/// let mut outlet = Outlet::default();
/// let first = outlet.join(&delta, Rights::NONE);
/// let second = outlet.join(&delta, Rights::NONE);
/// # let stream = Arc::new(Stream { name: Name::root(), origin: Origin("o".into()), incarnation: 1 });
/// # let header = Header { stream, time: Time::from_seconds(0), sequence: 1, quality: None };
/// let event = Event::new(header, 21.5);
/// let mut frames = Vec::new();
/// outlet.publish(&event, |receiver, frame| {
///     frames.push((receiver, frame.expect("it can be encoded").clone()));
/// });
/// assert_eq!((frames[0].0, frames[1].0), (first, second));
/// assert!(Arc::ptr_eq(&frames[0].1, &frames[1].1));
/// ```
///
/// Source: A. Abram White, *Performance and Interoperability in Solar*,
/// section 7.
#[derive(Debug)]
pub struct Outlet {
    shares: bool,
    chains: Vec<Chain>,
    /// How many receivers have ever joined.
    joined: u64,
    encodings: u64,
}

/// A receiver of an [`Outlet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiverId(u64);

/// One mode, one set of rights, and those who want both.
struct Chain {
    mode: Arc<dyn Mode>,
    rights: Rights,
    encoder: Box<dyn Encode>,
    /// Whether nothing has been encoded, so that the next frame says all.
    is_fresh: bool,
    members: Vec<Member>,
    /// Kept for its room.
    buffer: Vec<u8>,
}

struct Member {
    id: ReceiverId,
    /// Whether it lacks what the next frame builds on.
    needs_all: bool,
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} for {}", self.mode, self.members.len())
    }
}

impl Default for Outlet {
    /// One that shares.
    fn default() -> Outlet {
        Outlet {
            shares: true,
            chains: Vec::new(),
            joined: 0,
            encodings: 0,
        }
    }
}

impl Outlet {
    /// An outlet that encodes for each receiver anew, to compare with.
    #[must_use]
    pub fn unshared() -> Outlet {
        Outlet {
            shares: false,
            ..Outlet::default()
        }
    }

    /// A new receiver that wants events in this mode and has these rights.
    ///
    /// Modes are the same if their names and options are, which is what `Debug`
    /// shows of them.
    pub fn join(&mut self, mode: &Arc<dyn Mode>, rights: Rights) -> ReceiverId {
        let id = ReceiverId(self.joined);
        self.joined += 1;
        let member = Member {
            id,
            needs_all: true,
        };
        let same = |chain: &&mut Chain| chain.rights == rights && is_same(&chain.mode, mode);
        let known = self.chains.iter_mut().find(same);
        match known.filter(|_| self.shares) {
            Some(chain) => chain.members.push(member),
            None => self.chains.push(Chain {
                mode: mode.clone(),
                rights,
                encoder: mode.encoder(rights),
                is_fresh: true,
                members: vec![member],
                buffer: Vec::new(),
            }),
        }
        id
    }

    /// The receiver wants nothing more.
    pub fn leave(&mut self, receiver: ReceiverId) {
        for chain in &mut self.chains {
            chain.members.retain(|member| member.id != receiver);
        }
        self.chains.retain(|chain| !chain.members.is_empty());
    }

    /// The receiver has lost or skipped a frame: the next one it gets says all.
    pub fn lost(&mut self, receiver: ReceiverId) {
        let members = self.chains.iter_mut().flat_map(|chain| &mut chain.members);
        for member in members.filter(|member| member.id == receiver) {
            member.needs_all = true;
        }
    }

    /// Encodes an event and hands out a frame for each receiver, or why there is
    /// none.
    pub fn publish(
        &mut self,
        event: &Event,
        mut deliver: impl FnMut(ReceiverId, Result<&Arc<[u8]>, &Error>),
    ) {
        for chain in &mut self.chains {
            chain.publish(event, &mut self.encodings, &mut deliver);
        }
    }

    /// How many frames have been encoded.
    #[must_use]
    pub fn encodings(&self) -> u64 {
        self.encodings
    }
}

fn is_same(one: &Arc<dyn Mode>, other: &Arc<dyn Mode>) -> bool {
    let same = || one.name() == other.name() && format!("{one:?}") == format!("{other:?}");
    Arc::ptr_eq(one, other) || same()
}

type Frame = Result<Arc<[u8]>, Error>;

impl Chain {
    fn publish(
        &mut self,
        event: &Event,
        encodings: &mut u64,
        deliver: &mut impl FnMut(ReceiverId, Result<&Arc<[u8]>, &Error>),
    ) {
        let next = self.frame(encodings, |encoder, out| encoder.encode(event, out));
        let says_all = self.is_fresh || self.encoder.is_stateless();
        self.is_fresh &= next.is_err();
        let mut whole = None;
        for index in 0..self.members.len() {
            let Member { id, needs_all } = self.members[index];
            if !needs_all || says_all || next.is_err() {
                deliver(id, next.as_ref());
                self.members[index].needs_all &= next.is_err();
                continue;
            }
            let whole = whole.get_or_insert_with(|| {
                self.frame(encodings, |encoder, out| encoder.key_frame(event, out))
            });
            deliver(id, whole.as_ref());
            self.members[index].needs_all = whole.is_err();
        }
    }

    fn frame(
        &mut self,
        encodings: &mut u64,
        encode: impl FnOnce(&mut dyn Encode, &mut Vec<u8>) -> Result<(), Error>,
    ) -> Frame {
        self.buffer.clear();
        *encodings += 1;
        encode(&mut *self.encoder, &mut self.buffer)?;
        Ok(self.buffer.as_slice().into())
    }
}
