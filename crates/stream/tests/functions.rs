//! What functions say of failures, and what operators of a program compute by
//! expressions that flows hand to them.

use milieu_diagnostics::{Diagnostic, Source};
use milieu_stream::language::Language;
use milieu_stream::operators::{self, Computation};
use milieu_stream::{
    Arguments, Catalogue, Declared, Definition, Delivery, Failed, Fate, Flow, Inputs, Kind,
    Operator, Output, Reason, Streams, Subscriber, SystemClock,
};
use milieu_transfer::{Event, Origin, Value};

/// Lets those events go on for which an expression makes more than it has before.
struct Most {
    of: Computation,
    most: f64,
}

fn most(arguments: &Arguments<'_>) -> Result<Box<dyn Operator>, Diagnostic> {
    let of = arguments.computation("of")?;
    Ok(Box::new(Most {
        of: of.expect("it has a default"),
        most: f64::NEG_INFINITY,
    }))
}

impl Operator for Most {
    fn event(&mut self, _: usize, event: &Event, _: &mut Output<'_>) -> Fate {
        match self.of.value(event) {
            Ok(Value::Double(number)) if number > self.most => {
                self.most = number;
                Fate::Passed
            }
            Ok(_) => Fate::Dropped(Reason::Filtered),
            Err(reason) => Fate::Dropped(reason),
        }
    }

    fn fault(&self) -> Option<&str> {
        self.of.fault()
    }
}

static MOST: Definition = Definition {
    name: "most",
    summary: "",
    inputs: Inputs::One,
    parameters: &[Declared {
        name: "of",
        kind: Kind::Expression,
        positional: true,
        default: Some("value"),
        summary: "",
    }],
    make: most,
};

fn streams() -> Streams {
    let known = operators::catalogue();
    let mut catalogue = Catalogue::new(known.iter().chain([&MOST]));
    let functions = catalogue.functions_mut();
    functions.value_of_event("root", |event| {
        let number = event.get::<f64>().copied().ok_or(Reason::Type)?;
        match number < 0.0 {
            true => Err(Failed::new(format!("{number} has no root"))),
            false => Ok(number.sqrt()),
        }
    });
    functions.tries_to_transform_event("twice", |event, out| match event.get::<f64>() {
        Some(number) if *number > 0.0 => {
            out.emit(event.time(), None, number * 2.0);
            Ok(Fate::Used)
        }
        Some(_) => Err(Failed::new("it is too small")),
        None => Err(Reason::Type.into()),
    });
    Streams::new(catalogue, SystemClock, Origin("here".into()), 1)
}

fn flow(streams: &Streams, text: &str) -> Flow {
    let flow = Language::Pipeline.flow(&Source::new("flow", text), streams.catalogue());
    flow.expect("a good flow")
}

fn subscribe(streams: &Streams, text: &str) -> Subscriber {
    let subscribed = streams.subscribe(&flow(streams, text), Delivery::default());
    subscribed.expect("a good flow")
}

fn numbers(subscriber: &mut Subscriber) -> Vec<f64> {
    std::iter::from_fn(|| subscriber.try_next())
        .map(|event| *event.get::<f64>().expect("a number"))
        .collect()
}

/// What the operator of this name says of the last event that it could not compute
/// with.
fn fault(streams: &Streams, kind: &str) -> Option<String> {
    let view = streams.view().expect("nothing runs here");
    let mut nodes = view.nodes.into_iter();
    nodes.find(|node| *node.kind == *kind)?.fault
}

#[test]
fn the_text_of_a_failure_is_seen_with_the_operator_that_has_asked() {
    let streams = streams();
    let publisher = streams.publisher::<f64>("/n").expect("it is free");
    let _filter = subscribe(&streams, "/n | filter $root");
    let mut doubled = subscribe(&streams, "/n | transform $twice");
    let _most = subscribe(&streams, "/n | most $root");
    let _change = subscribe(&streams, "/n | change of=$root");
    let _ = publisher.publish(4.0);
    assert_eq!(fault(&streams, "most"), None);
    let _ = publisher.publish(-4.0);
    assert_eq!(numbers(&mut doubled), [8.0]);
    let root = Some("`$root` has failed: -4 has no root".to_owned());
    assert_eq!(fault(&streams, "most"), root);
    assert_eq!(fault(&streams, "change"), root);
    let twice = Some("`$twice` has failed: it is too small".to_owned());
    assert_eq!(fault(&streams, "transform"), twice);
}

#[test]
fn operators_of_a_program_compute_by_expressions() {
    let streams = streams();
    let publisher = streams.publisher::<f64>("/n").expect("it is free");
    let mut plain = subscribe(&streams, "/n | most");
    let mut negated = subscribe(&streams, "/n | most of=(0.0 - value)");
    let mut roots = subscribe(&streams, "/n | most $root");
    for number in [4.0, 3.0, 5.0] {
        let _ = publisher.publish(number);
    }
    assert_eq!(numbers(&mut plain), [4.0, 5.0]);
    assert_eq!(numbers(&mut negated), [4.0, 3.0]);
    assert_eq!(numbers(&mut roots), [4.0, 5.0]);
    let unknown = flow(&streams, "/n | most $roof");
    let refused = streams.subscribe(&unknown, Delivery::default());
    let refused = refused.err().expect("there is no such function");
    assert!(refused.message.contains("`$roof`"), "{}", refused.message);
    let fault = Failed::from(Reason::Late);
    assert_ne!(fault, Failed::new("late"));
}
