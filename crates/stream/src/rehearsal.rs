//! Rehearsals: flows run in virtual time, and what they publish is written down.
//!
//! ```text
//! # heat
//! /weather/temperature | filter value > 90
//!
//! 1 /weather/temperature 88.0
//! 2 /weather/temperature 91.5
//! @2 91.5
//! 3 /weather/temperature 99.0 ! the sensor is wet
//! clock 60
//! ```
//!
//! A case is a title behind `#`, a flow, an empty line, and what happens. A line
//! `SECOND NAME BODY` is an event that happens and comes in at that second; its
//! body is JSON, and what is wrong with its sensor may stand behind ` ! `. A line
//! `clock SECOND` lets time pass. What the flow publishes has a line `@SECOND
//! BODY`, with the second at which it is published. A line of three dashes stands
//! between cases. In one case a flow may wake as often as one that wakes each
//! second does in a day.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

use milieu_diagnostics::{Diagnostic, Source, Span};
use milieu_transfer::{
    Event, Header, Json, Limits, Mode, Origin, Quality, Rights, Stream, Time, Value,
};

use crate::catalogue::Catalogue;
use crate::graph::{Machine, Planned, ReaderId, SourceId};
use crate::language::Language;
use crate::names;
use crate::operator::Now;

/// A flow, and what is expected of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// What it is about.
    pub title: String,
    /// The flow, as a pipeline.
    pub flow: String,
    /// What happens, and what is expected to be published.
    pub lines: String,
    /// Where the lines begin in the text, in bytes.
    pub start: usize,
}

impl Case {
    /// What was expected and what there is, a line each: two blanks, and `-` or `+`
    /// where they differ.
    #[must_use]
    pub fn difference(&self, found: &str) -> String {
        let mut text = String::new();
        let (expected, found): (Vec<&str>, Vec<&str>) =
            (self.lines.lines().collect(), found.lines().collect());
        let same = expected
            .iter()
            .zip(&found)
            .take_while(|(a, b)| a == b)
            .count();
        for line in &expected[..same] {
            text += &format!("    {line}\n");
        }
        for line in &expected[same..] {
            text += &format!("  - {line}\n");
        }
        for line in &found[same..] {
            text += &format!("  + {line}\n");
        }
        text
    }

    /// Mistakes with the text that they point into: those in a line are in the source
    /// of the case, those of a flow in the flow.
    #[must_use]
    pub fn placed(&self, source: &Source, wrong: Wrong) -> (Source, Vec<Diagnostic>) {
        match wrong {
            Wrong::Flow(found) => (Source::new("flow", self.flow.clone()), found),
            Wrong::Line(mut found) => {
                for label in &mut found.labels {
                    label.span.start += self.start;
                    label.span.end += self.start;
                }
                (source.clone(), vec![found])
            }
        }
    }
}

/// The cases of a text.
///
/// # Errors
/// If a case has no flow, or nothing happens in it.
pub fn cases(source: &Source) -> Result<Vec<Case>, Diagnostic> {
    let mut cases = Vec::new();
    let mut start = 0;
    for part in source.text.split_inclusive("\n---\n") {
        cases.push(case(part.trim_end_matches("---\n"), start)?);
        start += part.len();
    }
    Ok(cases)
}

fn case(text: &str, start: usize) -> Result<Case, Diagnostic> {
    let Some(end) = text.find("\n\n") else {
        let whole = Span::new(start, start + text.trim_end().len());
        return Err(
            Diagnostic::error("an empty line is missing behind the flow")
                .label(whole, "this is a case")
                .help("write a title, a flow, an empty line, and what happens"),
        );
    };
    let (head, lines) = (&text[..end], &text[end + 2..]);
    let titles = head.lines().filter_map(|line| line.strip_prefix('#'));
    let titles: Vec<&str> = titles.map(str::trim).collect();
    let flow = head.lines().filter(|line| !line.starts_with('#'));
    Ok(Case {
        title: titles.join(" "),
        flow: flow.collect::<Vec<_>>().join("\n"),
        lines: lines.trim_end().to_owned(),
        start: start + end + 2,
    })
}

/// Lets happen what the lines of a case say, and gives them back with what the
/// flow has really published.
///
/// # Errors
/// If the flow is wrong, with places in the flow, or a line, with places in the
/// lines. The books of the graph are checked besides.
pub fn rehearse(case: &Case, catalogue: &Catalogue) -> Result<String, Wrong> {
    let source = Source::new("flow", case.flow.clone());
    let flow = Language::Pipeline.flow(&source, catalogue);
    let planned = Planned::new(&flow.map_err(Wrong::Flow)?, catalogue);
    let planned = planned.map_err(|found| Wrong::Flow(vec![found]))?;
    let mut rehearsal = Rehearsal::new(planned);
    let mut start = 0;
    for line in case.lines.split_inclusive('\n') {
        let text = line.trim_end();
        if !text.is_empty() && !text.starts_with('@') {
            rehearsal.line(text).map_err(|(why, help)| {
                let found = Diagnostic::error(why).help(help);
                Wrong::Line(found.label(Span::new(start, start + text.len()), "here"))
            })?;
        }
        start += line.len();
    }
    let balance = rehearsal.machine.view().audit();
    balance.map_err(|why| Wrong::Flow(vec![Diagnostic::error(why)]))?;
    Ok(rehearsal.text.trim_end().to_owned())
}

/// Why a case cannot be rehearsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The flow; places are in its text.
    Flow(Vec<Diagnostic>),
    /// A line; places are in the lines.
    Line(Diagnostic),
}

/// What is wrong with a line, and the way out.
type Said = (String, &'static str);

const EVENT: &str = "write a second, a name and a body: 1.5 /weather/temperature 21.5";

/// How often a flow may wake in one case, so that each comes to an end: once a
/// second for a day. Windows of windows could wake for years.
const WAKES_MAX: u32 = 86_400;

struct Rehearsal {
    machine: Machine,
    sources: BTreeMap<String, (SourceId, Arc<Stream>)>,
    now: Time,
    sequence: u64,
    wakes: u32,
    published: Arc<Mutex<Vec<Event>>>,
    text: String,
}

impl Rehearsal {
    fn new(planned: Planned) -> Rehearsal {
        let mut machine = Machine::new(Origin("rehearsal".into()), 1);
        let published = Arc::<Mutex<Vec<Event>>>::default();
        let into = Arc::clone(&published);
        let receiver = move |event: &Event| {
            let mut into = into.lock().unwrap_or_else(PoisonError::into_inner);
            into.push(event.clone());
        };
        let (clock, application) = (Time::default, "rehearsal".into());
        let receiver = Box::new(receiver);
        let now = Now::new(&clock);
        machine.subscribe(&now, planned, ReaderId::GLOBAL, application, receiver);
        Rehearsal {
            machine,
            sources: BTreeMap::new(),
            now: Time::default(),
            sequence: 0,
            wakes: 0,
            published,
            text: String::new(),
        }
    }

    fn line(&mut self, line: &str) -> Result<(), Said> {
        let missing = || ("this is no event".to_owned(), EVENT);
        let (first, rest) = line.split_once(' ').ok_or_else(missing)?;
        let second = if first == "clock" { rest } else { first };
        let now = time(second).ok_or_else(|| (format!("`{second}` is no second"), EVENT))?;
        if now < self.now {
            let why = format!("second {second} has passed already");
            return Err((why, "write the lines in the order in which they happen"));
        }
        if first == "clock" {
            self.say(line);
            self.pass(now)?;
        } else {
            self.pass(now)?;
            self.say(line);
            self.publish(rest)?;
            self.print(now);
        }
        Ok(())
    }

    fn say(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn pass(&mut self, until: Time) -> Result<(), Said> {
        while let Some(due) = self.machine.due().filter(|due| *due <= until) {
            if self.wakes == WAKES_MAX {
                let why = format!(
                    "the flow has to wake more than {WAKES_MAX} times before second {}",
                    seconds(until)
                );
                return Err((why, "let less time pass, or wake the flow less often"));
            }
            self.wakes += 1;
            let clock = || due;
            self.machine.wake(&Now::new(&clock));
            self.print(due);
        }
        self.now = until;
        Ok(())
    }

    fn publish(&mut self, event: &str) -> Result<(), Said> {
        let missing = || ("the event has no body".to_owned(), EVENT);
        let (name, rest) = event.split_once(' ').ok_or_else(missing)?;
        let (body, failure) = match rest.split_once(" ! ") {
            Some((body, failure)) => (body, Some(failure)),
            None => (rest, None),
        };
        let body = Json.decode_value(body.as_bytes(), &Limits::default(), Rights::ALL);
        let body = body.map_err(|error| (format!("the body is no JSON: {error}"), EVENT))?;
        let quality = failure.map(|failure| Quality {
            failure: Some(failure.into()),
            ..Quality::default()
        });
        let now = self.now;
        let clock = || now;
        let (source, stream) = self.source(name)?;
        self.sequence += 1;
        let header = Header {
            stream,
            time: now,
            sequence: self.sequence,
            quality: quality.map(Box::new),
        };
        let event = Event::of_value(header, body);
        self.machine.publish(&Now::new(&clock), source, &event);
        Ok(())
    }

    fn source(&mut self, name: &str) -> Result<(SourceId, Arc<Stream>), Said> {
        if let Some((source, stream)) = self.sources.get(name) {
            return Ok((*source, Arc::clone(stream)));
        }
        let wrong = |refusal: names::Refusal| (refusal.message, EVENT);
        let stream = Arc::new(Stream {
            name: names::name(name).map_err(wrong)?,
            origin: Origin("rehearsal".into()),
            incarnation: 1,
        });
        let now = self.now;
        let clock = || now;
        let source = self
            .machine
            .add_source(&Now::new(&clock), Arc::clone(&stream), false);
        let source = source.map_err(wrong)?;
        let known = (source, Arc::clone(&stream));
        self.sources.insert(name.to_owned(), known);
        Ok((source, stream))
    }

    fn print(&mut self, now: Time) {
        let published = self.published.lock();
        let mut published = published.unwrap_or_else(PoisonError::into_inner);
        for event in published.drain(..) {
            let body = event.value(Rights::ALL).unwrap_or_default();
            let _ = write!(self.text, "@{} {}", seconds(now), shown(&body));
            let quality = event.header().quality.as_ref();
            if let Some(failure) = quality.and_then(|quality| quality.failure.as_ref()) {
                let _ = write!(self.text, " ! {failure}");
            }
            self.text.push('\n');
        }
    }
}

/// A time of so many seconds.
fn time(second: &str) -> Option<Time> {
    let second: f64 = second.parse().ok()?;
    let nanoseconds = (second * 1e9).round();
    // Nine digits of nanoseconds have room beside so many seconds.
    (0.0..9e18)
        .contains(&nanoseconds)
        .then(|| Time::from_nanoseconds(nanoseconds as i64))
}

fn seconds(time: Time) -> f64 {
    time.nanoseconds() as f64 / 1e9
}

/// A value as JSON, with times in seconds.
fn shown(value: &Value) -> String {
    match value {
        Value::Time(time) => seconds(*time).to_string(),
        Value::Map(map) => {
            let fields = map.iter();
            let fields = fields.map(|(name, value)| format!("{}: {}", shown(name), shown(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        other => {
            let mut text = Vec::new();
            match Json.encode_value(other, Rights::ALL, &mut text) {
                Ok(()) => String::from_utf8_lossy(&text).into_owned(),
                Err(error) => error.to_string(),
            }
        }
    }
}
