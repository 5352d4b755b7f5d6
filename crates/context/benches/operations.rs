//! The operations of a context, each beside its physical limit or its control.
//!
//! - `operations list` names them;
//! - `operations count NAME N` executes one N times and nothing else of note,
//!   for counting instructions by difference;
//! - `operations time [NAME…]` prints a JSON line each: `value` is nanoseconds,
//!   `limit` the same loop over the limit, measured alternately in one run.

#[path = "../tests/support/mod.rs"]
mod support;

use std::{hint::black_box, time::Instant};

use milieu_context::{Context, Coordinator, Text};
use support::*;

environment! { mod env;
    plain: i64 = "/value" { "default" = "10" };
    v0: i64 = "/sw/pi/%session%/v0";
    v1: i64 = "/sw/pi/%session%/v1";
    v2: i64 = "/sw/pi/%session%/v2";
    v3: Text = "/sw/pi/%session%/v3" { "default" = "en" };
    one: i64 = "/one/%battery_low%/v";
    text: Text = "/text" { "default" = "a text of some length" };
}
use env::{Environment, at};

/// What a benchmark does with a number of iterations.
type Loop = Box<dyn FnMut(u64)>;

struct Operation {
    name: &'static str,
    run: fn() -> Loop,
    /// The limit or control, for the ratio.
    limit: Option<fn() -> Loop>,
}

fn open() -> (Coordinator, Context<Environment>) {
    let coordinator = coordinator(&[("/one/yes/v", "1")]);
    let cx = coordinator.context().expect("a valid environment");
    (coordinator, cx)
}

/// Contexts that exist and do nothing.
fn idle(coordinator: &Coordinator, count: usize) -> Vec<Context<Environment>> {
    (0..count)
        .map(|_| coordinator.context().expect("a valid environment"))
        .collect()
}

/// A context with `count` sessions, four values each, and their shuffled names.
fn sessions(count: usize) -> (Context<Environment>, Vec<String>) {
    let (_, mut cx) = open();
    let mut names: Vec<String> = (0..count)
        .map(|i| format!("{:016x}", mix(i as u64)))
        .collect();
    for (i, name) in (0..).zip(&names) {
        let mut cx = cx.enter(Session(name));
        cx.set::<at::v0>(i).expect("a number");
        cx.set::<at::v1>(i).expect("a number");
        cx.set::<at::v2>(i).expect("a number");
        cx.set::<at::v3>("de").expect("a text");
    }
    for i in (1..names.len()).rev() {
        names.swap(
            i,
            usize::try_from(mix(i as u64)).expect("64 bits") % (i + 1),
        );
    }
    (cx, names)
}

fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (x ^ (x >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

fn enter_sessions(count: usize) -> Loop {
    let (mut cx, names) = sessions(count);
    Box::new(move |n| {
        let mut names = names.iter().cycle();
        for _ in 0..n {
            let name = names.next().expect("a cycle");
            let cx = cx.enter(Session(name));
            black_box(&*cx);
        }
    })
}

/// The same table of sessions, one value to touch instead of four.
fn enter_sessions_one(count: usize) -> Loop {
    environment! { mod small; v0: i64 = "/sw/pi/%session%/v0"; }
    let (cx, names) = sessions(count);
    let mut cx = cx
        .coordinator()
        .context::<small::Environment>()
        .expect("a valid environment");
    Box::new(move |n| {
        let mut names = names.iter().cycle();
        for _ in 0..n {
            let name = names.next().expect("a cycle");
            let cx = cx.enter(Session(name));
            black_box(&*cx);
        }
    })
}

fn enter_new(values: bool) -> Loop {
    let (mut cx, _) = sessions(1000);
    Box::new(move |n| {
        let mut name = *b"new-00000000000000";
        for i in 0..n {
            name[4..12].copy_from_slice(&[b'a' + (i % 23) as u8; 8]);
            let name = std::str::from_utf8(&name).expect("letters");
            if values {
                black_box(&*cx.enter(Session(name)));
            } else {
                black_box(&*cx.enter(Untouched(name)));
            }
        }
    })
}

fn switch(contexts: usize) -> Loop {
    let (coordinator, mut cx) = open();
    let others = idle(&coordinator, contexts - 1);
    Box::new(move |n| {
        for _ in 0..n {
            cx.activate(Untouched("yes")).expect("no cycle");
            cx.deactivate::<Untouched>().expect("no cycle");
        }
        black_box(&others);
    })
}

fn assign(contexts: usize) -> Loop {
    let (coordinator, mut cx) = open();
    let others = idle(&coordinator, contexts - 1);
    Box::new(move |n| {
        for i in 0..n {
            cx.set::<at::plain>(i64::try_from(i).expect("a small number"))
                .expect("a number");
        }
        black_box(&others);
    })
}

const OPERATIONS: &[Operation] = &[
    Operation {
        name: "read",
        run: || {
            let (_, cx) = open();
            Box::new(move |n| {
                for _ in 0..n {
                    black_box(black_box(&cx).plain);
                }
            })
        },
        limit: Some(|| {
            let plain = Box::new(Environment {
                plain: 10,
                ..Environment::default()
            });
            Box::new(move |n| {
                for _ in 0..n {
                    black_box(black_box(&*plain).plain);
                }
            })
        }),
    },
    Operation {
        name: "read_text",
        run: || {
            let (_, cx) = open();
            Box::new(move |n| {
                for _ in 0..n {
                    black_box(black_box(&cx).text.as_str());
                }
            })
        },
        limit: Some(|| {
            let plain = Environment {
                text: Text::from_static("a text"),
                ..Environment::default()
            };
            Box::new(move |n| {
                for _ in 0..n {
                    black_box(black_box(&plain).text.as_str());
                }
            })
        }),
    },
    Operation {
        name: "idle_sync",
        run: || {
            let (_, mut cx) = open();
            Box::new(move |n| {
                for _ in 0..n {
                    black_box(&mut cx).sync();
                }
            })
        },
        limit: Some(|| {
            let generation = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
            Box::new(move |n| {
                for _ in 0..n {
                    black_box(black_box(&generation).load(std::sync::atomic::Ordering::Acquire));
                }
            })
        }),
    },
    Operation {
        name: "with_touching_nothing",
        run: || {
            let (_, mut cx) = open();
            Box::new(move |n| {
                for _ in 0..n {
                    black_box(&mut *cx.enter(Untouched("anna")));
                }
            })
        },
        limit: None,
    },
    Operation {
        name: "with_touching_one",
        run: || {
            let (_, mut cx) = open();
            Box::new(move |n| {
                for _ in 0..n {
                    black_box(&mut *cx.enter(BatteryLow("yes")));
                }
            })
        },
        limit: None,
    },
    Operation {
        name: "session_of_10",
        run: || enter_sessions(10),
        limit: None,
    },
    Operation {
        name: "session_of_1000",
        run: || enter_sessions(1000),
        limit: None,
    },
    Operation {
        name: "session_of_100000",
        run: || enter_sessions(100_000),
        limit: None,
    },
    Operation {
        name: "session_of_10_one",
        run: || enter_sessions_one(10),
        limit: None,
    },
    Operation {
        name: "session_of_1000_one",
        run: || enter_sessions_one(1000),
        limit: None,
    },
    Operation {
        name: "session_of_100000_one",
        run: || enter_sessions_one(100_000),
        limit: None,
    },
    Operation {
        name: "session_new",
        run: || enter_new(true),
        limit: None,
    },
    Operation {
        name: "layer_new_untouched",
        run: || enter_new(false),
        limit: None,
    },
    Operation {
        name: "switch_2",
        run: || switch(2),
        limit: None,
    },
    Operation {
        name: "switch_64",
        run: || switch(64),
        limit: Some(|| switch(2)),
    },
    Operation {
        name: "assign_2",
        run: || assign(2),
        limit: None,
    },
    Operation {
        name: "assign_64",
        run: || assign(64),
        limit: Some(|| assign(2)),
    },
    Operation {
        name: "sync_with_news",
        run: || {
            let (coordinator, mut cx) = open();
            let mut peer = coordinator
                .context::<Environment>()
                .expect("a valid environment");
            Box::new(move |n| {
                for _ in 0..n {
                    peer.activate(Untouched("yes")).expect("no cycle");
                    cx.sync();
                    peer.deactivate::<Untouched>().expect("no cycle");
                    cx.sync();
                }
            })
        },
        limit: None,
    },
    Operation {
        name: "fork",
        run: || {
            let (cx, _) = sessions(10);
            Box::new(move |n| {
                for _ in 0..n {
                    black_box(cx.fork());
                }
            })
        },
        limit: None,
    },
];

/// Nanoseconds an iteration: the least of several rounds.
fn time(run: &mut Loop) -> f64 {
    let mut n = 1;
    loop {
        let start = Instant::now();
        run(n);
        if start.elapsed().as_millis() >= 5 {
            break;
        }
        n *= 2;
    }
    let round = |run: &mut Loop| {
        let start = Instant::now();
        run(n);
        start.elapsed().as_secs_f64() * 1e9 / n as f64
    };
    (0..15).map(|_| round(run)).fold(f64::INFINITY, f64::min)
}

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["list"] => OPERATIONS
            .iter()
            .for_each(|operation| println!("{}", operation.name)),
        ["count", name, n] => {
            let operation = OPERATIONS.iter().find(|operation| operation.name == *name);
            let operation =
                operation.unwrap_or_else(|| panic!("no operation `{name}`; see `list`"));
            (operation.run)()(n.parse().expect("a number of iterations"));
        }
        ["time", names @ ..] => {
            for operation in OPERATIONS {
                if !names.is_empty() && !names.contains(&operation.name) {
                    continue;
                }
                let value = time(&mut (operation.run)());
                let limit = operation.limit.map(|limit| time(&mut limit()));
                let ratio = limit.map_or_else(|| "null".into(), |l| format!("{:.3}", value / l));
                println!(
                    "{{\"name\":\"{}\",\"value\":{value:.2},\"ratio\":{ratio}}}",
                    operation.name
                );
            }
        }
        [] => println!("usage: operations list | count NAME N | time [NAME…]"),
        other => panic!("{other:?}: see the top of this file"),
    }
}
