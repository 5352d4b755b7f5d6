//! Rows of files with a JSON object on each line.

use std::io;

use milieu_transfer::Value;

use super::reader::{LENGTH_MAX, LineReader, Read};
use super::rows::{Next, Recording};

pub(super) struct Rows<R> {
    reader: LineReader<R>,
    recording: Recording,
}

impl<R: io::BufRead> Rows<R> {
    pub(super) fn new(input: R, recording: Recording) -> Rows<R> {
        Rows {
            reader: LineReader::new(input),
            recording,
        }
    }

    fn row(&self, line: u64, text: &str) -> Next {
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => return Next::Bad(line, error.to_string()),
        };
        let name = &self.recording.time;
        let time = match value.field(name) {
            Some(time) => self.recording.format.of_value(time),
            None => Err("there is no such field, which is to say when it was".to_owned()),
        };
        let time = time.map_err(|why| format!("`{name}`: {why}"));
        self.recording.row(line, time, value)
    }
}

impl<R: io::BufRead + Send> super::rows::Rows for Rows<R> {
    fn next(&mut self) -> io::Result<Next> {
        loop {
            return Ok(match self.reader.next()? {
                Read::Row(_, text) if text.trim().is_empty() => continue,
                Read::Row(line, text) => self.row(line, &text),
                Read::TooLong(line) => {
                    Next::Bad(line, format!("it is longer than {LENGTH_MAX} bytes"))
                }
                Read::End => Next::End,
            });
        }
    }
}
