//! The operations of a context, each beside its physical limit or its control.
//!
//! - `operations list` names them;
//! - `operations count NAME N` executes one N times, for counting instructions
//!   by the difference of two runs;
//! - `operations time [NAME…]` prints a JSON line each: `value` in nanoseconds,
//!   and for some the `ratio` to their limit, measured alternately in one run.

#[path = "../tests/support/mod.rs"]
#[allow(missing_docs)]
mod support;

use std::{hint::black_box, time::Instant};

use milieu_context::{Context, Coordinator, Text};
use support::*;

environment! { mod env;
    plain: i64 = "/value" { "default" = "10" };
    text: Text = "/text" { "default" = "a text of some length" };
    v0: i64 = "/sw/pi/%session%/v0";
    v1: i64 = "/sw/pi/%session%/v1";
    v2: i64 = "/sw/pi/%session%/v2";
    v3: i64 = "/sw/pi/%session%/v3";
    v4: i64 = "/sw/pi/%session%/v4";
    v5: i64 = "/sw/pi/%session%/v5";
    v6: i64 = "/sw/pi/%session%/v6";
    v7: i64 = "/sw/pi/%session%/v7";
    v8: Text = "/sw/pi/%session%/v8" { "default" = "en" };
    name: Text = "/a/%session%/of-43-chars/%language%/%country%/v";
}
environment! { mod small;
    v0: i64 = "/sw/pi/%session%/v0";
}
use env::{Environment, at};

/// Executes an operation a number of times.
type Loop = Box<dyn FnMut(u64)>;

struct Operation {
    name: &'static str,
    make: fn() -> Loop,
    /// What it is compared with.
    limit: Option<fn() -> Loop>,
}

fn open() -> (Coordinator, Context<Environment>) {
    let coordinator = coordinator(&[]);
    let cx = coordinator.context().expect("a valid environment");
    (coordinator, cx)
}

/// A coordinator that has as many contexts, of which one is used.
fn open_among(contexts: usize) -> (Context<Environment>, Vec<Context<Environment>>) {
    let (coordinator, cx) = open();
    let others = (1..contexts).map(|_| coordinator.context().expect("a valid environment"));
    (cx, others.collect())
}

fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// A session identifier, as one would come with a request.
struct Identifier([u8; 16]);
impl Identifier {
    fn of(number: u64) -> Identifier {
        let word = mix(number);
        let digit = |i: usize| b"0123456789abcdef"[(word >> (4 * i)) as usize & 15];
        Identifier(std::array::from_fn(digit))
    }
    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("digits")
    }
}

/// A context among whose keys are nine values for each session.
fn sessions(count: u64, contexts: usize) -> (Context<Environment>, Vec<Context<Environment>>) {
    let (mut cx, others) = open_among(contexts);
    for i in 0..count {
        let id = Identifier::of(i);
        let mut cx = cx.enter(Session(id.as_str()));
        macro_rules! set {
            ($($value:ident)*) => {$( cx.set::<at::$value>(7).expect("a number"); )*};
        }
        set!(v0 v1 v2 v3 v4 v5 v6 v7);
        cx.set::<at::v8>("de").expect("a text");
    }
    (cx, others)
}

/// Enters sessions in random order; `first` of the unknown ones is `count`.
fn enter<E: milieu_context::Environment>(cx: &Context<E>, count: u64, first: u64) -> Loop {
    let mut cx = cx.fork();
    Box::new(move |n| {
        for i in 0..n {
            let id = Identifier::of(first + mix(i) % count);
            black_box(&mut *cx.enter(Session(id.as_str())));
        }
    })
}

fn enter_9(count: u64, contexts: usize) -> Loop {
    enter(&sessions(count, contexts).0, count, 0)
}

fn enter_1(count: u64) -> Loop {
    let (cx, _) = sessions(count, 1);
    enter(
        &cx.coordinator()
            .context::<small::Environment>()
            .expect("a valid environment"),
        count,
        0,
    )
}

fn enter_untouched() -> Loop {
    let (_, mut cx) = open();
    Box::new(move |n| {
        for _ in 0..n {
            black_box(&mut *cx.enter(Untouched("anna")));
        }
    })
}

fn switch(contexts: usize) -> Loop {
    let (mut cx, others) = open_among(contexts);
    Box::new(move |n| {
        for _ in 0..n {
            cx.activate(Untouched("yes")).expect("no cycle");
            cx.deactivate::<Untouched>().expect("no cycle");
        }
        black_box(&others);
    })
}

fn set(contexts: usize) -> Loop {
    let (mut cx, others) = open_among(contexts);
    Box::new(move |n| {
        for i in 0..n {
            cx.set::<at::plain>(i as i64).expect("a number");
        }
        black_box(&others);
    })
}

fn with_plain(mut read: impl FnMut(&Environment) + 'static) -> Loop {
    let plain = Box::new(Environment {
        plain: 10,
        text: Text::from_static("a text of some length"),
        ..Environment::default()
    });
    Box::new(move |n| {
        for _ in 0..n {
            read(black_box(&*plain));
        }
    })
}

fn with_context(mut read: impl FnMut(&mut Context<Environment>) + 'static) -> Loop {
    let (_, mut cx) = open();
    Box::new(move |n| {
        for _ in 0..n {
            read(black_box(&mut cx));
        }
    })
}

fn operation(name: &'static str, make: fn() -> Loop) -> Operation {
    Operation {
        name,
        make,
        limit: None,
    }
}

fn paired(name: &'static str, make: fn() -> Loop, limit: fn() -> Loop) -> Operation {
    Operation {
        name,
        make,
        limit: Some(limit),
    }
}

#[rustfmt::skip]
fn operations() -> Vec<Operation> {
    vec![
        operation("loop", || with_context(|cx| { black_box(cx); })),
        operation("loop-identifier", || Box::new(|n| (0..n).for_each(|i| { black_box(Identifier::of(mix(i) % 10)); }))),
        paired("read", || with_context(|cx| { black_box(cx.plain); }), || with_plain(|e| { black_box(e.plain); })),
        operation("plain-read", || with_plain(|e| { black_box(e.plain); })),
        paired("read-text", || with_context(|cx| { black_box(cx.text.as_str()); }), || with_plain(|e| { black_box(e.text.as_str()); })),
        operation("plain-read-text", || with_plain(|e| { black_box(e.text.as_str()); })),
        operation("sync-idle", || with_context(Context::sync)),
        operation("with-0", enter_untouched),
        operation("with-9-seen", || enter_9(10, 1)),
        operation("with-9-seen-1000", || enter_9(10, 1000)),
        operation("with-9-new", || enter(&sessions(10, 1).0, 1000, 1_000_000)),
        operation("with-9-new-1000", || enter(&sessions(10, 1000).0, 1000, 1_000_000)),
        operation("sessions-10-9", || enter_9(10, 1)),
        operation("sessions-1000-9", || enter_9(1000, 1)),
        operation("sessions-100000-9", || enter_9(100_000, 1)),
        operation("sessions-10-1", || enter_1(10)),
        operation("sessions-100000-1", || enter_1(100_000)),
        operation("switch-2", || switch(2)),
        paired("switch-64", || switch(64), || switch(2)),
        operation("set", || set(1)),
        paired("set-64", || set(64), || set(2)),
        operation("sync-news", || {
            let (mut cx, mut others) = open_among(2);
            Box::new(move |n| for _ in 0..n {
                others[0].activate(Untouched("yes")).expect("no cycle");
                cx.sync();
                others[0].deactivate::<Untouched>().expect("no cycle");
                cx.sync();
            })
        }),
        operation("name", || with_context(|cx| { black_box(cx.name::<at::name>()); })),
        operation("request", || {
            let (cx, _) = sessions(10, 1);
            let id = Identifier::of(3);
            Box::new(move |n| for _ in 0..n {
                let mut request = cx.fork();
                black_box(&mut *request.enter(Session(id.as_str())));
            })
        }),
    ]
}

/// Nanoseconds an execution, and over its limit: the least of alternate rounds.
fn time(operation: &Operation) -> (f64, Option<f64>) {
    let mut run = (operation.make)();
    let mut n = 1;
    while {
        let start = Instant::now();
        run(n);
        start.elapsed().as_millis() < 5
    } {
        n *= 2;
    }
    let round = |run: &mut Loop| {
        let start = Instant::now();
        run(n);
        start.elapsed().as_secs_f64() * 1e9 / n as f64
    };
    let mut limit = operation.limit.map(|make| make());
    let (mut least, mut least_limit) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..15 {
        least = least.min(round(&mut run));
        if let Some(limit) = &mut limit {
            least_limit = least_limit.min(round(limit));
        }
    }
    (least, limit.map(|_| least / least_limit))
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["list"] => operations()
            .iter()
            .for_each(|operation| println!("{}", operation.name)),
        ["count", name, n] => {
            milieu_context::fix_keys();
            let operations = operations();
            let operation = operations.iter().find(|operation| operation.name == *name);
            let operation =
                operation.unwrap_or_else(|| panic!("no operation `{name}`; see `list`"));
            (operation.make)()(n.parse().expect("a number of executions"));
        }
        ["time", names @ ..] => {
            for operation in operations() {
                if names.is_empty() || names.contains(&operation.name) {
                    let (value, ratio) = time(&operation);
                    let ratio = ratio
                        .map(|r| format!(",\"ratio\":{r:.3}"))
                        .unwrap_or_default();
                    println!(
                        "{{\"name\":\"{}\",\"value\":{value:.2}{ratio}}}",
                        operation.name
                    );
                }
            }
        }
        _ => println!("usage: operations list | count NAME N | time [NAME…]"),
    }
}
