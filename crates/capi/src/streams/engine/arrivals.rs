//! What an engine of the program tells when it is polled.

use std::{collections::BTreeSet, sync::Arc};

use milieu::{
    stream::engine::{
        Channel, CloseReason, Frame, NEWS_MAX, News, Outcome, Payload, Peer, PeerId, Receipt,
    },
    transfer::Time,
};

use super::milieu_parcel;
use crate::{
    abi::{MILIEU_INVALID, MILIEU_REFUSED, milieu_result, milieu_text},
    call::{Failure, call, null},
    lent::{Lend, Lent},
};

/// What has been told, and of whom more may be.
pub struct Arrivals {
    news: Vec<News>,
    /// How many there were before.
    before: usize,
    peers: BTreeSet<PeerId>,
}

impl Lend for Arrivals {
    const TAG: [u8; 4] = *b"arri";
    const NAME: &'static str = "milieu_arrivals";
}

/// See `engines.h`.
#[allow(non_camel_case_types)]
pub type milieu_arrivals = Lent<Arrivals>;

impl Arrivals {
    pub(super) fn new(news: Vec<News>, peers: BTreeSet<PeerId>) -> Arrivals {
        Arrivals {
            before: news.len(),
            news,
            peers,
        }
    }

    pub(super) fn told(&self) -> usize {
        self.news.len() - self.before
    }

    pub(super) fn into_parts(self) -> (Vec<News>, BTreeSet<PeerId>) {
        (self.news, self.peers)
    }

    fn tell(&mut self, news: News) -> Result<(), Failure> {
        if self.told() == NEWS_MAX {
            let text = format!(
                "{NEWS_MAX} are told at once at most; tell the others when the engine is next \
                 polled, which is at once"
            );
            return Err(Failure::new(MILIEU_REFUSED, text));
        }
        self.news.push(news);
        Ok(())
    }

    /// A peer that is there.
    fn peer(&self, peer: u64) -> Result<PeerId, Failure> {
        let id = PeerId(peer);
        match self.peers.contains(&id) {
            true => Ok(id),
            false => Err(Failure::new(
                MILIEU_INVALID,
                format_args!(
                    "there is no peer {peer}; tell by milieu_arrivals_joined that it has come, and \
                     nothing of it after milieu_arrivals_left"
                ),
            )),
        }
    }
}

/// # Safety
///
/// The bytes can be read.
unsafe fn copied(bytes: milieu_text, what: &str) -> Result<Arc<[u8]>, Failure> {
    // SAFETY: as the caller vouches.
    Ok(unsafe { bytes.bytes(what)? }.into())
}

/// A peer has come.
///
/// # Safety
///
/// As `engines.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_arrivals_joined(
    arrivals: *mut milieu_arrivals,
    peer: u64,
    name: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (arrivals, name) = unsafe { (Lent::find(arrivals)?, name.read("name")?) };
        let id = PeerId(peer);
        if arrivals.peers.contains(&id) {
            let text = format!(
                "peer {peer} is there already; one that comes back has a number that no other one \
                 has had"
            );
            return Err(Failure::new(MILIEU_INVALID, text));
        }
        arrivals.tell(News::Joined(Peer {
            id,
            name: name.into(),
            is_here: false,
        }))?;
        arrivals.peers.insert(id);
        Ok(())
    })
}

/// A peer has left.
///
/// # Safety
///
/// As `engines.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_arrivals_left(
    arrivals: *mut milieu_arrivals,
    peer: u64,
    reason: u32,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let arrivals = unsafe { Lent::find(arrivals)? };
        let reason = match reason {
            0 => CloseReason::Done,
            1 => CloseReason::Lost,
            2 => CloseReason::Misbehaved,
            _ => {
                let text = format!("there is no milieu_close_reason {reason}");
                return Err(Failure::new(MILIEU_INVALID, text));
            }
        };
        let peer = arrivals.peer(peer)?;
        arrivals.tell(News::Left(peer, reason))?;
        arrivals.peers.remove(&peer);
        Ok(())
    })
}

/// A frame has come.
///
/// # Safety
///
/// As `engines.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_arrivals_frame(
    arrivals: *mut milieu_arrivals,
    parcel: *const milieu_parcel,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (arrivals, parcel) = unsafe {
            (
                Lent::find(arrivals)?,
                parcel.as_ref().ok_or_else(|| null("parcel"))?,
            )
        };
        let from = arrivals.peer(parcel.peer)?;
        let frame = Frame {
            incarnation: parcel.incarnation,
            sequence: parcel.sequence,
            time: Time::from_nanoseconds(parcel.time_ns),
            mode: parcel.mode,
            schema: parcel.schema,
            // SAFETY: as the caller vouches.
            payload: Payload::Bytes(unsafe { copied(parcel.payload, "payload")? }),
        };
        arrivals.tell(News::Frame(from, Channel(parcel.channel), frame))
    })
}

/// What has become of a parcel.
///
/// # Safety
///
/// As `engines.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_arrivals_receipt(
    arrivals: *mut milieu_arrivals,
    receipt: u64,
    delivered: bool,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let arrivals = unsafe { Lent::find(arrivals)? };
        let outcome = match delivered {
            true => Outcome::Delivered,
            false => Outcome::Lost,
        };
        arrivals.tell(News::Receipt(Receipt(receipt), outcome))
    })
}

/// There is credit again.
///
/// # Safety
///
/// As `engines.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_arrivals_credit(
    arrivals: *mut milieu_arrivals,
    peer: u64,
    channel: u32,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let arrivals = unsafe { Lent::find(arrivals)? };
        let peer = arrivals.peer(peer)?;
        arrivals.tell(News::Credit(peer, Channel(channel)))
    })
}

/// A peer asks something.
///
/// # Safety
///
/// As `engines.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_arrivals_request(
    arrivals: *mut milieu_arrivals,
    peer: u64,
    number: u64,
    question: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (arrivals, question) =
            unsafe { (Lent::find(arrivals)?, copied(question, "question")?) };
        let peer = arrivals.peer(peer)?;
        arrivals.tell(News::Request(peer, number, question))
    })
}

/// What came of a question.
///
/// # Safety
///
/// As `engines.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_arrivals_reply(
    arrivals: *mut milieu_arrivals,
    peer: u64,
    number: u64,
    answer: *const milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (arrivals, answer) = unsafe { (Lent::find(arrivals)?, answer.as_ref()) };
        let answer = match answer {
            // SAFETY: as the caller vouches.
            Some(answer) => Some(unsafe { copied(*answer, "answer")? }),
            None => None,
        };
        let peer = arrivals.peer(peer)?;
        arrivals.tell(News::Reply(peer, number, answer))
    })
}
