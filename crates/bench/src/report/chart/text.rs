//! Text in charts: how wide it is, and where lines end.

use std::fmt::Write;

use crate::description::escaped;

/// The fonts that are asked for, in this order; PNG is drawn in the first one.
/// The second is as wide, the others are narrower.
pub(super) const FONTS: &str = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif";

/// How wide the characters from the blank on are in DejaVu Sans, in thousandths
/// of the size.
#[rustfmt::skip]
const WIDTHS: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337,
    636, 636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531,
    1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787,
    603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500,
    500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612,
    635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
];

/// How wide a text is at a size of the font.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let width = |c: char| {
        let place = u32::from(c).checked_sub(u32::from(' '));
        let known = place.and_then(|place| WIDTHS.get(usize::try_from(place).ok()?));
        match (known, c) {
            (Some(known), _) => *known,
            (None, '\u{2212}') => 838,
            (None, '…') => 1000,
            // Scripts whose characters are squares.
            (None, '\u{1100}'..) => 1000,
            (None, _) => 650,
        }
    };
    text.chars().map(|c| f64::from(width(c))).sum::<f64>() * size / 1000.0
}

/// The widest of several texts.
pub(super) fn widest<'t>(texts: impl Iterator<Item = &'t str>, size: f64) -> f64 {
    texts.map(|text| width(text, size)).fold(0.0, f64::max)
}

/// A text in lines that are not wider than this, broken between words where that
/// is possible.
pub(super) fn wrap(text: &str, size: f64, width_max: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let longer = match line.is_empty() {
            true => word.to_owned(),
            false => format!("{line} {word}"),
        };
        if width(&longer, size) <= width_max {
            line = longer;
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for c in word.chars() {
            line.push(c);
            if width(&line, size) > width_max && line.chars().count() > 1 {
                line.pop();
                lines.push(std::mem::replace(&mut line, c.to_string()));
            }
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// How a text is written.
#[derive(Clone, Copy)]
pub(super) struct Style<'a> {
    pub size: f64,
    /// `start`, `middle` or `end` of the text is at its place.
    pub anchor: &'a str,
    /// Degrees about its place.
    pub turn: f64,
}

impl Style<'_> {
    pub fn of(size: f64, anchor: &str) -> Style<'_> {
        Style {
            size,
            anchor,
            turn: 0.0,
        }
    }
}

/// Writes a text.
pub(super) fn put(out: &mut String, x: f64, y: f64, style: Style, text: &str) {
    let Style { size, anchor, turn } = style;
    let turn = match turn == 0.0 {
        true => String::new(),
        false => format!(" transform=\"rotate({turn} {x:.1} {y:.1})\""),
    };
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" \
         text-anchor=\"{anchor}\"{turn}>{}</text>",
        escaped(text)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words_and_within_long_ones() {
        let wide = |lines: &[String]| lines.iter().all(|line| width(line, 10.0) <= 70.0);
        let lines = wrap("Throughput (messages / second)", 10.0, 70.0);
        assert!(wide(&lines), "{lines:?}");
        assert_eq!(lines.join(" "), "Throughput (messages / second)");
        let lines = wrap(&"x".repeat(50), 10.0, 70.0);
        assert!(lines.len() > 3 && wide(&lines), "{lines:?}");
        assert_eq!(lines.concat(), "x".repeat(50));
        // A character that is wider than the line has a line of its own.
        assert_eq!(wrap("ab", 10.0, 1.0), ["a", "b"]);
        assert!(wrap("  ", 10.0, 50.0).is_empty());
    }
}
