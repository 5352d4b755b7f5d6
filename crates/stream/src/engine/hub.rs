//! The engine inside a process: any number of ports, one lock, queues that
//! credits bound.
//!
//! Without a schedule every frame arrives at once, in order, and threads wake
//! each other. With one, frames arrive when a test says so, in a time that the
//! test hands in, and everything happens in the thread of the test.
//!
//! Properties kept:
//! - nobody is woken, and nothing of others is dropped, while the lock is held;
//! - what waits for a port is at most what it has granted, and for each such
//!   frame, question and peer a few words; who comes and goes is told each time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};

use milieu_transfer::{Span, Time};

use super::{
    Capabilities, Channel, CloseReason, Engine, Frame, NEWS_MAX, News, Outcome, Parcel, Passage,
    Payload, Peer, PeerId, Receipt, Refused, Schedule,
};

/// Joins machines in one process. Clones are the same hub.
///
/// ```
/// use milieu_stream::engine::{Engine, Hub, News};
/// use std::task::Waker;
///
/// let hub = Hub::new();
/// let mut kitchen = hub.join("kitchen");
/// let garden = hub.join("garden");
/// let mut news = Vec::new();
/// let _ = kitchen.poll(Waker::noop(), &mut news);
/// assert!(matches!(&news[..], [News::Joined(peer)] if peer.id == garden.id()));
/// ```
#[derive(Clone)]
pub struct Hub(Arc<Mutex<State>>);

/// A port of a [`Hub`]: one end of what lies between machines of a process.
pub struct Port {
    hub: Hub,
    id: PeerId,
}

/// A frame that has set out and has not been handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InFlight {
    /// From which port.
    pub from: PeerId,
    /// To which port.
    pub to: PeerId,
    /// On which channel.
    pub channel: Channel,
    /// Its number there.
    pub sequence: u64,
}

const BYTES_MAX: usize = 1 << 20;
const CREDIT_MAX: u64 = 4096;
const REQUESTS_MAX: usize = 64;

struct State {
    ports: BTreeMap<PeerId, PortState>,
    /// How many ports there have been.
    joined: u64,
    /// Whether ports take bytes alone, as if each were in a process of its own.
    is_apart: bool,
    schedule: Option<Box<dyn Schedule>>,
    now: Time,
    /// What is on its way, by when it arrives and when it set out.
    ways: BTreeMap<(Time, u64), (PeerId, Arrival)>,
    set_out: u64,
}

struct PortState {
    name: Arc<str>,
    waiting: VecDeque<Waiting>,
    waker: Option<Waker>,
    /// What others have granted this one.
    credits: BTreeMap<(PeerId, Channel), Credit>,
    /// Whom it has asked what, without an answer yet.
    asked: BTreeSet<(PeerId, u64)>,
}

#[derive(Clone, Copy, Default)]
struct Credit {
    granted: u64,
    used: u64,
    /// Whether the sender found none, and waits for some.
    is_missed: bool,
}

impl Credit {
    fn left(self) -> u64 {
        self.granted.saturating_sub(self.used)
    }
}

/// What a port is told next.
enum Waiting {
    News(News),
    Frame(Arrival),
}

struct Arrival {
    from: PeerId,
    channel: Channel,
    frame: Frame,
    receipt: Option<Receipt>,
}

/// Whom to wake once the lock is free.
type Wakers = Vec<Waker>;

impl Default for Hub {
    fn default() -> Hub {
        Hub::new()
    }
}

impl Hub {
    /// One that delivers at once.
    #[must_use]
    pub fn new() -> Hub {
        Hub(Arc::new(Mutex::new(State {
            ports: BTreeMap::new(),
            joined: 0,
            is_apart: false,
            schedule: None,
            now: Time::MIN,
            ways: BTreeMap::new(),
            set_out: 0,
        })))
    }

    /// One whose frames arrive as a schedule says, in a time that is handed in
    /// by [`advance`](Hub::advance).
    #[must_use]
    pub fn scheduled(schedule: impl Schedule + 'static) -> Hub {
        let hub = Hub::new();
        hub.locked(|state, _| state.schedule = Some(Box::new(schedule)));
        hub
    }

    /// The same, with ports that take bytes alone, as if each were in a process
    /// of its own.
    #[must_use]
    pub fn apart(self) -> Hub {
        self.locked(|state, _| state.is_apart = true);
        self
    }

    /// A new port, which all others are told of and which is told of all others.
    #[must_use]
    pub fn join(&self, name: &str) -> Port {
        let id = self.locked(|state, wakers| {
            state.joined += 1;
            let (id, name) = (PeerId(state.joined), Arc::from(name));
            let mut port = PortState {
                name: Arc::clone(&name),
                waiting: VecDeque::new(),
                waker: None,
                credits: BTreeMap::new(),
                asked: BTreeSet::new(),
            };
            let is_here = !state.is_apart;
            let joined = |id, name| Waiting::News(News::Joined(Peer { id, name, is_here }));
            for (known, other) in &mut state.ports {
                port.waiting
                    .push_back(joined(*known, Arc::clone(&other.name)));
                other.tell(joined(id, Arc::clone(&name)), wakers);
            }
            state.ports.insert(id, port);
            id
        });
        let hub = self.clone();
        Port { hub, id }
    }

    /// Ends a port as if its process had died: what is under way from it, and to
    /// it, is lost, but for what has arrived already.
    pub fn kill(&self, port: PeerId) {
        self.remove(port, CloseReason::Lost);
    }

    /// Lets time pass until then: what arrives by then is there.
    pub fn advance(&self, until: Time) {
        self.locked(|state, wakers| {
            state.now = state.now.max(until);
            while let Some(first) = state.ways.first_entry() {
                if first.key().0 > until {
                    break;
                }
                let (to, arrival) = first.remove();
                state.tell(to, Waiting::Frame(arrival), wakers);
            }
        });
    }

    /// When the next frame arrives that is on its way.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        self.locked(|state, _| state.ways.keys().next().map(|(time, _)| *time))
    }

    /// Every frame that is on its way or waits to be polled, counted from the
    /// queues themselves; those that are doubled, twice.
    #[must_use]
    pub fn in_flight(&self) -> Vec<InFlight> {
        self.locked(|state, _| {
            let ways = state.ways.values().map(|(to, arrival)| (*to, arrival));
            let waiting = state.ports.iter().flat_map(|(to, port)| {
                port.waiting.iter().filter_map(|waiting| match waiting {
                    Waiting::Frame(arrival) => Some((*to, arrival)),
                    Waiting::News(_) => None,
                })
            });
            let mut all: Vec<InFlight> = ways
                .chain(waiting)
                .map(|(to, arrival)| InFlight {
                    from: arrival.from,
                    to,
                    channel: arrival.channel,
                    sequence: arrival.frame.sequence,
                })
                .collect();
            all.sort_unstable();
            all
        })
    }

    fn remove(&self, id: PeerId, reason: CloseReason) {
        // What it held is dropped where nobody waits for the lock.
        let _removed = self.locked(|state, wakers| state.remove(id, reason, wakers));
    }

    fn locked<R>(&self, work: impl FnOnce(&mut State, &mut Wakers) -> R) -> R {
        let mut wakers = Wakers::new();
        let result = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut state, &mut wakers)
        };
        for waker in wakers {
            waker.wake();
        }
        result
    }
}

impl PortState {
    fn tell(&mut self, waiting: Waiting, wakers: &mut Wakers) {
        self.waiting.push_back(waiting);
        wakers.extend(self.waker.take());
    }
}

impl State {
    fn tell(&mut self, to: PeerId, waiting: Waiting, wakers: &mut Wakers) {
        if let Some(port) = self.ports.get_mut(&to) {
            port.tell(waiting, wakers);
        }
    }

    /// Changes what a port may send; it is told where it could send nothing.
    fn change_credit(
        &mut self,
        sender: PeerId,
        way: (PeerId, Channel),
        wakers: &mut Wakers,
        change: impl FnOnce(&mut Credit),
    ) {
        let Some(port) = self.ports.get_mut(&sender) else {
            return;
        };
        let credit = port.credits.entry(way).or_default();
        change(credit);
        if credit.is_missed && credit.left() > 0 {
            credit.is_missed = false;
            port.tell(Waiting::News(News::Credit(way.0, way.1)), wakers);
        }
    }

    fn submit(
        &mut self,
        from: PeerId,
        parcel: &Parcel,
        wakers: &mut Wakers,
    ) -> Result<(), Refused> {
        if !self.ports.contains_key(&parcel.to) {
            return Err(Refused::Gone);
        }
        if parcel.frame.payload.bytes() > BYTES_MAX {
            return Err(Refused::TooLarge);
        }
        if self.is_apart && matches!(parcel.frame.payload, Payload::Event(_)) {
            return Err(Refused::NotBytes);
        }
        let port = self.ports.get_mut(&from).ok_or(Refused::Closed)?;
        let credit = port.credits.entry((parcel.to, parcel.channel)).or_default();
        if credit.left() == 0 {
            credit.is_missed = true;
            return Err(Refused::NoCredit);
        }
        credit.used += 1;
        let arrival = |receipt| Arrival {
            from,
            channel: parcel.channel,
            frame: parcel.frame.clone(),
            receipt,
        };
        let Some(schedule) = &mut self.schedule else {
            let arrival = arrival(parcel.receipt);
            self.tell(parcel.to, Waiting::Frame(arrival), wakers);
            return Ok(());
        };
        let mut ways = schedule.pass(&Passage {
            from,
            to: parcel.to,
            channel: parcel.channel,
            sequence: parcel.frame.sequence,
            time: self.now,
        });
        ways.sort_unstable();
        if ways.is_empty() {
            self.lose(from, parcel.to, parcel.channel, parcel.receipt, wakers);
        }
        for (index, way) in ways.into_iter().enumerate() {
            // The first to arrive is the one that is told of.
            let arrival = arrival(parcel.receipt.filter(|_| index == 0));
            if way <= Span::ZERO {
                self.tell(parcel.to, Waiting::Frame(arrival), wakers);
            } else {
                self.set_out += 1;
                let at = (self.now + way, self.set_out);
                self.ways.insert(at, (parcel.to, arrival));
            }
        }
        Ok(())
    }

    /// Tells that a frame was lost, and gives its credit back.
    fn lose(
        &mut self,
        from: PeerId,
        to: PeerId,
        channel: Channel,
        receipt: Option<Receipt>,
        wakers: &mut Wakers,
    ) {
        if let Some(receipt) = receipt {
            let lost = News::Receipt(receipt, Outcome::Lost);
            self.tell(from, Waiting::News(lost), wakers);
            let port = self.ports.get(&from);
            // What has been shut or left is not brought back by it.
            if port.is_some_and(|port| port.credits.contains_key(&(to, channel))) {
                self.change_credit(from, (to, channel), wakers, |credit| {
                    credit.used = credit.used.saturating_sub(1);
                });
            }
        }
    }

    fn remove(
        &mut self,
        id: PeerId,
        reason: CloseReason,
        wakers: &mut Wakers,
    ) -> Option<PortState> {
        let removed = self.ports.remove(&id)?;
        let (gone, stay): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.ways)
            .into_iter()
            .partition(|(_, (to, arrival))| *to == id || arrival.from == id);
        self.ways = stay;
        let waiting = removed.waiting.iter().filter_map(|waiting| match waiting {
            Waiting::Frame(arrival) => Some((arrival.from, arrival.receipt)),
            Waiting::News(_) => None,
        });
        let on_the_way = gone
            .values()
            .map(|(_, arrival)| (arrival.from, arrival.receipt));
        let unread: Vec<_> = waiting.chain(on_the_way).collect();
        for (from, receipt) in unread {
            if let Some(receipt) = receipt {
                let lost = News::Receipt(receipt, Outcome::Lost);
                self.tell(from, Waiting::News(lost), wakers);
            }
        }
        for port in self.ports.values_mut() {
            let channels = port
                .credits
                .range((id, Channel(0))..=(id, Channel(u32::MAX)));
            let channels: Vec<_> = channels.map(|(way, _)| *way).collect();
            for way in channels {
                port.credits.remove(&way);
            }
            let numbers: Vec<u64> = port
                .asked
                .range((id, 0)..=(id, u64::MAX))
                .map(|(_, number)| *number)
                .collect();
            for number in numbers {
                port.asked.remove(&(id, number));
                port.tell(Waiting::News(News::Reply(id, number, None)), wakers);
            }
            port.tell(Waiting::News(News::Left(id, reason)), wakers);
        }
        Some(removed)
    }
}

impl Port {
    /// The number by which others know this port.
    #[must_use]
    pub fn id(&self) -> PeerId {
        self.id
    }
}

impl Engine for Port {
    fn capabilities(&self) -> Capabilities {
        self.hub.locked(|state, _| Capabilities {
            events: !state.is_apart,
            bytes_max: BYTES_MAX,
            is_ordered: state.schedule.is_none(),
            receipts: true,
            credit_max: CREDIT_MAX,
            requests_max: REQUESTS_MAX,
        })
    }

    fn submit(&mut self, batch: &mut VecDeque<Parcel>) -> Result<(), Refused> {
        self.hub.locked(|state, wakers| {
            while let Some(parcel) = batch.front() {
                state.submit(self.id, parcel, wakers)?;
                batch.pop_front();
            }
            Ok(())
        })
    }

    fn credit(&mut self, to: PeerId, channel: Channel) -> u64 {
        self.hub.locked(|state, _| {
            let is_there = state.ports.contains_key(&to);
            let port = state.ports.get_mut(&self.id).filter(|_| is_there);
            port.map_or(0, |port| {
                let credit = port.credits.entry((to, channel)).or_default();
                let left = credit.left();
                credit.is_missed = left == 0;
                left
            })
        })
    }

    fn grant(&mut self, from: PeerId, channel: Channel, frames: u64) {
        self.hub.locked(|state, wakers| {
            if !state.ports.contains_key(&self.id) {
                return;
            }
            state.change_credit(from, (self.id, channel), wakers, |credit| {
                let most = credit.used.saturating_add(CREDIT_MAX);
                credit.granted = credit.granted.max(frames.min(most));
            });
        });
    }

    fn shut(&mut self, from: PeerId, channel: Channel) {
        self.hub.locked(|state, _| {
            if let Some(port) = state.ports.get_mut(&from) {
                port.credits.remove(&(self.id, channel));
            }
        });
    }

    fn leave(&mut self, to: PeerId, channel: Channel) {
        self.hub.locked(|state, _| {
            if let Some(port) = state.ports.get_mut(&self.id) {
                port.credits.remove(&(to, channel));
            }
        });
    }

    fn request(&mut self, to: PeerId, number: u64, question: Arc<[u8]>) -> Result<(), Refused> {
        self.hub.locked(|state, wakers| {
            let is_there = state.ports.contains_key(&to);
            let port = state.ports.get_mut(&self.id).ok_or(Refused::Closed)?;
            if !is_there {
                return Err(Refused::Gone);
            }
            if question.len() > BYTES_MAX {
                return Err(Refused::TooLarge);
            }
            if port.asked.range((to, 0)..=(to, u64::MAX)).count() >= REQUESTS_MAX {
                return Err(Refused::NoCredit);
            }
            port.asked.insert((to, number));
            let asked = News::Request(self.id, number, question);
            state.tell(to, Waiting::News(asked), wakers);
            Ok(())
        })
    }

    fn reply(&mut self, to: PeerId, number: u64, answer: Arc<[u8]>) {
        self.hub.locked(|state, wakers| {
            let asked = |port: &mut PortState| port.asked.remove(&(self.id, number));
            if state.ports.get_mut(&to).is_some_and(asked) {
                let answer = Some(answer).filter(|answer| answer.len() <= BYTES_MAX);
                let reply = News::Reply(self.id, number, answer);
                state.tell(to, Waiting::News(reply), wakers);
            }
        });
    }

    fn poll(&mut self, waker: &Waker, news: &mut Vec<News>) -> Poll<()> {
        self.hub.locked(|state, wakers| {
            let Some(port) = state.ports.get_mut(&self.id) else {
                return Poll::Pending;
            };
            if port.waiting.is_empty() {
                match &mut port.waker {
                    Some(known) => known.clone_from(waker),
                    none => *none = Some(waker.clone()),
                }
                return Poll::Pending;
            }
            let count = port.waiting.len().min(NEWS_MAX);
            let mut delivered = Vec::new();
            for waiting in port.waiting.drain(..count) {
                news.push(match waiting {
                    Waiting::News(news) => news,
                    Waiting::Frame(arrival) => {
                        let receipt = arrival.receipt.map(|receipt| (arrival.from, receipt));
                        delivered.extend(receipt);
                        News::Frame(arrival.from, arrival.channel, arrival.frame)
                    }
                });
            }
            for (from, receipt) in delivered {
                let told = News::Receipt(receipt, Outcome::Delivered);
                state.tell(from, Waiting::News(told), wakers);
            }
            Poll::Ready(())
        })
    }

    fn close(&mut self, reason: CloseReason) {
        self.hub.remove(self.id, reason);
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.close(CloseReason::Done);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::link::Terms;
    use crate::{Delivery, Flow, Streams, SystemClock, operators};
    use milieu_transfer::Origin;

    /// Whoever sends still asks for credit when the other has shut the channel.
    #[test]
    fn edges_that_come_and_go_leave_no_credit_behind() {
        let hub = Hub::new();
        let machine = |name: &str| {
            let origin = Origin(name.into());
            let streams = Streams::new(operators::catalogue(), SystemClock, origin, 1);
            let port = hub.join(name);
            let id = port.id();
            (streams.join(port, Terms::open()), streams, id)
        };
        let (kitchen, garden) = (machine("kitchen"), machine("garden"));
        let settle = || while kitchen.0.poll() | garden.0.poll() {};
        let oven = kitchen.1.publisher::<i64>("/oven").unwrap();
        for value in 0..10 {
            let oven_is_read = garden
                .1
                .subscribe(&Flow::Stream("/oven".into()), Delivery::default());
            settle();
            let _ = oven.publish(value);
            settle();
            drop(oven_is_read.unwrap());
            while garden.0.poll() {}
            let _ = oven.publish(value);
            settle();
        }
        let known: Vec<Channel> = hub.locked(|state, _| {
            let credits = &state.ports[&kitchen.2].credits;
            credits.keys().map(|(_, channel)| *channel).collect()
        });
        assert_eq!(known, [Channel(0)]);
    }
}
