//! The envelope: header and body of an event as one map.
//!
//! ```json
//! {"name":"/weather/temperature","time":"2013-01-01T12:00:00Z",
//!  "origin":"station-1","incarnation":1,"sequence":7,
//!  "quality":{"age":"PT0.500S","accuracy":0.5,"failure":"stuck"},
//!  "value":{"celsius":21.5}}
//! ```
//!
//! Of a type that extends others there is also `"extends":["temperature"]`: the
//! names of the fields that lead to what it extends, and to what that extends.
//!
//! What is not said is as follows: the origin is empty, incarnation and sequence
//! are 0, the quality is the best, and the value is null. `name` and `time` have
//! to be there. Members that are not known are ignored, so that later versions
//! can add some.

use std::fmt::Display;
use std::sync::Arc;

use serde::Serialize;

use crate::described;
use crate::emit::{DEPTH, Emit, Said, Sink};
use crate::error::Error;
use crate::event::{Event, Header, Origin, Quality, Stream};
use crate::private::Rights;
use crate::schema::Schema;
use crate::time::{Span, Time};
use crate::value::Value;

/// Says an event to a sink.
pub(crate) fn say(event: &Event, rights: Rights, sink: &mut dyn Sink) -> Said {
    let header = event.header();
    let stream = &*header.stream;
    let quality = header.quality.as_deref();
    let extends = event.schema().map(|schema| described::steps(&schema.shape));
    let extends = extends.filter(|steps| !steps.is_empty());
    let optional = usize::from(quality.is_some()) + usize::from(extends.is_some());
    sink.map(Some(6 + optional))?;
    member(sink, "name", |sink| sink.text(stream.name.as_str()))?;
    member(sink, "time", |sink| sink.time(header.time))?;
    member(sink, "origin", |sink| sink.text(&stream.origin.0))?;
    member(sink, "incarnation", |sink| sink.uint(stream.incarnation))?;
    member(sink, "sequence", |sink| sink.uint(header.sequence))?;
    if let Some(quality) = quality {
        member(sink, "quality", |sink| say_quality(quality, sink))?;
    }
    if let Some(steps) = extends {
        member(sink, "extends", |sink| say_steps(&steps, sink))?;
    }
    member(sink, "value", |sink| say_body(event, rights, sink))?;
    sink.end_map()
}

/// Says the body of an event, or null where all of it is private.
pub(crate) fn say_body(event: &Event, rights: Rights, sink: &mut dyn Sink) -> Said {
    let shown = match event.get::<Value>() {
        Some(value) => value.readable(rights).serialize(Emit::new(sink, rights))?,
        None => event.emit(Emit::new(sink, rights))?,
    };
    if shown { Ok(()) } else { sink.null() }
}

fn say_quality(quality: &Quality, sink: &mut dyn Sink) -> Said {
    let Quality {
        age,
        accuracy,
        failure,
    } = quality;
    let count = [age.is_some(), accuracy.is_some(), failure.is_some()];
    sink.map(Some(count.into_iter().filter(|there| *there).count()))?;
    if let Some(age) = age {
        member(sink, "age", |sink| sink.span(*age))?;
    }
    if let Some(accuracy) = accuracy {
        member(sink, "accuracy", |sink| sink.double(*accuracy))?;
    }
    if let Some(failure) = failure {
        member(sink, "failure", |sink| sink.text(failure))?;
    }
    sink.end_map()
}

fn say_steps(steps: &[&str], sink: &mut dyn Sink) -> Said {
    sink.list(Some(steps.len()))?;
    for step in steps {
        sink.item()?;
        sink.text(step)?;
        sink.entry()?;
    }
    sink.end_list()
}

fn member(sink: &mut dyn Sink, name: &str, say: impl FnOnce(&mut dyn Sink) -> Said) -> Said {
    sink.key()?;
    sink.text(name)?;
    sink.value()?;
    say(sink)?;
    sink.entry()
}

/// The event of a value that a notation has read.
pub(crate) fn read(value: &Value) -> Result<Event, Error> {
    let member = |name| value.field(name).filter(|value| **value != Value::Null);
    let name = text("name", member("name").ok_or(missing("name"))?)?;
    let stream = Stream {
        name: parsed("name", milieu_keys::Name::parse(name))?,
        origin: Origin(text("origin", member("origin").unwrap_or(&"".into()))?.clone()),
        incarnation: count("incarnation", member("incarnation"))?,
    };
    let time = match member("time").ok_or(missing("time"))? {
        Value::Time(time) => *time,
        value => parsed("time", text("time", value)?.parse::<Time>())?,
    };
    let header = Header {
        stream: Arc::new(stream),
        time,
        sequence: count("sequence", member("sequence"))?,
        quality: member("quality").map(read_quality).transpose()?,
    };
    let body = value.field("value").cloned().unwrap_or_default();
    match member("extends") {
        None => Ok(Event::of_value(header, body)),
        Some(Value::List(steps)) if steps.len() <= DEPTH => {
            let schema = Schema::new(described::of_steps(steps));
            Ok(Event::of_schema(header, Arc::new(schema), body))
        }
        Some(_) => Err(wrong("extends", &"a list of names is expected")),
    }
}

fn read_quality(value: &Value) -> Result<Box<Quality>, Error> {
    let member = |name| value.field(name).filter(|value| **value != Value::Null);
    let age = match member("age") {
        None => None,
        Some(Value::Span(age)) => Some(*age),
        Some(value) => Some(parsed("age", text("age", value)?.parse::<Span>())?),
    };
    let accuracy = member("accuracy").map(|value| value.to(Rights::NONE));
    let failure = member("failure").map(|value| text("failure", value).cloned());
    Ok(Box::new(Quality {
        age,
        accuracy: accuracy
            .transpose()
            .map_err(|error| wrong("accuracy", &error))?,
        failure: failure.transpose()?,
    }))
}

fn text<'a>(member: &'static str, value: &'a Value) -> Result<&'a Arc<str>, Error> {
    match value {
        Value::Text(text) => Ok(text),
        _ => Err(wrong(member, &"a text is expected")),
    }
}

fn count(member: &'static str, value: Option<&Value>) -> Result<u64, Error> {
    match value {
        None => Ok(0),
        Some(value) => parsed(member, value.to(Rights::NONE)),
    }
}

fn parsed<T, E: Display>(member: &'static str, result: Result<T, E>) -> Result<T, Error> {
    result.map_err(|error| wrong(member, &error))
}

fn wrong(member: &'static str, what: &dyn Display) -> Error {
    Error::Envelope {
        member,
        what: what.to_string(),
    }
}

fn missing(member: &'static str) -> Error {
    wrong(member, &"it is missing")
}
