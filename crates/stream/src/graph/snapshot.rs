//! What operators remember, across a restart.
//!
//! A snapshot has the state of each operator under the text of its flow, which
//! says all that it does and reads. A machine that is given one keeps the states
//! until equal flows are subscribed to; what nobody subscribes to stays in later
//! snapshots for some restarts, so that none is lost to a short life.
//!
//! Only what is the same for everybody is in it: operators of readers with
//! layers or rights of their own begin anew.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use milieu_diagnostics::Source;
use milieu_transfer::{Event, Map, Span, Time, Value};

use super::naming::ReaderId;
use super::node::{Node, WOKEN, Work, asked};
use super::{Machine, written};
use crate::catalogue::Catalogue;
use crate::flow::{Flow, Parameter};
use crate::language::Language;
use crate::operator::Now;
use crate::operators::state::{self, State as _};

/// What a snapshot begins with: its kind, and the version of what follows.
const HEAD: &[u8; 16] = b"milieu streams 2";
const VERSIONED: usize = 15;

/// So many restarts a state is kept that nobody asks for.
const RESTARTS_MAX: u64 = 16;

/// For so long what was restored is there for those who come later.
const GIVEN_FOR: Span = Span::from_nanoseconds(60_000_000_000);

/// No stream has had so many events, and there is room for as many more.
const SEQUENCE_MAX: u64 = u64::MAX / 2;

/// Why streams do not go on from a snapshot, by [`Streams::restore`] or
/// [`Machine::restore`]; nothing has then changed. [`Inside`](CannotRestore::Inside)
/// is also why none could be made.
///
/// [`Streams::restore`]: crate::Streams::restore
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CannotRestore {
    /// The bytes are no snapshot.
    NoSnapshot,
    /// They are one of another version.
    Version,
    /// They are damaged.
    Damaged,
    /// It was asked from within a callback or an operator, where nobody can wait
    /// for an answer.
    Inside,
}

impl fmt::Display for CannotRestore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CannotRestore::NoSnapshot => {
                "this is no snapshot of streams; name the file that was written as one"
            }
            CannotRestore::Version => {
                "the snapshot was written by another version; use that one, or begin anew without \
                 the snapshot"
            }
            CannotRestore::Inside => {
                "within a callback streams can be neither kept nor restored; do it where they are made"
            }
            CannotRestore::Damaged => {
                "the snapshot is damaged; take an older copy, or begin anew without it"
            }
        })
    }
}

impl std::error::Error for CannotRestore {}

/// A state of a snapshot that no operator has got, or that is in none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRestored {
    /// The flow, as a pipeline.
    pub flow: String,
    /// Why.
    pub why: WhyNot,
}

/// Why a state was not restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyNot {
    /// Nobody has subscribed to the flow yet.
    Waits,
    /// It ran already.
    Runs,
    /// An operator or a function of it is not known any more, or takes other
    /// parameters.
    Unknown(String),
    /// The operator does not understand the state, or it is damaged.
    Refused(String),
    /// It cannot be written down, and is not in the last snapshot that was made.
    NotKept(String),
}

/// Of so many flows that nobody subscribes to any more states are kept.
const DEPARTED_MAX: usize = 256;

/// States that wait for their flows, and what became of others.
#[derive(Default)]
pub(super) struct Saved {
    waiting: HashMap<Flow, State>,
    /// What the first operator of a flow has got, and when: for those who come
    /// soon after it, as all do who come when a program starts.
    given: HashMap<Flow, (Time, State)>,
    lost: Vec<NotRestored>,
    /// What could not be written into the last snapshot.
    not_kept: Vec<NotRestored>,
    /// Whether snapshots are made: what leaves then stays for the next one.
    is_kept: bool,
    /// Flows whose last subscriber has left in this life, the oldest first: they
    /// are for the next life, as a program that ends drops its subscriptions
    /// one after the other.
    departed: VecDeque<(Flow, State)>,
}

/// The state of one operator.
struct State {
    /// The flow, once it was written down.
    text: Arc<str>,
    /// What the operator has said: what it remembers, or why it panicked.
    remembers: Result<Value, String>,
    /// The last event, where late subscribers are to have it.
    last: Option<Event>,
    sequence: u64,
    /// How many restarts ago somebody subscribed to it.
    restarts: u64,
}

impl State {
    /// All but the text, as bytes. Says why if that cannot be.
    fn save(&self) -> Result<Value, String> {
        let fields = [
            self.remembers.clone()?,
            // Bodies say themselves what they are.
            asked(|| self.last.save())?,
            Value::Uint(self.sequence),
            Value::Uint(self.restarts),
        ];
        let mut bytes = Vec::new();
        match written::write(&Value::List(Arc::new(fields)), &mut bytes) {
            Some(()) => Ok(Value::Bytes(bytes.into())),
            None => Err("what it remembers lies too deep in each other".to_owned()),
        }
    }

    fn load(text: &Arc<str>, bytes: &[u8]) -> Result<State, String> {
        let value = written::read(bytes).ok_or("its bytes are damaged")?;
        let parts = state::parts(&value, 4)?;
        let sequence = u64::load(&parts[2])?;
        if sequence > SEQUENCE_MAX {
            return Err(format!("nobody has published {sequence} events"));
        }
        Ok(State {
            text: Arc::clone(text),
            remembers: Ok(parts[0].clone()),
            last: state::State::load(&parts[1])?,
            sequence,
            restarts: state::State::load(&parts[3])?,
        })
    }
}

impl Machine {
    /// What all operators remember now, as bytes for [`restore`](Machine::restore).
    /// Flows with functions that have no name cannot be written down and are
    /// left out; so are states that cannot be, which
    /// [`not_restored`](Machine::not_restored) tells.
    #[must_use]
    pub fn snapshot(&mut self, catalogue: &Catalogue) -> Vec<u8> {
        self.saved.is_kept = true;
        // In the order of their texts, so that equal states are equal bytes.
        let mut states = BTreeMap::new();
        // Where there are copies, those who came first have seen most.
        let nodes = self
            .nodes
            .iter()
            .filter(|(id, _)| self.copy_of(*id).is_none());
        let running = nodes.filter_map(|(_, node)| self.saved(node));
        for (flow, mut state) in running {
            state.text = Language::Pipeline.write_flow(flow, catalogue).into();
            states.insert(Arc::clone(&state.text), state.save());
        }
        for (flow, state) in &mut self.saved.departed {
            if state.text.is_empty() {
                state.text = Language::Pipeline.write_flow(flow, catalogue).into();
            }
            let known = states.entry(Arc::clone(&state.text));
            known.or_insert_with(|| state.save());
        }
        let waiting = self.saved.waiting.values();
        for state in waiting.filter(|state| state.restarts <= RESTARTS_MAX) {
            let known = states.entry(Arc::clone(&state.text));
            known.or_insert_with(|| state.save());
        }
        let mut bytes = HEAD.to_vec();
        self.saved.not_kept.clear();
        let states = states.into_iter().filter_map(|(text, state)| {
            let not_kept = |why| NotRestored {
                flow: text.to_string(),
                why: WhyNot::NotKept(why),
            };
            let state = state.map_err(|why| self.saved.not_kept.push(not_kept(why)));
            Some((Value::Text(Arc::clone(&text)), state.ok()?))
        });
        // Each is bytes of its own, so that one that is damaged costs no other.
        let states = Map::new(states.collect::<Vec<_>>()).expect("each text is there once");
        written::write(&Value::Map(Arc::new(states)), &mut bytes).expect("this is not deep");
        bytes
    }

    /// Takes a snapshot. Each operator gets its state when its flow is first
    /// subscribed to; what does not is told by
    /// [`not_restored`](Machine::not_restored). A snapshot that was taken before
    /// is forgotten.
    ///
    /// # Errors
    /// If the bytes are no snapshot; nothing has then changed.
    pub fn restore(&mut self, bytes: &[u8], catalogue: &Catalogue) -> Result<(), CannotRestore> {
        let (head, body) = bytes
            .split_at_checked(HEAD.len())
            .filter(|(head, _)| head[..VERSIONED] == HEAD[..VERSIONED])
            .ok_or(CannotRestore::NoSnapshot)?;
        if head != HEAD {
            return Err(CannotRestore::Version);
        }
        let states = written::read(body).ok_or(CannotRestore::Damaged)?;
        let Value::Map(states) = states else {
            return Err(CannotRestore::Damaged);
        };
        let mut saved = Saved {
            is_kept: true,
            ..Saved::default()
        };
        for state in states.iter() {
            let (Value::Text(text), Value::Bytes(bytes)) = state else {
                return Err(CannotRestore::Damaged);
            };
            match self.take(text, bytes, catalogue) {
                Ok((flow, state)) => _ = saved.waiting.insert(flow, state),
                Err(why) => saved.lost.push(NotRestored {
                    flow: text.to_string(),
                    why,
                }),
            }
        }
        self.saved = saved;
        Ok(())
    }

    /// A state of a snapshot, and the flow that it waits for.
    fn take(
        &self,
        text: &Arc<str>,
        bytes: &[u8],
        catalogue: &Catalogue,
    ) -> Result<(Flow, State), WhyNot> {
        let flow = flow_of(text, catalogue).map_err(WhyNot::Unknown)?;
        if self.known.contains_key(&(flow.clone(), ReaderId::GLOBAL)) {
            return Err(WhyNot::Runs);
        }
        let mut state = State::load(text, bytes).map_err(WhyNot::Refused)?;
        state.restarts = state.restarts.saturating_add(1);
        Ok((flow, state))
    }

    /// The states of the snapshot that no operator has got, and those that could
    /// not be written into the last one that was made, and why.
    #[must_use]
    pub fn not_restored(&self) -> Vec<NotRestored> {
        let waiting = self.saved.waiting.values().map(|state| NotRestored {
            flow: state.text.to_string(),
            why: WhyNot::Waits,
        });
        let known = self.saved.lost.iter().chain(&self.saved.not_kept);
        let mut all: Vec<NotRestored> = known.cloned().chain(waiting).collect();
        all.sort_by(|one, other| one.flow.cmp(&other.flow));
        all
    }

    /// Takes note of what a node remembers that goes.
    pub(super) fn keep_node(&mut self, node: &Node) {
        if !self.saved.is_kept {
            return;
        }
        if let Some((flow, state)) = self.saved(node) {
            self.saved.given.remove(flow);
            let departed = &mut self.saved.departed;
            if departed.len() == DEPARTED_MAX {
                departed.pop_front();
            }
            departed.push_back((flow.clone(), state));
        }
    }

    /// Gives a node that was just made the state that waits for it.
    pub(super) fn restore_node(&mut self, now: &Now<'_>, node: &mut Node) {
        if !self.saved.is_kept || node.more.reader != ReaderId::GLOBAL {
            return;
        }
        let Some(flow) = &node.more.flow else { return };
        let flow = flow.clone();
        self.saved
            .departed
            .retain(|(departed, _)| *departed != flow);
        let state = self
            .saved
            .waiting
            .remove(&flow)
            .map(|state| (now.get(), state));
        let Some((given, state)) = state.or_else(|| self.saved.given.remove(&flow)) else {
            return;
        };
        if given + GIVEN_FOR < now.get() {
            return;
        }
        let (Work::Operator(operator) | Work::Filter(operator)) = &mut node.work else {
            return;
        };
        let numbers = &self.made[usize::from(node.more.kind)];
        let restored = asked(|| {
            operator.restore(&state.remembers.clone()?)?;
            Ok((operator.held() as u64, operator.retains()))
        });
        let why = match restored {
            Ok(Ok((held, retains))) => {
                numbers.fetch_max(state.sequence, Relaxed);
                // What it holds came in in its life before.
                node.books.received = held;
                node.more.began_with = u32::try_from(held).unwrap_or(WOKEN);
                node.last = state.last.clone().filter(|_| retains);
                let age = u8::try_from(state.restarts).unwrap_or(u8::MAX);
                (node.more.age, node.more.last_age) = (age, age);
                self.saved.given.insert(flow, (given, state));
                return;
            }
            Ok(Err(why)) => why,
            // Nobody knows what it is like now.
            Err(said) => {
                node.do_without(&said);
                said
            }
        };
        self.saved.lost.push(NotRestored {
            flow: state.text.to_string(),
            why: WhyNot::Refused(why),
        });
    }

    /// The state of a node, if it has one that can be written down.
    fn saved<'a>(&self, node: &'a Node) -> Option<(&'a Flow, State)> {
        let operator = node.operator()?;
        let flow = node.more.flow.as_ref()?;
        if node.more.reader != ReaderId::GLOBAL || !can_be_said(flow) {
            return None;
        }
        let remembers = asked(|| (operator.snapshot(), operator.retains()));
        let (remembers, retains) = match remembers {
            Ok((remembers, retains)) => (Ok(remembers), retains),
            Err(said) => (Err(said), false),
        };
        let last = node.last.clone().filter(|_| retains);
        if remembers == Ok(Value::Null) && last.is_none() {
            return None;
        }
        let state = State {
            text: "".into(),
            remembers,
            last,
            sequence: self.made[usize::from(node.more.kind)].load(Relaxed),
            restarts: 0,
        };
        Some((flow, state))
    }
}

/// Whether all functions of a flow have names.
fn can_be_said(flow: &Flow) -> bool {
    let mut can = true;
    flow.visit(&mut |flow| {
        if let Flow::Operation(operation) = flow {
            can &= operation.parameters.iter().all(|(_, parameter)| {
                !matches!(parameter, Parameter::Function(name) if name.starts_with('#'))
            });
        }
    });
    can
}

fn flow_of(text: &str, catalogue: &Catalogue) -> Result<Flow, String> {
    let flow = Language::Pipeline.flow(&Source::new("snapshot", text), catalogue);
    flow.map_err(|found| {
        let messages = found.into_iter().map(|found| found.message);
        messages.collect::<Vec<_>>().join("; ")
    })
}
