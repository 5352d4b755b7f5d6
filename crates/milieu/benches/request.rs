//! What a server pays for the context of a request.
//!
//! - `request list` names the operations;
//! - `request count NAME N` executes one N times, for counting instructions by
//!   the difference of two runs;
//! - `request time [NAME…]` prints a JSON line each: `value` in nanoseconds,
//!   the least of several rounds.

use std::{hint::black_box, time::Instant};

use milieu::{Contexts, Coordinator, Environment, Text, layer};

layer! { struct Session(&'static str) = "session"; }

#[derive(Environment)]
#[environment(root = "/sw/pi")]
struct Settings {
    #[key("%session%/language", default = "en")]
    language: Text,
    #[key("%session%/airport", default = "jfk")]
    airport: Text,
    #[key("%session%/rows", default = 10)]
    rows: u32,
    #[key("%session%/speed", default = 1.0)]
    speed: f64,
    #[key("title", default = "Weather")]
    title: Text,
}

/// Executes an operation a number of times.
type Loop = Box<dyn FnMut(u64)>;

fn contexts() -> (Coordinator, Contexts<Settings>) {
    let coordinator = Coordinator::new();
    for (name, text) in [
        ("/sw/pi/anna/language", "de"),
        ("/sw/pi/anna/rows", "20"),
        ("/sw/pi/otto/language", "fr"),
    ] {
        coordinator.assign(name, text, None).expect("a valid key");
    }
    let cx = coordinator.context().expect("a valid environment");
    (coordinator, Contexts::new(cx))
}

fn request() -> Loop {
    let (_, contexts) = contexts();
    Box::new(move |n| {
        for _ in 0..n {
            let mut cx = contexts.context();
            black_box(&mut *cx.enter(Session("anna")));
        }
    })
}

/// Each request finds something new.
fn request_news() -> Loop {
    let (coordinator, contexts) = contexts();
    let mut other = coordinator.context::<Settings>().expect("as before");
    Box::new(move |n| {
        for i in 0..n {
            other.set::<at::rows>(i as u32 % 100).expect("a number");
            let mut cx = contexts.context();
            black_box(&mut *cx.enter(Session("anna")));
        }
    })
}

/// Prepares an operation.
type Make = fn() -> Loop;

const OPERATIONS: &[(&str, Make)] = &[
    ("loop", || {
        let (_, contexts) = contexts();
        Box::new(move |n| {
            for _ in 0..n {
                black_box(&contexts);
            }
        })
    }),
    ("request", request),
    ("request-news", request_news),
];

/// Nanoseconds an execution.
fn time(make: Make) -> f64 {
    let mut run = make();
    let mut round = |n: u64| {
        let start = Instant::now();
        run(n);
        start.elapsed().as_secs_f64()
    };
    let mut n = 1;
    while round(n) < 0.005 {
        n *= 2;
    }
    let least = (0..15).map(|_| round(n)).fold(f64::INFINITY, f64::min);
    least * 1e9 / n as f64
}

fn main() {
    let arguments = std::env::args().skip(1);
    let arguments: Vec<String> = arguments.filter(|a| a != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["list"] => OPERATIONS.iter().for_each(|(name, _)| println!("{name}")),
        ["count", name, n] => {
            milieu::context::fix_keys();
            let operation = OPERATIONS.iter().find(|(known, _)| known == name);
            let (_, make) =
                operation.unwrap_or_else(|| panic!("no operation `{name}`; see `list`"));
            make()(n.parse().expect("a number of executions"));
        }
        ["time", names @ ..] => {
            for (name, make) in OPERATIONS {
                if names.is_empty() || names.contains(name) {
                    println!("{{\"name\":\"{name}\",\"value\":{:.2}}}", time(*make));
                }
            }
        }
        _ => println!("usage: request list | count NAME N | time [NAME…]"),
    }
}
