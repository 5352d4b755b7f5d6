//! Charts, as SVG: lines, bars and boxes.
//!
//! Colours can be told apart by people who see few of them and in print; lines
//! have different dashes beside. Nothing is loaded from anywhere.

use std::fmt::Write;

use super::scale::Scale;
use super::series::{Chosen, Panel, Sample, choose};
use super::{Options, Report};
use crate::Value;
use crate::description::escaped;
use crate::result::Results;

/// One panel, in points.
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 320.0;
/// Room around the area of a panel: for labels.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 15.0;
const TOP: f64 = 45.0;
const BOTTOM: f64 = 55.0;

/// Okabe and Ito's colours.
const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000",
];
const DASHES: [&str; 4] = ["", "6 3", "2 2", "8 3 2 3"];

/// Lines with intervals of confidence.
pub(super) struct Lines;
/// Bars with intervals of confidence.
pub(super) struct Bars;
/// Boxes: quartiles, and all values that are far from them.
pub(super) struct Boxes;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Lines,
    Bars,
    Boxes,
}

impl Report for Lines {
    fn name(&self) -> &'static str {
        "line"
    }

    fn summary(&self) -> &'static str {
        "a line chart in SVG, with intervals of confidence"
    }

    fn write(&self, results: &Results, options: &Options) -> Result<Vec<u8>, String> {
        svg(results, options, Kind::Lines).map(String::into_bytes)
    }
}

impl Report for Bars {
    fn name(&self) -> &'static str {
        "bar"
    }

    fn summary(&self) -> &'static str {
        "a bar chart in SVG, with intervals of confidence"
    }

    fn write(&self, results: &Results, options: &Options) -> Result<Vec<u8>, String> {
        svg(results, options, Kind::Bars).map(String::into_bytes)
    }
}

impl Report for Boxes {
    fn name(&self) -> &'static str {
        "box"
    }

    fn summary(&self) -> &'static str {
        "a box plot in SVG: quartiles, and values far from them"
    }

    fn write(&self, results: &Results, options: &Options) -> Result<Vec<u8>, String> {
        svg(results, options, Kind::Boxes).map(String::into_bytes)
    }
}

/// The chart that suits results: lines where a number varies, else bars.
pub(super) fn suitable(results: &Results, options: &Options) -> Result<String, String> {
    let chosen = choose(results, options)?;
    let mut samples = chosen
        .panels
        .iter()
        .flat_map(|it| &it.lines)
        .flat_map(|it| &it.samples);
    let kind = match samples.all(|sample| sample.x.number().is_some()) {
        true => Kind::Lines,
        false => Kind::Bars,
    };
    Ok(draw(&chosen, kind))
}

fn svg(results: &Results, options: &Options, kind: Kind) -> Result<String, String> {
    let chosen = choose(results, options)?;
    let samples = || {
        chosen
            .panels
            .iter()
            .flat_map(|it| &it.lines)
            .flat_map(|it| &it.samples)
    };
    if kind == Kind::Lines && !samples().all(|sample| sample.x.number().is_some()) {
        return Err(
            "a line chart needs numbers at its axis; ask for `bar`, or name \
                    another variable with --x"
                .into(),
        );
    }
    if kind == Kind::Boxes && samples().any(|sample| sample.values.is_empty()) {
        return Err(
            "a box plot needs single values, and this has distributions; ask for `line` \
                    or `bar` with --statistic p99"
                .into(),
        );
    }
    Ok(draw(&chosen, kind))
}

fn draw(chosen: &Chosen, kind: Kind) -> String {
    let names: Vec<&str> = {
        let mut names: Vec<&str> = Vec::new();
        for line in chosen.panels.iter().flat_map(|panel| &panel.lines) {
            if !names.contains(&&*line.name) {
                names.push(&line.name);
            }
        }
        names
    };
    let has_legend = names.iter().any(|name| !name.is_empty());
    let rows = if has_legend { names.len() } else { 0 };
    let columns = chosen.panels.len().clamp(1, 3);
    let panel_rows = chosen.panels.len().div_ceil(columns).max(1);
    let width = size(columns) * WIDTH;
    let height = 30.0 + size(panel_rows) * HEIGHT + size(rows) * 18.0;
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"Helvetica, Arial, sans-serif\" \
         font-size=\"12\" role=\"img\">\n<title>{title}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        title = escaped(&chosen.title),
    );
    text(
        &mut out,
        width / 2.0,
        22.0,
        "middle",
        " font-size=\"15\"",
        &chosen.title,
    );
    for (index, panel) in chosen.panels.iter().enumerate() {
        let x = size(index % columns) * WIDTH;
        let y = 30.0 + size(index / columns) * HEIGHT;
        let _ = writeln!(out, "<g transform=\"translate({x} {y})\">");
        Area {
            out: &mut out,
            chosen,
            panel,
            names: &names,
        }
        .draw(kind);
        out.push_str("</g>\n");
    }
    for (index, name) in names.iter().enumerate().take(rows) {
        let y = 30.0 + size(panel_rows) * HEIGHT + size(index) * 18.0;
        let (colour, dash) = style(index);
        let _ = writeln!(
            out,
            "<path d=\"M{LEFT} {y} h30\" stroke=\"{colour}\" stroke-width=\"2\" \
             stroke-dasharray=\"{dash}\"/>"
        );
        text(&mut out, LEFT + 38.0, y + 4.0, "start", "", name);
    }
    out.push_str("</svg>\n");
    out
}

#[expect(clippy::cast_precision_loss, reason = "a few of them")]
fn size(count: usize) -> f64 {
    count as f64
}

fn style(index: usize) -> (&'static str, &'static str) {
    (
        COLOURS[index % COLOURS.len()],
        DASHES[index / COLOURS.len() % DASHES.len()],
    )
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, more: &str, text: &str) {
    let text = escaped(text);
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{more}>{text}</text>"
    );
}

/// The area of a panel.
struct Area<'a> {
    out: &'a mut String,
    chosen: &'a Chosen,
    panel: &'a Panel,
    /// All lines of all panels, so that each has one colour.
    names: &'a [&'a str],
}

impl Area<'_> {
    fn draw(&mut self, kind: Kind) {
        let samples = || self.panel.lines.iter().flat_map(|line| &line.samples);
        let heights = samples().flat_map(|sample| {
            let (low, high) = sample.interval.unwrap_or((sample.y, sample.y));
            let all = sample
                .values
                .iter()
                .copied()
                .filter(|_| kind == Kind::Boxes);
            [sample.y, low, high].into_iter().chain(all)
        });
        let y = Scale::of(heights, kind != Kind::Boxes, 5.0);
        self.frame(&y);
        match kind {
            Kind::Lines => self.lines(&y),
            Kind::Bars | Kind::Boxes => self.groups(&y, kind),
        }
    }

    fn frame(&mut self, y: &Scale) {
        for (mark, label) in y.marks() {
            let at = height(y, mark);
            let right = WIDTH - RIGHT;
            let _ = writeln!(
                self.out,
                "<path d=\"M{LEFT} {at:.1} H{right}\" stroke=\"#dddddd\"/>"
            );
            text(self.out, LEFT - 6.0, at + 4.0, "end", "", &label);
        }
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        let _ = writeln!(
            self.out,
            "<path d=\"M{LEFT} {TOP} V{bottom} H{right}\" fill=\"none\" stroke=\"black\"/>"
        );
        let middle = (LEFT + right) / 2.0;
        text(
            self.out,
            middle,
            TOP - 12.0,
            "middle",
            " font-weight=\"bold\"",
            &self.panel.title,
        );
        text(
            self.out,
            middle,
            HEIGHT - 12.0,
            "middle",
            "",
            &self.chosen.x_label,
        );
        let centre = (TOP + bottom) / 2.0;
        let turn = format!(" transform=\"rotate(-90 16 {centre})\"");
        text(
            self.out,
            16.0,
            centre,
            "middle",
            &turn,
            &self.chosen.y_label,
        );
    }

    fn index(&self, name: &str) -> usize {
        self.names
            .iter()
            .position(|known| *known == name)
            .unwrap_or(0)
    }

    fn lines(&mut self, y: &Scale) {
        let panel = self.panel;
        let all = panel.lines.iter().flat_map(|line| &line.samples);
        let x = Scale::of(all.filter_map(|sample| sample.x.number()), false, 6.0);
        for (mark, label) in x.marks() {
            let at = across(x.place(mark));
            self.mark(at, &label);
        }
        for line in &panel.lines {
            let (colour, dash) = style(self.index(&line.name));
            let place = |sample: &Sample| across(x.place(sample.x.number().unwrap_or(0.0)));
            let mut path = String::new();
            for sample in &line.samples {
                let command = if path.is_empty() { 'M' } else { 'L' };
                let _ = write!(
                    path,
                    "{command}{:.1} {:.1}",
                    place(sample),
                    height(y, sample.y)
                );
            }
            let _ = writeln!(
                self.out,
                "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
                 stroke-dasharray=\"{dash}\"/>"
            );
            for sample in &line.samples {
                self.interval(place(sample), sample, y, colour);
                let (at, level) = (place(sample), height(y, sample.y));
                let _ = writeln!(
                    self.out,
                    "<circle cx=\"{at:.1}\" cy=\"{level:.1}\" r=\"3\" fill=\"{colour}\"/>"
                );
            }
        }
    }

    fn mark(&mut self, at: f64, label: &str) {
        let bottom = HEIGHT - BOTTOM;
        let _ = writeln!(
            self.out,
            "<path d=\"M{at:.1} {bottom} v5\" stroke=\"black\"/>"
        );
        text(self.out, at, bottom + 18.0, "middle", "", label);
    }

    fn interval(&mut self, at: f64, sample: &Sample, y: &Scale, colour: &str) {
        if let Some((low, high)) = sample.interval {
            let (low, high) = (height(y, low), height(y, high));
            let _ = writeln!(
                self.out,
                "<path d=\"M{at:.1} {low:.1} V{high:.1} m-3 0 h6 M{:.1} {low:.1} h6\" \
                 stroke=\"{colour}\" fill=\"none\"/>",
                at - 3.0
            );
        }
    }

    /// Bars or boxes, those of one value next to each other.
    fn groups(&mut self, y: &Scale, kind: Kind) {
        let panel = self.panel;
        let mut places: Vec<&Value> = Vec::new();
        for sample in panel.lines.iter().flat_map(|line| &line.samples) {
            if !places.contains(&&sample.x) {
                places.push(&sample.x);
            }
        }
        let each = (WIDTH - LEFT - RIGHT) / size(places.len().max(1));
        let thick = each * 0.8 / size(panel.lines.len().max(1));
        for (place, value) in places.iter().enumerate() {
            let start = LEFT + size(place) * each;
            self.mark(start + each / 2.0, &value.to_string());
            for (index, line) in panel.lines.iter().enumerate() {
                let (colour, _) = style(self.index(&line.name));
                let Some(sample) = line.samples.iter().find(|sample| sample.x == **value) else {
                    continue;
                };
                let left = start + each * 0.1 + size(index) * thick;
                match kind {
                    Kind::Boxes => self.quartiles(left, thick, sample, y, colour),
                    _ => {
                        let (top, ground) = (height(y, sample.y), height(y, 0.0));
                        let _ = writeln!(
                            self.out,
                            "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{thick:.1}\" \
                             height=\"{:.1}\" fill=\"{colour}\" fill-opacity=\"0.8\"/>",
                            top.min(ground),
                            (top - ground).abs()
                        );
                        self.interval(left + thick / 2.0, sample, y, "black");
                    }
                }
            }
        }
    }

    /// Tukey's box: whiskers reach to values within 1.5 times its height.
    fn quartiles(&mut self, left: f64, thick: f64, sample: &Sample, y: &Scale, colour: &str) {
        let mut sorted = sample.values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |share| crate::statistics::percentile(&sorted, share);
        let (low, middle, high) = (at(25.0), at(50.0), at(75.0));
        let reach = 1.5 * (high - low);
        let is_near = |value: &&f64| (low - reach..=high + reach).contains(*value);
        let least = sorted.iter().find(is_near).copied().unwrap_or(low);
        let most = sorted.iter().rfind(is_near).copied().unwrap_or(high);
        let centre = left + thick / 2.0;
        let levels = [least, low, middle, high, most].map(|value| height(y, value));
        let [least, low, middle, high, most] = levels;
        let right = left + thick * 0.9;
        let _ = writeln!(
            self.out,
            "<path d=\"M{centre:.1} {least:.1} V{low:.1} M{centre:.1} {high:.1} V{most:.1}\" \
             stroke=\"{colour}\"/>\n<rect x=\"{:.1}\" y=\"{high:.1}\" width=\"{:.1}\" \
             height=\"{:.1}\" fill=\"{colour}\" fill-opacity=\"0.25\" stroke=\"{colour}\"/>\n\
             <path d=\"M{:.1} {middle:.1} H{right:.1}\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            left + thick * 0.1,
            thick * 0.8,
            low - high,
            left + thick * 0.1,
        );
        for value in sorted.iter().filter(|value| !is_near(value)) {
            let level = height(y, *value);
            let _ = writeln!(
                self.out,
                "<circle cx=\"{centre:.1}\" cy=\"{level:.1}\" r=\"2.5\" fill=\"none\" \
                 stroke=\"{colour}\"/>"
            );
        }
    }
}

fn across(share: f64) -> f64 {
    LEFT + share * (WIDTH - LEFT - RIGHT)
}

fn height(y: &Scale, value: f64) -> f64 {
    HEIGHT - BOTTOM - y.place(value) * (HEIGHT - TOP - BOTTOM)
}
