//! Private fields over HTTP, where names stand for others, and what a flow that is
//! asked for may not do.

use crate::client::{Client, TOKEN};
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

#[test]
fn a_flow_that_is_asked_for_changes_nothing() {
    let streams = Streams::new(operators::catalogue(), SystemClock, Origin("o".into()), 1);
    let access = Access::new(Token::new(TOKEN).unwrap(), Rights::all());
    let serving = http::serve(&streams, Settings::new(access)).unwrap();
    let client = Client::of(serving.address());
    for (flow, what) in [
        ("/t;/t%20|%20publish%20/u", "leave out `publish`"),
        ("/t%20|%20bind%20/u", "leave out `bind`"),
        ("/t%20|%20subscribe%20name=mine", "leave out its `name`"),
        ("/t;/u", "here are several"),
    ] {
        let answer = client.get(&format!("/latest?flow={flow}&wait=0.1"));
        assert_eq!(answer.status, 400, "{flow}: {}", answer.body());
        assert!(answer.body().contains(what), "{}", answer.body());
    }
}

#[test]
fn private_fields_are_for_those_who_may_read_them() {
    let streams = Streams::new(operators::catalogue(), SystemClock, Origin("o".into()), 1);
    let publisher = streams.retaining_publisher("/beds/5").unwrap();
    let _ = publisher.publish(Pulse {
        bed: 5,
        rate: Private::new(71),
    });
    let public = Rights {
        private: Scope::none(),
        set: Scope::none(),
        ..Rights::all()
    };
    let other = "fedcba9876543210";
    let settings = Settings::new(Access::new(Token::new(TOKEN).unwrap(), Rights::all()))
        .access(Access::new(Token::new(other).unwrap(), public));
    let serving = http::serve(&streams, settings).unwrap();
    let client = Client::of(serving.address());
    let path = "/latest?flow=/beds/*";
    assert!(client.get(path).body().contains("rate"));
    let client = client.with_token(other);
    let answer = client.get(path);
    assert_eq!(answer.json()["value"]["bed"], 5);
    assert!(!answer.body().contains("rate"), "{}", answer.body());
    let given = b"{\"rate\":{\"$private\":1}}";
    for path in ["/events?name=/beds/6", "/events"] {
        let event = b"{\"name\":\"/beds/6\",\"time\":\"2013-01-01T12:00:00Z\",\"value\":{\"rate\":{\"$private\":1}}}";
        let body: &[u8] = if path == "/events" { event } else { given };
        let answer = client.post(path, "application/json", body);
        assert_eq!(
            (answer.status, &*answer.reason()),
            (403, "private"),
            "{path}"
        );
    }
}

#[test]
fn to_read_private_fields_is_not_to_set_them() {
    let streams = Streams::new(operators::catalogue(), SystemClock, Origin("o".into()), 1);
    let reads = Rights {
        set: Scope::parse(["/beds/2"]).unwrap(),
        ..Rights::all()
    };
    let access = Access::new(Token::new(TOKEN).unwrap(), reads);
    let serving = http::serve(&streams, Settings::new(access)).unwrap();
    let client = Client::of(serving.address());
    let body = b"{\"bed\":1,\"rate\":{\"$private\":61}}";
    for (path, status) in [("/beds/1", 403), ("/beds/2", 200)] {
        let answer = client.post(&format!("/events?name={path}"), "application/json", body);
        assert_eq!(answer.status, status, "{path}: {}", answer.body());
    }
}
