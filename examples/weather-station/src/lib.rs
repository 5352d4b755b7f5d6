//! A weather station: the sensors of this machine and a recorded year of three
//! airports, on a page that changes with its visitor's language, the hardware
//! it runs on, and tampering.
//!
//! Threads: a pool serves the pages, one thread reads the sensors, one blocks
//! on the tamper input. Ending wakes the blocked ones and joins all of them.

mod page;
pub mod profile;
pub mod replay;
pub mod sensors;
mod station;
pub mod tamper;
pub mod texts;
pub mod time;
mod web;

pub use page::TamperInput;

use replay::{Airport, Recording};
use station::Station;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};
use time::Time;
use tokio::sync::{Semaphore, watch};

/// How a station is set up.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// The address to listen on.
    pub address: IpAddr,
    /// The port to listen on; 0 takes any free one.
    pub port: u16,
    /// Connections at once.
    pub connections: usize,
    /// How long a client may take to send a request or to take an answer.
    pub patience: Duration,
    /// The folder below which `proc` and `sys` are read.
    pub root: PathBuf,
    /// How often the sensors are read.
    pub interval: Duration,
    /// A recording to replay instead of the one that the program carries.
    pub recording: Option<PathBuf>,
    /// When the replay begins; without it at the time of year that it is now.
    pub start: Option<Time>,
    /// How fast it runs.
    pub speed: u32,
    /// The airport that new visitors see.
    pub airport: Airport,
    /// The hardware profile's identifier.
    pub profile: Option<String>,
    /// The tamper input.
    pub input: Option<tamper::Input>,
}

impl Default for Configuration {
    fn default() -> Configuration {
        Configuration {
            address: IpAddr::from([127, 0, 0, 1]),
            port: 8013,
            connections: 256,
            patience: Duration::from_secs(10),
            root: "/".into(),
            interval: Duration::from_secs(2),
            recording: None,
            start: None,
            speed: 600,
            airport: Airport::Jfk,
            profile: None,
            input: None,
        }
    }
}

/// Why a station does not start: the place and what to do.
#[derive(Debug)]
pub struct NoStart {
    place: String,
    reason: String,
}

impl NoStart {
    fn new(place: impl Into<String>, reason: impl Into<String>) -> NoStart {
        NoStart {
            place: place.into(),
            reason: reason.into(),
        }
    }
}

impl fmt::Display for NoStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.reason)
    }
}

impl std::error::Error for NoStart {}

/// A station that runs. Dropping it ends it.
pub struct Running {
    address: SocketAddr,
    ended: watch::Sender<bool>,
    wake: Option<tamper::Wake>,
    sensors: Option<Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Running {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it: wakes its threads and joins them.
    pub fn end(&mut self) {
        self.ended.send_replace(true);
        self.sensors = None;
        if let Some(wake) = &self.wake {
            wake.wake();
        }
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so already.
            let _ = thread.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts a station.
///
/// # Errors
/// If the recording cannot be read, the address cannot be listened on, or the
/// system lacks threads or descriptors.
pub fn start(configuration: Configuration) -> Result<Running, NoStart> {
    let recording = recording(&configuration)?;
    let start = configuration
        .start
        .unwrap_or_else(|| this_time_of(&recording));
    let input = TamperInput {
        profile: configuration.profile.clone(),
        place: configuration.input.as_ref().map(ToString::to_string),
        failure: None,
    };
    let station = Arc::new(Station::new(
        recording,
        start,
        configuration.speed,
        configuration.airport,
        input,
    ));
    let (ended, ending) = watch::channel(false);
    let (listening, address) = serve(&configuration, Arc::clone(&station), ending)?;
    let mut running = Running {
        address,
        ended,
        wake: None,
        sensors: None,
        threads: vec![listening],
    };

    let (stop, stopped) = channel();
    running.sensors = Some(stop);
    let sampled = Arc::clone(&station);
    let (root, interval) = (configuration.root.clone(), configuration.interval);
    running.threads.push(spawn("sensors", move || {
        sense(&sampled, sensors::Sampler::new(root), interval, &stopped)
    })?);

    if let Some(input) = &configuration.input {
        let mut watch = tamper::Watch::new(input).map_err(|error| {
            NoStart::new(
                input.to_string(),
                format!("it cannot be watched: {error}; free some descriptors"),
            )
        })?;
        running.wake = Some(watch.wake());
        running.threads.push(spawn("tamper", move || {
            while let tamper::Event::Changed(state) = watch.wait() {
                station.tamper_input(state);
            }
        })?);
    }
    Ok(running)
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, NoStart> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
    thread.map_err(|error| {
        NoStart::new(
            format!("thread {name}"),
            format!("the system starts no more: {error}"),
        )
    })
}

fn recording(configuration: &Configuration) -> Result<Recording, NoStart> {
    let no = |error: replay::NoRecording| NoStart::new(error.file, error.reason);
    let Some(file) = &configuration.recording else {
        return Recording::parse(
            "data/weather-2013.csv",
            include_str!("../data/weather-2013.csv"),
        )
        .map_err(no);
    };
    let place = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| {
        NoStart::new(
            place.clone(),
            format!("it cannot be read: {error}; name a UTF-8 text file"),
        )
    })?;
    Recording::parse(&place, &text).map_err(no)
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

/// Reads the sensors until `stopped` is hung up.
fn sense(
    station: &Station,
    mut sampler: sensors::Sampler,
    interval: Duration,
    stopped: &Receiver<()>,
) {
    let began = Instant::now();
    loop {
        station.sensed(sampler.sample(began.elapsed()));
        if stopped.recv_timeout(interval) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// Listens, and serves in a pool of threads that one thread waits for.
fn serve(
    configuration: &Configuration,
    station: Arc<Station>,
    ended: watch::Receiver<bool>,
) -> Result<(JoinHandle<()>, SocketAddr), NoStart> {
    let wanted = SocketAddr::new(configuration.address, configuration.port);
    let no = |error: std::io::Error| {
        NoStart::new(
            format!("address {wanted}"),
            format!(
                "cannot listen: {error}; choose another with --address or --port (0 takes any free port)"
            ),
        )
    };
    let listener = std::net::TcpListener::bind(wanted).map_err(no)?;
    listener.set_nonblocking(true).map_err(no)?;
    let address = listener.local_addr().map_err(no)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("web")
        .enable_all()
        .build()
        .map_err(|error| {
            NoStart::new(
                "web server",
                format!("the system starts no more threads: {error}"),
            )
        })?;
    let listener = {
        let _within = runtime.enter();
        tokio::net::TcpListener::from_std(listener).map_err(no)?
    };
    let limits = web::serve::Limits {
        connections: configuration.connections,
        patience: configuration.patience,
    };
    let app = web::App {
        station,
        streams: Arc::new(Semaphore::new(configuration.connections / 2)),
        ended: ended.clone(),
        loopback: address.ip().is_loopback(),
        patience: configuration.patience,
    };
    let thread = spawn("serve", move || {
        runtime.block_on(web::serve::serve(listener, web::router(app), limits, ended))
    })?;
    Ok((thread, address))
}
