//! The graph as an indented list: each source with what reads it.

use std::fmt::Write;

use super::picture::{End, Node, Picture, Subscriber};
use super::quantity;

/// Draws it. What is read along several ways is drawn the first time, and named
/// after that.
pub(super) fn draw(picture: &Picture) -> String {
    let mut drawing = Drawing {
        picture,
        drawn: vec![false; picture.nodes.len()],
        text: String::new(),
    };
    for (at, node) in picture.nodes.iter().enumerate() {
        if node.is_first {
            drawing.node(at, 0);
        }
    }
    // Where the node went before its edge did.
    for end in picture.ends.iter().filter(|end| end.node.is_none()) {
        drawing.end(end, "");
    }
    drawing.text
}

struct Drawing<'p> {
    picture: &'p Picture,
    drawn: Vec<bool>,
    text: String,
}

impl Drawing<'_> {
    fn node(&mut self, at: usize, depth: usize) {
        let node = &self.picture.nodes[at];
        let indent = "  ".repeat(depth);
        let label = &node.label;
        if std::mem::replace(&mut self.drawn[at], true) {
            let _ = writeln!(self.text, "{indent}{label}  (as above)");
            return;
        }
        let _ = writeln!(self.text, "{indent}{label}  ({})", counts(node));
        for wrong in node.wrong() {
            let _ = writeln!(self.text, "{indent}  {wrong}");
        }
        for end in &node.ends {
            self.end(&self.picture.ends[*end], &format!("{indent}  "));
        }
        for edge in &node.next {
            self.node(self.picture.edges[*edge].to, depth + 1);
        }
        for subscriber in &node.subscribers {
            let subscriber = &self.picture.subscribers[*subscriber];
            let application = &subscriber.application;
            let taken = taken(subscriber);
            let _ = writeln!(self.text, "{indent}  -> {application}  ({taken})");
        }
    }

    /// Another machine, at one edge to it or from it.
    fn end(&mut self, end: &End, indent: &str) {
        let arrow = if end.is_out { "=>" } else { "<=" };
        let counts: Vec<String> = std::iter::once(end.went()).chain(end.rest()).collect();
        let counts = counts.join(", ");
        let _ = writeln!(self.text, "{indent}{arrow} {}  ({counts})", end.peer);
    }
}

fn counts(node: &Node) -> String {
    let mut text = format!("{} in, {} out", node.received, node.sent);
    lost(&node.dropped, &mut text);
    if node.held > 0 {
        let _ = write!(text, ", {} held", node.held);
    }
    if let Some(rate) = node.rate {
        let _ = write!(text, ", {}", quantity::rate(rate));
    }
    for whose in node.whose() {
        let _ = write!(text, ", {whose}");
    }
    text
}

fn taken(subscriber: &Subscriber) -> String {
    let Subscriber { taken, waiting, .. } = subscriber;
    let mut text = format!("{taken} taken, {waiting} waiting");
    lost(&subscriber.dropped, &mut text);
    if let Some(rate) = subscriber.rate {
        let _ = write!(text, ", {}", quantity::rate(rate));
    }
    for (what, latency) in [("latency", &subscriber.latency), ("age", &subscriber.age)] {
        if let Some(latency) = latency {
            let _ = write!(text, "; {what} {}", quantity::latency(latency));
        }
    }
    text
}

/// What was dropped, and why.
fn lost(dropped: &[(String, u64)], text: &mut String) {
    for (reason, count) in dropped {
        let _ = write!(text, ", {count} {reason}");
    }
}
