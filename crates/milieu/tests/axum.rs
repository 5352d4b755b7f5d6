//! A context for each request of a real axum router.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{FromRef, Path, State},
    http::Request,
    routing::get,
};
use milieu::{Context, Contexts, Coordinator, Environment, RequestContext, Text, layer, value};
use tokio::sync::{Barrier, oneshot};
use tower::ServiceExt;

layer! {
    struct Session(String) = "session";
    struct Tamper = "tamper";
    #[inherited]
    struct Tenant(&'static str) = "tenant";
}

#[derive(Environment)]
#[environment(root = "/sw")]
struct Settings {
    #[key("%session%/language", default = "en")]
    language: Text,
    #[key("%language%/hello", default = "Hello")]
    hello: Text,
    #[key("/alarm/%tamper%", default = false)]
    tamper: bool,
}

fn open() -> (Coordinator, Context<Settings>) {
    let coordinator = Coordinator::new();
    for (name, text) in [
        ("/sw/anna/language", "de"),
        ("/sw/de/hello", "Hallo"),
        ("/alarm/active", "true"),
    ] {
        coordinator.assign(name, text, None).unwrap();
    }
    let cx = coordinator.context().unwrap();
    (coordinator, cx)
}

/// What a request finds before it does anything, and then in its session.
async fn page(Path(session): Path<String>, mut cx: RequestContext<Settings>) -> String {
    let before = format!("{:?}", cx.layers());
    let mut cx = cx.enter(Session(session));
    // The request is elsewhere for a moment, perhaps in another thread.
    tokio::task::yield_now().await;
    let cx = cx.enter(value::<at::language>());
    let tamper = if cx.tamper { " tamper!!!" } else { "" };
    format!("{before} {} {}{tamper}", cx.language, cx.hello)
}

fn router(cx: Context<Settings>) -> Router {
    Router::new()
        .route("/{session}", get(page))
        .with_state(Contexts::new(cx))
}

async fn ask(router: &Router, path: &str) -> String {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let body = to_bytes(response.into_body(), 1 << 16).await.unwrap();
    String::from_utf8(body.into()).unwrap()
}

#[tokio::test]
async fn layers_do_not_leak_between_requests() {
    let (_coordinator, cx) = open();
    let router = router(cx);
    for _ in 0..3 {
        assert_eq!(ask(&router, "/anna").await, "[] de Hallo");
        assert_eq!(ask(&router, "/otto").await, "[] en Hello");
    }
}

#[tokio::test]
async fn a_request_sees_what_was_activated_and_assigned_before_it() {
    let (coordinator, cx) = open();
    let router = router(cx);
    let mut sensor = coordinator.context::<Settings>().unwrap();
    assert_eq!(ask(&router, "/anna").await, "[] de Hallo");
    sensor.activate(Tamper).unwrap();
    sensor.with(Session("otto".into()), |cx| {
        cx.set::<at::language>("de").unwrap()
    });
    assert_eq!(
        ask(&router, "/otto").await,
        r#"[("tamper", "active")] de Hallo tamper!!!"#
    );
    sensor.deactivate::<Tamper>().unwrap();
    assert_eq!(ask(&router, "/anna").await, "[] de Hallo");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_at_once_have_a_context_each() {
    let (_coordinator, cx) = open();
    let router = router(cx);
    let tasks: Vec<_> = (0..64)
        .map(|i| {
            let router = router.clone();
            let (path, expected) = match i % 2 {
                0 => ("/anna", "[] de Hallo"),
                _ => ("/otto", "[] en Hello"),
            };
            tokio::spawn(async move { assert_eq!(ask(&router, path).await, expected) })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// State with more in it than the contexts.
#[derive(Clone)]
struct Site {
    contexts: Contexts<Settings>,
    entered: Arc<Barrier>,
    dropped: Arc<Mutex<Option<oneshot::Sender<()>>>>,
}

impl FromRef<Site> for Contexts<Settings> {
    fn from_ref(site: &Site) -> Self {
        site.contexts.clone()
    }
}

/// Tells when the request that has it is over.
struct Tell(Option<oneshot::Sender<()>>);
impl Drop for Tell {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            let _ = sender.send(());
        }
    }
}

async fn endless(State(site): State<Site>, mut cx: RequestContext<Settings>) -> String {
    let _tell = Tell(site.dropped.lock().unwrap().take());
    let cx = cx.enter(Session("anna".into()));
    site.entered.wait().await;
    std::future::pending::<()>().await;
    cx.language.to_string()
}

async fn own(cx: RequestContext<Settings>) -> String {
    format!("{:?} {}", cx.layers(), cx.language)
}

#[tokio::test]
async fn a_cancelled_request_leaves_nothing() {
    let (coordinator, cx) = open();
    let (sender, dropped) = oneshot::channel();
    let site = Site {
        contexts: Contexts::new(cx),
        entered: Arc::new(Barrier::new(2)),
        dropped: Arc::new(Mutex::new(Some(sender))),
    };
    let router = Router::new()
        .route("/endless", get(endless))
        .route("/own", get(own))
        .with_state(site.clone());
    let request = tokio::spawn({
        let router = router.clone();
        async move { ask(&router, "/endless").await }
    });
    // It is in its session now; its client goes away.
    site.entered.wait().await;
    request.abort();
    let limit = Duration::from_secs(60);
    tokio::time::timeout(limit, dropped).await.unwrap().unwrap();
    assert_eq!(ask(&router, "/own").await, "[] en");
    assert!(
        coordinator
            .context::<Settings>()
            .unwrap()
            .layers()
            .is_empty()
    );
}

#[tokio::test]
async fn requests_have_the_inherited_layers_of_the_context_they_are_like() {
    let (_coordinator, mut cx) = open();
    let contexts = {
        let cx = cx.enter((Tenant("north"), Session("anna".into())));
        Contexts::new(cx.fork())
    };
    let router = Router::new().route("/", get(own)).with_state(contexts);
    assert_eq!(ask(&router, "/").await, r#"[("tenant", "north")] en"#);
}

#[tokio::test]
async fn a_handler_that_panics_leaves_contexts_in_order() {
    let (_coordinator, cx) = open();
    async fn broken(mut cx: RequestContext<Settings>) -> String {
        let _cx = cx.enter(Session("anna".into()));
        panic!("a broken handler");
    }
    let router = Router::new()
        .route("/broken", get(broken))
        .route("/own", get(own))
        .with_state(Contexts::new(cx));
    let request = tokio::spawn({
        let router = router.clone();
        async move { ask(&router, "/broken").await }
    });
    assert!(request.await.unwrap_err().is_panic());
    assert_eq!(ask(&router, "/own").await, "[] en");
}
