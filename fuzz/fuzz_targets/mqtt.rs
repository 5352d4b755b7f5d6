//! What a broker says: topics, filters, and announcements of earlier lives.
//!
//! The texts are a filter, a topic, a name, and a payload that was kept. The
//! parsers are compiled in, so that no client has to be built for them.
#![no_main]

#[allow(dead_code, reason = "what is announced is made of more")]
#[path = "../../crates/adapters/src/mqtt/discovery.rs"]
mod discovery;
#[path = "../../crates/adapters/src/mqtt/topic.rs"]
mod topic;

use discovery::{Device, Entity, correction, id_of};
use libfuzzer_sys::fuzz_target;
use milieu_fuzz::texts;
use milieu_stream::names;
use topic::{covers, is_filter, is_topic, name};

fuzz_target!(|input: &str| {
    let [filter, topic, under, kept] = texts(input);
    if is_topic(topic) {
        assert!(is_filter(topic) && covers(topic, topic));
        assert_eq!(covers("#", topic), !topic.starts_with('$'));
        if is_filter(filter) {
            let (filter, topic) = (levels(filter), levels(topic));
            let is_hidden = topic[0].starts_with('$') && !filter[0].starts_with('$');
            let (filter, topic) = (filter.as_slice(), topic.as_slice());
            let expected = !is_hidden && model(filter, topic);
            assert_eq!(covers(&filter.join("/"), &topic.join("/")), expected);
        }
    }
    if let (Ok(under), Ok(name)) = (names::name(under), name(under, topic)) {
        assert!(
            name.is_below_or_same(under.as_str()),
            "{name:?} is elsewhere"
        );
        assert_eq!(names::name(name.as_str()).ok(), Some(name));
    }
    announced(filter, topic, kept);
});

fn levels(text: &str) -> Vec<&str> {
    text.split('/').collect()
}

/// What the standard says of levels, apart from `$`.
fn model(filter: &[&str], topic: &[&str]) -> bool {
    match (filter, topic) {
        (["#"], _) | ([], []) => true,
        ([wanted, filter @ ..], [level, topic @ ..]) => {
            (*wanted == "+" || wanted == level) && model(filter, topic)
        }
        _ => false,
    }
}

/// A correction of what was kept is right: it takes back the same again where it
/// is kept itself, and nothing has to be said of what we would announce.
fn announced(prefix: &str, id: &str, kept: &str) {
    let at = discovery::topic(prefix, id);
    assert_eq!(id_of(prefix, &at), (!id.contains('/')).then_some(id));
    let device = Device::new("station", "Station")
        .about("mf", "me")
        .entity(Entity::new("heat", "sensor", "Heat", "t/heat"));
    let own = device.payload("t/status", &[]);
    let devices = [device];
    let correct = |id, kept: &[u8]| correction(&devices, "t/status", id, kept);
    assert_eq!(correct("station", &own), None);
    for id in ["station", "other"] {
        let Some(said) = correct(id, kept.as_bytes()) else {
            continue;
        };
        assert_eq!(said.is_empty(), id == "other");
        if !said.is_empty() {
            assert_eq!(correct(id, &said).as_ref(), Some(&said));
        }
    }
}
