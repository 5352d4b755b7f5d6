//! Positions of recorded NMEA sentences.

use std::collections::VecDeque;
use std::io;

use super::reader::{LENGTH_MAX, LineReader, Read};
use super::rows::{Next, publish};
use crate::nmea::{Position, Receiver};

pub(super) struct Rows<R> {
    reader: LineReader<R>,
    receiver: Receiver,
    found: VecDeque<Position>,
}

impl<R: io::BufRead> Rows<R> {
    pub(super) fn new(input: R) -> Rows<R> {
        Rows {
            reader: LineReader::new(input),
            receiver: Receiver::default(),
            found: VecDeque::new(),
        }
    }
}

impl<R: io::BufRead + Send> super::rows::Rows for Rows<R> {
    fn next(&mut self) -> io::Result<Next> {
        loop {
            // Before the receiver knows the date, nobody knows when it was.
            while let Some(position) = self.found.pop_front() {
                if let Some(time) = position.time {
                    return Ok(Next::Row(time, publish(position)));
                }
            }
            let found = &mut self.found;
            match self.reader.next()? {
                Read::Row(_, text) if text.trim().is_empty() => {}
                Read::Row(line, text) => {
                    let told = |position| found.push_back(position);
                    if let Err(why) = self.receiver.sentence(&text, told) {
                        return Ok(Next::Bad(line, why));
                    }
                }
                Read::TooLong(line) => {
                    let why = format!("it is longer than {LENGTH_MAX} bytes");
                    return Ok(Next::Bad(line, why));
                }
                Read::End => {
                    self.receiver.finish(|position| found.push_back(position));
                    if self.found.is_empty() {
                        return Ok(Next::End);
                    }
                }
            }
        }
    }
}
