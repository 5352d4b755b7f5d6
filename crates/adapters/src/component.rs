//! Components: the inputs and outputs of a process, with what they have counted
//! and how they are.
//!
//! Whoever serves `/ready` and `/metrics` asks [`Components`]; each input and
//! output enters itself there. The names of what is counted are those that users
//! of such programs know: received, sent, discarded and errors.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};

use milieu_stream::{Dropped, Status, Tally};

/// The components of a process. Clones are the same components.
#[derive(Clone, Default)]
pub struct Components(Arc<Mutex<Vec<Weak<Component>>>>);

/// An input or output. It is left out once nobody has it any more.
pub struct Component {
    id: String,
    kind: Cow<'static, str>,
    /// Whom to ask; nothing: it has said so itself.
    asked: Option<Question>,
    said: Mutex<Status>,
    received: AtomicU64,
    sent: AtomicU64,
    reasons: Mutex<Reasons>,
}

type Question = Box<dyn Fn() -> Status + Send + Sync>;

/// Counts by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reasons {
    pub discarded: BTreeMap<&'static str, u64>,
    pub errors: BTreeMap<&'static str, u64>,
}

impl Components {
    /// None yet.
    #[must_use]
    pub fn new() -> Components {
        Components::default()
    }

    /// A component that [says](Component::say) itself how it is; at first it is
    /// starting. It is left out once the answer is dropped.
    ///
    /// ```
    /// use milieu_adapters::component::Components;
    /// use milieu_stream::Status;
    ///
    /// let components = Components::new();
    /// let display = components.add("display", "spi");
    /// assert!(!components.is_ready());
    /// display.say(Status::Working);
    /// assert!(components.is_ready());
    /// display.say(Status::Failing("it does not answer; is it plugged in?".into()));
    /// assert!(!components.is_ready());
    /// ```
    #[must_use = "it is left out once this is dropped"]
    pub fn add(&self, id: impl Into<String>, kind: impl Into<Cow<'static, str>>) -> Arc<Component> {
        self.enter(Component::new(id.into(), kind.into(), None))
    }

    /// A component whose status is asked for: a source of
    /// [`Driving::source`](milieu_stream::Driving::source), or anything else that
    /// has to be connected before the process is ready. The question comes from
    /// the thread that serves, and must not block.
    ///
    /// ```
    /// use milieu_adapters::component::Components;
    /// use milieu_stream::Status;
    ///
    /// let components = Components::new();
    /// let display = components.watch("display", "spi", || Status::Working);
    /// assert!(components.is_ready());
    /// # drop(display);
    /// ```
    #[must_use = "it is left out once this is dropped"]
    pub fn watch(
        &self,
        id: impl Into<String>,
        kind: impl Into<Cow<'static, str>>,
        status: impl Fn() -> Status + Send + Sync + 'static,
    ) -> Arc<Component> {
        self.enter(Component::new(
            id.into(),
            kind.into(),
            Some(Box::new(status)),
        ))
    }

    fn enter(&self, component: Component) -> Arc<Component> {
        let component = Arc::new(component);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(&component));
        component
    }

    /// All that are there.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Component>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(Weak::upgrade).collect()
    }

    /// Whether all inputs and outputs are connected. One that has said all that
    /// it had to say lacks nothing.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.all().iter().all(|component| component.is_ready())
    }
}

impl Component {
    fn new(id: String, kind: Cow<'static, str>, asked: Option<Question>) -> Component {
        Component {
            id,
            kind,
            asked,
            said: Mutex::new(Status::Starting),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            reasons: Mutex::default(),
        }
    }

    /// What it is called: a name, an address.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What it is: `http_server`, `mqtt_client`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// How it is.
    #[must_use]
    pub fn status(&self) -> Status {
        if let Some(ask) = &self.asked {
            return ask();
        }
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.clone()
    }

    /// Whether it is connected, or has nothing more to do.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self.status(), Status::Working | Status::Ended)
    }

    /// How many events came in from outside.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// How many events went out.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// How many events were discarded for this reason.
    #[must_use]
    pub fn discarded(&self, reason: &str) -> u64 {
        self.reasons().discarded.get(reason).copied().unwrap_or(0)
    }

    /// How many errors there were for this reason.
    #[must_use]
    pub fn errors(&self, reason: &str) -> u64 {
        self.reasons().errors.get(reason).copied().unwrap_or(0)
    }

    /// Says how it is, from any thread. Of one that is
    /// [asked](Components::watch) the answer counts.
    pub fn say(&self, status: Status) {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }

    pub(crate) fn count_received(&self, events: u64) {
        self.received.fetch_add(events, Ordering::Relaxed);
    }

    pub(crate) fn count_sent(&self, events: u64) {
        self.sent.fetch_add(events, Ordering::Relaxed);
    }

    pub(crate) fn count_discarded(&self, reason: &'static str, events: u64) {
        *self.reasons().discarded.entry(reason).or_default() += events;
    }

    pub(crate) fn count_error(&self, reason: &'static str) {
        *self.reasons().errors.entry(reason).or_default() += 1;
    }

    pub(crate) fn reasons(&self) -> MutexGuard<'_, Reasons> {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut component = f.debug_struct("Component");
        component.field("id", &self.id);
        component.field("status", &self.status());
        component.finish_non_exhaustive()
    }
}

impl fmt::Debug for Components {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}

/// Waits for a thread to end, which it does by itself where it is this one.
pub(crate) fn await_end(thread: Option<JoinHandle<()>>) {
    let another = thread.filter(|it| it.thread().id() != thread::current().id());
    if let Some(thread) = another {
        let _ = thread.join();
    }
}

/// What a subscriber's queue has dropped, as far as it was counted.
#[derive(Default)]
pub(crate) struct Losses(Dropped);

impl Losses {
    /// Counts what has been dropped since the last time, and says how many.
    pub fn count(&mut self, component: &Component, tally: &Tally) -> u64 {
        for (reason, count) in tally.dropped.iter() {
            let more = count - self.0.of(reason);
            if more > 0 {
                component.count_discarded(reason.as_str(), more);
            }
        }
        let more = tally.dropped.total() - self.0.total();
        self.0 = tally.dropped.clone();
        more
    }

    /// Counts what is left when the subscriber goes.
    pub fn end(&mut self, component: &Component, tally: &Tally) {
        self.count(component, tally);
        if tally.waiting > 0 {
            component.count_discarded("gone", tally.waiting);
        }
    }
}

/// The error of a transfer mode, in one word.
pub(crate) fn reason_of(error: &milieu_transfer::Error) -> &'static str {
    use milieu_transfer::Error;
    match error {
        Error::TooLarge { .. } => "too_large",
        Error::TooDeep { .. } => "too_deep",
        Error::Private => "private",
        Error::Unrepresentable { .. } | Error::Cycle => "unrepresentable",
        _ => "malformed",
    }
}
