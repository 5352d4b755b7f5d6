//! The lines of the view, for a terminal and for everything else.

use milieu_device::monitor::{Process, Sample, StackUse, Thread, policy_name};
use milieu_threads::stack::{Zone, Zones};
use milieu_threads::table::Region;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::order::{Item, Order};
use super::region_name;

/// What a part of a line is, for who has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Dim,
    Heading,
    Process,
    Fast,
    Lazy,
    Low,
    Normal,
    High,
    Alarm,
}

/// A line, in parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line(pub(super) Vec<(Style, String)>);

impl Line {
    fn of(style: Style, text: impl Into<String>) -> Line {
        Line(vec![(style, text.into())])
    }

    fn push(&mut self, style: Style, text: impl Into<String>) {
        self.0.push((style, text.into()));
    }

    /// Without colours, and without blanks at its end.
    pub(super) fn plain(&self) -> String {
        let text: String = self.0.iter().map(|(_, it)| it.as_str()).collect();
        text.trim_end().to_owned()
    }

    /// At most so many columns of it.
    pub(super) fn cut(&self, width: usize) -> Line {
        let mut left = width;
        let parts = self.0.iter().map(|(style, text)| {
            let text = fitting(text, left);
            left -= text.width();
            (*style, text.to_owned())
        });
        Line(parts.filter(|(_, text)| !text.is_empty()).collect())
    }
}

/// As much of a text as has so many columns.
fn fitting(text: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > width {
            return &text[..at];
        }
    }
    text
}

/// Exactly so many columns of it. Who names a thread can put anything there, also
/// what would move a terminal's cursor.
fn padded(text: &str, width: usize) -> String {
    let text: String = text
        .chars()
        .map(|it| {
            if it.is_control() || it.width().unwrap_or(0) == 0 {
                '?'
            } else {
                it
            }
        })
        .collect();
    let shown = if text.width() > width {
        format!("{}…", fitting(&text, width - 1))
    } else {
        text
    };
    let blanks = width - shown.width();
    shown + &" ".repeat(blanks)
}

const ROLE: usize = 16;
const NAME: usize = 18;
const BAR: usize = 10;

/// The whole view; with a width, of a terminal, whose last column is free.
pub(super) fn lines(sample: &Sample, order: &Order, width: Option<usize>) -> Vec<Line> {
    let mut lines = summary(sample, order);
    lines.push(heading(order));
    let items = order.items(sample);
    lines.extend(items.iter().map(|it| line(it, order.zones)));
    match width {
        Some(width) => lines.iter().map(|it| it.cut(width)).collect(),
        None => lines,
    }
}

/// How many lines are before the first thread.
pub(super) const BEFORE: usize = 3;

fn summary(sample: &Sample, order: &Order) -> Vec<Line> {
    let count = |is: &dyn Fn(&Thread) -> bool| sample.threads().filter(|(_, it)| is(it)).count();
    let all = count(&|_| true);
    let run: f64 = sample
        .threads()
        .filter_map(|(_, it)| it.since)
        .map(|it| it.run)
        .fold(0.0, |sum, it| sum + it);
    let mut first = Line::default();
    first.push(
        Style::Plain,
        format!("{all} threads of {} processes, ", sample.processes.len()),
    );
    for (region, style) in [
        (Region::Fast, Style::Fast),
        (Region::Lazy, Style::Lazy),
        (Region::Own, Style::Plain),
    ] {
        let number = count(&|it| it.region == Some(region));
        first.push(style, format!("{number} {}, ", region_name(region)));
    }
    let demoted = count(&|it| it.is_demoted);
    if demoted > 0 {
        first.push(Style::Alarm, format!("{demoted} run away, "));
    }
    first.push(Style::Plain, format!("{run:.2} processors in use"));

    let mut second = Line::default();
    let zone = |zone| {
        count(&|it| {
            let found = it.stack.map(|it| it.zone(order.zones));
            found == Some(zone)
        })
    };
    second.push(Style::Plain, "Stacks: ");
    for (is, style, word) in [
        (Zone::Low, Style::Low, "waste"),
        (Zone::Normal, Style::Normal, "are fine"),
        (Zone::High, Style::High, "near overflow"),
    ] {
        second.push(style, format!("{} {word}, ", zone(is)));
    }
    let stacks = || sample.threads().filter_map(|(_, it)| it.stack);
    let bytes: u64 = stacks().map(|it| it.bytes).sum();
    let peaks: u64 = stacks().map(|it| it.peak_bytes).sum();
    second.push(
        Style::Plain,
        format!("{} used of {}", size(peaks).trim(), size(bytes).trim()),
    );
    if !order.filter.text().is_empty() {
        second.push(Style::Heading, format!("  filter: {}", order.filter.text()));
    }
    vec![first, second]
}

fn heading(order: &Order) -> Line {
    Line::of(
        Style::Heading,
        format!(
            "{:>7} {:>7} {} {} {:<6} {:<11} S {:>5} {:>5} {:>7} {:>7} {}",
            "PID",
            "TID",
            padded("ROLE", ROLE),
            padded(
                if order.is_tree {
                    "PROCESS/THREAD"
                } else {
                    "NAME"
                },
                NAME
            ),
            "REGION",
            "SCHED",
            "CPU%",
            "WAIT%",
            "VOL/s",
            "INV/s",
            "STACK",
        ),
    )
}

fn line(item: &Item<'_>, zones: Zones) -> Line {
    match item.thread {
        Some(thread) => thread_line(item, thread, zones),
        None => process_line(item),
    }
}

fn indented(depth: usize, name: &str) -> String {
    // Deeper trees than this leave no room for names.
    padded(&format!("{}{name}", "  ".repeat(depth.min(5))), NAME)
}

fn process_line(item: &Item<'_>) -> Line {
    let process = item.process;
    let sum = |of: fn(&milieu_device::monitor::Since) -> f64| -> f64 {
        let threads = process.threads.iter();
        threads.filter_map(|it| it.since.as_ref()).map(of).sum()
    };
    let mut line = Line::of(
        Style::Process,
        format!(
            "{:>7} {:>7} {} {} {:<6} {:<11}  ",
            process.number,
            "",
            padded("", ROLE),
            indented(item.depth, &process.name),
            "",
            match process.threads.len() {
                1 => "1 thread".to_owned(),
                more => format!("{more} threads"),
            },
        ),
    );
    let rates = process.threads.iter().any(|it| it.since.is_some());
    if rates {
        line.push(
            Style::Process,
            format!(
                " {} {} {} {} ",
                share(sum(|it| it.run)),
                share(sum(|it| it.wait)),
                rate(sum(|it| it.voluntary)),
                rate(sum(|it| it.involuntary)),
            ),
        );
    } else {
        line.push(Style::Process, format!("{:>29}", ""));
    }
    line.push(Style::Process, memory(process));
    let words = process.words.join(" ");
    let words: String = words.chars().filter(|it| !it.is_control()).collect();
    line.push(Style::Dim, words);
    line
}

/// What a process has of memory; nothing for those of the kernel, which have none.
fn memory(process: &Process) -> String {
    let [all, resident] = [process.virtual_bytes, process.resident_bytes].map(size);
    match process.virtual_bytes {
        0 => String::new(),
        _ => format!("{} virtual, {} resident  ", all.trim(), resident.trim()),
    }
}

fn thread_line(item: &Item<'_>, thread: &Thread, zones: Zones) -> Line {
    let is_own_name = thread.name == item.process.name;
    let name = match (item.depth > 0, is_own_name) {
        (true, _) => indented(item.depth, &thread.name),
        (false, true) => padded(&thread.name, NAME),
        (false, false) => padded(&short(item.process, thread), NAME),
    };
    let region_style = match thread.region {
        Some(Region::Fast) => Style::Fast,
        Some(Region::Lazy) => Style::Lazy,
        _ => Style::Plain,
    };
    let mut line = Line::default();
    let style = if thread.state == 'Z' {
        Style::Dim
    } else {
        Style::Plain
    };
    line.push(
        style,
        format!("{:>7} {:>7} ", item.process.number, thread.number),
    );
    line.push(region_style, padded(thread.role.as_str(), ROLE) + " ");
    line.push(style, name + " ");
    let region = match thread.region {
        Some(_) if thread.is_excluded => "alone",
        Some(region) => region_name(region),
        None => "",
    };
    line.push(region_style, format!("{region:<6} "));
    let alarm = if thread.is_demoted {
        Style::Alarm
    } else {
        style
    };
    line.push(alarm, format!("{:<11} ", sched(thread)));
    line.push(style, format!("{} ", thread.state));
    let rates = match &thread.since {
        Some(since) => format!(
            "{} {} {} {} ",
            share(since.run),
            share(since.wait),
            rate(since.voluntary),
            rate(since.involuntary),
        ),
        None => format!("{:>5} {:>5} {:>7} {:>7} ", "", "", "", ""),
    };
    line.push(style, rates);
    if let Some(stack) = &thread.stack {
        bar(stack, zones, &mut line);
    }
    line
}

/// The process and the thread, in little room.
fn short(process: &Process, thread: &Thread) -> String {
    let room = NAME.saturating_sub(thread.name.width() + 1);
    if room < 3 {
        return thread.name.clone();
    }
    format!("{}:{}", fitting(&process.name, room), thread.name)
}

/// Policy, nice value or priority, and the priority among critical threads.
fn sched(thread: &Thread) -> String {
    let policy = match thread.policy {
        1 | 2 => format!(
            "{} {}",
            policy_name(thread.policy),
            thread.realtime_priority
        ),
        5 | 6 => policy_name(thread.policy).to_owned(),
        other => format!("{} {}", policy_name(other), thread.nice),
    };
    match thread.critical {
        Some(_) if thread.is_demoted => policy + " !-",
        Some(priority) => format!("{policy} !{}", priority.nice()),
        None => policy,
    }
}

fn share(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 999.95 {
        format!("{percent:>5.0}")
    } else {
        format!("{percent:>5.1}")
    }
}

fn rate(rate: f64) -> String {
    match rate {
        _ if rate >= 999_999.5 => format!("{:>6.1}M", rate / 1e6),
        _ if rate >= 9_999.5 => format!("{:>6.1}k", rate / 1e3),
        _ if rate >= 99.95 => format!("{rate:>7.0}"),
        _ => format!("{rate:>7.1}"),
    }
}

/// Bytes in five columns.
fn size(bytes: u64) -> String {
    let mut value = bytes as f64 / 1024.0;
    for unit in ['K', 'M', 'G', 'T'] {
        if value < 999.5 {
            return if value < 9.95 && unit != 'K' {
                format!("{value:>4.1}{unit}")
            } else {
                format!("{value:>4.0}{unit}")
            };
        }
        value /= 1024.0;
    }
    format!("{value:>4.0}P")
}

fn bar(stack: &StackUse, zones: Zones, line: &mut Line) {
    let zone = stack.zone(zones);
    let (letter, style) = match zone {
        Zone::Low => ('L', Style::Low),
        Zone::Normal => ('N', Style::Normal),
        Zone::High => ('H', Style::High),
    };
    let share = stack.peak_bytes as f64 / stack.bytes.max(1) as f64;
    // A little is something.
    let full = (share * BAR as f64).ceil().clamp(0.0, BAR as f64) as usize;
    line.push(style, "█".repeat(full));
    line.push(Style::Dim, "░".repeat(BAR - full));
    line.push(style, format!(" {letter} "));
    line.push(
        Style::Plain,
        format!("{}/{}", size(stack.peak_bytes), size(stack.bytes).trim()),
    );
}

#[cfg(test)]
mod tests {
    use super::super::order::Sort;
    use super::super::order::tests::{order, sample, thread};
    use super::*;

    #[test]
    fn the_view_is_one_that_people_like() {
        let lines = lines(&sample(), &order(Sort::Pid, "", false), None);
        let text: Vec<String> = lines.iter().map(Line::plain).collect();
        assert_eq!(
            text,
            [
                "5 threads of 3 processes, 2 fast, 0 lazy, 0 own, 2.20 processors in use",
                "Stacks: 5 waste, 0 are fine, 0 near overflow, 376K used of 40M",
                "    PID     TID ROLE             NAME               REGION SCHED       S  CPU% WAIT%   VOL/s   INV/s STACK",
                "      1       1                  init                      OTHER 0     S   0.0 100.0     3.0     0.0 █░░░░░░░░░ L    4K/8.0M",
                "     20      20                  fridge                    OTHER 0     S  10.0  90.0     3.0     0.0 █░░░░░░░░░ L   80K/8.0M",
                "     20      21 gas-detection    fridge:probe       fast   OTHER 0 !0  S  70.0  30.0     3.0     0.0 █░░░░░░░░░ L   84K/8.0M",
                "     20      22 ui               fridge:display     fast   OTHER 0 !0  S  50.0  50.0     3.0     0.0 █░░░░░░░░░ L   88K/8.0M",
                "     30      30                  helper                    OTHER 0     S  90.0  10.0     3.0     0.0 █░░░░░░░░░ L  120K/8.0M",
            ]
        );
        let tree = super::lines(&sample(), &order(Sort::Cpu, "role=ui", true), Some(79));
        let tree: Vec<String> = tree.iter().map(Line::plain).collect();
        assert_eq!(
            tree[BEFORE..],
            [
                "     20                          fridge                    3 threads     130.0",
                "     20      22 ui                 display          fast   OTHER 0 !0  S  50.0",
            ]
        );
    }

    #[test]
    fn a_tree_says_what_memory_processes_have() {
        let mut sample = sample();
        let mut tree = super::lines(&sample, &order(Sort::Pid, "pid=30", true), None);
        let line = tree.remove(BEFORE).plain();
        assert!(
            line.ends_with(" 0.0 30G virtual, 70M resident  helper"),
            "{line}"
        );
        // As one of the kernel's.
        sample.processes[2].virtual_bytes = 0;
        tree = super::lines(&sample, &order(Sort::Pid, "pid=30", true), None);
        let line = tree.remove(BEFORE).plain();
        assert!(line.ends_with(" 0.0 helper"), "{line}");
    }

    #[test]
    fn names_cannot_move_the_cursor_and_wide_ones_are_cut() {
        let mut process = sample().processes.remove(1);
        process.name = "\x1b[2J\u{200d}".to_owned();
        process.threads = vec![thread(20, "温度計温度計温度計温度計", "ui", 0.0)];
        let sample = Sample {
            processes: vec![process],
            seconds: None,
        };
        for is_tree in [false, true] {
            let lines = lines(&sample, &order(Sort::Pid, "", is_tree), Some(60));
            for line in lines {
                let text = line.plain();
                assert!(!text.contains('\x1b') && text.width() <= 60, "{text:?}");
            }
        }
    }

    #[test]
    fn numbers_have_their_columns() {
        for rate in [0.0, 0.04, 99.9, 100.0, 9_999.0, 10_000.0, 1e6, 1e8] {
            assert_eq!(super::rate(rate).len(), 7, "{rate}");
        }
        for share in [0.0, 0.999, 1.0, 9.999, 12.0, 300.0] {
            assert_eq!(super::share(share).len(), 5, "{share}");
        }
        for bytes in [0, 1023, 4096, 1 << 20, 999 << 20, 1 << 40, u64::MAX] {
            assert!(size(bytes).len() <= 6, "{bytes}");
        }
        assert_eq!(size(8 << 20), " 8.0M");
        assert_eq!(size(64 << 10), "  64K");
    }
}
