//! Rows of recordings of any kind.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor};
use std::path::PathBuf;
use std::sync::Arc;

use milieu_stream::Feed;
use milieu_transfer::{Body, Error, Kind as OfBody, Rights, Time, Value};

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
    pub(super) of: RowType,
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

/// The type that rows become, of their fields by name.
#[derive(Clone)]
pub struct RowType(Arc<ToBody>);

/// Makes a body of the fields of a row; the error says what is wrong.
type ToBody = dyn Fn(Value, At<'_>) -> Result<Publish, String> + Send + Sync;

/// The field that says when a row was recorded, and what it says.
struct At<'a> {
    field: &'a str,
    time: Time,
}

impl At<'_> {
    /// Whether the field is a time already.
    fn is_in(&self, fields: &Value) -> bool {
        matches!(fields.field(self.field), Some(Value::Time(_)))
    }
}

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
        let row = time.and_then(|time| {
            let field = &self.time;
            Ok((time, (self.of.0)(fields, At { field, time })?))
        });
        match row {
            Ok((time, publish)) => Next::Row(time, publish),
            Err(why) => Next::Bad(line, why),
        }
    }
}

impl RowType {
    /// None: the fields stay as they are.
    pub(super) fn none() -> RowType {
        RowType(Arc::new(|fields, _| Ok(publish(fields))))
    }

    /// A type of Rust's.
    #[must_use]
    pub fn of<T: Body>() -> RowType {
        RowType::made(OfBody::<T>::new(), |fields, _| fields.to(Rights::ALL))
    }

    /// A kind of events, and what makes their bodies of a row's fields; a row of which
    /// it makes none is left out. The field that says when it was recorded is a
    /// [`Value::Time`], in whatever format the recording has it.
    #[must_use]
    pub fn with<T: Body>(
        kind: OfBody<T>,
        make: impl Fn(&Value) -> Result<T, Error> + Send + Sync + 'static,
    ) -> RowType {
        RowType::made(kind, move |fields, at| {
            let (Value::Map(map), false) = (&fields, at.is_in(&fields)) else {
                return make(&fields);
            };
            let name = Value::from(at.field);
            let timed = map.iter().map(|(key, value)| match *key == name {
                true => (key.clone(), Value::Time(at.time)),
                false => (key.clone(), value.clone()),
            });
            make(&Value::Map(Arc::new(timed.collect())))
        })
    }

    fn made<T: Body>(
        kind: OfBody<T>,
        make: impl Fn(Value, At<'_>) -> Result<T, Error> + Send + Sync + 'static,
    ) -> RowType {
        RowType(Arc::new(move |fields, at| {
            let body = make(fields, at).map_err(|error| error.to_string())?;
            Ok(Box::new(move |feed: &mut Feed<'_>, time| {
                feed.publish_kind(kind, time, None, body);
            }))
        }))
    }
}

impl fmt::Debug for RowType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowType").finish_non_exhaustive()
    }
}

pub(super) fn publish<T: Body>(body: T) -> Publish {
    Box::new(move |feed, time| feed.publish(time, body))
}
