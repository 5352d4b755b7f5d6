//! Layers while a panic passes.

mod support;

use std::{
    borrow::Cow,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use milieu_context::{Context, Scope, ThreadLayer, each};
use support::*;

environment! { mod env; v: i32 = "/v/%a%"; }
use env::Environment;

type Cx = Context<Environment>;

/// Its author did not think of everything.
struct Fragile;
impl ThreadLayer for Fragile {
    const ID: &'static str = "fragile";
    fn value(&self, scope: &Scope<'_>) -> Cow<'_, str> {
        if scope.get("/v/%a%") == Some("1") {
            resume_unwind(Box::new("fragile"));
        }
        "active".into()
    }
    fn depends_on(&self) -> &[&'static str] {
        &["/v/%a%"]
    }
}

/// Runs a block when it is dropped.
struct AtEnd<'a, F: FnMut(&mut Cx)>(&'a mut Cx, F);
impl<F: FnMut(&mut Cx)> Drop for AtEnd<'_, F> {
    fn drop(&mut self) {
        (self.1)(self.0);
    }
}

#[test]
fn layers_are_entered_and_left_while_a_panic_passes() {
    let mut cx: Cx = coordinator(&[("/v/1", "1"), ("/v/2", "2")])
        .context()
        .unwrap();
    let mut seen = Vec::new();
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut outer = cx.enter(A("2"));
        let _end = AtEnd(&mut outer, |cx| {
            seen.push(cx.v);
            cx.with(A("1"), |cx| seen.push(cx.v));
            seen.push(cx.v);
        });
        resume_unwind(Box::new("outside"));
    }));
    assert_eq!(result.unwrap_err().downcast_ref(), Some(&"outside"));
    assert_eq!(seen, [2, 1, 2]);
    assert_eq!((cx.v, cx.layers().len()), (0, 0));
}

#[test]
fn a_second_panic_from_a_layer_does_not_disturb_the_frames_around() {
    let mut cx: Cx = coordinator(&[("/v/1", "1"), ("/v/2", "2")])
        .context()
        .unwrap();
    cx.activate(each(Fragile)).unwrap();
    let mut after = Vec::new();
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut outer = cx.enter(A("2"));
        let _end = AtEnd(&mut outer, |cx| {
            // The layer's panic cannot go on now, so the block runs without it.
            cx.with(A("1"), |_| ());
            after.push((cx.v, cx.layer::<A>()));
        });
        resume_unwind(Box::new("outside"));
    }));
    assert_eq!(result.unwrap_err().downcast_ref(), Some(&"outside"));
    assert_eq!(
        after,
        [(2, Some("2".into()))],
        "the frame around is still entered"
    );
    // What could not go on then goes on with the next use.
    let late = catch_unwind(AssertUnwindSafe(|| cx.with(B("1"), |_| ())));
    assert_eq!(late.unwrap_err().downcast_ref(), Some(&"fragile"));
    assert_eq!((cx.v, cx.layer::<A>(), cx.layer::<B>()), (0, None, None));
    cx.with(A("2"), |cx| assert_eq!(cx.v, 2));
}
