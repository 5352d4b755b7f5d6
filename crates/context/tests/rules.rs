//! Values are checked, whoever sets them and by whichever name.

mod support;

use milieu_context::Context;
use support::*;

environment! { mod env;
    narrow: i32 = "/x/%a%/v" { "default" = "1", "check/range" = "1-10" };
    wide: i32 = "/x/1/v" { "default" = "2" };
}
use env::{Environment, at};

#[test]
fn a_key_with_two_names_has_the_rules_of_both() {
    let coordinator = coordinator(&[]);
    let mut cx: Context<Environment> = coordinator.context().unwrap();
    let error = cx.set::<at::wide>(500).unwrap_err().to_string();
    assert!(
        error.contains("/x/1/v") && error.contains("1-10"),
        "{error}"
    );
    assert_eq!((cx.wide, cx.is_default::<at::wide>()), (2, true));
    cx.set::<at::wide>(5).unwrap();
    cx.with(A("1"), |cx| {
        assert_eq!(cx.narrow, 5);
        assert!(cx.set::<at::narrow>(0).is_err());
        cx.set::<at::narrow>(7).unwrap();
        assert_eq!((cx.narrow, cx.wide), (7, 7));
    });
    assert!(coordinator.assign("/x/1/v", "11", None).is_err());
    assert!(
        coordinator
            .require_lock()
            .entries()
            .iter()
            .all(|entry| entry.text == "7")
    );
}

#[test]
fn rules_of_an_environment_that_comes_later_count_as_well() {
    environment! { mod other; even: i32 = "/x/%b%/v" { "check/range" = "0-8" }; }
    let coordinator = coordinator(&[]);
    let mut cx: Context<Environment> = coordinator.context().unwrap();
    let mut later: Context<other::Environment> = coordinator.context().unwrap();
    assert!(cx.set::<at::wide>(9).is_err());
    cx.set::<at::wide>(8).unwrap();
    later.sync();
    later.with(B("1"), |later| assert_eq!(later.even, 8));
    // And what is there already is checked when it comes.
    environment! { mod last; less: i32 = "/x/%c%/v" { "check/range" = "0-7" }; }
    let error = coordinator.context::<last::Environment>().err().unwrap();
    assert!(error.to_string().contains("/x/1/v"), "{error}");
}
