//! Contextual values as layers that would depend on themselves.

mod support;

use milieu_context::{Context, Coordinator, value};
use support::*;

environment! { mod env;
    one: Text = "/c/%two%/one" { "default" = "x" };
    two: Text = "/c/%one%/two" { "default" = "y" };
    shown: Text = "/shown/%one%/v";
}
use env::{Environment, at};

fn layers(cx: &Context<Environment>) -> Vec<(String, String)> {
    let layers = cx.layers().into_iter();
    layers.map(|(id, text)| (id.to_string(), text)).collect()
}

fn layer(id: &str, text: &str) -> (String, String) {
    (id.into(), text.into())
}

fn open() -> (Coordinator, Context<Environment>) {
    let coordinator = coordinator(&[]);
    let cx = coordinator.context().unwrap();
    (coordinator, cx)
}

#[test]
fn the_layer_that_closes_a_cycle_locally_is_inactive_and_the_other_goes_on() {
    let (coordinator, mut cx) = open();
    cx.activate(value::<at::one>()).unwrap();
    cx.with(value::<at::two>(), |cx| {
        assert_eq!(layers(cx), [layer("one", "x")]);
        assert_eq!(cx.name::<at::one>(), "/c/%/one");
        // `one` still follows its value.
        cx.set::<at::one>("z").unwrap();
        assert_eq!(layers(cx), [layer("one", "z")]);
        assert_eq!(cx.name::<at::shown>(), "/shown/z/v");
    });
    assert_eq!(layers(&cx), [layer("one", "z")]);
    assert_eq!(cx.name::<at::two>(), "/c/z/two");
    coordinator.remove("/c/%/one").unwrap();
    cx.sync();
    assert_eq!(layers(&cx), [layer("one", "x")]);
}

#[test]
fn a_cycle_that_a_synchronization_closes_lasts_as_long_as_its_frame() {
    let (coordinator, mut cx) = open();
    let mut other: Context<Environment> = coordinator.context().unwrap();
    cx.with(value::<at::two>(), |cx| {
        assert_eq!(layers(cx), [layer("two", "y")]);
        other.activate(value::<at::one>()).unwrap();
        cx.sync();
        assert_eq!(
            layers(cx),
            [layer("one", "x")],
            "what is entered here yields"
        );
    });
    assert_eq!(layers(&cx), [layer("one", "x")]);
    assert_eq!(layers(&other), [layer("one", "x")]);
}

#[test]
fn a_frame_that_covers_one_half_breaks_the_cycle() {
    let (_coordinator, mut cx) = open();
    cx.activate(value::<at::one>()).unwrap();
    cx.with(milieu_context::Named("one", "fixed"), |cx| {
        cx.with(value::<at::two>(), |cx| {
            let mut both = layers(cx);
            both.sort();
            assert_eq!(both, [layer("one", "fixed"), layer("two", "y")]);
        });
        // Globally it would be one.
        assert!(cx.activate(value::<at::two>()).is_err());
        assert_eq!(layers(cx), [layer("one", "fixed")]);
    });
    assert_eq!(layers(&cx), [layer("one", "x")]);
}
