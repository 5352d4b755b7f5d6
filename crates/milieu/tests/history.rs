//! Who has changed what in the user's file, and taking it back.

use std::{sync::mpsc::channel, time::Duration};

use crate::support::Machine;
use milieu::{
    Environment, Error, Milieu, Text,
    keys::{Name, Namespace},
    store::{Change, Conflict, Logged, Resolution, StoreError, Strategy},
};

#[derive(Environment)]
#[environment(root = "/sw/hello")]
struct Settings {
    #[key(default = "en", was = ["/hello/language"])]
    language: Text,
    #[key(default = 1, range = "1-10")]
    times: i32,
    #[key(secret)]
    password: Text,
}

/// Another process writes a key.
fn elsewhere(machine: &Machine, name: &str, value: &str) {
    let change = Change::set(Name::parse(name).unwrap(), value);
    let mut store = machine.store();
    store
        .commit(Namespace::User, &[change], Strategy::Ours)
        .unwrap();
}

/// Writes these numbers of times, each by a commit.
fn written(machine: &Machine, times: &[i32]) -> (Milieu, milieu::Context<Settings>) {
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    for times in times {
        cx.set::<at::times>(*times).unwrap();
        milieu.persist().unwrap();
    }
    (milieu, cx)
}

fn ids(log: &[Logged]) -> Vec<(u64, Option<u64>, Option<u64>)> {
    let of = |it: &Logged| (it.record.id, it.record.undoes, it.undone_by);
    log.iter().map(of).collect()
}

#[test]
fn what_was_persisted_is_listed_and_taken_back() {
    let machine = Machine::new();
    let (milieu, mut cx) = written(&machine, &[2, 3]);
    let log = milieu.log().unwrap();
    assert_eq!(ids(&log), [(1, None, None), (2, None, None)]);
    assert_eq!(log[1].path, machine.user_file());
    assert_eq!(log[1].namespace, Namespace::User);
    let change = &log[1].record.changes[0];
    assert_eq!(change.name.as_str(), "/sw/hello/times");
    assert_eq!(
        (change.old.as_deref(), change.new.as_deref()),
        (Some("2"), Some("3"))
    );
    assert_eq!(log[1].record.author.process, std::process::id());

    let undone = milieu.undo(None, Strategy::Refuse).unwrap();
    assert_eq!((undone.commit.record.id, undone.conflicts.len()), (2, 0));
    assert_eq!(undone.names, ["/sw/hello/times"]);
    assert!(machine.text().contains("times = 2"));
    assert_eq!(cx.times, 3, "nothing between synchronizations");
    cx.sync();
    assert_eq!(cx.times, 2);
    assert!(
        milieu.persist().unwrap().names.is_empty(),
        "it is the file's"
    );
    // The one before, which leaves nothing.
    milieu.undo(None, Strategy::Refuse).unwrap();
    cx.sync();
    assert!(cx.is_default::<at::times>());
    assert!(milieu.persist().unwrap().names.is_empty());
    let error = milieu.undo(None, Strategy::Refuse).unwrap_err().to_string();
    assert!(error.contains("there is no change to take back"), "{error}");
    // What was listed before may be taken back since.
    let error = milieu.undo(Some(&log[1]), Strategy::Refuse).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("change 2 is taken back by 3 already"),
        "{error}"
    );
    let log = milieu.log().unwrap();
    let expected = [
        (1, None, Some(4)),
        (2, None, Some(3)),
        (3, Some(2), None),
        (4, Some(1), None),
    ];
    assert_eq!(ids(&log), expected);
    // To take back the taking back does it again.
    milieu.undo(Some(&log[3]), Strategy::Refuse).unwrap();
    cx.sync();
    assert_eq!(cx.times, 2);
}

#[test]
fn a_commit_that_is_no_more_is_not_taken_back() {
    let machine = Machine::new();
    let (milieu, mut cx) = written(&machine, &[2, 3]);
    let log = milieu.log().unwrap();
    // A history that was removed begins again, with the same numbers.
    let history = machine.user_file().with_file_name(".hello.ini.history");
    std::fs::remove_file(history).unwrap();
    cx.set::<at::times>(4).unwrap();
    milieu.persist().unwrap();
    assert_eq!(ids(&milieu.log().unwrap()), [(1, None, None)]);
    let error = milieu.undo(Some(&log[0]), Strategy::Ours).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("there is no change 1 to take back"),
        "{error}"
    );
    assert!(machine.text().contains("times = 4"));
}

#[test]
fn what_changed_since_is_decided() {
    let machine = Machine::new();
    let (milieu, mut cx) = written(&machine, &[2, 3]);
    let log = milieu.log().unwrap();
    elsewhere(&machine, "/sw/hello/times", "7");
    let error = milieu.undo(Some(&log[1]), Strategy::Refuse).unwrap_err();
    let Error::Store(StoreError::Conflict { conflicts, .. }) = &error else {
        panic!("{error}");
    };
    let values = |it: &Conflict| [it.base.clone(), it.ours.clone(), it.theirs.clone()];
    let expected = ["3", "2", "7"].map(|value| Some(value.to_owned()));
    assert_eq!(values(&conflicts[0]), expected);
    assert!(machine.text().contains("times = 7"));

    let theirs = milieu.undo(Some(&log[1]), Strategy::Theirs).unwrap();
    assert!(theirs.names.is_empty() && theirs.conflicts.len() == 1);
    assert!(machine.text().contains("times = 7"));
    // By a function, which may do what it likes.
    let mut asked = 0;
    let decide = |conflict: &Conflict| {
        asked += 1;
        assert_eq!(values(conflict), expected);
        milieu
            .coordinator()
            .assign("/sw/hello/language", "de", None)
            .unwrap();
        milieu.persist().unwrap();
        assert_eq!(milieu.log().unwrap().len(), 3);
        Resolution::Value(Some("5".into()))
    };
    let undone = milieu.undo(Some(&log[1]), decide).unwrap();
    assert_eq!(
        (asked, undone.names.len(), undone.conflicts.len()),
        (1, 1, 1)
    );
    cx.sync();
    assert_eq!((cx.times, &*cx.language), (5, "de"));
    // What the rules refuse is not written.
    let log = milieu.log().unwrap();
    elsewhere(&machine, "/sw/hello/times", "8");
    let eleven = |_: &Conflict| Resolution::Value(Some("11".into()));
    let error = milieu.undo(log.last(), eleven).unwrap_err();
    assert!(matches!(error, Error::Key(_)), "{error}");
    assert!(machine.text().contains("times = 8"));
}

#[test]
fn what_the_program_has_assigned_since_stays_in_force() {
    let machine = Machine::new();
    let (milieu, mut cx) = written(&machine, &[2, 3]);
    cx.set::<at::times>(9).unwrap();
    milieu.undo(None, Strategy::Refuse).unwrap();
    cx.sync();
    assert_eq!(cx.times, 9);
    assert!(machine.text().contains("times = 2"));
    assert_eq!(milieu.persist().unwrap().names, ["/sw/hello/times"]);
    assert!(machine.text().contains("times = 9"));
}

#[test]
fn what_the_rules_refuse_today_is_not_taken_back() {
    let machine = Machine::new();
    elsewhere(&machine, "/sw/hello/times", "20");
    let (milieu, cx) = {
        let milieu = machine.open();
        milieu.coordinator().remove("/sw/hello/times").unwrap();
        milieu.persist().unwrap();
        let cx = milieu.context::<Settings>().unwrap();
        (milieu, cx)
    };
    let before = machine.text();
    let error = milieu.undo(None, Strategy::Refuse).unwrap_err();
    assert!(error.to_string().contains("range=1-10"), "{error}");
    assert_eq!(machine.text(), before);
    assert!(cx.is_default::<at::times>());
}

#[test]
fn what_was_written_under_an_old_name_comes_back_under_the_new_one() {
    let machine = Machine::new();
    let old = machine.open();
    for language in ["de", "fr"] {
        let coordinator = old.coordinator();
        coordinator
            .assign("/hello/language", language, None)
            .unwrap();
        old.persist().unwrap();
    }
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    assert_eq!(&*cx.language, "fr");
    let undone = milieu.undo(None, Strategy::Refuse).unwrap();
    assert_eq!(undone.names, ["/hello/language"]);
    cx.sync();
    assert_eq!(&*cx.language, "de");
}

#[test]
fn a_watch_does_not_tell_it_and_tells_what_others_write() {
    let machine = Machine::new();
    let (milieu, mut cx) = written(&machine, &[2, 3]);
    let (tell, news) = channel();
    let _watching = milieu.watch(move |news| drop(tell.send(news))).unwrap();
    milieu.undo(None, Strategy::Refuse).unwrap();
    elsewhere(&machine, "/sw/hello/language", "fr");
    let milieu::News::Changed(changed) = news.recv_timeout(Duration::from_secs(20)).unwrap() else {
        panic!("no change");
    };
    let names: Vec<&str> = changed.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["/sw/hello/language"]);
    cx.sync();
    assert_eq!((cx.times, &*cx.language), (2, "fr"));
}

#[test]
fn secrets_are_not_noted_and_not_taken_back() {
    let machine = Machine::new();
    let (milieu, mut cx) = written(&machine, &[2]);
    cx.set::<at::password>("hunter1").unwrap();
    milieu.persist().unwrap();
    let log = milieu.log().unwrap();
    let change = &log[1].record.changes[0];
    assert!(change.secret && change.old.is_none() && change.new.is_none());
    assert!(!format!("{log:?}").contains("hunter"));
    let error = milieu.undo(None, Strategy::Refuse).unwrap_err().to_string();
    assert!(
        error.contains("is secret, so nobody noted what it was"),
        "{error}"
    );
    assert!(machine.text().contains("hunter1"));
}

#[test]
fn without_files_there_is_nothing() {
    let milieu = Milieu::in_memory();
    assert!(milieu.log().unwrap().is_empty());
    let error = milieu.undo(None, Strategy::Refuse).unwrap_err().to_string();
    assert!(error.contains("there is no change to take back"), "{error}");
}
