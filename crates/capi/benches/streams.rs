//! Events from C, each operation beside what it is in Rust.
//!
//! It answers as `xtask/measure` says. The part in C is `streams.c`.

mod native;

use std::{env, ffi::CStr, hint::black_box, process::Command, process::ExitCode, sync::OnceLock};

use measure::{Loop, Operation, alone, answer, paired};
use milieu::{
    Milieu,
    stream::{
        Arguments, Definition, Delivery, Fate, Inputs, Operator, Output, Publisher, Subscriber,
    },
    transfer::{Event, Row, Selection},
};
use native::{Native, compiled, file};

macro_rules! called {
    ($($name:ident)*) => {
        /// What the part in C calls.
        const CALLED: &[*const ()] = &[$(milieu_capi::$name as *const ()),*];
    };
}
called! {
    milieu_answer_give milieu_coordinator_new milieu_event_body milieu_event_get
    milieu_event_keep milieu_event_type_new milieu_function_define milieu_listener_new
    milieu_message milieu_operator_define milieu_output_pass milieu_publisher_new
    milieu_publisher_publish milieu_streams_new milieu_subscription_new milieu_subscription_next
}

fn library() -> std::path::PathBuf {
    let sources = ["benches/streams.c", "include/milieu.h"].map(file);
    let streams = ["events.h", "operators.h", "streams.h"];
    let headers = streams.map(|name| file(&format!("include/milieu/{name}")));
    compiled(&[&sources[..], &headers].concat(), |_| {
        let mut compiler = Command::new("cc");
        compiler.arg("-std=gnu11").arg(file("benches/streams.c"));
        compiler
    })
}

/// An operation in C.
fn c(name: &CStr) -> Loop {
    static LOADED: OnceLock<Native> = OnceLock::new();
    let native = LOADED.get_or_init(|| {
        // The linker leaves out what nobody seems to call.
        black_box(CALLED);
        Native::load(&library())
    });
    native.operation(name)
}

/// As the struct in C.
#[derive(serde::Serialize, serde::Deserialize)]
struct Weather {
    temperature: f64,
    pressure: f64,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Station {
    temperature: f64,
    room: String,
}

const WEATHER: Weather = Weather {
    temperature: 33.5,
    pressure: 1013.25,
};

/// As the operator in C.
struct Pass;

impl Operator for Pass {
    fn event(&mut self, input: usize, event: &Event, _: &mut Output<'_>) -> Fate {
        black_box((input, event));
        Fate::Passed
    }
}

static PASS: Definition = Definition {
    name: "pass",
    summary: "Lets everything go on.",
    inputs: Inputs::One,
    parameters: &[],
    make: |_: &Arguments<'_>| Ok(Box::new(Pass)),
};

fn milieu() -> Milieu {
    let milieu = match Milieu::builder("").files(Vec::new()).start() {
        Ok(milieu::Start::Run(milieu)) => *milieu,
        other => panic!("{other:?}"),
    };
    milieu.operators([&PASS]).expect("it is early");
    let registered = milieu.functions(|functions| {
        functions.condition("hot", |weather: &Weather| weather.temperature > 32.0);
    });
    registered.expect("it is early");
    milieu
}

fn publisher(milieu: &Milieu) -> Publisher<Weather> {
    let publisher = milieu.streams().publisher("/weather");
    publisher.expect("the name is free")
}

fn subscriber(milieu: &Milieu) -> Subscriber {
    let flow = milieu.flow("/weather").expect("a good flow");
    flow.subscribe(Delivery::default()).expect("a good flow")
}

fn read(event: &Event) {
    black_box(event.get::<Weather>().expect("a weather").temperature);
}

fn rust_publish() -> Loop {
    let milieu = milieu();
    let publisher = publisher(&milieu);
    Box::new(move |times| {
        let _milieu = &milieu;
        for _ in 0..times {
            let _ = black_box(publisher.publish(black_box(WEATHER)));
        }
    })
}

fn rust_publish_text() -> Loop {
    let milieu = milieu();
    let publisher = milieu.streams().publisher::<Station>("/weather");
    let publisher = publisher.expect("the name is free");
    Box::new(move |times| {
        let _milieu = &milieu;
        for _ in 0..times {
            let station = Station {
                temperature: 33.5,
                room: black_box("a room of some length").to_owned(),
            };
            let _ = black_box(publisher.publish(station));
        }
    })
}

fn rust_heard(flow: &str) -> Loop {
    let milieu = milieu();
    let publisher = publisher(&milieu);
    let listening = milieu.flow(flow).expect("a good flow").listen(read);
    let listening = listening.expect("a good flow");
    Box::new(move |times| {
        let _kept = (&milieu, &listening);
        for _ in 0..times {
            let _ = black_box(publisher.publish(black_box(WEATHER)));
        }
    })
}

fn rust_queue() -> Loop {
    let milieu = milieu();
    let (publisher, mut subscriber) = (publisher(&milieu), subscriber(&milieu));
    Box::new(move |times| {
        let _milieu = &milieu;
        for _ in 0..times {
            let _ = black_box(publisher.publish(black_box(WEATHER)));
            read(&subscriber.try_next().expect("it is there"));
        }
    })
}

/// Does something with an event.
fn rust_event(mut act: impl FnMut(&Event) + 'static) -> Loop {
    let milieu = milieu();
    let mut subscriber = subscriber(&milieu);
    let _ = publisher(&milieu).publish(WEATHER);
    let event = subscriber.try_next().expect("it is there");
    Box::new(move |times| {
        for _ in 0..times {
            act(black_box(&event));
        }
    })
}

fn rust_field() -> Loop {
    let (mut selection, mut row) = (Selection::default(), Row::default());
    selection.add("temperature").expect("a path");
    rust_event(move |event| {
        event.read(&selection, &mut row);
        black_box(row.double(0));
    })
}

#[rustfmt::skip]
fn operations() -> Vec<Operation> {
    vec![
        alone("loop", || c(c"loop")),
        paired("publish", || c(c"publish"), rust_publish),
        paired("publish-text", || c(c"publish-text"), rust_publish_text),
        paired("listener", || c(c"listener"), || rust_heard("/weather")),
        paired("filter", || c(c"filter"), || rust_heard("/weather | filter temperature > 32")),
        paired("function", || c(c"function"), || rust_heard("/weather | filter $hot")),
        paired("operator", || c(c"operator"), || rust_heard("/weather | pass")),
        paired("queue", || c(c"queue"), rust_queue),
        paired("body", || c(c"body"), || rust_event(read)),
        paired("field", || c(c"field"), rust_field),
        alone("rust-loop", || rust_event(|_| ())),
        alone("rust-publish", rust_publish),
        alone("rust-publish-text", rust_publish_text),
        alone("rust-listener", || rust_heard("/weather")),
        alone("rust-filter", || rust_heard("/weather | filter temperature > 32")),
        alone("rust-function", || rust_heard("/weather | filter $hot")),
        alone("rust-operator", || rust_heard("/weather | pass")),
        alone("rust-queue", rust_queue),
        alone("rust-body", || rust_event(read)),
        alone("rust-field", rust_field),
    ]
}

fn main() -> ExitCode {
    if env::args().any(|argument| argument == "list") {
        // Those that count run side by side, and find it compiled.
        library();
    }
    answer(&operations())
}
