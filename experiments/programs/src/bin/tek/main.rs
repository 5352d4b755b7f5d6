//! What the Thread Evolution Kit's paper measures. Of the processor's time: in a program
//! of many threads, each experiment once as the kernel has it and once mediated, in
//! turns. Of stacks: in a program that knows nothing of this, by `milieu thread run`.
//!
//! `measure` says which; `rung` by which means the threads are mediated. Where that
//! does not work, `works` is 0 and nobody was moved.

mod contention;
mod crowd;
mod device;
mod guard;
mod inversion;
mod rights;
mod stacks;
mod switches;
mod table;
mod timeline;
mod waits;
mod work;

use std::collections::BTreeMap;
use std::process::ExitCode;

use experiments::{Failed, text};
use milieu::threads::{Mediator, Options, Rung};
use milieu_bench::run::protocol::{self, Measured, Measurement, Start};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ended = match arguments.split_first() {
        Some((what, _)) if what == work::EVENTS => {
            work::send_events();
            Ok(())
        }
        Some((what, rest)) if what == device::TOILS => device::toil(rest),
        Some((what, rest)) if what == device::ANSWERS => device::answer(rest),
        Some((what, rest)) if what == device::WAITS => device::wait(rest),
        Some((what, rest)) if what == device::BUSY => device::be_busy(rest),
        Some((what, rest)) if what == inversion::INVERTS => inversion::invert(rest),
        _ => protocol::application(|start, _| measure(start)).map_err(Failed::from),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn measure(start: &Start) -> Result<Measurement, Failed> {
    if start.parameters.contains_key("rights") && text(start, "rights")? == "none" {
        rights::give_up()?;
    }
    let measured = match text(start, "measure")?.as_str() {
        "contention" => contention::measure(start)?,
        "device" => device::measure(start)?,
        "waits under the device's mediator" => device::waits(start)?,
        "switches" => switches::measure(start)?,
        "inversion" => inversion::measure(start)?,
        "guard" => guard::measure(start)?,
        "table" => table::measure(start)?,
        "calls of a program" => table::calls(start)?,
        "waits" => waits::measure(start)?,
        "timeline" => timeline::measure(start)?,
        "use of stacks" => stacks::use_of_each(start)?,
        "space of stacks" => stacks::space(start)?,
        "creations" => stacks::creations(start)?,
        "failures" => stacks::failures(start)?,
        "light then heavy" => stacks::light_then_heavy(start)?,
        other => return Err(format!("`{other}` is not measured here").into()),
    };
    let measured = measured.into_iter().map(|(name, number)| {
        // Numbers of the paper are of milliseconds and nanoseconds: six digits suffice.
        let rounded = (number * 1e6).round() / 1e6;
        (name.to_owned(), Measured::Number(rounded))
    });
    Ok(Measurement::Several(BTreeMap::from_iter(measured)))
}

/// What an experiment has measured, by the names of its metrics.
type Numbers = Vec<(&'static str, f64)>;

/// The rung that a step is about, if it works here.
fn rung(start: &Start) -> Result<Option<Rung>, Failed> {
    let name = text(start, "rung")?;
    let rung = Rung::ALL.into_iter().find(|it| it.name() == name);
    let rung = rung.ok_or_else(|| format!("`{name}` is no rung"))?;
    Ok(Mediator::options().rung(rung).start().ok().map(|_| rung))
}

/// By this means, or with nobody moved.
fn options(rung: Option<Rung>) -> Options {
    match rung {
        Some(rung) => Mediator::options().rung(rung),
        None => Mediator::options().unmediated(),
    }
}

/// A number of this, as metrics have it.
#[expect(clippy::cast_precision_loss, reason = "not that many")]
fn number(count: u64) -> f64 {
    count as f64
}

fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / number(of.len() as u64)
}

/// The value below which this share of them is.
fn percentile(of: &[f64], share: f64) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in the list"
    )]
    let at = (number(sorted.len() as u64) * share).ceil() as usize;
    let at = at.clamp(1, sorted.len().max(1)) - 1;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}
