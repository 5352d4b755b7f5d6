//! Test servers.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use milieu_bench::run::Local;
use milieu_bench::server::{Jobs, Key, Server};

use super::{Failure, Outcome, doctor, minder, print, read};
use milieu_bench::catalogue::Catalogue;

/// Run applications for coordinators on other hosts
///
/// A server runs only what its catalogue has, for those who know its key. What it
/// runs ends when the coordinator goes, or is lost.
#[derive(Args)]
pub(crate) struct Serve {
    /// The catalogue: what may be run here
    #[arg(long, value_name = "FILE")]
    applications: PathBuf,
    /// Where to listen; this machine alone can reach it otherwise
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8108")]
    listen: String,
    #[command(flatten)]
    key: KeyFile,
    /// Let coordinators profile what runs here, by perf or callgrind
    #[arg(long)]
    allow_profiles: bool,
    /// Where jobs are kept that clients hand over; for its owner alone
    /// [default: milieu/bench in the folder of states]
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
}

/// What servers and coordinators know.
#[derive(Args)]
pub(super) struct KeyFile {
    /// The key that servers and coordinators share; it is made if it is not there
    /// [default: milieu/bench.key in the folder of configurations]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

impl KeyFile {
    pub(super) fn key(&self) -> Outcome<Key> {
        let path = match &self.key {
            Some(path) => path.clone(),
            None => usual("XDG_CONFIG_HOME", ".config", "milieu/bench.key").ok_or_else(|| {
                Failure::new("there is no folder for a key", "give --key, or set HOME")
            })?,
        };
        Key::read_or_make(&path).map_err(|error| {
            let message = format!("the key {} cannot be used: {error}", path.display());
            Failure::new(
                message,
                "copy the key of the other hosts there, for you alone",
            )
        })
    }
}

/// A path in the folder that a variable names, or in this folder of the home.
fn usual(variable: &str, folder: &str, path: &str) -> Option<PathBuf> {
    let of = |name| {
        std::env::var_os(name)
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
    };
    let folder = of(variable).or_else(|| Some(of("HOME")?.join(folder)))?;
    Some(folder.join(path))
}

impl Serve {
    fn jobs(&self) -> Result<Jobs, String> {
        let folder = match &self.state {
            Some(folder) => folder.clone(),
            None => usual("XDG_STATE_HOME", ".local/state", "milieu/bench")
                .ok_or("there is no folder for jobs; give --state, or set HOME")?,
        };
        Jobs::open(&folder).map_err(|error| format!("jobs cannot be kept: {error}"))
    }

    pub(super) fn run(&self) -> Outcome {
        let source = read(&self.applications, "catalogue")?;
        let catalogue = Catalogue::parse(&source).map_err(|found| Failure::Wrong(source, found))?;
        let wrong = |error: std::io::Error| {
            let message = format!("cannot listen at {}: {error}", self.listen);
            Failure::new(message, "name an address of this machine and a free port")
        };
        let addresses: Vec<SocketAddr> = self.listen.to_socket_addrs().map_err(wrong)?.collect();
        let listener = TcpListener::bind(&addresses[..]).map_err(wrong)?;
        let address = listener.local_addr().map_err(wrong)?;
        let local = Local::new(catalogue, minder()?);
        eprint!("{}", doctor::shown(local.measures()));
        let mut server = Server::new(local, self.key.key()?).allow_profiles(self.allow_profiles);
        match self.jobs() {
            Ok(jobs) => server = server.coordinate(jobs),
            // Whoever named a folder wants it to be used.
            Err(why) if self.state.is_some() => {
                return Err(Failure::new(why, "name a folder that is yours alone"));
            }
            Err(why) => eprintln!("it does not coordinate: {why}"),
        }
        // Whoever starts it waits for this line.
        print(&format!("listening on {address}\n"))?;
        let served = server.serve(&listener, |line| eprintln!("{line}"));
        served.map_err(wrong)?;
        Ok(ExitCode::SUCCESS)
    }
}
