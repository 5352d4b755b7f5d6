//! What stands at names, events, and values to publish.

use std::io::{BufRead, Read};
use std::time::{Duration, Instant};

use clap::Args;
use milieu::transfer::{Limits, Rights};
use serde_json::{Value, json};

use super::attach::{Attached, Program};
use super::modes::{self, Framing};
use super::own::Own;
use super::{Failure, Result, complete, print, unheard};
use crate::arguments::seconds;

/// List what stands at names: streams, services and bindings
#[derive(Args)]
pub(crate) struct Ls {
    /// Which names; `*` is one level and `**` any number of them
    #[arg(default_value = "/**", add = complete::names())]
    query: String,
    /// Print a line of JSON for each name
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    program: Program,
}

impl Ls {
    pub(super) fn run(&self) -> Result {
        let mut program = self.program.attach()?;
        let names = program.list(&self.query)?;
        if names.is_empty() {
            program.say_unheard(std::slice::from_ref(&self.query))?;
        }
        let mut text = String::new();
        for name in &names {
            match self.json {
                true => text += &format!("{name}\n"),
                false => text += &line(name),
            }
        }
        print(&text)
    }
}

/// A name with what stands there.
fn line(entry: &Value) -> String {
    let text = |member: &str| entry[member].as_str().unwrap_or_default();
    let rest = match text("kind") {
        "service" => {
            let attributes = entry["attributes"].as_object().into_iter().flatten();
            let attributes = attributes
                .map(|(name, value)| format!(" {name}={}", value.as_str().unwrap_or_default()));
            format!("  {}{}", text("endpoint"), attributes.collect::<String>())
        }
        "binding" => {
            let targets = entry["targets"].as_array().into_iter().flatten();
            let targets: Vec<&str> = targets.filter_map(Value::as_str).collect();
            format!("  -> {}", targets.join(", "))
        }
        _ => String::new(),
    };
    format!("{}{rest}\n", text("name"))
}

/// Print the events of a flow, one line of JSON each
///
/// In another mode than JSON it prints what another process would get: xml a line
/// each; cbor and messagepack one item after the other; data-stream and delta,
/// whose frames build on each other, each frame behind its length, 4 bytes with
/// the greatest first. Private fields of a running program are left out.
#[derive(Args)]
#[command(after_help = "\
Examples:
  milieu stream subscribe '/weather/* | filter value.celsius > 30'
  milieu stream subscribe /machine/load --source '/machine/load=machine.load every=5s'
  milieu stream subscribe /weather/wind --count 100 --mode cbor > wind.cbor")]
pub(crate) struct Subscribe {
    /// A name, or a pipeline: '/weather/temperature | filter value > 32'
    #[arg(add = complete::flows())]
    flow: String,
    /// Skip events that come while earlier ones are printed
    #[arg(long)]
    latest: bool,
    /// The transfer mode [default: that of the flow, or json]
    #[arg(long, value_name = "MODE", value_parser = modes::names())]
    mode: Option<String>,
    /// End after so many events
    #[arg(long, value_name = "NUMBER")]
    count: Option<u64>,
    /// End after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<Duration>,
    #[command(flatten)]
    own: Own,
    #[command(flatten)]
    program: Program,
}

impl Subscribe {
    pub(super) fn run(&self) -> Result {
        // What is too far away to be told is never.
        let end = self
            .seconds
            .and_then(|limit| Instant::now().checked_add(limit));
        let goes_on = |count: u64| {
            self.count.is_none_or(|wanted| count < wanted)
                && end.is_none_or(|end| Instant::now() < end)
        };
        if !self.own.sources.is_empty() {
            let mode = self.mode.as_deref();
            return self.own.run(&self.flow, self.latest, mode, end, goes_on);
        }
        if let Some(mode) = &self.mode {
            Framing::of(mode).check_output()?;
        }
        let mut program = self.program.attach()?;
        let mut ask = json!({"ask": "stream.subscribe", "flow": self.flow, "latest": self.latest});
        if let Some(mode) = &self.mode {
            ask["mode"] = json!(mode);
        }
        // Names may come later, so that this is no error.
        program.say_unheard(&unheard::names(&self.flow))?;
        let answer = program.ask(&ask)?;
        let framing = Framing::of(answer["mode"].as_str().unwrap_or("json"));
        framing.check_output()?;
        let mut count = 0;
        while goes_on(count) {
            if framing == Framing::Line {
                let Some(line) = program.line_until(end)? else {
                    break;
                };
                print(&line)?;
            } else {
                match program.frame_until(end)? {
                    Some(Ok(mut frame)) => framing.print(&mut frame)?,
                    Some(Err(why)) => eprintln!("warning: an event is missing: {why}"),
                    None => break,
                }
            }
            count += 1;
        }
        Ok(())
    }
}

/// Publish values under a name: each line of standard input is one, as JSON
///
/// The name is free again when the input ends. With --mode xml each line is an
/// element, and with cbor or messagepack the whole input is one value.
#[derive(Args)]
#[command(after_help = "\
Examples:
  echo '{\"open\": true}' | milieu stream publish /guests/door
  milieu stream publish /weather/wind < wind.ndjson")]
pub(crate) struct Publish {
    /// The name, which nobody else publishes
    #[arg(add = complete::names())]
    name: String,
    /// The transfer mode of the values
    #[arg(
        long,
        value_name = "MODE",
        value_parser = ["json", "xml", "messagepack", "cbor"],
        default_value = "json",
    )]
    mode: String,
    #[command(flatten)]
    program: Program,
}

impl Publish {
    pub(super) fn run(&self) -> Result {
        let mut program = self.program.attach()?;
        let ask = json!({"ask": "stream.publish", "name": self.name, "mode": self.mode});
        program.ask(&ask)?;
        let mut input = std::io::stdin().lock();
        match Framing::of(&self.mode) {
            Framing::Item => {
                let mut value = Vec::new();
                input.read_to_end(&mut value).map_err(Failure::Output)?;
                self.send(&mut program, &value, "standard input")?;
            }
            _ => {
                for (index, line) in input.split(b'\n').enumerate() {
                    let line = line.map_err(Failure::Output)?;
                    let place = format!("line {} of standard input", index + 1);
                    self.send(&mut program, &line, &place)?;
                }
            }
        }
        program.finish()
    }

    /// Sends a value, if it is one.
    fn send(&self, program: &mut Attached, value: &[u8], place: &str) -> Result {
        if value.iter().all(u8::is_ascii_whitespace) && self.mode != "messagepack" {
            return Ok(());
        }
        let mode = modes::mode(&self.mode)?;
        let read = mode.decode_value(value, &Limits::default(), Rights::NONE);
        read.map_err(|error| {
            let help = match &*self.mode {
                "json" => "write a value a line: 21.5, \"text\", {\"celsius\": 21.5}",
                "xml" => "write an element a line: <value type=\"double\">21.5</value>",
                _ => "the whole input is one value",
            };
            let message = format!("{place} cannot be read as {}: {error}", self.mode);
            Failure::new(message, help)
        })?;
        if self.mode == "json" {
            return program.send(&[value, b"\n"].concat());
        }
        let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
        program.send(&[&length.to_be_bytes(), value].concat())
    }
}
