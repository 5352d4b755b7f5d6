//! The operations of the naming tree, among 10,000 names.
//!
//! It answers as `xtask/measure` says.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;

use measure::{Loop, Operation, alone, answer};
use milieu_stream::names::{
    Binding, Entry, LayerValues, Limits, Publisher, Query, ResolutionId, Rights, Tree,
};
use milieu_transfer::Time;

const OPERATIONS: &[Operation] = &[
    alone("resolve-exact", || resolve_exact(&[])),
    alone("resolve-exact-among-1000", || resolve_exact(ELSEWHERE)),
    alone("publish-exact", || publish_exact(&[])),
    alone("publish-exact-among-1000", || publish_exact(ELSEWHERE)),
    alone("publish-exact-among-1000-anywhere", || {
        publish_exact(ANYWHERE)
    }),
    alone("publish-new", || publish_new(1)),
    alone("publish-new-among-10000", || publish_new(10_000)),
    alone("resolve-wildcard", resolve_wildcard),
    alone("switch-layer", switch_layer),
    alone("keep-set-of-1000", keep_set),
    alone("match-worst", match_worst),
];

/// Wildcards that mean no name of these branches.
const ELSEWHERE: &[&str] = &["/zones/{}/**", "/campus/floor-{}/*/temperature"];
/// Wildcards that could mean names of any branch, and do not.
const ANYWHERE: &[&str] = &["/**/alarm-{}", "/*/garage-{}/**"];

fn name(number: u64) -> String {
    format!(
        "/campus/house-{}/room-{}/sensor-{}",
        number / 1000,
        number / 10,
        number % 10
    )
}

fn query(text: &str) -> Query {
    Query::parse(text).expect("a query")
}

fn subscribe(tree: &mut Tree, text: &str, layers: &[(&str, &str)]) -> ResolutionId {
    let layers = Arc::new(layers.iter().copied().collect());
    let subscribed = tree.subscribe(query(text), layers, Arc::new(Rights::all()));
    subscribed.expect("there is room")
}

/// A tree of 10,000 streams; a thousand watches and subscriptions to queries of
/// these forms, none of which means one of them.
fn tree(wildcards: &[&str]) -> Tree {
    let mut tree = Tree::new(Limits::default());
    for number in 0..10_000 {
        tree.put(&name(number), Publisher(number))
            .expect("there is room");
    }
    for (number, form) in (0..1000).zip(wildcards.iter().cycle()) {
        let text = form.replace("{}", &number.to_string());
        if number % 4 < 2 {
            subscribe(&mut tree, &text, &[]);
        } else {
            let watched = tree.watch(query(&text), Arc::new(Rights::all()));
            watched.expect("there is room");
        }
    }
    tree.step(Time::MIN);
    tree
}

/// Looks a name up.
fn resolve_exact(wildcards: &[&str]) -> Loop {
    let tree = tree(wildcards);
    let query = query(&name(5_000));
    let (layers, rights) = (LayerValues::new(), Rights::all());
    Box::new(move |n| {
        for _ in 0..n {
            black_box(tree.resolve(black_box(&query), &layers, &rights));
        }
    })
}

/// Another publisher comes to a name that somebody follows, who is told.
fn publish_exact(wildcards: &[&str]) -> Loop {
    let mut tree = tree(wildcards);
    let name = name(5_000);
    subscribe(&mut tree, &name, &[]);
    tree.step(Time::MIN);
    Box::new(move |n| {
        for i in 0..n {
            tree.put(&name, Publisher(20_000 + i)).expect("a name");
            let told = tree.step(Time::MIN).resolutions;
            assert_eq!(told.len(), 1);
        }
    })
}

/// A stream that did not exist before comes and goes, among subscriptions to
/// other names.
fn publish_new(subscriptions: u64) -> Loop {
    let mut tree = tree(&[]);
    for number in 0..subscriptions {
        subscribe(&mut tree, &name(number), &[]);
    }
    tree.step(Time::MIN);
    Box::new(move |n| {
        for _ in 0..n {
            tree.put("/campus/house-5/room-500/new", Publisher(1))
                .expect("a name");
            black_box(tree.step(Time::MIN));
            tree.remove("/campus/house-5/room-500/new");
            black_box(tree.step(Time::MIN));
        }
    })
}

/// One of ten sensors in each of a hundred rooms.
fn resolve_wildcard() -> Loop {
    let tree = tree(&[]);
    let query = query("/campus/house-5/*/sensor-3");
    let (layers, rights) = (LayerValues::new(), Rights::all());
    Box::new(move |n| {
        for _ in 0..n {
            assert_eq!(tree.resolve(&query, &layers, &rights).len(), 100);
        }
    })
}

/// Somebody goes from room to room, and gets ten sensors each time.
fn switch_layer() -> Loop {
    let mut tree = tree(&[]);
    let follow = Binding::new([query("/campus/house-5/%room%/*")]).expect("a binding");
    tree.put("/here", follow).expect("no circle");
    let id = subscribe(&mut tree, "/here", &[]);
    let rooms =
        ["room-500", "room-501"].map(|room| Arc::new([("room", room)].into_iter().collect()));
    Box::new(move |n| {
        for i in 0..n {
            tree.set_layers(id, Arc::clone(&rooms[usize::from(i % 2 == 1)]));
            let told = tree.step(Time::MIN).resolutions;
            assert_eq!(told[0].1.joined.len(), 10);
        }
    })
}

/// An operator keeps a set of a thousand names, and one more comes and goes.
fn keep_set() -> Loop {
    let mut tree = tree(&[]);
    let targets: Vec<Query> = (0..1001).map(|number| query(&name(number))).collect();
    let sets = [1000, 1001].map(|count| {
        let binding = Binding::new(targets[..count].iter().cloned()).expect("a binding");
        Entry::from(binding)
    });
    tree.put("/labs/005/devices", sets[0].clone())
        .expect("no circle");
    subscribe(&mut tree, "/labs/005/devices", &[]);
    tree.step(Time::MIN);
    Box::new(move |n| {
        for i in 0..n {
            let set = &sets[usize::from(i % 2 == 0)];
            tree.put("/labs/005/devices", set.clone())
                .expect("no circle");
            assert_eq!(tree.step(Time::MIN).resolutions.len(), 1);
        }
    })
}

/// A name of 63 levels and a query that a matcher could try in many ways.
fn match_worst() -> Loop {
    let query = query(&format!("{}/b", "/**/a".repeat(31)));
    let name = "/a".repeat(63);
    Box::new(move |n| {
        for _ in 0..n {
            assert!(!black_box(&query).matches(black_box(&name)));
        }
    })
}

fn main() -> ExitCode {
    answer(OPERATIONS)
}
