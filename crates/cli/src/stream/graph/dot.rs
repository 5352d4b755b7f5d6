//! The graph in the language of Graphviz.

use std::fmt::Write;

use super::picture::{Kind, Picture};
use super::quantity;

pub(super) fn draw(picture: &Picture) -> String {
    let mut text = "digraph streams {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
    for (at, node) in picture.nodes.iter().enumerate() {
        let mut lines = vec![
            node.label.clone(),
            format!(
                "{} in, {} out{}",
                node.received,
                node.sent,
                behind(node.rate)
            ),
        ];
        lines.extend(quantity::reasons(&node.dropped, ", "));
        lines.extend(node.wrong());
        lines.extend(node.whose());
        let shape = if node.kind == Kind::Source {
            "ellipse"
        } else {
            "box"
        };
        let style = if node.readers > 1 { "bold" } else { "solid" };
        let colour = if node.broken.is_some() {
            ", color=red"
        } else {
            ""
        };
        let label = label(&lines);
        let _ = writeln!(
            text,
            "  n{at} [label=\"{label}\", shape={shape}, style={style}{colour}];"
        );
    }
    for edge in &picture.edges {
        let (from, to) = (edge.from, edge.to);
        let label = format!("{}{}", edge.events, behind(edge.rate));
        let _ = writeln!(text, "  n{from} -> n{to} [label=\"{label}\"];");
    }
    for (at, subscriber) in picture.subscribers.iter().enumerate() {
        let mut lines = vec![subscriber.application.clone()];
        if subscriber.waiting > 0 {
            lines.push(format!("{} waiting", subscriber.waiting));
        }
        lines.extend(quantity::reasons(&subscriber.dropped, ", "));
        for (what, latency) in [("latency", &subscriber.latency), ("age", &subscriber.age)] {
            let latency = latency.as_ref().map(quantity::latency);
            lines.extend(latency.map(|latency| format!("{what} {latency}")));
        }
        let (node, label) = (subscriber.node, label(&lines));
        let _ = writeln!(text, "  s{at} [label=\"{label}\", shape=ellipse];");
        let taken = format!("{}{}", subscriber.taken, behind(subscriber.rate));
        let _ = writeln!(text, "  n{node} -> s{at} [label=\"{taken}\"];");
    }
    for (at, end) in picture.ends.iter().enumerate() {
        let lines: Vec<String> = std::iter::once(end.peer.clone())
            .chain(end.rest())
            .collect();
        let (label, went) = (label(&lines), end.went());
        let _ = writeln!(text, "  m{at} [label=\"{label}\", shape=cds];");
        let _ = match (end.node, end.is_out) {
            (Some(node), true) => writeln!(text, "  n{node} -> m{at} [label=\"{went}\"];"),
            (Some(node), false) => writeln!(text, "  m{at} -> n{node} [label=\"{went}\"];"),
            (None, _) => Ok(()),
        };
    }
    text + "}\n"
}

/// A rate behind a count.
fn behind(rate: Option<f64>) -> String {
    rate.map_or_else(String::new, |rate| format!(", {}", quantity::rate(rate)))
}

/// Lines as Graphviz reads them.
fn label(lines: &[String]) -> String {
    let escaped = lines.iter().map(|line| {
        let line = line.replace('\\', "\\\\").replace('"', "\\\"");
        line.replace('\n', " ")
    });
    escaped.collect::<Vec<_>>().join("\\n")
}
