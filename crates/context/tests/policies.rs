//! Policies: what the compiler lets a context do.

mod support;

use milieu_context::{
    Context, ContextOptions, NoContext, Policy, ReadOnly, SingleThread, Writable,
};
use support::*;

environment! { mod env;
    v: i32 = "/v/%a%";
    plain: i32 = "/plain" { "default" = "4" };
}
use env::{Environment, at};

fn open<P: Policy>() -> Context<Environment, P> {
    coordinator(&[("/v/1", "1"), ("/plain", "5")])
        .context_with(ContextOptions::new())
        .unwrap()
}

#[test]
fn read_only_contexts_still_switch_and_synchronize() {
    let mut cx = open::<ReadOnly>();
    assert_eq!(cx.with(A("1"), |cx| cx.v), 1);
    let mut peer = cx.coordinator().context::<Environment>().unwrap();
    peer.set::<at::plain>(6).unwrap();
    cx.sync();
    assert_eq!(cx.plain, 6);
}

#[test]
fn a_single_thread_sees_only_itself() {
    let mut cx = open::<SingleThread>();
    let mut peer = cx.coordinator().context::<Environment>().unwrap();
    peer.activate(A("1")).unwrap();
    assert!(!cx.has_news());
    assert!(
        !cx.wait(None),
        "it never has news, so it does not wait for any"
    );
    cx.sync();
    assert_eq!(cx.v, 0);
    cx.set::<at::plain>(7).unwrap();
    cx.activate(A("1")).unwrap();
    assert_eq!((cx.v, cx.plain), (1, 7));
    peer.sync();
    assert_eq!(
        peer.plain, 7,
        "the key set is the coordinator's all the same"
    );
}

#[test]
fn without_context_nothing_switches() {
    let mut cx = open::<NoContext>();
    cx.activate(A("1")).unwrap();
    cx.deactivate::<A>().unwrap();
    let value = cx.with(A("1"), |cx| {
        cx.without::<A, _>(|cx| cx.sync());
        cx.part(|e| &e.v).with(A("1"), |part| **part)
    });
    assert_eq!((value, cx.plain), (0, 5));
    assert!(cx.layers().is_empty());
}

#[test]
fn policies_combine() {
    let mut cx = open::<ReadOnly<SingleThread>>();
    assert_eq!(cx.with(A("1"), |cx| cx.v), 1);
    let mut cx = open::<ReadOnly<NoContext>>();
    assert_eq!(cx.with(A("1"), |cx| cx.v), 0);
}

/// A policy of the user's own: layers, no synchronization, and assignment.
struct Own;
impl Policy for Own {
    const SHARED: bool = false;
}
impl Writable for Own {}

#[test]
fn a_policy_can_be_written_by_hand() {
    let mut cx = open::<Own>();
    cx.set::<at::plain>(9).unwrap();
    assert_eq!(cx.with(A("1"), |cx| (cx.v, cx.plain)), (1, 9));
}

#[test]
fn a_policy_takes_no_room() {
    assert_eq!(
        size_of::<Context<Environment, NoContext>>(),
        size_of::<Context<Environment>>()
    );
}
