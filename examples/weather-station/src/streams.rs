//! The streams of the station: what it measures, replays and watches, by name.
//!
//! What is made of them stands in `station.flow`. Which tamper contact is
//! watched depends on the layer `profile` (CoElektra, IV-A): its source has a
//! name below the profile's, and the binding `/tamper/contact` follows the layer.

use crate::environment::{Environment, layer};
use crate::machine::{Machine, SOURCES};
use crate::profile;
use crate::replay::recording;
use crate::settings::{self, Settings};
use crate::time::Time;
use crate::{NoStart, locked};
use milieu::diagnostics::Source as Text;
use milieu::keys::Name;
use milieu::stream::language::Language;
use milieu::stream::{
    CannotPublish, Delivery, Driving, Flow, Listening, Named, Source, Sourcing, Status, Subscriber,
};
use milieu::transfer::{Rights, Span};
use milieu::{Applied, Context, Milieu};
use milieu_adapters::replay::{Control, Pace};
use milieu_adapters::{Format, files, gpio};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long sources may take for their first look before the station starts
/// without their values.
const FIRST_LOOK: Duration = Duration::from_secs(2);

/// How often a tamper file is looked at: the kernel tells of changes of ordinary
/// files, of GPIO files it does not. What is shorter there is missed.
const LOOK: Duration = Duration::from_millis(250);

/// How much of the recording comes at once after a jump, so that subscribers
/// know the weather at that time, and what is made of a day of it.
const LEAD: Span = Span::from_seconds(24 * 3600);

/// Where tampering is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// A file that holds `1` or `0`.
    File(PathBuf),
    /// A line of a GPIO chip, by its offset or its name. The kernel tells of its
    /// edges; whoever runs the station needs the right to open the chip.
    Line { chip: PathBuf, line: String },
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::File(path) => write!(f, "{}", path.display()),
            Input::Line { chip, line } => write!(f, "{} line {line}", chip.display()),
        }
    }
}

/// What a tamper file says. The levels of lines have this field, too.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Contact {
    is_active: bool,
}

impl Input {
    fn source(&self) -> Box<dyn Source> {
        let contact = |text: &str| match text {
            "0" => Ok(Contact { is_active: false }),
            "1" => Ok(Contact { is_active: true }),
            _ => Err("that is neither `1` nor `0`; write one of them".to_owned()),
        };
        match self {
            Input::File(path) => {
                Box::new(files::content(path).every(LOOK).format(Format::of(contact)))
            }
            Input::Line { chip, line } => Box::new(gpio::lines(chip, [line])),
        }
    }
}

/// What the page says of the tamper input.
#[derive(Clone, Debug, Default)]
pub(crate) struct TamperInput {
    /// The hardware profile's identifier, if there is a profile.
    pub(crate) profile: Option<String>,
    /// Where the input is, if there is one.
    pub(crate) place: Option<String>,
    /// Why it, or the profile, cannot be read.
    pub(crate) failure: Option<String>,
}

/// The tamper input of a profile, being watched.
struct Tamper {
    profile: Option<String>,
    input: Option<Input>,
    watched: Option<Result<Sourcing, CannotPublish>>,
}

/// All sources of the station, and what is made of them.
pub(crate) struct Streams {
    milieu: Arc<Milieu>,
    driving: Driving,
    sensors: Vec<Sourcing>,
    machine: Arc<Mutex<Machine>>,
    profile: Sourcing,
    profile_file: PathBuf,
    tamper: Mutex<Option<Tamper>>,
    replay: Control,
    replaying: Sourcing,
    /// What holds for as long as it is kept.
    _kept: (Applied, Named, Listening),
}

impl Streams {
    /// Starts all sources and waits for their first look.
    pub(crate) fn start(
        milieu: Arc<Milieu>,
        cx: &mut Context<Environment>,
        settings: &Settings,
        begin: Time,
    ) -> Result<Streams, NoStart> {
        let text = Text::new("station.flow", include_str!("../station.flow"));
        let applied = milieu.apply(&text, Language::Pipeline)?;
        let bound = milieu.bind("/tamper/contact", ["/hw/%profile%/tamper"])?;
        let machine = Machine::new(Span::from(settings.interval * 3));
        let machine = Arc::new(Mutex::new(machine));
        let heard = Arc::clone(&machine);
        let listening = milieu
            .flow("/machine/*")?
            .listen(move |event| locked(&heard).heard(event))?;

        let driving = milieu.driving()?;
        let source = |name: &str, source: Box<dyn Source>| {
            let started = driving.source(name, source);
            started.map_err(|error| NoStart::system(name, error))
        };
        let replay = recording::csv(&settings.recording).lead(LEAD).forever();
        let control = replay.control();
        control.seek(begin.into());
        let replaying = source("/weather/observations", Box::new(replay.at_replay()))?;
        let mut sensors = Vec::new();
        for (name, sensor) in SOURCES {
            let sensor = sensor().every(settings.interval).below(&settings.root);
            sensors.push(source(name, Box::new(sensor))?);
        }
        let identifier = files::content(&settings.profile).format(Format::of(profile::identifier));
        let streams = Streams {
            profile: source("/hw/profile", Box::new(identifier))?,
            profile_file: settings.profile.clone(),
            tamper: Mutex::default(),
            replay: control,
            replaying,
            _kept: (applied, bound, listening),
            sensors,
            machine,
            driving,
            milieu,
        };
        // The first page has readings and knows of an alarm, so both come first;
        // and whether there is a profile says what is to be watched.
        let _ = streams.driving.has_looked(FIRST_LOOK);
        if let Some(why) = streams.no_profile() {
            return Err(NoStart::setting(settings::profile_place(cx), why));
        }
        cx.sync();
        streams.follow(cx);
        let _ = streams.driving.has_looked(FIRST_LOOK);
        streams.see_alarm(cx)?;
        Ok(streams)
    }

    /// Waits for an alarm that was there before the station. What the contact
    /// says at first is debounced, so that the layer comes a little later.
    fn see_alarm(&self, cx: &mut Context<Environment>) -> Result<(), milieu::Error> {
        let tamper = locked(&self.tamper);
        let watched = tamper
            .as_ref()
            .and_then(|it| it.watched.as_ref()?.as_ref().ok());
        let Some(watched) = watched.filter(|it| it.status() == Status::Working) else {
            return Ok(());
        };
        let contact = Flow::Stream(watched.name().as_str().into());
        let contact = self.milieu.stream_of(contact)?;
        let said = contact.subscribe(Delivery::Latest)?.wait_for(FIRST_LOOK);
        let said = said.and_then(|event| event.value(Rights::ALL).ok());
        let is_active = said.is_some_and(|said| said.field("is_active") == Some(&true.into()));
        let until = Instant::now() + FIRST_LOOK;
        cx.sync();
        while is_active && cx.layer::<layer::Tamper>().is_none() && cx.wait(until) {
            cx.sync();
        }
        Ok(())
    }

    /// Replays as fast as the settings have it, and watches the tamper input of
    /// the profile that is active.
    pub(crate) fn follow(&self, cx: &mut Context<Environment>) {
        match cx.sw.pi.replay.speed {
            0 => self.replay.pause(),
            speed => {
                self.replay.pace(Pace::Times(speed.into()));
                self.replay.resume();
            }
        }
        let (profile, input) = (cx.layer::<layer::Profile>(), settings::input(cx));
        let mut tamper = locked(&self.tamper);
        if (tamper.as_ref()).is_some_and(|known| known.profile == profile && known.input == input) {
            return;
        }
        // The name may be the same, so that the one of before goes first.
        *tamper = None;
        if input.is_none() {
            // A cycle, the only error, needs a layer that is a contextual value.
            let _ = cx.deactivate::<layer::Tamper>();
        }
        let name = Name::root().join("hw");
        let name = name.join(profile.as_deref().unwrap_or_default());
        let watch = |input: &Input| {
            self.driving
                .source(name.join("tamper").as_str(), input.source())
        };
        *tamper = Some(Tamper {
            watched: input.as_ref().map(watch),
            profile,
            input,
        });
    }

    /// Why there is no profile although there is a file for it.
    fn no_profile(&self) -> Option<String> {
        failure(&self.profile).filter(|_| self.profile_file.exists())
    }

    /// What there is to say of the tamper input.
    pub(crate) fn tamper_input(&self) -> TamperInput {
        let tamper = locked(&self.tamper);
        let Some(tamper) = &*tamper else {
            return TamperInput::default();
        };
        let failure = match &tamper.watched {
            Some(Err(error)) => Some(error.to_string()),
            Some(Ok(watched)) => failure(watched),
            None => None,
        };
        TamperInput {
            profile: tamper.profile.clone(),
            place: tamper.input.as_ref().map(ToString::to_string),
            failure: failure.or_else(|| self.no_profile()),
        }
    }

    /// What this machine says of itself.
    pub(crate) fn machine(&self) -> Machine {
        locked(&self.machine).clone()
    }

    /// Which sensors say nothing, and why.
    pub(crate) fn failures(&self) -> Vec<String> {
        self.sensors.iter().filter_map(failure).collect()
    }

    /// Why the recording is replayed no more, or not whole.
    pub(crate) fn replay_failure(&self) -> Option<String> {
        failure(&self.replaying)
    }

    /// An event whenever pages should look again.
    pub(crate) fn news(&self) -> Result<Subscriber, milieu::Error> {
        self.milieu.flow("/pages/news")?.subscribe(Delivery::Latest)
    }

    /// The time of the recording that it is now.
    pub(crate) fn now(&self) -> Option<Time> {
        let now = self.milieu.streams().now();
        self.replay.position(now).map(Time::from)
    }

    pub(crate) fn seek(&self, time: Time) {
        self.replay.seek(time.into());
    }
}

fn failure(source: &Sourcing) -> Option<String> {
    match source.status() {
        Status::Failing(why) => Some(why.to_string()),
        Status::Ended => Some(format!("{}: it has ended", source.name())),
        Status::Starting | Status::Working => None,
    }
}
