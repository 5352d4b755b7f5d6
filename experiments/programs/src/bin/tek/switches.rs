//! Two threads on one processor that hand it to each other (Figure 8).

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;

use experiments::{Failed, whole};
use milieu::threads::{Mediator, Priority, Rung};
use milieu_bench::run::protocol::Start;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use super::{Numbers, number, options, percentile, rung, work};

pub fn measure(start: &Start) -> Result<Numbers, Failed> {
    let (rounds, rung) = (whole(start, "rounds")?, rung(start)?);
    let (mut native, mut mediated, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..whole(start, "pairs")? {
        let mut both = [0.0; 2];
        for is_mediated in [pair % 2 == 1, pair % 2 == 0] {
            let means = if is_mediated { rung } else { None };
            both[usize::from(is_mediated)] = switch_ns(rounds, means)?;
        }
        native.push(both[0]);
        mediated.push(both[1]);
        ratios.push(both[1] / both[0]);
    }
    Ok(vec![
        ("works", f64::from(u8::from(rung.is_some()))),
        ("native_ns", percentile(&native, 0.5)),
        ("mediated_ns", percentile(&mediated, 0.5)),
        ("ratio", percentile(&ratios, 0.5)),
    ])
}

fn switch_ns(rounds: u64, rung: Option<Rung>) -> Result<f64, Failed> {
    let mediator = options(rung).start()?;
    let (one, other) = UnixStream::pair()?;
    let elapsed = thread::scope(|scope| -> Result<f64, Failed> {
        let begin = |stream, is_first| -> Result<_, Failed> {
            let thread = mediator.thread("switch")?.critical(Priority::default());
            let body = move || hand_on(rounds, stream, is_first);
            Ok(thread.spawn_scoped(scope, body)?)
        };
        let a = begin(one, true)?;
        let b = begin(other, false)?;
        let ended = |_| "a thread has panicked";
        b.join().map_err(ended)??;
        Ok(a.join().map_err(ended)??)
    })?;
    drop::<Mediator>(mediator);
    Ok(elapsed / number(2 * rounds) * 1e9)
}

/// Hands the processor on so often; how long that took, in seconds.
fn hand_on(rounds: u64, mut other: UnixStream, is_first: bool) -> std::io::Result<f64> {
    let itself = Pid::from_raw(0);
    let allowed = sched_getaffinity(itself)?;
    let mut one = CpuSet::new();
    let first = (0..CpuSet::count()).find(|it| allowed.is_set(*it).unwrap_or(false));
    one.set(first.unwrap_or(0))?;
    sched_setaffinity(itself, &one)?;
    let mut token = [0];
    // Once to find the other one there.
    let mut begun = 0.0;
    for round in 0..=rounds {
        if round == 1 {
            begun = work::now();
        }
        if is_first {
            other.write_all(&token)?;
        }
        other.read_exact(&mut token)?;
        if !is_first {
            other.write_all(&token)?;
        }
    }
    Ok(work::now() - begun)
}
