//! One panel: its axes, and what stands between them.

use std::fmt::Write;

use super::super::scale::{Axis, Scale, raised};
use super::super::series::{Chosen, Panel, Sample};
use super::style::Look;
use super::text::{Style, put, widest, width, wrap};
use super::{Kind, LEADING, Options, SMALL, TEXT, samples, size};
use crate::Value;

/// The axes of all panels. What is the same on them has the same scale, and all
/// have the same room.
pub(super) struct Axes<'a> {
    /// Of the numbers that vary, in charts of lines.
    x: Option<Axis>,
    /// Or else the values that stand side by side.
    groups: Vec<&'a Value>,
    /// Of each panel.
    pub y: Vec<Axis>,
    x_label: Vec<String>,
    /// The area between the axes, in a panel of this size.
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    /// How high the labels below are.
    below: f64,
    /// Degrees by which these are turned, where they would overlap.
    turn: f64,
    /// Every how many-th group has a label.
    labelled: usize,
    /// Of a panel, with all that stands around it.
    pub height: f64,
}

/// From an axis to its labels.
const GAP: f64 = 5.0;

impl<'a> Axes<'a> {
    pub fn of(
        chosen: &'a Chosen,
        options: &Options,
        kind: Kind,
        (panel_width, panel_height): (f64, f64),
    ) -> Axes<'a> {
        let picture = &options.picture;
        let y_of = |panel: &Panel| {
            // Panels of one thing can be compared.
            let same = chosen.panels.iter().filter(|it| it.metric == panel.metric);
            let samples = same.flat_map(|it| &it.lines).flat_map(|it| &it.samples);
            let numbers = samples.flat_map(|sample| {
                let (low, high) = sample.interval.unwrap_or((sample.y, sample.y));
                let all = sample.values.iter().filter(|_| kind == Kind::Boxes);
                [sample.y, low, high].into_iter().chain(all.copied())
            });
            // Powers are further apart than what they are powers of.
            let each = if picture.y_scale == Scale::Log {
                16.0
            } else {
                28.0
            };
            let marks = (panel_height / each).clamp(3.0, 8.0);
            Axis::of(numbers, picture.y_scale, kind != Kind::Boxes, marks)
        };
        let y: Vec<Axis> = chosen.panels.iter().map(y_of).collect();
        let labels = y.iter().flat_map(|axis| &axis.marks);
        let widest_y = widest(labels.map(|mark| &*mark.label), SMALL);
        let lines = |panel: &Panel| wrap(&panel.y_label, TEXT, panel_height - 50.0).len();
        let lines_y = chosen.panels.iter().map(lines).max().unwrap_or(0);
        let left = 4.0 + size(lines_y) * TEXT * LEADING + 3.0 + widest_y + GAP;
        let mut axes = Axes {
            x: None,
            groups: Vec::new(),
            y,
            x_label: Vec::new(),
            left,
            right: panel_width - 8.0,
            top: 0.0,
            bottom: 0.0,
            below: SMALL * LEADING,
            turn: 0.0,
            labelled: 1,
            height: panel_height,
        };
        match kind {
            Kind::Lines => axes.numbers(chosen, options),
            Kind::Bars | Kind::Boxes => axes.side_by_side(chosen),
        }
        if picture.height_mm.is_none() {
            // Long labels are no reason for small areas.
            axes.height += axes.below - SMALL * LEADING;
        }
        axes.x_label = wrap(&chosen.x_label, TEXT, axes.right - axes.left);
        let titles = chosen.panels.iter().map(|panel| axes.title(panel).len());
        let titles = size(titles.max().unwrap_or(0)) * TEXT * LEADING;
        let has_power = axes.y.iter().any(|axis| axis.power != 0);
        axes.top = 3.0 + titles + if has_power { SMALL * LEADING } else { 3.0 };
        let labels = size(axes.x_label.len()) * TEXT * LEADING + 4.0;
        axes.bottom = (axes.height - GAP - axes.below - labels).max(axes.top + 30.0);
        axes
    }

    /// An axis of numbers, with as many marks as have room for their labels.
    fn numbers(&mut self, chosen: &Chosen, options: &Options) {
        for marks in [8.0, 6.0, 4.0, 3.0, 2.0] {
            let numbers = samples(chosen).filter_map(|sample| sample.x.number());
            let axis = Axis::of(numbers, options.picture.x_scale, false, marks);
            let mut labels = axis.marks.iter().map(|mark| &*mark.label);
            let needed: f64 = labels.clone().map(|label| width(label, SMALL) + 8.0).sum();
            let last = labels.next_back().map_or(0.0, |label| width(label, SMALL));
            self.x = Some(axis);
            if needed <= self.right - self.left {
                self.right -= (last / 2.0 - 6.0).max(0.0);
                return;
            }
        }
    }

    fn side_by_side(&mut self, chosen: &'a Chosen) {
        for sample in samples(chosen) {
            if !self.groups.contains(&&sample.x) {
                self.groups.push(&sample.x);
            }
        }
        let each = (self.right - self.left) / size(self.groups.len().max(1));
        let texts: Vec<String> = self.groups.iter().map(ToString::to_string).collect();
        let words = texts.iter().flat_map(|text| text.split_whitespace());
        if widest(words, SMALL) + 4.0 <= each {
            let lines = texts.iter().map(|text| wrap(text, SMALL, each - 4.0).len());
            self.below = size(lines.max().unwrap_or(1).clamp(1, 4)) * SMALL * LEADING;
            return;
        }
        let widest = widest(texts.iter().map(String::as_str), SMALL);
        self.turn = -45.0;
        self.below = widest.min(Axes::TURNED_MAX) * 0.71 + SMALL;
        let line = SMALL * 1.6;
        while size(self.labelled) * each < line && self.labelled < self.groups.len() {
            self.labelled += 1;
        }
    }

    /// How long a label that is turned may be.
    const TURNED_MAX: f64 = 90.0;

    fn title(&self, panel: &Panel) -> Vec<String> {
        wrap(&panel.title, TEXT, self.right - self.left)
    }

    fn across(&self, place: f64) -> f64 {
        self.left + place * (self.right - self.left)
    }
}

/// A panel that is drawn.
pub(super) struct Area<'a> {
    pub out: &'a mut String,
    pub panel: &'a Panel,
    pub axes: &'a Axes<'a>,
    pub y: &'a Axis,
    /// All lines of all panels, so that each looks the same everywhere.
    pub names: &'a [&'a str],
}

impl Area<'_> {
    pub fn draw(&mut self, kind: Kind) {
        self.frame();
        match kind {
            Kind::Lines => self.lines(),
            Kind::Bars | Kind::Boxes => self.groups(kind),
        }
        // Above bars that end there.
        self.outline();
    }

    fn height(&self, value: f64) -> f64 {
        self.level(self.y.place(value))
    }

    fn level(&self, place: f64) -> f64 {
        let Axes { top, bottom, .. } = self.axes;
        bottom - place * (bottom - top)
    }

    fn path(&mut self, d: &str, stroke: &str, width: f64) {
        let _ = writeln!(
            self.out,
            "<path d=\"{d}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{width}\"/>"
        );
    }

    fn frame(&mut self) {
        let axes = self.axes;
        let (left, right, top, bottom) = (axes.left, axes.right, axes.top, axes.bottom);
        let mut grid = String::new();
        let mut ticks = String::new();
        for mark in &self.y.marks {
            let at = self.level(mark.place);
            let _ = write!(grid, "M{left:.1} {at:.1} H{right:.1} ");
            let _ = write!(ticks, "M{left:.1} {at:.1} h-3 ");
            let style = Style::of(SMALL, "end");
            put(self.out, left - GAP, at + SMALL * 0.36, style, &mark.label);
        }
        for place in &self.y.minor {
            let _ = write!(ticks, "M{left:.1} {:.1} h-1.5 ", self.level(*place));
        }
        if let Some(x) = &axes.x {
            for mark in &x.marks {
                let at = axes.across(mark.place);
                let _ = write!(grid, "M{at:.1} {top:.1} V{bottom:.1} ");
                let _ = write!(ticks, "M{at:.1} {bottom:.1} v3 ");
                let down = bottom + GAP + SMALL * 0.8;
                put(self.out, at, down, Style::of(SMALL, "middle"), &mark.label);
            }
            for place in &x.minor {
                let _ = write!(ticks, "M{:.1} {bottom:.1} v1.5 ", axes.across(*place));
            }
        }
        self.path(&grid, "#e2e2e2", 0.5);
        self.path(&ticks, "black", 0.6);
        self.labels();
    }

    /// What stands around: title, names of axes, powers of ten.
    fn labels(&mut self) {
        let axes = self.axes;
        let middle = f64::midpoint(axes.left, axes.right);
        let style = Style::of(TEXT, "middle");
        for (index, line) in axes.title(self.panel).iter().enumerate() {
            let down = 2.0 + (size(index) + 0.85) * TEXT * LEADING;
            put(self.out, middle, down, style, line);
        }
        let count = axes.x_label.len();
        // Where the lowest line stands.
        let end = axes.bottom + GAP + axes.below + size(count) * TEXT * LEADING;
        for (index, line) in axes.x_label.iter().enumerate() {
            let up = size(count - 1 - index) * TEXT * LEADING;
            put(self.out, middle, end - up, style, line);
        }
        let centre = f64::midpoint(axes.top, axes.bottom);
        let height = axes.bottom - axes.top;
        let turned = Style {
            turn: -90.0,
            ..style
        };
        // The lines that the room was made for, or fewer.
        let lines = wrap(&self.panel.y_label, TEXT, height.max(80.0));
        for (index, line) in lines.iter().enumerate() {
            let at = 4.0 + (size(index) + 0.85) * TEXT * LEADING;
            put(self.out, at, centre, turned, line);
        }
        if self.y.power != 0 {
            let power = format!("×{}", raised(10, self.y.power));
            let (x, y) = (axes.left, axes.top - 3.0);
            put(self.out, x, y, Style::of(SMALL, "start"), &power);
        }
        if let Some(x) = axes.x.as_ref().filter(|x| x.power != 0) {
            let power = format!("×{}", raised(10, x.power));
            let (at, y) = (axes.right + 6.0, end);
            put(self.out, at, y, Style::of(SMALL, "end"), &power);
        }
    }

    fn outline(&mut self) {
        let Axes {
            left,
            right,
            top,
            bottom,
            ..
        } = self.axes;
        let outline = format!("M{left:.1} {top:.1} V{bottom:.1} H{right:.1}");
        self.path(&outline, "black", 0.8);
    }

    fn look(&self, name: &str) -> Look {
        let index = self.names.iter().position(|known| *known == name);
        Look::of(index.unwrap_or(0))
    }

    fn lines(&mut self) {
        let (panel, axes) = (self.panel, self.axes);
        let Some(x) = &axes.x else { return };
        let place = |sample: &Sample| axes.across(x.place(sample.x.number().unwrap_or(0.0)));
        for line in &panel.lines {
            let look = self.look(&line.name);
            let mut path = String::new();
            for sample in &line.samples {
                let command = if path.is_empty() { 'M' } else { 'L' };
                let level = self.height(sample.y);
                let _ = write!(path, "{command}{:.1} {level:.1}", place(sample));
            }
            let _ = writeln!(
                self.out,
                "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.3\" \
                 stroke-dasharray=\"{}\"/>",
                look.colour(),
                look.dash()
            );
        }
        for line in &panel.lines {
            let look = self.look(&line.name);
            for sample in &line.samples {
                self.interval(place(sample), sample, look.colour());
            }
            for sample in &line.samples {
                let level = self.height(sample.y);
                look.mark(self.out, place(sample), level);
            }
        }
    }

    fn interval(&mut self, at: f64, sample: &Sample, colour: &str) {
        if let Some((low, high)) = sample.interval {
            let (low, high) = (self.height(low), self.height(high));
            let left = at - 2.5;
            let whisker = format!("M{at:.1} {low:.1} V{high:.1} m-2.5 0 h5 M{left:.1} {low:.1} h5");
            if colour == "black" {
                // On bars, which may be black, too.
                self.path(&whisker, "white", 2.0);
            }
            if colour == "black" {
                // On bars, which may be black, too.
                self.path(&whisker, "white", 2.0);
            }
            self.path(&whisker, colour, 0.8);
        }
    }

    /// Bars or boxes, those of one value next to each other.
    fn groups(&mut self, kind: Kind) {
        let (panel, axes) = (self.panel, self.axes);
        let each = (axes.right - axes.left) / size(axes.groups.len().max(1));
        let thick = each * 0.8 / size(panel.lines.len().max(1));
        for (place, value) in axes.groups.iter().enumerate() {
            let start = axes.left + size(place) * each;
            if place % axes.labelled == 0 {
                self.group_label(start + each / 2.0, &value.to_string());
            }
            for (index, line) in panel.lines.iter().enumerate() {
                let look = self.look(&line.name);
                let Some(sample) = line.samples.iter().find(|sample| sample.x == **value) else {
                    continue;
                };
                let left = start + each * 0.1 + size(index) * thick;
                match kind {
                    Kind::Boxes => self.quartiles(left, thick, sample, look),
                    _ => self.bar(left, thick, sample, look),
                }
            }
        }
    }

    fn group_label(&mut self, at: f64, text: &str) {
        let axes = self.axes;
        let bottom = axes.bottom;
        self.path(&format!("M{at:.1} {bottom:.1} v3"), "black", 0.6);
        if axes.turn == 0.0 {
            let each = (axes.right - axes.left) / size(axes.groups.len().max(1));
            for (index, line) in wrap(text, SMALL, each - 4.0).iter().take(4).enumerate() {
                let down = bottom + GAP + SMALL * 0.8 + size(index) * SMALL * LEADING;
                put(self.out, at, down, Style::of(SMALL, "middle"), line);
            }
            return;
        }
        // As much as there is room for on the way to the left edge.
        let room = Axes::TURNED_MAX.min(at / 0.71 - 2.0);
        let shown = match width(text, SMALL) <= room {
            true => text.to_owned(),
            false => {
                let lines = wrap(text, SMALL, room - width("…", SMALL));
                lines
                    .first()
                    .map_or(String::new(), |line| format!("{line}…"))
            }
        };
        let style = Style {
            turn: axes.turn,
            ..Style::of(SMALL, "end")
        };
        let down = bottom + GAP + SMALL * 0.6;
        put(self.out, at + 2.0, down, style, &shown);
    }

    fn bar(&mut self, left: f64, thick: f64, sample: &Sample, look: Look) {
        let (top, ground) = (self.height(sample.y), self.level(self.y.ground()));
        let _ = writeln!(
            self.out,
            "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{thick:.1}\" height=\"{:.1}\" \
             fill=\"{}\" stroke=\"{}\" stroke-width=\"0.6\"/>",
            top.min(ground),
            (top - ground).abs(),
            look.fill(),
            look.colour()
        );
        self.interval(left + thick / 2.0, sample, "black");
    }

    /// Tukey's box: whiskers reach to values within 1.5 times its height.
    fn quartiles(&mut self, left: f64, thick: f64, sample: &Sample, look: Look) {
        let mut sorted = sample.values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |share| crate::statistics::percentile(&sorted, share);
        let (low, middle, high) = (at(25.0), at(50.0), at(75.0));
        let reach = 1.5 * (high - low);
        let is_near = |value: &&f64| (low - reach..=high + reach).contains(*value);
        let least = sorted.iter().find(is_near).copied().unwrap_or(low);
        let most = sorted.iter().rfind(is_near).copied().unwrap_or(high);
        let centre = left + thick / 2.0;
        let half = (thick * 0.4).min(16.0);
        let levels = [least, low, middle, high, most].map(|value| self.height(value));
        let [least, low, middle, high, most] = levels;
        let (start, end, colour) = (centre - half, centre + half, look.colour());
        let cap = half / 2.0;
        let whiskers = format!(
            "M{centre:.1} {least:.1} V{low:.1} M{centre:.1} {high:.1} V{most:.1} \
             M{:.1} {least:.1} h{half:.1} M{:.1} {most:.1} h{half:.1}",
            centre - cap,
            centre - cap
        );
        self.path(&whiskers, colour, 0.8);
        let _ = writeln!(
            self.out,
            "<rect x=\"{start:.1}\" y=\"{high:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
             fill=\"{colour}\" fill-opacity=\"0.25\" stroke=\"{colour}\" \
             stroke-width=\"0.8\"/>",
            half * 2.0,
            low - high
        );
        self.path(&format!("M{start:.1} {middle:.1} H{end:.1}"), colour, 1.6);
        let level = self.height(sample.y);
        look.mark_on_area(self.out, centre, level);
        for value in sorted.iter().filter(|value| !is_near(value)) {
            let level = self.height(*value);
            let _ = writeln!(
                self.out,
                "<circle cx=\"{centre:.1}\" cy=\"{level:.1}\" r=\"1.6\" fill=\"none\" \
                 stroke=\"{colour}\" stroke-width=\"0.7\"/>"
            );
        }
    }
}
