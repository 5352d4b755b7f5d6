//! Looks at the graph: what they tell beside the counts of the machine.
//!
//! Rates are differences of counts between two looks, so that events cost no
//! more for them. How long events take is measured only while somebody looks.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use milieu_transfer::{Span, Time};

use super::Clock;
use crate::flow::Flow;
use crate::graph::{EdgeView, NodeView, View};
use crate::latency::Delays;

/// For how long after a look it is measured how long events take.
pub(super) const MEASURED: Span = Span::from_seconds(120);
/// How far apart the looks are that others are compared to.
const APART: Span = Span::from_nanoseconds(500_000_000);
/// How long ago a look may be that others are compared to.
const RECENT: Span = Span::from_seconds(10);
/// How long ago it has to be, at least.
const LEAST: Span = Span::from_nanoseconds(100_000_000);

/// That nothing is measured.
const NEVER: i64 = i64::MIN;

/// The looks of the last seconds.
pub(super) struct Looks {
    /// Until when it is measured how long events take.
    until: AtomicI64,
    /// The latest last.
    recent: Mutex<VecDeque<Look>>,
}

impl Default for Looks {
    fn default() -> Looks {
        Looks {
            until: AtomicI64::new(NEVER),
            recent: Mutex::default(),
        }
    }
}

impl Looks {
    /// What time it is, if what is published now is to be measured.
    #[inline]
    pub fn measures(&self, clock: &dyn Clock) -> Option<Time> {
        match self.until.load(Ordering::Relaxed) {
            NEVER => None,
            until => self.measures_until(Time::from_nanoseconds(until), clock.now()),
        }
    }

    #[cold]
    fn measures_until(&self, until: Time, now: Time) -> Option<Time> {
        if now > until {
            // Somebody who looks at this very moment may have to look again.
            self.until.store(NEVER, Ordering::Relaxed);
            self.recent().clear();
            return None;
        }
        Some(now)
    }

    /// Compares a look with those before it, and keeps it for those to come.
    pub fn add(&self, now: Time, mut view: View) -> View {
        let until = (now + MEASURED).nanoseconds();
        self.until.store(until, Ordering::Relaxed);
        let mut recent = self.recent();
        // Whoever looks every half minute compares to the look before.
        let last = recent.back().map(|look| look.at);
        let last = last.filter(|last| now - MEASURED <= *last);
        recent.retain(|look| {
            let is_recent = now - RECENT <= look.at || Some(look.at) == last;
            is_recent && look.at <= now
        });
        let apart = recent.back().is_none_or(|last| last.at + APART <= now);
        let look = apart.then(|| Look::new(now, &view));
        compare(&mut view, now, &recent);
        recent.extend(look);
        view
    }

    fn recent(&self) -> MutexGuard<'_, VecDeque<Look>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was counted when somebody looked.
struct Look {
    at: Time,
    /// What each node had sent, and what it was: its number may be another's now.
    nodes: HashMap<u32, (Option<Flow>, String, u64)>,
    edges: HashMap<(u32, u32, u16), u64>,
    /// What each subscriber had taken, and how long that took.
    subscribers: HashMap<u64, (u64, Option<Box<Delays>>)>,
}

impl Look {
    fn new(at: Time, view: &View) -> Look {
        let nodes = view.nodes.iter().map(|node| {
            let (flow, name) = (node.flow.clone(), node.name.clone());
            (node.id, (flow, name, node.books.sent()))
        });
        let edges = view.edges.iter().map(|edge| (key(edge), edge.events));
        let subscribers = view.subscribers.iter().map(|subscriber| {
            let taken = subscriber.tally.taken;
            (subscriber.id, (taken, subscriber.delays.clone()))
        });
        Look {
            at,
            nodes: nodes.collect(),
            edges: edges.collect(),
            subscribers: subscribers.collect(),
        }
    }

    /// What a node had sent that is the same now.
    fn sent(&self, node: &NodeView) -> Option<u64> {
        let (flow, name, sent) = self.nodes.get(&node.id)?;
        (*flow == node.flow && *name == node.name).then_some(*sent)
    }
}

fn key(edge: &EdgeView) -> (u32, u32, u16) {
    (edge.from, edge.to, edge.input)
}

/// Enters what there was in a second, since the earliest look that knows.
fn compare(view: &mut View, now: Time, looks: &VecDeque<Look>) {
    let rate = |count: u64, then: &dyn Fn(&Look) -> Option<u64>| {
        let mut looks = looks.iter().filter(|look| look.at + LEAST <= now);
        looks.find_map(|look| {
            let more = count.checked_sub(then(look)?)?;
            Some(more as f64 / (now - look.at).seconds())
        })
    };
    let ids = view
        .nodes
        .iter()
        .enumerate()
        .map(|(at, node)| (node.id, at));
    let ids: HashMap<u32, usize> = ids.collect();
    for edge in &mut view.edges {
        edge.rate = rate(edge.events, &|look| {
            look.sent(&view.nodes[*ids.get(&edge.from)?])?;
            look.sent(&view.nodes[*ids.get(&edge.to)?])?;
            look.edges.get(&key(edge)).copied()
        });
    }
    for node in &mut view.nodes {
        node.rate = rate(node.books.sent(), &|look| look.sent(node));
    }
    for subscriber in &mut view.subscribers {
        let known = |look: &Look| Some(look.subscribers.get(&subscriber.id)?.0);
        subscriber.rate = rate(subscriber.tally.taken, &known);
        let mut looks = looks.iter();
        let then = looks.find_map(|look| look.subscribers.get(&subscriber.id));
        let then = then.and_then(|(_, delays)| delays.as_deref());
        subscriber.recent = subscriber.delays.clone();
        if let (Some(delays), Some(then)) = (&mut subscriber.recent, then) {
            **delays = delays.since(then);
        }
    }
}
