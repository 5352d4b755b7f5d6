//! What fails while an event acts is told, and ends nothing.

use std::borrow::Cow;
use std::time::Duration;

use milieu_context::{Scope, ThreadLayer, each, waiting};
use milieu_stream::{Publisher, VirtualClock};
use milieu_transfer::Time;

use super::*;
use crate::Milieu;

/// A thread-based layer that fails wherever it is evaluated.
struct Failing;

impl ThreadLayer for Failing {
    const ID: &'static str = "failing";

    fn value(&self, scope: &Scope<'_>) -> Cow<'_, str> {
        failed(|failed| scope.fail(failed), "no value");
        "".into()
    }
}

/// Fails, as a callback of C does.
fn failed(fail: impl FnOnce(milieu_context::Failed), why: &str) {
    let error: Box<dyn std::error::Error + Send + Sync> = why.into();
    fail(Box::new(error));
}

fn started() -> (Milieu, Publisher<i64>, VirtualClock) {
    let milieu = Milieu::in_memory();
    let clock = VirtualClock::new(Time::from_seconds(0));
    milieu.clock(clock.clone()).unwrap();
    let numbers = milieu.streams().publisher("/n").unwrap();
    (milieu, numbers, clock)
}

/// Above zero a layer is active, with that value.
fn acts(milieu: &Milieu, span: Option<Duration>) -> Acting {
    let flow = milieu.flow("/n").unwrap();
    let acting = flow.activates_named("tamper", span, |event| {
        let number = *event.get::<i64>().unwrap();
        assert_ne!(number, 13, "who asks for thirteen?");
        Ok((number > 0).then(|| number.to_string()))
    });
    acting.unwrap()
}

fn tamper(milieu: &Milieu) -> Option<String> {
    let cx: Context<Nothing> = milieu.coordinator().context().unwrap();
    cx.layer_named("tamper")
}

#[test]
fn an_action_that_fails_ends_no_flow() {
    let (milieu, numbers, _clock) = started();
    let action = |it: &mut milieu_context::Activation<'_>| match it.value() {
        "3" => {}
        _ => failed(|failed| it.fail(failed), "the siren is off"),
    };
    let action = milieu.coordinator().on_activation_named("tamper", action);
    let acting = acts(&milieu, None);
    for (number, layer, troubles) in [
        (1, Some("1"), 1),
        (2, Some("2"), 2),
        (3, Some("3"), 2),
        (0, None, 2),
        (4, Some("4"), 3),
    ] {
        let _ = numbers.publish(number);
        assert_eq!(tamper(&milieu).as_deref(), layer);
        let (count, why) = acting.troubles();
        assert_eq!(
            (count, why.as_deref()),
            (troubles, Some("the siren is off"))
        );
    }
    assert!(waiting(None).is_none(), "nobody else is told");
    drop(action);
    let _ = numbers.publish(5);
    assert_eq!(
        (tamper(&milieu).as_deref(), acting.troubles().0),
        (Some("5"), 3)
    );
}

#[test]
fn a_layer_ends_in_time_though_its_actions_fail() {
    let (milieu, numbers, clock) = started();
    let fail = |it: &mut milieu_context::Activation<'_>| failed(|failed| it.fail(failed), "no");
    let _actions = milieu.coordinator().on_switch("tamper", fail);
    let acting = acts(&milieu, Some(Duration::from_secs(10)));
    for (start, troubles) in [(0, 2), (20, 4)] {
        clock.set(Time::from_seconds(start));
        let _ = numbers.publish(1);
        assert_eq!(tamper(&milieu).as_deref(), Some("1"));
        clock.set(Time::from_seconds(start + 10));
        milieu.streams().wake();
        assert_eq!((tamper(&milieu), acting.troubles().0), (None, troubles));
    }
}

/// The layers of others are none of an event's business, but somebody has to be told.
#[test]
fn a_thread_based_layer_that_fails_keeps_no_event_from_acting() {
    let (milieu, numbers, _clock) = started();
    let acting = acts(&milieu, None);
    let flow = milieu.flow("/n").unwrap();
    let text = |event: &Event| event.get::<i64>().map(i64::to_string);
    let assigning = flow.assigns_to("/sw/%tamper%/n", text).unwrap();
    let mut cx: Context<Nothing> = milieu.coordinator().context().unwrap();
    caught(|| cx.activate(each(Failing))).unwrap_err();
    for number in 1..4 {
        let _ = numbers.publish(number);
        caught(|| cx.sync()).unwrap_err();
        let text = number.to_string();
        assert_eq!(cx.layer_named("tamper"), Some(text.clone()));
        let key = format!("/sw/{number}/n");
        let held = milieu.coordinator().require_lock();
        let is_assigned = |it: &milieu_context::Entry<'_>| it.name == key && it.text == text;
        assert!(held.entries().iter().any(is_assigned), "{key}");
        for acting in [&acting, &assigning] {
            let (count, why) = acting.troubles();
            assert_eq!((count, why.as_deref()), (number as u64, Some("no value")));
        }
    }
}

#[cfg(panic = "unwind")]
#[test]
fn a_panic_is_told_as_any_failure() {
    let (milieu, numbers, _clock) = started();
    let action = milieu
        .coordinator()
        .on_activation_named("tamper", |it| match it.value() {
            "1" => panic!("out of order"),
            "2" => panic!("out of order {}", it.layer()),
            "3" => std::panic::panic_any(3),
            _ => {}
        });
    let acting = acts(&milieu, None);
    for (number, count, said) in [
        (1, 1, "it panicked: out of order"),
        (2, 2, "it panicked: out of order tamper"),
        (3, 3, "it panicked without a text"),
        (4, 3, "it panicked without a text"),
        (13, 4, "who asks for thirteen?"),
    ] {
        let _ = numbers.publish(number);
        let layer = if number == 13 { 4 } else { number };
        assert_eq!(tamper(&milieu), Some(layer.to_string()));
        let (troubles, why) = acting.troubles();
        assert_eq!(troubles, count);
        assert!(why.is_some_and(|why| why.contains(said)), "{said}");
    }
    drop(action);
}
