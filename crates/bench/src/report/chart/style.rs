//! What distinguishes lines, bars and boxes: in colour, and in print without it.

use std::fmt::Write;

/// Okabe and Ito's colours, without the yellow that is lost on white.
const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00", "#56b4e9",
];
const DASHES: [&str; 5] = ["", "5 2", "1.5 1.5", "7 2 1.5 2", "7 2 1.5 2 1.5 2"];
/// Outlines of marks around their middle, within 2.5 each way.
const SHAPES: [&str; 8] = [
    "m-2.2 0 a2.2 2.2 0 1 0 4.4 0 a2.2 2.2 0 1 0 -4.4 0z",
    "m-2 -2 h4 v4 h-4z",
    "m0 -2.6 l2.5 4.4 h-5z",
    "m0 -2.8 l2.4 2.8 l-2.4 2.8 l-2.4 -2.8z",
    "m0 2.6 l2.5 -4.4 h-5z",
    "m-2.6 0 l1.3 -2.3 h2.6 l1.3 2.3 l-1.3 2.3 h-2.6z",
    "m-2 -2 l4 4 m0 -4 l-4 4",
    "m-2.6 0 h5.2 m-2.6 -2.6 v5.2",
];
/// Lines across a square of 5 points.
const HATCHES: [&str; 6] = [
    "",
    "M-1 6 L6 -1 M-1 1 L1 -1 M4 6 L6 4",
    "M-1 -1 L6 6 M4 -1 L6 1 M-1 4 L1 6",
    "M0 2.5 H5",
    "M2.5 0 V5",
    "M0 2.5 H5 M2.5 0 V5",
];

/// The looks of one of several lines.
#[derive(Clone, Copy)]
pub(super) struct Look {
    index: usize,
}

impl Look {
    pub fn of(index: usize) -> Look {
        Look { index }
    }

    pub fn colour(self) -> &'static str {
        COLOURS[self.index % COLOURS.len()]
    }

    pub fn dash(self) -> &'static str {
        DASHES[self.index % DASHES.len()]
    }

    /// A mark at a place.
    pub fn mark(self, out: &mut String, x: f64, y: f64) {
        let colour = self.colour();
        // After all shapes, again with another inside.
        let fill = match self.index / SHAPES.len() % 2 {
            0 => colour,
            _ => "white",
        };
        let shape = SHAPES[self.index % SHAPES.len()];
        let _ = writeln!(
            out,
            "<path d=\"M{x:.1} {y:.1} {shape}\" fill=\"{fill}\" stroke=\"{colour}\"/>"
        );
    }

    /// A mark that can be seen on its own colour.
    pub fn mark_on_area(self, out: &mut String, x: f64, y: f64) {
        let shape = SHAPES[self.index % SHAPES.len()];
        let _ = writeln!(
            out,
            "<path d=\"M{x:.1} {y:.1} {shape}\" fill=\"none\" stroke=\"white\" \
             stroke-width=\"2.4\"/>"
        );
        self.mark(out, x, y);
    }

    /// What bars are filled with, defined once: colour with white lines. Where a page
    /// has several pictures, it is the same in all.
    pub fn define(self, out: &mut String) {
        let (colour, hatch) = (self.colour(), HATCHES[self.index % HATCHES.len()]);
        let _ = writeln!(
            out,
            "<pattern id=\"bar{}\" width=\"5\" height=\"5\" \
             patternUnits=\"userSpaceOnUse\"><rect width=\"5\" height=\"5\" \
             fill=\"{colour}\"/><path d=\"{hatch}\" stroke=\"white\" \
             stroke-width=\"0.8\"/></pattern>",
            self.index
        );
    }

    /// What refers to the definition.
    pub fn fill(self) -> String {
        format!("url(#bar{})", self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_differ_without_colour_too() {
        let grey = |index: usize| {
            let look = Look::of(index);
            let mut mark = String::new();
            look.mark(&mut mark, 0.0, 0.0);
            let shape = SHAPES[index % SHAPES.len()];
            (look.dash(), shape, mark.contains("white"))
        };
        for a in 0..40 {
            for b in 0..a {
                assert_ne!(grey(a), grey(b), "{a} {b}");
            }
        }
    }
}
