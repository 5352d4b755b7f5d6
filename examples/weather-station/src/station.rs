//! The station: the recording and its clock, what the sensors say, what the
//! visitors chose, and whether somebody tampers.

use crate::page::{TamperInput, View};
use crate::replay::{Airport, Clock, Quantity, Reading, Recording};
use crate::sensors::Snapshot;
use crate::tamper::{Failure, State};
use crate::texts::{Language, Texts};
use crate::time::Time;
use crate::web::session::SessionId;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::watch;

/// What a visitor chose.
#[derive(Clone, Copy, Debug, Default)]
struct Choice {
    language: Option<Language>,
    airport: Option<Airport>,
}

/// The station.
pub(crate) struct Station {
    recording: Recording,
    began: Instant,
    clock: Mutex<Clock>,
    machine: watch::Sender<Arc<Snapshot>>,
    input: Mutex<TamperInput>,
    texts: Vec<Texts>,
    airport: Airport,
    choices: Mutex<HashMap<SessionId, Choice>>,
    tamper: watch::Sender<bool>,
    news: watch::Sender<u64>,
}

/// What a monitor wants to know.
pub(crate) struct Health {
    pub(crate) time: Time,
    pub(crate) speed: u32,
    pub(crate) tamper: bool,
    pub(crate) input: Option<String>,
}

/// A panic while a lock was held leaves the value whole: each is set at once.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Station {
    pub(crate) fn new(
        recording: Recording,
        start: Time,
        speed: u32,
        airport: Airport,
        input: TamperInput,
    ) -> Station {
        let began = Instant::now();
        let clock = Clock::new(&recording, start, began.elapsed(), speed);
        Station {
            recording,
            began,
            clock: Mutex::new(clock),
            machine: watch::Sender::new(Arc::default()),
            input: Mutex::new(input),
            texts: Language::ALL.into_iter().map(Texts::of).collect(),
            airport,
            choices: Mutex::default(),
            tamper: watch::Sender::new(false),
            news: watch::Sender::new(0),
        }
    }

    /// Tells every open page to look again.
    fn tell(&self) {
        self.news
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    /// A receiver that changes whenever something else has.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// Calls `draw` with everything that a visitor's page depends on.
    pub(crate) fn look<R>(
        &self,
        session: &SessionId,
        accepted: &str,
        hours: usize,
        draw: impl FnOnce(&View<'_>) -> R,
    ) -> R {
        let choice = locked(&self.choices)
            .get(session)
            .copied()
            .unwrap_or_default();
        let language = choice
            .language
            .or_else(|| Language::accepted(accepted))
            .unwrap_or(Language::En);
        let machine = Arc::clone(&self.machine.borrow());
        let input = locked(&self.input).clone();
        let (now, progress, speed) = {
            let (clock, elapsed) = (locked(&self.clock), self.began.elapsed());
            (clock.now(elapsed), clock.progress(elapsed), clock.speed())
        };
        draw(&View {
            texts: &self.texts[language as usize],
            language,
            airport: choice.airport.unwrap_or(self.airport),
            hours,
            recording: &self.recording,
            now,
            progress,
            speed,
            machine: &machine,
            tamper: *self.tamper.borrow(),
            input: &input,
        })
    }

    pub(crate) fn choose_language(&self, session: &SessionId, language: Language) {
        locked(&self.choices)
            .entry(session.clone())
            .or_default()
            .language = Some(language);
        self.tell();
    }

    pub(crate) fn choose_airport(&self, session: &SessionId, airport: Airport) {
        locked(&self.choices)
            .entry(session.clone())
            .or_default()
            .airport = Some(airport);
        self.tell();
    }

    pub(crate) fn set_speed(&self, speed: u32) {
        locked(&self.clock).set_speed(speed, self.began.elapsed());
        self.tell();
    }

    pub(crate) fn seek(&self, time: Time) {
        locked(&self.clock).seek(time, self.began.elapsed());
        self.tell();
    }

    /// When the recording begins and ends.
    pub(crate) fn span(&self) -> (Time, Time) {
        (self.recording.first(), self.recording.end())
    }

    pub(crate) fn sensed(&self, snapshot: Snapshot) {
        self.machine.send_replace(Arc::new(snapshot));
        self.tell();
    }

    /// The tamper input says something new. One that fails says nothing about
    /// tampering: what was, stays.
    pub(crate) fn tamper_input(&self, state: State) {
        let failure: Option<Failure> = match state {
            State::Failed(failure) => Some(failure),
            State::Quiet | State::Tampered => {
                self.tamper.send_replace(state == State::Tampered);
                None
            }
        };
        locked(&self.input).failure = failure;
        self.tell();
    }

    pub(crate) fn health(&self) -> Health {
        let (clock, elapsed) = (locked(&self.clock), self.began.elapsed());
        let input = locked(&self.input);
        let said = input
            .failure
            .as_ref()
            .map(ToString::to_string)
            .or_else(|| input.place.clone());
        Health {
            time: clock.now(elapsed),
            speed: clock.speed(),
            tamper: *self.tamper.borrow(),
            input: said,
        }
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
        "machine": {
            "load": view.machine.load,
            "pressure": view.machine.pressure,
            "memory": view.machine.memory,
            "network": view.machine.network,
            "channels": view.machine.channels,
            "supplies": view.machine.supplies,
        },
    })
}
