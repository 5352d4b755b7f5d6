//! Watching a source, in virtual or in real time.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use milieu_stream::drive::{Driver, SourceId, Stepped};
use milieu_stream::{Source, Status};
use milieu_transfer::{Event, Origin, Span, Stream, Time};

/// Far longer than anything here takes; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn stream() -> Stream {
    Stream {
        name: "/test".parse().unwrap(),
        origin: Origin("test".into()),
        incarnation: 1,
    }
}

/// A file below a root folder, with the folders that lead to it.
pub fn put(root: &Path, file: &str, text: impl AsRef<[u8]>) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A source in virtual time.
pub struct Watched {
    sources: Stepped,
    id: SourceId,
}

impl Watched {
    pub fn new(source: impl Source + 'static) -> Watched {
        Watched::since(Time::from_seconds(1_000_000), source)
    }

    pub fn since(start: Time, source: impl Source + 'static) -> Watched {
        let mut sources = Stepped::new(start);
        let id = sources.add(stream(), source);
        Watched { sources, id }
    }

    /// What it publishes in so many seconds.
    pub fn run(&mut self, seconds: f64) -> Vec<Event> {
        let span: Span = Duration::from_secs_f64(seconds).into();
        let mut all = Vec::new();
        let until = self.sources.now() + span;
        self.sources.run(until, |_, events, _| all.extend(events));
        all
    }

    /// The bodies of what it publishes in so many seconds.
    pub fn bodies<T: Clone + 'static>(&mut self, seconds: f64) -> Vec<T> {
        bodies(&self.run(seconds))
    }

    /// What it publishes if it is polled now.
    pub fn poll(&mut self) -> Vec<Event> {
        self.sources.poll(self.id)
    }

    /// What it publishes if it is polled after so many seconds, and not before;
    /// if there are fewer than none, the clock is set back.
    pub fn leap(&mut self, seconds: f64) -> Vec<Event> {
        let nanoseconds = (seconds * 1e9) as i64;
        self.sources.leap(Span::from_nanoseconds(nanoseconds));
        self.poll()
    }

    pub fn status(&self) -> &Status {
        self.sources.status(self.id).unwrap()
    }

    /// Why it sees nothing.
    #[track_caller]
    pub fn failure(&self) -> String {
        match self.status() {
            Status::Failing(reason) => reason.to_string(),
            other => panic!("the source is {other}, and not failing"),
        }
    }
}

#[track_caller]
pub fn bodies<T: Clone + 'static>(events: &[Event]) -> Vec<T> {
    let body = |event: &Event| event.get::<T>().expect("a body of another type").clone();
    events.iter().map(body).collect()
}

/// A source in real time.
pub struct Live {
    pub driver: Driver,
    pub id: SourceId,
    news: Receiver<(Vec<Event>, Option<Status>)>,
    seen: Vec<Event>,
    status: Status,
}

impl Live {
    pub fn new(source: impl Source + 'static) -> Live {
        let (sender, news) = channel();
        let driver = Driver::start(move |_, events, status| {
            let _ = sender.send((events, status));
        });
        let driver = driver.unwrap();
        let id = driver.add(stream(), source);
        Live {
            driver,
            id,
            news,
            seen: Vec::new(),
            status: Status::Starting,
        }
    }

    /// The next events, so many at least.
    #[track_caller]
    pub fn events(&mut self, count: usize) -> Vec<Event> {
        while self.seen.len() < count {
            self.wait();
        }
        std::mem::take(&mut self.seen)
    }

    /// The next bodies, so many exactly.
    #[track_caller]
    pub fn bodies<T: Clone + 'static>(&mut self, count: usize) -> Vec<T> {
        while self.seen.len() < count {
            self.wait();
        }
        let events: Vec<Event> = self.seen.drain(..count).collect();
        bodies(&events)
    }

    /// The status, once it is such a one.
    #[track_caller]
    pub fn status(&mut self, is_it: impl Fn(&Status) -> bool) -> Status {
        while !is_it(&self.status) {
            self.wait();
        }
        self.status.clone()
    }

    /// Why it sees nothing, once that says this.
    #[track_caller]
    pub fn failure(&mut self, says: &str) -> String {
        let says = |status: &Status| matches!(status, Status::Failing(why) if why.contains(says));
        self.status(says).to_string()
    }

    #[track_caller]
    pub fn working(&mut self) {
        self.status(|status| *status == Status::Working);
    }

    /// Whether it stays silent for so long.
    pub fn is_silent(&mut self, milliseconds: u64) -> bool {
        let until = Instant::now() + Duration::from_millis(milliseconds);
        while self.seen.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            let Ok((events, status)) = self.news.recv_timeout(left) else {
                return true;
            };
            self.take(events, status);
        }
        false
    }

    #[track_caller]
    fn wait(&mut self) {
        let Ok((events, status)) = self.news.recv_timeout(PATIENCE) else {
            panic!(
                "nothing more comes; {}; unread: {:?}",
                self.status, self.seen
            );
        };
        self.take(events, status);
    }

    fn take(&mut self, events: Vec<Event>, status: Option<Status>) {
        self.seen.extend(events);
        if let Some(status) = status {
            self.status = status;
        }
    }
}
