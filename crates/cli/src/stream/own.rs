//! Flows that run here, over sources that are started for them.

use std::time::{Duration, Instant};

use clap::Args;
use milieu::diagnostics::Source;
use milieu::stream::language::Language;
use milieu::stream::{Declared, Delivery, Sourcing, Status, Streams, SystemClock, operators};
use milieu::transfer::{Origin, Rights};
use milieu_adapters::catalogue;
use serde_json::{Value, json};

use super::modes::{self, Framing};
use super::{Failure, Result, complete, print, unheard};
use crate::nearest::nearest;

/// Sources of its own.
#[derive(Args)]
pub(super) struct Own {
    /// Run the flow here, over this source; may be given several times
    ///
    /// NAME=SOURCE, with parameters after it:
    /// --source '/machine/load=machine.load every=5s'
    #[arg(long = "source", value_name = "NAME=SOURCE", add = complete::sources())]
    pub(super) sources: Vec<String>,
}

impl Own {
    /// Runs a flow until it is to end, and prints its events.
    pub(super) fn run(
        &self,
        flow: &str,
        latest: bool,
        mode: Option<&str>,
        end: Option<Instant>,
        goes_on: impl Fn(u64) -> bool,
    ) -> Result {
        let origin = Origin(format!("milieu/{}", std::process::id()).into());
        let streams = Streams::new(operators::catalogue(), SystemClock, origin, 1);
        let source = Source::new("flow", flow);
        let subscription = Language::Pipeline.subscription(&source, streams.catalogue());
        let subscription = subscription.map_err(|wrong| Failure::Wrong(source, wrong))?;
        let mode = mode.or(subscription.mode.as_deref()).unwrap_or("json");
        let framing = Framing::of(mode);
        framing.check_output()?;
        let mode = modes::mode(mode)?;
        let delivery = if latest {
            Delivery::Latest
        } else {
            subscription.delivery
        };
        let subscribed = streams.subscribe(&subscription.flow, delivery);
        let mut events =
            subscribed.map_err(|wrong| Failure::Wrong(Source::new("flow", flow), vec![wrong]))?;
        let driving = streams.drive().map_err(|error| {
            Failure::new(
                format!("no thread can be started for sources: {error}"),
                "close programs",
            )
        })?;
        let mut sourcing = Vec::new();
        for given in &self.sources {
            let (name, made) = source_of(given)?;
            let driven = driving.source(name, made);
            sourcing.push(driven.map_err(|error| Failure::new(error.to_string(), "see --help"))?);
        }
        let known: Vec<&str> = sourcing.iter().map(|it| it.name().as_str()).collect();
        unheard::say_all(flow, &known);
        let mut encoder = mode.encoder(Rights::ALL);
        let mut frame = Vec::new();
        let mut told = vec![Status::Starting; sourcing.len()];
        let mut count = 0;
        while goes_on(count) && !events.is_ended() {
            tell(&sourcing, &mut told);
            let rest = end.map(|end| end.saturating_duration_since(Instant::now()));
            let Some(event) = events.wait_for(rest.unwrap_or(LOOKING).min(LOOKING)) else {
                continue;
            };
            frame.clear();
            let encoded = encoder.encode(&event, &mut frame);
            encoded.map_err(|error| Failure::new(error.to_string(), "choose other fields"))?;
            framing.print(&mut frame)?;
            count += 1;
        }
        tell(&sourcing, &mut told);
        Ok(())
    }
}

/// How long nothing is said of how sources are.
const LOOKING: Duration = Duration::from_secs(1);

/// Says of sources whose state is another one how they are: one that sees nothing
/// is silent otherwise.
fn tell(sourcing: &[Sourcing], told: &mut [Status]) {
    for (source, told) in sourcing.iter().zip(told) {
        let status = source.status();
        if status != *told {
            let name = source.name().as_str();
            match &status {
                Status::Failing(reason) => eprintln!("warning: {name}: {reason}"),
                Status::Working if matches!(told, Status::Failing(_)) => {
                    eprintln!("note: {name} works again");
                }
                _ => {}
            }
            *told = status;
        }
    }
}

/// `NAME=SOURCE parameter=value …`
fn source_of(given: &str) -> Result<(&str, Box<dyn milieu::stream::Source>)> {
    let help = "write --source '/machine/load=machine.load every=5s'; `milieu stream sources` \
                lists all sources";
    let Some((name, source)) = given.split_once('=') else {
        return Err(Failure::new(format!("`{given}` names no source"), help));
    };
    let mut words = source.split_whitespace();
    let kind = words.next().unwrap_or_default();
    let parameters = words.map(|word| {
        let parameter = word.split_once('=');
        parameter.ok_or_else(|| Failure::new(format!("`{word}` is no parameter"), help))
    });
    let parameters = parameters.collect::<Result<Vec<_>>>()?;
    if catalogue::all().all(|source| source.name != kind) {
        if let [near, ..] = nearest(kind, catalogue::all().map(|source| source.name))[..] {
            let message = format!("there is no source `{kind}`");
            return Err(Failure::new(message, format!("did you mean `{near}`?")));
        }
    }
    let made = catalogue::make(kind, &parameters);
    Ok((
        name,
        made.map_err(|error| Failure::new(error.to_string(), help))?,
    ))
}

/// List the sources that --source can start
#[derive(Args)]
pub(crate) struct Sources {
    /// Print a line of JSON for each source
    #[arg(long)]
    pub(super) json: bool,
}

impl Sources {
    pub(super) fn run(&self) -> Result {
        let mut text = String::new();
        for source in catalogue::all() {
            let entry = (source.name, source.summary, source.parameters);
            text += &described(entry, self.json);
        }
        print(&text)
    }
}

/// List the operators that flows may name
#[derive(Args)]
pub(crate) struct Operators {
    /// Print a line of JSON for each operator
    #[arg(long)]
    pub(super) json: bool,
}

impl Operators {
    pub(super) fn run(&self) -> Result {
        let mut text = String::new();
        for page in operators::pages() {
            let definition = page.definition;
            let entry = (definition.name, definition.summary, definition.parameters);
            text += &described(entry, self.json);
        }
        print(&text)
    }
}

/// What there is, what it does, and what it is told.
fn described((name, summary, parameters): (&str, &str, &[Declared]), json: bool) -> String {
    if json {
        let parameters: Vec<Value> = parameters
            .iter()
            .map(|p| json!({"name": p.name, "default": p.default, "summary": p.summary}))
            .collect();
        let line = json!({"name": name, "summary": summary, "parameters": parameters});
        return format!("{line}\n");
    }
    let mut text = format!("{name}\n    {summary}\n");
    for parameter in parameters {
        let default = match parameter.default {
            Some(default) if !default.is_empty() => format!(" [{default}]"),
            _ => String::new(),
        };
        text += &format!("      {}{default}: {}\n", parameter.name, parameter.summary);
    }
    text
}
