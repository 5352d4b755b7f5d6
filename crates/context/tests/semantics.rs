//! What contextual values and layers mean, statement by statement.

mod support;

use milieu_context::{Named, each, value, without};
use std::borrow::Cow;
use support::*;

environment! { mod env;
    language: Text = "/sw/pi/%session%/language" { "default" = "en" };
    hello: Text = "/sw/pi/%language%/hello" { "default" = "Hello" };
    accuracy: i32 = "/algorithm/%battery_low%/accuracy" { "default" = "10" };
    both: i32 = "/x/%a%%b%/v";
    twice: i32 = "/x/%a%/%a%/v";
    group: i32 = "/g/%a b c%/v";
    plain: i64 = "/value";
    pooled: bool = "/pool/%pool%/low";
}
use env::{Environment, at};

#[test]
fn an_inactive_layer_leaves_a_percent_sign() {
    let cx = coordinator(&[]).context::<Environment>().unwrap();
    assert_eq!(cx.name::<at::language>(), "/sw/pi/%/language");
    assert_eq!(cx.language, "en");
    assert!(cx.is_default::<at::language>());
}

#[test]
fn an_active_layer_stands_in_the_name_until_it_is_left() {
    let keys = [("/sw/pi/anna/language", "de")];
    let mut cx = coordinator(&keys).context::<Environment>().unwrap();
    {
        let cx = cx.enter(Session("anna"));
        assert_eq!(cx.name::<at::language>(), "/sw/pi/anna/language");
        assert_eq!(cx.language, "de");
    }
    assert_eq!(cx.language, "en");
}

#[test]
fn an_empty_layer_value_is_inactive() {
    let mut cx = coordinator(&[]).context::<Environment>().unwrap();
    let cx = cx.enter(Session(""));
    assert_eq!(cx.name::<at::language>(), "/sw/pi/%/language");
    assert_eq!(cx.layer::<Session>(), None);
}

#[test]
fn placeholders_repeat_and_concatenate() {
    let mut cx = coordinator(&[("/x/12/v", "12"), ("/x/1/1/v", "11"), ("/x/1%/v", "7")])
        .context::<Environment>()
        .unwrap();
    let mut cx = cx.enter(A("1"));
    assert_eq!((cx.name::<at::both>().as_str(), cx.both), ("/x/1%/v", 7));
    assert_eq!(
        (cx.name::<at::twice>().as_str(), cx.twice),
        ("/x/1/1/v", 11)
    );
    let cx = cx.enter(B("2"));
    assert_eq!((cx.name::<at::both>().as_str(), cx.both), ("/x/12/v", 12));
}

#[test]
fn a_group_joins_and_stops_at_the_first_inactive() {
    let mut cx = coordinator(&[]).context::<Environment>().unwrap();
    assert_eq!(cx.name::<at::group>(), "/g/%/v");
    assert_eq!(cx.enter((A("1"), C("3"))).name::<at::group>(), "/g/%1/v");
    assert_eq!(
        cx.enter((A("1"), B("2"), C("3"))).name::<at::group>(),
        "/g/%1%2%3/v"
    );
    assert_eq!(cx.enter(B("2")).name::<at::group>(), "/g/%/v");
}

#[test]
fn an_assignment_survives_under_its_contextual_name() {
    let mut cx = coordinator(&[]).context::<Environment>().unwrap();
    cx.with(Session("anna"), |cx| cx.set::<at::language>("fr").unwrap());
    assert_eq!(cx.language, "en");
    cx.with(Session("anna"), |cx| assert_eq!(cx.language, "fr"));
    cx.with(Session("otto"), |cx| assert_eq!(cx.language, "en"));
}

#[test]
fn layers_entered_together_update_once_and_the_last_wins() {
    let mut cx = coordinator(&[("/sw/pi/b/language", "bb")])
        .context::<Environment>()
        .unwrap();
    let inner = cx.enter((Session("a"), without::<Language>(), Session("b")));
    assert_eq!(inner.language, "bb");
    drop(inner);
    assert_eq!(cx.language, "en");
    assert_eq!(cx.layers().len(), 0);
}

#[test]
fn without_makes_a_layer_inactive_for_a_block() {
    let mut cx = coordinator(&[("/sw/pi/anna/language", "de")])
        .context::<Environment>()
        .unwrap();
    let mut cx = cx.enter(Session("anna"));
    cx.without::<Session, _>(|cx| {
        assert_eq!(cx.language, "en");
        cx.with(Session("anna"), |cx| assert_eq!(cx.language, "de"));
        assert_eq!(cx.language, "en");
    });
    assert_eq!(cx.language, "de");
}

#[test]
fn a_guard_leaves_on_error_return_and_unwinding() {
    fn fails(
        cx: &mut milieu_context::Context<Environment>,
    ) -> Result<i32, std::num::ParseIntError> {
        let cx = cx.enter(BatteryLow("yes"));
        let n: i32 = "no number".parse()?;
        Ok(n + cx.accuracy)
    }
    let mut cx = coordinator(&[("/algorithm/yes/accuracy", "3")])
        .context()
        .unwrap();
    assert!(fails(&mut cx).is_err());
    assert_eq!(cx.accuracy, 10);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        cx.with(BatteryLow("yes"), |cx| {
            assert_eq!(cx.accuracy, 3);
            cx.with(BatteryLow("no"), |_| panic!("inside"));
        });
    }));
    assert!(panicked.is_err());
    assert_eq!(cx.accuracy, 10);
    assert_eq!(cx.layers().len(), 0);
}

#[test]
fn a_layer_that_panics_while_it_is_evaluated_changes_nothing() {
    struct Broken;
    impl milieu_context::Layer for Broken {
        const ID: &'static str = "battery_low";
        fn value(&self) -> Cow<'_, str> {
            panic!("no value")
        }
    }
    let mut cx = coordinator(&[
        ("/algorithm/yes/accuracy", "3"),
        ("/sw/pi/anna/language", "de"),
    ])
    .context::<Environment>()
    .unwrap();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        drop(cx.enter((Session("anna"), Broken)));
    }));
    assert!(result.is_err());
    assert_eq!(cx.language, "en");
    assert_eq!(cx.layers().len(), 0);
    cx.with(BatteryLow("yes"), |cx| assert_eq!(cx.accuracy, 3));
}

#[test]
fn a_new_context_is_up_to_date() {
    let coordinator = coordinator(&[]);
    let mut first = coordinator.context::<Environment>().unwrap();
    first.set::<at::plain>(5).unwrap();
    first.activate(BatteryLow("yes")).unwrap();
    first.set::<at::accuracy>(3).unwrap();
    let second = coordinator.context::<Environment>().unwrap();
    assert_eq!(second.plain, 5);
    assert_eq!(second.accuracy, 3);
}

#[test]
fn two_coordinators_know_nothing_of_each_other() {
    let (one, two) = (coordinator(&[]), coordinator(&[]));
    let mut first = one.context::<Environment>().unwrap();
    let mut second = two.context::<Environment>().unwrap();
    first.activate(Session("anna")).unwrap();
    first.set::<at::language>("de").unwrap();
    second.sync();
    assert_eq!((second.language.as_str(), second.layers().len()), ("en", 0));
}

#[test]
fn a_contextual_value_is_a_layer() {
    let keys = [
        ("/sw/pi/anna/language", "de"),
        ("/sw/pi/otto/language", "it"),
        ("/sw/pi/de/hello", "Hallo"),
        ("/sw/pi/it/hello", "Ciao"),
    ];
    let mut cx = coordinator(&keys).context::<Environment>().unwrap();
    cx.activate(value::<at::language>()).unwrap();
    assert_eq!(cx.name::<at::hello>(), "/sw/pi/en/hello");
    cx.with(Session("anna"), |cx| {
        assert_eq!(cx.hello, "Hallo");
        cx.set::<at::language>("it").unwrap();
        assert_eq!(cx.hello, "Ciao");
    });
    assert_eq!(cx.hello, "Hello");
    cx.with(Session("otto"), |cx| assert_eq!(cx.hello, "Ciao"));
    cx.deactivate_named("language").unwrap();
    assert_eq!(cx.name::<at::hello>(), "/sw/pi/%/hello");
    // Entered, it is bound to the frame.
    cx.with((Session("otto"), value::<at::language>()), |cx| {
        assert_eq!(cx.hello, "Ciao")
    });
    assert_eq!(cx.layers().len(), 0);
}

#[test]
fn a_value_as_layer_reaches_other_contexts_with_their_own_value() {
    let coordinator = coordinator(&[("/sw/pi/anna/language", "de"), ("/sw/pi/de/hello", "Hallo")]);
    let mut first = coordinator.context::<Environment>().unwrap();
    let mut second = coordinator.context::<Environment>().unwrap();
    first.activate(value::<at::language>()).unwrap();
    let mut second = second.enter(Session("anna"));
    second.sync();
    assert_eq!(second.hello, "Hallo");
    assert_eq!(first.hello, "Hello");
}

mod cycle {
    crate::environment! { mod env;
        one: Text = "/c/%two%/one" { "default" = "x" };
        two: Text = "/c/%one%/two" { "default" = "y" };
    }
}

#[test]
fn a_cycle_of_values_and_layers_is_an_error_that_changes_nothing() {
    use cycle::env::{Environment, at};
    let coordinator = coordinator(&[]);
    let mut cx = coordinator.context::<Environment>().unwrap();
    cx.activate(value::<at::one>()).unwrap();
    let error = cx.activate(value::<at::two>()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("layer `two`") && text.contains("/c/%two%/one"),
        "{text}"
    );
    assert_eq!(cx.name::<at::one>(), "/c/%/one");
    assert_eq!(cx.name::<at::two>(), "/c/x/two");
    let other = coordinator.context::<Environment>().unwrap();
    assert_eq!(other.layers().len(), 1);
    // Entered locally it closes the same cycle; the layer is inactive instead.
    let cx = cx.enter(value::<at::two>());
    assert!(cx.layers().len() <= 1);
}

struct Pool(&'static str);
impl milieu_context::ThreadLayer for Pool {
    const ID: &'static str = "pool";
    fn value(&self, scope: &milieu_context::Scope<'_>) -> Cow<'_, str> {
        if scope.role().starts_with(self.0) {
            "active".into()
        } else {
            "".into()
        }
    }
}

#[test]
fn a_thread_based_layer_selects_contexts_by_role() {
    use milieu_context::{ContextOptions, Threads};
    let coordinator = coordinator(&[("/pool/active/low", "true")]);
    let open = |role: &str| {
        let options = ContextOptions::new().role(role);
        coordinator
            .context_with::<Environment, Threads>(options)
            .unwrap()
    };
    let mut control = open("");
    let (mut first, mut second) = (open("/pool/1"), open("/pool/2"));
    control.activate(each(Pool("/pool/"))).unwrap();
    for cx in [&mut first, &mut second, &mut control] {
        cx.sync();
    }
    assert_eq!(
        (control.pooled, first.pooled, second.pooled),
        (false, true, true)
    );
    assert!(open("/pool/3").pooled);
    assert!(!first.fork_as("/other").pooled);
    assert!(control.fork_as("/pool/9").pooled);
    control.deactivate_named("pool").unwrap();
    first.sync();
    assert!(!first.pooled);
}

#[test]
fn a_thread_based_layer_follows_the_values_it_depends_on() {
    struct Selected;
    impl milieu_context::ThreadLayer for Selected {
        const ID: &'static str = "pool";
        fn value(&self, scope: &milieu_context::Scope<'_>) -> Cow<'_, str> {
            let selected = scope.get("/value").and_then(|id| id.parse().ok());
            if selected == Some(scope.identity()) {
                "active".into()
            } else {
                "".into()
            }
        }
        fn depends_on(&self) -> &[&'static str] {
            &["/value"]
        }
    }
    let coordinator = coordinator(&[("/pool/active/low", "true")]);
    let mut one = coordinator.context::<Environment>().unwrap();
    let mut two = coordinator.context::<Environment>().unwrap();
    one.activate(each(Selected)).unwrap();
    let select = |cx: &mut milieu_context::Context<Environment>, id: u64| {
        cx.set::<at::plain>(i64::try_from(id).expect("a small number"))
            .unwrap();
    };
    let (first, second) = (one.identity(), two.identity());
    select(&mut one, second);
    two.sync();
    assert_eq!((one.pooled, two.pooled), (false, true));
    select(&mut two, first);
    one.sync();
    assert_eq!((one.pooled, two.pooled), (true, false));
}

#[test]
fn a_thread_based_layer_that_panics_is_inactive_and_the_panic_goes_on() {
    struct Broken;
    impl milieu_context::ThreadLayer for Broken {
        const ID: &'static str = "pool";
        fn value(&self, scope: &milieu_context::Scope<'_>) -> Cow<'_, str> {
            assert!(scope.role() != "/broken", "cannot tell");
            "active".into()
        }
    }
    let coordinator = coordinator(&[("/pool/active/low", "true"), ("/value", "1")]);
    let mut control = coordinator.context::<Environment>().unwrap();
    let mut victim = control.fork_as("/broken");
    control.activate(each(Broken)).unwrap();
    control.set::<at::plain>(2).unwrap();
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| victim.sync()));
    assert!(result.is_err());
    assert_eq!((victim.plain, victim.pooled), (2, false));
    assert!(control.pooled);
}

#[test]
fn two_environments_share_a_key() {
    environment! { mod other; same: i64 = "/value"; }
    let coordinator = coordinator(&[]);
    let mut first = coordinator.context::<Environment>().unwrap();
    let mut second = coordinator.context::<other::Environment>().unwrap();
    first.set::<at::plain>(8).unwrap();
    second.sync();
    assert_eq!(second.same, 8);
}

#[test]
fn one_key_with_two_types_is_refused() {
    environment! { mod other; same: bool = "/%x%"; }
    let coordinator = coordinator(&[]);
    let _first = coordinator.context::<Environment>().unwrap();
    let error = coordinator
        .context::<other::Environment>()
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("/%x%") && error.contains("/value"),
        "{error}"
    );
}

#[test]
fn one_key_with_two_types_is_read_as_each_where_that_is_allowed() {
    environment! { mod other;
        low: bool = "/state/%x%" { "allow/overlap" = "" };
        count: i32 = "/state/count" { "default" = "4" };
    }
    use other::at;
    let coordinator = coordinator(&[]);
    let mut cx = coordinator.context::<other::Environment>().unwrap();
    cx.set::<at::count>(7).unwrap();
    let mut cx = cx.enter(Named("x", "count"));
    assert_eq!((cx.low, cx.count), (false, 7));
    cx.set::<at::low>(true).unwrap();
    assert_eq!((cx.low, cx.count), (true, 4));
}

#[test]
fn overrides_and_fallbacks_take_part() {
    environment! { mod other;
        own: i32 = "/app/%session%/size" {
            "default" = "1", "override/#0" = "/policy/size", "fallback/#0" = "/app/size",
            "fallback/#1" = "/sw/%country%/size"
        };
    }
    use other::at;
    let coordinator = coordinator(&[("/sw/at/size", "4")]);
    let mut cx = coordinator.context::<other::Environment>().unwrap();
    assert_eq!(cx.own, 1);
    cx.with(Country("at"), |cx| assert_eq!(cx.own, 4));
    coordinator.assign("/app/size", "3", None).unwrap();
    cx.sync();
    assert_eq!(cx.own, 3);
    cx.with(Session("anna"), |cx| {
        cx.set::<at::own>(2).unwrap();
        assert_eq!(cx.own, 2);
        coordinator.assign("/policy/size", "9", None).unwrap();
        cx.sync();
        assert_eq!(cx.own, 9);
    });
    assert_eq!(cx.own, 9);
    coordinator.remove("/policy/size").unwrap();
    cx.sync();
    assert_eq!(cx.own, 3);
}

#[test]
fn layers_known_only_at_run_time_work_alike() {
    let mut cx = coordinator(&[("/sw/pi/anna/language", "de")])
        .context::<Environment>()
        .unwrap();
    cx.with(Named("session", "anna"), |cx| {
        assert_eq!(cx.language, "de");
        assert_eq!(cx.layer::<Session>().as_deref(), Some("anna"));
    });
    cx.activate(Named("session", "anna")).unwrap();
    assert_eq!(cx.language, "de");
    cx.deactivate::<Session>().unwrap();
    assert_eq!(cx.language, "en");
}

#[test]
fn a_part_is_read_and_switched_like_the_whole() {
    let mut cx = coordinator(&[("/algorithm/yes/accuracy", "3")])
        .context::<Environment>()
        .unwrap();
    let mut part = cx.part(|e| &e.accuracy);
    assert_eq!(*part, 10);
    assert_eq!(part.with(BatteryLow("yes"), |part| **part), 3);
    assert_eq!(*part, 10);
}

#[test]
fn what_was_loaded_is_checked_and_named() {
    let keys = [
        ("/value", "many"),
        ("/sw/pi/anna/language", "de"),
        ("/algorithm/%/accuracy", "x"),
    ];
    let error = coordinator(&keys)
        .context::<Environment>()
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("/value") && error.contains("many"),
        "{error}"
    );
    assert!(error.contains("/algorithm/%/accuracy"), "{error}");
}

#[test]
fn a_wrong_value_is_refused_and_nothing_changes() {
    environment! { mod other; level: i32 = "/level" { "default" = "1", "check/range" = "1-10" }; }
    use other::at;
    let coordinator = coordinator(&[]);
    let mut cx = coordinator.context::<other::Environment>().unwrap();
    let error = cx.set::<at::level>(11).unwrap_err().to_string();
    assert!(
        error.contains("/level") && error.contains("11") && error.contains("1-10"),
        "{error}"
    );
    assert_eq!(cx.level, 1);
    assert!(coordinator.assign("/level", "0", None).is_err());
    cx.sync();
    assert_eq!(cx.level, 1);
    assert!(coordinator.require_lock().entries().is_empty());
}

#[test]
fn forgetting_a_session_removes_its_keys_and_no_others() {
    let coordinator = coordinator(&[]);
    let mut cx = coordinator.context::<Environment>().unwrap();
    for session in ["anna", "otto"] {
        cx.with(Session(session), |cx| cx.set::<at::language>("de").unwrap());
    }
    cx.with((A("1"), B("2")), |cx| cx.set::<at::both>(1).unwrap());
    cx.with((A("3"), B("2")), |cx| cx.set::<at::both>(1).unwrap());
    cx.forget(Session("anna"));
    cx.forget(A("1"));
    cx.with(Session("anna"), |cx| assert_eq!(cx.language, "en"));
    let held = coordinator.require_lock();
    let names: Vec<&str> = held.entries().into_iter().map(|e| e.name).collect();
    assert_eq!(names, ["/sw/pi/otto/language", "/x/32/v"]);
}

#[test]
fn an_unknown_layer_from_outside_is_an_error_that_names_the_nearest() {
    let coordinator = coordinator(&[("/sw/pi/anna/language", "de")]);
    let mut cx = coordinator.context::<Environment>().unwrap();
    let layer = coordinator.layer("session", "anna").unwrap();
    assert_eq!(cx.enter(layer).language, "de");
    let error = coordinator
        .layer("sesion", "anna")
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("`sesion`") && error.contains("`session`"),
        "{error}"
    );
    let error = coordinator.layer("xyz", "").err().unwrap().to_string();
    assert!(error.contains("battery_low, c, language"), "{error}");
}

#[test]
fn the_elements_of_an_array_are_read_in_order() {
    let mut keys: Vec<(String, String)> = (0..12)
        .map(|i| (milieu_keys::rules::array_level(i), i.to_string()))
        .map(|(level, text)| (format!("/sw/anna/hosts/{level}"), text))
        .collect();
    keys.push(("/sw/%/hosts/#0".into(), "localhost".into()));
    let keys: Vec<(&str, &str)> = keys.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let mut cx = coordinator(&keys).context::<Environment>().unwrap();
    assert_eq!(cx.elements("/sw/%session%/hosts/#").unwrap(), ["localhost"]);
    let cx = cx.enter(Session("anna"));
    let elements = cx.elements("/sw/%session%/hosts/#").unwrap();
    assert_eq!((elements.len(), elements[11]), (12, "11"));
    assert!(cx.elements("hosts").is_err());
    assert!(cx.elements("/nothing/#").unwrap().is_empty());
}
