//! What applications and the harness say to each other: lines of JSON.
//!
//! The harness writes one line to the application's standard input, and keeps it
//! open until the application is to end:
//!
//! ```json
//! {"parameters": {"iterations": 1000}, "application": "throughput1", "step": 7, "round": 1}
//! ```
//!
//! The application writes lines to its standard output, as many as it likes.
//! What is no such line is output and kept as such.
//!
//! | line | meaning |
//! |---|---|
//! | `{"ready": {"port": 4104}}` | what comes later may start; `{}` has nothing to tell |
//! | `{"result": 290.7}` | what was measured |
//! | `{"result": {"rate": 290.7, "latency": {"hdr": "…", "scale": 1e-9}}}` | several things |
//! | `{"error": "why"}` | it could not be measured |
//! | `{"invalid": "why"}` | something was measured and means nothing |
//!
//! A distribution (`hdr`) is a histogram in HDR's V2 format, compressed or not,
//! in base 64; `scale` times its numbers are what was measured.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{
    Deserializer as HdrDeserializer, Serializer as _, V2DeflateSerializer,
};
use serde::{Deserialize, Serialize};

use crate::Value;

/// What is written to an application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// What it is told.
    pub parameters: BTreeMap<String, Value>,
    /// Its name.
    pub application: String,
    /// The step of the test.
    pub step: u64,
    /// The round of the test.
    pub round: u32,
}

/// What an application writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Message {
    /// What comes later may start, and gets these as parameters.
    Ready(BTreeMap<String, Value>),
    /// What was measured.
    Result(Measurement),
    /// It could not be measured.
    Error(String),
    /// What was measured means nothing.
    Invalid(String),
}

/// What one application measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Measurement {
    /// One thing, whose name is [`VALUE`](super::VALUE).
    One(Measured),
    /// Several things by name.
    Several(BTreeMap<String, Measured>),
}

/// A number, or many of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Measured {
    /// A number.
    Number(f64),
    /// A distribution.
    Distribution(Distribution),
}

/// A distribution, which can be merged exactly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    /// A histogram in HDR's V2 format, in base 64.
    hdr: String,
    /// What one of its units is.
    #[serde(default = "one")]
    pub scale: f64,
}

fn one() -> f64 {
    1.0
}

/// The longest text of a histogram that is read.
const HDR_BYTES_MAX: usize = 4 << 20;

impl Distribution {
    /// The distribution that a histogram has.
    ///
    /// # Errors
    /// The histogram cannot be encoded.
    pub fn new(histogram: &Histogram<u64>, scale: f64) -> Result<Distribution, String> {
        let mut bytes = Vec::new();
        let written = V2DeflateSerializer::new().serialize(histogram, &mut bytes);
        written.map_err(|error| format!("a histogram that cannot be written: {error:?}"))?;
        Ok(Distribution {
            hdr: STANDARD.encode(bytes),
            scale,
        })
    }

    /// Its histogram.
    ///
    /// # Errors
    /// It is none, or too large.
    pub fn histogram(&self) -> Result<Histogram<u64>, String> {
        if self.hdr.len() > HDR_BYTES_MAX {
            return Err("a histogram of more than 4 MiB".into());
        }
        let bytes = STANDARD.decode(&self.hdr);
        let bytes = bytes.map_err(|error| format!("no base 64: {error}"))?;
        let read = HdrDeserializer::new().deserialize(&mut &*bytes);
        read.map_err(|error| format!("no histogram: {error:?}"))
    }
}

impl Measurement {
    /// Everything by name.
    #[must_use]
    pub fn by_name(self) -> BTreeMap<String, Measured> {
        match self {
            Measurement::One(one) => BTreeMap::from([(super::VALUE.to_owned(), one)]),
            Measurement::Several(several) => several,
        }
    }
}

/// The message that a line is, if it is one.
#[must_use]
pub fn message(line: &str) -> Option<Message> {
    // Most lines of most programs are none.
    if !line.trim_start().starts_with('{') {
        return None;
    }
    serde_json::from_str(line).ok()
}

/// Why what was measured means nothing, as an error of [`application`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid(pub String);

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Invalid {}

/// Runs an application in Rust: reads what it is told, lets it measure, and
/// writes what it says. `measure` gets a function that tells that it is ready;
/// an error of it that is [`Invalid`] says that what was measured means nothing.
///
/// ```no_run
/// use milieu_bench::run::protocol::{Measured, Measurement, application};
///
/// fn main() -> std::io::Result<()> {
///     application(|start, _| {
///         let iterations = start.parameters["iterations"].number().ok_or("how often?")?;
///         Ok(Measurement::One(Measured::Number(iterations)))
///     })
/// }
/// ```
///
/// # Errors
/// The standard input or output cannot be used.
pub fn application(
    measure: impl FnOnce(
        &Start,
        &mut dyn FnMut(BTreeMap<String, Value>) -> io::Result<()>,
    ) -> Result<Measurement, Box<dyn std::error::Error>>,
) -> io::Result<()> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let start: Start = serde_json::from_str(&line)?;
    let mut ready = |told| say(&Message::Ready(told));
    match measure(&start, &mut ready) {
        Ok(measurement) => say(&Message::Result(measurement)),
        Err(error) if error.is::<Invalid>() => say(&Message::Invalid(error.to_string())),
        Err(error) => say(&Message::Error(error.to_string())),
    }
}

/// Writes a line.
///
/// # Errors
/// The standard output cannot be used.
pub fn say(message: &Message) -> io::Result<()> {
    let mut line = serde_json::to_string(message)?;
    line.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages_or_output() {
        assert_eq!(
            message(r#"{"result": 290.7}"#),
            Some(Message::Result(Measurement::One(Measured::Number(290.7))))
        );
        let ready = BTreeMap::from([("port".to_owned(), Value::Integer(4104))]);
        assert_eq!(
            message(r#"{"ready":{"port":4104}}"#),
            Some(Message::Ready(ready))
        );
        let several = r#"{"result":{"rate":1,"latency":{"hdr":"","scale":1e-9}}}"#;
        let Some(Message::Result(several)) = message(several) else {
            panic!("this is a result");
        };
        assert_eq!(several.by_name().len(), 2);
        for output in [
            "",
            "result",
            "{}",
            "{\"level\":\"info\"}",
            "{\"result\":\"x\"}",
            "[",
        ] {
            assert_eq!(message(output), None, "{output}");
        }
    }

    #[test]
    fn distributions_survive_their_way() {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        for value in [1, 5, 5, 1_000_000] {
            histogram.record(value).unwrap();
        }
        let told = Distribution::new(&histogram, 1e-9).unwrap();
        assert_eq!(told.histogram().unwrap(), histogram);
        for wrong in ["", "!", "AAAA", &"A".repeat(HDR_BYTES_MAX + 4)] {
            let told = Distribution {
                hdr: wrong.into(),
                scale: 1.0,
            };
            assert!(told.histogram().is_err());
        }
    }
}
