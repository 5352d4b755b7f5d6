//! The operations of a context, each beside its physical limit or its control.
//!
//! It answers as `xtask/measure` says.

#[path = "../tests/support/mod.rs"]
#[allow(missing_docs)]
mod support;

use std::{hint::black_box, process::ExitCode};

use measure::{Loop, Operation, alone, answer_fixed, paired};
use milieu_context::{Array, Context, Coordinator, Text};
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
    name: Text = "/an/%session%/of-43-ch/%language%/%country%";
}
environment! { mod lists; ports: Array<u16> = "/ports/#"; }
environment! { mod small;
    v0: i64 = "/sw/pi/%session%/v0";
}
use env::{Environment, at};

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

/// Loads that wait for one another, scattered over as much memory as 100,000
/// sessions take: what no lookup among them can do without.
fn scattered_loads() -> Loop {
    const LINE: usize = 64 / size_of::<usize>();
    let lines = 100_000 * 400 / 64;
    // Each line holds where the next one is, in one random round.
    let mut order: Vec<usize> = (0..lines).collect();
    for i in (1..lines).rev() {
        order.swap(i, mix(i as u64) as usize % i);
    }
    let mut memory = vec![0; lines * LINE];
    for (at, next) in order.iter().zip(order.iter().cycle().skip(1)) {
        memory[at * LINE] = next * LINE;
    }
    let mut at = 0;
    Box::new(move |n| {
        for _ in 0..n {
            at = black_box(memory[at]);
        }
    })
}

fn with_plain_list(mut read: impl FnMut(&[u16]) + 'static) -> Loop {
    let plain = Box::new(lists::Environment {
        ports: Array::from_static(&[80, 443]),
    });
    Box::new(move |n| {
        for _ in 0..n {
            read(&black_box(&*plain).ports);
        }
    })
}

fn with_list(mut read: impl FnMut(&mut Context<lists::Environment>) + 'static) -> Loop {
    let coordinator = coordinator(&[("/ports/#0", "80"), ("/ports/#1", "443")]);
    let mut cx = coordinator.context().expect("a valid environment");
    Box::new(move |n| {
        for _ in 0..n {
            read(black_box(&mut cx));
        }
    })
}

#[rustfmt::skip]
fn operations() -> Vec<Operation> {
    vec![
        alone("loop", || with_context(|cx| { black_box(cx); })),
        alone("loop-identifier", || Box::new(|n| (0..n).for_each(|i| { black_box(Identifier::of(mix(i) % 10)); }))),
        paired("read", || with_context(|cx| { black_box(cx.plain); }), || with_plain(|e| { black_box(e.plain); })),
        alone("plain-read", || with_plain(|e| { black_box(e.plain); })),
        paired("read-text", || with_context(|cx| { black_box(cx.text.as_str()); }), || with_plain(|e| { black_box(e.text.as_str()); })),
        alone("plain-read-text", || with_plain(|e| { black_box(e.text.as_str()); })),
        paired("read-array", || with_list(|cx| { black_box(cx.ports.as_slice()); }), || with_plain_list(|ports| { black_box(ports); })),
        alone("plain-read-array", || with_plain_list(|ports| { black_box(ports); })),
        alone("set-array", || with_list(|cx| cx.set::<lists::at::ports>(&[1, 2, 3]).expect("three numbers"))),
        alone("sync-idle", || with_context(Context::sync)),
        alone("with-0", enter_untouched),
        alone("with-9-seen", || enter_9(10, 1)),
        alone("with-9-seen-1000", || enter_9(10, 1000)),
        alone("with-9-new", || enter(&sessions(10, 1).0, 1000, 1_000_000)),
        alone("with-9-new-1000", || enter(&sessions(10, 1000).0, 1000, 1_000_000)),
        alone("sessions-10-9", || enter_9(10, 1)),
        alone("sessions-1000-9", || enter_9(1000, 1)),
        alone("sessions-100000-9", || enter_9(100_000, 1)),
        alone("sessions-10-1", || enter_1(10)),
        alone("sessions-100000-1", || enter_1(100_000)),
        alone("scattered-load", scattered_loads),
        alone("switch-2", || switch(2)),
        paired("switch-64", || switch(64), || switch(2)),
        alone("set", || set(1)),
        paired("set-64", || set(64), || set(2)),
        alone("sync-news", || {
            let (mut cx, mut others) = open_among(2);
            Box::new(move |n| for _ in 0..n {
                others[0].activate(Untouched("yes")).expect("no cycle");
                cx.sync();
                others[0].deactivate::<Untouched>().expect("no cycle");
                cx.sync();
            })
        }),
        alone("name", || {
            let (_, mut cx) = open();
            Box::new(move |n| {
                let cx = cx.enter((Session("anna"), Language("de"), Country("AT")));
                for _ in 0..n {
                    black_box(black_box(&cx).name::<at::name>());
                }
            })
        }),
        alone("request", || {
            let (cx, _) = sessions(10, 1);
            let id = Identifier::of(3);
            Box::new(move |n| for _ in 0..n {
                let mut request = cx.fork();
                black_box(&mut *request.enter(Session(id.as_str())));
            })
        }),
    ]
}

fn main() -> ExitCode {
    answer_fixed(&operations(), milieu_context::fix_keys)
}
