//! A table in plain text: aligned columns, two blanks between them.

/// How a column is aligned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// The rows below their headings, one line each, without trailing blanks.
pub fn render(columns: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let width_of = |index: usize| {
        rows.iter()
            .filter_map(|row| row.get(index))
            .map(|cell| cell.chars().count())
            .chain(std::iter::once(columns[index].0.chars().count()))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width_of).collect();
    let headings = columns.iter().map(|(title, _)| (*title).to_owned());
    let mut text = String::new();
    for row in std::iter::once(headings.collect::<Vec<_>>()).chain(rows.iter().cloned()) {
        let mut line = String::new();
        for ((cell, width), (_, align)) in row.iter().zip(&widths).zip(columns) {
            let blanks = " ".repeat(width.saturating_sub(cell.chars().count()));
            match align {
                Align::Left => line.push_str(&format!("{cell}{blanks}  ")),
                Align::Right => line.push_str(&format!("{blanks}{cell}  ")),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A measured number with four significant digits, thousands apart.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let magnitude = value.abs();
    let decimals = match magnitude {
        m if m >= 1000.0 || m == m.trunc() => 0,
        m if m >= 100.0 => 1,
        m if m >= 10.0 => 2,
        _ => 3,
    };
    let text = format!("{magnitude:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if value < 0.0 { "-" } else { "" };
    if fraction.is_empty() {
        format!("{sign}{grouped}")
    } else {
        format!("{sign}{grouped}.{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_lines_end_without_blanks() {
        let rows = [
            vec!["read".into(), "1".into(), "held".into()],
            vec!["größer".into(), "1,672".into(), String::new()],
        ];
        let columns = [
            ("goal", Align::Left),
            ("measured", Align::Right),
            ("", Align::Left),
        ];
        assert_eq!(
            render(&columns, &rows),
            "goal    measured\n\
             read           1  held\n\
             größer     1,672\n"
        );
    }

    #[test]
    fn numbers_keep_four_digits() {
        for (value, shown) in [
            (1.0, "1"),
            (0.2071, "0.207"),
            (14.6666, "14.67"),
            (148.25, "148.2"),
            (1672.4, "1,672"),
            (1_234_567.0, "1,234,567"),
            (-3.5, "-3.500"),
        ] {
            assert_eq!(number(value), shown);
        }
    }
}
