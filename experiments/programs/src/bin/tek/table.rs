//! What the thread information table costs (section IV-C of the paper).

use std::hint::black_box;

use experiments::{Failed, whole};
use milieu_bench::run::protocol::Start;
use milieu_threads::attributes::{Attributes, Role};
use milieu_threads::table::{Entry, LINE_BYTES, Table, View};

use super::{Numbers, number, work};

pub fn measure(start: &Start) -> Result<Numbers, Failed> {
    let (threads, calls) = (whole(start, "threads")?, whole(start, "calls")?);
    let table = Table::new(u32::try_from(threads)?)?;
    let lines = table.lines();
    let attributes = Attributes::of(Role::new("gas-detection")?);
    for thread in 1..=threads {
        // As addresses of descriptors are: apart by the size of a stack.
        let entry = Entry::of(thread << 23, u32::try_from(thread)?, attributes);
        lines.insert(entry)?;
    }
    let each = |count: u64, body: &mut dyn FnMut(u64)| {
        let begun = work::processor();
        for call in 0..count {
            body((call % threads + 1) << 23);
        }
        (work::processor() - begun) / number(count) * 1e9
    };
    let get_ns = each(calls, &mut |it| {
        let _ = black_box(lines.get(black_box(it)));
    });
    let set_ns = each(calls, &mut |it| {
        let _ = black_box(lines.set(black_box(it), &attributes));
    });
    let view = View::of_process(std::process::id());
    let view = view.map_err(|error| error.to_string())?;
    let mut seen = 0;
    let snapshot_us = each((calls / 1000).max(1), &mut |_| seen = view.iter().count()) / 1e3;
    if seen as u64 != threads {
        return Err(format!("{seen} of {threads} threads are seen from outside").into());
    }
    Ok(vec![
        ("get_ns", get_ns),
        ("set_ns", set_ns),
        ("snapshot_us", snapshot_us),
        ("line_bytes", number(LINE_BYTES as u64)),
    ])
}
