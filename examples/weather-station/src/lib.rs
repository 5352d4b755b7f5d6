//! A weather station: the sensors of this machine and a recorded year of three
//! airports, on a page that changes with its visitor's language, the hardware
//! it runs on, and tampering.
//!
//! All that varies stands in `weather-station.ini`, from which [`environment`]
//! is generated. What it varies with are layers: a request enters its `session`
//! and then the session's `language`; `profile`, `tamper` and `shutdown` are
//! global (CoElektra, IV-A).
//!
//! Threads: a pool serves the pages, one thread reads the sensors, one blocks
//! on the tamper input, one writes down what visitors choose. Each has its own
//! context. Activating `shutdown` wakes the blocked ones and joins all of them.

mod defaults;
mod keeper;
mod page;
pub mod profile;
pub mod replay;
pub mod sensors;
mod settings;
mod station;
pub mod tamper;
pub mod texts;
pub mod time;
mod visitors;
mod web;

/// The environment of `weather-station.ini`: types, markers and layers.
pub mod environment {
    milieu::environment!("weather-station.ini");
}

pub use page::TamperInput;

use environment::{Environment, layer};
use milieu::keys::options::Program;
use milieu::{Context, Contexts, Milieu, Registration};
use replay::Recording;
use settings::Settings;
use station::Station;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use time::Time;
use tokio::sync::{Semaphore, watch};

/// The program as its help describes it.
#[must_use]
pub fn program() -> Program {
    Program::new("weather-station")
        .version(env!("CARGO_PKG_VERSION"))
        .description(
            "Serves the weather of a replayed year, this machine's sensors and a tamper alarm as \
             a web page. Every setting can stand in ~/.config/weather-station/weather-station.ini, too. \
             Exit codes: 0 ended as asked; 1 the system refused something; 2 a setting is wrong, \
             on the command line, in a variable or in a file.",
        )
}

/// Why a station does not start: the place and what to do.
#[derive(Debug)]
pub enum NoStart {
    /// A setting is wrong, wherever it stands.
    Setting(String),
    /// The system refuses something that the station needs.
    System(String),
}

impl NoStart {
    fn setting(place: impl fmt::Display, reason: impl fmt::Display) -> NoStart {
        NoStart::Setting(format!("{place}: {reason}"))
    }

    fn system(place: impl fmt::Display, reason: impl fmt::Display) -> NoStart {
        NoStart::System(format!("{place}: {reason}"))
    }

    /// What the process exits with.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            NoStart::System(_) => 1,
            NoStart::Setting(_) => 2,
        }
    }
}

impl fmt::Display for NoStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoStart::Setting(text) | NoStart::System(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for NoStart {}

impl From<milieu::Error> for NoStart {
    fn from(error: milieu::Error) -> NoStart {
        NoStart::Setting(error.to_string())
    }
}

/// A station that runs. Dropping it ends it.
pub struct Running {
    address: SocketAddr,
    cx: Context<Environment>,
    /// What has to be woken and joined.
    ending: Arc<Ending>,
    /// Removes the action of `shutdown`.
    _action: Registration,
}

impl Running {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it by activating the layer `shutdown`, whose action wakes and joins
    /// all threads. Ending twice is ending once.
    pub fn end(&mut self) {
        // A cycle, the only error, needs a layer that is a contextual value.
        let _ = self.cx.activate(layer::Shutdown);
    }

    /// How many threads the station still has.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.ending.threads().len()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// What the action of `shutdown` works with.
struct Ending {
    /// Tells the server, which waits for connections.
    server: watch::Sender<bool>,
    /// Wakes the thread that blocks on the tamper input.
    tamper: Option<tamper::Wake>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Ending {
    fn threads(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The layer is published already, so whoever waits for news is awake.
    fn run(&self) {
        self.server.send_replace(true);
        if let Some(wake) = &self.tamper {
            wake.wake();
        }
        let threads = std::mem::take(&mut *self.threads());
        for thread in threads {
            // A thread that panicked has said so already.
            let _ = thread.join();
        }
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), NoStart> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        let thread = thread.map_err(|error| {
            NoStart::system(
                format_args!("thread {name}"),
                format_args!("the system starts no more: {error}"),
            )
        })?;
        self.threads().push(thread);
        Ok(())
    }
}

/// Starts a station with its settings.
///
/// # Errors
/// If a setting is wrong, the recording cannot be read, the address cannot be
/// listened on, or the system lacks threads or descriptors.
pub fn start(milieu: Milieu) -> Result<Running, NoStart> {
    defaults::assign(milieu.coordinator()).map_err(milieu::Error::from)?;
    let milieu = Arc::new(milieu);
    let mut cx = milieu.context::<Environment>()?;
    // Everything below `/hw/pi/%profile%` is from here on that of this hardware.
    let profile = settings::profile(&cx)?;
    if let Some(profile) = &profile {
        cx.activate(layer::Profile(profile.as_str()))
            .map_err(milieu::Error::from)?;
    }
    let settings = Settings::of(&cx)?;
    let recording = settings.recording()?;
    let began = settings.start.unwrap_or_else(|| this_time_of(&recording));
    let input = TamperInput {
        profile,
        place: settings.input.as_ref().map(ToString::to_string),
        failure: None,
    };
    let station = Arc::new(Station::new(
        recording,
        began,
        cx.sw.pi.replay.speed,
        input,
        visitors::Visitors::new(&mut cx),
    ));
    // The first page has readings and knows of an alarm, so both come before it.
    let mut sampler = sensors::Sampler::new(&settings.root);
    let awake = Instant::now();
    station.sensed(sampler.sample(awake.elapsed()));
    let mut watch = settings.input.as_ref().map(watch_input).transpose()?;
    if let Some(state) = watch.as_mut().and_then(tamper::Watch::look) {
        station.tamper_input(&mut cx, state);
    }

    let (server, ended) = watch::channel(false);
    let ending = Arc::new(Ending {
        server,
        tamper: watch.as_ref().map(tamper::Watch::wake),
        threads: Mutex::default(),
    });
    let acting = Arc::clone(&ending);
    let action = milieu
        .coordinator()
        .on_activation::<layer::Shutdown>(move |_| acting.run());
    let (listener, address) = listen(&settings)?;
    // From here on whatever fails ends what has begun.
    let running = Running {
        address,
        cx,
        ending: Arc::clone(&ending),
        _action: action,
    };
    let contexts = Contexts::new(running.cx.fork());
    serve(&ending, &settings, &station, contexts, listener, ended)?;
    let (mut cx, sampled, interval) = (running.cx.fork(), station.clone(), settings.interval);
    ending.spawn("sensors", move || {
        while !ends_within(&mut cx, interval) {
            sampled.sensed(sampler.sample(awake.elapsed()));
        }
    })?;
    let (cx, kept) = (running.cx.fork(), station.clone());
    ending.spawn("keeper", move || keeper::keep(&milieu, cx, &kept))?;
    if let Some(mut watch) = watch {
        let mut cx = running.cx.fork();
        ending.spawn("tamper", move || {
            while let tamper::Event::Changed(state) = watch.wait() {
                station.tamper_input(&mut cx, state);
            }
        })?;
    }
    Ok(running)
}

/// Sleeps for that time; says at once if the station ends meanwhile.
fn ends_within(cx: &mut Context<Environment>, time: Duration) -> bool {
    let until = Instant::now() + time;
    loop {
        cx.sync();
        if cx.layer::<layer::Shutdown>().is_some() {
            return true;
        }
        if !cx.wait(until) {
            return false;
        }
    }
}

/// The time of the recording's year that corresponds to now.
fn this_time_of(recording: &Recording) -> Time {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |d| d.as_secs() as i64);
    let now = Time(now).civil();
    let year = recording.first().civil().year;
    // 29 February has no counterpart in other years.
    let day = if (now.month, now.day) == (2, 29) {
        28
    } else {
        now.day
    };
    Time::from_civil(year, now.month, day, now.hour, now.minute, now.second)
        .unwrap_or_else(|| recording.first())
}

fn watch_input(input: &tamper::Input) -> Result<tamper::Watch, NoStart> {
    tamper::Watch::new(input).map_err(|error| {
        NoStart::system(
            input,
            format_args!("it cannot be watched: {error}; free some descriptors"),
        )
    })
}

fn listen(settings: &Settings) -> Result<(std::net::TcpListener, SocketAddr), NoStart> {
    let wanted = settings.address;
    let no = |error: std::io::Error| {
        NoStart::system(
            format_args!("address {wanted}"),
            format_args!(
                "cannot listen: {error}; choose another with --address or --port (0 takes any free port)"
            ),
        )
    };
    let listener = std::net::TcpListener::bind(wanted).map_err(no)?;
    listener.set_nonblocking(true).map_err(no)?;
    let address = listener.local_addr().map_err(no)?;
    Ok((listener, address))
}

/// Serves in a pool of threads that one thread waits for.
fn serve(
    ending: &Ending,
    settings: &Settings,
    station: &Arc<Station>,
    contexts: Contexts<Environment>,
    listener: std::net::TcpListener,
    ended: watch::Receiver<bool>,
) -> Result<(), NoStart> {
    let no = |error: std::io::Error| {
        NoStart::system(
            "web server",
            format_args!("the system starts no more threads: {error}"),
        )
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("web")
        .enable_all()
        .build()
        .map_err(no)?;
    let listener = {
        let _within = runtime.enter();
        tokio::net::TcpListener::from_std(listener).map_err(no)?
    };
    let limits = web::serve::Limits {
        connections: settings.connections,
        patience: settings.patience,
    };
    let app = web::App {
        station: Arc::clone(station),
        contexts,
        streams: Arc::new(Semaphore::new(settings.connections / 2)),
        loopback: settings.address.ip().is_loopback(),
        patience: settings.patience,
    };
    ending.spawn("serve", move || {
        runtime.block_on(web::serve::serve(listener, web::router(app), limits, ended));
    })
}
