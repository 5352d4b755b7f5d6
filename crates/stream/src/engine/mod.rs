//! Engines: what carries frames from one machine to another.
//!
//! ```text
//!  Machine ── link ── Engine ════ threads, sockets, Zenoh ════ Engine ── link ── Machine
//! ```
//!
//! An [`Engine`] is one end, a port. It knows which other ports there are, and
//! carries frames to them, which it does not look into. What names are, who may
//! read them, what is sent again and what is kept is none of its business:
//! that is what a [`Link`](crate::link::Link) does over any engine.
//!
//! [`Hub`] joins machines in one process. Whoever writes another engine finds
//! below what it has to keep, and in [`conformance`] tests that hold it to that.
//!
//! # What an engine keeps
//!
//! **It never waits.** No method blocks or takes long, and none is asynchronous.
//! Methods take `&mut self`; the engine may have threads of its own behind it.
//!
//! **Presence.** [`News::Joined`] tells of a peer before anything else of it, and
//! [`News::Left`] after everything else: after the last frame, receipt and reply.
//! What is still under way then is lost. A peer that comes back is another one,
//! with a [`PeerId`] that this port has not seen before. What a peer is called is
//! the engine's word, as far as it can know it; rights are given by it.
//!
//! **Channels** are numbers that the receiver chooses. Frames of one channel come
//! in the order in which they were submitted where [`Capabilities::is_ordered`]
//! says so; there is no order between channels. An engine that has keys derives
//! one from sender, receiver and channel.
//!
//! **Credits.** A channel is closed until its receiver [grants](Engine::grant)
//! credit. A grant is the number of frames that the sender may have submitted on
//! the channel altogether, not so many more: a grant that is repeated, overtaken
//! or lost does no harm, as the next one says all. A smaller number than before
//! is no grant. More than [`Capabilities::credit_max`] beyond what has come is
//! cut to that. What is submitted without credit is refused at once. Whoever was
//! refused so, or has heard from [`credit`](Engine::credit) that there is none, is told
//! [`News::Credit`] once there is some. A frame that the sender was told to
//! be lost, by a receipt, has used no credit. A port that gets more frames than it has
//! granted drops them before it keeps them.
//!
//! **Frames** arrive as they were submitted, or not at all; an engine may lose
//! and double them, if its network does. An event as payload goes only to peers
//! that [share the process](Peer::is_here).
//!
//! **Receipts.** For a parcel with a [`Receipt`] exactly one
//! [`News::Receipt`] comes: delivered, once the receiving port has handed the
//! frame to whoever polls it, or lost, once it is certain that the engine will not
//! deliver it or the peer has left. A frame that was told to be lost may have
//! been delivered in truth, never the other way round.
//!
//! **Requests.** A question gets exactly one [`News::Reply`]: what the peer
//! answered, or that it did not.
//!
//! **Waking.** After a [`poll`](Engine::poll) without news the waker of that poll
//! is woken once there is some: at most once, from any thread, and without any
//! lock of the engine held.
//!
//! **The end.** Dropping an engine closes it. Nothing is submitted or told after
//! it has been closed.
//!
//! Source: A. Abram White, *Performance and Interoperability in Solar*, sections
//! 3.2 and 8.

pub mod conformance;
mod hub;
mod schedule;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::task::{Poll, Waker};

use milieu_transfer::{Event, Time};

pub use hub::{Hub, InFlight, Port};
pub use schedule::{Chances, Passage, Schedule};

/// One end of what carries frames between machines; see the
/// [module](self) for what it keeps.
pub trait Engine: Send {
    /// What it can do; always the same.
    fn capabilities(&self) -> Capabilities;

    /// Submits parcels from the front, until there are none or one is refused,
    /// which stays in front.
    ///
    /// # Errors
    /// Why the parcel in front is refused.
    fn submit(&mut self, batch: &mut VecDeque<Parcel>) -> Result<(), Refused>;

    /// How many frames a peer will take on a channel now. None where it has left.
    fn credit(&mut self, to: PeerId, channel: Channel) -> u64;

    /// Allows a peer to have submitted so many frames on a channel altogether.
    fn grant(&mut self, from: PeerId, channel: Channel, frames: u64);

    /// A channel from a peer is used no more. What is under way there may still
    /// come.
    fn shut(&mut self, from: PeerId, channel: Channel);

    /// Nothing more is sent to a peer on a channel, and its credit is asked for no
    /// more: what is known of it may be forgotten.
    fn leave(&mut self, to: PeerId, channel: Channel);

    /// Asks a peer something. The number comes back with the answer.
    ///
    /// # Errors
    /// [`Refused::Gone`], [`Refused::TooLarge`], and [`Refused::NoCredit`] where
    /// the peer has [`Capabilities::requests_max`] to answer already.
    fn request(&mut self, to: PeerId, number: u64, question: Arc<[u8]>) -> Result<(), Refused>;

    /// Answers what a peer has asked under this number. Nobody is told where it
    /// has not asked, or has left.
    fn reply(&mut self, to: PeerId, number: u64, answer: Arc<[u8]>);

    /// Appends what has happened since: at most [`NEWS_MAX`] at once.
    /// Pending: nothing has; the waker is woken when something does.
    fn poll(&mut self, waker: &Waker, news: &mut Vec<News>) -> Poll<()>;

    /// Ends it: the others are told that it has left, for this reason.
    fn close(&mut self, reason: CloseReason);
}

/// How much [`Engine::poll`] tells at once at most.
pub const NEWS_MAX: usize = 256;

/// What an engine can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether frames to peers that share the process may hold events.
    pub events: bool,
    /// The largest payload of a frame, a question and an answer, in bytes.
    pub bytes_max: usize,
    /// Whether frames of a channel come in their order, as far as they come.
    pub is_ordered: bool,
    /// Whether there are receipts. Without, frames are not lost while the peer
    /// stays, and receipts are not asked for.
    pub receipts: bool,
    /// How many frames may be under way on a channel at most.
    pub credit_max: u64,
    /// How many questions a peer may have to answer at most.
    pub requests_max: usize,
}

/// A port that an engine reaches. None is ever told under the number of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u64);

/// A port that an engine reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its number.
    pub id: PeerId,
    /// What it is called: opaque, and as far as the engine can know, true.
    pub name: Arc<str>,
    /// Whether it is in this process, and takes events as they are.
    pub is_here: bool,
}

/// A way from a port to another; the receiver chooses the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(pub u32);

/// That the sender wants to know what has become of a parcel; it chooses the
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Receipt(pub u64);

/// A frame and where it is to go.
#[derive(Clone, Debug)]
pub struct Parcel {
    /// To which peer.
    pub to: PeerId,
    /// On which of its channels.
    pub channel: Channel,
    /// What.
    pub frame: Frame,
    /// Whether it is told what has become of it.
    pub receipt: Option<Receipt>,
}

/// What goes from a machine to another. To the engine all of it is opaque.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Which life of the sender this is.
    pub incarnation: u64,
    /// Its number on the channel, counted from 1.
    pub sequence: u64,
    /// When what it says happened, by the clock of its origin.
    pub time: Time,
    /// By which mode the payload is written, by agreement of both sides.
    pub mode: u32,
    /// What one must know in order to read it, by agreement of both sides.
    pub schema: u32,
    /// What it says.
    pub payload: Payload,
}

/// What a frame says.
#[derive(Clone, Debug)]
pub enum Payload {
    /// An event, which both sides then share.
    Event(Event),
    /// Bytes.
    Bytes(Arc<[u8]>),
}

impl Payload {
    /// How many bytes it has; an event none.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Payload::Event(_) => 0,
            Payload::Bytes(bytes) => bytes.len(),
        }
    }
}

/// What has happened at a port.
#[derive(Clone, Debug)]
pub enum News {
    /// A peer has come.
    Joined(Peer),
    /// A peer has left; nothing more of it will come.
    Left(PeerId, CloseReason),
    /// A frame has come.
    Frame(PeerId, Channel, Frame),
    /// What has become of a parcel.
    Receipt(Receipt, Outcome),
    /// There is credit again where it was missing.
    Credit(PeerId, Channel),
    /// A peer asks something, under a number of its own.
    Request(PeerId, u64, Arc<[u8]>),
    /// What came of a question of this number; nothing: the peer did not answer.
    Reply(PeerId, u64, Option<Arc<[u8]>>),
}

/// What has become of a parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was handed over.
    Delivered,
    /// It will not come, as far as is known.
    Lost,
}

/// Why something was not submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The receiver takes no more now; [`News::Credit`] comes when it does.
    NoCredit,
    /// There is no such peer, or no longer.
    Gone,
    /// It is larger than [`Capabilities::bytes_max`].
    TooLarge,
    /// It holds an event, and the peer takes bytes alone.
    NotBytes,
    /// The engine is closed.
    Closed,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refused::NoCredit => "the peer takes no more frames now; wait for credit",
            Refused::Gone => "the peer has left",
            Refused::TooLarge => "the frame is larger than the engine carries",
            Refused::NotBytes => "events go only to peers in this process; encode it",
            Refused::Closed => "the engine has been closed",
        })
    }
}

impl std::error::Error for Refused {}

/// Why a peer is no longer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CloseReason {
    /// It has said that it leaves.
    Done,
    /// Nothing is heard of it any more.
    Lost,
    /// It has sent what nobody can understand, or more than was granted.
    Misbehaved,
}

impl CloseReason {
    /// One word, for pictures and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            CloseReason::Done => "done",
            CloseReason::Lost => "lost",
            CloseReason::Misbehaved => "misbehaved",
        }
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
