//! The operator graph of a program, as text, DOT, SVG or JSON.

mod dot;
mod layout;
mod picture;
mod quantity;
mod svg;
mod text;

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::attach::Program;
use super::{Result, print};
use crate::arguments::seconds;
use picture::Picture;

/// Draw the operator graph of a program, with what goes through it
///
/// It looks twice, a second apart: rates are those of this time, or of the last
/// ten seconds where somebody has looked before. What several read is marked as
/// shared, and what runs for those who came later as for latecomers: it goes as
/// soon as it makes the same as what was there before.
///
/// The latency of a subscriber is the time from the publication of an event, or
/// from when an operator was due that made it, until it was handed to a callback
/// or taken from a queue; its age counts from when what it says was so. Both are
/// measured while somebody looks.
///
/// Other machines stand where their events come in (<=), and where events leave for
/// them (=>).
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu stream graph
  milieu stream graph --app weather-station --svg > graph.svg
  milieu stream graph --dot | dot -Tpdf > graph.pdf
  milieu stream graph --json | jq '.subscribers[] | {application, latency}'")]
pub(crate) struct Graph {
    /// For the dot command of Graphviz
    #[arg(long, conflicts_with_all = ["json", "svg"])]
    dot: bool,
    /// A picture for browsers
    #[arg(long, conflicts_with = "json")]
    svg: bool,
    /// The graph as one line of JSON, durations in seconds
    #[arg(long)]
    pub(super) json: bool,
    /// How long to look; with 0 once, and without rates
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    seconds: Duration,
    #[command(flatten)]
    program: Program,
}

impl Graph {
    pub(super) fn run(&self) -> Result {
        let mut program = self.program.attach()?;
        let ask = json!({"ask": "stream.graph"});
        let mut graph = program.ask(&ask)?;
        if !self.seconds.is_zero() {
            std::thread::sleep(self.seconds);
            graph = program.ask(&ask)?;
        }
        print(&self.drawn(&graph))
    }

    fn drawn(&self, graph: &Value) -> String {
        let picture = Picture::of(graph);
        match self {
            Graph { json: true, .. } => format!("{graph}\n"),
            Graph { svg: true, .. } => svg::draw(&picture),
            Graph { dot: true, .. } => dot::draw(&picture),
            _ => text::draw(&picture),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// A weather station with what can be drawn: an operator that is shared, one
    /// that broke, drops, latency, and text that has to be escaped.
    fn station() -> Value {
        let node = |id: u64, kind: &str, label: &str, sent: u64, rate: Option<f64>| {
            json!({"id": id, "kind": kind, "label": label, "received": 1200, "sent": sent,
                "used": 0, "rate": rate, "held": 0, "dropped": {}, "broken": null})
        };
        let mut filter = node(
            4,
            "filter",
            "filter value > 32 && room != \"<attic>\"",
            30,
            Some(0.25),
        );
        filter["dropped"] = json!({"filtered": 1100, "fault": 70});
        filter["fault"] = json!("`room` cannot be computed: the event has no field `room`");
        let mut mean = node(
            5,
            "aggregate",
            "aggregate mean window=10m by=room",
            12,
            Some(0.1),
        );
        mean["held"] = json!(7);
        let mut late = node(7, "aggregate", "aggregate mean window=10m by=room", 0, None);
        late["copy_of"] = json!(5);
        let mut broken = node(
            6,
            "transform",
            "transform {celsius: (value - 32.0) / 1.8}",
            0,
            None,
        );
        broken["broken"] = json!("index out of bounds: the len is 3 but the index is 99");
        broken["dropped"] = json!({"broken": 1200});
        let edge = |from: u64, to: u64, events: u64, rate: f64| json!({"from": from, "to": to, "input": 0, "events": events, "rate": rate});
        let latency = json!({"count": 30, "p50": 1.25e-5, "p99": 0.0008, "max": 0.0021});
        let age = json!({"count": 30, "p50": 0.2, "p99": 0.31, "max": 1.5});
        let subscriber = |id: u64, node: u64, application: &str| {
            json!({"id": id, "node": node, "application": application, "offered": 30, "taken": 30,
                "waiting": 0, "dropped": {}, "rate": 0.25, "latency": null, "age": null})
        };
        let mut display = subscriber(1, 4, "station/display");
        display["latency"] = latency;
        display["age"] = age;
        let mut slow = subscriber(2, 4, "archive & log");
        slow["waiting"] = json!(1024);
        slow["dropped"] = json!({"overflow": 55});
        json!({
            "nodes": [
                node(0, "source", "/weather/temperature", 1200, Some(12.5)),
                node(1, "source", "/weather/pressure", 1200, Some(12_500.0)),
                node(2, "names", "/weather/temperature", 1200, Some(12.5)),
                node(3, "names", "/weather/*", 2400, Some(25.0)),
                filter, mean, broken, late,
            ],
            "edges": [
                edge(0, 2, 1200, 12.5), edge(0, 3, 1200, 12.5), edge(1, 3, 1200, 12.5),
                edge(2, 4, 1200, 12.5), edge(3, 5, 2400, 25.0), edge(4, 6, 30, 0.25),
                edge(3, 7, 600, 25.0),
            ],
            "subscribers": [
                display, slow, subscriber(3, 5, "station/means"), subscriber(4, 6, "station"),
                subscriber(5, 7, "visitor"),
            ],
            "ends": [
                {"peer": "kitchen", "name": "/weather/temperature", "channel": 2, "way": "out",
                    "offered": 1200, "sent": 1100, "waiting": 64, "dropped": {"overflow": 36}},
                {"peer": "roof", "name": "/weather/pressure", "channel": 1, "way": "in",
                    "arrived": 1203, "taken": 1200, "missing": 5, "dropped": {"late": 3}},
            ],
        })
    }

    /// Many sources, three operators each, some of which are joined.
    fn many(chains: u64) -> Value {
        let (mut nodes, mut edges, mut subscribers) = (Vec::new(), Vec::new(), Vec::new());
        let mut edge = |from: u64, to: u64| {
            edges.push(json!({"from": from, "to": to, "events": 10, "rate": 1.0}));
        };
        for chain in 0..chains {
            let first = chain * 4;
            let kinds = [
                ("source", format!("/rooms/{chain:03}/temperature")),
                ("names", format!("/rooms/{chain:03}/temperature")),
                ("filter", format!("filter value > {chain}")),
                ("join", "join fresh=1m".to_owned()),
            ];
            for (at, (kind, label)) in (0..).zip(kinds) {
                nodes.push(json!({"id": first + at, "kind": kind, "label": label,
                    "received": 10, "sent": 10, "rate": 1.0, "dropped": {}}));
                if at > 0 {
                    edge(first + at - 1, first + at);
                }
            }
            edge((chain * 7 % chains) * 4 + 2, first + 3);
            subscribers.push(
                json!({"id": chain, "node": first + 3, "application": "rooms",
                "taken": 10, "waiting": 0, "dropped": {}, "rate": 1.0}),
            );
        }
        json!({"nodes": nodes, "edges": edges, "subscribers": subscribers})
    }

    /// The text that stands in what is well-formed.
    fn texts(svg: &str) -> Vec<String> {
        use quick_xml::events::Event;

        let mut reader = quick_xml::Reader::from_str(svg);
        reader.config_mut().check_end_names = true;
        let (mut texts, mut depth) = (vec![String::new()], 0);
        loop {
            match reader.read_event().expect("it is well-formed") {
                Event::Start(start) => {
                    depth += 1;
                    start
                        .attributes()
                        .for_each(|attribute| _ = attribute.unwrap());
                    texts.push(String::new());
                }
                Event::End(_) => depth -= 1,
                Event::Text(text) => *texts.last_mut().unwrap() += &text.decode().unwrap(),
                Event::GeneralRef(name) => {
                    let letter = match &*name.decode().unwrap() {
                        "lt" => '<',
                        "gt" => '>',
                        "amp" => '&',
                        "quot" => '"',
                        other => panic!("&{other};"),
                    };
                    texts.last_mut().unwrap().push(letter);
                }
                Event::Eof => break,
                _ => {}
            }
        }
        assert_eq!(depth, 0);
        texts
    }

    fn golden(name: &str, drawn: &str) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/graph")
            .join(name);
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, drawn).unwrap();
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            expected == drawn,
            "{name} is drawn otherwise; look at it, then run with UPDATE_EXPECT=1:\n{drawn}"
        );
    }

    #[test]
    fn a_station_is_drawn() {
        let picture = Picture::of(&station());
        let svg = svg::draw(&picture);
        golden("station.txt", &text::draw(&picture));
        golden("station.dot", &dot::draw(&picture));
        golden("station.svg", &svg);
        let texts = texts(&svg);
        for text in [
            "filter value > 32 && room != \"<attic>\"",
            "archive & log",
            "55 overflow",
            "kitchen",
            "1100 sent",
            "64 waiting",
            "36 overflow",
            "roof",
            "5 missing",
        ] {
            assert!(
                texts.iter().any(|it| it.trim() == text),
                "{text}: {texts:?}"
            );
        }
    }

    #[test]
    fn equal_graphs_are_drawn_equally() {
        let mut other = station();
        for member in ["nodes", "edges", "subscribers", "ends"] {
            other[member].as_array_mut().unwrap().reverse();
        }
        // The program gives numbers as it likes.
        for node in other["nodes"].as_array_mut().unwrap() {
            node["id"] = json!(70 - node["id"].as_u64().unwrap());
        }
        for edge in other["edges"].as_array_mut().unwrap() {
            for end in ["from", "to"] {
                edge[end] = json!(70 - edge[end].as_u64().unwrap());
            }
        }
        for subscriber in other["subscribers"].as_array_mut().unwrap() {
            subscriber["node"] = json!(70 - subscriber["node"].as_u64().unwrap());
        }
        let [one, other] = [station(), other].map(|graph| svg::draw(&Picture::of(&graph)));
        assert_eq!(one, other);
    }

    #[test]
    fn nothing_one_and_hundreds_are_drawn() {
        let one = json!({"nodes": [{"id": 3, "kind": "source", "label": "/a\u{1}"}]});
        for graph in [json!({}), one, many(75)] {
            let svg = svg::draw(&Picture::of(&graph));
            texts(&svg);
            if let Some(folder) = std::env::var_os("MILIEU_DRAWINGS") {
                let count = graph["nodes"].as_array().map_or(0, Vec::len);
                let file = Path::new(&folder).join(format!("{count}.svg"));
                std::fs::write(file, svg).unwrap();
            }
        }
        // What is read along many ways is drawn once.
        assert!(text::draw(&Picture::of(&many(75))).lines().count() < 600);
    }
}
