//! What is secret is nowhere in what a program is told or prints.

use std::sync::mpsc::channel;
use std::time::Duration;

use crate::support::{self, Machine};
use milieu::{
    Environment, Error, Milieu, News, Text,
    keys::{Name, Namespace},
    store::{Change, Conflict, Resolution, Strategy},
};

#[derive(Environment)]
#[environment(root = "/sw/mail")]
struct Settings {
    #[key(secret, check/length = "0-12")]
    password: Text,
}

mod open {
    use milieu::{Environment, Text};

    #[derive(Environment)]
    #[environment(root = "/sw/mail")]
    pub struct Open {
        #[key(default = "en")]
        pub language: Text,
    }
}

const PASSWORD: &str = "/sw/mail/password";

fn elsewhere(machine: &Machine, value: &str) {
    let change = Change::set(Name::parse(PASSWORD).unwrap(), value);
    let mut store = machine.store();
    store
        .commit(Namespace::User, &[change], Strategy::Ours)
        .unwrap();
}

fn assert_hidden(shown: &str) {
    assert!(!shown.contains("hunter"), "{shown}");
}

fn assert_error_hidden(error: &Error) {
    assert_hidden(&format!("{error} {error:?}"));
}

#[test]
fn conflicts_show_none() {
    let machine = Machine::new().user("/sw/mail/password = hunter1\n");
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    elsewhere(&machine, "hunter2");
    cx.set::<at::password>("hunter3").unwrap();
    let error = milieu.persist().unwrap_err();
    assert_error_hidden(&error);
    assert!(error.to_string().contains("(secret)"), "{error}");
    let too_long = |_: &Conflict| Resolution::Value(Some("hunter".repeat(3)));
    let error = milieu.persist_with(&["/"], too_long).unwrap_err();
    assert_error_hidden(&error);
    assert!(error.to_string().contains("length=0-12"), "{error}");
    let persisted = milieu.persist_with(&["/"], Strategy::Ours).unwrap();
    assert_eq!(persisted.conflicts[0].theirs.as_deref(), Some("hunter2"));
    assert_hidden(&format!("{persisted:?}"));
    assert!(machine.text().contains("hunter3"));
}

#[test]
fn broken_files_show_no_line_where_there_may_be_one() {
    let broken = "[/sw/mail]\npassword hunter2\n";
    let place = "hello.ini";
    // Nobody has said yet what is secret.
    let machine = Machine::new().user(broken);
    let start = Milieu::builder(support::APP).locations(machine.locations());
    let error = start.start().map(drop).unwrap_err();
    assert_error_hidden(&error);
    assert!(error.to_string().contains("hello.ini:2:1"), "{error}");
    let error = machine
        .open_with::<Settings>(&[], &[])
        .map(drop)
        .unwrap_err();
    assert_error_hidden(&error);
    // There are none.
    let error = machine
        .open_with::<open::Open>(&[], &[])
        .map(drop)
        .unwrap_err();
    assert!(
        error.to_string().contains("2 | password hunter2"),
        "{error}"
    );
    assert!(error.to_string().contains(place), "{error}");

    let machine = Machine::new().user("/sw/mail/password = hunter1\n");
    let milieu = machine.open();
    let mut cx = milieu.context::<Settings>().unwrap();
    cx.set::<at::password>("hunter3").unwrap();
    let _machine = machine.user(broken);
    assert_error_hidden(&milieu.persist().unwrap_err());
    assert_error_hidden(&milieu.watch(drop).map(drop).unwrap_err());
}

#[test]
fn news_before_the_first_environment_shows_no_line() {
    let machine = Machine::new().user("/sw/mail/password = hunter1\n");
    let milieu = machine.open();
    let (tell, news) = channel();
    let _watching = milieu.watch(move |news| drop(tell.send(news))).unwrap();
    let _machine = machine.user("[/sw/mail]\npassword hunter2\n");
    let broken = news.recv_timeout(Duration::from_secs(20)).unwrap();
    assert!(matches!(broken, News::File(_)), "{broken:?}");
    assert_hidden(&format!("{broken:?}"));
}

#[test]
fn news_shows_none() {
    let machine = Machine::new().user("/sw/mail/password = hunter1\n");
    let milieu = machine.open();
    let _cx = milieu.context::<Settings>().unwrap();
    let (tell, news) = channel();
    let _watching = milieu.watch(move |news| drop(tell.send(news))).unwrap();
    let next = || news.recv_timeout(Duration::from_secs(20)).unwrap();
    elsewhere(&machine, "hunter2");
    let changed = next();
    assert_hidden(&format!("{changed:?}"));
    let News::Changed(changed) = changed else {
        panic!("{changed:?}");
    };
    assert!(changed[0].secret);
    assert_eq!(changed[0].after.as_ref().unwrap().text, "hunter2");
    elsewhere(&machine, "hunter2hunter2");
    let refused = next();
    assert!(matches!(refused, News::Refused(_)), "{refused:?}");
    assert_hidden(&format!("{refused:?}"));
    let _machine = machine.user("[/sw/mail]\npassword hunter2\n");
    let broken = next();
    assert!(matches!(broken, News::File(_)), "{broken:?}");
    assert_hidden(&format!("{broken:?}"));
}
