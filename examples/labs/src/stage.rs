//! A stage: streams in a time that passes as the story says.

use std::sync::{Arc, Mutex};

use milieu::stream::drive::Stepped;
use milieu::stream::language::Language;
use milieu::stream::{Flow, Listening, Publisher, Source, Streams, VirtualClock, operators};
use milieu::transfer::{Json, Mode, Name, Origin, Quality, Rights, Stream, Time, Value};

use crate::Failure;

/// Streams in virtual time, and what was heard of them.
pub struct Stage {
    pub streams: Streams,
    clock: VirtualClock,
    heard: Arc<Mutex<Vec<String>>>,
    listening: Vec<Listening>,
}

impl Stage {
    pub fn new() -> Stage {
        let clock = VirtualClock::new(Time::from_seconds(0));
        let origin = Origin("stage".into());
        Stage {
            streams: Streams::new(operators::catalogue(), clock.clone(), origin, 1),
            clock,
            heard: Arc::default(),
            listening: Vec::new(),
        }
    }

    /// The flow of a pipeline.
    pub fn flow(&self, text: &str) -> Result<Flow, Failure> {
        let source = milieu::diagnostics::Source::new("flow", text);
        let flow = Language::Pipeline.flow(&source, self.streams.catalogue());
        Ok(flow.map_err(|wrong| milieu::diagnostics::render(&source, &wrong, false))?)
    }

    /// Listens to a flow under a word, which stands before what is heard.
    pub fn listen(&mut self, word: &'static str, flow: &str) -> Result<(), Failure> {
        let flow = self.flow(flow)?;
        let heard = Arc::clone(&self.heard);
        let listening = self.streams.listen(&flow, move |event| {
            let mut text = Vec::new();
            let value = event.value(Rights::NONE).unwrap_or_default();
            let _ = Json.encode_value(&value, Rights::NONE, &mut text);
            let quality = event.header().quality.as_ref();
            let failure = quality.and_then(|quality| quality.failure.clone());
            let failure = failure.map_or_else(String::new, |why| format!(" ({why})"));
            let line = format!("{word}: {}{failure}", String::from_utf8_lossy(&text));
            heard.lock().expect("nobody panics").push(line);
        });
        self.listening
            .push(listening.map_err(|wrong| wrong.message)?);
        Ok(())
    }

    pub fn publisher(&self, name: &str) -> Result<Publisher<Value>, Failure> {
        Ok(self.streams.publisher(name)?)
    }

    /// Lets time pass, and operators do what they do meanwhile.
    pub fn pass(&self, until: Time) {
        while let Some(due) = self.streams.due().filter(|due| *due <= until) {
            self.clock.set(due);
            self.streams.wake();
        }
        self.clock.set(until);
    }

    /// Plays a recording through a publisher.
    pub fn play(&self, source: impl Source + 'static, to: &Publisher<Value>) {
        let stream = Stream {
            name: Name::root(),
            origin: Origin("recording".into()),
            incarnation: 1,
        };
        let mut recording = Stepped::new(Time::from_seconds(0));
        recording.add(stream, source);
        recording.run(Time::from_seconds(1), |_, events, _| {
            for event in events {
                self.pass(event.time());
                let value = event.value(Rights::NONE).unwrap_or_default();
                let _ = to.publish_at(event.time(), None, value);
            }
        });
    }

    /// Publishes a value at a second of the story.
    pub fn say(&self, second: i64, to: &Publisher<Value>, value: impl Into<Value>) {
        self.pass(Time::from_seconds(second));
        let _ = to.publish(value.into());
    }

    /// Publishes that a sensor has failed.
    pub fn fail(&self, second: i64, to: &Publisher<Value>, why: &str) {
        let time = Time::from_seconds(second);
        self.pass(time);
        let quality = Quality {
            failure: Some(why.into()),
            ..Quality::default()
        };
        let _ = to.publish_at(time, Some(quality), Value::Null);
    }

    /// What was heard, in order; the books are checked besides.
    pub fn end(self) -> Result<Vec<String>, Failure> {
        let view = self.streams.view().ok_or("the graph runs")?;
        view.audit()?;
        let heard = std::mem::take(&mut *self.heard.lock().expect("nobody panics"));
        Ok(heard)
    }
}
