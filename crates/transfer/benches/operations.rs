//! What transfer modes cost, each beside what is known to be fast.
//!
//! It answers as `xtask/measure` says, and `sizes` with the bytes of frames.
//!
//! Peers write and read the sequence number and the time of the event too: they
//! are part of every frame.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;

use measure::{Loop, Operation, alone, answer, paired};
use milieu_transfer::{
    Cbor, DataStream, Delta, Encode, Event, Header, Json, Kind, Limits, Map, Mode, Name, Origin,
    Rights, Sender, Stream, Time, Type, Value,
};
use serde::{Deserialize, Serialize};

/// A typical event of a weather station.
#[derive(Clone, Serialize, Deserialize)]
struct Weather {
    station: String,
    celsius: f64,
    pressure: f64,
    count: u32,
    measured: i64,
    wind: Wind,
    remark: Option<String>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Wind {
    gusts: [f64; 8],
}

/// Five numbers and a time.
#[derive(Clone, Serialize, Deserialize)]
struct Readings {
    celsius: f64,
    pressure: f64,
    humidity: f64,
    wind: f64,
    count: u32,
    measured: i64,
}

const TIME: i64 = 1_356_998_400_250_000_000;

fn weather() -> Weather {
    Weather {
        station: "rooftop".to_owned(),
        celsius: 21.5,
        pressure: 1013.25,
        count: 300,
        measured: TIME,
        wind: Wind {
            gusts: [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5],
        },
        remark: Some("calm".to_owned()),
    }
}

fn readings() -> Readings {
    Readings {
        celsius: 21.5,
        pressure: 1013.25,
        humidity: 0.45,
        wind: 3.5,
        count: 10,
        measured: TIME,
    }
}

fn stream() -> Arc<Stream> {
    Arc::new(Stream {
        name: Name::parse("/weather/rooftop").expect("a name"),
        origin: Origin("station-1".into()),
        incarnation: 1,
    })
}

fn header(stream: &Arc<Stream>, sequence: u64) -> Header {
    Header {
        stream: stream.clone(),
        time: Time::from_nanoseconds(TIME),
        sequence,
        quality: None,
    }
}

fn event<T: milieu_transfer::Body>(body: T) -> Event {
    Kind::new().event(header(&stream(), 300), body)
}

/// Nine members and one that is referred to twice.
fn value() -> Value {
    let inner = Value::Shared(
        0,
        Arc::new(Value::from(Map::from_iter([("x", 1.0), ("y", 2.0)]))),
    );
    let mut map = Map::from_iter((0..8).map(|n| (format!("member-{n}"), Value::Int(n))));
    map.set("first".into(), inner);
    map.set("second".into(), Value::Link(0));
    map.into()
}

fn encode(mode: &impl Mode, event: Event) -> Loop {
    let mut encoder = mode.encoder(Rights::NONE);
    let mut out = Vec::new();
    encoder.encode(&event, &mut out).expect("it can be encoded");
    Box::new(move |n| {
        for _ in 0..n {
            out.clear();
            let result = encoder.encode(black_box(&event), &mut out);
            black_box((&out, result.is_ok()));
        }
    })
}

fn decode(mode: &impl Mode, of: Option<&'static Type>, event: Event) -> Loop {
    let mut encoder = mode.encoder(Rights::NONE);
    let mut decoder = mode.decoder(Limits::default(), Rights::NONE);
    of.into_iter().for_each(|of| decoder.expect(of));
    let mut out = Vec::new();
    encoder.encode(&event, &mut out).expect("it can be encoded");
    decoder.decode(&out).expect("it can be decoded");
    out.clear();
    encoder.encode(&event, &mut out).expect("it can be encoded");
    Box::new(move |n| {
        for _ in 0..n {
            black_box(decoder.decode(black_box(&out)).expect("it can be decoded"));
        }
    })
}

fn encode_postcard<T: Serialize + 'static>(body: T) -> Loop {
    let mut buffer = [0; 1024];
    Box::new(move |n| {
        for _ in 0..n {
            let whole = (black_box(300_u64), black_box(TIME), black_box(&body));
            black_box(postcard::to_slice(&whole, &mut buffer).expect("there is room"));
        }
    })
}

/// As the other one, it makes an event of it.
fn decode_postcard<T: milieu_transfer::Body>(body: &T) -> Loop {
    let bytes = postcard::to_allocvec(&(300_u64, TIME, body)).expect("it can be encoded");
    let (stream, kind) = (stream(), Kind::<T>::new());
    Box::new(move |n| {
        for _ in 0..n {
            let whole = postcard::from_bytes(black_box(&bytes)).expect("bytes");
            let (sequence, time, body): (u64, i64, T) = whole;
            let header = Header {
                time: Time::from_nanoseconds(time),
                ..header(&stream, sequence)
            };
            black_box(kind.event(header, body));
        }
    })
}

/// Encodes two events in turns as deltas.
fn encode_delta(change: fn(&mut Readings)) -> Loop {
    let mut changed = readings();
    change(&mut changed);
    let events = [event(readings()), event(changed)];
    let mut sender = Delta {
        key_every: 0,
        ..Delta::default()
    }
    .sender(Rights::NONE);
    let mut out = Vec::new();
    Box::new(move |n| {
        for i in 0..n {
            out.clear();
            let result = sender.encode(black_box(&events[i as usize & 1]), &mut out);
            black_box((&out, result.is_ok()));
        }
    })
}

fn encode_json_plainly() -> Loop {
    let body = weather();
    let mut out = Vec::new();
    Box::new(move |n| {
        for _ in 0..n {
            out.clear();
            serde_json::to_writer(&mut out, black_box(&body)).expect("it can be encoded");
            black_box(&out);
        }
    })
}

const WITHOUT: DataStream = DataStream {
    identity: false,
    schemas: true,
};

#[rustfmt::skip]
fn operations() -> Vec<Operation> {
    vec![
        paired("encode-data-stream", || encode(&DataStream::default(), event(weather())), || encode_postcard(weather())),
        alone("encode-postcard", || encode_postcard(weather())),
        paired("decode-data-stream", || decode(&DataStream::default(), Some(Type::of::<Weather>()), event(weather())), || decode_postcard(&weather())),
        alone("decode-postcard", || decode_postcard(&weather())),
        paired("encode-data-stream-small", || encode(&DataStream::default(), event(readings())), || encode_postcard(readings())),
        paired("decode-data-stream-small", || decode(&DataStream::default(), Some(Type::of::<Readings>()), event(readings())), || decode_postcard(&readings())),
        alone("encode-postcard-small", || encode_postcard(readings())),
        alone("decode-postcard-small", || decode_postcard(&readings())),
        alone("encode-delta-double", || encode_delta(|it| it.celsius = 22.0)),
        alone("encode-delta-integer", || encode_delta(|it| it.count = 11)),
        alone("encode-identity", || encode(&DataStream::default(), event(value()))),
        alone("encode-without-identity", || encode(&WITHOUT, event(value().expanded().expect("no cycle")))),
        paired("encode-json", || encode(&Json, event(weather())), encode_json_plainly),
        alone("decode-json", || decode(&Json, None, event(weather()))),
        alone("encode-cbor", || encode(&Cbor::default(), event(weather()))),
        alone("decode-cbor", || decode(&Cbor::default(), None, event(weather()))),
        alone("event", || {
            let kind = Kind::<Readings>::new();
            let (stream, body) = (stream(), readings());
            Box::new(move |n| for i in 0..n {
                black_box(kind.event(header(&stream, i), black_box(body.clone())));
            })
        }),
    ]
}

/// The bytes of the next frame, once the first one has come.
fn next(sender: &mut Sender, event: &Event) -> usize {
    let mut out = Vec::new();
    sender.encode(event, &mut out).expect("it can be encoded");
    out.len()
}

fn size(name: &str, bytes: usize) {
    println!("{{\"name\":\"{name}\",\"value\":{bytes}}}");
}

fn sizes() {
    fn pair<T: milieu_transfer::Body + Clone>(name: &str, body: T) {
        let mut sender = DataStream::default().sender(Rights::NONE);
        next(&mut sender, &event(body.clone()));
        size(name, next(&mut sender, &event(body.clone())));
        let whole = (300_u64, TIME, body);
        let postcard = postcard::to_allocvec(&whole).expect("it can be encoded");
        size(&format!("{name}-postcard"), postcard.len());
    }
    pair("size-weather", weather());
    pair("size-readings", readings());
    let body = postcard::to_allocvec(&readings()).expect("it can be encoded");
    size("size-readings-body", body.len());
    let stream = stream();
    let mut sender = Delta::default().sender(Rights::NONE);
    let kind = Kind::new();
    let mut body = readings();
    let mut delta = |body: &Readings, sequence| {
        next(
            &mut sender,
            &kind.event(header(&stream, sequence), body.clone()),
        )
    };
    delta(&body, 300);
    let same = delta(&body, 301);
    size("size-delta-header", same);
    body.celsius = 22.0;
    size("size-delta-double", delta(&body, 302) - same);
    body.count = 11;
    size("size-delta-integer", delta(&body, 303) - same);
}

fn main() -> ExitCode {
    if std::env::args().any(|word| word == "sizes") {
        sizes();
        return ExitCode::SUCCESS;
    }
    answer(&operations())
}
