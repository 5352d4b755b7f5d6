//! Runs a command among emulated hosts: each is a network namespace of this
//! machine, with a link of its own delay and rate.
//!
//! ```text
//! emulated-hosts hosts.toml --milieu milieu --applications applications.toml \
//!     --key bench.key -- milieu bench run description.xml --key bench.key
//! ```
//!
//! In each host a test server runs; the command runs in one more namespace, from
//! which all hosts are reached by their names. Delays are made in this program,
//! which carries each frame ([`network`]), so that it needs nothing of the kernel
//! but namespaces and TAP devices.
//!
//! Nothing has to be cleared away: everything lives in namespaces without names,
//! below a first process that ends when this one does, whatever ends it, and
//! processes and interfaces end with it.
//!
//! Exit codes: that of the command; 2 where hosts cannot be emulated.

mod network;
mod run;
mod tap;

use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::str::FromStr;
use std::time::Duration;

use clap::Parser;
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, unshare};
use nix::unistd::{Pid, getgid, getuid};
use serde::Deserialize;

use network::{Link, Loss};

/// Runs a command among emulated hosts.
#[derive(Parser)]
struct Arguments {
    /// The hosts, in TOML: for each a `[[host]]` with name, address, delay-ms and
    /// rate-mbit; `processor` is the one on which a host has to run, and before all
    /// hosts that of everything else
    hosts: PathBuf,
    /// The program `milieu`, of which a test server runs in each host
    #[arg(long, value_name = "PROGRAM", requires_all = ["applications", "key"])]
    milieu: Option<PathBuf>,
    /// What the test servers may run
    #[arg(long, value_name = "FILE")]
    applications: Option<PathBuf>,
    /// The key that they know
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The link of this host is down for so long, once it has carried so much
    #[arg(long = "lose", value_name = "HOST,BYTES,SECONDS")]
    losses: Vec<OfHost>,
    /// Make no namespaces: hosts are addresses of this machine, which begin with
    /// 127 instead, and have no names, delays or rates
    #[arg(long)]
    loopback: bool,
    /// Say whether hosts can be emulated here, and run nothing
    #[arg(long, conflicts_with = "loopback")]
    check: bool,
    /// We are in our own namespaces.
    #[arg(long, hide = true)]
    inside: bool,
    /// What runs among them
    #[arg(last = true, required_unless_present = "check")]
    command: Vec<String>,
}

/// A host as the file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Host {
    name: String,
    address: Ipv4Addr,
    delay_ms: f64,
    rate_mbit: f64,
    /// Where it runs; anywhere, if nobody says.
    #[serde(default)]
    processor: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hosts {
    host: Vec<Host>,
    /// Where all else runs.
    #[serde(default)]
    processor: Option<usize>,
}

/// A loss of the link of a host.
#[derive(Clone, Debug)]
struct OfHost {
    host: String,
    loss: Loss,
}

impl FromStr for OfHost {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<OfHost, &'static str> {
        const HOW: &str = "write HOST,BYTES,SECONDS";
        let mut words = text.split(',');
        let mut next = || words.next().ok_or(HOW);
        let host = next()?.to_owned();
        let after_bytes = next()?.parse().map_err(|_| HOW)?;
        let seconds: f64 = next()?.parse().map_err(|_| HOW)?;
        let lasts = Duration::try_from_secs_f64(seconds).map_err(|_| HOW)?;
        let loss = Loss { after_bytes, lasts };
        Ok(OfHost { host, loss })
    }
}

impl Host {
    fn link(&self, losses: &[OfHost]) -> Link {
        let of_this = losses.iter().filter(|loss| loss.host == self.name);
        Link {
            delay: Duration::from_secs_f64(self.delay_ms / 1e3),
            bits_per_second: self.rate_mbit * 1e6,
            losses: of_this.map(|of| of.loss).collect::<VecDeque<_>>(),
        }
    }
}

fn read(path: &Path, losses: &[OfHost]) -> Result<Hosts, String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
    let hosts: Hosts = toml::from_str(&text).map_err(|error| format!("{shown}: {error}"))?;
    let host = &hosts.host;
    let is_fine = |it: &Host| {
        it.rate_mbit > 0.0 && it.rate_mbit.is_finite() && (0.0..1e6).contains(&it.delay_ms)
    };
    if let Some(wrong) = host.iter().find(|host| !is_fine(host)) {
        let name = &wrong.name;
        return Err(format!(
            "{shown}: a rate is above 0, and a delay not below: {name}"
        ));
    }
    let is_known = |loss: &&OfHost| host.iter().any(|it| it.name == loss.host);
    match losses.iter().find(|loss| !is_known(loss)) {
        Some(loss) => Err(format!(
            "{shown} has no host {} that could be lost",
            loss.host
        )),
        None => Ok(hosts),
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(code) => ExitCode::from(code),
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<u8, String> {
    let Hosts { host, processor } = read(&arguments.hosts, &arguments.losses)?;
    stay_on(processor);
    let hosts = &host[..];
    if arguments.inside {
        return run::inside(arguments, hosts);
    }
    if arguments.loopback {
        return run::on_loopback(arguments, hosts);
    }
    let said = |error: io::Error| {
        format!("{error}; run it as root, or where users may have namespaces of their own")
    };
    isolate().map_err(said)?;
    if arguments.check {
        tap::open().map_err(|error| format!("no network interface can be made: {error}"))?;
        return Ok(0);
    }
    // Its other end is closed when this process ends, whatever ends it.
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut inside = Command::new(program)
        .arg("--inside")
        .args(std::env::args_os().skip(1))
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let stays = inside.stdin.take();
    let status = inside.wait().map_err(|error| error.to_string())?;
    drop(stays);
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(2))
}

/// Namespaces of our own for networks, mounts and, from the next process on,
/// processes. Who is not root becomes it in a namespace of users.
fn isolate() -> io::Result<()> {
    let mut flags = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID;
    let (user, group) = (getuid(), getgid());
    if !user.is_root() {
        flags |= CloneFlags::CLONE_NEWUSER;
    }
    unshare(flags)?;
    if !user.is_root() {
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
        std::fs::write("/proc/self/gid_map", format!("0 {group} 1"))?;
    }
    Ok(())
}

/// Keeps this thread, and whatever it starts, on a processor. Where there are fewer, it
/// says so.
fn stay_on(processor: Option<usize>) {
    let Some(processor) = processor else {
        return;
    };
    let mut set = CpuSet::new();
    let stays = set
        .set(processor)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
    if let Err(error) = stays {
        eprintln!("nothing can be kept on processor {processor}: {error}");
    }
}

/// Ends this process, and all in its namespaces, when the one that started it is
/// gone.
fn end_with_who_started() {
    std::thread::spawn(|| {
        let _ = io::stdin().read(&mut [0]);
        std::process::exit(2);
    });
}
