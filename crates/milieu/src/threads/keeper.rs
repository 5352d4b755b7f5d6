//! The mediator's thread: it watches critical threads, gives the others their
//! turns, finds threads that others have begun, follows contexts, measures the
//! stacks of threads that run, and begins threads for those that would hand on
//! their laziness.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::task::{Context as Task, Wake, Waker};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use milieu_threads::{kernel, rung};

use super::device::Device;
use super::follow::{Follow, News};
use super::mediator::{Shared, found};
use super::stacks::Stacks;
use super::{Attributes, Entry, Return, Role};

/// How often critical threads are looked at.
const INTERVAL: Duration = Duration::from_millis(100);

/// How often threads are looked for that others have begun, at most.
const FINDING_NS: u64 = 50_000_000;

/// How often it is looked whether a mediator of the device is there, while somebody is
/// critical, and otherwise.
const DEVICE_NS: u64 = 250_000_000;
const DEVICE_NS_LONG: u64 = 1_000_000_000;

/// When stacks are looked at: so long after the first thread has begun, and again after
/// one was deeper than before, else ever more seldom.
const STACKS_NS_MIN: u64 = 1_000_000_000;
const STACKS_NS_MAX: u64 = 16_000_000_000;

/// It takes one of so many parts of a processor at most.
const STACKS_SHARE: u64 = 1000;

/// Hears of threads that were demoted.
pub(super) type Told = Box<dyn FnMut(&Entry) + Send>;

/// What the thread is asked for.
pub(super) enum Message {
    /// Something may have changed; this thread has another chance.
    Look(Option<u64>),
    Do(Box<dyn FnOnce() + Send>),
    Follow(Box<dyn Follow>),
    /// Says when all that was before is done.
    Settle(Sender<()>),
    End,
}

pub(super) struct Keeper {
    shared: Arc<Shared>,
    inbox: Receiver<Message>,
    waker: Waker,
    told: Told,
    finds_others: bool,
    /// When it has looked for others last.
    found_ns: u64,
    /// Whether it comes before what it mediates.
    comes_first: bool,
    /// When it has looked for the device's mediator last.
    device_ns: u64,
    followed: Vec<Box<dyn Follow>>,
    /// Who wants to know that all is done.
    waiting: Vec<Sender<()>>,
    /// Of whom it was told already.
    demoted: HashSet<u64>,
    stacks: Option<Pace>,
}

/// When stacks are looked at the next time.
struct Pace {
    due_ns: u64,
    pause_ns: u64,
}

/// Wakes the thread when there is something to synchronize.
struct Knock(Sender<Message>);

impl Wake for Knock {
    fn wake(self: Arc<Self>) {
        // If nobody is there any more, nobody has to wake up.
        let _ = self.0.send(Message::Look(None));
    }
}

impl Keeper {
    pub fn new(
        shared: Arc<Shared>,
        inbox: Receiver<Message>,
        to_self: Sender<Message>,
        told: Told,
        finds_others: bool,
    ) -> Keeper {
        Keeper {
            shared,
            inbox,
            waker: Waker::from(Arc::new(Knock(to_self))),
            told,
            finds_others,
            found_ns: 0,
            comes_first: false,
            device_ns: 0,
            followed: Vec::new(),
            waiting: Vec::new(),
            demoted: HashSet::new(),
            stacks: None,
        }
    }

    /// Starts it; it is listed when this returns.
    pub fn start(self) -> io::Result<JoinHandle<()>> {
        let (tell, told) = std::sync::mpsc::channel();
        let thread = thread::Builder::new().name("milieu-mediator".into());
        let thread = thread.spawn(move || {
            let (identity, tid) = (kernel::identity(), kernel::thread_id());
            let program = &self.shared.program;
            // Without a place in the table it would be found, and be lazy.
            let _ = program.began(identity, tid, &Attributes::default(), true);
            let _ = tell.send(());
            let shared = self.shared.clone();
            self.run();
            let _ = shared.program.ended(identity);
        })?;
        let _ = told.recv();
        Ok(thread)
    }

    fn run(mut self) {
        loop {
            for followed in &mut self.followed {
                match followed.news() {
                    Some(News::Whole(attributes)) => self.shared.set_role(&attributes),
                    Some(News::Bounds(role, bounds)) => self.shared.bound_role(role, bounds),
                    None => {}
                }
            }
            for waiting in self.waiting.drain(..) {
                let _ = waiting.send(());
            }
            let pauses = [self.look(), self.measure()];
            let pause = pauses.into_iter().flatten().min();
            let message = self.next(pause);
            if message.is_some() {
                self.found_ns = 0;
            }
            match message {
                Some(Message::Look(Some(identity))) => _ = self.demoted.remove(&identity),
                Some(Message::Look(None)) | None => {}
                Some(Message::Do(job)) => job(),
                Some(Message::Follow(followed)) => self.followed.push(followed),
                Some(Message::Settle(done)) => self.waiting.push(done),
                Some(Message::End) => return,
            }
        }
    }

    /// The next message; none when there are news, or after the pause.
    fn next(&self, pause: Option<Duration>) -> Option<Message> {
        let mut task = Task::from_waker(&self.waker);
        let mut changes: Vec<_> = self.followed.iter().map(|it| it.changed()).collect();
        let has_news = changes
            .iter_mut()
            .any(|it| it.as_mut().poll(&mut task).is_ready());
        if has_news {
            return self.inbox.try_recv().ok();
        }
        match pause {
            Some(pause) => match self.inbox.recv_timeout(pause) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(Message::End),
            },
            None => Some(self.inbox.recv().unwrap_or(Message::End)),
        }
    }

    /// Looks at the threads; says when to look again, unless nobody is critical.
    fn look(&mut self) -> Option<Duration> {
        let shared = self.shared.clone();
        let lines = shared.program.table().lines();
        let is_critical = |it: &Entry| it.attributes.is_time_critical();
        let has_critical = lines.iter().any(|(_, it)| is_critical(&it));
        let now = kernel::boot_time_ns();
        let device = self.attend_device(now, has_critical);
        if !has_critical {
            self.demoted.clear();
            return device;
        }
        let means = self.shared.program.rung();
        if let Some((rung, _)) = means.filter(|_| !self.comes_first) {
            self.comes_first = true;
            rung::come_first(rung);
        }
        // Where they cannot return, whoever has begun already is left alone.
        let is_mediated = matches!(means, Some((_, Return::Always)));
        // In a turn it looks more often, and takes no time from it.
        if self.finds_others && is_mediated && now >= self.found_ns.saturating_add(FINDING_NS) {
            self.found_ns = now;
            self.find_others();
        }
        let next = self.shared.program.tick(now);
        let was_demoted = |it: &Entry| it.is_demoted && is_critical(it);
        let demoted = lines.iter().map(|(_, it)| self.shared.seen(it));
        let demoted = demoted.filter(was_demoted);
        let demoted: Vec<Entry> = demoted.collect();
        for entry in &demoted {
            if !self.demoted.contains(&entry.identity) {
                (self.told)(entry);
            }
        }
        self.demoted = demoted.iter().map(|it| it.identity).collect();
        let wait = next.map(|it| Duration::from_nanos(it.saturating_sub(now)));
        Some(wait.unwrap_or(INTERVAL).min(INTERVAL))
    }

    /// Looks whether the device's mediator is there; says when to look again, if he may come
    /// while nobody is critical.
    fn attend_device(&mut self, now: u64, has_critical: bool) -> Option<Duration> {
        let is_expected = self.shared.device().is_some_and(Device::is_expected);
        let pause_ns = match (has_critical, is_expected) {
            (true, _) => DEVICE_NS,
            (false, true) => DEVICE_NS_LONG,
            (false, false) => return None,
        };
        let due_ns = self.device_ns.saturating_add(pause_ns);
        if now < due_ns {
            return Some(Duration::from_nanos(due_ns - now));
        }
        self.device_ns = now;
        self.shared.attend_device(has_critical);
        Some(Duration::from_nanos(pause_ns))
    }

    /// Looks at stacks if that is due; says when to look again, unless none is measured.
    fn measure(&mut self) -> Option<Duration> {
        let has_living = self.shared.stacks().is_some_and(Stacks::has_living);
        if !has_living {
            self.stacks = None;
            return None;
        }
        let now = kernel::boot_time_ns();
        let pace = self.stacks.get_or_insert(Pace {
            due_ns: now.saturating_add(STACKS_NS_MIN),
            pause_ns: STACKS_NS_MIN,
        });
        if now >= pace.due_ns {
            let is_new = self.shared.look_at_stacks();
            let after = kernel::boot_time_ns();
            let took = after.saturating_sub(now);
            pace.pause_ns = match is_new {
                true => STACKS_NS_MIN,
                false => (2 * pace.pause_ns).min(STACKS_NS_MAX),
            };
            let pause = took.saturating_mul(STACKS_SHARE).max(pace.pause_ns);
            pace.due_ns = after.saturating_add(pause);
        }
        Some(Duration::from_nanos(pace.due_ns.saturating_sub(now)))
    }

    /// Lists threads that others have begun, and forgets those of them that ended.
    fn find_others(&self) {
        let program = &self.shared.program;
        let Some(before) = self.shared.asked_and_begun() else {
            return;
        };
        let Ok(folder) = std::fs::read_dir("/proc/self/task") else {
            return;
        };
        let number =
            |it: io::Result<std::fs::DirEntry>| it.ok()?.file_name().to_str()?.parse().ok();
        let there: HashSet<u32> = folder.filter_map(number).collect();
        // Whoever was asked for before has begun, and is listed if it is there.
        if self.shared.asked_and_begun() != Some(before) {
            return;
        }
        let lines = program.table().lines();
        let listed: HashSet<u32> = lines.iter().map(|(_, it)| it.tid).collect();
        for tid in there.difference(&listed) {
            let _listing = self.shared.listing();
            if lines.by_thread_id(*tid).is_none() {
                let plain = Attributes::of(Role::NONE);
                // A full table counts whom it has no place for.
                let _ = program.began(found(*tid), *tid, &plain, false);
            }
        }
        for tid in listed.difference(&there) {
            // Of others than these it is their own to say.
            let _ = program.ended(found(*tid));
        }
    }
}
