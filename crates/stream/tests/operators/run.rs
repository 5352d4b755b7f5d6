//! One operator in virtual time.

use std::sync::Arc;

use milieu_keys::Name;
use milieu_stream::{
    Arguments, Books, Catalogue, Definition, Dropped, Fate, Now, Operator, Output, Parameter,
    Reason, Settled, operators,
};
use milieu_transfer::{Event, Header, Origin, Quality, Rights, Span, Stream, Time, Value};

/// An operator that is given events, woken when it wants to, and whose books
/// are balanced after every step.
pub struct Run {
    make: Box<dyn Fn() -> Box<dyn Operator>>,
    operator: Box<dyn Operator>,
    stream: Arc<Stream>,
    sequence: u64,
    pub books: Books,
    now: Time,
    /// Whether it starts anew from a snapshot before every step.
    pub restarts: bool,
}

/// An event and when it is published.
pub type Published = Vec<(Time, Event)>;

impl Run {
    pub fn new(operator: &str, parameters: &[(&str, Parameter)]) -> Run {
        let mut catalogue = operators::catalogue();
        let functions = catalogue.functions_mut();
        functions.value("value", |value: &f64| *value);
        functions.value("key", |row: &Row| row.key.clone());
        functions.value("number", |row: &Row| row.number);
        Run::of(catalogue, operator, parameters, 1).expect("good parameters")
    }

    pub fn of(
        catalogue: Catalogue,
        operator: &str,
        parameters: &[(&str, Parameter)],
        inputs: usize,
    ) -> Result<Run, String> {
        let definition: &'static Definition = catalogue.get(operator).expect("it is known");
        let named = parameters.iter();
        let parameters: Vec<_> = named
            .map(|(name, parameter)| (Arc::from(*name), parameter.clone()))
            .collect();
        let make = move || {
            let arguments = Arguments {
                definition,
                parameters: &parameters,
                inputs,
                functions: catalogue.functions(),
            };
            (definition.make)(&arguments)
        };
        let operator = make().map_err(|wrong| wrong.message)?;
        Ok(Run {
            make: Box::new(move || make().expect("it was made before")),
            operator,
            stream: stream("/made"),
            sequence: 0,
            books: Books::default(),
            now: Time::MIN,
            restarts: false,
        })
    }

    /// Lets time pass until then.
    pub fn clock(&mut self, now: Time) -> Published {
        let mut published = Vec::new();
        while let Some(due) = self.operator.due().filter(|due| *due <= now) {
            self.now = self.now.max(due);
            published.extend(self.step(None));
            let again = self.operator.due();
            assert!(
                again > Some(due) || again.is_none(),
                "it wants to be woken for ever"
            );
        }
        self.now = now;
        published
    }

    /// Gives it an event at a point in time.
    pub fn event(&mut self, now: Time, input: usize, event: &Event) -> Published {
        let mut published = self.clock(now);
        published.extend(self.step(Some((input, event))));
        published
    }

    /// Gives it an event that another operator publishes at the instant at which
    /// both are to be woken.
    pub fn event_before_waking(&mut self, now: Time, input: usize, event: &Event) -> Published {
        let mut published = self.clock(now - Span::from_nanoseconds(1));
        self.now = now;
        published.extend(self.step(Some((input, event))));
        published
    }

    fn step(&mut self, given: Option<(usize, &Event)>) -> Published {
        if self.restarts {
            let state = self.operator.snapshot();
            self.operator = (self.make)();
            self.operator.restore(&state).expect("its own snapshot");
            assert_eq!(self.operator.snapshot(), state);
        }
        let (mut events, mut settled) = (Vec::new(), Settled::default());
        let clock = || self.now;
        let now = Now::new(&clock);
        let mut out = Output::new(
            &now,
            &self.stream,
            &mut self.sequence,
            &mut events,
            &mut settled,
        );
        match given {
            None => self.operator.wake(&mut out),
            Some((input, event)) => {
                let fate = self.operator.event(input, event, &mut out);
                self.books.received += 1;
                match fate {
                    Fate::Passed => {
                        self.books.passed += 1;
                        events.push(event.clone());
                    }
                    Fate::Used => self.books.used += 1,
                    Fate::Held => {}
                    Fate::Dropped(reason) => self.books.dropped.add(reason, 1),
                }
            }
        }
        self.books.passed += settled.passed;
        self.books.used += settled.used;
        for (reason, count) in settled.dropped {
            self.books.dropped.add(reason, count);
        }
        let balance = self.books.balance(self.operator.held() as u64);
        assert_eq!(balance, Ok(()), "{:?}", self.books);
        events.into_iter().map(|event| (self.now, event)).collect()
    }

    pub fn dropped(&self, reason: Reason) -> u64 {
        let dropped: &Dropped = &self.books.dropped;
        dropped.of(reason)
    }

    /// Whether from now on it makes the same of everything as another one.
    pub fn is_like(&self, other: &Run) -> bool {
        let like = self.operator.is_like(&*other.operator, self.now);
        let turned_round = other.operator.is_like(&*self.operator, self.now);
        assert_eq!(like, turned_round);
        like
    }

    pub fn fault(&self) -> Option<&str> {
        self.operator.fault()
    }
}

/// A body of two fields.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Row {
    pub key: String,
    pub number: f64,
}

pub fn stream(name: &str) -> Arc<Stream> {
    Arc::new(Stream {
        name: Name::parse(name).expect("a good name"),
        origin: Origin("test".into()),
        incarnation: 1,
    })
}

pub fn header(name: &str, time: Time, quality: Option<Quality>) -> Header {
    Header {
        stream: stream(name),
        time,
        sequence: 1,
        quality: quality.map(Box::new),
    }
}

/// A number that was measured then.
pub fn number(time: Time, value: f64) -> Event {
    Event::new(header("/number", time, None), value)
}

/// A number of something that was measured then.
pub fn row(time: Time, key: &str, number: f64) -> Event {
    let key = key.to_owned();
    Event::new(header("/row", time, None), Row { key, number })
}

pub fn failed(time: Time) -> Event {
    let failure = Some("broken".into());
    let quality = Quality {
        age: None,
        accuracy: None,
        failure,
    };
    Event::new(header("/number", time, Some(quality)), 666.0)
}

pub fn at(seconds: f64) -> Time {
    Time::from_nanoseconds((seconds * 1e9).round() as i64)
}

pub fn span(seconds: f64) -> Parameter {
    Parameter::Span(Span::from_nanoseconds((seconds * 1e9).round() as i64))
}

pub fn function(name: &str) -> Parameter {
    Parameter::Function(name.into())
}

pub fn names(names: &[&str]) -> Parameter {
    let names = names.iter().map(|name| Parameter::Text((*name).into()));
    Parameter::List(names.collect())
}

pub fn field(event: &Event, name: &str) -> Value {
    let Value::Map(map) = whole(event) else {
        panic!("{event:?} has no fields");
    };
    map.field(name)
        .cloned()
        .unwrap_or_else(|| panic!("no `{name}` in {map:?}"))
}

pub fn double(event: &Event, name: &str) -> f64 {
    match field(event, name) {
        Value::Double(value) => value,
        other => panic!("`{name}` is {other:?}"),
    }
}

/// The numbers of events, and when they were published.
pub fn numbers(published: &Published) -> Vec<(f64, f64)> {
    let numbers = published.iter().map(|(at, event)| {
        let number = event.get::<f64>().expect("a number");
        (Time::nanoseconds(*at) as f64 / 1e9, *number)
    });
    numbers.collect()
}

/// The body as a value.
pub fn whole(event: &Event) -> Value {
    event.value(Rights::ALL).expect("a body that can be said")
}
