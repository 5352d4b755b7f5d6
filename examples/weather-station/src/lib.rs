//! A weather station: the sensors of this machine and a recorded year of three
//! airports, on a page that changes with its visitor's language, the hardware
//! it runs on, and tampering.
//!
//! All that varies stands in `weather-station.ini`, from which [`environment`]
//! is generated. What it varies with are layers: a request enters its `session`
//! and then the session's `language`; `profile`, `tamper` and `shutdown` are
//! global (CoElektra, IV-A).
//!
//! What is measured, replayed and watched are streams, and `station.flow` says
//! what becomes of them: names for others, layers, alarms.
//!
//! Threads: a pool serves the pages, one thread polls all sources, one writes
//! down what visitors choose. Activating `shutdown` wakes those that wait and
//! joins them; then nobody needs the sources, and their thread is joined, too.

mod defaults;
mod keeper;
mod machine;
mod page;
mod profile;
pub mod replay;
mod settings;
mod station;
mod streams;
pub mod texts;
pub mod time;
mod visitors;
mod web;

/// The environment of `weather-station.ini`: types, markers and layers.
pub mod environment {
    milieu::environment!("weather-station.ini");
}

use environment::{Environment, layer};
use milieu::keys::options::Program;
use milieu::{Context, Contexts, Milieu, Registration};
use replay::{Recording, recording};
use settings::Settings;
use station::Station;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use streams::Streams;
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
    /// Nothing once it has ended. With the last of it ends the sources' thread.
    milieu: Option<Arc<Milieu>>,
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

    /// Its streams, layers and settings; nothing once it has ended.
    #[must_use]
    pub fn milieu(&self) -> Option<&Milieu> {
        self.milieu.as_deref()
    }

    /// Ends it by activating the layer `shutdown`, whose action wakes and joins
    /// all threads but that of the sources, which is joined thereafter. Ending
    /// twice is ending once.
    pub fn end(&mut self) {
        // A cycle, the only error, needs a layer that is a contextual value.
        let _ = self.cx.activate(layer::Shutdown);
        self.milieu = None;
    }

    /// How many threads the station still has, without that of the sources.
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
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Ending {
    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        locked(&self.threads)
    }

    /// The layer is published already, so whoever waits for news is awake.
    fn run(&self) {
        self.server.send_replace(true);
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
    defaults::assign(milieu.coordinator())?;
    let milieu = Arc::new(milieu);
    let mut cx = milieu.context::<Environment>()?;
    let settings = Settings::of(&cx)?;
    let recording = Recording::read(recording::csv(&settings.recording));
    let recording = recording.map_err(NoStart::Setting)?;
    let begin = settings.start.unwrap_or_else(|| this_time_of(&recording));
    let begin = recording.wrapped(begin);
    let streams = Streams::start(Arc::clone(&milieu), &mut cx, &settings, begin)?;
    let visitors = visitors::Visitors::new(&mut cx);
    let station = Arc::new(Station::new(recording, streams, visitors));

    let (server, ended) = watch::channel(false);
    let ending = Arc::new(Ending {
        server,
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
        milieu: Some(Arc::clone(&milieu)),
        cx,
        ending: Arc::clone(&ending),
        _action: action,
    };
    let contexts = Contexts::new(running.cx.fork());
    serve(&ending, &settings, &station, contexts, listener, ended)?;
    let cx = running.cx.fork();
    ending.spawn("keeper", move || keeper::keep(&milieu, cx, &station))?;
    Ok(running)
}

/// A panic while a lock was held leaves the value whole: each is set at once.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
