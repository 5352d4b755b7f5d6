//! Layers by their names, as requests, files and command lines give them.

use milieu::{Coordinator, Environment, Error, Named, Text};

#[derive(Environment)]
struct Settings {
    #[key("/sw/%session%/language", default = "en")]
    language: Text,
}

fn open() -> (Coordinator, milieu::Context<Settings>) {
    let coordinator = Coordinator::new();
    coordinator.assign("/sw/anna/language", "de", None).unwrap();
    let cx = coordinator.context().unwrap();
    (coordinator, cx)
}

#[test]
fn a_layer_that_somebody_names_has_to_be_known() {
    let (coordinator, mut cx) = open();
    let enter = |cx: &mut milieu::Context<Settings>, id: &str| {
        let cx = cx.enter(coordinator.layer(id, "anna")?);
        Ok::<_, Error>(cx.language.to_string())
    };
    assert_eq!(enter(&mut cx, "session").unwrap(), "de");
    let error = enter(&mut cx, "sesion").unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("`sesion`") && text.contains("`session`"),
        "{text}"
    );
    assert!(cx.layers().is_empty());
}

#[test]
fn layers_that_touch_nothing_are_entered_one_after_the_other() {
    let (_coordinator, mut cx) = open();
    for i in 0..50 {
        let (id, value) = (format!("layer{i}"), format!("value {i}"));
        let cx = cx.enter(Named(&id, &value));
        assert_eq!(cx.layers(), [(id.as_str().into(), value)]);
    }
    assert!(cx.layers().is_empty());
}

#[test]
fn values_of_any_length_are_entered_again_and_again() {
    let (_coordinator, mut cx) = open();
    let mut outer = cx.enter(Named("outer", "short"));
    for length in [1, 100, 1000, 7, 10_000, 3, 1000] {
        let value = "ä".repeat(length);
        let inner = outer.enter(Named("inner", &value));
        assert_eq!(inner.layer_named("inner"), Some(value));
        assert_eq!(inner.layer_named("outer").as_deref(), Some("short"));
    }
    assert_eq!(outer.layer_named("outer").as_deref(), Some("short"));
}
