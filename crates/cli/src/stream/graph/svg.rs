//! The graph as a picture of its own, for browsers: light or dark as they are.

use std::fmt::Write;

use super::layout::{Box, Layout, Plan, place};
use super::picture::{End, Kind, Node, Picture, Subscriber};
use super::quantity;

const MARGIN: f64 = 24.0;
const LINE_HEIGHT: f64 = 16.0;
const PADDING: f64 = 10.0;
/// How far apart edges come in at a box.
const PORT_HEIGHT: f64 = 14.0;
const WIDTH_MIN: f64 = 96.0;
/// The longest line of a label, and how many of them.
const LABEL_LETTERS: usize = 40;
const LABEL_LINES: usize = 3;

/// Without variables, which some programs do not know that show pictures.
const STYLE: &str = "\
svg{font:12px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}
.paper{fill:#fff}
text{fill:#1b1f24}
.label{font-weight:600}
.faint,.rate{fill:#636c76;font-size:11px}
.rate{font-size:10px;text-anchor:end;paint-order:stroke;stroke:#fff;stroke-width:3px}
.lost{fill:#cf222e;font-size:11px}
.many{fill:#0969da;font-size:11px}
.box{fill:#f6f8fa;stroke:#8c959f}
.names .box{stroke-dasharray:4 3}
.subscriber .box{fill:#eaf5ec}
.machine .box{fill:#fff4e0}
.shared .box{stroke:#0969da;stroke-width:2.5}
.broken .box{stroke:#cf222e;stroke-width:2.5}
.edge{fill:none;stroke:#8c959f}
.head{fill:#8c959f}
@media (prefers-color-scheme:dark){
.paper{fill:#0d1117}
text{fill:#e6edf3}
.faint,.rate{fill:#9198a1}
.rate{stroke:#0d1117}
.lost{fill:#ff7b72}
.many{fill:#58a6ff}
.box{fill:#161b22;stroke:#6e7681}
.subscriber .box{fill:#12261a}
.machine .box{fill:#2b2110}
.shared .box{stroke:#58a6ff}
.broken .box{stroke:#ff7b72}
.edge{stroke:#6e7681}
.head{fill:#6e7681}
}
";

/// A line of text in a box.
struct Line {
    class: &'static str,
    text: String,
}

/// A box with what stands in it.
struct Card {
    class: String,
    /// The whole label, where it was cut.
    title: String,
    lines: Vec<Line>,
    /// How far its corners are rounded.
    round: f64,
    size: Box,
}

/// An edge to a box.
struct Arrow {
    from: usize,
    to: usize,
    title: String,
    rate: Option<f64>,
}

pub(super) fn draw(picture: &Picture) -> String {
    let mut cards: Vec<Card> = picture.nodes.iter().map(of_node).collect();
    cards.extend(picture.subscribers.iter().map(of_subscriber));
    cards.extend(picture.ends.iter().map(of_end));
    let arrows = arrows(picture);
    for (at, card) in cards.iter_mut().enumerate() {
        let entering = arrows.iter().filter(|arrow| arrow.to == at).count();
        let needed = entering as f64 * PORT_HEIGHT;
        card.size.height = card.size.height.max(needed);
    }
    let plan = Plan {
        boxes: cards.iter().map(|card| card.size).collect(),
        edges: arrows.iter().map(|arrow| (arrow.from, arrow.to)).collect(),
    };
    let layout = place(&plan);
    let (width, height) = (layout.width + 2.0 * MARGIN, layout.height + 2.0 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n<title>Operator graph</title>\n\
         <style>{STYLE}</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n"
    );
    draw_arrows(&plan, &layout, &arrows, &mut out);
    for (card, (x, y)) in cards.iter().zip(&layout.boxes) {
        draw_card(card, x + MARGIN, y + MARGIN, &mut out);
    }
    out + "</svg>\n"
}

fn of_node(node: &Node) -> Card {
    let mut lines = wrapped(&node.label);
    let mut counts = format!("{} in · {} out", node.received, node.sent);
    if let Some(rate) = node.rate {
        counts = format!("{} · {counts}", quantity::rate(rate));
    }
    if node.held > 0 {
        let _ = write!(counts, " · {} held", node.held);
    }
    lines.push(line("faint", counts));
    lines.extend(reasons(&node.dropped));
    for wrong in node.wrong() {
        let mut said = wrapped(&wrong);
        said.iter_mut().for_each(|line| line.class = "lost");
        lines.extend(said);
    }
    let (kind, round) = match node.kind {
        Kind::Source => ("source", 14.0),
        Kind::Names => ("names", 14.0),
        Kind::Operator => ("operator", 4.0),
    };
    let mut class = format!("node {kind}");
    if node.readers > 1 {
        class += " shared";
    }
    lines.extend(node.whose().map(|whose| line("many", whose)));
    if node.broken.is_some() {
        class += " broken";
    }
    let column = usize::from(node.kind != Kind::Source);
    card(class, &node.label, lines, round, (false, column))
}

fn of_subscriber(subscriber: &Subscriber) -> Card {
    let mut lines = wrapped(&subscriber.application);
    let mut counts = format!("{} taken", subscriber.taken);
    if let Some(rate) = subscriber.rate {
        counts = format!("{} · {counts}", quantity::rate(rate));
    }
    if subscriber.waiting > 0 {
        let _ = write!(counts, " · {} waiting", subscriber.waiting);
    }
    lines.push(line("faint", counts));
    for (what, latency) in [("latency", &subscriber.latency), ("age", &subscriber.age)] {
        if let Some(latency) = latency {
            let latency = quantity::latency(latency);
            lines.push(line("faint", format!("{what} {latency}")));
        }
    }
    lines.extend(reasons(&subscriber.dropped));
    let class = "subscriber".to_owned();
    card(class, &subscriber.application, lines, 14.0, (true, 1))
}

/// Another machine, at one edge to it or from it.
fn of_end(end: &End) -> Card {
    let mut lines = wrapped(&end.peer);
    lines.push(line("faint", end.went()));
    lines.extend(end.rest().map(|rest| line("lost", rest)));
    let place = (end.is_out, usize::from(end.is_out));
    card("machine".to_owned(), &end.peer, lines, 0.0, place)
}

fn card(class: String, title: &str, lines: Vec<Line>, round: f64, place: (bool, usize)) -> Card {
    let widths = lines.iter().map(|line| {
        let size = if line.class == "label" { 13.8 } else { 11.0 };
        letters(&line.text) * size
    });
    let width = widths.fold(WIDTH_MIN, f64::max) + 2.0 * PADDING;
    let height = lines.len() as f64 * LINE_HEIGHT + 2.0 * PADDING - 4.0;
    let size = Box {
        width: width.ceil(),
        height,
        is_last: place.0,
        column: place.1,
    };
    Card {
        class,
        title: title.to_owned(),
        lines,
        round,
        size,
    }
}

fn line(class: &'static str, text: String) -> Line {
    Line { class, text }
}

fn reasons(dropped: &[(String, u64)]) -> Option<Line> {
    quantity::reasons(dropped, " · ").map(|reasons| line("lost", reasons))
}

/// A label in lines of a length that can be read; what does not fit is cut.
fn wrapped(label: &str) -> Vec<Line> {
    let mut lines = vec![String::new()];
    for word in label.split_whitespace() {
        let count = |text: &str| text.chars().count();
        let last = lines.last_mut().expect("there is a line");
        let fits = count(last) + 1 + count(word) <= LABEL_LETTERS;
        match (last.is_empty(), fits) {
            (true, _) => last.push_str(word),
            (false, true) => *last += &format!(" {word}"),
            (false, false) => lines.push(word.to_owned()),
        }
    }
    let is_cut = lines.len() > LABEL_LINES;
    lines.truncate(LABEL_LINES);
    for text in &mut lines {
        if text.chars().count() > LABEL_LETTERS {
            *text = text.chars().take(LABEL_LETTERS - 1).collect::<String>() + "…";
        }
    }
    if let (true, Some(last)) = (is_cut, lines.last_mut()) {
        if !last.ends_with('…') {
            last.push('…');
        }
    }
    lines.into_iter().map(|text| line("label", text)).collect()
}

/// How wide a text is in most fonts, in parts of their size.
fn letters(text: &str) -> f64 {
    let width = |letter: char| match letter {
        'i' | 'j' | 'l' | 't' | 'f' | 'I' | ' ' | '.' | ',' | ':' | ';' | '\'' | '|' | '!'
        | '·' => 0.36,
        '(' | ')' | '[' | ']' | '{' | '}' | '/' | '\\' | '-' | 'r' | '"' => 0.45,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 0.95,
        '+' | '<' | '>' | '=' | '~' | '^' => 0.8,
        letter if letter.is_ascii_uppercase() => 0.72,
        letter if (letter as u32) < 0x1100 => 0.62,
        _ => 1.1,
    };
    text.chars().map(width).sum()
}

fn arrows(picture: &Picture) -> Vec<Arrow> {
    let behind = |rate: Option<f64>| match rate {
        Some(rate) => format!(", {}", quantity::rate(rate)),
        None => String::new(),
    };
    let edges = picture.edges.iter().map(|edge| Arrow {
        from: edge.from,
        to: edge.to,
        title: format!("{} events{}", edge.events, behind(edge.rate)),
        rate: edge.rate,
    });
    let subscribers = picture
        .subscribers
        .iter()
        .enumerate()
        .map(|(at, it)| Arrow {
            from: it.node,
            to: picture.nodes.len() + at,
            title: format!("{} taken{}", it.taken, behind(it.rate)),
            rate: it.rate,
        });
    let machines = picture.nodes.len() + picture.subscribers.len();
    let ends = picture.ends.iter().enumerate().filter_map(|(at, end)| {
        let (node, machine) = (end.node?, machines + at);
        let (from, to) = if end.is_out {
            (node, machine)
        } else {
            (machine, node)
        };
        Some(Arrow {
            from,
            to,
            title: end.went(),
            rate: None,
        })
    });
    edges.chain(subscribers).chain(ends).collect()
}

fn draw_arrows(plan: &Plan, layout: &Layout, arrows: &[Arrow], out: &mut String) {
    let middle = |at: usize| layout.boxes[at].1 + plan.boxes[at].height / 2.0;
    // Edges come in at a box in the order in which they lie before it.
    let heights = arrows.iter().zip(&layout.passes).map(|(arrow, passes)| {
        let last = passes.last().map(|(_, _, y)| *y);
        last.unwrap_or_else(|| middle(arrow.from))
    });
    let heights: Vec<f64> = heights.collect();
    let mut entering: Vec<Vec<usize>> = vec![Vec::new(); plan.boxes.len()];
    for (at, arrow) in arrows.iter().enumerate() {
        entering[arrow.to].push(at);
    }
    let mut ports = vec![0.0; arrows.len()];
    for (to, mut edges) in entering.into_iter().enumerate() {
        edges.sort_by(|one, other| heights[*one].total_cmp(&heights[*other]));
        let first = middle(to) - edges.len().saturating_sub(1) as f64 / 2.0 * PORT_HEIGHT;
        for (place, edge) in edges.into_iter().enumerate() {
            ports[edge] = first + place as f64 * PORT_HEIGHT;
        }
    }
    for (at, arrow) in arrows.iter().enumerate() {
        let (left, _) = layout.boxes[arrow.from];
        let mut x = left + plan.boxes[arrow.from].width + MARGIN;
        let mut y = middle(arrow.from) + MARGIN;
        let mut path = format!("M{x:.0} {y:.1}");
        for (from, to, height) in &layout.passes[at] {
            curve(&mut path, (x, y), (from + MARGIN, height + MARGIN));
            (x, y) = (to + MARGIN, height + MARGIN);
            let _ = write!(path, "H{x:.0}");
        }
        let (end, port) = (layout.boxes[arrow.to].0 + MARGIN, ports[at] + MARGIN);
        curve(&mut path, (x, y), (end - 7.0, port));
        let stroke = arrow
            .rate
            .map_or(1.25, |rate| 1.25 + (1.0 + rate).log10() * 0.6);
        let title = escaped(&arrow.title);
        let _ = writeln!(
            out,
            "<path class=\"edge\" d=\"{path}\" stroke-width=\"{stroke:.2}\"><title>{title}</title></path>\
             <path class=\"head\" d=\"M{end:.0} {port:.1}l-8-4v8z\"/>"
        );
        if let Some(rate) = arrow.rate {
            let (x, y) = (end - 10.0, port - 4.0);
            let rate = quantity::rate(rate);
            let _ = writeln!(
                out,
                "<text class=\"rate\" x=\"{x:.0}\" y=\"{y:.1}\">{rate}</text>"
            );
        }
    }
}

/// A curve that begins and ends level.
fn curve(path: &mut String, from: (f64, f64), to: (f64, f64)) {
    let middle = f64::midpoint(from.0, to.0);
    let ((_, y), (x2, y2)) = (from, to);
    let _ = write!(
        path,
        "C{middle:.0} {y:.1} {middle:.0} {y2:.1} {x2:.0} {y2:.1}"
    );
}

fn draw_card(card: &Card, x: f64, y: f64, out: &mut String) {
    let Box { width, height, .. } = card.size;
    let (class, title, round) = (&card.class, escaped(&card.title), card.round);
    let _ = writeln!(
        out,
        "<g class=\"{class}\"><title>{title}</title>\
         <rect class=\"box\" x=\"{x:.0}\" y=\"{y:.1}\" width=\"{width:.0}\" height=\"{height:.0}\" rx=\"{round}\"/>"
    );
    let text = card.lines.len() as f64 * LINE_HEIGHT;
    let mut line_y = y + (height - text) / 2.0 + 12.0;
    for line in &card.lines {
        let (class, x, text) = (line.class, x + PADDING, escaped(&line.text));
        let _ = writeln!(
            out,
            "<text class=\"{class}\" x=\"{x:.0}\" y=\"{line_y:.1}\">{text}</text>"
        );
        line_y += LINE_HEIGHT;
    }
    out.push_str("</g>\n");
}

/// Text as XML has it, without what XML cannot say.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}
