//! Operators for themselves, filters beside what they would cost written by hand.
//!
//! It answers as `xtask/measure` says.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;

use measure::{Loop, Operation, alone, answer, paired};
use milieu_keys::Name;
use milieu_stream::operators::{self, Condition, Filters};
use milieu_stream::{Arguments, Catalogue, Dropped, Now, Operator, Output, Parameter, Settled};
use milieu_transfer::{Event, Header, Origin, Span, Stream, Time};

static OPERATIONS: &[Operation] = &[
    alone("filter-1", || filters(&CONDITIONS[..1])),
    paired("filters-5", || filters(&CONDITIONS), by_hand),
    alone("filters-5-by-hand", by_hand),
    alone("filters-5-apart", || filters_apart(&CONDITIONS)),
    paired("filters-5-closures", closures, by_hand),
    alone("aggregate-window", || {
        aggregate(&[("window", Parameter::Span(Span::from_seconds(10)))])
    }),
    alone("aggregate-window-by", || {
        let by = Parameter::Expression("station".into());
        aggregate(&[
            ("window", Parameter::Span(Span::from_seconds(10))),
            ("by", by),
        ])
    }),
    alone("aggregate-last-100", || {
        aggregate(&[("count", Parameter::Integer(100))])
    }),
    alone("change", || {
        let of = Parameter::Expression("temperature".into());
        one("change", &[("of", of)])
    }),
    alone("outliers", || {
        let of = Parameter::Expression("temperature".into());
        one("outliers", &[("of", of)])
    }),
];

const CONDITIONS: [&str; 5] = [
    "temperature > 3.0",
    "humidity < 90.0",
    "temperature < 40.0",
    "pressure > 900.0",
    "humidity > 10.0",
];

#[derive(serde::Serialize, serde::Deserialize)]
struct Weather {
    temperature: f64,
    humidity: f64,
    pressure: f64,
    station: u32,
}

fn events() -> Vec<Event> {
    let stream = Arc::new(Stream {
        name: Name::parse("/weather").expect("a name"),
        origin: Origin("here".into()),
        incarnation: 1,
    });
    let event = |sequence: u32| {
        let header = Header {
            stream: Arc::clone(&stream),
            time: Time::from_nanoseconds(i64::from(sequence) * 1_000_000),
            sequence: sequence.into(),
            quality: None,
        };
        let body = Weather {
            temperature: 20.0 + f64::from(sequence % 7) / 10.0,
            humidity: 50.0,
            pressure: 1000.0,
            station: sequence % 8,
        };
        Event::new(header, body)
    };
    (0..16).map(event).collect()
}

fn made(catalogue: &Catalogue, name: &str, parameters: &[(&str, Parameter)]) -> Box<dyn Operator> {
    let definition = catalogue.get(name).expect("it is known");
    let named = parameters.iter();
    let parameters: Vec<_> = named
        .map(|(name, parameter)| (Arc::from(*name), parameter.clone()))
        .collect();
    let arguments = Arguments {
        definition,
        parameters: &parameters,
        inputs: 1,
        functions: catalogue.functions(),
    };
    (definition.make)(&arguments).expect("good parameters")
}

fn one_filter(condition: &str) -> Box<dyn Operator> {
    let condition = Parameter::Expression(condition.into());
    made(
        &operators::catalogue(),
        "filter",
        &[("condition", condition)],
    )
}

fn fused(operators: &[Box<dyn Operator>]) -> Loop {
    let conditions = operators
        .iter()
        .map(|filter| filter.condition().expect("a filter"));
    let mut filters = Filters::new(conditions.collect::<Vec<&Condition>>());
    let mut dropped = vec![Dropped::default(); operators.len()];
    let (mut passed, events) = (0_u64, events());
    Box::new(move |times| {
        for (event, _) in events.iter().cycle().zip(0..times) {
            match filters.test(black_box(event)) {
                Ok(()) => passed += 1,
                Err((at, reason)) => dropped[at].add(reason, 1),
            }
        }
        black_box(passed);
    })
}

fn filters(conditions: &[&str]) -> Loop {
    let operators: Vec<_> = conditions
        .iter()
        .map(|condition| one_filter(condition))
        .collect();
    fused(&operators)
}

fn closures() -> Loop {
    let mut catalogue = operators::catalogue();
    let functions = catalogue.functions_mut();
    let conditions = [
        functions.condition("1", |weather: &Weather| weather.temperature > 3.0),
        functions.condition("2", |weather: &Weather| weather.humidity < 90.0),
        functions.condition("3", |weather: &Weather| weather.temperature < 40.0),
        functions.condition("4", |weather: &Weather| weather.pressure > 900.0),
        functions.condition("5", |weather: &Weather| weather.humidity > 10.0),
    ];
    let filter = |condition| made(&catalogue, "filter", &[("condition", condition)]);
    fused(&conditions.map(filter))
}

fn filters_apart(conditions: &[&str]) -> Loop {
    let mut filters: Vec<_> = conditions
        .iter()
        .map(|condition| one_filter(condition))
        .collect();
    let events = events();
    Box::new(move |times| {
        for (event, _) in events.iter().cycle().zip(0..times) {
            for filter in &mut filters {
                black_box(filter.test(black_box(event)));
            }
        }
    })
}

fn aggregate(parameters: &[(&str, Parameter)]) -> Loop {
    let mut all = vec![
        (
            "functions",
            Parameter::List(vec![Parameter::Text("mean".into())]),
        ),
        ("of", Parameter::Expression("temperature".into())),
    ];
    all.extend_from_slice(parameters);
    one("aggregate", &all)
}

fn one(name: &str, parameters: &[(&str, Parameter)]) -> Loop {
    let mut operator = made(&operators::catalogue(), name, parameters);
    let events = events();
    let stream = Arc::clone(&events[0].header().stream);
    let (mut sequence, mut published, mut settled) = (0, Vec::new(), Settled::default());
    let clock = || Time::from_nanoseconds(20_000_000);
    Box::new(move |times| {
        let now = Now::new(&clock);
        for (event, _) in events.iter().cycle().zip(0..times) {
            let mut out = Output::new(&now, &stream, &mut sequence, &mut published, &mut settled);
            black_box(operator.event(0, black_box(event), &mut out));
            published.clear();
        }
    })
}

/// A filter as one would write it by hand.
trait Filter {
    fn event(&mut self, event: &Event);
}

struct ByHand<F> {
    holds: F,
    passed: u64,
    dropped: u64,
    next: Box<dyn Filter>,
}

impl<F: Fn(&Weather) -> bool> Filter for ByHand<F> {
    fn event(&mut self, event: &Event) {
        if event
            .get::<Weather>()
            .is_some_and(|weather| (self.holds)(weather))
        {
            self.passed += 1;
            self.next.event(event);
        } else {
            self.dropped += 1;
        }
    }
}

struct End(u64);

impl Filter for End {
    fn event(&mut self, event: &Event) {
        self.0 += black_box(event).header().sequence;
    }
}

fn by_hand() -> Loop {
    fn before(
        holds: impl Fn(&Weather) -> bool + 'static,
        next: Box<dyn Filter>,
    ) -> Box<dyn Filter> {
        Box::new(ByHand {
            holds,
            passed: 0,
            dropped: 0,
            next,
        })
    }
    let bounds = black_box([3.0, 90.0, 40.0, 900.0, 10.0]);
    let chain = before(
        move |weather| weather.humidity > bounds[4],
        Box::new(End(0)),
    );
    let chain = before(move |weather| weather.pressure > bounds[3], chain);
    let chain = before(move |weather| weather.temperature < bounds[2], chain);
    let chain = before(move |weather| weather.humidity < bounds[1], chain);
    let mut chain = before(move |weather| weather.temperature > bounds[0], chain);
    let events = events();
    Box::new(move |times| {
        for (event, _) in events.iter().cycle().zip(0..times) {
            chain.event(black_box(event));
        }
    })
}

fn main() -> ExitCode {
    answer(OPERATIONS)
}
