//! The station: the recording and its clock, what the sensors say, and what a
//! visitor's context makes of them.
//!
//! What visitors chose, the texts and the alarm are contextual values; the
//! clock and the readings are the same for everybody and change all the time,
//! so they are plain.

use crate::environment::{Environment, at, layer};
use crate::page::{TamperInput, View};
use crate::replay::{Airport, Clock, Quantity, Reading, Recording};
use crate::sensors::Snapshot;
use crate::tamper::{Failure, State};
use crate::texts::Language;
use crate::time::Time;
use crate::visitors::Visitors;
use crate::web::session::SessionId;
use milieu::Context;
use milieu::context::Invalid;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::watch;

/// The station.
pub(crate) struct Station {
    recording: Recording,
    began: Instant,
    clock: Mutex<Clock>,
    machine: watch::Sender<Arc<Snapshot>>,
    input: Mutex<TamperInput>,
    visitors: Mutex<Visitors>,
    /// Why choices cannot be written down, if they cannot.
    unkept: Mutex<Option<String>>,
    news: watch::Sender<u64>,
}

/// What a monitor wants to know.
pub(crate) struct Health {
    pub(crate) time: Time,
    pub(crate) speed: u32,
    pub(crate) input: Option<String>,
    pub(crate) unkept: Option<String>,
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
        input: TamperInput,
        visitors: Visitors,
    ) -> Station {
        let began = Instant::now();
        let clock = Clock::new(&recording, start, began.elapsed(), speed);
        Station {
            recording,
            began,
            clock: Mutex::new(clock),
            machine: watch::Sender::new(Arc::default()),
            input: Mutex::new(input),
            visitors: Mutex::new(visitors),
            unkept: Mutex::default(),
            news: watch::Sender::new(0),
        }
    }

    /// Tells every open page that something plain has changed. Of contextual
    /// values the coordinator tells.
    fn tell(&self) {
        self.news
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    /// A receiver that changes whenever something plain has.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
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

        let machine = Arc::clone(&self.machine.borrow());
        let input = locked(&self.input).clone();
        let (now, progress, speed) = {
            let (clock, elapsed) = (locked(&self.clock), self.began.elapsed());
            (clock.now(elapsed), clock.progress(elapsed), clock.speed())
        };
        draw(&View {
            texts: &cx.sw.pi.text,
            language,
            airport,
            hours,
            recording: &self.recording,
            now,
            progress,
            speed,
            machine: &machine,
            tamper: cx.sw.pi.tamper,
            input: &input,
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
        visitors.chose(&mut cx, session);
        Ok(())
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
        visitors.chose(&mut cx, session);
        Ok(())
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

    /// The tamper input says something new, so the layer `tamper` is switched
    /// for everybody. An input that fails says nothing about tampering: what
    /// was, stays.
    pub(crate) fn tamper_input(&self, cx: &mut Context<Environment>, state: State) {
        // A cycle, the only error, needs a layer that is a contextual value.
        let failure: Option<Failure> = match state {
            State::Failed(failure) => Some(failure),
            State::Tampered => {
                let _ = cx.activate(layer::Tamper);
                None
            }
            State::Quiet => {
                let _ = cx.deactivate::<layer::Tamper>();
                None
            }
        };
        locked(&self.input).failure = failure;
        self.tell();
    }

    /// Whether choices are written down, or why not.
    pub(crate) fn kept(&self, failure: Option<String>) {
        *locked(&self.unkept) = failure;
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
            input: said,
            unkept: locked(&self.unkept).clone(),
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
