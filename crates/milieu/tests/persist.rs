//! From the key set back into the user's file.

use std::{os::unix::fs::PermissionsExt, sync::mpsc::channel, thread, time::Duration};

use crate::support::Machine;
use milieu::{
    Array, Environment, Error, Milieu, News, Text,
    keys::{Name, Namespace},
    store::{Change, Conflict, Resolution, StoreError, Strategy},
};

milieu::layer! {
    struct Session(String) = "session";
    struct BatteryLow = "battery_low";
}

#[derive(Environment)]
#[environment(root = "/sw/hello")]
struct Settings {
    #[key("%session%/language", default = "en", opt/long = "language")]
    language: Text,
    #[key("times", default = 1, range = "1-10")]
    times: u32,
    #[key("/algorithm/%battery_low%/accuracy", default = 10)]
    accuracy: i32,
}

fn names(milieu: &Milieu) -> Vec<String> {
    milieu.persist().unwrap().names
}

/// Another process writes a key.
fn elsewhere(machine: &Machine, name: &str, value: Option<&str>) {
    let name = Name::parse(name).unwrap();
    let change = match value {
        Some(value) => Change::set(name, value),
        None => Change::remove(name),
    };
    let mut store = machine.store();
    store
        .commit(Namespace::User, &[change], Strategy::Refuse)
        .unwrap();
}

#[test]
fn only_what_was_assigned_is_written_and_comments_stay() {
    let text = "# The settings of Anna.\n\n[/sw/hello]\n; not too often\ntimes = 2\n";
    let machine = Machine::new()
        .user(text)
        .system("/sw/hello/%/language = it\n");
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    assert_eq!((cx.times, cx.language.as_str()), (2, "it"));
    cx.with(Session("anna".into()), |cx| {
        cx.set::<at::language>("de").unwrap()
    });
    assert_eq!(names(&milieu), ["/sw/hello/anna/language"]);
    let expected = format!("{text}\n[/sw/hello/anna]\nlanguage = de\n");
    assert_eq!(machine.text(), expected);
    // And the next time nothing.
    assert!(names(&milieu).is_empty());
    cx.set::<at::times>(3).unwrap();
    assert_eq!(names(&milieu), ["/sw/hello/times"]);
    assert_eq!(machine.text(), expected.replace("times = 2", "times = 3"));
}

#[test]
fn what_a_session_chose_survives_a_restart() {
    let machine = Machine::new();
    for (session, language) in [("anna", "de"), ("../otto", "fr"), ("50%/x", "it")] {
        let milieu = machine.open();
        let mut cx = milieu.context::<Settings>().unwrap();
        cx.enter(Session(session.into()))
            .set::<at::language>(language)
            .unwrap();
        milieu.persist().unwrap();
    }
    let mut cx = machine.open().context::<Settings>().unwrap();
    for (session, language) in [
        ("anna", "de"),
        ("../otto", "fr"),
        ("50%/x", "it"),
        ("eva", "en"),
    ] {
        assert_eq!(cx.enter(Session(session.into())).language, language);
    }
}

#[test]
fn removed_keys_vanish_and_their_neighbours_stay() {
    let text = "[/sw/hello]\nanna/language = de\n# Otto's\notto/language = fr\ntimes = 2\n";
    let machine = Machine::new().user(text);
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    cx.unset::<at::times>();
    cx.forget(Session("otto".into()));
    assert_eq!(
        names(&milieu),
        ["/sw/hello/otto/language", "/sw/hello/times"]
    );
    let left = machine.text();
    assert!(left.contains("anna/language = de"), "{left}");
    assert!(!left.contains("fr") && !left.contains("times"), "{left}");
    let cx = machine.open().context::<Settings>().unwrap();
    assert!(cx.is_default::<at::times>());
}

#[test]
fn what_a_removal_uncovers_is_in_force_and_not_written() {
    let machine = Machine::new()
        .user("[/sw/hello]\ntimes = 2\n# kept\n%/language = fr\n")
        .system("[/sw/hello]\ntimes = 7\n%/language = it\n");
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    cx.unset::<at::times>();
    assert_eq!(cx.times, 7);
    let origin = cx.origin::<at::times>().unwrap().to_string();
    assert!(
        origin.contains("xdg") && origin.ends_with("hello.ini:2"),
        "{origin}"
    );
    assert_eq!(names(&milieu), ["/sw/hello/times"]);
    assert_eq!(machine.text(), "[/sw/hello]\n# kept\n%/language = fr\n");
    // An assignment that is taken back takes the user's key along.
    cx.set::<at::language>("es").unwrap();
    cx.unset::<at::language>();
    assert_eq!(cx.language, "it");
    assert_eq!(names(&milieu), ["/sw/hello/%/language"]);
    assert!(!machine.text().contains("language"), "{}", machine.text());
    assert!(names(&milieu).is_empty());
    let again = machine.open().context::<Settings>().unwrap();
    assert_eq!((again.times, again.language.as_str()), (7, "it"));
}

#[test]
fn below_an_option_the_users_key_is_removed_all_the_same() {
    let machine = Machine::new().user("/sw/hello/%/language = fr\n");
    let milieu = machine
        .open_with::<Settings>(&["--language=de"], &[])
        .unwrap();
    let mut cx = milieu.context::<Settings>().unwrap();
    assert!(names(&milieu).is_empty());
    cx.unset::<at::language>();
    assert_eq!(cx.language, "de");
    assert_eq!(names(&milieu), ["/sw/hello/%/language"]);
    assert!(!machine.text().contains("language"));
}

#[test]
fn switching_away_and_back_writes_nothing() {
    let machine = Machine::new();
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    cx.activate(BatteryLow).unwrap();
    cx.with(Session("anna".into()), |cx| assert_eq!(cx.language, "en"));
    cx.deactivate::<BatteryLow>().unwrap();
    cx.set::<at::times>(5).unwrap();
    cx.unset::<at::times>();
    assert!(names(&milieu).is_empty());
    assert!(!machine.user_file().exists());
    assert!(!machine.user_file().parent().unwrap().exists());
}

#[test]
fn nothing_is_written_when_nothing_has_changed() {
    let machine = Machine::new().user("/sw/hello/times = 2\n");
    let before = std::fs::metadata(machine.user_file()).unwrap();
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    cx.set::<at::times>(3).unwrap();
    cx.set::<at::times>(2).unwrap();
    assert!(names(&milieu).is_empty());
    let after = std::fs::metadata(machine.user_file()).unwrap();
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
}

#[test]
fn what_an_option_gives_is_not_the_users_to_keep() {
    let text = "/sw/hello/%/language = fr\n";
    let machine = Machine::new().user(text);
    let milieu = machine
        .open_with::<Settings>(&["--language=de"], &[])
        .unwrap();
    let mut cx = milieu.context::<Settings>().unwrap();
    assert_eq!(cx.language, "de");
    cx.set::<at::times>(2).unwrap();
    assert_eq!(names(&milieu), ["/sw/hello/times"]);
    assert!(machine.text().starts_with(text));
    // Assigned, it is.
    cx.set::<at::language>("it").unwrap();
    assert_eq!(names(&milieu), ["/sw/hello/%/language"]);
    // And removed again, the option is in force as before.
    cx.unset::<at::language>();
    assert_eq!(cx.language, "de");
    assert_eq!(names(&milieu), ["/sw/hello/%/language"]);
    assert!(!machine.text().contains("language"));
}

#[test]
fn only_the_chosen_branches_are_written() {
    let machine = Machine::new();
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    cx.set::<at::times>(2).unwrap();
    cx.set::<at::accuracy>(3).unwrap();
    let persisted = milieu.persist_below(&["/algorithm/"]).unwrap();
    assert_eq!(persisted.names, ["/algorithm/%/accuracy"]);
    assert!(
        milieu
            .persist_below(&["/sw/hell"])
            .unwrap()
            .names
            .is_empty()
    );
    let persisted = milieu.persist_below(&["/x", "/sw"]).unwrap();
    assert_eq!(persisted.names, ["/sw/hello/times"]);
    let error = milieu.persist_below(&["/a/../.."]).unwrap_err();
    assert!(matches!(error, Error::Name(_)), "{error}");
}

#[test]
fn the_file_is_private() {
    let machine = Machine::new();
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    cx.set::<at::times>(2).unwrap();
    milieu.persist().unwrap();
    let mode = std::fs::metadata(machine.user_file())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn keys_of_other_processes_are_kept_however_often_one_persists() {
    let machine = Machine::new().user("/sw/hello/times = 2\n");
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    elsewhere(&machine, "/sw/hello/otto/language", Some("fr"));
    for language in ["de", "it", "es"] {
        cx.enter(Session("anna".into()))
            .set::<at::language>(language)
            .unwrap();
        assert_eq!(names(&milieu), ["/sw/hello/anna/language"]);
    }
    let store = machine.store();
    let value = |name: &str| store.keys().lookup(name).unwrap().value();
    assert_eq!(value("/sw/hello/otto/language"), "fr");
    assert_eq!(value("/sw/hello/anna/language"), "es");
    assert_eq!(value("/sw/hello/times"), "2");
}

/// Two processes have the same key; the other one has written it first. In
/// between this program has persisted something else.
fn conflict() -> (Machine, Milieu, milieu::Context<Settings>) {
    let machine = Machine::new().user("/sw/hello/times = 2\n");
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    elsewhere(&machine, "/sw/hello/times", Some("7"));
    cx.set::<at::accuracy>(3).unwrap();
    milieu.persist().unwrap();
    cx.set::<at::times>(5).unwrap();
    cx.set::<at::accuracy>(4).unwrap();
    (machine, milieu, cx)
}

#[test]
fn a_conflict_with_another_process_is_reported_and_nothing_is_lost() {
    let (machine, milieu, cx) = conflict();
    let before = machine.text();
    for _ in 0..2 {
        let error = milieu.persist().unwrap_err();
        assert!(matches!(error, Error::Store(StoreError::Conflict { .. })));
        let text = error.to_string();
        assert!(
            text.contains("another process changed `/sw/hello/times` as well"),
            "{text}"
        );
        assert!(
            text.contains("it was `2`; the other process made it `7`; you make it `5`"),
            "{text}"
        );
        assert!(
            text.contains(&machine.user_file().display().to_string()),
            "{text}"
        );
        assert_eq!(machine.text(), before);
    }
    assert_eq!(cx.times, 5);
    // What both agree on is none.
    elsewhere(&machine, "/sw/hello/times", Some("5"));
    milieu.persist().unwrap();
    assert!(names(&milieu).is_empty());
}

#[test]
fn a_function_decides_a_conflict_for_a_value_of_its_own() {
    let (machine, milieu, mut cx) = conflict();
    let mean = |conflict: &Conflict| {
        let number = |value: &Option<String>| value.as_ref().unwrap().parse::<i32>().unwrap();
        let mean = (number(&conflict.ours) + number(&conflict.theirs)) / 2;
        Resolution::Value(Some(mean.to_string()))
    };
    let persisted = milieu.persist_with(&["/"], mean).unwrap();
    assert_eq!(persisted.names, ["/algorithm/%/accuracy"]);
    assert_eq!(persisted.conflicts.len(), 1);
    let store = machine.store();
    assert_eq!(store.keys().lookup("/sw/hello/times").unwrap().value(), "6");
    cx.sync();
    assert_eq!(cx.times, 6, "what the file says is in force here as well");
    assert!(names(&milieu).is_empty());
}

#[test]
fn a_function_cannot_decide_for_what_the_rules_refuse() {
    let (machine, milieu, mut cx) = conflict();
    let before = machine.text();
    let eleven = |_: &Conflict| Resolution::Value(Some("11".into()));
    let error = milieu.persist_with(&["/"], eleven).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Key(_)), "{text}");
    for part in ["/sw/hello/times", "11", "range=1-10"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(machine.text(), before);
    cx.sync();
    assert_eq!((cx.times, cx.accuracy), (5, 4));
    // Nothing was taken over: the conflict is still there.
    assert!(milieu.persist().is_err());
    let ten = |_: &Conflict| Resolution::Value(Some("10".into()));
    milieu.persist_with(&["/"], ten).unwrap();
    assert!(machine.text().contains("times = 10"));
}

#[test]
fn a_function_may_do_whatever_a_program_may() {
    let (machine, milieu, mut cx) = conflict();
    let mut asked = 0;
    let decide = |conflict: &Conflict| {
        asked += 1;
        assert_eq!(conflict.theirs.as_deref(), Some("7"));
        // Of another environment, for which the files are read.
        milieu.context::<Lists>().unwrap();
        let persisted = milieu.persist_below(&["/algorithm"]).unwrap();
        assert_eq!(persisted.names, ["/algorithm/%/accuracy"]);
        assert!(milieu.persist().is_err(), "the conflict is still there");
        thread::scope(|scope| drop(scope.spawn(|| milieu.persist().unwrap_err())));
        cx.set::<at::accuracy>(6).unwrap();
        // It may take over the other value, and this ends it meanwhile.
        drop(milieu.watch(drop).unwrap());
        Resolution::Ours
    };
    let persisted = milieu.persist_with(&["/"], decide).unwrap();
    assert_eq!((asked, persisted.conflicts.len()), (1, 1));
    assert_eq!(
        persisted.names,
        ["/algorithm/%/accuracy", "/sw/hello/times"]
    );
    assert!(machine.text().contains("times = 5"));
    assert!(machine.text().contains("accuracy = 6"));
    assert!(names(&milieu).is_empty());
}

#[test]
fn a_decision_counts_though_a_watch_learns_of_the_other_value_meanwhile() {
    let (machine, milieu, mut cx) = conflict();
    let (tell, news) = channel();
    let mut watching = None;
    let decide = |_: &Conflict| {
        let tell = tell.clone();
        let started = milieu.watch(move |news| drop(tell.send(news))).unwrap();
        watching = Some(started);
        // It has taken over what was there when it has told what came behind.
        elsewhere(&machine, "/sw/hello/otto/language", Some("fr"));
        let told = news.recv_timeout(Duration::from_secs(20)).unwrap();
        assert!(matches!(told, News::Changed(_)), "{told:?}");
        Resolution::Theirs
    };
    milieu.persist_with(&["/"], decide).unwrap();
    cx.sync();
    assert_eq!(cx.times, 7);
    assert!(machine.text().contains("times = 7"));
}

#[test]
fn whoever_has_changed_once_more_is_asked_about_once_more() {
    let (machine, milieu, mut cx) = conflict();
    let mut seen = Vec::new();
    let decide = |conflict: &Conflict| {
        let theirs = conflict.theirs.clone().unwrap();
        if theirs == "7" {
            elsewhere(&machine, "/sw/hello/times", Some("8"));
        }
        seen.push(theirs);
        Resolution::Theirs
    };
    let persisted = milieu.persist_with(&["/"], decide).unwrap();
    assert_eq!(seen, ["7", "8"]);
    let [conflict] = &persisted.conflicts[..] else {
        panic!("{persisted:?}");
    };
    assert_eq!(conflict.theirs.as_deref(), Some("8"));
    cx.sync();
    assert_eq!(cx.times, 8);
}

/// The first file is written before the second has its conflict.
#[test]
fn of_several_files_each_conflict_is_decided_once() {
    let machine = Machine::new().user("/sw/hello/times = 2\n");
    let folder = machine.user_file().parent().unwrap().to_owned();
    let table = "[/algorithm]\nfile = algorithm.ini\n";
    std::fs::write(folder.join("hello.mounts.ini"), table).unwrap();
    std::fs::write(folder.join("algorithm.ini"), "%/accuracy = 3\n").unwrap();
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    assert_eq!((cx.times, cx.accuracy), (2, 3));
    elsewhere(&machine, "/sw/hello/times", Some("7"));
    elsewhere(&machine, "/algorithm/%/accuracy", Some("8"));
    cx.set::<at::times>(5).unwrap();
    cx.set::<at::accuracy>(4).unwrap();
    let mut asked = 0;
    let decide = |_: &Conflict| {
        asked += 1;
        Resolution::Value(Some("9".into()))
    };
    let persisted = milieu.persist_with(&["/"], decide).unwrap();
    assert_eq!((asked, persisted.conflicts.len()), (2, 2));
    cx.sync();
    assert_eq!((cx.times, cx.accuracy), (9, 9));
    assert!(names(&milieu).is_empty());
}

#[test]
fn ours_decides_a_conflict_for_this_program() {
    let (machine, milieu, _cx) = conflict();
    let persisted = milieu.persist_with(&["/"], Strategy::Ours).unwrap();
    assert_eq!(
        persisted.names,
        ["/algorithm/%/accuracy", "/sw/hello/times"]
    );
    assert_eq!(persisted.conflicts.len(), 1);
    assert!(machine.text().contains("times = 5"));
    assert!(names(&milieu).is_empty());
}

#[test]
fn theirs_decides_a_conflict_for_the_other_process() {
    let (machine, milieu, mut cx) = conflict();
    let persisted = milieu.persist_with(&["/"], Strategy::Theirs).unwrap();
    assert_eq!(persisted.names, ["/algorithm/%/accuracy"]);
    assert_eq!(persisted.conflicts[0].theirs.as_deref(), Some("7"));
    assert_eq!(cx.times, 5);
    cx.sync();
    assert_eq!(cx.times, 7);
    assert!(names(&milieu).is_empty());
    assert!(machine.text().contains("times = 7"));
    // From here on it is this program's again.
    cx.set::<at::times>(8).unwrap();
    assert_eq!(names(&milieu), ["/sw/hello/times"]);
}

#[test]
fn theirs_may_be_that_the_key_is_gone() {
    let machine = Machine::new().user("/sw/hello/times = 2\n/x = 1\n");
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    elsewhere(&machine, "/sw/hello/times", None);
    cx.set::<at::times>(5).unwrap();
    assert!(milieu.persist().is_err());
    milieu.persist_with(&["/"], Strategy::Theirs).unwrap();
    cx.sync();
    assert!(cx.is_default::<at::times>());
    assert!(names(&milieu).is_empty());
}

#[test]
fn theirs_that_breaks_a_rule_stays_a_conflict() {
    let machine = Machine::new();
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    elsewhere(&machine, "/sw/hello/times", Some("99"));
    cx.set::<at::times>(5).unwrap();
    let error = milieu.persist_with(&["/"], Strategy::Theirs).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("hello.ini:") && text.contains("range=1-10"),
        "{text}"
    );
    cx.sync();
    assert_eq!(cx.times, 5);
    milieu.persist_with(&["/"], Strategy::Ours).unwrap();
    assert!(names(&milieu).is_empty());
}

#[test]
fn a_broken_file_is_left_alone() {
    let machine = Machine::new().user("/sw/hello/times = 2\n");
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    cx.set::<at::times>(3).unwrap();
    // Somebody's editor is in the middle of it.
    let broken = "/sw/hello/times = 2\n[/sw/hel";
    std::fs::write(machine.user_file(), broken).unwrap();
    let error = milieu.persist().unwrap_err().to_string();
    assert!(error.contains("hello.ini:2:"), "{error}");
    assert_eq!(machine.text(), broken);
    std::fs::write(machine.user_file(), "/sw/hello/times = 2\n").unwrap();
    assert_eq!(names(&milieu), ["/sw/hello/times"]);
}

#[test]
fn persisting_under_the_lock_writes_what_was_there_when_it_was_taken() {
    let machine = Machine::new();
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    cx.set::<at::times>(2).unwrap();
    let held = milieu.coordinator().require_lock();
    cx.set::<at::times>(3).unwrap();
    assert_eq!(names(&milieu), ["/sw/hello/times"]);
    assert!(machine.text().contains("times = 2"));
    drop(held);
    milieu.persist().unwrap();
    assert!(machine.text().contains("times = 3"));
}

#[test]
fn threads_persist_with_and_without_the_lock_at_once() {
    let machine = Machine::new();
    let milieu = machine.open();
    thread::scope(|scope| {
        for worker in 0..4 {
            let milieu = &milieu;
            scope.spawn(move || {
                let mut cx = milieu.context::<Settings>().unwrap();
                let mut cx = cx.enter(Session(format!("session-{worker}")));
                for round in 0..8 {
                    cx.set::<at::language>(&format!("l{round}")).unwrap();
                    let held = (worker % 2 == 0).then(|| milieu.coordinator().require_lock());
                    milieu.persist().unwrap();
                    drop(held);
                }
            });
        }
    });
    milieu.persist().unwrap();
    let store = machine.store();
    for worker in 0..4 {
        let name = format!("/sw/hello/session-{worker}/language");
        assert_eq!(store.keys().lookup(&name).unwrap().value(), "l7");
    }
}

#[derive(Environment)]
#[environment(root = "/sw/hello", at = of_lists)]
struct Lists {
    #[key("%session%/hosts/#", opt/long = "host", array/max = 20)]
    hosts: Array<Text>,
    #[key("ports/#", range = "1-9000", fallback = ["/sw/ports/#"])]
    ports: Array<u16>,
}

#[test]
fn arrays_are_written_element_by_element_and_read_again() {
    let text = "[/sw/hello/ports]\n# the first\n\\#0 = 80\n# the second\n\\#1 = 81\n\\#2 = 82\n";
    let machine = Machine::new().user(text);
    let milieu = machine.open();
    let mut cx = milieu.context::<Lists>().unwrap();
    assert_eq!(cx.ports, [80, 81, 82]);
    cx.set::<of_lists::ports>(&[80, 443]).unwrap();
    // What is the same is not written again.
    assert_eq!(names(&milieu), ["/sw/hello/ports/#1", "/sw/hello/ports/#2"]);
    let expected = "[/sw/hello/ports]\n# the first\n\\#0 = 80\n# the second\n\\#1 = 443\n";
    assert_eq!(machine.text(), expected);
    let texts: Vec<String> = (0..12).map(|index| format!("host {index}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    cx.with(Session("anna".into()), |cx| {
        cx.set::<of_lists::hosts>(&texts).unwrap();
    });
    assert_eq!(names(&milieu).len(), 12);
    cx.set::<of_lists::ports>(&[]).unwrap();
    assert_eq!(
        names(&milieu),
        [
            "/sw/hello/ports/#",
            "/sw/hello/ports/#0",
            "/sw/hello/ports/#1"
        ]
    );
    let mut again = machine.open().context::<Lists>().unwrap();
    assert!(again.ports.is_empty() && again.hosts.is_empty());
    again.with(Session("anna".into()), |cx| assert_eq!(cx.hosts, texts[..]));
    cx.unset::<of_lists::ports>();
    assert_eq!(names(&milieu), ["/sw/hello/ports/#"]);
    cx.forget(Session("anna".into()));
    assert_eq!(names(&milieu).len(), 12);
    assert!(!machine.text().contains("host"), "{}", machine.text());
}

#[test]
fn an_array_of_the_system_is_not_the_users_to_keep() {
    let system = "[/sw/hello/ports]\n\\#0 = 1\n\\#1 = 2\n[/sw/ports]\n\\#0 = 9\n";
    let machine = Machine::new().system(system);
    let milieu = machine
        .open_with::<Lists>(&["--host=a", "--host=b"], &[])
        .unwrap();
    let mut cx = milieu.context::<Lists>().unwrap();
    assert_eq!(
        (&cx.hosts[1], &cx.ports[..]),
        (&Text::from("b"), &[1, 2][..])
    );
    cx.set::<of_lists::ports>(&[3]).unwrap();
    assert_eq!(cx.ports, [3]);
    cx.unset::<of_lists::ports>();
    assert_eq!(cx.ports, [1, 2]);
    assert!(names(&milieu).is_empty());
    // Whoever changes one element takes over all of them.
    let coordinator = milieu.coordinator();
    coordinator.assign("/sw/hello/ports/#1", "5", None).unwrap();
    cx.sync();
    assert_eq!(cx.ports, [1, 5]);
    assert_eq!(names(&milieu), ["/sw/hello/ports/#0", "/sw/hello/ports/#1"]);
    assert_eq!(machine.open().context::<Lists>().unwrap().ports, [1, 5]);
}
