//! Private fields over HTTP, where names stand for others.

mod client;

use client::{Client, TOKEN};
use milieu_adapters::http::{self, Access, Settings, Token};
use milieu_stream::names::{Binding, Query, Rights, Scope};
use milieu_stream::{Streams, SystemClock, operators};
use milieu_transfer::{Origin, Private};

#[derive(serde::Serialize, serde::Deserialize)]
struct Pulse {
    bed: u64,
    rate: Private<u64>,
}

#[test]
fn a_binding_shows_no_private_fields_of_names_beyond_the_right() {
    let streams = Streams::new(operators::catalogue(), SystemClock, Origin("o".into()), 1);
    let pulse = |bed, rate| Pulse {
        bed,
        rate: Private::new(rate),
    };
    let mine = streams.retaining_publisher("/beds/1").unwrap();
    let others = streams.retaining_publisher("/beds/2").unwrap();
    let _ = mine.publish(pulse(1, 61));
    let _ = others.publish(pulse(2, 72));
    let to = |name: &str| Binding::new([Query::parse(name).unwrap()]).unwrap();
    let ward = streams.bind("/ward", to("/beds/1")).unwrap();
    let rights = Rights {
        read: Scope::parse(["/beds/*", "/ward"]).unwrap(),
        private: Scope::parse(["/beds/1", "/ward"]).unwrap(),
        ..Rights::default()
    };
    let settings = Settings::new(Access::new(Token::new(TOKEN).unwrap(), rights));
    let serving = http::serve(&streams, settings).unwrap();
    let client = Client::of(serving.address());
    let latest = |path: &str| client.get(&format!("/latest?flow={path}&wait=0.2"));
    for path in ["/beds/1", "/ward"] {
        let answer = latest(path);
        assert!(
            !answer.json()["value"]["rate"].is_null(),
            "{path}: {}",
            answer.body()
        );
    }
    let answer = latest("/beds/2");
    assert_eq!(answer.json()["value"]["bed"], 2);
    assert!(!answer.body().contains("rate"), "{}", answer.body());
    // Somebody lets the name stand for another bed.
    ward.rebind(to("/beds/2")).unwrap();
    let answer = latest("/ward");
    assert!(!answer.body().contains("rate"), "{}", answer.body());
}
