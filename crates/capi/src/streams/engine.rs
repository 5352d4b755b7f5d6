//! Engines of the program's own: callbacks that carry frames between machines.
//!
//! ```text
//!  link ──▶ Bridge ──▶ submit, credit, grant, … ──▶ the program
//!       ◀── poll   ◀── milieu_arrivals_…        ◀──
//! ```
//!
//! Properties kept:
//! - events do not leave the process: frames have bytes alone;
//! - where the program says that its engine has failed, all of its peers are
//!   lost, and it is asked for nothing more than to be closed.

mod arrivals;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, VecDeque},
    ffi::c_void,
    sync::{Arc, Mutex, PoisonError, mpsc},
    task::{Poll, Waker},
};

use milieu::stream::engine::{
    Capabilities, Channel, CloseReason, Engine as Carrying, News, Parcel, Payload, PeerId, Port,
    Refused,
};

use crate::{
    abi::{MILIEU_INVALID, MILIEU_OK, milieu_destroy, milieu_result, milieu_text},
    call::{Failure, call, null, out},
    handle::{self, Slot, handle},
    layout::check_abi,
    lent::Lent,
    scope::User,
};

pub use arrivals::*;

/// What carries frames, until a link has it.
pub enum Engine {
    /// Of a hub.
    Port(Port),
    /// The program's own.
    Own(Bridge),
}

handle!(
    Engine,
    b"engn",
    "milieu_engine",
    "was freed, or is a link's; each link has an engine of its own"
);

/// See `engines.h`.
#[allow(non_camel_case_types)]
pub type milieu_engine = Slot<Engine>;

/// Wakes the link of an engine.
pub struct Waking(Arc<Mutex<Waker>>);

handle!(Waking, b"wakr", "milieu_waker");

/// See `engines.h`.
#[allow(non_camel_case_types)]
pub type milieu_waker = Slot<Waking>;

/// A frame of bytes, and where it goes or comes from.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types)]
pub struct milieu_parcel {
    /// To whom it goes, or from whom it comes.
    pub peer: u64,
    /// On which channel.
    pub channel: u32,
    /// By which mode the payload is written.
    pub mode: u32,
    /// What one must know to read it.
    pub schema: u32,
    /// Which life of the sender this is.
    pub incarnation: u64,
    /// Its number on the channel.
    pub sequence: u64,
    /// When what it says happened.
    pub time_ns: i64,
    /// What it says: any bytes.
    pub payload: milieu_text,
    /// Whether the sender wants to know what has become of it.
    pub wants_receipt: bool,
    /// The number of the receipt, then.
    pub receipt: u64,
}

/// See `engines.h`.
#[allow(non_camel_case_types)]
pub type milieu_refusal = u32;

/// What a program says of an engine.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct milieu_carrier {
    /// `MILIEU_ABI`
    pub abi: u32,
    /// What it can do, or-ed.
    pub flags: u32,
    /// The largest payload, question and answer, in bytes.
    pub bytes_max: usize,
    /// How many questions a peer may have to answer at most.
    pub requests_max: usize,
    /// How many frames may be under way on a channel at most.
    pub credit_max: u64,
    /// Submits parcels.
    pub submit: Option<
        unsafe extern "C" fn(
            user: *mut c_void,
            parcels: *const milieu_parcel,
            count: usize,
            taken: *mut usize,
        ) -> milieu_refusal,
    >,
    /// How many frames a peer takes now.
    pub credit: Option<unsafe extern "C" fn(user: *mut c_void, to: u64, channel: u32) -> u64>,
    /// Allows a peer so many frames altogether.
    pub grant:
        Option<unsafe extern "C" fn(user: *mut c_void, from: u64, channel: u32, frames: u64)>,
    /// A channel from a peer is used no more.
    pub shut: Option<unsafe extern "C" fn(user: *mut c_void, from: u64, channel: u32)>,
    /// Nothing more is sent to a peer on a channel.
    pub leave: Option<unsafe extern "C" fn(user: *mut c_void, to: u64, channel: u32)>,
    /// Asks a peer something.
    pub request: Option<
        unsafe extern "C" fn(
            user: *mut c_void,
            to: u64,
            number: u64,
            question: milieu_text,
        ) -> milieu_refusal,
    >,
    /// Answers what a peer has asked.
    pub reply:
        Option<unsafe extern "C" fn(user: *mut c_void, to: u64, number: u64, answer: milieu_text)>,
    /// Tells what has happened.
    pub poll: Option<
        unsafe extern "C" fn(user: *mut c_void, arrivals: *mut milieu_arrivals) -> milieu_result,
    >,
    /// Ends it.
    pub close: Option<unsafe extern "C" fn(user: *mut c_void, reason: u32)>,
}

const ORDERED: u32 = 1;
const RECEIPTS: u32 = 2;

/// An engine of the program.
pub struct Bridge {
    calls: Calls,
    capabilities: Capabilities,
    user: User,
    waker: Arc<Mutex<Waker>>,
    /// Who is there, as far as it has said.
    peers: BTreeSet<PeerId>,
    is_closed: bool,
    /// Goes with it, for whoever waits for that.
    _gone: Option<mpsc::Sender<()>>,
}

/// The callbacks, all of which are there.
struct Calls {
    submit: unsafe extern "C" fn(
        *mut c_void,
        *const milieu_parcel,
        usize,
        *mut usize,
    ) -> milieu_refusal,
    credit: unsafe extern "C" fn(*mut c_void, u64, u32) -> u64,
    grant: unsafe extern "C" fn(*mut c_void, u64, u32, u64),
    shut: unsafe extern "C" fn(*mut c_void, u64, u32),
    leave: unsafe extern "C" fn(*mut c_void, u64, u32),
    request: unsafe extern "C" fn(*mut c_void, u64, u64, milieu_text) -> milieu_refusal,
    reply: unsafe extern "C" fn(*mut c_void, u64, u64, milieu_text),
    poll: unsafe extern "C" fn(*mut c_void, *mut milieu_arrivals) -> milieu_result,
    close: unsafe extern "C" fn(*mut c_void, u32),
}

impl Calls {
    fn of(carrier: &milieu_carrier) -> Result<Calls, Failure> {
        Ok(Calls {
            submit: carrier.submit.ok_or_else(|| null("submit"))?,
            credit: carrier.credit.ok_or_else(|| null("credit"))?,
            grant: carrier.grant.ok_or_else(|| null("grant"))?,
            shut: carrier.shut.ok_or_else(|| null("shut"))?,
            leave: carrier.leave.ok_or_else(|| null("leave"))?,
            request: carrier.request.ok_or_else(|| null("request"))?,
            reply: carrier.reply.ok_or_else(|| null("reply"))?,
            poll: carrier.poll.ok_or_else(|| null("poll"))?,
            close: carrier.close.ok_or_else(|| null("close"))?,
        })
    }
}

impl Bridge {
    /// Holds on to this until it is gone.
    pub(super) fn told_of(mut self, gone: mpsc::Sender<()>) -> Self {
        self._gone = Some(gone);
        self
    }
}

fn bytes(payload: &[u8]) -> milieu_text {
    milieu_text {
        bytes: payload.as_ptr().cast(),
        length: payload.len(),
    }
}

fn parcel(parcel: &Parcel) -> Option<milieu_parcel> {
    let Payload::Bytes(payload) = &parcel.frame.payload else {
        return None;
    };
    Some(milieu_parcel {
        peer: parcel.to.0,
        channel: parcel.channel.0,
        mode: parcel.frame.mode,
        schema: parcel.frame.schema,
        incarnation: parcel.frame.incarnation,
        sequence: parcel.frame.sequence,
        time_ns: parcel.frame.time.nanoseconds(),
        payload: bytes(payload),
        wants_receipt: parcel.receipt.is_some(),
        receipt: parcel.receipt.map_or(0, |receipt| receipt.0),
    })
}

/// Why the program has taken no more; nothing: it has taken all.
fn refused(refusal: milieu_refusal) -> Result<(), Refused> {
    Err(match refusal {
        0 => return Ok(()),
        1 => Refused::NoCredit,
        2 => Refused::Gone,
        3 => Refused::TooLarge,
        // Whatever else it says, it will carry nothing.
        _ => Refused::Closed,
    })
}

fn reason(reason: CloseReason) -> u32 {
    match reason {
        CloseReason::Done => 0,
        CloseReason::Lost => 1,
        CloseReason::Misbehaved => 2,
    }
}

impl Bridge {
    /// The program's engine has failed: nobody is there any more.
    fn fail(&mut self, news: &mut Vec<News>) {
        self.is_closed = true;
        let lost = std::mem::take(&mut self.peers);
        news.extend(
            lost.into_iter()
                .map(|peer| News::Left(peer, CloseReason::Lost)),
        );
    }
}

impl Carrying for Bridge {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn submit(&mut self, batch: &mut VecDeque<Parcel>) -> Result<(), Refused> {
        if self.is_closed {
            return Err(Refused::Closed);
        }
        let fits = |it: &milieu_parcel| it.payload.length <= self.capabilities.bytes_max;
        let parcels: Vec<milieu_parcel> = batch.iter().map_while(parcel).take_while(fits).collect();
        let mut taken = 0;
        let refusal = match parcels.is_empty() {
            true => 0,
            // SAFETY: the program has handed over both for this; the parcels are there
            // during the call.
            false => unsafe {
                let user = self.user.data();
                (self.calls.submit)(user, parcels.as_ptr(), parcels.len(), &raw mut taken)
            },
        };
        let taken = match refusal {
            0 => parcels.len(),
            _ => taken.min(parcels.len()),
        };
        batch.drain(..taken);
        refused(refusal)?;
        match batch.front().map(parcel) {
            None => Ok(()),
            Some(None) => Err(Refused::NotBytes),
            Some(Some(_)) => Err(Refused::TooLarge),
        }
    }

    fn credit(&mut self, to: PeerId, channel: Channel) -> u64 {
        match self.is_closed {
            true => 0,
            // SAFETY: the program has handed over both for this.
            false => unsafe { (self.calls.credit)(self.user.data(), to.0, channel.0) },
        }
    }

    fn grant(&mut self, from: PeerId, channel: Channel, frames: u64) {
        if !self.is_closed {
            // SAFETY: the program has handed over both for this.
            unsafe { (self.calls.grant)(self.user.data(), from.0, channel.0, frames) }
        }
    }

    fn shut(&mut self, from: PeerId, channel: Channel) {
        if !self.is_closed {
            // SAFETY: the program has handed over both for this.
            unsafe { (self.calls.shut)(self.user.data(), from.0, channel.0) }
        }
    }

    fn leave(&mut self, to: PeerId, channel: Channel) {
        if !self.is_closed {
            // SAFETY: the program has handed over both for this.
            unsafe { (self.calls.leave)(self.user.data(), to.0, channel.0) }
        }
    }

    fn request(&mut self, to: PeerId, number: u64, question: Arc<[u8]>) -> Result<(), Refused> {
        if self.is_closed {
            return Err(Refused::Closed);
        }
        if question.len() > self.capabilities.bytes_max {
            return Err(Refused::TooLarge);
        }
        // SAFETY: the program has handed over both for this; the bytes are there
        // during the call.
        refused(unsafe { (self.calls.request)(self.user.data(), to.0, number, bytes(&question)) })
    }

    fn reply(&mut self, to: PeerId, number: u64, answer: Arc<[u8]>) {
        if !self.is_closed {
            // SAFETY: as in `request`.
            unsafe { (self.calls.reply)(self.user.data(), to.0, number, bytes(&answer)) }
        }
    }

    fn poll(&mut self, waker: &Waker, news: &mut Vec<News>) -> Poll<()> {
        if self.is_closed {
            return Poll::Pending;
        }
        // Before the program looks: it may have something right then.
        let known = || self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        known().clone_from(waker);
        let peers = std::mem::take(&mut self.peers);
        let arrivals = Arrivals::new(std::mem::take(news), peers);
        let (result, arrivals) = Lent::during(arrivals, |arrivals| {
            // SAFETY: the program has handed over both for this.
            unsafe { (self.calls.poll)(self.user.data(), arrivals) }
        });
        let told = arrivals.told();
        (*news, self.peers) = arrivals.into_parts();
        if result != MILIEU_OK {
            self.fail(news);
            return Poll::Ready(());
        }
        match told {
            0 => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }

    fn close(&mut self, why: CloseReason) {
        if !std::mem::replace(&mut self.is_closed, true) {
            // SAFETY: the program has handed over both for this.
            unsafe { (self.calls.close)(self.user.data(), reason(why)) }
        }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.close(CloseReason::Done);
    }
}

/// An engine of the program's own.
///
/// # Safety
///
/// As `engines.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_engine_new(
    carrier: *const milieu_carrier,
    user: *mut c_void,
    destroy: milieu_destroy,
    engine: *mut *mut milieu_engine,
    waker: *mut *mut milieu_waker,
) -> milieu_result {
    let user = User::new(user, destroy);
    call(|| {
        // SAFETY: as the caller vouches.
        let (carrier, engine, waker) = unsafe {
            (
                carrier.as_ref().ok_or_else(|| null("carrier"))?,
                out(engine, "engine")?,
                out(waker, "waker")?,
            )
        };
        check_abi(carrier.abi, "carrier")?;
        let positive = [
            ("bytes_max", carrier.bytes_max as u64),
            ("requests_max", carrier.requests_max as u64),
            ("credit_max", carrier.credit_max),
        ];
        if let Some((what, _)) = positive.iter().find(|(_, number)| *number == 0) {
            let text = format!("`{what}` is 0, so that the engine carries nothing; say how many");
            return Err(Failure::new(MILIEU_INVALID, text));
        }
        let calls = Calls::of(carrier)?;
        let wakes = Arc::new(Mutex::new(Waker::noop().clone()));
        *waker = handle::new(Waking(Arc::clone(&wakes)));
        *engine = handle::new(Engine::Own(Bridge {
            calls,
            capabilities: Capabilities {
                events: false,
                bytes_max: carrier.bytes_max,
                is_ordered: carrier.flags & ORDERED != 0,
                receipts: carrier.flags & RECEIPTS != 0,
                credit_max: carrier.credit_max,
                requests_max: carrier.requests_max,
            },
            user,
            waker: wakes,
            peers: BTreeSet::new(),
            is_closed: false,
            _gone: None,
        }));
        Ok(())
    })
}

/// Gives an engine back that no link has.
///
/// # Safety
///
/// As `links.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_engine_free(engine: *mut milieu_engine) {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(engine)? });
        Ok(())
    });
}

/// There is something to poll for.
///
/// # Safety
///
/// As `engines.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_waker_wake(waker: *const milieu_waker) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let Waking(wakes) = unsafe { handle::shared(waker)? };
        // Once for each poll, and while nothing is locked: who is woken may poll at once.
        let mut waits = wakes.lock().unwrap_or_else(PoisonError::into_inner);
        let woken = std::mem::replace(&mut *waits, Waker::noop().clone());
        drop(waits);
        woken.wake();
        Ok(())
    })
}

/// Gives a waker back.
///
/// # Safety
///
/// As `engines.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_waker_free(waker: *mut milieu_waker) {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(waker)? });
        Ok(())
    });
}
