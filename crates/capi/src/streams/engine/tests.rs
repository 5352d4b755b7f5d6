//! A port of a hub, behind the callbacks of C: it has to keep what engines keep.

use std::time::Duration;

use milieu::stream::engine::{
    Channel, CloseReason, Engine as Carrying, Frame, Hub, News, Outcome, Parcel, Payload, PeerId,
    Port, Receipt, Refused, conformance,
};
use milieu::transfer::Time;

use super::*;
use crate::{abi::MILIEU_ABI, lent::Lent};

/// What the callbacks are handed.
struct Behind {
    port: Port,
    waker: *const milieu_waker,
    said: bool,
}

/// Wakes the waker of C.
struct Woken(usize);

impl std::task::Wake for Woken {
    fn wake(self: Arc<Self>) {
        // SAFETY: no handle's memory is ever unmapped.
        let result = unsafe { milieu_waker_wake(std::ptr::with_exposed_provenance(self.0)) };
        assert!(result == MILIEU_OK || result == crate::abi::MILIEU_FREED);
    }
}

/// # Safety
///
/// It is what `join` has handed over.
unsafe fn behind<'a>(user: *mut c_void) -> &'a mut Behind {
    // SAFETY: as the caller vouches; callbacks come one at a time.
    unsafe { &mut *user.cast() }
}

/// # Safety
///
/// As `milieu_text` says.
unsafe fn owned(text: milieu_text) -> Arc<[u8]> {
    // SAFETY: as the caller vouches.
    let bytes = unsafe { text.bytes("bytes") };
    bytes.unwrap_or_else(|_| panic!("bytes are there")).into()
}

fn refusal(result: Result<(), Refused>) -> milieu_refusal {
    match result {
        Ok(()) => 0,
        Err(Refused::NoCredit) => 1,
        Err(Refused::Gone) => 2,
        Err(Refused::TooLarge) => 3,
        Err(Refused::NotBytes) => panic!("these are bytes"),
        Err(Refused::Closed) => 4,
    }
}

unsafe extern "C" fn submit(
    user: *mut c_void,
    parcels: *const milieu_parcel,
    count: usize,
    taken: *mut usize,
) -> milieu_refusal {
    // SAFETY: as the header says of this callback.
    let (behind, parcels) = unsafe { (behind(user), std::slice::from_raw_parts(parcels, count)) };
    let mut batch: VecDeque<Parcel> = parcels
        .iter()
        .map(|it| Parcel {
            to: PeerId(it.peer),
            channel: Channel(it.channel),
            frame: Frame {
                incarnation: it.incarnation,
                sequence: it.sequence,
                time: Time::from_nanoseconds(it.time_ns),
                mode: it.mode,
                schema: it.schema,
                // SAFETY: as the header says of parcels.
                payload: Payload::Bytes(unsafe { owned(it.payload) }),
            },
            receipt: it.wants_receipt.then_some(Receipt(it.receipt)),
        })
        .collect();
    let result = behind.port.submit(&mut batch);
    // SAFETY: as the header says of this callback.
    unsafe { *taken = count - batch.len() };
    refusal(result)
}

unsafe extern "C" fn credit(user: *mut c_void, to: u64, channel: u32) -> u64 {
    // SAFETY: as the header says of this callback.
    unsafe { behind(user) }
        .port
        .credit(PeerId(to), Channel(channel))
}

unsafe extern "C" fn grant(user: *mut c_void, from: u64, channel: u32, frames: u64) {
    // SAFETY: as the header says of this callback.
    unsafe { behind(user) }
        .port
        .grant(PeerId(from), Channel(channel), frames);
}

unsafe extern "C" fn shut(user: *mut c_void, from: u64, channel: u32) {
    // SAFETY: as the header says of this callback.
    unsafe { behind(user) }
        .port
        .shut(PeerId(from), Channel(channel));
}

unsafe extern "C" fn leave(user: *mut c_void, to: u64, channel: u32) {
    // SAFETY: as the header says of this callback.
    unsafe { behind(user) }
        .port
        .leave(PeerId(to), Channel(channel));
}

unsafe extern "C" fn request(
    user: *mut c_void,
    to: u64,
    number: u64,
    question: milieu_text,
) -> milieu_refusal {
    // SAFETY: as the header says of this callback.
    let (behind, question) = unsafe { (behind(user), owned(question)) };
    refusal(behind.port.request(PeerId(to), number, question))
}

unsafe extern "C" fn reply(user: *mut c_void, to: u64, number: u64, answer: milieu_text) {
    // SAFETY: as the header says of this callback.
    let (behind, answer) = unsafe { (behind(user), owned(answer)) };
    behind.port.reply(PeerId(to), number, answer);
}

unsafe extern "C" fn poll(user: *mut c_void, arrivals: *mut milieu_arrivals) -> milieu_result {
    // SAFETY: as the header says of this callback.
    let behind = unsafe { behind(user) };
    if !behind.said {
        return MILIEU_INVALID;
    }
    let mut news = Vec::new();
    let woken = Woken(behind.waker.expose_provenance());
    let polled = behind.port.poll(&Waker::from(Arc::new(woken)), &mut news);
    assert_eq!(polled.is_pending(), news.is_empty());
    for news in news {
        // SAFETY: `arrivals` was handed to this callback, and all else is there.
        let result = unsafe { tell(arrivals, &news) };
        assert_eq!(result, MILIEU_OK, "{news:?}");
    }
    MILIEU_OK
}

/// # Safety
///
/// `arrivals` was handed to a callback that runs.
unsafe fn tell(arrivals: *mut milieu_arrivals, news: &News) -> milieu_result {
    // SAFETY: as the caller vouches.
    unsafe {
        match news {
            News::Joined(peer) => {
                milieu_arrivals_joined(arrivals, peer.id.0, milieu_text::of(&peer.name))
            }
            News::Left(peer, why) => milieu_arrivals_left(arrivals, peer.0, reason(*why)),
            News::Frame(from, channel, frame) => {
                let parcel = Parcel {
                    to: *from,
                    channel: *channel,
                    frame: frame.clone(),
                    receipt: None,
                };
                let parcel = super::parcel(&parcel).expect("these are bytes");
                milieu_arrivals_frame(arrivals, &raw const parcel)
            }
            News::Receipt(receipt, outcome) => {
                milieu_arrivals_receipt(arrivals, receipt.0, *outcome == Outcome::Delivered)
            }
            News::Credit(peer, channel) => milieu_arrivals_credit(arrivals, peer.0, channel.0),
            News::Request(from, number, question) => {
                milieu_arrivals_request(arrivals, from.0, *number, bytes(question))
            }
            News::Reply(from, number, answer) => {
                let answer = answer.as_deref().map(bytes);
                let answer = answer.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
                milieu_arrivals_reply(arrivals, from.0, *number, answer)
            }
        }
    }
}

unsafe extern "C" fn close(user: *mut c_void, reason: u32) {
    let reason = match reason {
        0 => CloseReason::Done,
        1 => CloseReason::Lost,
        _ => CloseReason::Misbehaved,
    };
    // SAFETY: as the header says of this callback.
    unsafe { behind(user) }.port.close(reason);
}

unsafe extern "C" fn destroy(user: *mut c_void) {
    // SAFETY: `join` has handed over a box, and this is called once.
    drop(unsafe { Box::from_raw(user.cast::<Behind>()) });
}

fn join(port: Port) -> (Bridge, *mut Behind) {
    let capabilities = port.capabilities();
    let carrier = milieu_carrier {
        abi: MILIEU_ABI,
        flags: ORDERED | RECEIPTS,
        bytes_max: capabilities.bytes_max,
        requests_max: capabilities.requests_max,
        credit_max: capabilities.credit_max,
        submit: Some(submit),
        credit: Some(credit),
        grant: Some(grant),
        shut: Some(shut),
        leave: Some(leave),
        request: Some(request),
        reply: Some(reply),
        poll: Some(poll),
        close: Some(close),
    };
    let behind = Box::into_raw(Box::new(Behind {
        port,
        waker: std::ptr::null(),
        said: true,
    }));
    let (mut engine, mut waker) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: all of it is there; `behind` is given back by `destroy`.
    unsafe {
        let user = behind.cast();
        let made = milieu_engine_new(
            &raw const carrier,
            user,
            Some(destroy),
            &raw mut engine,
            &raw mut waker,
        );
        assert_eq!(made, MILIEU_OK);
        (*behind).waker = waker;
        match handle::take(engine) {
            Ok(Some(Engine::Own(bridge))) => (bridge, behind),
            _ => panic!("it is one of the program"),
        }
    }
}

#[test]
fn what_engines_keep_passes_through_callbacks() {
    conformance::all(Duration::from_secs(5), || {
        let hub = Hub::new().apart();
        move |name: &str| join(hub.join(name)).0
    });
}

#[test]
fn an_engine_that_fails_loses_its_peers_and_carries_nothing() {
    let hub = Hub::new().apart();
    let (mut bridge, behind) = join(hub.join("a"));
    let other = hub.join("b");
    let mut news = Vec::new();
    assert!(bridge.poll(Waker::noop(), &mut news).is_ready());
    assert!(matches!(&news[..], [News::Joined(peer)] if peer.id == other.id()));
    news.clear();
    // SAFETY: nobody uses it now.
    unsafe { (*behind).said = false };
    assert!(bridge.poll(Waker::noop(), &mut news).is_ready());
    assert!(matches!(&news[..], [News::Left(peer, CloseReason::Lost)] if *peer == other.id()));
    news.clear();
    assert!(bridge.poll(Waker::noop(), &mut news).is_pending());
    let asked = bridge.request(other.id(), 1, Arc::from(*b"?"));
    assert_eq!(asked, Err(Refused::Closed));
    assert_eq!(bridge.credit(other.id(), Channel(1)), 0);
}

#[test]
fn what_makes_no_sense_is_refused_and_not_told() {
    let arrivals = Arrivals::new(Vec::new(), BTreeSet::new());
    let ((), arrivals) = Lent::during(arrivals, |arrivals| {
        let name = milieu_text::of("kitchen");
        // SAFETY: `arrivals` is there.
        unsafe {
            assert_eq!(milieu_arrivals_credit(arrivals, 1, 1), MILIEU_INVALID);
            assert_eq!(milieu_arrivals_left(arrivals, 1, 0), MILIEU_INVALID);
            assert_eq!(milieu_arrivals_joined(arrivals, 1, name), MILIEU_OK);
            assert_eq!(milieu_arrivals_joined(arrivals, 1, name), MILIEU_INVALID);
            assert_eq!(milieu_arrivals_left(arrivals, 1, 3), MILIEU_INVALID);
            assert_eq!(milieu_arrivals_left(arrivals, 1, 2), MILIEU_OK);
            assert_eq!(milieu_arrivals_left(arrivals, 1, 2), MILIEU_INVALID);
            for receipt in 2..milieu::stream::engine::NEWS_MAX as u64 {
                assert_eq!(milieu_arrivals_receipt(arrivals, receipt, true), MILIEU_OK);
            }
            let refused = milieu_arrivals_receipt(arrivals, 0, true);
            assert_eq!(refused, crate::abi::MILIEU_REFUSED);
        }
    });
    assert_eq!(arrivals.told(), milieu::stream::engine::NEWS_MAX);
}
