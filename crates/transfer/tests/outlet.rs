//! Shared serialization, and choosing a mode.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::sample::{event, header};
use milieu_transfer::{
    Cbor, DataStream, Decode, Delta, Error, Event, Header, Kind, Limits, Mode, Modes, Offer,
    Outlet, ReceiverId, Rights, Type, Value,
};

fn mode(mode: impl Mode + 'static) -> Arc<dyn Mode> {
    Arc::new(mode)
}

fn numbered(sequence: u64) -> Event {
    let header = Header {
        sequence,
        ..header()
    };
    Kind::new().event(header, ("text".to_owned(), sequence, 1.5))
}

/// The frames of an event by their receivers.
fn frames(outlet: &mut Outlet, event: &Event) -> BTreeMap<ReceiverId, Arc<[u8]>> {
    let mut frames = BTreeMap::new();
    outlet.publish(event, |receiver, frame| {
        frames.insert(receiver, frame.unwrap().clone());
    });
    frames
}

#[test]
fn each_mode_and_set_of_rights_is_encoded_once() {
    let (cbor, stream) = (mode(Cbor::default()), mode(DataStream::default()));
    let mut outlet = Outlet::default();
    assert!(frames(&mut outlet, &event()).is_empty());
    assert_eq!(outlet.encodings(), 0, "nobody wants anything");
    let mut ids: Vec<ReceiverId> = Vec::new();
    for _ in 0..10 {
        ids.push(outlet.join(&cbor, Rights::NONE));
        ids.push(outlet.join(&mode(Cbor::default()), Rights::NONE));
        ids.push(outlet.join(&cbor, Rights::READ));
        ids.push(outlet.join(&stream, Rights::NONE));
    }
    let frames_of_all = frames(&mut outlet, &event());
    assert_eq!((frames_of_all.len(), outlet.encodings()), (40, 3));
    assert!(Arc::ptr_eq(
        &frames_of_all[&ids[0]],
        &frames_of_all[&ids[1]]
    ));
    assert_ne!(frames_of_all[&ids[0]], frames_of_all[&ids[2]]);
    let without = mode(Cbor { identity: false });
    ids.push(outlet.join(&without, Rights::NONE));
    frames(&mut outlet, &event());
    assert_eq!(outlet.encodings(), 7, "other options are another mode");
    ids.into_iter().for_each(|id| outlet.leave(id));
    frames(&mut outlet, &event());
    assert_eq!(outlet.encodings(), 7, "all have left");
}

#[test]
fn unshared_each_receiver_is_encoded_for() {
    let mut outlet = Outlet::unshared();
    let delta = mode(Delta::default());
    (0..10).for_each(|_| {
        outlet.join(&delta, Rights::NONE);
    });
    for sequence in 1..=3 {
        frames(&mut outlet, &numbered(sequence));
    }
    assert_eq!(outlet.encodings(), 30);
}

#[test]
fn who_joins_late_or_loses_something_gets_all_once() {
    let kinds = [mode(Delta::default()), mode(DataStream::default())];
    for kind in kinds {
        let mut outlet = Outlet::default();
        let mut decoders: BTreeMap<ReceiverId, Box<dyn Decode>> = BTreeMap::new();
        let join = |outlet: &mut Outlet, decoders: &mut BTreeMap<_, _>| {
            let id = outlet.join(&kind, Rights::NONE);
            decoders.insert(id, kind.decoder(Limits::default(), Rights::NONE));
            id
        };
        let first = join(&mut outlet, &mut decoders);
        for sequence in 1..=20 {
            if sequence % 4 == 0 {
                join(&mut outlet, &mut decoders);
                join(&mut outlet, &mut decoders);
            }
            let event = numbered(sequence);
            let before = outlet.encodings();
            let mut frames = frames(&mut outlet, &event);
            let encoded = outlet.encodings() - before;
            assert_eq!(
                encoded,
                if sequence % 4 == 0 || sequence == 10 {
                    2
                } else {
                    1
                }
            );
            if sequence == 9 {
                frames.remove(&first);
                outlet.lost(first);
            }
            for (id, frame) in &frames {
                let read = decoders.get_mut(id).unwrap().decode(frame).unwrap();
                assert_eq!(read.header(), event.header());
                let value = event.value(Rights::NONE).unwrap();
                assert_eq!(read.get::<Value>(), Some(&value), "{sequence}");
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Opened {
    door: String,
}

#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Counted {
    people: u32,
    by: Option<String>,
}

/// One of two types, by its number.
fn of_two_types(sequence: u64) -> Event {
    let header = Header {
        sequence,
        ..header()
    };
    if sequence * sequence % 7 < 3 {
        let door = (sequence % 5).to_string();
        return Kind::new().event(header, Opened { door });
    }
    let people = u32::try_from(sequence).unwrap();
    let by = (sequence % 3 == 0).then(|| "camera".to_owned());
    Kind::new().event(header, Counted { people, by })
}

#[test]
fn a_stream_may_have_two_schemas() {
    let (opened, counted) = (Type::of::<Opened>(), Type::of::<Counted>());
    for offer in Modes::standard().offers() {
        let modes = Modes::standard();
        let kind = modes.named(&offer.name).unwrap();
        let (name, has_schema) = (kind.name(), matches!(kind.name(), "delta" | "data-stream"));
        let mut outlet = Outlet::default();
        // One that knows both types, one that knows the second, one that knows none,
        // and one that knows both and misses much.
        let known: [&[&'static Type]; 4] =
            [&[opened, counted], &[counted], &[], &[opened, counted]];
        let mut receivers = known.map(|types| {
            let mut decoder = kind.decoder(Limits::default(), Rights::NONE);
            types.iter().for_each(|of| decoder.expect(of));
            (outlet.join(kind, Rights::NONE), decoder)
        });
        for sequence in 1..=60 {
            let sent = of_two_types(sequence);
            if sequence % 20 == 0 {
                outlet.lost(receivers[3].0);
            }
            let frames = frames(&mut outlet, &sent);
            for (at, (id, decoder)) in receivers.iter_mut().enumerate() {
                if at == 3 && sequence % 20 > 10 {
                    continue;
                }
                if at == 3 && sequence < 20 {
                    // It has missed nothing yet.
                    assert_eq!(outlet.encodings(), sequence, "{name}: once for all");
                }
                let read = decoder.decode(&frames[id]);
                let read = read.unwrap_or_else(|error| panic!("{name} {sequence}: {error}"));
                assert_eq!(read.header(), sent.header(), "{name}");
                let is_typed = has_schema && known[at].iter().any(|of| sent.of().is(of));
                assert_eq!(read.of().is(sent.of()), is_typed, "{name} {sequence}");
                let back = sent.of().adopt(&read, Rights::NONE).unwrap();
                assert_eq!(back.get::<Opened>(), sent.get::<Opened>(), "{name}");
                assert_eq!(back.get::<Counted>(), sent.get::<Counted>(), "{name}");
            }
        }
        // Besides, once more whenever one had to catch up.
        assert_eq!(
            outlet.encodings() > 60,
            has_schema,
            "{name}: {}",
            outlet.encodings()
        );
    }
}

#[test]
fn an_event_that_cannot_be_encoded_disturbs_no_other() {
    let mut outlet = Outlet::default();
    let delta = mode(Delta::default());
    let id = outlet.join(&delta, Rights::NONE);
    let wrong = Event::of_value(header(), Value::Link(0));
    let mut decoder = delta.decoder(Limits::default(), Rights::NONE);
    for sequence in 1..=3 {
        let mut error = None;
        outlet.publish(&wrong, |_, frame| error = frame.err().cloned());
        assert_eq!(error, Some(Error::Dangling(0)));
        let frame = frames(&mut outlet, &numbered(sequence))
            .remove(&id)
            .unwrap();
        assert_eq!(decoder.decode(&frame).unwrap().header().sequence, sequence);
    }
}

#[test]
fn the_subscriber_chooses_among_what_both_know() {
    let modes = Modes::standard();
    let choose = |wanted: &[&str]| {
        let wanted: Vec<Offer> = wanted.iter().map(|it| it.parse().unwrap()).collect();
        modes.choose(&wanted).map(|mode| mode.name())
    };
    assert_eq!(choose(&["data-stream/1", "delta/1"]), Some("data-stream"));
    assert_eq!(choose(&["delta/2", "protobuf/1", "cbor/1"]), Some("cbor"));
    assert_eq!(choose(&["delta/2"]), None);
    assert_eq!(choose(&[]), None);
    let texts: Vec<String> = modes.offers().iter().map(Offer::to_string).collect();
    assert_eq!(&texts[..3], ["delta/1", "data-stream/1", "cbor/1"]);
    for wrong in ["", "json", "/1", "json/x", "json/-1", "a b/1"] {
        assert!(wrong.parse::<Offer>().is_err(), "{wrong}");
    }
}
