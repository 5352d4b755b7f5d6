//! What a server pays for the context of a request.
//!
//! It answers as `xtask/measure` says.

use std::{hint::black_box, process::ExitCode};

use measure::{Loop, Operation, alone, answer_fixed};
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

const OPERATIONS: &[Operation] = &[
    alone("loop", || {
        let (_, contexts) = contexts();
        Box::new(move |n| {
            for _ in 0..n {
                black_box(&contexts);
            }
        })
    }),
    alone("request", request),
    alone("request-news", request_news),
];

fn main() -> ExitCode {
    answer_fixed(OPERATIONS, milieu::context::fix_keys)
}
