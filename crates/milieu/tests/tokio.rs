//! Tasks with a context of their own.

use milieu::{Captured, Context, Coordinator, Environment, Text, layer, spawn};
use tokio::sync::{mpsc, oneshot};

layer! {
    struct Session(String) = "session";
    struct BatteryLow = "battery_low";
    #[inherited]
    struct Tenant(&'static str) = "tenant";
}

#[derive(Environment)]
struct Settings {
    #[key("/sw/%tenant%/%session%/language", default = "en")]
    language: Text,
    #[key("/algorithm/%battery_low%/accuracy", default = 10)]
    accuracy: i32,
}

fn open() -> Context<Settings> {
    let coordinator = Coordinator::new();
    for (name, text) in [
        ("/sw/north/anna/language", "de"),
        ("/sw/north/%/language", "it"),
        ("/algorithm/active/accuracy", "3"),
    ] {
        coordinator.assign(name, text, None).unwrap();
    }
    coordinator.context().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spawned_task_has_a_fork_with_the_layers_that_say_so() {
    let mut cx = open();
    let cx = cx.enter((Tenant("north"), Session("anna".into())));
    assert_eq!(cx.language, "de");
    let task = spawn(&cx, async move |mut cx: Context<Settings>| {
        let found = (cx.language.to_string(), cx.identity());
        let own = cx.enter(Session("anna".into()));
        tokio::task::yield_now().await;
        (found, own.language.to_string())
    });
    let ((language, identity), own) = task.await.unwrap();
    assert_eq!((language.as_str(), own.as_str()), ("it", "de"));
    assert_ne!(identity, cx.identity());
    // What the task entered stays there.
    assert_eq!(cx.language, "de");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_sleeps_until_there_is_news() {
    let mut cx = open();
    let (ready, started) = oneshot::channel();
    let task = spawn(&cx, async move |mut cx: Context<Settings>| {
        ready.send(()).unwrap();
        cx.changed().await;
        let before = cx.accuracy;
        cx.sync();
        (before, cx.accuracy)
    });
    started.await.unwrap();
    cx.activate(BatteryLow).unwrap();
    // Between `changed` and `sync` nothing has moved.
    assert_eq!(task.await.unwrap(), (10, 3));
}

#[tokio::test]
async fn a_task_that_is_cancelled_takes_its_layers_with_it() {
    let mut cx = open();
    let (ready, entered) = oneshot::channel();
    let task = spawn(&cx, async move |mut cx: Context<Settings>| {
        let mut cx = cx.enter(Session("anna".into()));
        cx.set::<at::language>("fr").unwrap();
        ready.send(()).unwrap();
        cx.changed().await;
    });
    entered.await.unwrap();
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    cx.sync();
    assert!(cx.layers().is_empty());
    assert_eq!(cx.language, "en");
    // What it has assigned stays, under its contextual name.
    assert_eq!(cx.enter(Session("anna".into())).language, "fr");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_captured_context_goes_through_a_channel() {
    let mut cx = open();
    let (sender, mut receiver) = mpsc::channel::<(Captured, oneshot::Sender<String>)>(1);
    spawn(&cx, async move |mut cx: Context<Settings>| {
        while let Some((captured, answer)) = receiver.recv().await {
            let cx = cx.enter(&captured);
            tokio::task::yield_now().await;
            answer.send(cx.language.to_string()).unwrap();
        }
    });
    for (session, expected) in [("anna", "de"), ("otto", "en")] {
        let cx = cx.enter((Tenant("north"), Session(session.into())));
        let (answer, answered) = oneshot::channel();
        sender.send((cx.capture(), answer)).await.unwrap();
        assert_eq!(answered.await.unwrap(), expected);
    }
}
