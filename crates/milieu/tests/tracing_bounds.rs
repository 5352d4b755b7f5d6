//! More layers than get fields of their own. In a process of its own, since
//! fields stay for the rest of it.

use std::{
    borrow::Cow,
    fmt::Debug,
    sync::{Arc, Mutex},
};

use milieu::{Coordinator, Environment, Layer, Traced, context::Named};
use tracing::{
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::with_default,
};

#[derive(Environment)]
struct Settings {
    verbose: bool,
}

/// Counts descriptions, and keeps the last span.
#[derive(Clone, Default)]
struct Count {
    sites: Arc<Mutex<usize>>,
    last: Arc<Mutex<Vec<(String, String)>>>,
}

impl Visit for Count {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let pair = (field.name().to_owned(), format!("{value:?}"));
        self.last.lock().unwrap().push(pair);
    }
}

impl tracing::Subscriber for Count {
    fn register_callsite(
        &self,
        _: &'static tracing::Metadata<'static>,
    ) -> tracing::subscriber::Interest {
        *self.sites.lock().unwrap() += 1;
        tracing::subscriber::Interest::always()
    }
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        self.last.lock().unwrap().clear();
        attributes.record(&mut self.clone());
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &tracing::Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// As many layers as numbers, each a type.
struct Numbered<const N: usize>;
macro_rules! numbered {
    ($($n:literal)*) => {
        $(impl Layer for Numbered<$n> {
            const ID: &'static str = concat!("typed", $n);
            fn value(&self) -> Cow<'_, str> { "on".into() }
        })*
        const TYPED: usize = [$($n),*].len();
        fn enter_each(cx: &mut milieu::Context<Settings>) {
            $(drop(cx.enter_traced(Numbered::<$n>));)*
        }
    };
}
numbered!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29
          30 31 32 33 34 35 36 37 38 39);

#[test]
fn what_is_kept_for_layers_is_bounded_and_no_layer_is_lost() {
    let mut cx = Coordinator::new().context::<Settings>().unwrap();
    let count = Count::default();
    with_default(count.clone(), || {
        for i in 0..100 {
            let (id, value) = (format!("layer{i}"), format!("value {i}"));
            let cx = cx.enter(Named(&id, &value));
            drop(cx.span());
            let last = count.last.lock().unwrap();
            let [(field, shown)] = &last[..] else {
                panic!("one field: {last:?}");
            };
            if i < 31 {
                assert_eq!((field, shown), (&id, &format!("{value:?}")));
            } else {
                assert_eq!(field, "other layers");
                assert_eq!(shown, &format!("{id}={value:?}"));
            }
        }
        assert_eq!(*count.sites.lock().unwrap(), 31);
        // A name that no specification can give is just one more.
        drop(cx.enter(Named("other layers", "x")).span());
        let last = count.last.lock().unwrap().clone();
        assert_eq!(last, [("other layers".into(), "other layers=\"x\"".into())]);
        enter_each(&mut cx);
        const { assert!(TYPED > 32) };
        assert_eq!(*count.sites.lock().unwrap(), 31 + 31 + 1);
        let last = count.last.lock().unwrap().clone();
        assert_eq!(last, [("other layers".into(), "typed39=\"on\"".into())]);
    });
}
