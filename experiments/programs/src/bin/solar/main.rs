//! The applications of the Solar paper's tests (its sections 4.2 and 5.1).
//!
//! `solar ROLE` is an application of `milieu bench`, in one of these roles:
//!
//! | role | |
//! |---|---|
//! | `star` | knows which planet publishes what |
//! | `planet` | has a source of random messages, which fires as fast as it can |
//! | `throughput` | subscribes to it, and measures messages a second |
//! | `bouncer`, `round-trips` | send messages there and back over a socket |
//! | `sender`, `receivers` | send messages to many receivers over sockets |
//!
//! Whoever receives counts and looks at each message: a wrong one makes the
//! result invalid.

mod forms;
mod planet;
mod sockets;
mod star;
mod throughput;

use std::collections::BTreeMap;
use std::io;
use std::process::ExitCode;

use milieu_bench::Value;
use milieu_bench::run::protocol::{self, Measured, Measurement, Start};

use experiments::Failed;

/// Tells that an application is ready.
type Ready<'a> = &'a mut dyn FnMut(BTreeMap<String, Value>) -> io::Result<()>;

/// What an application does.
type Role = fn(&Start, Ready<'_>) -> Result<Measurement, Failed>;

const ROLES: &[(&str, Role)] = &[
    ("star", star::run),
    ("planet", planet::run),
    ("throughput", throughput::run),
    ("bouncer", sockets::bounce),
    ("round-trips", sockets::round_trips),
    ("sender", sockets::send),
    ("receivers", sockets::receive),
];

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some((_, role)) = ROLES.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = ROLES.iter().map(|(known, _)| *known).collect();
        eprintln!("error: name a role: {}", known.join(", "));
        return ExitCode::from(2);
    };
    match protocol::application(|start, ready| role(start, ready)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// What a service tells when it listens.
fn at(port: u16) -> BTreeMap<String, Value> {
    BTreeMap::from([("port".to_owned(), Value::Integer(port.into()))])
}

/// Several numbers by name.
fn numbers<const N: usize>(numbers: [(&str, f64); N]) -> Measurement {
    let measured = numbers.map(|(name, number)| (name.to_owned(), Measured::Number(number)));
    Measurement::Several(measured.into())
}
