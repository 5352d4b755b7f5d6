//! Queues: where events of a subscription wait until they are taken.
//!
//! The oldest event lies in a slot, where it is put and taken without a lock; those
//! after it lie behind a lock:
//!
//! ```text
//! inlet ─▶ [ slot ] ─▶ outlet        while nothing else waits
//!      └─▶ behind: [ … ] ─▶┘         once the slot is full, until all are taken
//! ```
//!
//! Only the inlet begins to put events behind the slot, and only the outlet, which
//! takes all of them at once, ends it: what lies in the slot is older than what lies
//! behind it.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::task::{Poll, Waker};
use std::time::Instant;

use milieu_transfer::{Event, Time};

use super::Clock;
use super::slot::Slot;
use crate::books::Dropped;
use crate::latency::Delays;
use crate::receiver::{Delivered, Receiver, Tally};
use crate::room::{Place, Room};
use crate::subscription::Delivery;
use crate::sync::{Arc, AtomicBool, Condvar, Mutex, MutexGuard, Ordering, fence_of_model};

/// Where the machine puts events.
pub(super) struct Inlet {
    shared: Arc<Shared>,
    room: Room,
    /// How many were put.
    put: u64,
    /// The next event is measured.
    is_marked: bool,
}

/// Where one subscriber takes them.
pub(super) struct Outlet {
    shared: Arc<Shared>,
    /// How many were taken.
    taken: u64,
}

struct Shared {
    slot: Slot<Event>,
    /// Whether something is behind the slot: events, or the end.
    is_behind: AtomicBool,
    /// Whether somebody is to be told when something comes.
    is_awaited: AtomicBool,
    behind: Mutex<Behind>,
    arrived: Condvar,
}

struct Behind {
    events: VecDeque<Event>,
    dropped: Dropped,
    /// Once events were measured.
    marks: Option<Box<Marks>>,
    /// Nothing more will come.
    ended: bool,
    waker: Option<Waker>,
}

/// Events that are measured.
#[derive(Default)]
struct Marks {
    /// When the next event was published.
    next: Option<Time>,
    /// The events that wait: their place among those that came since events were
    /// taken last, and when they were published.
    waiting: VecDeque<(usize, Time)>,
    /// How many have been displaced since events were taken last.
    displaced: usize,
    delays: Option<Box<Delays>>,
}

/// Both ends of a queue with a bound.
pub(super) fn queue(delivery: Delivery) -> (Inlet, Outlet) {
    let shared = Arc::new(Shared {
        slot: Slot::new(),
        is_behind: AtomicBool::new(false),
        is_awaited: AtomicBool::new(false),
        behind: Mutex::new(Behind {
            events: VecDeque::new(),
            dropped: Dropped::default(),
            marks: None,
            ended: false,
            waker: None,
        }),
        arrived: Condvar::new(),
    });
    let inlet = Inlet {
        shared: Arc::clone(&shared),
        room: Room::of(delivery),
        put: 0,
        is_marked: false,
    };
    (inlet, Outlet { shared, taken: 0 })
}

impl Outlet {
    /// The next event, if there is one; all that wait behind it go there, where
    /// nothing may be.
    #[inline]
    pub fn take(&mut self, rest: &mut VecDeque<Event>, clock: &dyn Clock) -> Option<Event> {
        match self.shared.slot.take() {
            Ok(first) if !self.shared.is_behind.load(Ordering::Acquire) => {
                self.taken += u64::from(first.is_some());
                first
            }
            first => self.take_more(first.ok().flatten(), rest, clock),
        }
    }

    #[cold]
    fn take_more(
        &mut self,
        first: Option<Event>,
        rest: &mut VecDeque<Event>,
        clock: &dyn Clock,
    ) -> Option<Event> {
        let shared = Arc::clone(&self.shared);
        let second = self.hand_over(&mut shared.behind(), rest, clock);
        if first.is_none() {
            return second;
        }
        self.taken += 1;
        if let Some(second) = second {
            rest.push_front(second);
        }
        first
    }

    /// As [`take`](Outlet::take), or waits for something until then; forever, if
    /// there is no limit.
    pub fn wait(
        &mut self,
        rest: &mut VecDeque<Event>,
        until: Option<Instant>,
        clock: &dyn Clock,
    ) -> Option<Event> {
        let shared = Arc::clone(&self.shared);
        let mut behind = shared.behind();
        shared.is_awaited.store(true, Ordering::SeqCst);
        fence_of_model();
        while !shared.slot.is_full() && behind.events.is_empty() && !behind.ended {
            let arrived = &shared.arrived;
            behind = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => arrived.wait(behind).unwrap_or_else(PoisonError::into_inner),
                Some(rest) if rest.is_zero() => break,
                Some(rest) => {
                    let waited = arrived.wait_timeout(behind, rest);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        shared.is_awaited.store(false, Ordering::Relaxed);
        self.hand_over(&mut behind, rest, clock)
    }

    /// As [`take`](Outlet::take), or wakes this when there is something. Else nothing
    /// more will come.
    pub fn poll(
        &mut self,
        rest: &mut VecDeque<Event>,
        waker: &Waker,
        clock: &dyn Clock,
    ) -> Poll<Option<Event>> {
        let shared = Arc::clone(&self.shared);
        let mut behind = shared.behind();
        shared.is_awaited.store(true, Ordering::SeqCst);
        fence_of_model();
        let event = self.hand_over(&mut behind, rest, clock);
        let is_pending = event.is_none() && !behind.ended;
        behind.waker = is_pending.then(|| waker.clone());
        if is_pending {
            return Poll::Pending;
        }
        shared.is_awaited.store(false, Ordering::Relaxed);
        Poll::Ready(event)
    }

    /// Whether nothing is there and nothing will come.
    pub fn is_ended(&self) -> bool {
        let behind = self.shared.behind();
        behind.ended && self.shared.waiting(&behind) == 0
    }

    pub fn tally(&self) -> Tally {
        let behind = self.shared.behind();
        Tally {
            taken: self.taken,
            dropped: behind.dropped.clone(),
            waiting: self.shared.waiting(&behind),
        }
    }

    /// The next event; all others that wait go there.
    fn hand_over(
        &mut self,
        behind: &mut Behind,
        rest: &mut VecDeque<Event>,
        clock: &dyn Clock,
    ) -> Option<Event> {
        debug_assert!(rest.is_empty(), "what was handed over before comes first");
        if let Some(marks) = &mut behind.marks {
            marks.taken(&behind.events, clock);
        }
        // The inlet may have filled the slot again before it put anything behind it.
        // Whoever has the lock finds nobody replacing anything.
        let first = self.shared.slot.take().ok().flatten();
        self.taken += u64::from(first.is_some()) + behind.events.len() as u64;
        // The memory of what was taken before serves again.
        std::mem::swap(&mut behind.events, rest);
        // The inlet says otherwise while it has the lock.
        self.shared.is_behind.store(behind.ended, Ordering::Release);
        first.or_else(|| rest.pop_front())
    }
}

impl Shared {
    fn behind(&self) -> MutexGuard<'_, Behind> {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many wait.
    fn waiting(&self, behind: &Behind) -> u64 {
        u64::from(self.slot.is_full()) + behind.events.len() as u64
    }

    /// Nothing more will come.
    fn end(&self, mut behind: MutexGuard<'_, Behind>) {
        behind.ended = true;
        self.is_behind.store(true, Ordering::Release);
        self.wake(behind);
    }

    /// Tells whoever waits.
    #[cold]
    fn wake(&self, mut behind: MutexGuard<'_, Behind>) {
        let waker = behind.waker.take();
        if waker.is_some() {
            self.is_awaited.store(false, Ordering::Relaxed);
        }
        // Whoever is woken finds nobody at the lock.
        drop(behind);
        self.arrived.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Marks {
    /// The event after so many others is the next one, if it is measured.
    #[cold]
    fn waits(&mut self, published: Time, others: usize) {
        let gone = self.displaced;
        while self.waiting.front().is_some_and(|(at, _)| *at < gone) {
            self.waiting.pop_front();
        }
        self.waiting.push_back((gone + others, published));
    }

    /// These events have been taken.
    #[cold]
    fn taken(&mut self, events: &VecDeque<Event>, clock: &dyn Clock) {
        let displaced = std::mem::take(&mut self.displaced);
        if self.waiting.is_empty() {
            return;
        }
        let now = clock.now();
        let delays = self.delays.get_or_insert_default();
        for (at, published) in self.waiting.drain(..) {
            let event = at.checked_sub(displaced);
            if let Some(event) = event.and_then(|at| events.get(at)) {
                delays.enter(event, published, now);
            }
        }
    }
}

impl Inlet {
    /// Puts an event where others wait, or one that is measured.
    #[cold]
    fn event_behind(&mut self, event: &Event) -> Delivered {
        let shared = &*self.shared;
        let mut behind = shared.behind();
        let mut published = None;
        if std::mem::take(&mut self.is_marked) {
            published = behind.marks.as_mut().and_then(|marks| marks.next.take());
        }
        if behind.ended {
            return Delivered::Closed;
        }
        let mut displaced = None;
        loop {
            let waiting = shared.waiting(&behind) as usize;
            match self.room.place(waiting) {
                // The publisher was told; what is under way is not lost.
                Place::Last | Place::Refused => break,
                Place::InsteadOfFirst(reason) => {
                    let is_alone = behind.events.is_empty();
                    if is_alone && published.is_none() {
                        if let Some(before) = shared.slot.replace(event.clone()) {
                            behind.dropped.add(reason, 1);
                            drop(behind);
                            drop(before);
                            return Delivered::Taken;
                        }
                        continue;
                    }
                    displaced = shared.slot.take().ok().flatten();
                    if displaced.is_none() && waiting == behind.events.len() {
                        displaced = behind.events.pop_front();
                        if let Some(marks) = &mut behind.marks {
                            marks.displaced += 1;
                        }
                    }
                    // Else it has been taken meanwhile.
                    if displaced.is_some() {
                        self.put -= 1;
                        behind.dropped.add(reason, 1);
                    }
                }
                Place::Nowhere(reason) => {
                    behind.dropped.add(reason, 1);
                    return Delivered::Taken;
                }
                Place::End(reason) => {
                    behind.dropped.add(reason, 1);
                    shared.end(behind);
                    return Delivered::Closed;
                }
            }
        }
        let others = behind.events.len();
        // Many queues never hold more than two.
        behind.events.reserve_exact(usize::from(others == 0));
        if let (Some(marks), Some(published)) = (&mut behind.marks, published) {
            marks.waits(published, others);
        }
        behind.events.push_back(event.clone());
        self.put += 1;
        shared.is_behind.store(true, Ordering::Release);
        if shared.is_awaited.load(Ordering::Relaxed) {
            shared.wake(behind);
        } else {
            drop(behind);
        }
        // An event that goes is dropped where nobody waits for the lock.
        drop(displaced);
        Delivered::Taken
    }
}

impl Receiver for Inlet {
    #[inline]
    fn event(&mut self, event: &Event) -> Delivered {
        let shared = &*self.shared;
        let is_behind = shared.is_behind.load(Ordering::Acquire);
        if is_behind || self.is_marked || !shared.slot.is_empty() {
            return self.event_behind(event);
        }
        // SAFETY: the slot is empty, and only this inlet, which is borrowed
        // exclusively, puts events there or replaces them.
        unsafe { shared.slot.put(event.clone()) };
        self.put += 1;
        if shared.is_awaited.load(Ordering::SeqCst) {
            shared.wake(shared.behind());
        }
        Delivered::Taken
    }

    fn refuses(&self) -> bool {
        let behind = self.shared.behind();
        let waiting = self.shared.waiting(&behind) as usize;
        self.room.place(waiting) == Place::Refused
    }

    fn end(&mut self) {
        self.shared.end(self.shared.behind());
    }

    fn mark(&mut self, published: Time) -> bool {
        let mut behind = self.shared.behind();
        behind.marks.get_or_insert_default().next = Some(published);
        self.is_marked = true;
        true
    }

    fn delays(&self) -> Option<Delays> {
        let behind = self.shared.behind();
        behind.marks.as_ref()?.delays.as_deref().cloned()
    }

    fn tally(&self) -> Option<Tally> {
        let behind = self.shared.behind();
        let waiting = self.shared.waiting(&behind);
        Some(Tally {
            taken: self.put - waiting,
            dropped: behind.dropped.clone(),
            waiting,
        })
    }
}

#[cfg(all(test, loom))]
mod tests {
    use std::collections::VecDeque;
    use std::num::NonZeroU32;
    use std::sync::Arc;
    use std::task::{Poll, Waker};

    use loom::thread;
    use milieu_transfer::{Event, Header, Origin, Stream, Time};

    use super::queue;
    use crate::operator::Reason;
    use crate::receiver::Receiver;
    use crate::runtime::VirtualClock;
    use crate::subscription::{Delivery, Overflow};

    const LATEST: Delivery = Delivery::Latest;

    fn every(capacity: u32, overflow: Overflow) -> Delivery {
        Delivery::Every {
            capacity: NonZeroU32::new(capacity).unwrap(),
            overflow,
        }
    }

    fn events(count: u64) -> Vec<Event> {
        let stream = Arc::new(Stream {
            name: "/t".parse().unwrap(),
            origin: Origin("here".into()),
            incarnation: 1,
        });
        let event = |sequence| {
            let header = Header {
                stream: Arc::clone(&stream),
                time: Time::default(),
                sequence,
                quality: None,
            };
            Event::new(header, 5.0)
        };
        (1..=count).map(event).collect()
    }

    fn model(check: impl Fn() + Sync + Send + 'static) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(check);
    }

    /// What is put is taken in its order, or was dropped; the last one is never.
    fn nothing_is_lost(delivery: Delivery, count: u64) {
        model(move || {
            let (mut inlet, mut outlet) = queue(delivery);
            let putting = thread::spawn(move || {
                for event in events(count) {
                    inlet.event(&event);
                }
                inlet
            });
            let clock = VirtualClock::new(Time::default());
            let (mut rest, mut taken) = (VecDeque::new(), Vec::new());
            let mut take = |times| {
                for _ in 0..times {
                    let next = rest.pop_front();
                    let next = next.or_else(|| outlet.take(&mut rest, &clock));
                    taken.extend(next.map(|event| event.header().sequence));
                }
                (taken.clone(), outlet.tally(), rest.len())
            };
            let (some, tally, left) = take(2);
            assert_eq!(tally.taken, (some.len() + left) as u64);
            let inlet = putting.join().unwrap();
            let (taken, tally, _) = take(count);
            assert!(taken.is_sorted_by(|a, b| a < b), "{taken:?}");
            assert_eq!(taken.last(), Some(&count));
            assert_eq!(tally, Receiver::tally(&inlet).unwrap());
            let dropped = tally.dropped.total();
            assert_eq!((tally.taken + dropped, tally.waiting), (count, 0));
            assert_eq!(tally.taken, taken.len() as u64);
        });
    }

    #[test]
    fn nothing_is_lost_of_every_event() {
        nothing_is_lost(every(3, Overflow::DropOldest), 3);
    }

    #[test]
    fn what_is_displaced_is_counted() {
        nothing_is_lost(every(2, Overflow::DropOldest), 4);
    }

    #[test]
    fn the_latest_is_always_there() {
        nothing_is_lost(LATEST, 3);
        model(|| {
            let (mut inlet, mut outlet) = queue(LATEST);
            let events = events(2);
            inlet.event(&events[0]);
            let putting = thread::spawn(move || inlet.event(&events[1]));
            let clock = VirtualClock::new(Time::default());
            assert!(outlet.take(&mut VecDeque::new(), &clock).is_some());
            putting.join().unwrap();
        });
    }

    #[test]
    fn whoever_waits_is_woken() {
        for delivery in [LATEST, every(4, Overflow::DropOldest)] {
            model(move || {
                let (mut inlet, mut outlet) = queue(delivery);
                let putting = thread::spawn(move || {
                    for event in events(2) {
                        inlet.event(&event);
                    }
                    inlet.end();
                });
                let clock = VirtualClock::new(Time::default());
                let mut last = 0;
                let mut rest = VecDeque::new();
                while let Some(event) = rest
                    .pop_front()
                    .or_else(|| outlet.wait(&mut rest, None, &clock))
                {
                    last = event.header().sequence;
                }
                assert_eq!(last, 2);
                putting.join().unwrap();
            });
        }
    }

    #[test]
    fn a_task_that_waits_is_woken() {
        model(|| {
            let (mut inlet, mut outlet) = queue(every(4, Overflow::DropOldest));
            let putting = thread::spawn(move || {
                for event in events(2) {
                    inlet.event(&event);
                }
                inlet
            });
            let clock = VirtualClock::new(Time::default());
            let (mut rest, mut taken) = (VecDeque::new(), 0);
            loom::future::block_on(std::future::poll_fn(|cx| {
                loop {
                    let next = match rest.pop_front() {
                        Some(event) => Poll::Ready(Some(event)),
                        None => outlet.poll(&mut rest, cx.waker(), &clock),
                    };
                    match next {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(_) => taken += 1,
                    }
                    if taken == 2 {
                        return Poll::Ready(());
                    }
                }
            }));
            let waker = Waker::noop();
            assert!(outlet.poll(&mut rest, waker, &clock).is_pending());
            let inlet = putting.join().unwrap();
            assert_eq!(Receiver::tally(&inlet).unwrap().taken, 2);
        });
    }

    #[test]
    fn what_closes_ends_after_what_it_has() {
        model(|| {
            let (mut inlet, mut outlet) = queue(every(1, Overflow::Close));
            for event in events(2) {
                inlet.event(&event);
            }
            let clock = VirtualClock::new(Time::default());
            let mut rest = VecDeque::new();
            assert!(!outlet.is_ended());
            assert!(outlet.wait(&mut rest, None, &clock).is_some());
            assert!(outlet.wait(&mut rest, None, &clock).is_none());
            assert!(outlet.is_ended());
            let tally = outlet.tally();
            assert_eq!(tally.dropped.of(Reason::Overflow), 1);
        });
    }
}
