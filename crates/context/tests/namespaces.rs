//! Several keys of one name: which is in force, and what comes when it goes.

mod support;

use milieu_context::{Content, Context, Coordinator};
use milieu_keys::{Key, KeySet, Name, Namespace, Origin, SourceOf};
use support::*;

environment! { mod env;
    times: i32 = "/times" { "default" = "1", "check/range" = "1-10" };
    language: Text = "/%session%/language" { "default" = "en" };
}
use env::{Environment, at};

type Cx = Context<Environment>;

const OPTIONS: &str = "--times";

/// Keys as a store and a command line give them, the line of each its position.
fn keys(all: &[(Namespace, &str, &str)]) -> KeySet {
    let source = |namespace| match namespace {
        Namespace::Proc => SourceOf::Option(OPTIONS.into()),
        other => SourceOf::File(format!("{other}.ini")),
    };
    let origin = |namespace, line| Origin::at(&source(namespace).into(), line);
    all.iter()
        .zip(1..)
        .map(|((namespace, name, text), line)| {
            let name = Name::parse(name).unwrap();
            Key::new(*namespace, &name, text, origin(*namespace, line))
        })
        .collect()
}

use Namespace::{Proc, System, User};

fn open(all: &[(Namespace, &str, &str)]) -> (Coordinator, Cx, Cx) {
    let coordinator = Coordinator::with_keys(&keys(all));
    let cx = coordinator.context().unwrap();
    let peer = coordinator.context().unwrap();
    (coordinator, cx, peer)
}

fn origin(cx: &Cx) -> String {
    let origin = cx.origin::<at::times>();
    origin.map_or("nobody".into(), |origin| origin.to_string())
}

#[test]
fn what_goes_uncovers_what_is_below_it_everywhere() {
    let (coordinator, mut cx, mut peer) = open(&[(System, "/times", "7"), (User, "/times", "2")]);
    assert_eq!((cx.times, origin(&cx)), (2, "user.ini:2".into()));
    cx.unset::<at::times>();
    assert_eq!((cx.times, origin(&cx)), (7, "system.ini:1".into()));
    assert_eq!(peer.times, 2, "before it synchronizes");
    peer.sync();
    assert_eq!((peer.times, origin(&peer)), (7, "system.ini:1".into()));
    // What is not the user's stays.
    cx.unset::<at::times>();
    coordinator.remove("/times").unwrap();
    peer.sync();
    assert_eq!((cx.times, peer.times), (7, 7));
    assert!(!cx.is_default::<at::times>());
}

#[test]
fn an_assignment_is_the_users_key_and_removing_it_removes_both() {
    let (_c, mut cx, mut peer) = open(&[(System, "/times", "7"), (User, "/times", "2")]);
    cx.set::<at::times>(3).unwrap();
    cx.set::<at::times>(4).unwrap();
    assert_eq!((cx.times, origin(&cx)), (4, "nobody".into()));
    cx.unset::<at::times>();
    peer.sync();
    assert_eq!((cx.times, peer.times), (7, 7));
}

#[test]
fn an_assignment_precedes_the_command_line_until_it_is_removed() {
    let all = [
        (Proc, "/times", "5"),
        (User, "/times", "2"),
        (System, "/times", "7"),
    ];
    let (coordinator, mut cx, mut peer) = open(&all);
    assert_eq!((cx.times, origin(&cx)), (5, "option --times".into()));
    cx.set::<at::times>(3).unwrap();
    assert_eq!(cx.times, 3);
    cx.unset::<at::times>();
    assert_eq!((cx.times, origin(&cx)), (5, "option --times".into()));
    let held = coordinator.require_lock();
    assert!(held.in_namespace(User).is_empty(), "the user's is gone");
    assert_eq!(held.in_namespace(System)[0].text, "7");
    drop(held);
    // The user's key of a source stays below the option.
    let origin_of_user = Origin::new(SourceOf::File("user.ini".into()));
    coordinator
        .assign("/times", "9", Some(origin_of_user))
        .unwrap();
    cx.sync();
    assert_eq!(cx.times, 5);
    peer.sync();
    assert_eq!(peer.times, 5);
    let held = coordinator.require_lock();
    assert_eq!(held.in_namespace(User)[0].text, "9");
    assert_eq!(held.entries()[0].namespace, Proc);
}

#[test]
fn a_text_that_surfaces_is_kept_alive() {
    let all = [
        (System, "/anna/language", "it"),
        (User, "/anna/language", "de"),
        (Proc, "/anna/language", "fr"),
    ];
    let (coordinator, mut cx, mut peer) = open(&all);
    let mut cx = cx.enter(Session("anna"));
    let mut peer = peer.enter(Session("anna"));
    cx.set::<at::language>("es").unwrap();
    peer.sync();
    assert_eq!(peer.language, "es");
    cx.forget(Session("anna"));
    assert_eq!(cx.language, "fr");
    coordinator
        .replace(Proc, &KeySet::new(), &KeySet::new())
        .unwrap();
    peer.sync();
    assert_eq!((peer.language.as_str(), cx.language.as_str()), ("it", "fr"));
}

#[test]
fn every_wrong_key_is_reported_also_where_another_hides_it() {
    let all = [
        (Proc, "/times", "5"),
        (User, "/times", "99"),
        (System, "/times", "many"),
        (System, "/x/language", "de"),
    ];
    let coordinator = Coordinator::with_keys(&keys(&all));
    let error = coordinator.context::<Environment>().unwrap_err();
    let error = error.to_string();
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 2, "{error}");
    assert!(lines[0].starts_with("user.ini:2: /times: `99`"), "{error}");
    assert!(
        lines[1].starts_with("system.ini:3: /times: `many`"),
        "{error}"
    );
    assert!(error.contains("give a number of 1 to 10"), "{error}");
}

#[test]
fn a_file_that_changes_is_taken_in_at_once() {
    let before = keys(&[
        (User, "/times", "2"),
        (User, "/anna/language", "de"),
        (User, "/otto/language", "fr"),
    ]);
    let coordinator = Coordinator::with_keys(&before);
    let mut cx: Cx = coordinator.context().unwrap();
    let mut early: Cx = coordinator.context().unwrap();
    let after = keys(&[
        (User, "/otto/language", "fr"),
        (User, "/eva/language", "it"),
        (User, "/times", "3"),
        (System, "/times", "of another namespace, not asked for"),
    ]);
    let changed = coordinator.replace(User, &before, &after).unwrap();
    let shown = changed.iter().map(|difference| {
        let text = |content: &Option<Content>| Some(content.as_ref()?.text.clone());
        let line = |content: &Option<Content>| Some(content.as_ref()?.origin.as_ref()?.line);
        (
            difference.name.as_str(),
            text(&difference.before),
            text(&difference.after),
            line(&difference.after),
        )
    });
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [
            ("/anna/language", text("de"), None, None),
            ("/eva/language", None, text("it"), Some(2)),
            ("/times", text("2"), text("3"), Some(3)),
        ]
    );
    assert!(cx.has_news());
    assert_eq!(cx.times, 2);
    cx.sync();
    assert_eq!(cx.times, 3);
    let language = |cx: &mut Cx, session| cx.with(Session(session), |cx| cx.language.to_string());
    assert_eq!(language(&mut cx, "anna"), "en");
    assert_eq!(language(&mut cx, "otto"), "fr");
    assert_eq!(language(&mut cx, "eva"), "it");
    // The same again is no news.
    early.sync();
    assert!(
        coordinator
            .replace(User, &after, &after)
            .unwrap()
            .is_empty()
    );
    assert!(!early.has_news());
}

#[test]
fn a_source_with_a_mistake_changes_nothing() {
    let before = keys(&[(User, "/times", "2"), (Proc, "/%/language", "de")]);
    let coordinator = Coordinator::with_keys(&before);
    let mut cx: Cx = coordinator.context().unwrap();
    cx.set::<at::times>(4).unwrap();
    let after = keys(&[
        (User, "/%/language", "it"),
        (User, "/times", "0"),
        (User, "/anna/language", "it"),
    ]);
    let invalid = coordinator.replace(User, &before, &after).unwrap_err();
    assert_eq!(invalid.len(), 1, "also though the assignment hides it");
    assert!(
        invalid[0]
            .to_string()
            .starts_with("user.ini:2: /times: `0`")
    );
    assert!(!cx.has_news());
    assert_eq!(coordinator.require_lock().entries().len(), 2);
}

#[test]
fn what_the_program_has_assigned_and_removed_stands() {
    let before = keys(&[(User, "/times", "2"), (User, "/anna/language", "de")]);
    let coordinator = Coordinator::with_keys(&before);
    let mut cx: Cx = coordinator.context().unwrap();
    cx.set::<at::times>(4).unwrap();
    cx.forget(Session("anna"));
    let after = keys(&[(User, "/anna/language", "de"), (User, "/times", "3")]);
    let changed = coordinator.replace(User, &before, &after).unwrap();
    assert!(changed.is_empty(), "{changed:?}");
    assert_eq!(cx.times, 4);
    assert_eq!(cx.with(Session("anna"), |cx| cx.language.to_string()), "en");
    // Somebody writes something else there.
    let last = keys(&[(User, "/anna/language", "fr"), (User, "/times", "4")]);
    let changed = coordinator.replace(User, &after, &last).unwrap();
    assert_eq!(changed.len(), 1);
    cx.sync();
    assert_eq!(cx.with(Session("anna"), |cx| cx.language.to_string()), "fr");
    // What the file says as well is the file's, and follows it from now on.
    assert_eq!((cx.times, origin(&cx)), (4, "user.ini:2".into()));
    coordinator.replace(User, &last, &before).unwrap();
    cx.sync();
    assert_eq!(cx.times, 2);
}

#[test]
fn an_assignment_above_an_option_stays_in_force_once_it_is_in_the_file() {
    let before = keys(&[(Proc, "/times", "5")]);
    let coordinator = Coordinator::with_keys(&before);
    let mut cx: Cx = coordinator.context().unwrap();
    cx.set::<at::times>(4).unwrap();
    let after = keys(&[(User, "/times", "4")]);
    coordinator.replace(User, &before, &after).unwrap();
    cx.sync();
    assert_eq!(cx.times, 4);
}

#[test]
fn more_keys_than_contexts_can_tell_apart_are_one_publication() {
    let (coordinator, mut cx, _) = open(&[]);
    let count = size(1000, 50, 40);
    let names: Vec<String> = (0..count).map(|i| format!("/{i}/language")).collect();
    let mut all: Vec<_> = names
        .iter()
        .map(|name| (System, name.as_str(), "de"))
        .collect();
    all.push((System, "/times", "8"));
    let changed = coordinator
        .replace(System, &KeySet::new(), &keys(&all))
        .unwrap();
    assert_eq!(changed.len(), count + 1);
    let last = (count - 1).to_string();
    let mut cx = cx.enter(Session(&last));
    cx.sync();
    assert_eq!((cx.times, cx.language.as_str()), (8, "de"));
    let changed = coordinator.replace(System, &KeySet::new(), &KeySet::new());
    assert_eq!(changed.unwrap().len(), count + 1);
    cx.sync();
    assert_eq!((cx.times, cx.language.as_str()), (1, "en"));
    assert!(coordinator.require_lock().entries().is_empty());
}
