//! A layer that is switched to and fro: going back leads to what evaluating would
//! lead to.

mod support;

use milieu_context::{Context, Coordinator, Named};
use support::*;

environment! { mod env;
    hello: Text = "/%session%/%language%/hello" { "default" = "Hello" };
    width: u16 = "/%session%/width" { "default" = "80" };
    refresh: u32 = "/%security%/refresh" { "default" = "60" };
}
use env::{Environment, at};

type Cx = Context<Environment>;

const KEYS: [(&str, &str); 4] = [
    ("/anna/%/hello", "Hallo"),
    ("/anna/it/hello", "Ciao"),
    ("/anna/width", "100"),
    ("/a session of a long name/width", "40"),
];

/// Who switches, and who follows.
fn open() -> (Coordinator, Cx, Cx) {
    let coordinator = coordinator(&KEYS);
    let (cx, mut peer) = (
        coordinator.context::<Environment>().unwrap(),
        coordinator.context::<Environment>().unwrap(),
    );
    peer.sync();
    (coordinator, cx, peer)
}

fn texts(cx: &Cx) -> (String, u16, String) {
    (cx.hello.to_string(), cx.width, cx.name::<at::hello>())
}

/// Switches the session, and says what both see then.
fn switch(cx: &mut Cx, peer: &mut Cx, session: &str) -> (String, u16, String) {
    cx.activate(Named("session", session)).unwrap();
    peer.sync();
    assert_eq!(texts(cx), texts(peer));
    assert_eq!(cx.layer::<Session>(), peer.layer::<Session>());
    assert_eq!(cx.layer::<Session>().unwrap_or_default(), session);
    texts(peer)
}

fn anna() -> (String, u16, String) {
    ("Hallo".into(), 100, "/anna/%/hello".into())
}

fn nobody() -> (String, u16, String) {
    ("Hello".into(), 80, "/%/%/hello".into())
}

#[test]
fn each_state_comes_back_as_it_was() {
    let (_, mut cx, mut peer) = open();
    for _ in 0..4 {
        assert_eq!(switch(&mut cx, &mut peer, "anna"), anna());
        assert!(!peer.is_default::<at::width>());
        assert_eq!(switch(&mut cx, &mut peer, ""), nobody());
        assert!(peer.is_default::<at::width>());
    }
    // A third one, and from that one back.
    assert_eq!(switch(&mut cx, &mut peer, "anna"), anna());
    assert_eq!(switch(&mut cx, &mut peer, "otto").2, "/otto/%/hello");
    assert_eq!(switch(&mut cx, &mut peer, "anna"), anna());
    assert_eq!(switch(&mut cx, &mut peer, ""), nobody());
}

#[test]
fn values_too_long_to_be_noted_come_back_as_well() {
    let (_, mut cx, mut peer) = open();
    for _ in 0..3 {
        let long = switch(&mut cx, &mut peer, "a session of a long name");
        assert_eq!(long.1, 40);
        assert_eq!(switch(&mut cx, &mut peer, ""), nobody());
    }
}

#[test]
fn a_key_assigned_meanwhile_is_seen() {
    let (coordinator, mut cx, mut peer) = open();
    switch(&mut cx, &mut peer, "anna");
    switch(&mut cx, &mut peer, "");
    coordinator.assign("/anna/width", "101", None).unwrap();
    assert_eq!(switch(&mut cx, &mut peer, "anna").1, 101);
    switch(&mut cx, &mut peer, "");
    // By the one who switches; the other learns of it together with the switch.
    cx.set::<at::width>(81).unwrap();
    assert_eq!(switch(&mut cx, &mut peer, "anna").1, 101);
    cx.set::<at::width>(102).unwrap();
    assert_eq!(switch(&mut cx, &mut peer, "").1, 81);
    assert_eq!(switch(&mut cx, &mut peer, "anna").1, 102);
}

#[test]
fn a_key_assigned_after_going_back_reaches_the_value_that_is_in_force() {
    let (coordinator, mut cx, mut peer) = open();
    for _ in 0..2 {
        switch(&mut cx, &mut peer, "anna");
        switch(&mut cx, &mut peer, "");
    }
    switch(&mut cx, &mut peer, "anna");
    coordinator.assign("/anna/width", "101", None).unwrap();
    coordinator.assign("/%/width", "81", None).unwrap();
    peer.sync();
    assert_eq!(peer.width, 101);
}

#[test]
fn another_layer_that_the_values_depend_on_counts() {
    let (_, mut cx, mut peer) = open();
    switch(&mut cx, &mut peer, "anna");
    switch(&mut cx, &mut peer, "");
    cx.activate(Language("it")).unwrap();
    assert_eq!(switch(&mut cx, &mut peer, "anna").0, "Ciao");
    cx.deactivate::<Language>().unwrap();
    assert_eq!(switch(&mut cx, &mut peer, "").2, "/%/%/hello");
    assert_eq!(switch(&mut cx, &mut peer, "anna"), anna());
}

#[test]
fn a_frame_in_which_it_happens_is_left_as_ever() {
    let (_, mut cx, mut peer) = open();
    switch(&mut cx, &mut peer, "anna");
    switch(&mut cx, &mut peer, "");
    {
        let mut peer = peer.enter(Language("it"));
        cx.activate(Session("anna")).unwrap();
        peer.sync();
        assert_eq!(peer.hello, "Ciao");
        cx.deactivate::<Session>().unwrap();
        peer.sync();
        assert_eq!(peer.name::<at::hello>(), "/%/it/hello");
        cx.activate(Session("anna")).unwrap();
        peer.sync();
    }
    assert_eq!(texts(&peer), anna());
    assert_eq!(switch(&mut cx, &mut peer, ""), nobody());
    // One that was entered and left meanwhile is none of it.
    peer.with(Session("anna"), |peer| assert_eq!(texts(peer), anna()));
    assert_eq!(switch(&mut cx, &mut peer, "anna"), anna());
    peer.with(Language("it"), |peer| assert_eq!(peer.hello, "Ciao"));
    assert_eq!(switch(&mut cx, &mut peer, ""), nobody());
}

#[test]
fn to_and_fro_at_once_is_where_one_was() {
    let (_, mut cx, mut peer) = open();
    for _ in 0..3 {
        cx.activate(Session("anna")).unwrap();
        cx.deactivate::<Session>().unwrap();
        assert!(peer.has_news());
        peer.sync();
        assert!(!peer.has_news());
        assert_eq!(texts(&peer), nobody());
        assert_eq!(switch(&mut cx, &mut peer, "anna"), anna());
        assert_eq!(switch(&mut cx, &mut peer, ""), nobody());
    }
}

#[test]
fn who_switches_back_what_another_one_has_switched_goes_back() {
    let (_, mut cx, mut peer) = open();
    for _ in 0..3 {
        assert_eq!(switch(&mut cx, &mut peer, "anna"), anna());
        assert_eq!(switch(&mut peer, &mut cx, ""), nobody());
        // Both at once; the last one wins.
        cx.activate(Session("anna")).unwrap();
        peer.deactivate::<Session>().unwrap();
        cx.sync();
        assert_eq!((texts(&cx), texts(&peer)), (nobody(), nobody()));
    }
}

#[test]
fn what_is_switched_while_the_key_set_is_held_is_seen_at_its_release() {
    let (coordinator, mut cx, mut peer) = open();
    switch(&mut cx, &mut peer, "anna");
    switch(&mut cx, &mut peer, "");
    let held = coordinator.require_lock();
    for _ in 0..2 {
        cx.activate(Session("anna")).unwrap();
        peer.sync();
        assert_eq!((texts(&cx), texts(&peer)), (anna(), nobody()));
        cx.deactivate::<Session>().unwrap();
        assert_eq!(texts(&cx), nobody());
    }
    cx.activate(Session("anna")).unwrap();
    drop(held);
    peer.sync();
    cx.sync();
    assert_eq!((texts(&cx), texts(&peer)), (anna(), anna()));
    assert_eq!(switch(&mut cx, &mut peer, ""), nobody());
    assert_eq!(switch(&mut cx, &mut peer, "anna"), anna());
}

#[test]
fn a_fork_goes_its_own_ways() {
    let (_, mut cx, mut peer) = open();
    switch(&mut cx, &mut peer, "anna");
    let mut fork = peer.fork();
    switch(&mut cx, &mut peer, "");
    drop(peer);
    fork.sync();
    assert_eq!(texts(&fork), nobody());
    assert_eq!(switch(&mut cx, &mut fork, "anna"), anna());
}

/// Behind the back of the one who switches, nothing is where it believes it to be.
#[test]
fn what_changes_nothing_is_not_published() {
    let (_, mut cx, mut peer) = open();
    switch(&mut cx, &mut peer, "anna");
    switch(&mut cx, &mut peer, "");
    let held = cx.coordinator().require_lock();
    peer.activate(Session("anna")).unwrap();
    cx.deactivate::<Session>().unwrap();
    drop(held);
    peer.sync();
    assert_eq!(texts(&peer), nobody());
    cx.sync();
    cx.deactivate::<Session>().unwrap();
    assert!(!peer.has_news());
    assert_eq!(switch(&mut cx, &mut peer, "anna"), anna());
}
