//! Layers as spans and fields, as subscribers see them.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex},
};

use milieu::{Context, Coordinator, Environment, Text, Traced, layer};
use tracing::{
    Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id},
    subscriber::with_default,
};
use tracing_subscriber::{
    Registry,
    layer::{Context as Seen, SubscriberExt},
    registry::LookupSpan,
};

layer! {
    struct Session(&'static str) = "session";
    struct Language(&'static str) = "language";
}

#[derive(Environment)]
struct Settings {
    #[key("/sw/%session%/language", default = "en")]
    language: Text,
}

fn open() -> Context<Settings> {
    let coordinator = Coordinator::new();
    coordinator.assign("/sw/anna/language", "de", None).unwrap();
    coordinator.context().unwrap()
}

type Fields = BTreeMap<&'static str, String>;

/// Spans as they were made, `name{field=value}`, and those around each event.
#[derive(Clone, Default)]
struct Log {
    spans: Arc<Mutex<Vec<String>>>,
    events: Arc<Mutex<Vec<Vec<String>>>>,
}

struct Collect(Fields);
impl Visit for Collect {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.into());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> tracing_subscriber::Layer<S> for Log {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, seen: Seen<'_, S>) {
        let mut fields = Collect(Fields::new());
        attributes.record(&mut fields);
        let metadata = attributes.metadata();
        assert_eq!(metadata.target(), "milieu");
        let fields: Vec<_> = fields.0.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let shown = format!("{}{{{}}}", metadata.name(), fields.join(" "));
        seen.span(id)
            .unwrap()
            .extensions_mut()
            .insert(shown.clone());
        self.spans.lock().unwrap().push(shown);
    }

    fn on_event(&self, event: &tracing::Event<'_>, seen: Seen<'_, S>) {
        let around = seen.event_scope(event).into_iter().flatten();
        let shown = around.map(|span| span.extensions().get::<String>().unwrap().clone());
        self.events.lock().unwrap().push(shown.collect());
    }
}

/// Runs with a subscriber of its own.
fn logged(run: impl FnOnce()) -> Log {
    let log = Log::default();
    with_default(Registry::default().with(log.clone()), run);
    log
}

#[test]
fn an_entered_layer_is_a_span_around_what_happens_in_it() {
    let mut cx = open();
    let log = logged(|| {
        {
            let mut cx = cx.enter_traced(Session("anna"));
            assert_eq!(cx.language, "de");
            tracing::info!("in a session");
            let cx = cx.enter_traced(Language("de"));
            tracing::info!("in a language too");
            assert_eq!(cx.layers().len(), 2);
        }
        tracing::info!("outside");
    });
    assert_eq!(cx.language, "en");
    assert_eq!(
        *log.events.lock().unwrap(),
        [
            vec!["session{session=anna}".to_owned()],
            vec![
                "language{language=de}".into(),
                "session{session=anna}".into()
            ],
            vec![],
        ]
    );
}

#[test]
fn an_inactive_layer_has_no_value() {
    let mut cx = open();
    let log = logged(|| drop(cx.enter_traced(Session(""))));
    assert_eq!(*log.spans.lock().unwrap(), ["session{}"]);
}

#[test]
fn a_panic_leaves_layer_and_span() {
    let mut cx = open();
    let log = logged(|| {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _cx = cx.enter_traced(Session("anna"));
            panic!("inside");
        }));
        assert!(result.is_err());
        tracing::info!("outside");
    });
    assert!(cx.layers().is_empty());
    assert_eq!(*log.events.lock().unwrap(), [Vec::<String>::new()]);
}

#[test]
fn a_context_is_a_span_with_a_field_for_each_active_layer() {
    let mut cx = open();
    let log = logged(|| {
        drop(cx.span());
        cx.with((Session("anna"), Language("de")), |cx| drop(cx.span()));
        cx.with(Session("otto"), |cx| drop(cx.span()));
        cx.activate(Language("fr")).unwrap();
        let span = cx.span();
        let _entered = span.enter();
        tracing::info!("globally");
    });
    let expected = [
        "context{}",
        "context{language=de session=anna}",
        "context{session=otto}",
        "context{language=fr}",
    ];
    assert_eq!(*log.spans.lock().unwrap(), expected);
    assert_eq!(*log.events.lock().unwrap(), [[expected[3]]]);
}

#[test]
fn a_text_subscriber_prints_layers_with_each_event() {
    #[derive(Clone, Default)]
    struct Text(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Text {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let text = Text::default();
    let writer = text.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .without_time()
        .with_ansi(false)
        .with_target(false)
        .finish();
    let mut cx = open();
    with_default(subscriber, || {
        let mut cx = cx.enter_traced(Session("anna"));
        let cx = cx.enter(Language("de"));
        let span = cx.span();
        span.in_scope(|| tracing::info!("hello"));
    });
    let text = String::from_utf8(text.0.lock().unwrap().clone()).unwrap();
    let session = "session{session=\"anna\"}:context{";
    assert!(
        text.contains(session) && text.contains("language=\"de\""),
        "{text}"
    );
}

#[test]
fn a_subscriber_that_does_not_want_the_spans_gets_none() {
    let filter =
        tracing_subscriber::filter::Targets::new().with_target("own", tracing::Level::INFO);
    let log = Log::default();
    let mut cx = open();
    with_default(Registry::default().with(filter).with(log.clone()), || {
        let cx = cx.enter_traced(Session("anna"));
        assert!(cx.span().is_none());
        assert_eq!(cx.language, "de");
        tracing::info!(target: "own", "wanted");
    });
    assert!(log.spans.lock().unwrap().is_empty());
    assert_eq!(log.events.lock().unwrap().len(), 1);
}
