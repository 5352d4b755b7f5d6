//! What was learned of the stacks of roles: read from the key set, added to while
//! threads run and when they end, and put back into it.
//!
//! What another build of the program has left says nothing of this one. Whose stack
//! has overflowed in a run before is told by a file beside the store's.

use std::collections::HashMap;
use std::fmt;

use milieu_threads::lock::{Locked, PriorityMutex};
use milieu_threads::stack::{Asked, Decision, Key, Peak, Place, is_space_short};

use super::living::{Began, Living, Seen};
use super::mediator::name_of;
use super::overflows::{Overflows, Watched};
use super::{Learned, Mediator, NO_HANDLER, Policy, Role};
use crate::{Error, Milieu};

/// Where the level is below which it is kept.
const BELOW: &str = "/stack/learned/";

/// What the standard library gives a thread that asks for nothing.
const USUAL_BYTES: u64 = 2 << 20;

/// What is known of all roles.
pub(super) struct Stacks {
    policy: Policy,
    /// Which build of the program this is; none where the linker was told to write
    /// no build id. Nothing is kept then.
    build: Option<String>,
    known: PriorityMutex<HashMap<Role, Known>>,
    living: Living,
    overflows: Overflows,
}

#[derive(Clone, Copy, Default)]
struct Known {
    /// In the runs before.
    before: Learned,
    /// How many have ended.
    threads: u64,
    /// The deepest of those, and of those that were looked at while they ran.
    peak_bytes: u64,
    /// Whether one has overflowed in a run before, and the store does not say so.
    is_news: bool,
}

impl Known {
    /// With so many that run.
    fn learned(&self, running: u64) -> Learned {
        let threads = self.threads + running;
        Learned {
            runs: self.before.runs + u32::from(threads > 0),
            threads: self.before.threads + threads,
            peak_bytes: self.before.peak_bytes.max(self.peak_bytes),
            ..self.before
        }
    }
}

impl Stacks {
    pub fn read(milieu: &Milieu, policy: Policy) -> Stacks {
        let start = start();
        let build = start.map(|it| it.build.to_string());
        let (overflows, overflowed) = Overflows::begin(milieu, start);
        let held = milieu.coordinator().require_lock();
        let mut builds = HashMap::new();
        let mut known: HashMap<Role, Known> = HashMap::new();
        for entry in held.entries() {
            let Some((role, what)) = parts(entry.name) else {
                continue;
            };
            let before = &mut known.entry(role).or_default().before;
            let number = entry.text.parse().unwrap_or(0);
            match what {
                "build" => _ = builds.insert(role, entry.text.to_owned()),
                "runs" => before.runs = u32::try_from(number).unwrap_or(u32::MAX),
                "threads" => before.threads = number,
                "peak" => before.peak_bytes = number,
                "overflowed" => before.has_overflowed = entry.text != "0",
                _ => {}
            }
        }
        known.retain(|role, _| build.is_some() && builds.get(role) == build.as_ref());
        for role in overflowed {
            let known = known.entry(role).or_default();
            known.is_news = !known.before.has_overflowed;
            known.before.has_overflowed = true;
        }
        Stacks {
            policy,
            build,
            known: PriorityMutex::new(known),
            living: Living::new(),
            overflows,
        }
    }

    fn known(&self) -> Locked<'_, HashMap<Role, Known>> {
        self.known.lock().expect(NO_HANDLER)
    }

    /// Of who has ended, and of whom was looked at.
    fn learned(&self, role: Role, running: u64) -> Option<Learned> {
        self.known().get(&role).map(|it| it.learned(running))
    }

    /// The size of a stack of a thread of this role, where it was learned and is to
    /// be applied.
    pub fn bytes(&self, role: Role, asked: Option<u64>) -> Option<u64> {
        let asked = asked.map_or(Asked::Default(USUAL_BYTES), Asked::Set);
        match self
            .policy
            .decide(self.learned(role, 0).as_ref(), asked, 0, is_space_short)
        {
            Decision::Apply { bytes, .. } => Some(bytes),
            Decision::Keep(_) => None,
        }
    }

    /// A thread of this role begins, which is this one.
    pub fn begins(&self, identity: u64, role: Role) -> Option<(Began, Option<Watched>)> {
        let began = self.living.begins(identity)?;
        let watched = self.overflows.watch(identity, &began, role);
        Some((began, watched))
    }

    /// A thread of this role ends, which is this one.
    pub fn ends(&self, identity: u64, role: Role) {
        let peak = self.living.ends(identity);
        // Of threads without a role there is no name to keep it under.
        let Some(bytes) = peak.and_then(Peak::bytes).filter(|_| !role.is_none()) else {
            return;
        };
        let mut known = self.known();
        let seen = known.entry(role).or_default();
        seen.threads += 1;
        seen.peak_bytes = seen.peak_bytes.max(bytes);
    }

    /// Whether a thread runs that is measured.
    pub fn has_living(&self) -> bool {
        !self.living.is_empty()
    }

    /// Who runs, and is measured.
    pub fn living(&self) -> Vec<u64> {
        self.living.identities()
    }

    /// A thread of this role is looked at while it runs: how deep it was so far.
    pub fn looks_at(&self, identity: u64, role: Role) -> Option<Seen> {
        let seen = self.living.look_at(identity)?;
        if let Some(bytes) = seen.peak.bytes().filter(|_| !role.is_none()) {
            let mut known = self.known();
            let known = known.entry(role).or_default();
            known.peak_bytes = known.peak_bytes.max(bytes);
        }
        Some(seen)
    }
}

impl Mediator {
    /// What is known of the stacks of a role, in this run and before; of threads that
    /// run, how deep they are by now.
    #[must_use]
    pub fn learned(&self, role: Role) -> Option<Learned> {
        let running = self.shared().running();
        let running = running.get(&role).copied().unwrap_or(0);
        self.shared().stacks()?.learned(role, running)
    }

    /// Puts what was learned of stacks in this run into the key set, and writes it
    /// into the user's file, where there is one. Threads that run count with how deep
    /// they are by now, so that those that never end are learned as well. Where another
    /// process has done so meanwhile, the last one counts.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn persist_stacks(&self, milieu: &Milieu) -> Result<(), Error> {
        let Some((stacks, build)) = self
            .shared()
            .stacks()
            .and_then(|it| Some((it, it.build.as_ref()?)))
        else {
            return Ok(());
        };
        let running = self.shared().running();
        let known: Vec<(Role, Known)> = stacks.known().iter().map(|(a, b)| (*a, *b)).collect();
        let mut names = Vec::new();
        for (role, known) in known {
            let running = running.get(&role).copied().unwrap_or(0);
            if known.threads + running == 0 && !known.is_news {
                continue;
            }
            let learned = known.learned(running);
            let below = name_of(role) + BELOW;
            let says: [(&str, &dyn fmt::Display); 5] = [
                ("build", build),
                ("runs", &learned.runs),
                ("threads", &learned.threads),
                ("peak", &learned.peak_bytes),
                ("overflowed", &u8::from(learned.has_overflowed)),
            ];
            for (what, value) in says {
                let name = format!("{below}{what}");
                let assigned = milieu.coordinator().assign(&name, &value.to_string(), None);
                assigned?;
            }
            names.push(below.trim_end_matches('/').to_owned());
        }
        #[cfg(feature = "store")]
        if !milieu.app().is_empty() {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            milieu.persist_with(&names, milieu_store::Strategy::Ours)?;
        }
        Ok(())
    }
}

/// The role and what is said of its stacks, if a name is of that kind.
fn parts(name: &str) -> Option<(Role, &str)> {
    let (role, what) = name.strip_prefix('/')?.split_once(BELOW)?;
    Some((Role::new(role).ok()?, what))
}

/// What tells this build of the program, and that it is this function's.
fn start() -> Option<Place> {
    let here: fn() -> Option<Place> = start;
    Some(Key::of(here as usize, 0)?.start)
}
