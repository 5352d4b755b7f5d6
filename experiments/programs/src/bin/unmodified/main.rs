//! Programs that know nothing of Milieu, under `milieu thread run`: how deep their stacks
//! are, how much address space is saved, and whether they are as fast as before.
//!
//! ```text
//! learn     three runs under load, each to its end: a profile
//! compare   native, native again, learning, tuned: alive at once, the same work in turns
//! ```
//!
//! `program` says which. What all of them need of the machine they need at the same time,
//! so that a ratio is of work that was done under the same conditions; how much that of the
//! two which are the same differs from 1 is what the machine does by itself. All four begin
//! anew in each round, since where a process has its memory may make it slower for all its
//! life; hence it is rounds whose ratios are compared, until it is known well enough what
//! these are, or `seconds` are over.

mod batch;
mod server;
mod side;
mod stacks;
mod worker;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use experiments::{Failed, text, whole};
use milieu_bench::run::protocol::{self, Measured, Measurement, Start};

use side::{Side, Way};
use stacks::Stacks;

/// A program with a load.
trait Program {
    /// Starts it, ready for work.
    fn start(&self, side: &Side) -> Result<Box<dyn Running>, Failed>;
}

/// A program that runs.
trait Running {
    /// A portion of work; the seconds that it took.
    fn work(&mut self) -> Result<f64, Failed>;

    /// The processor time that it has had so far, in seconds.
    fn processor(&mut self) -> Result<f64, Failed>;

    /// Lets it do something, and calls while it does.
    fn during(&mut self, look: &mut dyn FnMut(u32) -> Result<(), Failed>) -> Result<(), Failed>;

    /// Lets it end by itself, or tells it to, as its users do.
    fn end(self: Box<Self>) -> Result<(), Failed>;
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(worker::SHORT_THREADS) {
        worker::create_and_join();
        return ExitCode::SUCCESS;
    }
    match protocol::application(|start, _| measure(start)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// In how many runs threads are seen before sizes are applied, as by default.
const RUNS: u32 = 3;

fn measure(start: &Start) -> Result<Measurement, Failed> {
    let scratch = tempfile::tempdir()?;
    let size = whole(start, "size")? / whole(start, "part")?.max(1);
    let program = program(&text(start, "program")?, scratch.path(), size)?;
    let profile = scratch.path().join("stacks");
    let side = |way, number| Side::new(scratch.path(), &profile, way, number);

    for number in 0..RUNS {
        let side = side(Way::Learning, number)?;
        let mut running = program.start(&side)?;
        running.work()?;
        running.end()?;
        side.check()?;
    }
    let learned = stacks::learned(&profile)?;

    let seconds = Duration::from_secs(whole(start, "seconds")?);
    let begun = Instant::now();
    let warm = Duration::from_secs(whole(start, "warm")?);
    let mut rounds = Rounds::default();
    let mut seen = [(Stacks::default(), 0); Way::ALL.len()];
    for number in RUNS.. {
        let sides = Way::ALL.map(|way| side(way, number));
        let sides = sides.into_iter().collect::<Result<Vec<Side>, Failed>>()?;
        let mut running = Vec::new();
        for side in &sides {
            running.push(program.start(side)?);
        }
        if number == RUNS {
            for ((side, one), seen) in sides.iter().zip(&mut running).zip(&mut seen) {
                one.during(&mut |process| {
                    *seen = (stacks::of(process)?, stacks::address_space(process)?);
                    Ok(())
                })
                .map_err(|error| format!("{}: {error}", side.way.name()))?;
            }
        }
        let left = seconds.saturating_sub(begun.elapsed());
        rounds.push(&Turns::of(&mut running, warm, left)?);
        for (side, one) in sides.iter().zip(running) {
            one.end()?;
            side.check()?;
        }
        if rounds.are_enough() || begun.elapsed() >= seconds {
            break;
        }
    }

    let kib = |bytes: u64| number(bytes / 1024);
    // What learns has the stacks that it asks for, and a table that says how large they are.
    let [(_, space), _, (before, _), (after, space_tuned)] = seen;
    let measured = vec![
        ("threads", number(before.threads)),
        ("peak_kib", kib(learned.peak_bytes)),
        ("kinds", number(learned.kinds)),
        ("kinds_set", number(learned.kinds_set)),
        ("stacks_kib", kib(before.bytes)),
        ("stacks_kib_tuned", kib(after.bytes)),
        ("space_kib", kib(space)),
        ("space_kib_tuned", kib(space_tuned)),
        ("portion_ms_native", rounds.portion() * 1e3),
        ("rounds", number(rounds.count() as u64)),
        ("turns", number(rounds.turns as u64)),
    ];
    let mut measured: Vec<(String, f64)> = measured
        .into_iter()
        .map(|(name, number)| (name.to_owned(), number))
        .collect();
    for way in [Way::Control, Way::Learning, Way::Tuned] {
        for (what, Interval { low, middle, high }) in [
            ("throughput", rounds.throughput(way)),
            ("processor", rounds.processor(way)),
        ] {
            let name = format!("{what}_{}", way.name());
            measured.push((format!("{name}_low"), low));
            measured.push((format!("{name}_high"), high));
            measured.push((name, middle));
        }
    }
    let measured = measured.into_iter().map(|(name, number)| {
        let rounded = (number * 1e6).round() / 1e6;
        (name, Measured::Number(rounded))
    });
    Ok(Measurement::Several(measured.collect()))
}

/// By its name; the size is how much is done in a portion of work.
fn program(name: &str, scratch: &std::path::Path, size: u64) -> Result<Box<dyn Program>, Failed> {
    Ok(match name {
        "memcached" => Box::new(server::Memcached { size }),
        "redis" => Box::new(server::Redis { size }),
        "mariadb" => Box::new(server::MariaDb::new(scratch, size)?),
        "ffmpeg" => Box::new(batch::ffmpeg(size)),
        "pigz" => Box::new(batch::pigz(scratch, size)?),
        "java" => Box::new(worker::java(scratch, size)?),
        "node" => Box::new(worker::node(scratch, size)?),
        "python" => Box::new(worker::python(scratch, size)?),
        "short threads" => Box::new(worker::short_threads(size)?),
        other => return Err(format!("`{other}` is no program that is known here").into()),
    })
}

/// What work took, of each way in each turn of a round.
#[derive(Default)]
struct Turns {
    seconds: [Vec<f64>; Way::ALL.len()],
    processor: [Vec<f64>; Way::ALL.len()],
}

impl Turns {
    /// So long the same four processes are compared.
    const ROUND: Duration = Duration::from_secs(12);

    /// The same work by each, as often, so long at most. Without any time there is one turn.
    /// What is done in the first seconds is not what is compared.
    fn of(
        running: &mut [Box<dyn Running>],
        warm: Duration,
        at_most: Duration,
    ) -> Result<Turns, Failed> {
        let warm = warm.min(at_most);
        let begun = Instant::now();
        loop {
            for one in running.iter_mut() {
                one.work()?;
            }
            if begun.elapsed() >= warm {
                break;
            }
        }
        let mut turns = Turns::default();
        loop {
            turns.take(running)?;
            if begun.elapsed() >= (warm + Self::ROUND).min(at_most) {
                return Ok(turns);
            }
        }
    }

    /// A turn: there and back again, so that nobody has it by a machine that becomes slower
    /// or faster meanwhile. Who begins changes.
    fn take(&mut self, running: &mut [Box<dyn Running>]) -> Result<(), Failed> {
        let mut order = [0, 1, 2, 3];
        order.rotate_left(self.count() % Way::ALL.len());
        let mut taken = [(0.0, 0.0); Way::ALL.len()];
        for index in order.into_iter().chain(order.into_iter().rev()) {
            let one = &mut running[index];
            let before = one.processor()?;
            taken[index].0 += one.work()?;
            taken[index].1 += one.processor()? - before;
        }
        for (index, (seconds, processor)) in taken.into_iter().enumerate() {
            self.seconds[index].push(seconds);
            self.processor[index].push(processor);
        }
        Ok(())
    }

    fn count(&self) -> usize {
        self.seconds[0].len()
    }
}

/// What was seen in each round.
#[derive(Default)]
struct Rounds {
    turns: usize,
    portion: Vec<f64>,
    throughput: [Vec<f64>; Way::ALL.len()],
    processor: [Vec<f64>; Way::ALL.len()],
}

impl Rounds {
    /// Intervals that reach no further from their middle are narrow enough.
    const ASIDE: f64 = 0.01;
    /// With fewer an interval says little of what is different from process to process.
    const FEWEST: usize = 8;

    fn push(&mut self, Turns { seconds, processor }: &Turns) {
        self.turns += seconds[0].len();
        self.portion.push(middle(&seconds[0]) / 2.0);
        for way in Way::ALL {
            let index = way as usize;
            let throughput = ratio(&native(seconds, way), &seconds[index]);
            self.throughput[index].push(throughput.middle);
            let processor_time = ratio(&processor[index], &native(processor, way));
            self.processor[index].push(processor_time.middle);
        }
    }

    fn count(&self) -> usize {
        self.portion.len()
    }

    fn are_enough(&self) -> bool {
        let ways = [Way::Control, Way::Learning, Way::Tuned];
        let mut intervals = ways.map(|way| self.throughput(way)).into_iter();
        self.count() >= Self::FEWEST
            && intervals
                .all(|it| it.middle - it.low <= Self::ASIDE && it.high - it.middle <= Self::ASIDE)
    }

    /// How long a portion of native work takes, in seconds.
    fn portion(&self) -> f64 {
        middle(&self.portion)
    }

    /// How much faster it is than native.
    fn throughput(&self, way: Way) -> Interval {
        Interval::of(&self.throughput[way as usize])
    }

    /// How much more processor time it needs than native has.
    fn processor(&self, way: Way) -> Interval {
        Interval::of(&self.processor[way as usize])
    }
}

/// What native ones took in each turn: both of them, unless one is compared with the other.
fn native([native, control, ..]: &[Vec<f64>; Way::ALL.len()], other: Way) -> Vec<f64> {
    let both = native.iter().zip(control);
    match other {
        Way::Native | Way::Control => native.clone(),
        Way::Learning | Way::Tuned => both
            .map(|(one, other)| f64::midpoint(*one, *other))
            .collect(),
    }
}

/// The first in relation to the second, of pairs of the same turn.
fn ratio(one: &[f64], other: &[f64]) -> Interval {
    let pairs = one.iter().zip(other);
    let ratios: Vec<f64> = pairs.map(|(one, other)| one / other).collect();
    Interval::of(&ratios)
}

/// The middle of what was measured, and between what it is with 95 %.
struct Interval {
    low: f64,
    middle: f64,
    high: f64,
}

impl Interval {
    /// Hodges' and Lehmann's estimate for ratios, the median of the means of any two of them,
    /// with Wilcoxon's interval: single ones that are far away do not matter, and half as
    /// many again would be needed to know the median as well.
    fn of(ratios: &[f64]) -> Interval {
        let logarithms: Vec<f64> = ratios.iter().map(|it| it.ln()).collect();
        let tails = (0..logarithms.len()).map(|place| &logarithms[place..]);
        let mut means: Vec<f64> = tails
            .flat_map(|tail| tail.iter().map(|other| f64::midpoint(tail[0], *other)))
            .collect();
        means.sort_by(f64::total_cmp);
        // How many of the means are below the true value, and the deviation of that.
        let count = number(ratios.len() as u64);
        let expected = count * (count + 1.0) / 4.0;
        let deviation = (expected * (2.0 * count + 1.0) / 6.0).sqrt();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "less than there are, and none where it is below 0"
        )]
        let rank = (expected - 1.96 * deviation) as usize;
        let aside = rank.saturating_sub(1);
        let at = |place: usize| means.get(place).map_or(f64::NAN, |it| it.exp());
        Interval {
            low: at(aside),
            middle: middle(&means).exp(),
            high: at(means.len().saturating_sub(aside + 1)),
        }
    }
}

/// The median.
fn middle(of: &[f64]) -> f64 {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match (sorted.get(half), sorted.get(half.wrapping_sub(1))) {
        (Some(upper), Some(lower)) if sorted.len() % 2 == 0 => f64::midpoint(*lower, *upper),
        (Some(one), _) => *one,
        _ => f64::NAN,
    }
}

/// A number of this, as metrics have it.
#[expect(clippy::cast_precision_loss, reason = "not that many")]
fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_wilcoxon_s() {
        let ratios: Vec<f64> = (1..=10).map(|it| f64::from(it).exp()).collect();
        let Interval { low, middle, high } = Interval::of(&ratios);
        // Means of two are 1, 1.5, twice 2, twice 2.5, and three times 3; tables have 3 as well.
        for (found, expected) in [(low, 3.0), (middle, 5.5), (high, 8.0)] {
            assert!((found.ln() - expected).abs() < 1e-12, "{}", found.ln());
        }
        let one = Interval::of(&[1.5]);
        assert!(
            [one.low, one.middle, one.high]
                .iter()
                .all(|it| (it - 1.5).abs() < 1e-12)
        );
    }

    #[test]
    fn one_that_is_far_away_does_not_matter() {
        let mut ratios: Vec<f64> = (0..40)
            .map(|it| 1.0 + f64::from(it % 5 - 2) / 100.0)
            .collect();
        let before = Interval::of(&ratios).middle;
        ratios[0] = 50.0;
        assert!((Interval::of(&ratios).middle - before).abs() < 0.002);
    }
}
