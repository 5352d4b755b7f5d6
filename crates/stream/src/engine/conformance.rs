//! Tests that hold any engine to its contract.
//!
//! Each takes a way to make a port of the same network by name, in real time,
//! and panics where the contract is not kept. [`all`] runs all of them:
//!
//! ```
//! use milieu_stream::engine::{Hub, conformance};
//! use std::time::Duration;
//!
//! let patience = Duration::from_secs(5);
//! conformance::all(patience, || {
//!     let hub = Hub::new();
//!     move |name: &str| hub.join(name)
//! });
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Wake, Waker};
use std::time::{Duration, Instant};

use milieu_transfer::Time;

use super::{
    Channel, CloseReason, Engine, Frame, News, Outcome, Parcel, Payload, PeerId, Receipt, Refused,
};

/// Runs every test, each on a network of its own. What does not happen within
/// the patience is held not to happen.
///
/// # Panics
/// If the engine does not keep the contract.
pub fn all<E: Engine, J: FnMut(&str) -> E>(patience: Duration, mut network: impl FnMut() -> J) {
    for test in [
        presence::<E>,
        credits,
        absurd_grants,
        frames,
        sizes,
        receipts,
        requests,
        waking,
        closing,
    ] {
        let mut join = network();
        test(&mut Pair::new(patience, &mut join));
    }
}

/// Two ports, and what they have been told that no test has looked at.
struct Pair<'a, E> {
    patience: Duration,
    join: &'a mut dyn FnMut(&str) -> E,
    ports: [Option<E>; 2],
    news: [VecDeque<News>; 2],
    /// As what each is known to the other.
    ids: [PeerId; 2],
}

/// The port that sends in most tests, and the one that receives.
const A: usize = 0;
const B: usize = 1;

const CHANNEL: Channel = Channel(7);

impl<'a, E: Engine> Pair<'a, E> {
    fn new(patience: Duration, join: &'a mut dyn FnMut(&str) -> E) -> Pair<'a, E> {
        let ports = [Some(join("a")), Some(join("b"))];
        let nobody = PeerId(u64::MAX);
        let mut pair = Pair {
            patience,
            join,
            ports,
            news: [VecDeque::new(), VecDeque::new()],
            ids: [nobody, nobody],
        };
        pair.ids[B] = pair.joined(A, "b");
        pair.ids[A] = pair.joined(B, "a");
        pair
    }

    fn port(&mut self, which: usize) -> &mut E {
        self.ports[which].as_mut().expect("it has not been closed")
    }

    fn poll(&mut self, which: usize) {
        let mut news = Vec::new();
        if let Some(port) = &mut self.ports[which] {
            let _ = port.poll(Waker::noop(), &mut news);
            assert!(news.len() <= super::NEWS_MAX, "that is told at once");
        }
        self.news[which].extend(news);
    }

    /// The next news of a port that this takes; others wait.
    fn next<T>(&mut self, which: usize, what: &str, take: impl Fn(&News) -> Option<T>) -> T {
        let until = Instant::now() + self.patience;
        loop {
            let mut all = self.news[which].iter().enumerate();
            if let Some((at, found)) = all.find_map(|(at, news)| Some((at, take(news)?))) {
                self.news[which].remove(at);
                return found;
            }
            assert!(Instant::now() < until, "nothing is told of {what}");
            self.poll(A);
            self.poll(B);
            std::thread::yield_now();
        }
    }

    fn joined(&mut self, which: usize, name: &str) -> PeerId {
        self.next(which, "a peer that has joined", |news| match news {
            News::Joined(peer) if &*peer.name == name => Some(peer.id),
            _ => None,
        })
    }

    fn parcel(&self, sequence: u64, receipt: Option<u64>) -> Parcel {
        Parcel {
            to: self.ids[B],
            channel: CHANNEL,
            frame: Frame {
                incarnation: 3,
                sequence,
                time: Time::from_nanoseconds(-5),
                mode: 8,
                schema: 9,
                payload: Payload::Bytes(sequence.to_be_bytes().into()),
            },
            receipt: receipt.map(Receipt),
        }
    }

    fn submit(&mut self, parcel: Parcel) -> Result<(), Refused> {
        let mut batch = VecDeque::from([parcel]);
        let submitted = self.port(A).submit(&mut batch);
        assert_eq!(batch.len(), usize::from(submitted.is_err()));
        submitted
    }

    /// Grants A so many frames in all, and waits until it has them.
    fn grant(&mut self, frames: u64) {
        let [sender, receiver] = self.ids;
        assert_eq!(self.port(A).credit(receiver, CHANNEL), 0);
        self.port(B).grant(sender, CHANNEL, frames);
        self.next(A, "credit", |news| match news {
            News::Credit(_, CHANNEL) => Some(()),
            _ => None,
        });
    }

    fn frame(&mut self) -> Frame {
        let sender = self.ids[A];
        self.next(B, "a frame", |news| match news {
            News::Frame(from, CHANNEL, frame) if *from == sender => Some(frame.clone()),
            _ => None,
        })
    }

    fn receipt(&mut self, number: u64) -> Outcome {
        self.next(A, "a receipt", |news| match news {
            News::Receipt(Receipt(known), outcome) if *known == number => Some(*outcome),
            _ => None,
        })
    }
}

/// Peers come and go, and one that comes back is another.
fn presence<E: Engine>(pair: &mut Pair<'_, E>) {
    let before = pair.ids[B];
    pair.port(B).close(CloseReason::Done);
    let left = |news: &News| match news {
        News::Left(id, reason) => Some((*id, *reason)),
        _ => None,
    };
    let told = pair.next(A, "a peer that has left", left);
    assert_eq!(told, (before, CloseReason::Done));
    pair.ports[B] = None;
    let again = (pair.join)("b");
    pair.ports[B] = Some(again);
    assert_ne!(pair.joined(A, "b"), before, "it comes back as another");
}

/// Nothing is submitted without credit, and grants are totals.
fn credits<E: Engine>(pair: &mut Pair<'_, E>) {
    let refused = Err(Refused::NoCredit);
    assert_eq!(pair.submit(pair.parcel(1, None)), refused, "it is closed");
    pair.grant(2);
    assert_eq!(pair.port(A).credit(PeerId(u64::MAX), CHANNEL), 0);
    let to = pair.ids[B];
    assert_eq!(pair.port(A).credit(to, CHANNEL), 2);
    let mut batch: VecDeque<_> = (1..=3).map(|n| pair.parcel(n, None)).collect();
    assert_eq!(pair.port(A).submit(&mut batch), refused);
    assert_eq!(batch.len(), 1, "what is refused stays in front");
    assert_eq!(pair.frame().sequence, 1);
    assert_eq!(pair.frame().sequence, 2);
    let sender = pair.ids[A];
    pair.port(B).grant(sender, CHANNEL, 1);
    pair.port(B).grant(sender, CHANNEL, 2);
    assert_eq!(pair.submit(pair.parcel(3, None)), refused);
    pair.grant(3);
    assert_eq!(pair.submit(pair.parcel(3, None)), Ok(()));
    pair.port(B).shut(sender, CHANNEL);
    assert_eq!(pair.frame().sequence, 3);
    let until = Instant::now() + pair.patience;
    while pair.submit(pair.parcel(4, None)).is_ok() {
        assert!(
            Instant::now() < until,
            "the channel is open after it was shut"
        );
    }
    // It stays so for whoever has left it.
    let receiver = pair.ids[B];
    pair.port(A).leave(receiver, CHANNEL);
    assert_eq!(pair.submit(pair.parcel(5, None)), refused);
}

/// A grant opens no more than the engine holds.
fn absurd_grants<E: Engine>(pair: &mut Pair<'_, E>) {
    pair.grant(u64::MAX);
    let to = pair.ids[B];
    let most = pair.port(A).capabilities().credit_max;
    assert!(pair.port(A).credit(to, CHANNEL) <= most);
}

/// Frames arrive as they were.
fn frames<E: Engine>(pair: &mut Pair<'_, E>) {
    pair.grant(100);
    for n in 1..=100 {
        assert_eq!(pair.submit(pair.parcel(n, None)), Ok(()));
    }
    let is_ordered = pair.port(A).capabilities().is_ordered;
    let mut seen = Vec::new();
    for _ in 1..=100 {
        let frame = pair.frame();
        let Payload::Bytes(bytes) = &frame.payload else {
            panic!("bytes were submitted: {frame:?}");
        };
        assert_eq!(**bytes, frame.sequence.to_be_bytes());
        assert_eq!((frame.incarnation, frame.mode, frame.schema), (3, 8, 9));
        assert_eq!(frame.time, Time::from_nanoseconds(-5));
        seen.push(frame.sequence);
    }
    if !is_ordered {
        seen.sort_unstable();
    }
    assert!(seen.into_iter().eq(1..=100));
}

/// The largest frame passes, and one that is larger is refused.
fn sizes<E: Engine>(pair: &mut Pair<'_, E>) {
    pair.grant(2);
    let most = pair.port(A).capabilities().bytes_max;
    let mut parcel = pair.parcel(1, None);
    parcel.frame.payload = Payload::Bytes(vec![1; most + 1].into());
    assert_eq!(pair.submit(parcel.clone()), Err(Refused::TooLarge));
    parcel.frame.payload = Payload::Bytes(vec![1; most].into());
    assert_eq!(pair.submit(parcel), Ok(()));
    assert_eq!(pair.frame().payload.bytes(), most);
}

/// Every receipt that was asked for comes, once, also when the peer leaves.
fn receipts<E: Engine>(pair: &mut Pair<'_, E>) {
    if !pair.port(A).capabilities().receipts {
        return;
    }
    pair.grant(4);
    assert_eq!(pair.submit(pair.parcel(1, Some(11))), Ok(()));
    pair.frame();
    assert_eq!(pair.receipt(11), Outcome::Delivered);
    assert_eq!(pair.submit(pair.parcel(2, Some(12))), Ok(()));
    pair.port(B).close(CloseReason::Done);
    pair.ports[B] = None;
    pair.receipt(12);
    let told = pair.next(A, "what comes after the receipt", |news| match news {
        News::Left(..) => Some(false),
        News::Receipt(..) => Some(true),
        _ => None,
    });
    assert!(!told, "a receipt comes once");
    assert_eq!(pair.submit(pair.parcel(3, Some(13))), Err(Refused::Gone));
}

/// A question is answered once: by the peer, or by its leaving.
fn requests<E: Engine>(pair: &mut Pair<'_, E>) {
    let (to, from) = (pair.ids[B], pair.ids[A]);
    let reply = |wanted: u64| {
        move |news: &News| match news {
            News::Reply(_, number, answer) if *number == wanted => Some(answer.clone()),
            _ => None,
        }
    };
    let asked = |news: &News| match news {
        News::Request(_, number, question) => Some((*number, question.clone())),
        _ => None,
    };
    assert_eq!(pair.port(A).request(to, 5, Arc::from(*b"?")), Ok(()));
    let question = pair.next(B, "a question", asked);
    assert_eq!(question, (5, Arc::from(*b"?")));
    pair.port(B).reply(from, 6, Arc::from(*b"unasked"));
    pair.port(B).reply(from, 5, Arc::from(*b"!"));
    pair.port(B).reply(from, 5, Arc::from(*b"again"));
    let answer = pair.next(A, "an answer", reply(5));
    assert_eq!(answer.as_deref(), Some(&b"!"[..]));
    let capabilities = pair.port(A).capabilities();
    let large = vec![0; capabilities.bytes_max + 1];
    let refused = pair.port(A).request(to, 7, large.into());
    assert_eq!(refused, Err(Refused::TooLarge));
    for number in 0..capabilities.requests_max as u64 {
        let asked = pair.port(A).request(to, 100 + number, Arc::from(*b"?"));
        assert_eq!(asked, Ok(()));
    }
    let refused = pair.port(A).request(to, 99, Arc::from(*b"?"));
    assert_eq!(refused, Err(Refused::NoCredit));
    pair.port(B).close(CloseReason::Done);
    pair.ports[B] = None;
    for number in 0..capabilities.requests_max as u64 {
        assert_eq!(pair.next(A, "no answer", reply(100 + number)), None);
    }
    let refused = pair.port(A).request(to, 8, Arc::from(*b"?"));
    assert_eq!(refused, Err(Refused::Gone));
}

/// A waker that takes note of it.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        let twice = self.0.swap(true, Ordering::AcqRel);
        assert!(!twice, "a waker is woken once");
    }
}

/// Whoever has polled in vain is woken when there is something.
fn waking<E: Engine>(pair: &mut Pair<'_, E>) {
    pair.grant(2);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let until = Instant::now() + pair.patience;
    let mut news = Vec::new();
    while pair.port(B).poll(&waker, &mut news) == Poll::Ready(()) {
        assert!(Instant::now() < until, "there is always something");
    }
    assert_eq!(pair.submit(pair.parcel(1, None)), Ok(()));
    assert_eq!(pair.submit(pair.parcel(2, None)), Ok(()));
    while !woken.0.load(Ordering::Acquire) {
        assert!(Instant::now() < until, "nobody is woken");
        pair.poll(A);
        std::thread::yield_now();
    }
    pair.frame();
    pair.frame();
}

/// A closed engine takes nothing and tells nothing.
fn closing<E: Engine>(pair: &mut Pair<'_, E>) {
    pair.grant(2);
    let (to, parcel) = (pair.ids[B], pair.parcel(1, None));
    pair.port(A).close(CloseReason::Misbehaved);
    assert!(pair.submit(parcel).is_err());
    assert!(pair.port(A).request(to, 1, Arc::from(*b"?")).is_err());
    let mut news = Vec::new();
    let polled = pair.port(A).poll(Waker::noop(), &mut news);
    assert!(polled.is_pending() && news.is_empty());
    let reason = pair.next(B, "a peer that has left", |news| match news {
        News::Left(_, reason) => Some(*reason),
        _ => None,
    });
    assert_eq!(reason, CloseReason::Misbehaved);
}
