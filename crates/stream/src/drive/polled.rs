//! A source that is being driven, and all that is remembered of it.

use std::any::Any;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use milieu_transfer::{Event, Stream, Time};

use crate::source::{Feed, Source, Status, Wait};

/// A source, its stream, and how it is.
pub(super) struct Polled {
    /// Nothing once it has ended.
    source: Option<Box<dyn Source>>,
    stream: Arc<Stream>,
    sequence: u64,
    status: Status,
    told: Status,
    /// What it waits for; nothing before it was polled and once it has ended.
    pub(super) wait: Option<Wait>,
}

impl Polled {
    pub(super) fn new(stream: Stream, source: Box<dyn Source>) -> Polled {
        Polled {
            source: Some(source),
            stream: Arc::new(stream),
            sequence: 0,
            status: Status::Starting,
            told: Status::Starting,
            wait: None,
        }
    }

    /// Polls it, if it has not ended; what it says goes into `events`.
    pub(super) fn poll(&mut self, now: Time, events: &mut Vec<Event>) {
        let Some(source) = &mut self.source else {
            return;
        };
        let mut feed = Feed::new(
            now,
            &self.stream,
            &mut self.sequence,
            &mut self.status,
            events,
        );
        // What a source leaves half done when it panics is not looked at again.
        match catch_unwind(AssertUnwindSafe(|| source.poll(&mut feed))) {
            Ok(Wait::Ended) => {
                if !matches!(self.status, Status::Failing(_)) {
                    self.status = Status::Ended;
                }
                self.end();
            }
            Ok(wait) => self.wait = Some(wait),
            Err(panic) => {
                let message = message(&*panic);
                self.fail(&format!(
                    "the source has panicked and is polled no more: {message}"
                ));
            }
        }
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.source.as_ref()?.descriptor()
    }

    /// When it wants to be polled at the latest.
    pub(super) fn due(&self) -> Option<Time> {
        match self.wait {
            Some(Wait::Until(time)) => Some(time),
            _ => None,
        }
    }

    /// Takes the source out, for this reason.
    pub(super) fn fail(&mut self, reason: &str) {
        self.status = Status::Failing(reason.into());
        self.end();
    }

    fn end(&mut self) {
        self.wait = None;
        let source = self.source.take();
        // A source that panics while it is dropped harms nobody else either.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(source)));
    }

    /// How it is, if that has not been told yet.
    pub(super) fn news(&mut self) -> Option<Status> {
        if self.status == self.told {
            return None;
        }
        self.told = self.status.clone();
        Some(self.told.clone())
    }

    pub(super) fn status(&self) -> &Status {
        &self.status
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        self.end();
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it did not say why")
}
