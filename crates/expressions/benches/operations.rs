//! Expressions, each beside a tree of closures that was written by hand and
//! beside a native closure.
//!
//! It answers as `xtask/measure` says.

use std::{hint::black_box, process::ExitCode, sync::Arc};

use measure::{Loop, Operation, alone, answer, paired};
use milieu_expressions::{Compiled, Expression};
use milieu_keys::Name;
use milieu_transfer::{Body, Event, Header, Origin, Row, Selection, Stream, Time};
use serde::{Deserialize, Serialize};

/// Five numbers, of which the expressions read one to four.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Reading {
    mean: f64,
    variance: f64,
    value: f64,
    count: i64,
    battery: f64,
}

const READING: Reading = Reading {
    mean: 20.0,
    variance: 30.0,
    value: 33.5,
    count: 100,
    battery: 0.8,
};

const LARGER: &str =
    "value > 32.0 && (value - mean) * (value - mean) > 4.0 * variance && count >= 10";

fn event<T: Body>(body: T) -> Event {
    let name = Name::parse("/weather/temperature").expect("a name");
    let origin = Origin("station".into());
    let header = Header {
        stream: Arc::new(Stream {
            name,
            origin,
            incarnation: 1,
        }),
        time: Time::from_seconds(1),
        sequence: 1,
        quality: None,
    };
    Event::new(header, body)
}

/// Expressions that share one reading, ready to run on an event.
fn ready(texts: &[&str]) -> (Vec<Compiled>, Selection, Row) {
    let mut selection = Selection::default();
    let parsed = texts
        .iter()
        .map(|text| Expression::parse(text).expect(text));
    let mut compiled: Vec<Compiled> = parsed.map(|it| it.compile(&mut selection)).collect();
    let mut row = Row::default();
    event(READING).read(&selection, &mut row);
    for expression in &mut compiled {
        expression.bool(&row).expect("a truth value");
    }
    (compiled, selection, row)
}

fn read<T: Body>(paths: &[&str], body: T) -> Loop {
    let mut selection = Selection::default();
    for path in paths {
        selection.add(path).expect("a path");
    }
    let (event, mut row) = (event(body), Row::default());
    Box::new(move |n| {
        for _ in 0..n {
            black_box(&event).read(&selection, &mut row);
            black_box(&mut row);
        }
    })
}

fn expression(text: &'static str) -> Loop {
    let (mut compiled, _, row) = ready(&[text]);
    let mut compiled = compiled.remove(0);
    Box::new(move |n| {
        for _ in 0..n {
            black_box(compiled.bool(black_box(&row)).is_ok_and(|it| it));
        }
    })
}

/// What a slot of a tree written by hand holds.
#[derive(Clone, Copy)]
enum Slot {
    Double(f64),
    Int(i64),
}

type Node<T> = Box<dyn Fn(&[Slot]) -> T>;

fn double(slot: usize) -> Node<f64> {
    Box::new(move |slots| match slots[slot] {
        Slot::Double(value) => value,
        Slot::Int(_) => f64::NAN,
    })
}

fn int(slot: usize) -> Node<i64> {
    Box::new(move |slots| match slots[slot] {
        Slot::Int(value) => value,
        Slot::Double(_) => 0,
    })
}

fn constant<T: Copy + 'static>(value: T) -> Node<T> {
    Box::new(move |_| value)
}

macro_rules! binary {
    ($a:expr, $sign:tt, $b:expr) => {{
        let (a, b) = ($a, $b);
        Box::new(move |slots: &[Slot]| a(slots) $sign b(slots)) as Node<_>
    }};
}

fn tree(root: Node<bool>) -> Loop {
    let Reading {
        mean,
        variance,
        value,
        count,
        ..
    } = READING;
    let slots = vec![
        Slot::Double(value),
        Slot::Double(mean),
        Slot::Double(variance),
        Slot::Int(count),
    ];
    Box::new(move |n| {
        for _ in 0..n {
            black_box(root(black_box(&slots)));
        }
    })
}

fn greater_tree() -> Loop {
    tree(binary!(double(0), >, constant(32.0)))
}

fn larger_tree() -> Loop {
    let difference = || binary!(double(0), -, double(1));
    let square = binary!(difference(), *, difference());
    let far = binary!(square, >, binary!(constant(4.0), *, double(2)));
    let hot = binary!(double(0), >, constant(32.0));
    let many = binary!(int(3), >=, constant(10));
    tree(binary!(binary!(hot, &&, far), &&, many))
}

/// A closure that the compiler made of Rust.
fn native(of: fn(&Reading) -> bool) -> Loop {
    let reading = Box::new(READING);
    let of: Box<dyn Fn(&Reading) -> bool> = Box::new(of);
    Box::new(move |n| {
        for _ in 0..n {
            black_box(of(black_box(&reading)));
        }
    })
}

/// Filters one after the other, with counters, as a chain of operators has them.
fn chain(texts: &'static [&'static str]) -> Loop {
    let (mut filters, selection, mut row) = ready(texts);
    let event = event(READING);
    let mut counters = vec![(0_u64, 0_u64); texts.len()];
    Box::new(move |n| {
        for _ in 0..n {
            black_box(&event).read(&selection, &mut row);
            for (filter, (received, sent)) in filters.iter_mut().zip(&mut counters) {
                *received += 1;
                if !filter.bool(&row).is_ok_and(|it| it) {
                    break;
                }
                *sent += 1;
            }
            black_box(&mut counters);
        }
    })
}

#[rustfmt::skip]
fn operations() -> Vec<Operation> {
    vec![
        alone("loop", || Box::new(|n| (0..n).for_each(|i| { black_box(i); }))),
        alone("read-number", || read(&["value"], 33.5)),
        alone("read-one-of-five", || read(&["value"], READING)),
        alone("read-four-of-five", || read(&["value", "mean", "variance", "count"], READING)),
        paired("greater", || expression("value > 32"), greater_tree),
        alone("greater-tree", greater_tree),
        alone("greater-native", || native(|it| it.value > 32.0)),
        alone("between", || expression("value > 32 && value < 40")),
        paired("larger", || expression(LARGER), larger_tree),
        alone("larger-tree", larger_tree),
        alone("larger-native", || native(|it| it.value > 32.0 && (it.value - it.mean) * (it.value - it.mean) > 4.0 * it.variance && it.count >= 10)),
        alone("chain-5", || chain(&["value > 32", "value < 40", "value != 35.0", "value > 10", "value <= 33.5"])),
        alone("parse", || Box::new(|n| (0..n).for_each(|_| { black_box(Expression::parse(black_box(LARGER)).is_ok()); }))),
    ]
}

fn main() -> ExitCode {
    answer(&operations())
}
