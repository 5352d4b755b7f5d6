//! Asks two servers the same in turns, and says how much more processor time a
//! reply of the first one takes.
//!
//! A pair is a load of the server with contexts and one of its control, right
//! after each other, the first of them in turns. What drifts over seconds, such as
//! the processor's speed, is the same for both; what happens to one of them is one
//! pair of many. So the ratio is the median over pairs, and its interval the one
//! between order statistics, which supposes nothing of how ratios are spread. A pair for
//! which the generator ran out of descriptors, as it does when it is kept from running, is
//! asked again.
//!
//! The generators stay on one processor. Loads are made by `httperf` (a connection for
//! each request) or `wrk` (connections stay). Processor time is the server's own, over
//! all its threads.

mod generator;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::time::Duration;

use experiments::{Failed, number, text, whole};
use milieu_bench::run::protocol::{self, Invalid, Measured, Measurement, Start};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use generator::{Generator, Load};

fn main() -> ExitCode {
    match protocol::application(|start, _| measure(start)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// A server, and how it is told to begin and to end.
struct Server {
    host: String,
    port: u16,
}

/// What a server did and used under a load.
struct Slice {
    load: Load,
    /// Processor time for each reply.
    reply_us: f64,
    switches: f64,
}

impl Server {
    fn ask(&self, what: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect((&*self.host, self.port))?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        write!(
            stream,
            "GET /{what} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.host
        )?;
        let (mut answer, mut buffer) = (Vec::new(), [0; 1024]);
        while !is_whole(&answer) {
            match stream.read(&mut buffer)? {
                0 => break,
                count => answer.extend_from_slice(&buffer[..count]),
            }
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    fn slice(&self, generator: &Generator) -> Result<Slice, Failed> {
        self.ask("begin")?;
        let load = generator.load(&self.host, self.port)?;
        let said = self.ask("end")?;
        let of = |name: &str| -> Result<f64, Failed> {
            let words = said.split_whitespace();
            let mut found = words.filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            let number = found.next().ok_or("the server does not say what it used")?;
            Ok(number.parse()?)
        };
        let replies = of("replies")?;
        if replies == 0.0 {
            return Err(Invalid("the server has answered nothing".into()).into());
        }
        Ok(Slice {
            reply_us: of("processor_ns")? / replies / 1e3,
            switches: of("switches")?,
            load,
        })
    }
}

/// Whether an answer has all of its head, and of the body that the head announces.
fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let mut lengths = head.lines().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then_some(value.trim())
    });
    let length = lengths.next().and_then(|it| it.parse().ok());
    body.len() >= length.unwrap_or(0)
}

fn measure(start: &Start) -> Result<Measurement, Failed> {
    let host = text(start, "host")?;
    let server = |name: &str| -> Result<Server, Failed> {
        let port = u16::try_from(whole(start, &format!("{name}.port"))?)?;
        let host = host.clone();
        Ok(Server { host, port })
    };
    let (contexts, control) = (server("contexts")?, server("control")?);
    let generator = Generator {
        program: text(start, "generator")?.parse()?,
        rate: number(start, "rate")?,
        seconds: number(start, "seconds")?,
        connections: whole(start, "connections")?,
        path: text(start, "path")?,
    };
    stay_apart()?;
    // Nobody has asked them anything yet.
    contexts.slice(&generator)?;
    control.slice(&generator)?;
    let pairs = usize::try_from(whole(start, "pairs")?)?;
    let (mut ours, mut theirs, mut repeated) = (Vec::new(), Vec::new(), 0);
    while ours.len() < pairs {
        let (one, other);
        if ours.len() % 2 == 0 {
            one = contexts.slice(&generator)?;
            other = control.slice(&generator)?;
        } else {
            other = control.slice(&generator)?;
            one = contexts.slice(&generator)?;
        }
        // Where one server keeps many waiting for long, all pairs are like this, and count.
        if one.load.unmade + other.load.unmade > 0.0 && repeated < pairs {
            repeated += 1;
            continue;
        }
        ours.push(one);
        theirs.push(other);
    }
    let both = ours.iter().zip(&theirs);
    let ratios = sorted(both.map(|(one, other)| one.reply_us / other.reply_us));
    let (low, high) = interval(&ratios).ok_or("no pairs")?;
    let numbers = [
        ("ratio", median(&ratios)),
        ("ratio_low", low),
        ("ratio_high", high),
        ("reply_us", median_of(&ours, |it| it.reply_us)),
        ("control_reply_us", median_of(&theirs, |it| it.reply_us)),
        ("requests", median_of(&ours, |it| it.load.requests())),
        ("replies", median_of(&ours, |it| it.load.replies())),
        (
            "control_replies",
            median_of(&theirs, |it| it.load.replies()),
        ),
        (
            "switches",
            median_of(&ours, |it| it.switches / it.load.seconds),
        ),
        ("worst_ms", worst(&ours)),
        ("control_worst_ms", worst(&theirs)),
        (
            "errors",
            ours.iter()
                .chain(&theirs)
                .map(|it| it.load.errors + it.load.unmade)
                .sum(),
        ),
        ("repeated", f64::from(u32::try_from(repeated)?)),
    ];
    let named = numbers.map(|(name, number)| (name.to_owned(), Measured::Number(number)));
    Ok(Measurement::Several(BTreeMap::from(named)))
}

/// Keeps this and the generators on the last of the processors, so that servers find
/// another one free; whether they share one makes replies cheaper or dearer by a half.
fn stay_apart() -> Result<(), Failed> {
    let ours = sched_getaffinity(Pid::from_raw(0))?;
    let is_ours = |processor: &usize| ours.is_set(*processor).unwrap_or(false);
    if let Some(last) = (0..CpuSet::count()).rev().find(is_ours) {
        let mut set = CpuSet::new();
        set.set(last)?;
        sched_setaffinity(Pid::from_raw(0), &set)?;
    }
    Ok(())
}

fn worst(slices: &[Slice]) -> f64 {
    slices.iter().map(|it| it.load.worst_ms).fold(0.0, f64::max)
}

fn sorted(numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers
}

fn median_of(slices: &[Slice], of: impl Fn(&Slice) -> f64) -> f64 {
    median(&sorted(slices.iter().map(of)))
}

fn median(sorted: &[f64]) -> f64 {
    match (
        sorted.get((sorted.len().max(1) - 1) / 2),
        sorted.get(sorted.len() / 2),
    ) {
        (Some(low), Some(high)) => low.midpoint(*high),
        _ => f64::NAN,
    }
}

/// Between which of them the true median is with 95 % at least: as many lie below it as
/// a coin shows heads. The whole range, where there are too few to say.
fn interval(sorted: &[f64]) -> Option<(f64, f64)> {
    let count = sorted.len();
    // P(heads <= k) of `count` coins, for as long as it stays below 2.5 %.
    let (mut term, mut sum, mut cut) = (0.5f64.powi(i32::try_from(count).ok()?), 0.0, 0);
    for heads in 0..count {
        sum += term;
        if sum > 0.025 {
            break;
        }
        cut = heads + 1;
        #[expect(clippy::cast_precision_loss, reason = "few pairs")]
        let next = (count - heads) as f64 / (heads + 1) as f64;
        term *= next;
    }
    let cut = cut.max(1);
    Some((*sorted.get(cut - 1)?, *sorted.get(count.checked_sub(cut)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_with_its_body() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody";
        assert!(is_whole(answer));
        assert!((0..answer.len()).all(|end| !is_whole(&answer[..end])));
        assert!(is_whole(b"HTTP/1.1 204 No Content\r\n\r\n"));
    }

    #[test]
    fn the_interval_of_the_median_is_that_of_tables() {
        let of = |count: u32| interval(&sorted((1..=count).map(f64::from)));
        assert_eq!(of(0), None);
        assert_eq!(of(1), Some((1.0, 1.0)));
        assert_eq!(of(5), Some((1.0, 5.0)));
        assert_eq!(of(10), Some((2.0, 9.0)));
        assert_eq!(of(20), Some((6.0, 15.0)));
        assert_eq!(of(50), Some((18.0, 33.0)));
        assert!((median(&[1.0, 2.0, 4.0, 9.0]) - 3.0).abs() < 1e-12);
    }
}
