//! Links that the thread of sources polls.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Weak};
use std::task::Waker;

use super::{Inner, Link, Terms};
use crate::drive::{SourceId, Wake};
use crate::engine::Engine;
use crate::runtime::{Driving, Streams};
use crate::source::{Feed, Source, Wait};

/// Stops polling when it is dropped.
pub(super) struct Pump {
    driving: Driving,
    pumped: SourceId,
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.driving.stop(self.pumped);
    }
}

/// Readable when there is something to poll for.
struct Bell(Wake);

impl std::task::Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.wake();
    }
}

struct Pumped {
    bell: Arc<Bell>,
    streams: Streams,
    link: Weak<Inner>,
}

impl Source for Pumped {
    fn poll(&mut self, _: &mut Feed<'_>) -> Wait {
        self.bell.0.clear();
        let Some(link) = self.link.upgrade() else {
            return Wait::Ended;
        };
        self.streams.order(move |machine, now| {
            link.state().step(machine, now);
        });
        Wait::Readable
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.bell.0.as_fd())
    }
}

impl Driving {
    /// Joins the streams to those of all machines that an engine reaches, and
    /// polls the link in the thread of the sources.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub fn join(&self, engine: impl Engine + 'static, terms: Terms) -> io::Result<Link> {
        let bell = Arc::new(Bell(Wake::new()?));
        let waker = Waker::from(Arc::clone(&bell));
        let mut link = self.streams().join_woken(engine, terms, waker);
        let pumped = self.pump(Pumped {
            bell,
            streams: self.streams().clone(),
            link: Arc::downgrade(&link.inner),
        });
        link.pump = Some(Pump {
            driving: self.clone(),
            pumped,
        });
        Ok(link)
    }
}
