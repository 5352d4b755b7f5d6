//! Queues: where events of a subscription wait until they are taken.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant;

use milieu_transfer::{Event, Time};

use super::Clock;
use crate::latency::Delays;
use crate::receiver::{Delivered, Receiver, Tally};
use crate::room::{Place, Room};
use crate::subscription::Delivery;

/// A queue with a bound. The machine puts events in, one subscriber takes them.
#[derive(Clone)]
pub(super) struct Queue(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    arrived: Condvar,
    /// Whether there is something to take: an event, or the end. Who looks in
    /// vain keeps nobody from putting events in.
    has_news: AtomicBool,
}

struct State {
    events: VecDeque<Event>,
    room: Room,
    tally: Tally,
    /// Once events were measured.
    marks: Option<Box<Marks>>,
    /// Nothing more will come.
    ended: bool,
    /// A thread waits for events.
    is_awaited: bool,
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

impl Queue {
    pub fn new(delivery: Delivery) -> Queue {
        Queue(Arc::new(Shared {
            state: Mutex::new(State {
                events: VecDeque::new(),
                room: Room::of(delivery),
                tally: Tally::default(),
                marks: None,
                ended: false,
                is_awaited: false,
                waker: None,
            }),
            arrived: Condvar::new(),
            has_news: AtomicBool::new(false),
        }))
    }

    /// Takes all that waits, in exchange for an empty queue whose memory serves
    /// again. False: nothing was there and nothing will come.
    pub fn take(&self, into: &mut VecDeque<Event>, clock: &dyn Clock) -> bool {
        if !self.0.has_news.load(Ordering::Acquire) {
            return true;
        }
        let mut state = self.state();
        self.hand_over(&mut state, into, clock);
        !into.is_empty() || !state.ended
    }

    /// Takes all that waits, or waits for something until then; forever, if
    /// there is no limit.
    pub fn wait(&self, into: &mut VecDeque<Event>, until: Option<Instant>, clock: &dyn Clock) {
        let mut state = self.state();
        while state.events.is_empty() && !state.ended {
            state.is_awaited = true;
            let arrived = &self.0.arrived;
            state = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                None => arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(rest) if rest.is_zero() => break,
                Some(rest) => {
                    let waited = arrived.wait_timeout(state, rest);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        state.is_awaited = false;
        self.hand_over(&mut state, into, clock);
    }

    /// Takes all that waits, or wakes this when there is something. False: as
    /// with [`take`](Queue::take).
    pub fn poll(&self, into: &mut VecDeque<Event>, waker: &Waker, clock: &dyn Clock) -> bool {
        let mut state = self.state();
        self.hand_over(&mut state, into, clock);
        if into.is_empty() && !state.ended {
            state.waker = Some(waker.clone());
        }
        !into.is_empty() || !state.ended
    }

    /// Whether nothing is there and nothing will come.
    pub fn is_ended(&self) -> bool {
        let state = self.state();
        state.ended && state.events.is_empty()
    }

    pub fn tally(&self) -> Tally {
        let state = self.state();
        Tally {
            waiting: state.events.len() as u64,
            ..state.tally.clone()
        }
    }

    fn hand_over(&self, state: &mut State, into: &mut VecDeque<Event>, clock: &dyn Clock) {
        state.hand_over(into, clock);
        // Whoever puts something in says so while it has the lock.
        self.0.has_news.store(state.ended, Ordering::Release);
    }

    fn wake(&self, mut state: MutexGuard<'_, State>) {
        let is_awaited = state.is_awaited;
        let waker = state.waker.take();
        self.0.has_news.store(true, Ordering::Release);
        // Whoever is woken finds nobody at the lock.
        drop(state);
        if is_awaited {
            self.0.arrived.notify_all();
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn hand_over(&mut self, into: &mut VecDeque<Event>, clock: &dyn Clock) {
        if let Some(marks) = &mut self.marks {
            marks.taken(&self.events, clock);
        }
        self.tally.taken += self.events.len() as u64;
        if into.is_empty() {
            std::mem::swap(&mut self.events, into);
        } else {
            into.append(&mut self.events);
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

impl Receiver for Queue {
    fn event(&mut self, event: &Event) -> Delivered {
        let mut state = self.state();
        let marks = state.marks.as_deref_mut();
        let published = marks.and_then(|marks| marks.next.take());
        if state.ended {
            return Delivered::Closed;
        }
        let mut displaced = None;
        match state.room.place(state.events.len()) {
            // The publisher was told; what is under way is not lost.
            Place::Last | Place::Refused => {}
            Place::InsteadOfFirst(reason) => {
                displaced = state.events.pop_front();
                if let Some(marks) = &mut state.marks {
                    marks.displaced += 1;
                }
                state.tally.dropped.add(reason, 1);
            }
            Place::Nowhere(reason) => {
                state.tally.dropped.add(reason, 1);
                return Delivered::Taken;
            }
            Place::End(reason) => {
                state.tally.dropped.add(reason, 1);
                state.ended = true;
                self.wake(state);
                return Delivered::Closed;
            }
        }
        // Many queues never hold more than one.
        let few = usize::from(state.events.is_empty());
        state.events.reserve_exact(few);
        let others = state.events.len();
        if let (Some(marks), Some(published)) = (&mut state.marks, published) {
            marks.waits(published, others);
        }
        state.events.push_back(event.clone());
        self.wake(state);
        // An event that goes is dropped where nobody waits for the lock.
        drop(displaced);
        Delivered::Taken
    }

    fn refuses(&self) -> bool {
        let state = self.state();
        state.room.place(state.events.len()) == Place::Refused
    }

    fn end(&mut self) {
        let mut state = self.state();
        state.ended = true;
        self.wake(state);
    }

    fn mark(&mut self, published: Time) -> bool {
        self.state().marks.get_or_insert_default().next = Some(published);
        true
    }

    fn delays(&self) -> Option<Delays> {
        self.state().marks.as_ref()?.delays.as_deref().cloned()
    }

    fn tally(&self) -> Option<Tally> {
        Some(Queue::tally(self))
    }
}
