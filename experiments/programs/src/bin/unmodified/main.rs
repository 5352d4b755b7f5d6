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
use milieu_bench::statistics::Ratio;

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
    let of = |name| Ok::<_, Failed>(Duration::from_secs(whole(start, name)?).min(seconds));
    let (warm, length) = (of("warm")?, of("round")?);
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
        let round = Round::of(&mut running, warm, length)?;
        rounds.0.push(round);
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
        ("rounds", number(rounds.0.len() as u64)),
        ("turns", f64::from(rounds.turns())),
    ];
    let mut measured: Vec<(String, f64)> = measured
        .into_iter()
        .map(|(name, number)| (name.to_owned(), number))
        .collect();
    for way in [Way::Control, Way::Learning, Way::Tuned] {
        for (what, Between { low, ratio, high }) in [
            ("throughput", rounds.throughput(way)),
            ("processor", rounds.processor(way)),
        ] {
            let name = format!("{what}_{}", way.name());
            measured.push((format!("{name}_low"), low));
            measured.push((format!("{name}_high"), high));
            measured.push((name, ratio));
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

/// What all turns of a round took together, of each way.
#[derive(Default)]
struct Round {
    turns: u32,
    seconds: [f64; Way::ALL.len()],
    processor: [f64; Way::ALL.len()],
}

impl Round {
    /// The same work by each, as often. What is done first is not compared. Without any time
    /// there is one turn.
    fn of(
        running: &mut [Box<dyn Running>],
        warm: Duration,
        length: Duration,
    ) -> Result<Round, Failed> {
        let begun = Instant::now();
        loop {
            for one in running.iter_mut() {
                one.work()?;
            }
            if begun.elapsed() >= warm {
                break;
            }
        }
        let mut round = Round::default();
        let begun = Instant::now();
        loop {
            round.turn(running)?;
            if begun.elapsed() >= length {
                return Ok(round);
            }
        }
    }

    /// There and back again, so that nobody has it by a machine that becomes slower or
    /// faster meanwhile. Who begins changes.
    fn turn(&mut self, running: &mut [Box<dyn Running>]) -> Result<(), Failed> {
        let mut order = [0, 1, 2, 3];
        order.rotate_left(self.turns as usize % Way::ALL.len());
        for index in order.into_iter().chain(order.into_iter().rev()) {
            let one = &mut running[index];
            let before = one.processor()?;
            self.seconds[index] += one.work()?;
            self.processor[index] += one.processor()? - before;
        }
        self.turns += 1;
        Ok(())
    }
}

/// Rounds, each with processes of its own.
#[derive(Default)]
struct Rounds(Vec<Round>);

impl Rounds {
    /// Intervals that reach no further from the ratio are narrow enough.
    const ASIDE: f64 = 0.006;
    /// With fewer an interval says little of what is different from process to process.
    const FEWEST: usize = 8;

    fn are_enough(&self) -> bool {
        let ways = [Way::Control, Way::Learning, Way::Tuned];
        let mut ratios = ways.map(|way| self.throughput(way)).into_iter();
        self.0.len() >= Self::FEWEST
            && ratios
                .all(|it| it.ratio - it.low <= Self::ASIDE && it.high - it.ratio <= Self::ASIDE)
    }

    fn turns(&self) -> u32 {
        self.0.iter().map(|round| round.turns).sum()
    }

    /// How long a portion of native work takes, in seconds.
    fn portion(&self) -> f64 {
        let native = self.0.iter().map(|round| round.seconds[0]).sum::<f64>();
        native / f64::from(2 * self.turns())
    }

    /// How much faster it is than native.
    fn throughput(&self, way: Way) -> Between {
        let rounds = self.0.iter().map(|round| &round.seconds);
        Between::of(rounds.map(|it| (native(it, way), it[way as usize])))
    }

    /// How much more processor time it needs than native has.
    fn processor(&self, way: Way) -> Between {
        let rounds = self.0.iter().map(|round| &round.processor);
        Between::of(rounds.map(|it| (it[way as usize], native(it, way))))
    }
}

/// What native ones took: both of them, unless one is compared with the other.
fn native([native, control, ..]: &[f64; Way::ALL.len()], other: Way) -> f64 {
    match other {
        Way::Native | Way::Control => *native,
        Way::Learning | Way::Tuned => native.midpoint(*control),
    }
}

/// A ratio, and between what it is with 95 %; it is its own interval where there is one
/// round only, and no number where somebody took nothing.
struct Between {
    low: f64,
    ratio: f64,
    high: f64,
}

impl Between {
    fn of(pairs: impl Iterator<Item = (f64, f64)>) -> Between {
        let ratio = Ratio::of(&pairs.collect::<Vec<_>>());
        let (ratio, confidence) = ratio.map_or((f64::NAN, None), |it| (it.ratio, it.confidence));
        let (low, high) = confidence.unwrap_or((ratio, ratio));
        Between { low, ratio, high }
    }
}

/// A number of this, as metrics have it.
#[expect(clippy::cast_precision_loss, reason = "not that many")]
fn number(count: u64) -> f64 {
    count as f64
}
