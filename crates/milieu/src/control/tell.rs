//! Names and graphs as JSON.

use milieu_stream::names::{Entry, Member, Query};
use milieu_stream::{Delays, End, Latency, View};
use milieu_transfer::Span;
use serde_json::{Value as Tree, json};

pub(super) fn member(member: &Member) -> Tree {
    let name = member.name.as_str();
    match &member.entry {
        Entry::Stream(_) => json!({"name": name, "kind": "stream"}),
        Entry::Service(service) => {
            let attributes: serde_json::Map<String, Tree> = service
                .attributes()
                .map(|(name, value)| (name.to_owned(), value.into()))
                .collect();
            let endpoint = service.endpoint();
            json!({"name": name, "kind": "service", "endpoint": endpoint, "attributes": attributes})
        }
        Entry::Binding(binding) => {
            let targets: Vec<&str> = binding.targets().iter().map(Query::as_str).collect();
            json!({"name": name, "kind": "binding", "targets": targets})
        }
    }
}

/// In seconds.
fn latency(latency: &Latency) -> Tree {
    let part = |part| latency.quantile(part).map(Span::seconds);
    let max = latency.max().map(Span::seconds);
    json!({"count": latency.count(), "p50": part(0.5), "p99": part(0.99), "max": max})
}

pub(super) fn graph(view: &View) -> Tree {
    let dropped = |dropped: &milieu_stream::Dropped| -> serde_json::Map<String, Tree> {
        let counts = dropped.iter();
        counts
            .map(|(reason, count)| (reason.as_str().to_owned(), count.into()))
            .collect()
    };
    let nodes = view.nodes.iter().map(|node| {
        json!({
            "id": node.id, "kind": &*node.kind, "label": node.label(),
            "received": node.books.received, "sent": node.books.sent(), "used": node.books.used,
            "rate": node.rate, "held": node.held, "dropped": dropped(&node.books.dropped),
            "fault": node.fault, "broken": node.broken.as_deref(), "copy_of": node.copy_of,
        })
    });
    let edges = view.edges.iter().map(|edge| {
        json!({"from": edge.from, "to": edge.to, "input": edge.input, "events": edge.events,
            "rate": edge.rate})
    });
    let subscribers = view.subscribers.iter().map(|subscriber| {
        let tally = &subscriber.tally;
        let delays = |of: fn(&Delays) -> &Latency| {
            let recent = subscriber.recent.as_deref();
            recent.map(|recent| latency(of(recent)))
        };
        json!({
            "id": subscriber.id, "node": subscriber.node,
            "application": &*subscriber.application, "offered": subscriber.offered,
            "taken": tally.taken, "waiting": tally.waiting, "dropped": dropped(&tally.dropped),
            "rate": subscriber.rate, "latency": delays(|recent| &recent.latency),
            "age": delays(|recent| &recent.age),
        })
    });
    let ends = view.ends.iter().map(|it| {
        let (peer, name, channel) = (&*it.peer, &*it.name, it.channel);
        match &it.end {
            End::Out {
                offered,
                sent,
                dropped: lost,
                waiting,
            } => json!({"peer": peer, "name": name, "channel": channel, "way": "out",
                "offered": offered, "sent": sent, "waiting": waiting, "dropped": dropped(lost)}),
            End::In {
                arrived,
                taken,
                dropped: lost,
                missing,
            } => json!({"peer": peer, "name": name, "channel": channel, "way": "in",
                "arrived": arrived, "taken": taken, "missing": missing, "dropped": dropped(lost)}),
        }
    });
    json!({
        "nodes": nodes.collect::<Vec<_>>(),
        "edges": edges.collect::<Vec<_>>(),
        "subscribers": subscribers.collect::<Vec<_>>(),
        "ends": ends.collect::<Vec<_>>(),
    })
}
