//! `docs/layers.md` has the truth table of enter × activate × synchronize on
//! one layer; these are its rows, one test each, in its order.

mod support;

use std::sync::{Arc, Mutex};

use milieu_context::{Context, Coordinator, Registration};
use support::*;

environment! { mod env; v: i32 = "/v/%a%"; }
use env::Environment;

struct Table {
    cx: Context<Environment>,
    peer: Context<Environment>,
    actions: Arc<Mutex<Vec<String>>>,
    _registrations: [Registration; 2],
}

fn table() -> Table {
    let coordinator: Coordinator = coordinator(&[("/v/1", "1"), ("/v/2", "2"), ("/v/9", "9")]);
    let actions = Arc::new(Mutex::new(Vec::new()));
    let (on, off) = (actions.clone(), actions.clone());
    let _registrations = [
        coordinator.on_activation::<A>(move |a| on.lock().unwrap().push(format!("+{}", a.value()))),
        coordinator.on_deactivation::<A>(move |_| off.lock().unwrap().push("-".into())),
    ];
    Table {
        cx: coordinator.context().unwrap(),
        peer: coordinator.context().unwrap(),
        actions,
        _registrations,
    }
}

impl Table {
    fn ran(&self) -> Vec<String> {
        std::mem::take(&mut self.actions.lock().unwrap())
    }
    /// What everybody has outside of all blocks.
    fn everywhere(&mut self, v: i32) {
        self.cx.sync();
        self.peer.sync();
        assert_eq!((self.cx.v, self.peer.v), (v, v));
    }
}

#[test]
fn row_1_activate() {
    let mut t = table();
    t.cx.activate(A("1")).unwrap();
    assert_eq!((t.cx.v, t.peer.v), (1, 0));
    assert_eq!(t.ran(), ["+1"]);
    t.everywhere(1);
}

#[test]
fn row_2_activate_again_with_the_same_value() {
    let mut t = table();
    t.cx.activate(A("1")).unwrap();
    t.cx.activate(A("1")).unwrap();
    t.peer.activate(A("1")).unwrap();
    assert_eq!(t.ran(), ["+1"]);
    t.everywhere(1);
}

#[test]
fn row_3_activate_again_with_another_value() {
    let mut t = table();
    t.cx.activate(A("1")).unwrap();
    t.cx.activate(A("2")).unwrap();
    assert_eq!(t.ran(), ["+1", "+2"]);
    t.everywhere(2);
}

#[test]
fn row_4_deactivate_and_again() {
    let mut t = table();
    t.cx.activate(A("1")).unwrap();
    t.peer.deactivate::<A>().unwrap();
    t.cx.deactivate::<A>().unwrap();
    assert_eq!(t.ran(), ["+1", "-"]);
    t.everywhere(0);
}

#[test]
fn row_5_activate_an_empty_value() {
    let mut t = table();
    t.cx.activate(A("1")).unwrap();
    t.cx.activate(A("")).unwrap();
    assert_eq!(t.ran(), ["+1", "-"]);
    t.everywhere(0);
}

#[test]
fn row_6_enter_runs_no_action_and_stays_here() {
    let mut t = table();
    t.cx.with(A("9"), |cx| {
        assert_eq!(cx.v, 9);
        t.peer.sync();
        assert_eq!(t.peer.v, 0);
    });
    assert_eq!(t.ran(), [""; 0]);
    t.everywhere(0);
}

#[test]
fn row_7_activate_inside_a_block_of_the_layer() {
    let mut t = table();
    t.cx.with(A("9"), |cx| {
        cx.activate(A("1")).unwrap();
        assert_eq!(cx.v, 9, "the block covers it");
        t.peer.sync();
        assert_eq!(t.peer.v, 1);
    });
    assert_eq!(t.cx.v, 1, "and uncovers it");
    assert_eq!(t.ran(), ["+1"]);
    t.everywhere(1);
}

#[test]
fn row_8_activate_inside_with_the_value_of_the_block() {
    let mut t = table();
    t.cx.with(A("9"), |cx| cx.activate(A("9")).unwrap());
    assert_eq!(t.cx.v, 9);
    assert_eq!(t.ran(), ["+9"]);
    t.everywhere(9);
}

#[test]
fn row_9_deactivate_inside_a_block_of_the_layer() {
    let mut t = table();
    t.cx.activate(A("1")).unwrap();
    t.cx.with(A("9"), |cx| {
        cx.deactivate::<A>().unwrap();
        assert_eq!(cx.v, 9);
    });
    assert_eq!(t.cx.v, 0);
    assert_eq!(t.ran(), ["+1", "-"]);
    t.everywhere(0);
}

#[test]
fn row_10_synchronize_inside_a_block() {
    let mut t = table();
    t.cx.with(A("9"), |cx| {
        t.peer.activate(A("1")).unwrap();
        cx.sync();
        assert_eq!(cx.v, 9);
    });
    assert_eq!(t.cx.v, 1, "seen by the synchronization inside");
    assert_eq!(t.ran(), ["+1"]);
}

#[test]
fn row_11_no_synchronization_inside_a_block() {
    let mut t = table();
    t.cx.with(A("9"), |_| t.peer.activate(A("1")).unwrap());
    assert_eq!(t.cx.v, 0, "not seen yet");
    t.everywhere(1);
}

#[test]
fn row_12_without_and_activate() {
    let mut t = table();
    t.cx.activate(A("1")).unwrap();
    t.cx.without::<A, _>(|cx| {
        assert_eq!(cx.v, 0);
        cx.activate(A("2")).unwrap();
        assert_eq!(cx.v, 0);
    });
    assert_eq!(t.cx.v, 2);
    assert_eq!(t.ran(), ["+1", "+2"]);
    t.everywhere(2);
}

#[test]
fn row_13_nested_blocks_of_the_layer_and_activate() {
    let mut t = table();
    t.cx.with(A("9"), |cx| {
        cx.with(A("2"), |cx| {
            cx.activate(A("1")).unwrap();
            assert_eq!(cx.v, 2);
        });
        assert_eq!(cx.v, 9);
    });
    assert_eq!(t.cx.v, 1);
    t.everywhere(1);
}

#[test]
fn row_14_a_later_block_sees_no_more_than_the_last_synchronization() {
    let mut t = table();
    t.peer.set::<env::at::v>(5).unwrap();
    t.peer.activate(A("1")).unwrap();
    t.peer.set::<env::at::v>(7).unwrap();
    t.cx.with(A("1"), |cx| assert_eq!(cx.v, 1));
    assert_eq!(t.cx.v, 0);
    t.cx.sync();
    assert_eq!(t.cx.v, 7);
    t.cx.without::<A, _>(|cx| assert_eq!(cx.v, 5));
}
