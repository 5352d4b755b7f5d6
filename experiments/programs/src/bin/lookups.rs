//! Looks keys up in a key set by their names, in a process of its own: what the
//! paper's Figure 5 has as `ksLookup`.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use experiments::{Failed, whole};
use milieu_bench::run::protocol::{self, Measured, Measurement, Start};
use milieu_keys::{Key, KeySet, Name, Namespace, Origin, SourceOf};
use nix::time::{ClockId, clock_gettime};

fn main() -> ExitCode {
    match protocol::application(|start, _| measure(start)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn processor() -> Result<Duration, Failed> {
    Ok(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into())
}

fn measure(start: &Start) -> Result<Measurement, Failed> {
    let (keys, calls) = (whole(start, "keys")?, whole(start, "calls")?);
    let name = |number| format!("/sw/pi/value/{number}");
    let mut set = KeySet::new();
    for number in 0..keys {
        let name = Name::parse(&name(number))?;
        set.insert(Key::new(
            Namespace::User,
            &name,
            "value",
            Origin::new(SourceOf::Program),
        ));
    }
    let name = name(keys / 2);
    set.lookup(&name).ok_or("the key is not there")?;
    let (wall, begun) = (Instant::now(), processor()?);
    for _ in 0..calls {
        black_box(set.lookup(black_box(&name)));
    }
    let (used, wall) = (processor()? - begun, wall.elapsed());
    #[expect(clippy::cast_precision_loss, reason = "not that many calls")]
    let each = used.as_secs_f64() / calls as f64 * 1e9;
    let measured = [
        ("processor", used.as_secs_f64()),
        ("wall", wall.as_secs_f64()),
        ("nanoseconds", each),
    ];
    let measured = measured.map(|(name, number)| (name.to_owned(), Measured::Number(number)));
    Ok(Measurement::Several(BTreeMap::from(measured)))
}
