//! Lines with indentation, for back ends that write source text.

/// Collects lines; four spaces a level.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    text: String,
    depth: usize,
}

impl Writer {
    /// One line at the present depth. An empty line stays empty.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if !line.is_empty() {
            for _ in 0..self.depth {
                self.text.push_str("    ");
            }
            self.text.push_str(line);
        }
        self.text.push('\n');
    }

    /// An empty line, unless one stands there already or a block has just begun.
    pub(crate) fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") && !self.text.ends_with("{\n") {
            self.text.push('\n');
        }
    }

    /// A line that opens a block.
    pub(crate) fn open(&mut self, line: impl AsRef<str>) {
        self.line(line);
        self.indent();
    }

    /// A line that closes a block; on the line that opened it, if there is
    /// nothing between.
    pub(crate) fn close(&mut self, line: impl AsRef<str>) {
        self.depth -= 1;
        if self.text.ends_with("{\n") || self.text.ends_with("[\n") {
            self.text.pop();
            self.text.push_str(line.as_ref());
            self.text.push('\n');
        } else {
            self.line(line);
        }
    }

    /// Goes one level deeper.
    pub(crate) fn indent(&mut self) {
        self.depth += 1;
    }

    /// Columns that the indentation takes.
    pub(crate) fn indentation(&self) -> usize {
        self.depth * 4
    }

    /// What was written.
    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// The longest line.
const LINE: usize = 100;

impl Writer {
    /// An array literal between `prefix` and `suffix`, laid out as rustfmt would.
    pub(crate) fn array(&mut self, prefix: &str, items: &[String], suffix: &str) {
        /// Wider arrays are broken.
        const ARRAY: usize = 60;
        /// Shorter elements share lines in broken arrays.
        const SHORT: usize = 10;
        let inline = format!("[{}]", items.join(", "));
        let width = self.indentation() + columns(prefix) + columns(&inline) + columns(suffix);
        if columns(&inline) - 2 <= ARRAY && width <= LINE {
            self.line(format!("{prefix}{inline}{suffix}"));
            return;
        }
        self.open(format!("{prefix}["));
        if items.iter().all(|item| columns(item) <= SHORT) {
            let mut row = String::new();
            for item in items {
                let full = self.indentation() + columns(&row) + columns(item) + 2 > LINE;
                if full && !row.is_empty() {
                    self.line(row.trim_end());
                    row.clear();
                }
                row.push_str(item);
                row.push_str(", ");
            }
            self.line(row.trim_end());
        } else {
            for item in items {
                self.line(format!("{item},"));
            }
        }
        self.close(format!("]{suffix}"));
    }

    /// An array of pairs, likewise.
    pub(crate) fn pairs(&mut self, prefix: &str, pairs: &[(String, String)], suffix: &str) {
        let inline: Vec<_> = pairs
            .iter()
            .map(|(one, other)| format!("({one}, {other})"))
            .collect();
        let room = LINE - self.indentation() - 4;
        if inline.iter().all(|pair| columns(pair) < room) {
            self.array(prefix, &inline, suffix);
            return;
        }
        self.open(format!("{prefix}["));
        for (pair, (one, other)) in inline.iter().zip(pairs) {
            if columns(pair) < room {
                self.line(format!("{pair},"));
            } else {
                self.open("(");
                self.line(format!("{one},"));
                self.line(format!("{other},"));
                self.close("),");
            }
        }
        self.close(format!("]{suffix}"));
    }

    /// A struct literal, laid out as rustfmt would.
    pub(crate) fn literal(&mut self, name: &str, fields: &[String]) {
        /// Wider literals are broken.
        const LITERAL: usize = 18;

        let inline = fields.join(", ");
        if columns(&inline) <= LITERAL {
            self.line(format!("{name} {{ {inline} }}"));
            return;
        }
        self.open(format!("{name} {{"));
        for field in fields {
            self.line(format!("{field},"));
        }
        self.close("}");
    }
}

fn columns(text: &str) -> usize {
    text.chars().count()
}
