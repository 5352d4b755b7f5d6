//! Sources are driven by one thread, whatever they do.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, SystemTime};

use milieu_stream::drive::{Driver, SourceId, Stepped};
use milieu_stream::{Feed, Source, Status, VirtualClock, Wait};
use milieu_transfer::{Event, Origin, Span, Stream, Time};

type News = (SourceId, Vec<Event>, Option<Status>);

/// Far longer than anything here takes; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(60);

fn stream(name: &str) -> Stream {
    Stream {
        name: name.parse().unwrap(),
        origin: Origin("test".into()),
        incarnation: 1,
    }
}

fn driver() -> (Driver, Receiver<News>) {
    let (sender, receiver) = channel();
    let driver = Driver::start(move |id, events, status| {
        let _ = sender.send((id, events, status));
    });
    (driver.unwrap(), receiver)
}

/// Counts up, every so often, so many times.
struct Counting {
    every: Span,
    next: Option<Time>,
    count: u64,
    until: u64,
}

fn counting(milliseconds: u64, until: u64) -> Counting {
    Counting {
        every: Duration::from_millis(milliseconds).into(),
        next: None,
        count: 0,
        until,
    }
}

impl Source for Counting {
    fn poll(&mut self, feed: &mut Feed<'_>) -> Wait {
        let now = feed.now();
        if let Some(next) = self.next.filter(|next| now < *next) {
            return Wait::Until(next);
        }
        if self.count == self.until {
            return Wait::Ended;
        }
        self.count += 1;
        feed.working();
        feed.publish(now, self.count);
        let next = now + self.every;
        self.next = Some(next);
        Wait::Until(next)
    }
}

/// Publishes what comes through a socket, byte by byte.
struct Piped(UnixStream);

impl Source for Piped {
    fn poll(&mut self, feed: &mut Feed<'_>) -> Wait {
        let mut byte = [0];
        let ready = rustix::io::ioctl_fionread(&self.0).unwrap();
        for _ in 0..ready {
            self.0.read_exact(&mut byte).unwrap();
            feed.publish(feed.now(), byte[0]);
        }
        feed.working();
        Wait::Readable
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
}

fn piped() -> (Piped, UnixStream) {
    let (reader, writer) = UnixStream::pair().unwrap();
    (Piped(reader), writer)
}

/// The bodies that one source publishes, until there are so many.
fn bodies<T: Copy + 'static>(news: &Receiver<News>, of: SourceId, count: usize) -> Vec<T> {
    let mut seen = Vec::new();
    while seen.len() < count {
        let (id, events, _) = news.recv_timeout(PATIENCE).unwrap();
        if id == of {
            seen.extend(events.iter().map(|event| *event.get::<T>().unwrap()));
        }
    }
    seen
}

#[test]
fn timers_and_descriptors_are_polled_when_they_have_come() {
    let (driver, news) = driver();
    let ticking = driver.add(stream("/ticks"), counting(1, 3));
    assert_eq!(bodies::<u64>(&news, ticking, 3), [1, 2, 3]);
    let (source, mut writer) = piped();
    let reading = driver.add(stream("/bytes"), source);
    writer.write_all(b"ab").unwrap();
    assert_eq!(bodies::<u8>(&news, reading, 2), *b"ab");
    writer.write_all(b"c").unwrap();
    assert_eq!(bodies::<u8>(&news, reading, 1), *b"c");
    assert_eq!(driver.status(reading), Some(Status::Working));
    driver.remove(reading);
    assert_eq!(driver.status(reading), None);
    driver.stop().unwrap();
}

#[test]
fn events_are_numbered_and_an_end_is_told() {
    let (driver, news) = driver();
    let id = driver.add(stream("/ticks"), counting(0, 2));
    let mut sequences = Vec::new();
    let mut statuses = Vec::new();
    while statuses.last() != Some(&Status::Ended) {
        let (of, events, status) = news.recv_timeout(PATIENCE).unwrap();
        assert_eq!(of, id);
        sequences.extend(events.iter().map(|event| event.header().sequence));
        statuses.extend(status);
    }
    assert_eq!(sequences, [1, 2]);
    assert_eq!(statuses, [Status::Working, Status::Ended]);
    assert_eq!(driver.status(id), Some(Status::Ended));
}

struct Bomb;

impl Source for Bomb {
    fn poll(&mut self, feed: &mut Feed<'_>) -> Wait {
        feed.publish(feed.now(), 7u8);
        panic!("the fuse was short");
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("and again");
    }
}

#[test]
fn a_source_that_panics_is_told_as_failing_and_harms_no_other() {
    let (driver, news) = driver();
    let ticking = driver.add(stream("/ticks"), counting(1, u64::MAX));
    let bomb = driver.add(stream("/bomb"), Bomb);
    let (events, status) = loop {
        let (id, events, status) = news.recv_timeout(PATIENCE).unwrap();
        if id == bomb {
            break (events, status.unwrap());
        }
    };
    assert_eq!(events.len(), 1, "what it had said before counts");
    assert!(
        status.to_string().contains("the fuse was short"),
        "{status}"
    );
    assert_eq!(driver.status(bomb), Some(status));
    bodies::<u64>(&news, ticking, 5);
}

#[test]
fn a_source_without_a_descriptor_cannot_wait_for_one() {
    struct Deaf;
    impl Source for Deaf {
        fn poll(&mut self, _: &mut Feed<'_>) -> Wait {
            Wait::Readable
        }
    }
    let (driver, news) = driver();
    let id = driver.add(stream("/deaf"), Deaf);
    let (of, _, status) = news.recv_timeout(PATIENCE).unwrap();
    assert_eq!(of, id);
    let status = status.unwrap().to_string();
    assert!(status.contains("has none"), "{status}");
}

/// Publishes what comes through another socket each time: the old one is closed, and the
/// new one gets its number.
struct Reconnecting {
    socket: Option<UnixStream>,
    writers: Sender<UnixStream>,
}

impl Source for Reconnecting {
    fn poll(&mut self, feed: &mut Feed<'_>) -> Wait {
        if let Some(mut socket) = self.socket.take() {
            let mut byte = [0];
            socket.read_exact(&mut byte).unwrap();
            feed.publish(feed.now(), byte[0]);
        }
        let (reader, writer) = UnixStream::pair().unwrap();
        self.socket = Some(reader);
        self.writers.send(writer).unwrap();
        Wait::Readable
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_ref()?.as_fd())
    }
}

#[test]
fn a_descriptor_may_be_another_after_each_poll() {
    let (driver, news) = driver();
    let (writers, given) = channel();
    let source = Reconnecting {
        socket: None,
        writers,
    };
    let id = driver.add(stream("/bytes"), source);
    for byte in 0..20u8 {
        let mut writer = given.recv_timeout(PATIENCE).unwrap();
        writer.write_all(&[byte]).unwrap();
        assert_eq!(bodies::<u8>(&news, id, 1), [byte]);
    }
}

#[test]
fn ten_thousand_timers_need_one_thread() {
    let threads = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let name = |task: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
        };
        let names = tasks.filter_map(name);
        names.filter(|name| name.trim() == "milieu-sources").count()
    };
    const COUNT: usize = 10_000;
    // Other tests of this program may have drivers too.
    let (driver, news) = driver();
    let before = threads();
    let mut missing = HashMap::new();
    for _ in 0..COUNT {
        missing.insert(driver.add(stream("/ticks"), counting(100, u64::MAX)), 3);
    }
    while !missing.is_empty() {
        let (id, events, _) = news.recv_timeout(PATIENCE).unwrap();
        if let Some(count) = missing.get_mut(&id) {
            *count -= events.len().min(*count);
            if *count == 0 {
                missing.remove(&id);
            }
        }
    }
    assert!(threads() <= before + 12, "one for each other test at most");
}

#[test]
fn sources_come_and_go_while_others_run() {
    let (driver, news) = driver();
    let lasting = driver.add(stream("/lasting"), counting(1, u64::MAX));
    for _ in 0..200 {
        let (source, mut writer) = piped();
        let id = driver.add(stream("/passing"), source);
        writer.write_all(b"x").unwrap();
        bodies::<u8>(&news, id, 1);
        driver.remove(id);
    }
    bodies::<u64>(&news, lasting, 3);
    let dropped = channel::<()>();
    struct Held(#[allow(dead_code)] Sender<()>);
    impl Source for Held {
        fn poll(&mut self, _: &mut Feed<'_>) -> Wait {
            Wait::Until(Time::MAX)
        }
    }
    let id = driver.add(stream("/held"), Held(dropped.0));
    driver.remove(id);
    let gone = dropped.1.recv_timeout(PATIENCE);
    assert_eq!(
        gone,
        Err(RecvTimeoutError::Disconnected),
        "a removed source is dropped"
    );
}

#[test]
fn a_callback_that_panics_ends_the_driver_and_not_in_silence() {
    let driver = Driver::start(|_, _, _| panic!("no")).unwrap();
    let first = driver.add(stream("/ticks"), counting(1, u64::MAX));
    while !matches!(driver.status(first), Some(Status::Failing(_))) {
        std::thread::yield_now();
    }
    let second = driver.add(stream("/ticks"), counting(1, u64::MAX));
    let status = driver.status(second).unwrap().to_string();
    assert!(status.contains("callback"), "{status}");
    assert!(driver.stop().is_err());
}

#[test]
fn virtual_time_passes_only_when_it_is_told_to() {
    let start = Time::from_seconds(1_000);
    let mut sources = Stepped::new(start);
    let slow = sources.add(stream("/slow"), counting(10_000, u64::MAX));
    let fast = sources.add(stream("/fast"), counting(4_000, 3));
    let bomb = sources.add(stream("/bomb"), Bomb);
    let mut seen = Vec::new();
    let until = start + Span::from_seconds(20);
    sources.run(until, |id, events, _| {
        seen.extend(events.iter().map(|event| {
            let seconds = (event.time() - start).seconds();
            (id, seconds, event.header().sequence)
        }));
    });
    let expected = [
        (slow, 0.0, 1),
        (fast, 0.0, 1),
        (bomb, 0.0, 1),
        (fast, 4.0, 2),
        (fast, 8.0, 3),
        (slow, 10.0, 2),
        (slow, 20.0, 3),
    ];
    assert_eq!(seen, expected);
    assert_eq!(sources.now(), until);
    assert_eq!(sources.status(fast), Some(&Status::Ended));
    assert!(matches!(sources.status(bomb), Some(Status::Failing(_))));
    assert_eq!(sources.due(), Some(start + Span::from_seconds(30)));
    assert!(sources.remove(slow));
    assert_eq!(sources.due(), None);
}

#[test]
fn who_is_woken_is_polled_when_time_next_passes() {
    let start = Time::from_seconds(1_000);
    let (source, mut writer) = piped();
    let mut sources = Stepped::new(start);
    let id = sources.add(stream("/bytes"), source);
    assert!(!sources.wake(id), "it is polled without that");
    let run = |sources: &mut Stepped, seconds| {
        let mut seen = Vec::new();
        let until = start + Span::from_seconds(seconds);
        sources.run(until, |_, events, _| {
            seen.extend(events.iter().map(|it| (it.time() - start).seconds()));
        });
        seen
    };
    writer.write_all(&[1]).unwrap();
    assert_eq!(run(&mut sources, 0), [0.0]);
    writer.write_all(&[2]).unwrap();
    assert!(
        run(&mut sources, 10).is_empty(),
        "descriptors are not looked at"
    );
    assert!(sources.wake(id));
    assert_eq!(sources.due(), Some(sources.now()));
    assert_eq!(run(&mut sources, 20), [10.0]);
    assert_eq!(sources.due(), None);
    assert!(sources.remove(id) && !sources.wake(id));
}

#[test]
fn what_is_due_is_polled_no_earlier() {
    let (driver, news) = driver();
    let id = driver.add(stream("/ticks"), counting(30, 3));
    let mut times = Vec::new();
    while times.len() < 3 {
        let (of, events, _) = news.recv_timeout(PATIENCE).unwrap();
        assert_eq!(of, id);
        times.extend(events.iter().map(Event::time));
    }
    let apart: Span = Duration::from_millis(30).into();
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= apart));
    assert!(times[2] <= Time::from(SystemTime::now()));
}

/// A clock that stands far from the system's is waited for by itself.
#[test]
fn sources_go_by_another_clock() {
    let start = Time::from_nanoseconds(5_000_000_000);
    let clock = VirtualClock::new(start);
    let (sender, receiver) = channel();
    let driver = Driver::start_by(Arc::new(clock.clone()), move |id, events, status| {
        let _ = sender.send((id, events, status));
    });
    let driver = driver.unwrap();
    driver.add(stream("/n"), counting(60_000, 2));
    let times = || {
        let (_, events, _) = receiver.recv_timeout(PATIENCE).unwrap();
        events.iter().map(Event::time).collect::<Vec<_>>()
    };
    assert_eq!(times(), [start]);
    let silent = receiver.recv_timeout(Duration::from_millis(50));
    assert_eq!(silent.err(), Some(RecvTimeoutError::Timeout));
    let later = start + Span::from_seconds(60);
    clock.set(later);
    assert_eq!(times(), [later]);
}
