//! Hosts, and the command among them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, sched_getaffinity, sched_setaffinity, unshare};
use nix::unistd::Pid;

use super::network::{Counts, Link, Network};
use super::{Arguments, Host, end_with_who_started, stay_on, tap};

/// Where the command is.
const COORDINATOR: Ipv4Addr = Ipv4Addr::new(10, 31, 0, 1);

/// Larger than any frame of an interface of ours.
const FRAME_MAX: usize = 2048;

/// Where test servers listen.
const PORT: u16 = milieu_bench::description::Server::PORT;

/// Runs the command among the hosts; this process is the first one of its
/// namespace.
pub fn inside(arguments: &Arguments, hosts: &[Host]) -> Result<u8, String> {
    end_with_who_started();
    mounts(hosts).map_err(|error| format!("names of hosts cannot be set: {error}"))?;
    let mut taps = vec![interface(COORDINATOR)?];
    let mut homes = Vec::new();
    for host in hosts {
        let home = Home::new(host).map_err(|why| format!("{}: {why}", host.name))?;
        taps.push(home.tap.try_clone().map_err(|error| error.to_string())?);
        homes.push(home);
    }
    // Whoever coordinates is next to the switch.
    let own = Link {
        delay: Duration::ZERO,
        bits_per_second: 1e9,
        losses: [].into(),
    };
    let links = hosts.iter().map(|host| host.link(&arguments.losses));
    let carrier = Carrier::start(taps, Network::new([own].into_iter().chain(links)))
        .map_err(|error| error.to_string())?;
    for (home, host) in homes.iter_mut().zip(hosts) {
        let listen = format!("0.0.0.0:{PORT}");
        let served = server(arguments, host, &listen).map(|command| home.serve(command));
        if let Some(Err(why)) = served {
            return Err(format!("{}: {why}", host.name));
        }
    }
    let code = command(arguments)?;
    for (host, counts) in hosts.iter().zip(carrier.counts().into_iter().skip(1)) {
        tell(host, counts);
    }
    Ok(code)
}

/// Runs the command beside test servers on this machine.
pub fn on_loopback(arguments: &Arguments, hosts: &[Host]) -> Result<u8, String> {
    let mut servers = Vec::new();
    let anywhere = sched_getaffinity(Pid::from_raw(0)).map_err(|error| error.to_string())?;
    for host in hosts {
        let [_, rest @ ..] = host.address.octets();
        let address = Ipv4Addr::new(127, rest[0], rest[1], rest[2]);
        if let Some(milieu) = server(arguments, host, &format!("{address}:{PORT}")) {
            // They end with this process, whatever ends it.
            let mut command = Command::new("setpriv");
            command
                .args(["--pdeathsig", "KILL"])
                .arg(milieu.get_program());
            command.args(milieu.get_args());
            // What is started stays where this thread is.
            stay_on(host.processor);
            servers.push(Server(started(command)?));
            let _ = sched_setaffinity(Pid::from_raw(0), &anywhere);
        }
    }
    command(arguments)
}

/// A server that ends with this.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(arguments: &Arguments) -> Result<u8, String> {
    let [program, rest @ ..] = &arguments.command[..] else {
        return Ok(0);
    };
    let mut command = Command::new(program);
    command.args(rest).stdin(Stdio::null());
    let status = command
        .status()
        .map_err(|error| format!("{program}: {error}"))?;
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(2))
}

/// The command of the test server of a host, if there are to be any. It keeps what
/// it is handed over beside the key.
fn server(arguments: &Arguments, host: &Host, listen: &str) -> Option<Command> {
    let mut command = Command::new(arguments.milieu.as_ref()?);
    command.args(["bench", "serve", "--listen", listen]);
    command
        .arg("--applications")
        .arg(arguments.applications.as_ref()?);
    let key = arguments.key.as_ref()?;
    let state = key.with_file_name(format!("{}.state", host.address));
    command.arg("--key").arg(key).arg("--state").arg(state);
    Some(command)
}

/// Starts a server and waits until it listens.
fn started(mut command: Command) -> Result<Child, String> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| error.to_string())?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        let _ = BufReader::new(out).read_line(&mut line);
    }
    match line.starts_with("listening") {
        true => Ok(child),
        false => {
            let _ = child.kill();
            let _ = child.wait();
            Err("its test server does not listen".into())
        }
    }
}

/// Processes of our own below `/proc`, and the hosts by their names.
fn mounts(hosts: &[Host]) -> io::Result<()> {
    let none = None::<&Path>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), none)?;
    let mut names = tempfile::NamedTempFile::new()?;
    writeln!(names, "127.0.0.1 localhost")?;
    for host in hosts {
        writeln!(names, "{} {}", host.address, host.name)?;
    }
    // The mount keeps the file when its name is gone.
    mount(
        Some(names.path()),
        "/etc/hosts",
        none,
        MsFlags::MS_BIND,
        none,
    )?;
    Ok(())
}

/// An interface in the namespace of this thread, with an address.
fn interface(address: Ipv4Addr) -> Result<File, String> {
    let tap = tap::open().map_err(|error| format!("no network interface can be made: {error}"))?;
    ip(&["link", "set", "dev", "lo", "up"])?;
    ip(&["address", "add", &format!("{address}/16"), "dev", tap::NAME])?;
    ip(&["link", "set", "dev", tap::NAME, "up"])?;
    Ok(tap)
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output();
    let output = output.map_err(|error| format!("ip (of iproute2): {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("ip {}: {}", arguments.join(" "), said.trim()))
        }
    }
}

/// A host: a thread in a network namespace of its own, which starts what runs
/// there.
struct Home {
    tap: File,
    commands: std::sync::mpsc::Sender<Command>,
    answers: std::sync::mpsc::Receiver<Result<Child, String>>,
    servers: Vec<Child>,
}

impl Home {
    fn new(host: &Host) -> Result<Home, String> {
        let (address, processor) = (host.address, host.processor);
        let (made, making) = std::sync::mpsc::channel();
        let (commands, orders) = std::sync::mpsc::channel();
        let (answer, answers) = std::sync::mpsc::channel();
        thread::spawn(move || {
            stay_on(processor);
            let isolated = unshare(CloneFlags::CLONE_NEWNET).map_err(|error| error.to_string());
            let _ = made.send(isolated.and_then(|()| interface(address)));
            for command in orders {
                let _ = answer.send(started(command));
            }
        });
        Ok(Home {
            tap: making.recv().map_err(|error| error.to_string())??,
            commands,
            answers,
            servers: Vec::new(),
        })
    }

    fn serve(&mut self, command: Command) -> Result<(), String> {
        let gone = |_| "its thread is gone".to_owned();
        self.commands.send(command).map_err(|_| gone(()))?;
        let server = self.answers.recv().map_err(|_| gone(()))??;
        self.servers.push(server);
        Ok(())
    }
}

/// What carries frames between interfaces, in threads.
struct Carrier {
    shared: Arc<Shared>,
}

struct Shared {
    network: Mutex<Network>,
    /// Something arrives earlier than was known.
    earlier: Condvar,
    begun: Instant,
}

impl Carrier {
    fn start(taps: Vec<File>, network: Network) -> io::Result<Carrier> {
        let shared = Arc::new(Shared {
            network: Mutex::new(network),
            earlier: Condvar::new(),
            begun: Instant::now(),
        });
        for (port, tap) in taps.iter().enumerate() {
            let (mut tap, shared) = (tap.try_clone()?, Arc::clone(&shared));
            thread::spawn(move || shared.take(port, &mut tap));
        }
        let giving = Arc::clone(&shared);
        thread::spawn(move || giving.give(taps));
        Ok(Carrier { shared })
    }

    fn counts(&self) -> Vec<Counts> {
        self.shared.lock().counts().collect()
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Network> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the frames that a host sends.
    fn take(&self, port: usize, tap: &mut File) {
        let mut buffer = [0; FRAME_MAX];
        while let Ok(length) = tap.read(&mut buffer) {
            let mut network = self.lock();
            let before = network.next();
            network.send(self.begun.elapsed(), port, buffer[..length].to_vec());
            if network.next() != before {
                self.earlier.notify_one();
            }
        }
    }

    /// Gives hosts the frames that arrive.
    fn give(&self, mut taps: Vec<File>) {
        // Timers are late by this much otherwise.
        let _ = nix::sys::prctl::set_timerslack(1);
        let mut network = self.lock();
        loop {
            while let Some((port, frame)) = network.receive(self.begun.elapsed()) {
                drop(network);
                // An interface that takes nothing loses it, as a real one does.
                let _ = taps[port].write(&frame);
                network = self.lock();
            }
            let next = network.next();
            let left = next.map_or(Duration::MAX, |next| {
                next.saturating_sub(self.begun.elapsed())
            });
            let waited = self
                .earlier
                .wait_timeout(network, left.min(Duration::from_secs(3600)));
            network = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

fn tell(host: &Host, counts: Counts) {
    let Counts {
        sent_bytes,
        received_bytes,
        dropped,
        lost,
    } = counts;
    eprintln!(
        "{} ({} ms, {} Mbit/s): {sent_bytes} bytes out, {received_bytes} in; {dropped} frames dropped, {lost} lost",
        host.name, host.delay_ms, host.rate_mbit
    );
}
