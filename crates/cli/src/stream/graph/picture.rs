//! What a program tells of its graph, ready to be drawn.

use std::collections::HashMap;

use serde_json::Value;

/// The operator graph of a program. Nodes and subscribers stand in an order that
/// does not depend on the numbers that the program has given them.
pub(super) struct Picture {
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    pub subscribers: Vec<Subscriber>,
}

pub(super) struct Node {
    /// Its number in the program.
    id: u64,
    pub kind: Kind,
    /// What it is: a name, or an operator with its parameters.
    pub label: String,
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

/// In seconds.
pub(super) struct Latency {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

impl Picture {
    pub fn of(graph: &Value) -> Picture {
        let mut nodes: Vec<Node> = all(graph, "nodes").map(Node::of).collect();
        let key = |node: &Node| (node.kind, node.label.clone(), node.id);
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
        Picture {
            nodes,
            edges,
            subscribers,
        }
    }
}

impl Node {
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
