//! The station: the recording, its streams, and what a visitor's context makes
//! of them.
//!
//! What visitors chose, the texts and the alarm are contextual values; readings
//! and the replayed time are the same for everybody and change all the time, so
//! they are streams.

use crate::environment::{Environment, at, layer};
use crate::locked;
use crate::page::View;
use crate::replay::{Airport, Quantity, Reading, Recording};
use crate::streams::Streams;
use crate::texts::Language;
use crate::time::Time;
use crate::visitors::Visitors;
use crate::web::session::SessionId;
use milieu::Context;
use milieu::context::Invalid;
use milieu::transfer::{Json, Mode, Rights};
use serde_json::{Value, json};
use std::sync::Mutex;

/// The station.
pub(crate) struct Station {
    recording: Recording,
    pub(crate) streams: Streams,
    visitors: Mutex<Visitors>,
    /// Why choices cannot be written down, if they cannot.
    unkept: Mutex<Option<String>>,
}

impl Station {
    pub(crate) fn new(recording: Recording, streams: Streams, visitors: Visitors) -> Station {
        Station {
            recording,
            streams,
            visitors: Mutex::new(visitors),
            unkept: Mutex::default(),
        }
    }

    /// The replayed time.
    pub(crate) fn now(&self) -> Time {
        let now = self.streams.now();
        now.unwrap_or_else(|| self.recording.first())
    }

    /// Calls `draw` with everything that a visitor's page depends on, in the
    /// layers of the visitor's session and language (CoElektra, IV-A).
    pub(crate) fn look<R>(
        &self,
        cx: &mut Context<Environment>,
        session: &SessionId,
        accepted: &str,
        hours: usize,
        draw: impl FnOnce(&View<'_>) -> R,
    ) -> R {
        let mut cx = cx.enter(layer::Session(session.as_ref()));
        let language = Language::chosen(cx.sw.pi.language)
            .or_else(|| Language::accepted(accepted))
            .unwrap_or(Language::En);
        let airport = Airport::from_code(cx.sw.pi.station.as_str()).unwrap_or(Airport::Jfk);
        let cx = cx.enter(layer::Language(language.code()));

        let now = self.now();
        draw(&View {
            texts: &cx.sw.pi.text,
            language,
            airport,
            hours,
            recording: &self.recording,
            now,
            speed: cx.sw.pi.replay.speed,
            machine: &self.streams.machine(),
            failures: &self.streams.failures(),
            replay_failure: self.streams.replay_failure().as_deref(),
            tamper: cx.sw.pi.tamper,
            input: &self.streams.tamper_input(),
        })
    }

    pub(crate) fn choose_language(
        &self,
        cx: &mut Context<Environment>,
        session: &SessionId,
        language: Language,
    ) -> Result<(), Invalid> {
        let mut cx = cx.enter(layer::Session(session.as_ref()));
        // Whoever chooses is counted before anybody else forgets somebody.
        let mut visitors = locked(&self.visitors);
        cx.set::<at::sw::pi::language>(language.choice())?;
        visitors.chose(&mut cx, session)
    }

    pub(crate) fn choose_airport(
        &self,
        cx: &mut Context<Environment>,
        session: &SessionId,
        airport: Airport,
    ) -> Result<(), Invalid> {
        use crate::environment::sw::pi::Station as Choice;
        let mut cx = cx.enter(layer::Session(session.as_ref()));
        let mut visitors = locked(&self.visitors);
        cx.set::<at::sw::pi::station>(match airport {
            Airport::Ewr => Choice::Ewr,
            Airport::Jfk => Choice::Jfk,
            Airport::Lga => Choice::Lga,
        })?;
        visitors.chose(&mut cx, session)
    }

    /// Sets the speed of the replay for everybody, also for other stations with
    /// the same settings.
    pub(crate) fn set_speed(
        &self,
        cx: &mut Context<Environment>,
        speed: u32,
    ) -> Result<(), Invalid> {
        cx.set::<at::sw::pi::replay::speed>(speed)?;
        self.streams.follow(cx);
        Ok(())
    }

    /// When the recording begins and ends.
    pub(crate) fn span(&self) -> (Time, Time) {
        (self.recording.first(), self.recording.end())
    }

    /// Whether choices are written down, or why not.
    pub(crate) fn kept(&self, failure: Option<String>) {
        *locked(&self.unkept) = failure;
    }

    /// Why choices are not written down.
    pub(crate) fn unkept(&self) -> Option<String> {
        locked(&self.unkept).clone()
    }
}

/// What a page shows, without words.
pub(crate) fn data(view: &View<'_>) -> Value {
    let current = view.recording.current(view.airport, view.now);
    let mut observation = json!(null);
    let mut implausible = Vec::new();
    if let Some(current) = current {
        observation =
            json!({ "time": current.observation.time.to_string(), "fresh": current.is_fresh() });
        for quantity in Quantity::ALL {
            let reading = current.observation.get(quantity);
            observation[quantity.column()] = json!(reading.reported());
            if let Reading::Implausible(..) = reading {
                implausible.push(quantity.column());
            }
        }
        observation["implausible"] = json!(implausible);
    }
    json!({
        "station": view.airport.code(),
        "time": view.now.to_string(),
        "speed": view.speed,
        "tamper": view.tamper,
        "observation": observation,
        "machine": machine(view),
    })
}

/// What this machine says, by the names of its streams.
fn machine(view: &View<'_>) -> Value {
    let mut machine = json!({});
    for thing in view.machine.things() {
        let mut text = Vec::new();
        let value = thing.event.value(Rights::ALL);
        let written = value.and_then(|value| Json.encode_value(&value, Rights::ALL, &mut text));
        let value = written
            .ok()
            .and_then(|()| serde_json::from_slice(&text).ok());
        let things = &mut machine[thing.event.header().stream.name.as_str()];
        match things.as_array_mut() {
            Some(things) => things.extend(value),
            None => *things = value.into_iter().collect(),
        }
    }
    machine
}
