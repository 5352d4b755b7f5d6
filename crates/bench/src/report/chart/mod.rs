//! Charts: lines, bars and boxes, as SVG and PNG, to stand in a paper.
//!
//! Sizes are in points, as those of the text around a figure. Lines differ in
//! colours that can be told apart by people who see few of them, and in dashes and
//! marks, areas in hatches, for print without colour. Nothing is loaded from
//! anywhere, and no text of a result becomes markup.

mod panel;
#[cfg(feature = "png")]
mod png;
mod style;
mod text;

use std::fmt::Write;

use panel::{Area, Axes};
use style::Look;
use text::{Style, put, wrap};

use super::series::{Chosen, Sample, choose};
use super::{Options, Picture, Report};
use crate::description::escaped;
use crate::result::Results;

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

/// Points in a millimetre.
const POINTS_PER_MM: f64 = 72.0 / 25.4;
/// Sizes of the font.
const TITLE: f64 = 9.0;
const TEXT: f64 = 8.0;
const SMALL: f64 = 7.0;
/// From one line to the next, times the size.
const LEADING: f64 = 1.25;
/// More panels are no picture.
const PANELS_MAX: usize = 60;

impl Report for Lines {
    fn name(&self) -> &'static str {
        "line"
    }

    fn summary(&self) -> &'static str {
        "a line chart in SVG or PNG, with intervals of confidence"
    }

    fn write(&self, results: &Results, options: &Options) -> Result<Vec<u8>, String> {
        picture(results, options, Kind::Lines)
    }
}

impl Report for Bars {
    fn name(&self) -> &'static str {
        "bar"
    }

    fn summary(&self) -> &'static str {
        "a bar chart in SVG or PNG, with intervals of confidence"
    }

    fn write(&self, results: &Results, options: &Options) -> Result<Vec<u8>, String> {
        picture(results, options, Kind::Bars)
    }
}

impl Report for Boxes {
    fn name(&self) -> &'static str {
        "box"
    }

    fn summary(&self) -> &'static str {
        "a box plot in SVG or PNG: quartiles, means, and values far from them"
    }

    fn write(&self, results: &Results, options: &Options) -> Result<Vec<u8>, String> {
        picture(results, options, Kind::Boxes)
    }
}

fn picture(results: &Results, options: &Options, kind: Kind) -> Result<Vec<u8>, String> {
    let chosen = choose(results, options)?;
    let svg = draw(&chosen, options, kind)?;
    match options.picture.format {
        super::Format::Svg => Ok(svg.into_bytes()),
        #[cfg(feature = "png")]
        super::Format::Png => png::of(&svg, &options.picture, &about(results, &chosen)),
        #[cfg(not(feature = "png"))]
        super::Format::Png => Err("this milieu was built without `png`; ask for SVG".into()),
    }
}

/// What a picture says of itself to whoever finds it alone.
#[cfg(feature = "png")]
fn about(results: &Results, chosen: &Chosen) -> String {
    let hosts: Vec<&str> = results.hosts.values().map(|host| &*host.name).collect();
    format!(
        "{}: {} against {}; measured {} by milieu {} on {}",
        results.group.name,
        chosen.y_label,
        chosen.x_label,
        results.started,
        results.milieu,
        hosts.join(", ")
    )
}

/// The charts that suit results, one for each thing that was measured: lines where
/// a number varies, else bars.
pub(super) fn suitable(results: &Results, options: &Options) -> Result<String, String> {
    let mut options = options.clone();
    // The page says it.
    options.picture.title.get_or_insert_default();
    options.picture.format = super::Format::Svg;
    let chosen = choose(results, &options)?;
    let kind = match is_of_numbers(&chosen) {
        true => Kind::Lines,
        false => Kind::Bars,
    };
    draw(&chosen, &options, kind)
}

fn samples(chosen: &Chosen) -> impl Iterator<Item = &Sample> {
    let lines = chosen.panels.iter().flat_map(|panel| &panel.lines);
    lines.flat_map(|line| &line.samples)
}

fn is_of_numbers(chosen: &Chosen) -> bool {
    samples(chosen).all(|sample| sample.x.number().is_some())
}

/// What cannot be drawn is said.
fn check(chosen: &Chosen, options: &Options, kind: Kind) -> Result<(), String> {
    let Picture {
        x_scale, y_scale, ..
    } = options.picture;
    let is_log = |scale| scale == super::Scale::Log;
    if kind == Kind::Lines && !is_of_numbers(chosen) {
        return Err(
            "a line chart needs numbers at its axis; ask for `bar`, or name another \
             variable with --x"
                .into(),
        );
    }
    if kind == Kind::Boxes && samples(chosen).any(|sample| sample.values.is_empty()) {
        return Err(
            "a box plot needs single values, and this has distributions; ask for `line` or \
             `bar` with --statistic p99"
                .into(),
        );
    }
    if kind != Kind::Lines && is_log(x_scale) {
        return Err(
            "bars and boxes stand side by side, at no scale; leave out --x-scale, or ask for \
             `line`"
                .into(),
        );
    }
    let is_above = |value: f64| value > 0.0;
    let fits = |sample: &Sample| {
        let y = is_above(sample.y)
            && (kind != Kind::Boxes || sample.values.iter().all(|it| is_above(*it)));
        (!is_log(y_scale) || y) && (!is_log(x_scale) || sample.x.number().is_some_and(is_above))
    };
    if !samples(chosen).all(fits) {
        return Err(
            "a logarithmic scale has only numbers above 0, and there are others; leave out \
             --x-scale or --y-scale"
                .into(),
        );
    }
    if chosen.panels.len() > PANELS_MAX {
        return Err(format!(
            "{} panels are too many for a picture; choose with --metric, --test or --panels",
            chosen.panels.len()
        ));
    }
    Ok(())
}

/// Where everything stands.
struct Layout {
    width: f64,
    columns: usize,
    /// Of one panel, with its labels.
    panel: (f64, f64),
    /// Lines of the title.
    title: Vec<String>,
    legend: Legend,
}

impl Layout {
    fn of(chosen: &Chosen, options: &Options, names: &[&str]) -> Layout {
        let picture = &options.picture;
        let count = chosen.panels.len().max(1);
        let usual = if count == 1 { 120.0 } else { 170.0 };
        let width = picture.width_mm.unwrap_or(usual).clamp(30.0, 2000.0) * POINTS_PER_MM;
        // A panel needs some 50 mm.
        let fitting = (1..=3)
            .rev()
            .find(|columns| width / size(*columns) >= 140.0);
        let columns = fitting.unwrap_or(1).min(count);
        let each = width / size(columns);
        let usual = (each * 0.68).clamp(130.0, 260.0);
        let rows = size(count.div_ceil(columns));
        let height = picture.height_mm.map_or(usual, |height| {
            (height.clamp(20.0, 2000.0) * POINTS_PER_MM / rows).max(90.0)
        });
        Layout {
            width,
            columns,
            panel: (each, height),
            title: wrap(&chosen.title, TITLE, width - 8.0),
            legend: Legend::of(&chosen.legend, names, width),
        }
    }

    fn top(&self) -> f64 {
        4.0 + size(self.title.len()) * TITLE * LEADING
    }
}

/// What the lines are called, below all panels, where it covers nothing.
struct Legend {
    /// What tells the names apart.
    heading: String,
    /// Each name, in lines.
    names: Vec<Vec<String>>,
    columns: usize,
    column: f64,
}

impl Legend {
    /// Room for the line or area that a name is of.
    const KEY: f64 = 30.0;

    fn of(heading: &str, names: &[&str], width: f64) -> Legend {
        // One line without a name needs none.
        let names: &[&str] = if names.iter().all(|name| name.is_empty()) {
            &[]
        } else {
            names
        };
        let room = width - 16.0 - Legend::KEY;
        let names: Vec<Vec<String>> = names.iter().map(|name| wrap(name, TEXT, room)).collect();
        let lines = names.iter().flatten().map(String::as_str);
        let widest = text::widest(lines, TEXT) + Legend::KEY + 12.0;
        let fitting = (1..=names.len().max(1))
            .rev()
            .find(|columns| size(*columns) * widest <= width - 4.0);
        Legend {
            heading: heading.to_owned(),
            columns: fitting.unwrap_or(1),
            column: widest,
            names,
        }
    }

    fn rows(&self) -> impl Iterator<Item = &[Vec<String>]> {
        self.names.chunks(self.columns)
    }

    /// The height of a row.
    fn row(names: &[Vec<String>]) -> f64 {
        let lines = names.iter().map(Vec::len).max().unwrap_or(1).max(1);
        size(lines) * TEXT * LEADING + 2.0
    }

    fn height(&self) -> f64 {
        if self.names.is_empty() {
            return 0.0;
        }
        let rows: f64 = self.rows().map(Legend::row).sum();
        rows + self.heading_height() + 6.0
    }

    fn heading_height(&self) -> f64 {
        match self.heading.is_empty() {
            true => 0.0,
            false => TEXT * LEADING,
        }
    }

    fn draw(&self, out: &mut String, width: f64, top: f64, kind: Kind) {
        let used = size(self.columns) * self.column - 12.0;
        let left = ((width - used) / 2.0).max(4.0);
        if !self.heading.is_empty() {
            let down = top + 4.0 + TEXT * LEADING * 0.85;
            put(
                out,
                width / 2.0,
                down,
                Style::of(TEXT, "middle"),
                &self.heading,
            );
        }
        let mut y = top + 4.0 + self.heading_height();
        for (row, names) in self.rows().enumerate() {
            for (column, lines) in names.iter().enumerate() {
                let look = Look::of(row * self.columns + column);
                let x = left + size(column) * self.column;
                let middle = y + TEXT * LEADING / 2.0;
                let colour = look.colour();
                match kind {
                    Kind::Lines => {
                        let _ = writeln!(
                            out,
                            "<path d=\"M{x:.1} {middle:.1} h24\" stroke=\"{colour}\" \
                             stroke-width=\"1.3\" stroke-dasharray=\"{}\"/>",
                            look.dash()
                        );
                        look.mark(out, x + 12.0, middle);
                    }
                    Kind::Bars => {
                        let _ = writeln!(
                            out,
                            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"18\" height=\"7\" \
                             fill=\"{}\" stroke=\"{colour}\"/>",
                            x + 6.0,
                            middle - 3.5,
                            look.fill()
                        );
                    }
                    Kind::Boxes => {
                        let _ = writeln!(
                            out,
                            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"18\" height=\"7\" \
                             fill=\"{colour}\" fill-opacity=\"0.25\" stroke=\"{colour}\"/>",
                            x + 6.0,
                            middle - 3.5
                        );
                        look.mark_on_area(out, x + 15.0, middle);
                    }
                }
                for (index, line) in lines.iter().enumerate() {
                    let down = y + (size(index) + 0.85) * TEXT * LEADING;
                    put(out, x + Legend::KEY, down, Style::of(TEXT, "start"), line);
                }
            }
            y += Legend::row(names);
        }
    }
}

/// Names of lines, each once, in their order.
fn names(chosen: &Chosen) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for line in chosen.panels.iter().flat_map(|panel| &panel.lines) {
        if !names.contains(&&*line.name) {
            names.push(&line.name);
        }
    }
    names
}

/// The picture.
fn draw(chosen: &Chosen, options: &Options, kind: Kind) -> Result<String, String> {
    check(chosen, options, kind)?;
    let names = names(chosen);
    let layout = Layout::of(chosen, options, &names);
    let (panel_width, _) = layout.panel;
    let rows = size(chosen.panels.len().div_ceil(layout.columns).max(1));
    let axes = Axes::of(chosen, options, kind, layout.panel);
    let legend_top = layout.top() + rows * axes.height;
    let (width, height) = (layout.width, legend_top + layout.legend.height() + 3.0);
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.2}mm\" height=\"{:.2}mm\" \
         viewBox=\"0 0 {width:.2} {height:.2}\" font-family=\"{}\" stroke-linejoin=\"round\" \
         role=\"img\">\n<title>{}</title>\n<rect width=\"100%\" height=\"100%\" \
         fill=\"white\"/>\n",
        width / POINTS_PER_MM,
        height / POINTS_PER_MM,
        text::FONTS,
        escaped(match chosen.title.is_empty() {
            true => &chosen.y_label,
            false => &chosen.title,
        }),
    );
    if kind == Kind::Bars {
        out.push_str("<defs>\n");
        for index in 0..names.len() {
            Look::of(index).define(&mut out);
        }
        out.push_str("</defs>\n");
    }
    for (index, line) in layout.title.iter().enumerate() {
        let y = 3.0 + (size(index) + 0.9) * TITLE * LEADING;
        put(&mut out, width / 2.0, y, Style::of(TITLE, "middle"), line);
    }
    for (index, panel) in chosen.panels.iter().enumerate() {
        let x = size(index % layout.columns) * panel_width;
        let y = layout.top() + size(index / layout.columns) * axes.height;
        let _ = writeln!(out, "<g transform=\"translate({x:.2} {y:.2})\">");
        Area {
            out: &mut out,
            panel,
            axes: &axes,
            y: &axes.y[index],
            names: &names,
        }
        .draw(kind);
        out.push_str("</g>\n");
    }
    let legend = &layout.legend;
    legend.draw(&mut out, width, legend_top, kind);
    out.push_str("</svg>\n");
    Ok(out)
}

#[expect(clippy::cast_precision_loss, reason = "a few of them")]
fn size(count: usize) -> f64 {
    count as f64
}
