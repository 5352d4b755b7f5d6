//! Lines and CSV rows of files of any length.

use std::io::{self, BufRead};

/// A row that is longer is left out.
pub(super) const LENGTH_MAX: usize = 1 << 20;

/// What a reader has come to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read<T> {
    /// A row, and the line on which it begins, counted from 1.
    Row(u64, T),
    /// A row that is longer than [`LENGTH_MAX`].
    TooLong(u64),
    End,
}

/// Reads lines.
pub(super) struct LineReader<R> {
    input: R,
    line: u64,
    bytes: Vec<u8>,
}

impl<R: BufRead> LineReader<R> {
    pub(super) fn new(input: R) -> LineReader<R> {
        LineReader {
            input,
            line: 0,
            bytes: Vec::new(),
        }
    }

    /// The next line without its end.
    pub(super) fn next(&mut self) -> io::Result<Read<String>> {
        self.bytes.clear();
        self.line += 1;
        let mut is_too_long = false;
        let mut is_any = false;
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                break;
            }
            is_any = true;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let piece = &buffer[..end.unwrap_or(buffer.len())];
            is_too_long |= self.bytes.len() + piece.len() > LENGTH_MAX;
            if !is_too_long {
                self.bytes.extend_from_slice(piece);
            }
            let used = piece.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                break;
            }
        }
        Ok(match (is_any, is_too_long) {
            (false, _) => Read::End,
            (true, true) => Read::TooLong(self.line),
            (true, false) => {
                let bytes = self.bytes.strip_suffix(b"\r").unwrap_or(&self.bytes);
                Read::Row(self.line, String::from_utf8_lossy(bytes).into_owned())
            }
        })
    }
}

/// Reads the rows of a CSV file: fields may be quoted, and then have line ends,
/// separators, and doubled quotes in them (RFC 4180).
pub(super) struct CsvReader<R> {
    lines: LineReader<R>,
    separator: char,
}

impl<R: BufRead> CsvReader<R> {
    pub(super) fn new(input: R, separator: char) -> CsvReader<R> {
        CsvReader {
            lines: LineReader::new(input),
            separator,
        }
    }

    pub(super) fn separator(&self) -> char {
        self.separator
    }

    /// The fields of the next row; empty lines are none.
    pub(super) fn next(&mut self) -> io::Result<Read<Vec<String>>> {
        let (line, mut text) = loop {
            match self.lines.next()? {
                Read::Row(_, text) if text.trim().is_empty() => {}
                Read::Row(line, text) => break (line, text),
                Read::TooLong(line) => return Ok(Read::TooLong(line)),
                Read::End => return Ok(Read::End),
            }
        };
        if line == 1 {
            // Some programs mark the file as Unicode.
            text = text.trim_start_matches('\u{feff}').to_owned();
        }
        let mut row = Row::new(self.separator);
        row.take(&text);
        // A quote that is open goes on in the next line.
        let mut length = text.len();
        while row.is_quoted {
            match self.lines.next()? {
                Read::Row(_, text) => {
                    length += text.len() + 1;
                    if length > LENGTH_MAX {
                        return Ok(Read::TooLong(line));
                    }
                    row.field.push('\n');
                    row.take(&text);
                }
                Read::TooLong(_) => return Ok(Read::TooLong(line)),
                Read::End => break,
            }
        }
        Ok(Read::Row(line, row.finish()))
    }
}

/// A row while it is being read.
struct Row {
    separator: char,
    fields: Vec<String>,
    field: String,
    is_quoted: bool,
}

impl Row {
    fn new(separator: char) -> Row {
        Row {
            separator,
            fields: Vec::new(),
            field: String::new(),
            is_quoted: false,
        }
    }

    fn take(&mut self, text: &str) {
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '"' if self.is_quoted && characters.peek() == Some(&'"') => {
                    self.field.push('"');
                    characters.next();
                }
                '"' if self.is_quoted => self.is_quoted = false,
                // Within a field that is not quoted, a quote is one.
                '"' if self.field.is_empty() => self.is_quoted = true,
                separator if separator == self.separator && !self.is_quoted => {
                    self.fields.push(std::mem::take(&mut self.field));
                }
                other => self.field.push(other),
            }
        }
    }

    fn finish(mut self) -> Vec<String> {
        self.fields.push(self.field);
        self.fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, buffer: usize) -> Vec<(u64, Vec<String>)> {
        let input = io::BufReader::with_capacity(buffer, text.as_bytes());
        let mut reader = CsvReader::new(input, ',');
        let mut rows = Vec::new();
        loop {
            match reader.next().unwrap() {
                Read::Row(line, fields) => rows.push((line, fields)),
                Read::TooLong(line) => rows.push((line, vec!["too long".to_owned()])),
                Read::End => return rows,
            }
        }
    }

    #[test]
    fn rows_are_the_same_however_the_file_comes() {
        let text = "\u{feff}a,b\r\n\n1,\"x,\"\"y\"\"\nz\"\r\n,\n2,5\" pipe";
        let expected = [
            (1, vec!["a", "b"]),
            (3, vec!["1", "x,\"y\"\nz"]),
            (5, vec!["", ""]),
            (6, vec!["2", "5\" pipe"]),
        ];
        for buffer in 1..text.len() {
            let rows = rows(text, buffer);
            let seen: Vec<(u64, Vec<&str>)> = rows
                .iter()
                .map(|(line, fields)| (*line, fields.iter().map(String::as_str).collect()))
                .collect();
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn what_is_written_by_the_rules_is_read_back() {
        // Every row of up to three fields made of these.
        let parts = ["", "a", ",", "\"", "\n", "a\"b", "\"\"", " x "];
        for first in parts {
            for second in parts {
                for third in parts {
                    let fields = ["k", first, second, third];
                    let quoted = fields.map(|field| format!("\"{}\"", field.replace('"', "\"\"")));
                    let rows = rows(&(quoted.join(",") + "\nend\n"), 7);
                    assert_eq!(rows[0].1, fields);
                    assert_eq!(rows[1].1, ["end"]);
                }
            }
        }
    }

    #[test]
    fn a_row_without_end_is_left_out() {
        let long = "x".repeat(LENGTH_MAX + 1);
        let found = rows(&format!("a\n{long}\nb\n"), 4096);
        let lines: Vec<u64> = found.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 2, 3]);
        assert_eq!(found[1].1, ["too long"]);
        let open = format!("a\n\"{}", "line\n".repeat(LENGTH_MAX));
        let found = rows(&open, 4096);
        assert_eq!(found[1], (2, vec!["too long".to_owned()]));
    }
}
