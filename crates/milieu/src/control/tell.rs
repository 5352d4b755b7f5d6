//! Names and graphs as JSON.

use milieu_stream::link::{Link, Presence, Refusals};
use milieu_stream::names::{Entry, Member, Query};
use milieu_stream::{Delays, Dropped, End, Latency, View};
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

fn dropped(dropped: &Dropped) -> serde_json::Map<String, Tree> {
    let counts = dropped.iter();
    counts
        .map(|(reason, count)| (reason.as_str().to_owned(), count.into()))
        .collect()
}

/// What has become of events at an end of an edge between machines.
fn end(end: &End) -> Tree {
    match end {
        End::Out {
            offered,
            sent,
            dropped: lost,
            waiting,
        } => json!({"way": "out", "offered": offered, "sent": sent, "waiting": waiting,
            "dropped": dropped(lost)}),
        End::In {
            arrived,
            taken,
            dropped: lost,
            missing,
        } => json!({"way": "in", "arrived": arrived, "taken": taken, "missing": missing,
            "dropped": dropped(lost)}),
    }
}

/// Nothing within a callback.
pub(super) fn link(link: &Link) -> Option<Tree> {
    let peers = link.peers()?;
    let peers = peers.iter().map(|peer| {
        let presence = match peer.presence {
            Presence::Here => "here",
            Presence::Left(reason) => reason.as_str(),
        };
        let (origin, incarnation) = peer
            .identity
            .as_ref()
            .map_or((None, None), |(of, life)| (Some(&**of), Some(*life)));
        json!({"name": &*peer.name, "presence": presence, "origin": origin,
            "incarnation": incarnation, "names": peer.names})
    });
    let Refusals {
        malformed,
        misplaced,
        stale,
        denied,
        full,
        gone,
    } = link.refusals()?;
    let ended = link.ended()?;
    Some(json!({
        "peers": peers.collect::<Vec<_>>(),
        "refusals": {"malformed": malformed, "misplaced": misplaced, "stale": stale,
            "denied": denied, "full": full, "gone": gone},
        "ended": ended.iter().map(end).collect::<Vec<_>>(),
        "encodings": link.encodings()?,
    }))
}

pub(super) fn graph(view: &View) -> Tree {
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
        let mut shown = end(&it.end);
        shown["peer"] = (&*it.peer).into();
        shown["name"] = (&*it.name).into();
        shown["channel"] = it.channel.into();
        shown
    });
    json!({
        "nodes": nodes.collect::<Vec<_>>(),
        "edges": edges.collect::<Vec<_>>(),
        "subscribers": subscribers.collect::<Vec<_>>(),
        "ends": ends.collect::<Vec<_>>(),
    })
}
