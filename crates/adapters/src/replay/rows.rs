//! Rows of recordings of any kind.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor};
use std::path::PathBuf;
use std::sync::Arc;

use milieu_stream::Feed;
use milieu_transfer::{Body, Rights, Time, Value};

use super::column::{Column, TimeFormat};

/// A recording.
#[derive(Clone)]
pub(super) struct Recording {
    pub(super) path: PathBuf,
    /// Stands for what is in the file.
    pub(super) content: Option<Arc<[u8]>>,
    pub(super) kind: Kind,
    /// The field that says when a row was recorded.
    pub(super) time: String,
    pub(super) format: TimeFormat,
    pub(super) body: ToBody,
}

#[derive(Clone)]
pub(super) enum Kind {
    Csv(Csv),
    JsonLines,
    Nmea,
}

/// How a CSV file is to be read.
#[derive(Clone)]
pub(super) struct Csv {
    pub(super) separator: char,
    pub(super) columns: Vec<(String, Column)>,
    /// Names of columns, if the first row does not have them.
    pub(super) names: Option<Vec<String>>,
}

/// Publishes a row at a time.
pub(super) type Publish = Box<dyn FnOnce(&mut Feed<'_>, Time) + Send>;

/// Makes a body of the fields of a row; the error says what is wrong.
pub(super) type ToBody = Arc<dyn Fn(Value) -> Result<Publish, String> + Send + Sync>;

/// Reads rows one after the other.
pub(super) trait Rows: Send {
    /// The next row. An error ends the recording.
    fn next(&mut self) -> io::Result<Next>;
}

/// What rows have come to.
pub(super) enum Next {
    /// A row, and when it was recorded.
    Row(Time, Publish),
    /// On this line stands what cannot be replayed, for this reason.
    Bad(u64, String),
    End,
}

impl Recording {
    /// Opens it at its beginning.
    pub(super) fn open(&self) -> io::Result<Box<dyn Rows>> {
        let input: Box<dyn BufRead + Send> = match &self.content {
            Some(content) => Box::new(Cursor::new(Arc::clone(content))),
            None => Box::new(BufReader::with_capacity(64 * 1024, File::open(&self.path)?)),
        };
        Ok(match &self.kind {
            Kind::Csv(csv) => Box::new(super::csv::Rows::new(input, self.clone(), csv)),
            Kind::JsonLines => Box::new(super::json::Rows::new(input, self.clone())),
            Kind::Nmea => Box::new(super::nmea::Rows::new(input)),
        })
    }

    /// A row that was read from this line.
    pub(super) fn row(&self, line: u64, time: Result<Time, String>, fields: Value) -> Next {
        let row = time.and_then(|time| Ok((time, (self.body)(fields)?)));
        match row {
            Ok((time, publish)) => Next::Row(time, publish),
            Err(why) => Next::Bad(line, why),
        }
    }
}

/// Publishes the fields as they are.
pub(super) fn as_value() -> ToBody {
    Arc::new(|fields| Ok(publish(fields)))
}

/// Publishes what a type makes of the fields.
pub(super) fn as_type<T: Body>() -> ToBody {
    Arc::new(|fields| {
        let body: T = fields.to(Rights::ALL).map_err(|error| error.to_string())?;
        Ok(publish(body))
    })
}

pub(super) fn publish<T: Body>(body: T) -> Publish {
    Box::new(move |feed, time| feed.publish(time, body))
}
