//! The stacks of threads that run: how deep each was so far.
//!
//! Nobody has the lock while a stack is measured. A thread waits for it before it is listed
//! and after it has left, so that none has it that this program's mediator keeps waiting; who
//! has it while the device's mediator does inherits the priority of who waits for it.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use milieu_threads::lock::{Locked, PriorityMutex};
use milieu_threads::stack::{Errno, Hint, Peak, Process, Stack};

use super::NO_HANDLER;

/// Those of one mediator.
pub(super) struct Living {
    /// What tells depths; one for all threads.
    process: RwLock<Option<Process>>,
    threads: PriorityMutex<Threads>,
}

#[derive(Default)]
struct Threads {
    by_identity: HashMap<u64, One>,
    /// How many have begun so far, which tells threads of one identity apart.
    begun: u64,
}

#[derive(Clone, Copy)]
struct One {
    number: u64,
    stack: Stack,
    depth_at_start: u64,
}

/// The stack of a thread that begins.
pub(super) struct Began {
    pub stack: Stack,
    /// See [`Process::depth_at_start`].
    pub depth_at_start: u64,
    /// How much of it is in use by now, at least.
    pub used_bytes: u64,
    /// Whether no other thread runs that is measured.
    pub is_alone: bool,
}

/// How deep a thread was so far.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub stack_bytes: u64,
    pub peak: Peak,
}

impl Living {
    pub fn new() -> Living {
        Living {
            process: RwLock::new(Process::own().ok()),
            threads: PriorityMutex::new(Threads::default()),
        }
    }

    fn threads(&self) -> Locked<'_, Threads> {
        self.threads.lock().expect(NO_HANDLER)
    }

    /// This thread begins. None where the kernel does not tell its stack.
    pub fn begins(&self, identity: u64) -> Option<Began> {
        let here = 0_u8;
        let address = std::ptr::from_ref(&here).addr() as u64;
        let hint = Hint {
            descriptor: Some(identity),
            asked_bytes: None,
        };
        let (stack, depth_at_start) = self.measure(|process| {
            let stack = process.stack_around(address, hint)?;
            Ok((stack, process.depth_at_start(&stack)?))
        })?;
        let mut threads = self.threads();
        threads.begun += 1;
        let one = One {
            number: threads.begun,
            stack,
            depth_at_start,
        };
        let is_alone = threads.by_identity.is_empty();
        threads.by_identity.insert(identity, one);
        Some(Began {
            stack,
            depth_at_start,
            used_bytes: depth_at_start.max(stack.high.saturating_sub(address)),
            is_alone,
        })
    }

    /// This thread ends: how deep it was.
    pub fn ends(&self, identity: u64) -> Option<Peak> {
        let one = self.threads().by_identity.remove(&identity)?;
        self.peak(one).map(|it| it.peak)
    }

    /// How deep a thread was so far, if it still runs.
    pub fn look_at(&self, identity: u64) -> Option<Seen> {
        let one = self.threads().by_identity.get(&identity).copied()?;
        let seen = self.peak(one)?;
        // Otherwise it has ended meanwhile, and what was measured may be another's.
        let still = self.threads().by_identity.get(&identity).copied();
        still.filter(|it| it.number == one.number).map(|_| seen)
    }

    /// Who runs.
    pub fn identities(&self) -> Vec<u64> {
        self.threads().by_identity.keys().copied().collect()
    }

    pub fn is_empty(&self) -> bool {
        self.threads().by_identity.is_empty()
    }

    fn peak(&self, one: One) -> Option<Seen> {
        let (stack, depth) = self.measure(|process| {
            let depth = process.depth(&one.stack)?;
            if depth < one.stack.bytes() {
                return Ok((one.stack, depth));
            }
            // Under the preload it may have grown.
            let now = process.stack_around(one.stack.high - 1, Hint::default())?;
            let stack = Stack {
                low: now.low.min(one.stack.low),
                ..one.stack
            };
            Ok((stack, process.depth(&stack)?))
        })?;
        let stack_bytes = stack.bytes();
        Some(Seen {
            stack_bytes,
            peak: Peak::between(one.depth_at_start, depth, stack_bytes),
        })
    }

    fn measure<T>(&self, measure: impl Fn(&Process) -> Result<T, Errno>) -> Option<T> {
        let open = self.process.read().unwrap_or_else(PoisonError::into_inner);
        let found = open.as_ref().map(&measure);
        let is_over = match (&found, &*open) {
            (Some(Err(_)), Some(process)) => !process.is_intact(),
            _ => false,
        };
        drop(open);
        if !is_over {
            return found?.ok();
        }
        let mut open = self.process.write().unwrap_or_else(PoisonError::into_inner);
        forget_unless_intact(&mut open);
        if open.is_none() {
            *open = Process::own().ok();
        }
        measure(open.as_ref()?).ok()
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        let process = self.process.get_mut();
        forget_unless_intact(process.unwrap_or_else(PoisonError::into_inner));
    }
}

/// A program that becomes a daemon closes files that it does not know; their numbers
/// are its own then.
fn forget_unless_intact(process: &mut Option<Process>) {
    if let Some(lost) = process.take_if(|it| !it.is_intact()) {
        lost.forget();
    }
}
