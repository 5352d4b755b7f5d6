//! Shared serialization, and choosing a mode.

mod sample;

use std::collections::BTreeMap;
use std::sync::Arc;

use milieu_transfer::{
    Cbor, DataStream, Decode, Delta, Error, Event, Header, Kind, Limits, Mode, Modes, Offer,
    Outlet, ReceiverId, Rights, Value,
};
use sample::{event, header};

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
