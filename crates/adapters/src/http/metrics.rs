//! What was counted, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use milieu_stream::language::Language;
use milieu_stream::{Catalogue, End, EndView, Latency, View};

use super::gate::Granted;
use super::refused::Refused;
use super::server::Server;
use crate::component::Component;

/// The names of what is counted, with what they mean.
const COUNTERS: [(&str, &str); 5] = [
    ("component_received_events_total", "Events that came in."),
    ("component_sent_events_total", "Events that went out."),
    (
        "component_discarded_events_total",
        "Events that went no further, by reason.",
    ),
    ("component_errors_total", "Errors, by reason."),
    (
        "component_encodings_total",
        "Frames that were encoded, each for all who want the same.",
    ),
];

/// The names of what there is now, with what they mean.
const GAUGES: [(&str, &str); 2] = [
    (
        "buffer_events",
        "Events that wait for another machine to take them.",
    ),
    (
        "component_missing_events",
        "Events of another machine that later ones have overtaken.",
    ),
];

/// The names of how long events took, of those that were measured.
const LATENCIES: [(&str, &str); 2] = [
    (
        "component_latency_seconds",
        "From the publication of events until they were taken.",
    ),
    (
        "component_lag_time_seconds",
        "From when what events say was so until they were taken.",
    ),
];

/// Of what something is counted.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    id: String,
    kind: String,
    /// The other machine, at an end of an edge.
    peer: String,
    /// Why, of some counters.
    reason: &'static str,
}

/// Series of each counter. Components of equal identity are one.
#[derive(Default)]
pub(super) struct Metrics {
    counters: [BTreeMap<Series, u64>; COUNTERS.len()],
    gauges: [BTreeMap<Series, u64>; GAUGES.len()],
    /// Those of subscribers, by identity.
    latencies: [BTreeMap<String, Latency>; LATENCIES.len()],
}

/// `GET /metrics`.
pub(super) async fn metrics(
    State(server): State<Arc<Server>>,
    Extension(Granted(access)): Extension<Granted>,
) -> Result<Response, Refused> {
    if !access.measures {
        let message = "this token does not open metrics, which tell the names of all streams";
        return Err(Refused::new(StatusCode::FORBIDDEN, "right", message));
    }
    let mut metrics = Metrics::default();
    if let Some(view) = server.streams.look() {
        metrics.enter_graph(&view, server.streams.catalogue());
    }
    for component in server.settings.components.all() {
        metrics.enter(&component);
    }
    let id = server.component.id();
    metrics.add(4, id, "http_server", "", server.presses.encodings());
    let headers = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    Ok((headers, metrics.text(&server.host)).into_response())
}

impl Metrics {
    fn add(&mut self, counter: usize, id: &str, kind: &str, reason: &'static str, count: u64) {
        let series = Series {
            id: id.to_owned(),
            kind: kind.to_owned(),
            peer: String::new(),
            reason,
        };
        *self.counters[counter].entry(series).or_default() += count;
    }

    /// What comes from another machine has one for its source, and what goes there
    /// for its sink.
    fn enter_end(&mut self, view: &EndView) {
        let (kind, came, went, dropped, (gauge, now)) = match &view.end {
            End::Out {
                offered,
                sent,
                dropped,
                waiting,
            } => ("link_sink", offered, sent, dropped, (0, waiting)),
            End::In {
                arrived,
                taken,
                dropped,
                missing,
            } => ("link_source", arrived, taken, dropped, (1, missing)),
        };
        let series = |reason| Series {
            id: view.name.to_string(),
            kind: kind.to_owned(),
            peer: view.peer.to_string(),
            reason,
        };
        *self.counters[0].entry(series("")).or_default() += came;
        *self.counters[1].entry(series("")).or_default() += went;
        for (reason, count) in dropped.iter() {
            *self.counters[2].entry(series(reason.as_str())).or_default() += count;
        }
        *self.gauges[gauge].entry(series("")).or_default() += now;
    }

    fn enter(&mut self, component: &Component) {
        let (id, kind) = (component.id(), component.kind());
        self.add(0, id, kind, "", component.received());
        self.add(1, id, kind, "", component.sent());
        let reasons = component.reasons();
        for (reason, count) in &reasons.discarded {
            self.add(2, id, kind, reason, *count);
        }
        for (reason, count) in &reasons.errors {
            self.add(3, id, kind, reason, *count);
        }
    }

    /// Operators are known by the flow that they run, which is the same after a
    /// restart; subscribers by what they read. What is not there for long, as it
    /// runs for those who came later, is left out: counts are not to fall.
    fn enter_graph(&mut self, view: &View, catalogue: &Catalogue) {
        let mut ids = BTreeMap::new();
        for node in &view.nodes {
            let id = match &node.flow {
                Some(flow) => Language::Pipeline.write_flow(flow, catalogue),
                None => node.name.clone(),
            };
            if node.copy_of.is_some() {
                ids.insert(node.id, id);
                continue;
            }
            let kind = &*node.kind;
            self.add(0, &id, kind, "", node.books.received);
            self.add(1, &id, kind, "", node.books.sent());
            for (reason, count) in node.books.dropped.iter() {
                self.add(2, &id, kind, reason.as_str(), count);
            }
            if node.broken.is_some() {
                self.add(3, &id, kind, "broken", 1);
            }
            ids.insert(node.id, id);
        }
        for end in &view.ends {
            self.enter_end(end);
        }
        for subscriber in &view.subscribers {
            let Some(id) = ids.get(&subscriber.node) else {
                continue;
            };
            self.add(0, id, "subscriber", "", subscriber.offered);
            self.add(1, id, "subscriber", "", subscriber.tally.taken);
            for (reason, count) in subscriber.tally.dropped.iter() {
                self.add(2, id, "subscriber", reason.as_str(), count);
            }
            if let Some(delays) = &subscriber.delays {
                for (at, latency) in [&delays.latency, &delays.age].into_iter().enumerate() {
                    *self.latencies[at].entry(id.clone()).or_default() += latency;
                }
            }
        }
    }

    fn text(&self, host: &str) -> String {
        let host = escaped(host);
        let mut out = String::new();
        let counters = COUNTERS.iter().zip(&self.counters);
        let counters = counters.map(|(about, series)| ("counter", about, series));
        let gauges = GAUGES.iter().zip(&self.gauges);
        let gauges = gauges.map(|(about, series)| ("gauge", about, series));
        for (kind, (name, help), series) in counters.chain(gauges) {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (series, count) in series {
                let labels = series.labels(&host);
                let _ = writeln!(out, "{name}{{{labels}}} {count}");
            }
        }
        for ((name, help), of) in LATENCIES.iter().zip(&self.latencies) {
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} histogram");
            for (id, latency) in of {
                let id = escaped(id);
                let labels =
                    format!("component_id=\"{id}\",component_type=\"subscriber\",host=\"{host}\"");
                let (count, sum) = (latency.count(), latency.seconds_total());
                for (edge, count) in latency.edges() {
                    let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{edge}\"}} {count}");
                }
                let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
                let _ = writeln!(out, "{name}_sum{{{labels}}} {sum}");
                let _ = writeln!(out, "{name}_count{{{labels}}} {count}");
            }
        }
        out
    }
}

impl Series {
    fn labels(&self, host: &str) -> String {
        let (id, kind) = (escaped(&self.id), escaped(&self.kind));
        let mut labels = format!("component_id=\"{id}\",component_type=\"{kind}\",host=\"{host}\"");
        let more = [
            ("peer", escaped(&self.peer)),
            ("reason", self.reason.to_owned()),
        ];
        for (name, value) in more.iter().filter(|(_, value)| !value.is_empty()) {
            let _ = write!(labels, ",{name}=\"{value}\"");
        }
        labels
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use milieu_stream::engine::Hub;
    use milieu_stream::link::Terms;
    use milieu_stream::{Delivery, Flow, Published, Streams, VirtualClock, operators};
    use milieu_transfer::{Origin, Time};

    use super::*;

    #[test]
    fn labels_are_escaped_and_equal_identities_added() {
        let mut metrics = Metrics::default();
        metrics.add(2, "/a\"\\\n", "filter", "filtered", 2);
        metrics.add(2, "/a\"\\\n", "filter", "filtered", 3);
        let text = metrics.text("pi");
        let line = "component_discarded_events_total{component_id=\"/a\\\"\\\\\\n\",\
                    component_type=\"filter\",host=\"pi\",reason=\"filtered\"} 5\n";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn what_goes_to_other_machines_and_comes_from_them_is_counted() {
        let hub = Hub::new().apart();
        let machine = |name: &str| {
            let clock = VirtualClock::new(Time::from_seconds(1000));
            Streams::new(operators::catalogue(), clock, Origin(name.into()), 1)
        };
        let (kitchen, garden) = (machine("kitchen"), machine("garden"));
        let links = [
            kitchen.join(hub.join("kitchen"), Terms::open()),
            garden.join(hub.join("garden"), Terms::open()),
        ];
        let settle = || while links.iter().filter(|link| link.poll()).count() > 0 {};
        let flow = Flow::Stream("/oven".into());
        let _seen = garden.subscribe(&flow, Delivery::default()).unwrap();
        let oven = kitchen.publisher::<f64>("/oven").unwrap();
        settle();
        assert_eq!(oven.publish(180.0), Published::Accepted(1));
        settle();
        for (streams, kind, peer, gauge) in [
            (&kitchen, "link_sink", "garden", "buffer_events"),
            (
                &garden,
                "link_source",
                "kitchen",
                "component_missing_events",
            ),
        ] {
            let mut metrics = Metrics::default();
            metrics.enter_graph(&streams.look().unwrap(), streams.catalogue());
            let text = metrics.text("pi");
            let labels = format!(
                "{{component_id=\"/oven\",component_type=\"{kind}\",host=\"pi\",peer=\"{peer}\"}}"
            );
            for line in [
                format!("component_received_events_total{labels} 1\n"),
                format!("component_sent_events_total{labels} 1\n"),
                format!("# TYPE {gauge} gauge\n{gauge}{labels} 0\n"),
            ] {
                assert!(text.contains(&line), "{line}\n{text}");
            }
        }
    }

    #[test]
    fn how_long_events_take_is_a_histogram() {
        let clock = VirtualClock::new(Time::from_seconds(1000));
        let origin = Origin("here".into());
        let streams = Streams::new(operators::catalogue(), clock.clone(), origin, 1);
        let flow = Flow::Stream("/n".into());
        let mut queue = streams.subscribe(&flow, Delivery::default()).unwrap();
        let publisher = streams.publisher::<f64>("/n").unwrap();
        let text = |streams: &Streams| {
            let mut metrics = Metrics::default();
            metrics.enter_graph(&streams.look().unwrap(), streams.catalogue());
            metrics.text("pi")
        };
        assert!(!text(&streams).contains("component_latency_seconds_count{"));

        // From the first look on it is measured.
        let late = Time::from_seconds(990);
        assert_eq!(
            publisher.publish_at(late, None, 1.0),
            Published::Accepted(1)
        );
        clock.set(Time::from_seconds(1002));
        assert!(queue.try_next().is_some());
        let text = text(&streams);
        let labels = "component_id=\"/n\",component_type=\"subscriber\",host=\"pi\"";
        for (name, seconds) in [
            ("component_latency_seconds", 2),
            ("component_lag_time_seconds", 12),
        ] {
            let said = [
                format!("# TYPE {name} histogram\n"),
                format!("{name}_bucket{{{labels},le=\"1.073741824\"}} 0\n"),
                format!("{name}_bucket{{{labels},le=\"17.179869184\"}} 1\n"),
                format!("{name}_bucket{{{labels},le=\"+Inf\"}} 1\n"),
                format!("{name}_sum{{{labels}}} {seconds}\n"),
                format!("{name}_count{{{labels}}} 1\n"),
            ];
            for said in said {
                assert!(text.contains(&said), "{said}\n{text}");
            }
        }
    }
}
