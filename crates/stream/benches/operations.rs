//! Events through the graph, beside what they would cost written by hand.
//!
//! It answers as `xtask/measure` says.

use std::hint::black_box;
use std::iter;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use measure::{Loop, Operation, alone, answer, paired};
use milieu_diagnostics::{Diagnostic, Source};
use milieu_keys::Name;
use milieu_stream::language::Language;
use milieu_stream::{
    Arguments, Catalogue, Clock, Definition, Delivery, Fate, Flow, Inputs, Machine, Now, Operator,
    Output, Overflow, Planned, ReaderId, Reason, SourceId, Streams, Subscriber, SystemClock,
    operators,
};
use milieu_transfer::{Event, Header, Origin, Stream, Time};

static OPERATIONS: &[Operation] = &[
    paired("filters-5", || graph(5, 1), || virtual_chain(5)),
    paired("expressions-5", expressions, || virtual_chain(5)),
    alone("filters-5-by-hand", || virtual_chain(5)),
    alone("filters-0-by-hand", || virtual_chain(0)),
    alone("filters-0", || graph(0, 1)),
    alone("filters-5-to-1000", || graph(5, 1000)),
    alone("filters-0-to-1000", || graph(0, 1000)),
    alone("receivers-1", || graph(1, 1)),
    alone("receivers-101", || graph(1, 101)),
    alone("published", || published(false)),
    alone("published-looked-at", || published(true)),
    alone("queues-1", || queues(1)),
    alone("queues-11", || queues(11)),
    alone("queues-in-thread-1000-1", || queues_in_thread(1)),
    alone("queues-in-thread-1000-11", || queues_in_thread(11)),
    paired("queue-in-thread-1000", queue_in_thread, channel_in_thread),
];

const EVERY: Delivery = Delivery::Every {
    capacity: NonZeroU32::new(1 << 20).expect("more than none"),
    overflow: Overflow::DropOldest,
};

fn streams() -> Streams {
    Streams::new(
        operators::catalogue(),
        SystemClock,
        Origin("here".into()),
        1,
    )
}

/// A publisher of a process and a callback, while somebody looks or not.
fn published(is_looked_at: bool) -> Loop {
    let streams = streams();
    let flow = Flow::Stream("/weather".into());
    let heard = streams.listen(&flow, |event| _ = black_box(event.get::<f64>()));
    let publisher = streams.publisher::<f64>("/weather").expect("it is free");
    if is_looked_at {
        black_box(streams.look());
    }
    Box::new(move |times| {
        let _heard = &heard;
        for _ in 0..times {
            let _ = black_box(publisher.publish(21.5));
        }
    })
}

/// A filter by a Rust closure.
struct Closure<F>(F);

impl<F: FnMut(&Event) -> bool + Send> Operator for Closure<F> {
    fn event(&mut self, _: usize, event: &Event, _: &mut Output<'_>) -> Fate {
        self.test(event)
    }

    fn is_filter(&self) -> bool {
        true
    }

    fn test(&mut self, event: &Event) -> Fate {
        match (self.0)(event) {
            true => Fate::Passed,
            false => Fate::Dropped(Reason::Filtered),
        }
    }
}

fn above(_: &Arguments<'_>) -> Result<Box<dyn Operator>, Diagnostic> {
    let bound = black_box(3.0);
    let is_above = move |event: &Event| event.get::<f64>().is_some_and(|value| *value > bound);
    Ok(Box::new(Closure(is_above)))
}

static ABOVE: Definition = Definition {
    name: "above",
    summary: "",
    inputs: Inputs::One,
    parameters: &[],
    make: above,
};

fn stream() -> Arc<Stream> {
    Arc::new(Stream {
        name: Name::parse("/t").expect("a name"),
        origin: Origin("here".into()),
        incarnation: 1,
    })
}

fn event() -> Event {
    let header = Header {
        stream: stream(),
        time: Time::default(),
        sequence: 1,
        quality: None,
    };
    Event::new(header, 5.0_f64)
}

/// A source with a chain of filters, and receivers by callback at its end.
fn graph(filters: usize, receivers: usize) -> Loop {
    let catalogue = Catalogue::new([&ABOVE]);
    let mut machine = Machine::new(Origin("here".into()), 1);
    let clock = || Time::default();
    let source = machine.add_source(&Now::new(&clock), stream(), false);
    let source: SourceId = source.expect("the name is free");
    let mut flow = Flow::Stream("/t".into());
    for _ in 0..filters {
        flow = catalogue.operation(&ABOVE, Vec::new(), vec![flow]);
    }
    for _ in 0..receivers {
        let planned = Planned::new(&flow, &catalogue).expect("a good flow");
        let receiver = move |event: &Event| _ = black_box(black_box(event).header().sequence);
        machine.subscribe(
            &Now::new(&clock),
            planned,
            ReaderId::GLOBAL,
            "bench".into(),
            Box::new(receiver),
        );
    }
    let event = event();
    Box::new(move |times| {
        let now = Now::new(&clock);
        for _ in 0..times {
            machine.publish(&now, source, black_box(&event));
        }
    })
}

/// A source and queues, which the same thread empties after each event.
fn queues(count: usize) -> Loop {
    let streams = streams();
    let publisher = streams.publisher::<f64>("/t").expect("the name is free");
    let flow = Flow::Stream("/t".into());
    let subscribe = |_| streams.subscribe(&flow, EVERY).expect("a good flow");
    let mut subscribers: Vec<Subscriber> = (0..count).map(subscribe).collect();
    Box::new(move |times| {
        for _ in 0..times {
            let _ = publisher.publish(black_box(5.0));
            for subscriber in &mut subscribers {
                black_box(subscriber.try_next().expect("it is there"));
            }
        }
    })
}

/// A thousand events through a queue that another thread empties, which is always
/// awake. What both do at once takes as long as the slower of them.
fn queue_in_thread() -> Loop {
    let streams = streams();
    let publisher = streams.publisher::<f64>("/t").expect("the name is free");
    let subscribed = streams.subscribe(&Flow::Stream("/t".into()), EVERY);
    let mut subscriber = subscribed.expect("a good flow");
    to_thread(
        500,
        move || _ = publisher.publish(black_box(5.0)),
        move || subscriber.try_next(),
    )
}

/// A thousand events to queues that another thread empties, one after the other,
/// whenever it has had something else to do for a while.
fn queues_in_thread(count: usize) -> Loop {
    const ELSEWHERE: Duration = Duration::from_micros(50);
    let streams = streams();
    let publisher = streams.publisher::<f64>("/t").expect("the name is free");
    let flow = Flow::Stream("/t".into());
    let subscribe = |_| streams.subscribe(&flow, EVERY).expect("a good flow");
    let mut subscribers: Vec<Subscriber> = (0..count).map(subscribe).collect();
    let take = |subscriber: &mut Subscriber| iter::from_fn(|| subscriber.try_next()).last();
    to_thread(
        5000,
        move || _ = publisher.publish(black_box(5.0)),
        move || {
            let until = Instant::now() + ELSEWHERE;
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            subscribers.iter_mut().map(take).last().flatten()
        },
    )
}

/// The same through a channel of the standard library, without anything else.
fn channel_in_thread() -> Loop {
    let (sender, receiver) = std::sync::mpsc::channel();
    let stream = stream();
    let mut sequence = 0;
    let publish = move || {
        sequence += 1;
        let header = Header {
            stream: Arc::clone(&stream),
            time: SystemClock.now(),
            sequence,
            quality: None,
        };
        let _ = sender.send(Event::new(header, black_box(5.0)));
    };
    to_thread(500, publish, move || receiver.try_recv().ok())
}

/// What is published is at most so far ahead of what is taken.
fn to_thread(
    behind: u64,
    mut publish: impl FnMut() + 'static,
    mut take: impl FnMut() -> Option<Event> + Send + 'static,
) -> Loop {
    const EVENTS: u64 = 1000;
    let taken = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&taken);
    std::thread::spawn(move || {
        let mut in_vain = 0;
        // Threads of loops that have ended would take the cores of the others.
        while Arc::strong_count(&counted) > 1 {
            match take() {
                Some(event) => {
                    in_vain = 0;
                    counted.store(event.header().sequence, Ordering::Release);
                }
                // So would those of loops whose turn it is not.
                None if in_vain > 2000 => std::thread::sleep(Duration::from_micros(50)),
                // Whoever has nothing to do looks again a little later.
                None => {
                    in_vain += 1;
                    (0..64).for_each(|_| std::hint::spin_loop());
                }
            }
        }
    });
    let mut published = 0;
    Box::new(move |times| {
        for _ in 0..times * EVENTS {
            publish();
            published += 1;
            while published - taken.load(Ordering::Acquire) > behind {
                std::hint::spin_loop();
            }
        }
        while taken.load(Ordering::Acquire) < published {
            std::hint::spin_loop();
        }
    })
}

/// A source, five filters by expression, and a callback.
fn expressions() -> Loop {
    let catalogue = operators::catalogue();
    let mut machine = Machine::new(Origin("here".into()), 1);
    let clock = || Time::default();
    let source = machine.add_source(&Now::new(&clock), stream(), false);
    let source: SourceId = source.expect("the name is free");
    let text = "/t | filter value > 3 | filter value > 2 | filter value < 9 | filter value != 7 \
                | filter value < 8";
    let document = Language::Pipeline.parse(&Source::new("flow", text), &catalogue);
    let document = document.expect("a good flow");
    let planned = Planned::new(&document.subscriptions[0].flow, &catalogue).expect("a good flow");
    let receiver = move |event: &Event| _ = black_box(black_box(event).header().sequence);
    machine.subscribe(
        &Now::new(&clock),
        planned,
        ReaderId::GLOBAL,
        "bench".into(),
        Box::new(receiver),
    );
    let event = event();
    Box::new(move |times| {
        let now = Now::new(&clock);
        for _ in 0..times {
            machine.publish(&now, source, black_box(&event));
        }
    })
}

/// A filter as one would write it by hand.
trait Filter {
    fn event(&mut self, event: &Event);
}

struct Above {
    bound: f64,
    next: Box<dyn Filter>,
}

impl Filter for Above {
    fn event(&mut self, event: &Event) {
        if event.get::<f64>().is_some_and(|value| *value > self.bound) {
            self.next.event(event);
        }
    }
}

struct End;

impl Filter for End {
    fn event(&mut self, event: &Event) {
        black_box(black_box(event).header().sequence);
    }
}

/// Filters by hand, and a receiver at their end.
fn virtual_chain(filters: usize) -> Loop {
    let mut chain: Box<dyn Filter> = Box::new(End);
    for _ in 0..filters {
        let bound = black_box(3.0);
        chain = Box::new(Above { bound, next: chain });
    }
    let event = event();
    Box::new(move |times| {
        for _ in 0..times {
            chain.event(black_box(&event));
        }
    })
}

fn main() -> ExitCode {
    answer(OPERATIONS)
}
