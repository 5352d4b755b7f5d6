//! A server of which it is known how long it takes, and the load that finds out.
//!
//! `known ROLE` is an application of `milieu bench`: `server` answers each request
//! after its service time, and stalls once; `load` sends requests in an open or a
//! closed loop.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use experiments::{Failed, number, text, whole};
use milieu_bench::Value;
use milieu_bench::load::{self, SystemClock};
use milieu_bench::run::protocol::{self, Distribution, Invalid, Measured, Measurement, Start};

fn main() -> ExitCode {
    let role = std::env::args().nth(1).unwrap_or_default();
    let ran = match &*role {
        "server" => protocol::application(server),
        "load" => protocol::application(|start, _| load(start)),
        _ => {
            eprintln!("error: name a role: server, load");
            return ExitCode::from(2);
        }
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn seconds(start: &Start, name: &str) -> Result<Duration, Failed> {
    Ok(Duration::try_from_secs_f64(number(start, name)?)?)
}

/// Answers one request after the other. A quarter of the stall's length after the
/// first request, the next one waits for the stall.
fn server(
    start: &Start,
    ready: &mut dyn FnMut(BTreeMap<String, Value>) -> io::Result<()>,
) -> Result<Measurement, Failed> {
    let (service, stall) = (seconds(start, "service")?, seconds(start, "stall")?);
    let answers = text(start, "answers")? == "true";
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port();
    ready([("port".to_owned(), Value::Integer(port.into()))].into())?;
    loop {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        if !answers {
            io::copy(&mut stream, &mut io::sink())?;
            continue;
        }
        let mut request = [0];
        let mut first = None;
        let mut has_stalled = stall.is_zero();
        while stream.read(&mut request)? > 0 {
            let begun = *first.get_or_insert_with(Instant::now);
            if !has_stalled && begun.elapsed() >= stall / 4 {
                has_stalled = true;
                thread::sleep(stall);
            } else {
                thread::sleep(service);
            }
            stream.write_all(&request)?;
        }
    }
}

fn load(start: &Start) -> Result<Measurement, Failed> {
    let (rate, duration) = (number(start, "rate")?, seconds(start, "duration")?);
    let answers = text(start, "answers")? == "true";
    let port = u16::try_from(whole(start, "server.port")?)?;
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    let request = |number: u64| {
        let [sent, ..] = number.to_le_bytes();
        let mut answer = [!sent];
        let is_sent = stream.write_all(&[sent]).is_ok();
        is_sent && (!answers || stream.read_exact(&mut answer).is_ok() && answer == [sent])
    };
    let clock = SystemClock::default();
    let measured = match &*text(start, "load")? {
        "open" => load::open(&clock, rate, duration, request),
        "closed" => load::closed(&clock, duration, request),
        other => return Err(format!("there is no load `{other}`").into()),
    };
    if measured.failed > 0 {
        return Err(Invalid(format!("{} answers were wrong", measured.failed)).into());
    }
    measured.verdict().map_err(Invalid)?;
    #[expect(clippy::cast_precision_loss, reason = "results are doubles")]
    let requests = measured.service.len() as f64;
    let of = |histogram| Distribution::new(histogram, 1e-9).map(Measured::Distribution);
    Ok(Measurement::Several(
        [
            ("requests".to_owned(), Measured::Number(requests)),
            ("rate".to_owned(), Measured::Number(measured.rate())),
            ("response".to_owned(), of(&measured.response)?),
            ("service".to_owned(), of(&measured.service)?),
        ]
        .into(),
    ))
}
