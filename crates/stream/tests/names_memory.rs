//! What a name costs beyond its text.
//!
//! The allocator of this test counts the bytes that each thread asks for and has
//! not given back.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use milieu_stream::names::{LayerValues, Limits, Publisher, Query, Rights, Service, Tree};
use milieu_transfer::Time;

struct Counting;

thread_local! {
    // Constant and without a destructor, so that reaching it never allocates.
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

fn count(change: impl FnOnce(isize) -> isize) {
    LIVE.with(|live| live.set(change(live.get())));
}

// SAFETY: every call is passed on to the system's allocator unchanged, so all
// that it promises holds; the counter is not part of the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(|live| live + layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(|live| live - layout.size() as isize);
        // SAFETY: the caller keeps the contract of `dealloc`, and the pointer is
        // one that `System` gave.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most that a name may cost beyond its text.
const BOUND: usize = 200;
/// The most that a subscription to one name may cost.
const BOUND_SUBSCRIPTION: isize = 1000;

/// Less than nothing, where a thread has given back what another one asked for.
fn live() -> isize {
    LIVE.with(Cell::get)
}

/// What a tree costs that has these names, for each of them and beyond their text.
fn cost(count: usize, name: &dyn Fn(usize) -> String, put: &dyn Fn(&mut Tree, &str)) -> f64 {
    let before = live();
    let mut tree = Tree::new(Limits::default());
    let mut text: isize = 0;
    for n in 0..count {
        let name = name(n);
        text += name.len() as isize;
        put(&mut tree, &name);
        // As it is in use: what happens is told soon.
        if n % 100 == 0 {
            tree.step(Time::MIN);
        }
    }
    tree.step(Time::MIN);
    assert_eq!(tree.len(), count);
    let cost = (live() - before - text) as f64 / count as f64;
    let subscribed = live();
    follow(&mut tree, count / 10, name);
    let each = (live() - subscribed) / (count / 10) as isize;
    assert!(each <= BOUND_SUBSCRIPTION, "{each} bytes a subscription");
    cost_of_coming_and_going(&mut tree, count, name, put);
    drop(tree);
    assert_eq!(live(), before);
    cost
}

fn follow(tree: &mut Tree, count: usize, name: &dyn Fn(usize) -> String) {
    let (layers, rights) = (Arc::new(LayerValues::new()), Arc::new(Rights::all()));
    for n in 0..count {
        let query = Query::parse(&name(n)).expect("a name is a query");
        let subscribed = tree.subscribe(query, Arc::clone(&layers), Arc::clone(&rights));
        subscribed.expect("there is room");
    }
    let told = tree.step(Time::MIN).resolutions;
    assert_eq!(told.len(), count);
}

/// Whoever puts and removes in turns does not make the tree grow.
fn cost_of_coming_and_going(
    tree: &mut Tree,
    count: usize,
    name: &dyn Fn(usize) -> String,
    put: &dyn Fn(&mut Tree, &str),
) {
    let full = live();
    for n in 0..3000 {
        let name = name(count + n);
        put(tree, &name);
        tree.step(Time::MIN);
        assert!(tree.remove(&name).is_some());
        tree.step(Time::MIN);
    }
    assert!(live() <= full, "{} bytes more", live() - full);
}

#[test]
fn a_name_costs_at_most_200_bytes_beyond_its_text() {
    let stream = |tree: &mut Tree, name: &str| {
        tree.put(name, Publisher(7)).expect("there is room");
    };
    let service = |tree: &mut Tree, name: &str| {
        let service = Service::new("", [], Time::MAX).expect("a service");
        tree.put(name, service).expect("there is room");
    };
    let by_room = |n: usize| {
        format!(
            "/campus/house-{}/room-{}/sensor-{}",
            n / 1000,
            n / 10,
            n % 10
        )
    };
    let by_kind = |n: usize| format!("/hosts/{n:06}/temperature");
    let flat = |n: usize| format!("/devices/{n:06}");
    let mut most: f64 = 0.0;
    let measured = [
        ("by room", cost(100_000, &by_room, &stream)),
        ("flat", cost(100_000, &flat, &stream)),
        ("a level of its own each", cost(100_000, &by_kind, &stream)),
        // The table has just doubled.
        ("the same, 58000", cost(58_000, &by_kind, &stream)),
        ("services", cost(100_000, &flat, &service)),
    ];
    for (how, cost) in measured {
        println!("{how}: {cost:.1} bytes a name");
        assert!(cost <= BOUND as f64, "{how}: {cost} bytes a name");
        most = most.max(cost);
    }
    // What the goal `stream/name-bytes` reads.
    println!("{{\"name\":\"name-bytes\",\"value\":{most:.1}}}");
}
