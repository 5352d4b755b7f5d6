//! Operators that may take long, worked with apart from the machine.
//!
//! ```text
//!  machine thread                 desk                    other threads
//!  Apart::event ──▶ waiting ──▶ [operator] ◀── Desk::work ── Hands
//!  Apart::wake  ◀── done    ◀──────┘                └─ order: Machine::fetch
//! ```
//!
//! The node has an [`Apart`] in the place of the operator, which lies on a
//! [`Desk`] and is worked with by [`Hands`], one job after the other. Without
//! hands, as in rehearsals, the machine does the work itself, at once.
//!
//! Whatever goes wrong there stays there: a panic, and work that takes longer
//! than hands are lent for, become a panic of the node that stands for it.

mod likeness;

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use milieu_transfer::{Event, Span, Stream, Time, Value};

use super::node::NodeId;
use super::{Machine, said};
use crate::operator::{Fate, Now, Operator, Output, Reason, Settled};
use crate::operators::{alike, state::State as _};

/// Whom the machine calls to work at a desk. It has no threads itself, and knows of
/// those that others have no more than this.
pub(crate) trait Hands: Send + Sync {
    /// Has somebody work at this desk. False: nobody can be had.
    fn call(&self, desk: &Arc<Desk>) -> bool;

    /// Gives up a thread that is at work for nobody any more: it is told when it
    /// comes back, and another takes its place. False: too many are given up.
    fn give_up(&self) -> bool;

    /// How many events may wait at a desk, and how long work on one may take.
    fn terms(&self) -> (usize, Span);
}

/// The hands that a machine has now, and the desks that it has for them.
#[derive(Clone, Default)]
pub(super) struct Lent(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    /// The last are those that are called.
    hands: Vec<Arc<dyn Hands>>,
    /// By their addresses.
    desks: HashMap<usize, Weak<Desk>>,
}

impl Lent {
    fn get(&self) -> Option<Arc<dyn Hands>> {
        self.known().hands.last().cloned()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Machine {
    /// Lets others work with operators that may take long, instead of those that
    /// were lent before as long as these are there.
    pub(crate) fn lend(&mut self, now: &Now<'_>, hands: Arc<dyn Hands>) {
        self.hands.known().hands.push(hands);
        self.hand_over(now);
    }

    /// Ends that.
    pub(crate) fn take_back(&mut self, now: &Now<'_>, hands: &Arc<dyn Hands>) {
        let mut known = self.hands.known();
        known.hands.retain(|known| !Arc::ptr_eq(known, hands));
        drop(known);
        self.hand_over(now);
    }

    /// Has the hands that are there now do what others have left. Without hands
    /// that waits: whoever ends them is not to do all of it.
    fn hand_over(&mut self, now: &Now<'_>) {
        let known = self.hands.known();
        if known.hands.is_empty() {
            return;
        }
        let desks: Vec<Arc<Desk>> = known.desks.values().filter_map(Weak::upgrade).collect();
        drop(known);
        for desk in desks {
            self.fetch(now, &desk);
        }
    }

    /// Publishes what has been made at a desk, and sees that the rest is done.
    pub(crate) fn fetch(&mut self, now: &Now<'_>, desk: &Desk) {
        let node = desk.node.get().copied();
        if let Some(node) = node.filter(|_| !desk.state().is_cleared) {
            self.guarded(now, None, |machine| machine.run_wake(now, node));
            self.unite_touched(now);
        }
    }
}

/// Where an operator lies, and what is to be done with it.
pub(crate) struct Desk {
    node: OnceLock<NodeId>,
    stream: Arc<Stream>,
    numbers: Arc<AtomicU64>,
    state: Mutex<State>,
}

struct State {
    /// Nothing while somebody works with it, and once it has panicked.
    operator: Option<Box<dyn Operator>>,
    waiting: VecDeque<Job>,
    at_work: Option<AtWork>,
    /// What came of it, until the machine has fetched it.
    done: VecDeque<Done>,
    /// Who was called last, and has not come yet.
    called: Option<Arc<dyn Hands>>,
    /// The number of the last event that it has made.
    sequence: u64,
    /// What the operator remembers after all that is done.
    remembers: Value,
    /// The node has gone.
    is_cleared: bool,
    /// The thread at work was given up.
    is_given_up: bool,
}

#[derive(Clone)]
enum Job {
    Event(usize, Event),
    Wake,
}

struct AtWork {
    job: Job,
    since: Time,
    /// Whose thread it is. Nothing: that of the machine.
    hands: Option<Arc<dyn Hands>>,
}

struct Done {
    job: Job,
    made: Result<Made, String>,
}

struct Made {
    fate: Fate,
    events: Vec<Event>,
    settled: Settled,
    held: usize,
    due: Option<Time>,
    fault: Option<String>,
}

/// What is to follow on a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// There was nothing to do.
    Nothing,
    /// Something is to be fetched.
    Fetch {
        /// There is more to do at this desk.
        again: bool,
    },
    /// The desk was cleared meanwhile.
    Cleared {
        /// Whoever did the job was given up, and is to go.
        given_up: bool,
    },
}

impl Desk {
    /// Says which node it is for.
    pub fn is_for(&self, node: NodeId) {
        let _ = self.node.set(node);
    }

    /// Does the next job, of whatever length, in a thread of these hands. Nobody
    /// else does one here meanwhile.
    pub fn work(&self, now: &Now<'_>, hands: Option<&Arc<dyn Hands>>) -> After {
        let mut state = self.state();
        if hands.is_none_or(|hands| state.has_called(hands)) {
            state.called = None;
        }
        let waits = !state.is_cleared && state.operator.is_some();
        let Some(job) = waits.then(|| state.waiting.pop_front()).flatten() else {
            return After::Nothing;
        };
        let Some(mut operator) = state.operator.take() else {
            return After::Nothing;
        };
        state.at_work = Some(AtWork {
            job: job.clone(),
            since: now.get(),
            hands: hands.cloned(),
        });
        drop(state);
        let ran = catch_unwind(AssertUnwindSafe(|| {
            let made = self.run(&mut *operator, &job, now);
            (made, operator.snapshot())
        }));
        let mut state = self.state();
        state.at_work = None;
        if state.is_cleared {
            let given_up = state.is_given_up;
            drop(state);
            discard(operator);
            return After::Cleared { given_up };
        }
        match ran {
            Ok((made, remembers)) => {
                let made_last = made.events.iter().rev().map(Event::header);
                let mut of_its_own =
                    made_last.filter(|last| Arc::ptr_eq(&last.stream, &self.stream));
                if let Some(last) = of_its_own.next() {
                    state.sequence = last.sequence;
                }
                state.remembers = remembers;
                state.operator = Some(operator);
                let made = Ok(made);
                state.done.push_back(Done { job, made });
            }
            Err(panic) => {
                let made = Err(said(&*panic).to_owned());
                state.done.push_back(Done { job, made });
                drop(state);
                discard(operator);
                return After::Fetch { again: false };
            }
        }
        // Others that were called meanwhile will see to the rest.
        let again = !state.waiting.is_empty() && state.called.is_none();
        if again {
            state.called = hands.cloned();
        }
        After::Fetch { again }
    }

    fn run(&self, operator: &mut dyn Operator, job: &Job, now: &Now<'_>) -> Made {
        let (mut events, mut settled) = (Vec::new(), Settled::default());
        let mut out = Output::shared(now, &self.stream, &self.numbers, &mut events, &mut settled);
        let fate = match job {
            Job::Event(input, event) => operator.event(*input, event, &mut out),
            Job::Wake => {
                operator.wake(&mut out);
                Fate::Used
            }
        };
        Made {
            fate,
            events,
            settled,
            held: operator.held(),
            due: operator.due(),
            fault: operator.fault().map(ToOwned::to_owned),
        }
    }

    /// No panic can leave the state half done: nothing foreign runs under it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drops somebody's operator, which may panic a second time.
fn discard(operator: Box<dyn Operator>) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(operator)));
}

impl Job {
    fn is_event(&self) -> bool {
        matches!(self, Job::Event(..))
    }
}

impl State {
    /// How many events are on the way through the desk.
    fn held(&self) -> usize {
        let waiting = self.waiting.iter().filter(|job| job.is_event()).count();
        let at_work = self.at_work.iter().filter(|work| work.job.is_event());
        let done = self.done.iter().filter(|done| done.job.is_event());
        waiting + at_work.count() + done.count()
    }

    fn has_called(&self, hands: &Arc<dyn Hands>) -> bool {
        let mut called = self.called.iter();
        called.any(|called| Arc::ptr_eq(called, hands))
    }

    fn drop_oldest(&mut self) -> bool {
        let oldest = self.waiting.iter().position(Job::is_event);
        oldest.and_then(|at| self.waiting.remove(at)).is_some()
    }
}

/// Stands for an operator that is worked with elsewhere.
pub(super) struct Apart {
    desk: Arc<Desk>,
    lent: Lent,
    /// How many inputs it has.
    inputs: usize,
    retains: bool,
    remembers_nothing: bool,
    /// How many events the operator itself holds, when it wants to be woken and
    /// what it said last, after all that was fetched.
    held: usize,
    due: Option<Time>,
    fault: Option<String>,
    /// That it has panicked, or is given up, which is to be told next.
    broken: Option<Broken>,
    /// When it was seen last that nobody worked for too long.
    seen: Time,
}

struct Broken {
    said: String,
    /// How many events it has taken along that do not lie on the desk any more.
    held: usize,
}

impl Apart {
    pub fn new(
        operator: Box<dyn Operator>,
        stream: Arc<Stream>,
        numbers: Arc<AtomicU64>,
        inputs: usize,
        lent: Lent,
    ) -> Apart {
        let asked = catch_unwind(AssertUnwindSafe(|| {
            let (held, due) = (operator.held(), operator.due());
            let retains = operator.retains();
            let remembers_nothing = likeness::remembers_nothing(&*operator);
            (held, due, retains, operator.snapshot(), remembers_nothing)
        }));
        let (operator, asked, broken) = match asked {
            Ok(asked) => (Some(operator), asked, None),
            Err(panic) => {
                discard(operator);
                let said = said(&*panic).to_owned();
                let nothing = (0, None, false, Value::Null, true);
                (None, nothing, Some(Broken { said, held: 0 }))
            }
        };
        let (held, due, retains, remembers, remembers_nothing) = asked;
        let state = State {
            remembers,
            operator,
            waiting: VecDeque::new(),
            at_work: None,
            done: VecDeque::new(),
            called: None,
            sequence: 0,
            is_cleared: false,
            is_given_up: false,
        };
        let desk = Arc::new(Desk {
            node: OnceLock::new(),
            stream,
            numbers,
            state: Mutex::new(state),
        });
        let (address, known) = (Arc::as_ptr(&desk).addr(), Arc::downgrade(&desk));
        lent.known().desks.insert(address, known);
        Apart {
            desk,
            lent,
            inputs,
            retains,
            remembers_nothing,
            held,
            due,
            fault: None,
            broken,
            seen: Time::MIN,
        }
    }

    pub fn desk(&self) -> Arc<Desk> {
        Arc::clone(&self.desk)
    }

    /// Has a job done: by hands if there are any, and else here and now.
    fn order(&mut self, job: Job, out: &mut Output<'_>) {
        let hands = self.lent.get();
        let mut state = self.desk.state();
        let at_work = state.at_work.as_ref();
        let whose = at_work.and_then(|work| work.hands.as_ref());
        // Without hands nothing waits: all of it is done below.
        let room = whose.or(hands.as_ref()).map(|hands| hands.terms().0.max(1));
        let room = room.unwrap_or(usize::MAX);
        let mut overflown = 0;
        while job.is_event() && state.waiting.len() >= room && state.drop_oldest() {
            overflown += 1;
        }
        if overflown > 0 {
            out.drop(Reason::Overflow, overflown);
        }
        state.waiting.push_back(job);
        drop(state);
        if !hands.is_some_and(|hands| self.call(&hands, out.now())) {
            while (After::Fetch { again: true }) == self.desk.work(out.clock(), None) {}
            self.fetch(out);
        }
    }

    /// Calls these hands if there is something to do that nobody else does.
    /// False: they do not come.
    fn call(&mut self, hands: &Arc<dyn Hands>, now: Time) -> bool {
        let mut state = self.desk.state();
        let can_begin = state.operator.is_some() && !state.waiting.is_empty();
        if !can_begin || state.has_called(hands) {
            return true;
        }
        state.called = Some(Arc::clone(hands));
        drop(state);
        self.seen = now;
        let comes = hands.call(&self.desk);
        if !comes {
            self.desk.state().called = None;
        }
        comes
    }

    /// Publishes what has been done; whether there was something.
    fn fetch(&mut self, out: &mut Output<'_>) -> bool {
        if let Some(Broken { said, .. }) = self.broken.take() {
            // The machine knows what to do with a node that panics.
            resume_unwind(Box::new(said));
        }
        let done = std::mem::take(&mut self.desk.state().done);
        let is_some = !done.is_empty();
        for Done { job, made } in done {
            let made = match made {
                Ok(made) => made,
                // What was made before is to be published first.
                Err(said) => {
                    let held = usize::from(job.is_event());
                    self.broken = Some(Broken { said, held });
                    break;
                }
            };
            match (made.fate, job) {
                (Fate::Passed, Job::Event(_, event)) => out.pass(event),
                (Fate::Used, Job::Event(..)) => out.used(1),
                (Fate::Dropped(reason), Job::Event(..)) => out.drop(reason, 1),
                (Fate::Held, _) | (_, Job::Wake) => {}
            }
            out.adopt(made.events, made.settled);
            (self.held, self.due) = (made.held, made.due);
            self.fault = made.fault.or(self.fault.take());
        }
        is_some
    }

    /// What is to be said of work that takes too long.
    fn overdue(&mut self, now: Time) -> Option<String> {
        let state = self.desk.state();
        if let Some((since, limit)) = state.at_work.as_ref().and_then(AtWork::terms) {
            if since + limit <= now {
                return Some(format!(
                    "it has worked on one event for longer than {limit}, and was given up"
                ));
            }
        }
        drop(state);
        self.seen = now;
        None
    }
}

impl AtWork {
    /// Since when it goes on, and how long it may.
    fn terms(&self) -> Option<(Time, Span)> {
        let hands = self.hands.as_ref()?;
        Some((self.since, hands.terms().1))
    }
}

impl Operator for Apart {
    fn event(&mut self, input: usize, event: &Event, out: &mut Output<'_>) -> Fate {
        self.order(Job::Event(input, event.clone()), out);
        Fate::Held
    }

    fn wake(&mut self, out: &mut Output<'_>) {
        let now = out.now();
        let is_due = |due: Option<Time>| due.is_some_and(|due| due <= now);
        let was_due = is_due(self.due);
        let has_made = self.fetch(out);
        if let Some(said) = self.overdue(now) {
            if !has_made {
                resume_unwind(Box::new(said));
            }
            // What was made before is to be published first. The desk still has
            // the event that this is about.
            self.broken = Some(Broken { said, held: 0 });
        } else if was_due || is_due(self.due) {
            // It says anew when it wants to be woken after it was.
            self.due = None;
            self.order(Job::Wake, out);
        } else if let Some(hands) = self.lent.get() {
            self.call(&hands, now);
        } else {
            // What is left waits for the next event, or for hands.
            self.desk.state().called = None;
        }
    }

    fn due(&self) -> Option<Time> {
        if self.broken.is_some() {
            return Some(Time::MIN);
        }
        let state = self.desk.state();
        let (since, limit) = match (&state.at_work, &state.called) {
            (Some(work), _) => work.terms()?,
            (None, Some(called)) => (self.seen, called.terms().1),
            (None, None) => return self.due,
        };
        Some(since + limit)
    }

    fn held(&self) -> usize {
        // One that it panicked over is there until that is told.
        let broken = self.broken.as_ref().map_or(0, |broken| broken.held);
        self.desk.state().held() + self.held + broken
    }

    fn retains(&self) -> bool {
        self.retains
    }

    fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn is_like(&self, other: &dyn Operator, now: Time) -> bool {
        alike(other, |other| self.is_like_apart(other, now))
    }

    /// What the operator remembers, the events that it has not seen as far as it
    /// remembers, those that it has made and nobody has fetched, and how many it
    /// has made in all.
    fn snapshot(&self) -> Value {
        let state = self.desk.state();
        let at_work = state.at_work.iter().map(|work| &work.job);
        let jobs = at_work.chain(&state.waiting).filter_map(|job| match job {
            Job::Event(input, event) => Some((*input as u64, event.clone())),
            Job::Wake => None,
        });
        let jobs: Vec<(u64, Event)> = jobs.collect();
        let mut made = Vec::new();
        for done in &state.done {
            if let (
                Job::Event(_, event),
                Ok(Made {
                    fate: Fate::Passed, ..
                }),
            ) = (&done.job, &done.made)
            {
                made.push(event.clone());
            }
            made.extend(
                done.made
                    .iter()
                    .flat_map(|made| made.events.iter().cloned()),
            );
        }
        let (remembers, sequence) = (state.remembers.clone(), state.sequence);
        // Bodies say themselves what they are, which may take long or panic.
        drop(state);
        let is_new = sequence == 0 || !self.retains;
        if remembers == Value::Null && jobs.is_empty() && made.is_empty() && is_new {
            return Value::Null;
        }
        vec![remembers, jobs.save(), made.save(), sequence.save()].into()
    }

    fn restore(&mut self, saved: &Value) -> Result<(), String> {
        if *saved == Value::Null {
            return Ok(());
        }
        let parts = crate::operators::state::parts(saved, 4)?;
        let jobs = self.load_jobs(&parts[1])?;
        let made = Vec::<Event>::load(&parts[2])?;
        let sequence = u64::load(&parts[3])?;
        if i64::try_from(sequence).is_err() {
            return Err(format!("it cannot have made {sequence} events"));
        }
        let Some(mut operator) = self.desk.state().operator.take() else {
            return Err("it is at work already, or has panicked".to_owned());
        };
        let restored = catch_unwind(AssertUnwindSafe(|| {
            let restored = operator.restore(&parts[0]);
            restored.map(|()| (operator.held(), operator.due()))
        }));
        let restored = match restored {
            Ok(restored) => restored,
            Err(panic) => {
                // Nobody knows what it has become.
                discard(operator);
                let said = said(&*panic).to_owned();
                let (held, told) = (0, said.clone());
                self.broken = Some(Broken { said, held });
                return Err(told);
            }
        };
        let mut state = self.desk.state();
        state.operator = Some(operator);
        let (held, due) = restored?;
        state.remembers = parts[0].clone();
        state.sequence = sequence;
        self.desk.numbers.fetch_max(sequence, Relaxed);
        state.waiting = jobs;
        if !made.is_empty() {
            let made = Made {
                fate: Fate::Used,
                events: made,
                settled: Settled::default(),
                held,
                due,
                fault: None,
            };
            let (job, made) = (Job::Wake, Ok(made));
            state.done.push_back(Done { job, made });
        }
        let is_idle = state.waiting.is_empty() && state.done.is_empty();
        // Whatever is there already is to be gone on with at once.
        self.due = if is_idle { due } else { Some(Time::MIN) };
        self.held = held;
        Ok(())
    }
}

impl Apart {
    fn load_jobs(&self, saved: &Value) -> Result<VecDeque<Job>, String> {
        let jobs = Vec::<(u64, Event)>::load(saved)?.into_iter();
        let jobs = jobs.map(|(input, event)| {
            let known = usize::try_from(input).ok();
            match known.filter(|known| *known < self.inputs) {
                Some(known) => Ok(Job::Event(known, event)),
                None => Err(format!(
                    "an event waits at input {input}, and there are {}",
                    self.inputs
                )),
            }
        });
        jobs.collect()
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let address = Arc::as_ptr(&self.desk).addr();
        self.lent.known().desks.remove(&address);
        let mut state = self.desk.state();
        state.is_cleared = true;
        let at_work = state.at_work.as_ref();
        let hands = at_work.and_then(|work| work.hands.clone());
        state.is_given_up = hands.is_some_and(|hands| hands.give_up());
        let waiting = std::mem::take(&mut state.waiting);
        let done = std::mem::take(&mut state.done);
        let (called, operator) = (state.called.take(), state.operator.take());
        // What goes is dropped where nobody waits for the lock.
        drop(state);
        drop((waiting, done, called));
        if let Some(operator) = operator {
            discard(operator);
        }
    }
}

#[cfg(test)]
mod tests {
    use milieu_keys::Name;
    use milieu_transfer::{Header, Origin};

    use super::*;

    /// Counts events, and panics where it is told to.
    struct Counts {
        count: u64,
        panics_when_asked: bool,
    }

    impl Operator for Counts {
        fn event(&mut self, _: usize, event: &Event, out: &mut Output<'_>) -> Fate {
            self.count += 1;
            out.emit(event.time(), None, self.count);
            Fate::Used
        }

        fn snapshot(&self) -> Value {
            assert!(!self.panics_when_asked, "it is not to be asked");
            Value::Uint(self.count)
        }

        fn restore(&mut self, state: &Value) -> Result<(), String> {
            self.count = u64::load(state)?;
            assert!(self.count != 13, "it does not like 13");
            Ok(())
        }
    }

    fn stream() -> Arc<Stream> {
        Arc::new(Stream {
            name: Name::root(),
            origin: Origin("test".into()),
            incarnation: 1,
        })
    }

    fn event() -> Event {
        let header = Header {
            stream: stream(),
            time: Time::MIN,
            sequence: 1,
            quality: None,
        };
        Event::new(header, 5_u64)
    }

    fn apart(panics_when_asked: bool) -> Apart {
        let operator = Counts {
            count: 0,
            panics_when_asked,
        };
        Apart::new(
            Box::new(operator),
            stream(),
            Arc::default(),
            2,
            Lent::default(),
        )
    }

    fn saved(count: u64, input: u64, sequence: u64) -> Value {
        let (jobs, made) = (vec![(input, event())], Vec::<Event>::new());
        vec![count.save(), jobs.save(), made.save(), sequence.save()].into()
    }

    /// The numbers of what it publishes when it is woken, or what it panics with.
    fn woken(apart: &mut Apart) -> Result<Vec<u64>, String> {
        let (stream, mut sequence) = (stream(), 0);
        let (mut events, mut settled) = (Vec::new(), Settled::default());
        let clock = || Time::MIN;
        let now = Now::new(&clock);
        let woken = catch_unwind(AssertUnwindSafe(|| {
            let mut out = Output::new(&now, &stream, &mut sequence, &mut events, &mut settled);
            apart.wake(&mut out);
        }));
        woken.map_err(|panic| said(&*panic).to_owned())?;
        Ok(events.iter().map(|event| event.header().sequence).collect())
    }

    #[test]
    fn states_that_cannot_be_are_refused_and_change_nothing() {
        let mut apart = apart(false);
        let before = apart.snapshot();
        let input = apart.restore(&saved(7, 2, 3)).expect_err("it has two");
        assert!(input.contains("input 2"), "{input}");
        let sequence = apart.restore(&saved(7, 1, u64::MAX));
        assert!(sequence.is_err());
        assert!(apart.restore(&Value::Uint(7)).is_err());
        assert_eq!(apart.snapshot(), before);
        assert_eq!((apart.due(), apart.held()), (None, 0));

        apart.restore(&saved(7, 1, 3)).expect("it can be");
        assert_eq!(apart.snapshot(), saved(7, 1, 3));
        assert_eq!((apart.due(), apart.held()), (Some(Time::MIN), 1));
        assert_eq!(woken(&mut apart), Ok(vec![4]));
        assert_eq!((apart.due(), apart.held()), (None, 0));
    }

    #[test]
    fn a_panic_over_a_state_breaks_the_operator_alone() {
        let mut apart = apart(false);
        let refused = apart.restore(&saved(13, 0, 3)).expect_err("it panics");
        assert!(refused.contains("does not like 13"), "{refused}");
        assert_eq!((apart.due(), apart.held()), (Some(Time::MIN), 0));
        assert_eq!(woken(&mut apart), Err(refused));
    }

    #[test]
    fn a_panic_when_it_is_first_asked_breaks_the_operator_alone() {
        let mut apart = apart(true);
        assert_eq!((apart.due(), apart.held()), (Some(Time::MIN), 0));
        let said = woken(&mut apart).expect_err("it has panicked");
        assert!(said.contains("not to be asked"), "{said}");
    }
}
