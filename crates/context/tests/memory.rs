//! What sessions, contexts and publications cost in memory, counted by the
//! allocator.

#[path = "support/allocations.rs"]
mod allocations;
mod support;

use allocations::{in_use, peak_since};
use milieu_context::{Context, Coordinator};
use support::*;

environment! { mod env;
    language: Text = "/sw/pi/%session%/language" { "default" = "en" };
    theme: Text = "/sw/pi/%session%/theme" { "default" = "light" };
    plain: i64 = "/plain";
}
use env::{Environment, at};

type Cx = Context<Environment>;

// Of these, tests look at the eleventh and, of a tenth of them, at the second.
const SESSIONS: usize = size(100_000, 20, 20);

/// As long as the identifiers of sessions usually are.
fn session(number: usize) -> String {
    format!("{number:032x}")
}

fn open() -> (Coordinator, Cx) {
    let coordinator = coordinator(&[]);
    let mut cx: Cx = coordinator.context().unwrap();
    cx.with(Session(&session(0)), |_| ());
    (coordinator, cx)
}

fn assign(cx: &mut Cx, sessions: impl Iterator<Item = usize>) {
    for number in sessions {
        cx.with(Session(&session(number)), |cx| {
            cx.set::<at::language>("de").unwrap();
        });
    }
}

/// Bytes more than there were; none where there are fewer.
fn more_than(before: isize) -> usize {
    usize::try_from(in_use() - before).unwrap_or(0)
}

#[test]
fn sessions_cost_what_they_assign_and_give_it_back() {
    let (_coordinator, mut cx) = open();
    let empty = in_use();
    for number in 0..SESSIONS {
        cx.with(Session(&session(number)), |cx| {
            assert_eq!(cx.language, "en")
        });
    }
    assert!(more_than(empty) < 4096, "entering costs nothing lasting");

    assign(&mut cx, 0..SESSIONS);
    let full = more_than(empty);
    println!("{} bytes a session with one value", full / SESSIONS);
    assert!(full / SESSIONS < 400);

    // Nine in ten are forgotten, and their memory with them.
    for number in (0..SESSIONS).filter(|number| number % 10 != 0) {
        cx.forget(Session(&session(number)));
    }
    println!("{} bytes left of {full}, for a tenth", more_than(empty));
    assert!(more_than(empty) < full / 4);
    cx.with(Session(&session(10)), |cx| assert_eq!(cx.language, "de"));
    cx.with(Session(&session(11)), |cx| assert_eq!(cx.language, "en"));

    for number in (0..SESSIONS).step_by(10) {
        cx.forget(Session(&session(number)));
    }
    println!("{} bytes left in the end", more_than(empty));
    assert!(more_than(empty) < 4096);
}

#[test]
fn a_context_costs_the_same_whatever_there_is() {
    let (_coordinator, mut cx) = open();
    let each = |cx: &Cx| {
        let before = in_use();
        let forks: Vec<Cx> = (0..64).map(|_| cx.fork()).collect();
        more_than(before) / forks.len()
    };
    let empty = each(&cx);
    assign(&mut cx, 0..SESSIONS / 10);
    let full = each(&cx);
    println!(
        "{full} bytes a context, of which {} itself",
        size_of::<Cx>()
    );
    assert_eq!(full, empty);
    assert!(full < 8192);
}

#[test]
fn what_is_dropped_is_given_back() {
    let (coordinator, mut cx) = open();
    let mut cx = cx.enter((Session("anna"), Tenant("acme")));
    let rounds = size(1000, 3, 2);
    let mut round = || {
        let captured = cx.capture();
        let mut fork = cx.fork();
        let mut fork = fork.enter(captured);
        fork.activate(A("1")).unwrap();
        fork.set::<at::plain>(1).unwrap();
        fork.deactivate::<A>().unwrap();
        drop(coordinator.on_activation::<A>(|_| ()));
        drop(coordinator.require_lock());
        cx.sync();
    };
    round();
    let before = in_use();
    (0..rounds).for_each(|_| round());
    assert!(more_than(before) < 1024, "{} bytes more", more_than(before));
}

#[test]
fn a_context_that_sleeps_holds_one_snapshot_and_wakes_up_right() {
    let (coordinator, mut cx) = open();
    let mut sleeper: Cx = coordinator.context().unwrap();
    let publications = match (cfg!(miri), cfg!(debug_assertions)) {
        (true, _) => size(0, 100, 50),
        (_, true) => 200_000,
        _ => 10_000_000,
    };
    let before = in_use();
    peak_since();
    for number in 0..publications {
        match number % 16 {
            0 => cx.set::<at::plain>(number).unwrap(),
            n if n % 2 == 0 => cx.deactivate::<A>().unwrap(),
            _ => cx.activate(A(one_or_two(number))).unwrap(),
        }
    }
    let peak = peak_since() - before;
    println!("{peak} bytes at most during {publications} publications");
    assert!(peak < 64 * 1024);
    assert_eq!((sleeper.plain, sleeper.layers().len()), (0, 0));
    sleeper.sync();
    assert_eq!(sleeper.plain, (publications - 1) / 16 * 16);
    assert_eq!((sleeper.plain, sleeper.layers()), (cx.plain, cx.layers()));
    assert!(!sleeper.has_news());
    // What the goal `context/sleeping-bytes` reads.
    println!("{{\"name\":\"sleeping-bytes-{publications}\",\"value\":{peak}}}");
}

/// The value of a layer that is another one now and then.
fn one_or_two(number: i64) -> &'static str {
    if number % 3 == 0 { "2" } else { "1" }
}

#[test]
fn a_long_hold_costs_what_differs_in_the_end() {
    let (coordinator, mut cx) = open();
    let mut other: Cx = coordinator.context().unwrap();
    cx.set::<at::plain>(0).unwrap();
    other.sync();
    let publications = size(100_000, 200, 40);
    let before = in_use();
    let held = coordinator.require_lock();
    for number in 1..=publications {
        cx.set::<at::plain>(number).unwrap();
        cx.activate(A(one_or_two(number))).unwrap();
        other.deactivate::<A>().unwrap();
    }
    println!("{} bytes more during a hold", more_than(before));
    assert!(more_than(before) < 64 * 1024);
    drop(held);
    for cx in [&mut cx, &mut other] {
        cx.sync();
        assert_eq!((cx.plain, cx.layers().len()), (publications, 0));
    }
    assert!(more_than(before) < 64 * 1024);
}

#[test]
fn a_snapshot_is_given_back_when_its_last_reader_has_moved_on() {
    let (coordinator, mut cx) = open();
    let empty = in_use();
    assign(&mut cx, 0..SESSIONS / 10);
    let full = more_than(empty);
    let mut sleeper: Cx = coordinator.context().unwrap();
    for number in 0..SESSIONS / 10 {
        cx.forget(Session(&session(number)));
    }
    assert!(more_than(empty) > full / 2, "the sleeper still reads it");
    sleeper.with(Session(&session(1)), |cx| assert_eq!(cx.language, "de"));
    sleeper.sync();
    assert!(
        more_than(empty) < full / 8 + 8192,
        "{} of {full}",
        more_than(empty)
    );
    sleeper.with(Session(&session(1)), |cx| assert_eq!(cx.language, "en"));
}

#[test]
fn arrays_cost_what_is_in_them_and_give_it_back() {
    environment! { mod lists; hosts: Array<Text> = "/hosts/#"; }
    let coordinator = coordinator(&[]);
    let mut cx: Context<lists::Environment> = coordinator.context().unwrap();
    let mut peer: Context<lists::Environment> = coordinator.context().unwrap();
    let count = size(200, 20, 6);
    let texts: Vec<String> = (0..count).map(|number| format!("{number:032x}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut round = |texts: &[&str]| {
        cx.set::<lists::at::hosts>(texts).unwrap();
        peer.sync();
        assert_eq!(peer.hosts, *texts);
        cx.unset::<lists::at::hosts>();
        peer.sync();
    };
    round(&texts);
    let before = in_use();
    for _ in 0..size(10, 10, 1) {
        round(&texts);
        round(&texts[..3]);
    }
    assert!(more_than(before) < 4096, "{} bytes more", more_than(before));
    cx.set::<lists::at::hosts>(&texts).unwrap();
    let each = more_than(before) / texts.len();
    println!("{each} bytes an element");
    assert!(each < 512);
    for index in 0..texts.len() {
        let level = milieu_keys::rules::array_level(index);
        coordinator
            .assign(&format!("/hosts/{level}"), "x", None)
            .unwrap();
    }
    cx.sync();
    assert_eq!(*cx.hosts[texts.len() - 1], *"x");
    assert!(more_than(before) / texts.len() < each);
}

#[test]
fn a_layer_that_goes_to_and_fro_allocates_nothing() {
    let (coordinator, mut cx) = open();
    let mut peer: Cx = coordinator.context().unwrap();
    let mut turn = || {
        cx.activate(Session("anna")).unwrap();
        peer.sync();
        cx.deactivate::<Session>().unwrap();
        peer.sync();
    };
    turn();
    let before = in_use();
    peak_since();
    (0..3).for_each(|_| turn());
    assert_eq!((in_use(), peak_since()), (before, before));
}
