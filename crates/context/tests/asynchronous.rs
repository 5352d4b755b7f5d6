//! A context travels with its task: across `await`, between threads, and by a
//! channel to another task.

// Tasks on several threads go through the code that the other tests go through;
// an interpreter would take very long for them.
#![cfg(not(miri))]

mod support;

use std::{
    future::{Future, pending},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context as TaskContext, Poll, Wake, Waker},
    time::Duration,
};

use milieu_context::{
    Captured, Changed, Context, ContextOptions, Coordinator, Entered, Registration, SingleThread,
    value,
};
use support::*;
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    task::yield_now,
    time::timeout,
};

environment! { mod env;
    language: Text = "/sw/pi/%session%/language" { "default" = "en" };
    hello: Text = "/sw/pi/%language%/hello" { "default" = "Hello" };
    quota: i32 = "/sw/%tenant%/quota" { "default" = "1" };
    turn: i32 = "/turn";
}
use env::{Environment, at};

type Cx = Context<Environment>;

fn open() -> (Coordinator, Cx) {
    let coordinator = coordinator(&[
        ("/sw/pi/anna/language", "de"),
        ("/sw/pi/otto/language", "it"),
        ("/sw/pi/de/hello", "Hallo"),
        ("/sw/pi/it/hello", "Ciao"),
        ("/sw/acme/quota", "9"),
    ]);
    let cx = coordinator.context().unwrap();
    (coordinator, cx)
}

/// Fails instead of hanging where something never comes.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    let long = Duration::from_secs(60);
    timeout(long, future).await.expect("it comes")
}

#[test]
fn everything_but_a_hold_goes_to_other_threads() {
    fn is_send<T: Send>() {}
    fn is_sync<T: Sync>() {}
    is_send::<Cx>();
    is_sync::<Cx>();
    is_send::<Entered<'_, Environment>>();
    is_sync::<Entered<'_, Environment>>();
    is_send::<Changed<'_>>();
    is_send::<Captured>();
    is_sync::<Captured>();
    is_send::<Coordinator>();
    is_sync::<Coordinator>();
    is_send::<Registration>();
    is_sync::<Registration>();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn layers_stay_with_their_task_across_await() {
    let (_coordinator, cx) = open();
    let tasks = ["anna", "otto", "eve"].map(|session| {
        let mut cx = cx.fork();
        tokio::spawn(async move {
            let expected = match session {
                "anna" => "de",
                "otto" => "it",
                _ => "en",
            };
            for _ in 0..50 {
                {
                    let mut cx = cx.enter(Session(session));
                    yield_now().await;
                    assert_eq!(cx.language, expected);
                    let cx = cx.enter(value::<at::language>());
                    yield_now().await;
                    let hello = format!("/sw/pi/{expected}/hello");
                    assert_eq!(cx.name::<at::hello>(), hello);
                }
                yield_now().await;
                assert_eq!((cx.language.as_str(), cx.layers().len()), ("en", 0));
            }
        })
    });
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test]
async fn an_asynchronous_block_is_left_by_return_error_and_cancellation() {
    let (_coordinator, mut cx) = open();
    let length = cx.with_async(Session("anna"), async |cx| {
        yield_now().await;
        cx.with_async(value::<at::language>(), async |cx| {
            yield_now().await;
            cx.hello.len()
        })
        .await
    });
    assert_eq!(length.await, "Hallo".len());
    assert_eq!(cx.language, "en");

    let failed: Result<(), std::num::ParseIntError> = cx
        .with_async(Session("anna"), async |cx| {
            yield_now().await;
            cx.language.parse::<i32>().map(|_| ())
        })
        .await;
    assert!(failed.is_err());
    assert_eq!(cx.language, "en");

    let (entered, inside) = oneshot::channel();
    let block = cx.with_async(Session("anna"), async |cx| {
        entered.send(cx.language.to_string()).unwrap();
        pending::<()>().await;
    });
    tokio::select! {
        () = block => unreachable!("it never ends by itself"),
        language = inside => assert_eq!(language.unwrap(), "de"),
    }
    assert_eq!((cx.language.as_str(), cx.layers().len()), ("en", 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_is_aborted_leaves_its_layers() {
    let (_coordinator, cx) = open();
    let shared = Arc::new(Mutex::new(cx));
    let theirs = shared.clone();
    let (entered, inside) = oneshot::channel();
    let task = tokio::spawn(async move {
        let mut cx = theirs.lock().await;
        let mut inner = cx.enter(Session("anna"));
        inner.set::<at::language>("fr").unwrap();
        entered.send(()).unwrap();
        pending::<()>().await;
    });
    soon(inside).await.unwrap();
    task.abort();
    assert!(soon(task).await.unwrap_err().is_cancelled());
    let mut cx = shared.lock().await;
    assert_eq!((cx.language.as_str(), cx.layers().len()), ("en", 0));
    // What it assigned stays.
    cx.with(Session("anna"), |cx| assert_eq!(cx.language, "fr"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spawned_task_gets_the_layers_that_say_so() {
    let (_coordinator, mut cx) = open();
    let (go, gate) = oneshot::channel::<()>();
    let task = {
        let cx = cx.enter((Session("anna"), Tenant("acme")));
        let mut fork = cx.fork();
        assert_eq!((fork.language.as_str(), fork.quota), ("en", 9));
        tokio::spawn(async move {
            gate.await.unwrap();
            assert_eq!((fork.language.as_str(), fork.quota), ("en", 9));
            assert_eq!(fork.layer::<Tenant>().as_deref(), Some("acme"));
            fork.with(Tenant(""), |fork| assert_eq!(fork.quota, 1));
            fork.sync();
            let second = fork.fork();
            drop(fork);
            (second.quota, second.turn)
        })
    };
    // Those who forked it may leave, and end.
    assert_eq!((cx.quota, cx.layers().len()), (1, 0));
    cx.set::<at::turn>(4).unwrap();
    drop(cx);
    go.send(()).unwrap();
    assert_eq!(soon(task).await.unwrap(), (9, 4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn captured_layers_are_sent_and_entered_elsewhere() {
    let (coordinator, mut cx) = open();
    let (jobs, mut queue) = mpsc::channel::<(Captured, oneshot::Sender<String>)>(4);
    let mut worker: Cx = coordinator.context().unwrap();
    let working = tokio::spawn(async move {
        while let Some((layers, reply)) = queue.recv().await {
            let worker = worker.enter(layers);
            yield_now().await;
            reply
                .send(format!("{} {}", worker.hello, worker.quota))
                .unwrap();
        }
        worker.layers().len()
    });
    for (session, expected) in [("anna", "Hallo 9"), ("otto", "Ciao 9"), ("", "Hello 9")] {
        let layers = {
            let cx = cx.enter((Session(session), value::<at::language>(), Tenant("acme")));
            cx.capture()
        };
        let (reply, answer) = oneshot::channel();
        jobs.send((layers, reply)).await.unwrap();
        assert_eq!(soon(answer).await.unwrap(), expected);
    }
    drop(jobs);
    assert_eq!(soon(working).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_wakes_the_task_that_waits_for_it() {
    let (coordinator, mut cx) = open();
    let mut waiting: Cx = coordinator.context().unwrap();
    let task = tokio::spawn(async move {
        waiting.changed().await;
        waiting.sync();
        waiting.turn
    });
    cx.set::<at::turn>(1).unwrap();
    assert_eq!(soon(task).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_wake_up_is_lost_between_two_that_take_turns() {
    let (coordinator, _) = open();
    let rounds = 500;
    let players = [0, 1].map(|me| {
        let mut cx: Cx = coordinator.context().unwrap();
        tokio::spawn(async move {
            while cx.turn < rounds {
                if cx.turn % 2 == me {
                    let next = cx.turn + 1;
                    cx.set::<at::turn>(next).unwrap();
                } else {
                    cx.changed().await;
                    cx.sync();
                }
            }
            cx.turn
        })
    });
    for player in players {
        assert_eq!(soon(player).await.unwrap(), rounds);
    }
}

#[tokio::test]
async fn what_is_published_during_a_hold_wakes_at_its_end() {
    let (coordinator, mut cx) = open();
    let mut waiting: Cx = coordinator.context().unwrap();
    {
        let held = coordinator.require_lock();
        cx.set::<at::turn>(1).unwrap();
        let mut changed = pin!(waiting.changed());
        let mut task = TaskContext::from_waker(Waker::noop());
        assert!(changed.as_mut().poll(&mut task).is_pending());
        drop(held);
        assert!(changed.as_mut().poll(&mut task).is_ready());
    }
    soon(waiting.changed()).await;
    waiting.sync();
    assert_eq!(waiting.turn, 1);
}

#[tokio::test]
async fn waiting_may_be_given_up_and_begun_again() {
    let (coordinator, mut cx) = open();
    let mut waiting: Cx = coordinator.context().unwrap();
    for round in 0..100 {
        tokio::select! {
            biased;
            () = waiting.changed() => unreachable!("nothing was published"),
            () = yield_now() => {}
        }
        if round % 10 == 9 {
            cx.set::<at::turn>(round).unwrap();
            soon(waiting.changed()).await;
            waiting.sync();
            assert_eq!(waiting.turn, round);
        }
    }
}

/// Counts how often it is woken.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn only_the_last_waker_is_woken_and_none_is_kept() {
    let (coordinator, mut cx) = open();
    let waiting: Cx = coordinator.context().unwrap();
    let counts = [(); 2].map(|()| Arc::new(Count::default()));
    let poll = |changed: &mut std::pin::Pin<&mut Changed<'_>>, count: &Arc<Count>| {
        let waker = Waker::from(count.clone());
        changed.as_mut().poll(&mut TaskContext::from_waker(&waker))
    };
    {
        let mut changed = pin!(waiting.changed());
        // The task moves, and polls with another waker.
        for count in &counts {
            assert_eq!(poll(&mut changed, count), Poll::Pending);
        }
        assert_eq!(counts.each_ref().map(Arc::strong_count), [1, 2]);
        let mut given_up = Box::pin(waiting.changed());
        assert_eq!(poll(&mut given_up.as_mut(), &counts[0]), Poll::Pending);
        drop(given_up);
        assert_eq!(Arc::strong_count(&counts[0]), 1, "nothing is left behind");
        cx.set::<at::turn>(1).unwrap();
        let woken = || {
            counts
                .each_ref()
                .map(|count| count.0.load(Ordering::SeqCst))
        };
        assert_eq!(woken(), [0, 1]);
        cx.set::<at::turn>(2).unwrap();
        assert_eq!(woken(), [0, 1], "once is enough");
        assert_eq!(poll(&mut changed, &counts[0]), Poll::Ready(()));
    }
    assert_eq!(counts.each_ref().map(Arc::strong_count), [1, 1]);
}

#[test]
fn a_waker_that_is_replaced_may_drop_its_task() {
    /// The last waker of a task that has given up: it takes the task along,
    /// which in turn gives up waiting.
    struct Last(Coordinator);
    impl Wake for Last {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Last {
        fn drop(&mut self) {
            self.0.assign("/turn", "3", None).unwrap();
        }
    }
    let (coordinator, _) = open();
    let waiting: Cx = coordinator.context().unwrap();
    let mut changed = pin!(waiting.changed());
    let waker = Waker::from(Arc::new(Last(coordinator.clone())));
    let mut poll = |waker: &Waker| changed.as_mut().poll(&mut TaskContext::from_waker(waker));
    assert!(poll(&waker).is_pending());
    drop(waker);
    assert!(poll(Waker::noop()).is_pending());
    assert!(waiting.has_news());
}

#[test]
fn a_context_that_is_alone_waits_for_ever() {
    let (coordinator, mut cx) = open();
    let options = ContextOptions::new();
    let alone = coordinator
        .context_with::<Environment, SingleThread>(options)
        .unwrap();
    cx.set::<at::turn>(1).unwrap();
    // It has no news to synchronize, however much the others publish.
    let mut task = TaskContext::from_waker(Waker::noop());
    assert!(pin!(alone.changed()).poll(&mut task).is_pending());
}
