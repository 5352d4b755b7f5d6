//! What the thread information table costs (section IV-C of the paper).

use std::hint::black_box;

use experiments::{Failed, whole};
use milieu_bench::run::protocol::Start;
use milieu_threads::attributes::{Attributes, Role};
use milieu_threads::table::{Entry, LINE_BYTES, Table, View};

use super::crowd::{Crowd, Limits};
use super::stacks::of;
use super::{Numbers, number, work};

/// For how many threads there is room if nobody asks for more.
const CAPACITY: u32 = 1024;

pub fn measure(start: &Start) -> Result<Numbers, Failed> {
    let (threads, calls) = (whole(start, "threads")?, whole(start, "calls")?);
    let capacity = CAPACITY.max(u32::try_from(2 * threads)?);
    let table = Table::new(capacity)?;
    let lines = table.lines();
    let attributes = Attributes::of(Role::new("gas-detection")?);
    for thread in 1..=threads {
        let entry = Entry::of(identity(thread), u32::try_from(thread)?, attributes);
        lines.insert(entry)?;
    }
    let identities: Vec<u64> = (1..=threads).map(identity).collect();
    let rounds = (calls / threads).max(1);
    let loop_ns = each(rounds, &identities, |it| {
        black_box(it);
    });
    let get_ns = each(rounds, &identities, |it| {
        // Where it is returned to: another copy of it is not what is measured.
        black_box(&lines.get(black_box(it)));
    });
    let set_ns = each(rounds, &identities, |it| {
        let _ = black_box(lines.set(black_box(it), &attributes));
    });
    let view = View::of_process(std::process::id());
    let view = view.map_err(|error| error.to_string())?;
    let mut seen = 0;
    let snapshots = (calls / 1000).max(1);
    let snapshot_us = each(snapshots, &[0], |_| seen = view.iter().count()) / 1e3;
    if seen as u64 != threads {
        return Err(format!("{seen} of {threads} threads are seen from outside").into());
    }
    Ok(vec![
        ("get_ns", get_ns - loop_ns),
        ("set_ns", set_ns - loop_ns),
        ("loop_ns", loop_ns),
        ("snapshot_us", snapshot_us),
        ("line_bytes", number(LINE_BYTES as u64)),
    ])
}

/// What it costs a program in C that `milieu thread run` serves to ask its threads what they
/// are for and to tell them, beside what the C library's own question costs.
pub fn calls(start: &Start) -> Result<Numbers, Failed> {
    let (threads, calls) = (whole(start, "threads")?, whole(start, "calls")?);
    let served = ["thread", "run"].map(str::to_owned);
    let arguments = [threads.to_string(), calls.to_string()];
    let arguments = arguments.each_ref().map(String::as_str);
    let told = Crowd::start("asks", &arguments, Some(&served), Limits::NONE)?.end()?;
    let names = [
        "served",
        "get_ns",
        "set_ns",
        "get_own_ns",
        "set_own_ns",
        "policy_ns",
    ];
    let number = |name: &'static str| Ok((name, of(&told, name)?));
    names.into_iter().map(number).collect()
}

/// Apart by the size of a stack, as addresses of descriptors are.
fn identity(thread: u64) -> u64 {
    thread << 23
}

/// How long a call takes, in nanoseconds: for each thread, in so many rounds.
fn each(rounds: u64, identities: &[u64], mut call: impl FnMut(u64)) -> f64 {
    let begun = work::processor();
    for _ in 0..rounds {
        for it in identities {
            call(*it);
        }
    }
    (work::processor() - begun) / number(rounds * identities.len() as u64) * 1e9
}
