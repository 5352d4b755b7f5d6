//! What the reference implementation gets wrong, each done right here; what one
//! layer is enough to show stands in `cases/layers.txt`.

mod support;

use std::{
    borrow::Cow,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use milieu_context::{Context, SwitchError};
use support::*;

environment! { mod env;
    language: Text = "/sw/pi/%session%/language" { "default" = "en" };
    again: Text = "/sw/pi/%session%/language" { "default" = "en" };
    accuracy: i32 = "/algorithm/%battery_low%/accuracy" { "default" = "10" };
    country: Text = "/sw/%country%";
    alias: Text = "/sw/at";
}
use env::{Environment, at};

fn open() -> (
    milieu_context::Coordinator,
    Context<Environment>,
    Context<Environment>,
) {
    let coordinator = coordinator(&[
        ("/algorithm/yes/accuracy", "3"),
        ("/algorithm/2/accuracy", "2"),
    ]);
    let first = coordinator.context().unwrap();
    let second = coordinator.context().unwrap();
    (coordinator, first, second)
}

#[test]
fn a_panic_that_leaves_a_block_rolls_back() {
    let (_c, mut cx, _) = open();
    let block = catch_unwind(AssertUnwindSafe(|| {
        cx.with(BatteryLow("yes"), |_| panic!())
    }));
    assert!(block.is_err());
    assert_eq!((cx.accuracy, cx.layers().len()), (10, 0));
}

#[test]
fn a_new_context_gets_the_present_and_not_the_past() {
    let (coordinator, mut cx, _) = open();
    cx.activate(BatteryLow("yes")).unwrap();
    cx.deactivate::<BatteryLow>().unwrap();
    cx.activate(Session("anna")).unwrap();
    let late = coordinator.context::<Environment>().unwrap();
    assert_eq!(late.accuracy, 10);
    assert_eq!(
        late.layers(),
        [(Arc::from("session"), String::from("anna"))]
    );
}

#[test]
fn a_peer_on_the_default_sees_the_first_assignment() {
    let (_c, mut cx, mut peer) = open();
    assert!(peer.is_default::<at::language>());
    cx.set::<at::language>("de").unwrap();
    peer.sync();
    assert_eq!(peer.language, "de");
}

#[test]
fn two_values_on_one_key_agree() {
    let (_c, mut cx, _) = open();
    cx.set::<at::language>("de").unwrap();
    assert_eq!(cx.again, "de");
    cx.with(Country("at"), |cx| {
        cx.set::<at::country>("Wien").unwrap();
        assert_eq!(cx.alias, "Wien");
        cx.set::<at::alias>("Graz").unwrap();
        assert_eq!(cx.country, "Graz");
    });
}

#[test]
fn switching_away_and_back_writes_nothing() {
    let (coordinator, mut cx, _) = open();
    cx.with(Session("anna"), |cx| cx.with(Session("otto"), |_| ()));
    cx.activate(Session("anna")).unwrap();
    cx.deactivate::<Session>().unwrap();
    let held = coordinator.require_lock();
    assert!(
        held.entries()
            .iter()
            .all(|entry| entry.name.starts_with("/algorithm/"))
    );
}

#[test]
fn layer_values_stay_within_their_level() {
    let (coordinator, mut cx, _) = open();
    for (value, level) in [
        ("x/y", "x\\/y"),
        ("..", "\\.."),
        ("%", "\\%"),
        ("a\\", "a\\\\"),
        (".", "\\."),
        ("\n", "\n"),
    ] {
        let name = format!("/sw/pi/{level}/language");
        cx.with(Session(value), |cx| {
            assert_eq!(cx.name::<at::language>(), name);
            assert_eq!(cx.layer::<Session>().as_deref(), Some(value));
            cx.set::<at::language>("xx").unwrap();
        });
        assert_eq!(cx.language, "en", "{value:?} looked inactive");
        assert!(
            coordinator
                .require_lock()
                .entries()
                .iter()
                .any(|entry| entry.name == name)
        );
    }
}

#[test]
fn a_panicking_action_stops_neither_the_switch_nor_the_others() {
    let (coordinator, mut cx, mut peer) = open();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let _broken = coordinator.on_activation::<BatteryLow>(|_| panic!("broken action"));
    let _other = coordinator.on_activation::<BatteryLow>(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let result = catch_unwind(AssertUnwindSafe(|| cx.activate(BatteryLow("yes"))));
    let payload = result.unwrap_err();
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"broken action"));
    assert_eq!((cx.accuracy, count.load(Ordering::Relaxed)), (3, 1));
    peer.sync();
    assert_eq!(peer.accuracy, 3);
    // And everything works afterwards.
    cx.deactivate::<BatteryLow>().unwrap();
    assert_eq!(cx.accuracy, 10);
}

#[test]
fn actions_may_activate_register_and_assign() {
    let (coordinator, mut cx, mut peer) = open();
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |what: &'static str| {
        let order = order.clone();
        move || order.lock().unwrap().push(what)
    };
    let (first, second, third) = (note("battery"), note("session"), note("battery too"));
    let inner = coordinator.clone();
    let late: Mutex<Vec<milieu_context::Registration>> = Mutex::new(Vec::new());
    let _one = coordinator.on_activation::<BatteryLow>(move |activation| {
        assert_eq!(
            (activation.layer(), activation.value()),
            ("battery_low", "yes")
        );
        activation.activate(Session("anna")).unwrap();
        first();
        late.lock()
            .unwrap()
            .push(inner.on_deactivation::<BatteryLow>(|_| ()));
        inner.assign("/sw/pi/anna/language", "de", None).unwrap();
        let mut own = inner.context::<Environment>().unwrap();
        own.sync();
        assert_eq!(own.language, "de");
        own.activate(Country("at")).unwrap();
    });
    let _two = coordinator.on_activation::<Session>(move |_| second());
    let _three = coordinator.on_activation::<BatteryLow>(move |_| third());
    cx.activate(BatteryLow("yes")).unwrap();
    // The switch inside took effect at once, its action queued.
    assert_eq!(
        *order.lock().unwrap(),
        ["battery", "battery too", "session"]
    );
    peer.sync();
    assert_eq!((peer.language.as_str(), peer.accuracy), ("de", 3));
    assert_eq!(peer.layer::<Country>().as_deref(), Some("at"));
}

#[test]
fn a_cycle_of_actions_is_an_error_that_changes_nothing() {
    let (coordinator, mut cx, _) = open();
    let errors = Arc::new(Mutex::new(Vec::new()));
    let seen = errors.clone();
    let _on = coordinator.on_activation::<A>(|activation| {
        activation.deactivate::<A>().unwrap();
    });
    let _off = coordinator.on_deactivation::<A>(move |activation| {
        seen.lock().unwrap().push(activation.activate(A("2")));
    });
    cx.activate(A("1")).unwrap();
    assert_eq!(
        *errors.lock().unwrap(),
        [Err(SwitchError::ActionCycle { layer: "a".into() })]
    );
    assert_eq!(cx.layers().len(), 0);
}

#[test]
fn one_may_synchronize_and_assign_while_holding_the_lock() {
    let (coordinator, mut cx, mut peer) = open();
    let held = coordinator.require_lock();
    let again = coordinator.require_lock();
    cx.set::<at::language>("de").unwrap();
    cx.sync();
    assert_eq!(cx.language, "de");
    cx.activate(BatteryLow("yes")).unwrap();
    cx.sync();
    peer.sync();
    assert_eq!((peer.language.as_str(), peer.accuracy), ("en", 10));
    drop(held);
    peer.sync();
    assert_eq!(peer.accuracy, 10);
    drop(again);
    peer.sync();
    assert_eq!((peer.language.as_str(), peer.accuracy), ("de", 3));
    assert_eq!((cx.language.as_str(), cx.accuracy), ("de", 3));
}

#[test]
fn values_live_in_their_context() {
    // The defect, a value that outlives its context, does not compile:
    // see `tests/compile-fail/outlives.rs`. What can be done is done:
    let (_c, cx, _) = open();
    let copy = cx.language.to_string();
    drop(cx);
    assert_eq!(copy, "en");
}

#[test]
fn a_registration_waits_for_its_running_action() {
    let (coordinator, mut cx, _) = open();
    let (entered, wait) = std::sync::mpsc::channel();
    let (go, gate) = std::sync::mpsc::channel::<()>();
    let (entered, gate) = (Mutex::new(entered), Mutex::new(gate));
    let done = Arc::new(AtomicUsize::new(0));
    let counted = done.clone();
    let registration = coordinator.on_activation::<A>(move |_| {
        entered.lock().unwrap().send(()).unwrap();
        gate.lock().unwrap().recv().unwrap();
        counted.fetch_add(1, Ordering::SeqCst);
    });
    std::thread::scope(|scope| {
        scope.spawn(|| cx.activate(A("1")).unwrap());
        wait.recv().unwrap();
        let dropper = scope.spawn(|| {
            drop(registration);
            assert_eq!(
                done.load(Ordering::SeqCst),
                1,
                "dropped while its action ran"
            );
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!dropper.is_finished());
        go.send(()).unwrap();
    });
}

#[test]
fn an_action_may_drop_its_own_registration() {
    let (coordinator, mut cx, _) = open();
    let slot = Arc::new(Mutex::new(None));
    let own = slot.clone();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    *slot.lock().unwrap() = Some(coordinator.on_activation::<A>(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        drop(own.lock().unwrap().take());
    }));
    for value in ["1", "2", "3"] {
        cx.activate(A(value)).unwrap();
    }
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[test]
fn a_context_swapped_out_of_its_guard_does_not_carry_the_layer_away_unseen() {
    let (_c, mut cx, mut other) = open();
    let swapped = catch_unwind(AssertUnwindSafe(|| {
        let mut guard = cx.enter(BatteryLow("yes"));
        std::mem::swap(&mut *guard, &mut other);
    }));
    let message = *swapped.unwrap_err().downcast::<&str>().unwrap();
    assert!(message.contains("swapped out of the guard"), "{message}");
    // Swapped back in time, nothing has happened.
    let (_c, mut cx, mut other) = open();
    {
        let mut guard = cx.enter(BatteryLow("yes"));
        std::mem::swap(&mut *guard, &mut other);
        std::mem::swap(&mut *guard, &mut other);
    }
    assert_eq!(cx.accuracy, 10);
}

#[test]
fn a_forgotten_guard_is_left_with_the_one_around_it() {
    let (_c, mut cx, _) = open();
    {
        let mut outer = cx.enter(Session("anna"));
        std::mem::forget(outer.enter(BatteryLow("yes")));
        assert_eq!(outer.accuracy, 3);
    }
    assert_eq!((cx.accuracy, cx.layers().len()), (10, 0));
}

#[test]
fn a_saved_value_is_not_restored_over_a_newer_one() {
    let (_c, mut cx, mut peer) = open();
    cx.with(Session("anna"), |cx| {
        cx.without::<Session, _>(|cx| cx.set::<at::language>("fr").unwrap());
        assert_eq!(cx.language, "en");
        cx.with(Session("otto"), |cx| {
            cx.with(Session("anna"), |cx| cx.set::<at::language>("de").unwrap());
        });
        assert_eq!(cx.language, "de");
        peer.with(Session("anna"), |peer| {
            peer.set::<at::language>("it").unwrap()
        });
        cx.with(Session("otto"), Context::sync);
        assert_eq!(cx.language, "it");
    });
    assert_eq!(cx.language, "fr");
}

#[test]
fn an_unknown_layer_value_is_text_and_nothing_else() {
    struct Odd(String);
    impl milieu_context::Layer for Odd {
        const ID: &'static str = "session";
        fn value(&self) -> Cow<'_, str> {
            self.0.as_str().into()
        }
    }
    let (_c, mut cx, _) = open();
    for length in [0, 1, 37, 38, 39, 200] {
        let value = "ä".repeat(length);
        cx.with(Odd(value.clone()), |cx| {
            assert_eq!(cx.layer_named("session").unwrap_or_default(), value);
            cx.set::<at::language>("zz").unwrap();
        });
        cx.with(Odd(value), |cx| assert_eq!(cx.language, "zz"));
    }
}
