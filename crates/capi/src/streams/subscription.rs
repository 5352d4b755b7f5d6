//! Subscriptions: queues that the other side empties, and callbacks.

use std::{
    ffi::c_void,
    io::{Read, Write},
    num::NonZeroU32,
    os::{fd::AsRawFd, unix::net::UnixStream},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Wake, Waker},
};

use futures_core::Stream as _;

use milieu::{
    stream::{Delivery, Listening, Overflow, Subscriber},
    transfer::Event,
};

use super::{
    Opened, Streams,
    abi::{milieu_delivery, milieu_tally},
    event::{Lender, milieu_event},
    limit, milieu_streams,
    operator::reason,
    within,
};
use crate::{
    abi::{
        MILIEU_ENDED, MILIEU_INVALID, MILIEU_OK, MILIEU_SYSTEM, milieu_destroy, milieu_result,
        milieu_text,
    },
    call::{Failure, call, null, out, said},
    handle::{self, Slot, handle},
    layout::check_abi,
    scope::User,
};

/// A subscription whose events wait in a queue.
pub struct Subscription {
    subscriber: Subscriber,
    /// The event that was taken last, which the other side reads.
    taken: Option<Event>,
    lender: Lender,
    /// Where the other side waits for a descriptor.
    bell: Option<Bell>,
    opened: Arc<Opened>,
}

/// A descriptor that is readable while there may be an event.
struct Bell {
    heard: UnixStream,
    rung: Arc<Ringing>,
}

struct Ringing(UnixStream);

impl Ringing {
    fn ring(&self) {
        // Where there is no room it is readable already.
        let _ = (&self.0).write(&[1]);
    }
}

impl Wake for Ringing {
    fn wake(self: Arc<Self>) {
        self.ring();
    }
}

impl Bell {
    /// It is readable at first, as nobody knows what there is.
    fn new() -> std::io::Result<Bell> {
        let (heard, rung) = UnixStream::pair()?;
        heard.set_nonblocking(true)?;
        rung.set_nonblocking(true)?;
        let rung = Arc::new(Ringing(rung));
        rung.ring();
        Ok(Bell { heard, rung })
    }

    /// Looks for an event once more; if there is none, the next one will ring.
    #[cold]
    fn watch(&self, subscriber: &mut Subscriber) -> Option<Event> {
        let mut silence = [0; 64];
        while matches!((&self.heard).read(&mut silence), Ok(1..)) {}
        let waker = Waker::from(Arc::clone(&self.rung));
        let polled = Pin::new(subscriber).poll_next(&mut Context::from_waker(&waker));
        match polled {
            Poll::Pending => None,
            Poll::Ready(next) => {
                // There may be more, and that there will be none is to be seen too.
                self.rung.ring();
                next
            }
        }
    }
}

handle!(Subscription, b"subs", "milieu_subscription"; super::clock::refuse);

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_subscription = Slot<Subscription>;

/// A subscription whose events go to a callback.
pub struct Listener {
    listening: Listening,
    troubles: Arc<Troubles>,
    opened: Arc<Opened>,
    /// What it said last of a failure.
    said: String,
}

handle!(Listener, b"lstn", "milieu_listener"; super::clock::refuse);

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_listener = Slot<Listener>;

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_receive =
    Option<unsafe extern "C" fn(user: *mut c_void, event: *const milieu_event) -> milieu_result>;

/// How often a callback has failed, and what it said of it last.
#[derive(Default)]
pub(crate) struct Troubles(Mutex<(u64, String)>);

impl Troubles {
    pub fn note(&self, why: String) {
        let mut troubles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *troubles = (troubles.0 + 1, why);
    }

    pub fn get(&self) -> (u64, String) {
        let troubles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        troubles.clone()
    }
}

impl Listener {
    pub(crate) fn hand_out(
        listening: Listening,
        troubles: Arc<Troubles>,
        opened: &Arc<Opened>,
    ) -> *mut milieu_listener {
        handle::new(Listener {
            listening,
            troubles,
            opened: Arc::clone(opened),
            said: String::new(),
        })
    }
}

/// What hands events to a callback, and where it is noted how often that fails.
pub(crate) fn receiver(
    receive: milieu_receive,
    user: User,
) -> Result<(Arc<Troubles>, impl FnMut(&Event) + Send + 'static), Failure> {
    let receive = receive.ok_or_else(|| null("receive"))?;
    let troubles = Arc::<Troubles>::default();
    let noted = Arc::clone(&troubles);
    let lender = Lender::new();
    let receiver = move |event: &Event| {
        let lent = lender.lend(event);
        // SAFETY: the program has handed over both for this.
        let result = unsafe { receive(user.data(), lent) };
        lender.recall();
        if result != MILIEU_OK {
            noted.note(said());
        }
    };
    Ok((troubles, receiver))
}

/// # Safety
///
/// It is null or can be read.
pub(crate) unsafe fn delivery(given: *const milieu_delivery) -> Result<Delivery, Failure> {
    // SAFETY: as the caller vouches.
    let Some(given) = (unsafe { given.as_ref() }) else {
        return Ok(Delivery::default());
    };
    check_abi(given.abi, "delivery")?;
    let Some(capacity) = NonZeroU32::new(given.capacity) else {
        return Ok(Delivery::Latest);
    };
    let overflow = Overflow::ALL.get(given.overflow as usize).copied();
    let overflow = overflow.ok_or_else(|| {
        Failure::new(
            MILIEU_INVALID,
            format_args!("there is no milieu_overflow {}", given.overflow),
        )
    })?;
    Ok(Delivery::Every { capacity, overflow })
}

impl Subscription {
    pub(crate) fn new(subscriber: Subscriber, opened: &Arc<Opened>) -> Self {
        Subscription {
            subscriber,
            taken: None,
            lender: Lender::new(),
            bell: None,
            opened: Arc::clone(opened),
        }
    }

    /// The next event, by this time.
    #[inline]
    fn next(&mut self, timeout_ns: i64) -> Result<Option<Event>, Failure> {
        let mut next = self.subscriber.try_next();
        if next.is_none() {
            if let Some(bell) = &self.bell {
                next = bell.watch(&mut self.subscriber);
            }
        }
        if next.is_some() || timeout_ns == 0 {
            return Ok(next);
        }
        within(&self.opened)?;
        Ok(match limit(timeout_ns) {
            Some(limit) => self.subscriber.wait_for(limit),
            None => self.subscriber.wait(),
        })
    }
}

/// Subscribes by a queue.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_subscription_new(
    streams: *const milieu_streams,
    flow: milieu_text,
    given: *const milieu_delivery,
    subscription: *mut *mut milieu_subscription,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), flow, delivery, subscription) = unsafe {
            (
                handle::shared(streams)?,
                flow.read("flow")?,
                delivery(given)?,
                out(subscription, "subscription")?,
            )
        };
        let subscriber = opened.milieu.flow(flow)?.subscribe(delivery)?;
        *subscription = handle::new(Subscription::new(subscriber, opened));
        Ok(())
    })
}

/// Ends a subscription.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_subscription_free(
    subscription: *mut milieu_subscription,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(subscription)? });
        Ok(())
    })
}

/// Takes the next event.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_subscription_next(
    subscription: *mut milieu_subscription,
    timeout_ns: i64,
    event: *mut *const milieu_event,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (mut subscription, event) = unsafe {
            (
                handle::using(subscription.cast_const())?,
                out(event, "event")?,
            )
        };
        let known = &mut *subscription;
        let next = known.next(timeout_ns)?;
        known.lender.recall();
        known.taken = next;
        *event = match &known.taken {
            Some(taken) => known.lender.lend(taken),
            None if known.subscriber.is_ended() => {
                return Err(Failure::new(MILIEU_ENDED, "no more events will come"));
            }
            None => std::ptr::null(),
        };
        Ok(())
    })
}

/// What has become of the events.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_subscription_tally(
    subscription: *const milieu_subscription,
    tally: *mut milieu_tally,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (subscription, into) = unsafe { (handle::using(subscription)?, out(tally, "tally")?) };
        let tally = subscription.subscriber.tally();
        *into = milieu_tally {
            taken: tally.taken,
            dropped: tally.dropped.total(),
            waiting: tally.waiting,
        };
        Ok(())
    })
}

/// How many events were dropped for a reason.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_subscription_dropped(
    subscription: *const milieu_subscription,
    why: milieu_text,
    count: *mut u64,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (subscription, why, count) = unsafe {
            (
                handle::using(subscription)?,
                why.read("why")?,
                out(count, "count")?,
            )
        };
        let reason = reason(why)?;
        *count = subscription.subscriber.tally().dropped.of(reason);
        Ok(())
    })
}

/// A descriptor for poll(2).
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_subscription_descriptor(
    subscription: *mut milieu_subscription,
    descriptor: *mut i32,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (mut subscription, descriptor) = unsafe {
            (
                handle::using(subscription.cast_const())?,
                out(descriptor, "descriptor")?,
            )
        };
        if subscription.bell.is_none() {
            let bell = Bell::new().map_err(|error| Failure::new(MILIEU_SYSTEM, error))?;
            subscription.bell = Some(bell);
        }
        if let Some(bell) = &subscription.bell {
            *descriptor = bell.heard.as_raw_fd();
        }
        Ok(())
    })
}

/// Subscribes by a callback.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_listener_new(
    streams: *const milieu_streams,
    flow: milieu_text,
    receive: milieu_receive,
    user: *mut c_void,
    destroy: milieu_destroy,
    listener: *mut *mut milieu_listener,
) -> milieu_result {
    let user = User::new(user, destroy);
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), flow, listener) = unsafe {
            (
                handle::shared(streams)?,
                flow.read("flow")?,
                out(listener, "listener")?,
            )
        };
        let (troubles, receiver) = receiver(receive, user)?;
        let listening = opened.milieu.flow(flow)?.listen(receiver)?;
        *listener = Listener::hand_out(listening, troubles, opened);
        Ok(())
    })
}

/// Ends a subscription.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_listener_free(listener: *mut milieu_listener) {
    call(|| {
        // SAFETY: as the caller vouches.
        let Some(Listener {
            listening, opened, ..
        }) = (unsafe { handle::take(listener)? })
        else {
            return Ok(());
        };
        drop(listening);
        // The callback is destroyed when the graph has done so; within one of its
        // callbacks, when that has ended.
        let _ = opened.graph().due();
        Ok(())
    });
}

/// How often the callback has failed.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_listener_failures(
    listener: *const milieu_listener,
    count: *mut u64,
    last: *mut milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (mut listener, count, last) = unsafe {
            (
                handle::using(listener)?,
                out(count, "count")?,
                last.as_mut(),
            )
        };
        let (failures, why) = listener.troubles.get();
        listener.said = why;
        *count = failures;
        if let Some(last) = last {
            *last = milieu_text::of(&listener.said);
        }
        Ok(())
    })
}
