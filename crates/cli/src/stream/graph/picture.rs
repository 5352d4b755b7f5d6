//! What a program tells of its graph, ready to be drawn.

use std::collections::HashMap;

use serde_json::Value;

/// The operator graph of a program. Nodes and subscribers stand in an order that
/// does not depend on the numbers that the program has given them.
pub(super) struct Picture {
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    pub subscribers: Vec<Subscriber>,
    pub ends: Vec<End>,
}

pub(super) struct Node {
    /// Its number in the program.
    id: u64,
    pub kind: Kind,
    /// What it is: a name, or an operator with its parameters.
    pub label: String,
    /// Whether it runs for those who came when another node did the same already.
    pub is_late: bool,
    pub received: u64,
    pub sent: u64,
    pub held: u64,
    /// How many it sends in a second.
    pub rate: Option<f64>,
    pub dropped: Vec<(String, u64)>,
    /// What it said last of an event that it could not compute with.
    pub fault: Option<String>,
    /// What it said when it broke.
    pub broken: Option<String>,
    /// How many nodes and subscribers read it.
    pub readers: usize,
    /// The edges to nodes that read it.
    pub next: Vec<usize>,
    /// The subscribers that read it.
    pub subscribers: Vec<usize>,
    /// The edges to other machines, or from one, that begin or end here.
    pub ends: Vec<usize>,
    /// Whether it reads no other node.
    pub is_first: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Source,
    Names,
    Operator,
}

/// An edge between two nodes, by their places.
pub(super) struct Edge {
    pub from: usize,
    pub to: usize,
    pub events: u64,
    pub rate: Option<f64>,
}

pub(super) struct Subscriber {
    id: u64,
    pub node: usize,
    pub application: String,
    pub taken: u64,
    pub waiting: u64,
    pub rate: Option<f64>,
    pub dropped: Vec<(String, u64)>,
    /// From the publication of events until they were taken, recently.
    pub latency: Option<Latency>,
    /// From when what events say was so.
    pub age: Option<Latency>,
}

/// The program's end of an edge to another machine, or from one.
pub(super) struct End {
    pub peer: String,
    /// The name whose events they are.
    name: String,
    channel: u64,
    pub is_out: bool,
    /// Where the events come from, or go to, here.
    pub node: Option<usize>,
    /// Events that have set out, or were taken.
    pub events: u64,
    /// Events that wait for the other machine.
    pub waiting: u64,
    /// Events that were overtaken and have not come.
    pub missing: u64,
    pub dropped: Vec<(String, u64)>,
}

/// In seconds.
pub(super) struct Latency {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

impl Picture {
    pub fn of(graph: &Value) -> Picture {
        let mut nodes: Vec<Node> = all(graph, "nodes").map(Node::of).collect();
        let key = |node: &Node| (node.kind, node.label.clone(), node.is_late, node.id);
        nodes.sort_by_cached_key(key);
        let places = nodes.iter().enumerate().map(|(at, node)| (node.id, at));
        let places: HashMap<u64, usize> = places.collect();
        let place = |entry: &Value, member: &str| places.get(&entry[member].as_u64()?).copied();
        let edges = all(graph, "edges").filter_map(|edge| {
            Some(Edge {
                from: place(edge, "from")?,
                to: place(edge, "to")?,
                events: count(edge, "events"),
                rate: edge["rate"].as_f64(),
            })
        });
        let mut edges: Vec<Edge> = edges.collect();
        edges.sort_by_key(|edge| (edge.from, edge.to));
        let subscribers = all(graph, "subscribers");
        let subscribers = subscribers.filter_map(|it| Some(Subscriber::of(it, place(it, "node")?)));
        let mut subscribers: Vec<Subscriber> = subscribers.collect();
        subscribers.sort_by_key(|it| (it.node, it.id));
        for (at, edge) in edges.iter().enumerate() {
            nodes[edge.from].next.push(at);
            nodes[edge.from].readers += 1;
            nodes[edge.to].is_first = false;
        }
        for (at, subscriber) in subscribers.iter().enumerate() {
            nodes[subscriber.node].subscribers.push(at);
            nodes[subscriber.node].readers += 1;
        }
        let mut ends: Vec<End> = all(graph, "ends").map(|end| End::of(end, &nodes)).collect();
        ends.sort_by(|one, other| one.key().cmp(&other.key()));
        for (at, end) in ends.iter().enumerate() {
            if let Some(node) = end.node {
                nodes[node].ends.push(at);
            }
        }
        Picture {
            nodes,
            edges,
            subscribers,
            ends,
        }
    }
}

impl Node {
    /// Whom it is for, in words.
    pub fn whose(&self) -> impl Iterator<Item = String> {
        let late = self.is_late.then(|| "for latecomers".to_owned());
        let shared = (self.readers > 1).then(|| format!("shared by {}", self.readers));
        late.into_iter().chain(shared)
    }

    /// What went wrong, in words.
    pub fn wrong(&self) -> impl Iterator<Item = String> {
        let fault = self.fault.as_ref().map(|said| format!("fault: {said}"));
        let broken = self.broken.as_ref().map(|said| format!("broken: {said}"));
        fault.into_iter().chain(broken)
    }

    fn of(node: &Value) -> Node {
        Node {
            id: count(node, "id"),
            kind: match node["kind"].as_str() {
                Some("source") => Kind::Source,
                Some("names") => Kind::Names,
                _ => Kind::Operator,
            },
            label: text(node, "label"),
            is_late: !node["copy_of"].is_null(),
            received: count(node, "received"),
            sent: count(node, "sent"),
            held: count(node, "held"),
            rate: node["rate"].as_f64(),
            dropped: dropped(node),
            fault: node["fault"].as_str().map(str::to_owned),
            broken: node["broken"].as_str().map(str::to_owned),
            readers: 0,
            next: Vec::new(),
            subscribers: Vec::new(),
            ends: Vec::new(),
            is_first: true,
        }
    }
}

impl Subscriber {
    fn of(subscriber: &Value, node: usize) -> Subscriber {
        Subscriber {
            id: count(subscriber, "id"),
            node,
            application: text(subscriber, "application"),
            taken: count(subscriber, "taken"),
            waiting: count(subscriber, "waiting"),
            rate: subscriber["rate"].as_f64(),
            dropped: dropped(subscriber),
            latency: Latency::of(&subscriber["latency"]),
            age: Latency::of(&subscriber["age"]),
        }
    }
}

impl End {
    fn of(end: &Value, nodes: &[Node]) -> End {
        let (name, is_out) = (text(end, "name"), end["way"] == "out");
        let kind = if is_out { Kind::Names } else { Kind::Source };
        let mut events = ["sent", "taken"].into_iter();
        End {
            peer: text(end, "peer"),
            channel: count(end, "channel"),
            node: nodes
                .iter()
                .position(|node| node.kind == kind && node.label == name),
            name,
            is_out,
            events: events.find_map(|member| end[member].as_u64()).unwrap_or(0),
            waiting: count(end, "waiting"),
            missing: count(end, "missing"),
            dropped: dropped(end),
        }
    }

    fn key(&self) -> (&str, bool, &str, u64) {
        (&self.name, self.is_out, &self.peer, self.channel)
    }

    /// How many events went this way, as a count and what it counts.
    pub fn went(&self) -> String {
        let word = if self.is_out { "sent" } else { "taken" };
        format!("{} {word}", self.events)
    }

    /// What has not gone on: what waits, is missing or was dropped.
    pub fn rest(&self) -> impl Iterator<Item = String> {
        let counts = [(self.waiting, "waiting"), (self.missing, "missing")];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let counts = counts.map(|(count, what)| format!("{count} {what}"));
        let dropped = self.dropped.iter();
        counts.chain(dropped.map(|(reason, count)| format!("{count} {reason}")))
    }
}

impl Latency {
    fn of(latency: &Value) -> Option<Latency> {
        Some(Latency {
            p50: latency["p50"].as_f64()?,
            p99: latency["p99"].as_f64()?,
            max: latency["max"].as_f64()?,
        })
    }
}

fn all<'g>(graph: &'g Value, member: &str) -> impl Iterator<Item = &'g Value> + use<'g> {
    graph[member].as_array().into_iter().flatten()
}

fn count(entry: &Value, member: &str) -> u64 {
    entry[member].as_u64().unwrap_or_default()
}

fn text(entry: &Value, member: &str) -> String {
    entry[member].as_str().unwrap_or_default().to_owned()
}

fn dropped(entry: &Value) -> Vec<(String, u64)> {
    let reasons = entry["dropped"].as_object().into_iter().flatten();
    let reasons = reasons.map(|(reason, count)| (reason.clone(), count.as_u64().unwrap_or(0)));
    reasons.collect()
}
