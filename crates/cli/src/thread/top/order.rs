//! Which threads are shown, and in which order.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::str::FromStr;

use clap::ValueEnum;
use milieu_device::monitor::{Process, Sample, Thread, policy_name};
use milieu_threads::stack::Zones;

use super::region_name;

/// By what threads are sorted: the most first, names and numbers the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Sort {
    /// Processor time
    Cpu,
    /// Time in which it wanted a processor
    Wait,
    /// Switches of both kinds
    Switches,
    /// Switches because others ran
    Involuntary,
    /// The share of the stack that was used
    Stack,
    /// The size of the stack
    Size,
    /// The region: fast, own, lazy
    Region,
    /// The role
    Role,
    /// The name
    Name,
    /// The process, then the thread
    Pid,
    /// The virtual memory of the process
    Virtual,
    /// What of that is in memory
    Resident,
}

impl Sort {
    /// The next one, or the one before.
    pub(super) fn next(self, is_forward: bool) -> Sort {
        let all = Sort::value_variants();
        let at = all.iter().position(|it| *it == self).unwrap_or(0);
        let step = if is_forward { 1 } else { all.len() - 1 };
        all[(at + step) % all.len()]
    }
}

/// What is shown, and how.
#[derive(Clone)]
pub(super) struct Order {
    pub(super) sort: Sort,
    pub(super) is_reversed: bool,
    pub(super) filter: Filter,
    pub(super) is_tree: bool,
    pub(super) zones: Zones,
}

/// A line: a thread, or in a tree also a process.
#[derive(Clone, Copy)]
pub(super) struct Item<'s> {
    pub(super) process: &'s Process,
    pub(super) thread: Option<&'s Thread>,
    /// How deep in the tree.
    pub(super) depth: usize,
}

impl Order {
    /// What is shown, in order.
    pub(super) fn items<'s>(&self, sample: &'s Sample) -> Vec<Item<'s>> {
        if self.is_tree {
            return self.tree(sample);
        }
        let fits =
            |(process, thread): &(&Process, &Thread)| self.filter.fits(process, thread, self.zones);
        let mut threads: Vec<_> = sample.threads().filter(fits).collect();
        threads.sort_by(|a, b| self.compare(*a, *b));
        let items = threads.into_iter().map(|(process, thread)| Item {
            process,
            thread: Some(thread),
            depth: 0,
        });
        items.collect()
    }

    /// The threads of a process that are shown, in order.
    pub(super) fn of_process<'s>(&self, process: &'s Process) -> Vec<&'s Thread> {
        let threads = process.threads.iter();
        let mut threads: Vec<_> = threads
            .filter(|it| self.filter.fits(process, it, self.zones))
            .collect();
        threads.sort_by(|a, b| self.compare((process, a), (process, b)));
        threads
    }

    fn compare(&self, a: (&Process, &Thread), b: (&Process, &Thread)) -> Ordering {
        let most = |value: fn(&Thread) -> f64| value(b.1).total_cmp(&value(a.1));
        let order = match self.sort {
            Sort::Cpu => most(|it| it.since.map_or(it.times.run_ns as f64 / 1e18, |it| it.run)),
            Sort::Wait => most(|it| {
                it.since
                    .map_or(it.times.wait_ns as f64 / 1e18, |it| it.wait)
            }),
            Sort::Switches => most(|it| it.since.map_or(0.0, |it| it.voluntary + it.involuntary)),
            Sort::Involuntary => most(|it| it.since.map_or(0.0, |it| it.involuntary)),
            Sort::Stack => most(|it| {
                it.stack
                    .map_or(-1.0, |it| it.peak_bytes as f64 / it.bytes.max(1) as f64)
            }),
            Sort::Size => most(|it| it.stack.map_or(-1.0, |it| it.bytes as f64)),
            Sort::Region => region_rank(a.1).cmp(&region_rank(b.1)),
            Sort::Role => named(a.1.role.as_str()).cmp(&named(b.1.role.as_str())),
            Sort::Name => a.1.name.cmp(&b.1.name),
            Sort::Pid => a.0.number.cmp(&b.0.number),
            Sort::Virtual => b.0.virtual_bytes.cmp(&a.0.virtual_bytes),
            Sort::Resident => b.0.resident_bytes.cmp(&a.0.resident_bytes),
        };
        let order = if self.is_reversed {
            order.reverse()
        } else {
            order
        };
        // Equal ones do not change places from one refresh to the next.
        order.then((a.0.number, a.1.number).cmp(&(b.0.number, b.1.number)))
    }

    fn tree<'s>(&self, sample: &'s Sample) -> Vec<Item<'s>> {
        let shown: Vec<(&Process, Vec<&Thread>)> = sample
            .processes
            .iter()
            .map(|it| (it, self.of_process(it)))
            .filter(|(_, threads)| !threads.is_empty())
            .collect();
        let there: HashSet<u32> = shown.iter().map(|(it, _)| it.number).collect();
        let mut below: HashMap<u32, Vec<usize>> = HashMap::new();
        let mut tops = Vec::new();
        for (at, (process, _)) in shown.iter().enumerate() {
            let is_below = there.contains(&process.parent) && process.parent != process.number;
            if is_below {
                below.entry(process.parent).or_default().push(at);
            } else {
                tops.push(at);
            }
        }
        // By their first threads, which are those that count.
        let by_first = |a: &usize, b: &usize| {
            let ((a, of_a), (b, of_b)) = (&shown[*a], &shown[*b]);
            self.compare((a, of_a[0]), (b, of_b[0]))
        };
        tops.sort_by(by_first);
        below.values_mut().for_each(|it| it.sort_by(by_first));
        let mut items = Vec::new();
        let mut left: Vec<(usize, usize)> = tops.into_iter().rev().map(|at| (at, 0)).collect();
        while let Some((at, depth)) = left.pop() {
            let (process, threads) = &shown[at];
            items.push(Item {
                process,
                thread: None,
                depth,
            });
            items.extend(threads.iter().map(|thread| Item {
                process,
                thread: Some(thread),
                depth: depth + 1,
            }));
            let children = below.remove(&process.number).unwrap_or_default();
            left.extend(children.into_iter().rev().map(|at| (at, depth + 1)));
        }
        items
    }
}

fn region_rank(thread: &Thread) -> u8 {
    use milieu_threads::table::Region::{Fast, Lazy, Own};
    match thread.region {
        Some(Fast) => 0,
        Some(Own) => 1,
        Some(Lazy) => 2,
        None => 3,
    }
}

/// Names come before those that have none.
fn named(name: &str) -> (bool, &str) {
    (name.is_empty(), name)
}

/// Words that all have to fit.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    text: String,
    words: Vec<Word>,
}

#[derive(Clone, Debug)]
struct Word {
    is_opposite: bool,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    /// Somewhere in a name.
    Has(String),
    /// In this field.
    FieldHas(Field, String),
    /// All of this field.
    FieldIs(Field, String),
    Compares(Field, Ordering, f64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Field {
    Process,
    Name,
    Role,
    Region,
    Policy,
    Zone,
    State,
    Pid,
    Tid,
    Cpu,
    Wait,
    Voluntary,
    Involuntary,
    Stack,
    Peak,
    Virtual,
    Resident,
}

const FIELDS: [(&str, Field); 17] = [
    ("process", Field::Process),
    ("name", Field::Name),
    ("role", Field::Role),
    ("region", Field::Region),
    ("policy", Field::Policy),
    ("zone", Field::Zone),
    ("state", Field::State),
    ("pid", Field::Pid),
    ("tid", Field::Tid),
    ("cpu", Field::Cpu),
    ("wait", Field::Wait),
    ("voluntary", Field::Voluntary),
    ("involuntary", Field::Involuntary),
    ("stack", Field::Stack),
    ("peak", Field::Peak),
    ("virtual", Field::Virtual),
    ("resident", Field::Resident),
];

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Filter, String> {
        let words = text.split_whitespace().map(Word::parse);
        Ok(Filter {
            text: text.trim().to_owned(),
            words: words.collect::<Result<_, _>>()?,
        })
    }
}

impl Word {
    fn parse(word: &str) -> Result<Word, String> {
        let (is_opposite, word) = match word.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, word),
        };
        let Some(at) = word.find(['=', '<', '>']) else {
            return Ok(Word {
                is_opposite,
                test: Test::Has(word.to_lowercase()),
            });
        };
        let (name, rest) = word.split_at(at);
        let (sign, value) = rest.split_at(1);
        let field = FIELDS.iter().find(|(it, _)| *it == name);
        let Some((_, field)) = field else {
            let names: Vec<&str> = FIELDS.iter().map(|(it, _)| *it).collect();
            return Err(format!("no field `{name}`; there are {}", names.join(", ")));
        };
        let all = value.strip_prefix('=').filter(|_| sign == "=");
        let test = if let Some(all) = all {
            Test::FieldIs(*field, all.to_lowercase())
        } else if sign == "=" {
            Test::FieldHas(*field, value.to_lowercase())
        } else {
            let number = number(value);
            let number = number.ok_or(format!(
                "`{value}` is no number; write `{name}{sign}10`, or 10K, 10M, 10G"
            ))?;
            let is_number = field.number_of_nothing();
            if !is_number {
                return Err(format!("`{name}` is no number; write `{name}=TEXT`"));
            }
            let order = if sign == "<" {
                Ordering::Less
            } else {
                Ordering::Greater
            };
            Test::Compares(*field, order, number)
        };
        Ok(Word { is_opposite, test })
    }
}

/// A number, perhaps of KiB, MiB or GiB.
fn number(text: &str) -> Option<f64> {
    let (digits, factor) = match text.chars().last()?.to_ascii_uppercase() {
        'K' => (&text[..text.len() - 1], 1024.0),
        'M' => (&text[..text.len() - 1], 1024.0 * 1024.0),
        'G' => (&text[..text.len() - 1], 1024.0 * 1024.0 * 1024.0),
        _ => (text, 1.0),
    };
    let number: f64 = digits.parse().ok()?;
    number.is_finite().then_some(number * factor)
}

impl Field {
    fn number_of_nothing(self) -> bool {
        use Field::{Cpu, Involuntary, Peak, Pid, Resident, Stack, Tid, Virtual, Voluntary, Wait};
        matches!(
            self,
            Pid | Tid | Cpu | Wait | Voluntary | Involuntary | Stack | Peak | Virtual | Resident
        )
    }

    fn number(self, process: &Process, thread: &Thread) -> Option<f64> {
        let since = thread.since.as_ref();
        match self {
            Field::Pid => Some(f64::from(process.number)),
            Field::Tid => Some(f64::from(thread.number)),
            Field::Cpu => since.map(|it| it.run * 100.0),
            Field::Wait => since.map(|it| it.wait * 100.0),
            Field::Voluntary => since.map(|it| it.voluntary),
            Field::Involuntary => since.map(|it| it.involuntary),
            Field::Stack => thread.stack.map(|it| it.bytes as f64),
            Field::Peak => thread.stack.map(|it| it.peak_bytes as f64),
            Field::Virtual => Some(process.virtual_bytes as f64),
            Field::Resident => Some(process.resident_bytes as f64),
            _ => None,
        }
    }

    fn text(self, process: &Process, thread: &Thread, zones: Zones) -> String {
        match self {
            Field::Process => process.name.clone(),
            Field::Name => thread.name.clone(),
            Field::Role => thread.role.as_str().to_owned(),
            Field::Region => thread.region.map_or("", region_name).to_owned(),
            Field::Policy => policy_name(thread.policy).to_owned(),
            Field::Zone => thread
                .stack
                .map_or(String::new(), |it| it.zone(zones).to_string()),
            Field::State => thread.state.to_string(),
            _ => self
                .number(process, thread)
                .map_or(String::new(), |it| it.to_string()),
        }
    }

    /// Numbers and words of a few are meant as a whole, names in part.
    fn is_whole(self) -> bool {
        !matches!(self, Field::Process | Field::Name | Field::Role)
    }
}

impl Filter {
    /// As it was written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    fn fits(&self, process: &Process, thread: &Thread, zones: Zones) -> bool {
        self.words.iter().all(|word| {
            let fits = match &word.test {
                Test::Has(text) => {
                    let names = [&process.name, &thread.name, thread.role.as_str()];
                    names.iter().any(|it| it.to_lowercase().contains(text))
                }
                Test::FieldHas(field, text) => {
                    let found = field.text(process, thread, zones).to_lowercase();
                    if field.is_whole() {
                        found == *text
                    } else {
                        found.contains(text)
                    }
                }
                Test::FieldIs(field, text) => {
                    field.text(process, thread, zones).to_lowercase() == *text
                }
                Test::Compares(field, order, number) => field
                    .number(process, thread)
                    .is_some_and(|it| it.partial_cmp(number) == Some(*order)),
            };
            fits != word.is_opposite
        })
    }
}

#[cfg(test)]
pub(in crate::thread) mod tests {
    use milieu_device::monitor::{Since, StackUse};
    use milieu_device::proc::{Switches, Times};
    use milieu_threads::attributes::{Priority, Role};
    use milieu_threads::table::Region;

    use super::*;

    pub(in crate::thread) fn thread(number: u32, name: &str, role: &str, run: f64) -> Thread {
        Thread {
            number,
            name: name.to_owned(),
            role: Role::new(role).expect("a role"),
            region: (!role.is_empty()).then_some(Region::Fast),
            critical: (!role.is_empty()).then_some(Priority::default()),
            is_demoted: false,
            is_excluded: false,
            policy: 0,
            nice: 0,
            realtime_priority: 0,
            state: 'S',
            processor: 0,
            start: 1,
            times: Times::default(),
            switches: Switches::default(),
            since: Some(Since {
                run,
                wait: 1.0 - run,
                voluntary: 3.0,
                involuntary: 0.0,
            }),
            stack: Some(StackUse {
                bytes: 8 << 20,
                peak_bytes: u64::from(number) << 12,
            }),
        }
    }

    pub(in super::super) fn sample() -> Sample {
        let process = |number, parent, name: &str, threads| Process {
            number,
            parent,
            name: name.to_owned(),
            words: vec![name.to_owned()],
            user: 0,
            virtual_bytes: u64::from(number) << 30,
            resident_bytes: u64::from(100 - number) << 20,
            is_served: true,
            threads,
        };
        Sample {
            processes: vec![
                process(1, 0, "init", vec![thread(1, "init", "", 0.0)]),
                process(
                    20,
                    1,
                    "fridge",
                    vec![
                        thread(20, "fridge", "", 0.1),
                        thread(21, "probe", "gas-detection", 0.7),
                        thread(22, "display", "ui", 0.5),
                    ],
                ),
                process(30, 20, "helper", vec![thread(30, "helper", "", 0.9)]),
            ],
            seconds: Some(1.0),
        }
    }

    pub(in super::super) fn order(sort: Sort, filter: &str, is_tree: bool) -> Order {
        Order {
            sort,
            is_reversed: false,
            filter: filter.parse().expect(filter),
            is_tree,
            zones: Zones::default(),
        }
    }

    fn shown(order: &Order) -> Vec<u32> {
        let sample = sample();
        let items = order.items(&sample);
        let number = |it: &Item<'_>| it.thread.map_or(it.process.number, |it| it.number);
        items.iter().map(number).collect()
    }

    #[test]
    fn the_most_come_first_and_names_in_their_order() {
        assert_eq!(shown(&order(Sort::Cpu, "", false)), [30, 21, 22, 20, 1]);
        assert_eq!(shown(&order(Sort::Wait, "", false)), [1, 20, 22, 21, 30]);
        assert_eq!(shown(&order(Sort::Pid, "", false)), [1, 20, 21, 22, 30]);
        assert_eq!(shown(&order(Sort::Name, "", false)), [22, 20, 30, 1, 21]);
        assert_eq!(shown(&order(Sort::Role, "", false)), [21, 22, 1, 20, 30]);
        assert_eq!(shown(&order(Sort::Region, "", false)), [21, 22, 1, 20, 30]);
        assert_eq!(shown(&order(Sort::Virtual, "", false)), [30, 20, 21, 22, 1]);
        assert_eq!(
            shown(&order(Sort::Resident, "", false)),
            [1, 20, 21, 22, 30]
        );
        let mut reversed = order(Sort::Cpu, "", false);
        reversed.is_reversed = true;
        assert_eq!(shown(&reversed), [1, 20, 22, 21, 30]);
        let forth_and_back = |it: Sort| it.next(true).next(false);
        assert!(
            Sort::value_variants()
                .iter()
                .all(|it| forth_and_back(*it) == *it)
        );
    }

    #[test]
    fn a_filter_is_words_that_all_fit() {
        let of = |filter| shown(&order(Sort::Pid, filter, false));
        assert_eq!(of("fridge"), [20, 21, 22]);
        assert_eq!(of("GAS"), [21]);
        assert_eq!(of("process=fridge !role=gas"), [20, 22]);
        assert_eq!(of("region=fast"), [21, 22]);
        assert_eq!(of("cpu>40 cpu<80"), [21, 22]);
        assert_eq!(of("zone=low pid=30"), [30]);
        assert_eq!(of("peak>80K"), [21, 22, 30]);
        assert_eq!(of("pid=3"), [] as [u32; 0]);
        assert_eq!(of("virtual>10G resident>75M"), [20, 21, 22]);
        // The whole name, or none at all.
        assert_eq!(of("role==gas-detection"), [21]);
        assert_eq!(of("role==gas"), [] as [u32; 0]);
        assert_eq!(of("process=fridge role=="), [20]);
        assert_eq!(of("tid==22"), [22]);
        for (wrong, word) in [
            ("colour=red", "no field `colour`"),
            ("cpu>much", "is no number; write `cpu>10`"),
            ("role>3", "write `role=TEXT`"),
        ] {
            let error = wrong.parse::<Filter>().expect_err(wrong);
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_tree_has_threads_below_processes_and_processes_below_their_parents() {
        let order = order(Sort::Cpu, "", true);
        let sample = sample();
        let items = order.items(&sample);
        let shown: Vec<(usize, u32, bool)> = items
            .iter()
            .map(|it| {
                let number = it.thread.map_or(it.process.number, |it| it.number);
                (it.depth, number, it.thread.is_some())
            })
            .collect();
        assert_eq!(
            shown,
            [
                (0, 1, false),
                (1, 1, true),
                (1, 20, false),
                (2, 21, true),
                (2, 22, true),
                (2, 20, true),
                (2, 30, false),
                (3, 30, true),
            ]
        );
    }
}
