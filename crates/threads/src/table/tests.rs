//! The table over memory of a test, against a map.

use std::boxed::Box;
use std::collections::BTreeMap;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::attributes::{Priority, StackSize};

/// Memory of a table of so many lines.
pub(super) struct Memory(Header, Box<[Line]>);

impl Memory {
    pub fn new(lines: usize) -> Memory {
        Memory(Header::new(), (0..lines).map(|_| Line::new()).collect())
    }

    pub fn lines(&self) -> Lines<'_> {
        Lines {
            header: &self.0,
            lines: &self.1,
        }
    }
}

fn entry(identity: u64) -> Entry {
    Entry::of(identity, identity as u32, Attributes::default())
}

fn role(name: &str) -> Role {
    Role::new(name).expect("a role")
}

#[test]
fn what_is_set_is_got() {
    let memory = Memory::new(64);
    let table = memory.lines();
    assert_eq!(table.get(1), Err(TableError::Unknown));
    assert_eq!(table.get(0), Err(TableError::Unknown), "free lines have it");
    let slot = table.insert(entry(1)).unwrap();
    let wanted = Attributes::of(role("gas-detection"))
        .time_critical(Priority::FIRST)
        .with_stack(StackSize::of_bytes(1 << 20).unwrap());
    assert_eq!(table.set(1, &wanted), Ok(slot));
    assert_eq!(table.get(1), Ok(wanted));
    for attributes in [wanted.lazy(), wanted] {
        assert_eq!(table.set(1, &attributes), Ok(slot));
        assert_eq!(table.get(1), Ok(attributes));
        assert_eq!(table.entry(1).map(|it| it.attributes), Ok(attributes));
    }
    assert_eq!(table.set(2, &wanted), Err(TableError::Unknown));
    assert_eq!(table.remove(1), Ok(slot));
    assert_eq!(table.get(1), Err(TableError::Unknown));
    assert_eq!(table.remove(1), Err(TableError::Unknown));
}

#[test]
fn setting_attributes_leaves_everything_else() {
    let memory = Memory::new(16);
    let table = memory.lines();
    let whole = Entry {
        region: Region::Lazy,
        is_demoted: true,
        is_excluded: true,
        own: Scheduling {
            policy: 2,
            nice: -7,
            realtime_priority: 99,
            is_reset_on_fork: true,
        },
        created_us: (1 << 48) - 1,
        stack_kib: 8192,
        stack_kib_peak: u32::MAX,
        ..entry(0xffff_ffff_ffff_ffff)
    };
    table.insert(whole).unwrap();
    let attributes = Attributes::of(role("a")).time_critical(Priority::LAST);
    table.set(whole.identity, &attributes).unwrap();
    let expected = Entry {
        attributes,
        ..whole
    };
    assert_eq!(table.entry(whole.identity), Ok(expected));
    let plain = Attributes::default();
    table.set(whole.identity, &plain).unwrap();
    assert_eq!(table.entry(whole.identity).unwrap().attributes, plain);
}

#[test]
fn the_peak_of_a_stack_only_grows() {
    let memory = Memory::new(16);
    let table = memory.lines();
    table.insert(entry(5)).unwrap();
    for (peak, expected) in [(10, 10), (30, 30), (20, 30)] {
        table.note_stack(5, 256, peak).unwrap();
        let entry = table.entry(5).unwrap();
        assert_eq!((entry.stack_kib, entry.stack_kib_peak), (256, expected));
    }
}

#[test]
fn a_peak_is_noted_of_the_thread_that_was_meant() {
    let memory = Memory::new(64);
    let table = memory.lines();
    table.insert(entry(5)).unwrap();
    table.note_stack(5, 256, 20).unwrap();
    let tid = table.entry(5).unwrap().tid;
    let noted = |tid, peak| {
        let is_news = table.note_peak(5, tid, peak).unwrap();
        let entry = table.entry(5).unwrap();
        assert_eq!(entry.stack_kib, 256);
        (is_news, entry.stack_kib_peak)
    };
    assert_eq!(noted(tid, 20), (false, 20));
    assert_eq!(noted(tid, 60), (true, 60));
    assert_eq!(noted(tid, 40), (false, 60));
    // The one that was there before.
    assert_eq!(noted(tid + 1, 90), (false, 60));
    assert_eq!(table.note_peak(6, tid, 90), Err(TableError::Unknown));
}

#[test]
fn a_number_that_comes_again_is_a_new_thread() {
    let memory = Memory::new(16);
    let table = memory.lines();
    let mut before = entry(9);
    before.attributes = Attributes::of(role("before"));
    let slot = table.insert(before).unwrap();
    assert_eq!(table.insert(entry(9)), Ok(slot));
    assert_eq!(table.get(9), Ok(Attributes::default()));
    assert_eq!(table.iter().count(), 1);
}

#[test]
fn a_full_table_says_so_and_counts() {
    let memory = Memory::new(16);
    let table = memory.lines();
    for identity in 1..=16 {
        table.insert(entry(identity)).unwrap();
    }
    assert_eq!(table.insert(entry(17)), Err(TableError::Full));
    assert_eq!(table.insert(entry(0)), Err(TableError::NoIdentity));
    assert_eq!(table.unlisted(), 1);
    table.remove(3).unwrap();
    assert!(table.insert(entry(17)).is_ok());
}

#[test]
fn threads_are_found_by_role_and_by_number() {
    let memory = Memory::new(if cfg!(miri) { 64 } else { 4096 });
    let table = memory.lines();
    let count = if cfg!(miri) { 30 } else { 3000 };
    for identity in 1..=count {
        let attributes = Attributes::of(role(if identity % 3 == 0 { "a" } else { "b" }));
        // As pthread_t are: addresses in steps of a stack.
        let whole = Entry::of(identity * 0x80_1000, identity as u32, attributes);
        table.insert(whole).unwrap();
    }
    assert_eq!(table.with_role(role("a")).count() as u64, count / 3);
    assert_eq!(table.with_role(Role::NONE).count(), 0);
    let (slot, found) = table.by_thread_id(23).unwrap();
    assert_eq!(found.identity, 23 * 0x80_1000);
    assert_eq!(table.slot(found.identity), Some(slot));
    assert_eq!(table.at(slot), Ok(found));
    assert_eq!(table.by_thread_id(4000), None);
    assert_eq!(table.at(Slot(u32::MAX)), Err(TableError::Unknown));
}

#[test]
#[cfg_attr(miri, ignore = "many lines, and nothing that others do not do")]
fn few_threads_stay_together() {
    let memory = Memory::new(1 << 15);
    let table = memory.lines();
    for identity in 1..=300 {
        let slot = table.insert(entry(identity * 0x80_1000)).unwrap();
        assert!(slot.0 < FIRST, "{identity} is in {slot:?}");
    }
}

/// Millions of threads leave nothing behind.
#[test]
fn lines_are_used_again() {
    let memory = Memory::new(64);
    let table = memory.lines();
    let rounds = if cfg!(miri) { 60 } else { 100_000 };
    for identity in 1..=rounds {
        table.insert(entry(identity)).unwrap();
        if identity > 16 {
            table.remove(identity - 16).unwrap();
        }
    }
    assert_eq!(table.iter().count(), 16);
    assert_eq!(table.unlisted(), 0);
}

#[test]
fn lines_are_kept_or_freed_as_told() {
    let memory = Memory::new(64);
    let table = memory.lines();
    for identity in 1..=20 {
        table.insert(entry(identity)).unwrap();
    }
    table.retain(|_, it| it.identity % 2 == 0);
    let left: Vec<u64> = table.iter().map(|(_, it)| it.identity).collect();
    assert_eq!(left.len(), 10);
    assert!(left.iter().all(|it| it % 2 == 0));
}

#[derive(Debug, Clone)]
enum Step {
    Insert(u64, Option<StackSize>),
    Remove(u64),
    Set(u64, i32),
    Move(u64, Region),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let identity = 1..40u64;
    let region = prop_oneof![Just(Region::Own), Just(Region::Fast), Just(Region::Lazy)];
    let step = prop_oneof![
        (identity.clone(), 0..4u64)
            .prop_map(|(who, kib)| Step::Insert(who, StackSize::of_bytes(kib * 1024).ok())),
        identity.clone().prop_map(Step::Remove),
        (identity.clone(), -20..=19).prop_map(|(who, nice)| Step::Set(who, nice)),
        (identity, region).prop_map(|(who, region)| Step::Move(who, region)),
    ];
    let length = if cfg!(miri) { 8 } else { 200 };
    proptest::collection::vec(step, 0..length)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 1 } else { 100 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever is done, the table says what a map says.
    #[test]
    fn a_table_is_a_map(steps in steps()) {
        let memory = Memory::new(64);
        let table = memory.lines();
        let mut model = BTreeMap::new();
        for step in steps {
            match step {
                Step::Insert(who, stack) => {
                    let mut new = entry(who);
                    if let Some(size) = stack {
                        new.attributes = new.attributes.with_stack(size);
                    }
                    prop_assert!(table.insert(new).is_ok());
                    model.insert(who, new);
                }
                Step::Remove(who) => {
                    prop_assert_eq!(table.remove(who).is_ok(), model.remove(&who).is_some());
                }
                Step::Set(who, nice) => {
                    let to = Attributes::of(role("r")).time_critical(Priority::new(nice).unwrap());
                    let known = model.get_mut(&who);
                    prop_assert_eq!(table.set(who, &to).is_ok(), known.is_some());
                    if let Some(it) = known {
                        it.attributes = to;
                    }
                }
                Step::Move(who, region) => {
                    let known = model.get_mut(&who);
                    let moved = table.update(who, |it| it.region = region);
                    prop_assert_eq!(moved.is_ok(), known.is_some());
                    if let Some(it) = known {
                        it.region = region;
                    }
                }
            }
            let mut all: Vec<Entry> = table.iter().map(|(_, it)| it).collect();
            all.sort_by_key(|it| it.identity);
            prop_assert!(all.iter().eq(model.values()));
        }
    }

    /// Anything may stand in memory: it is an entry that can be written again, or
    /// none, and never breaks who reads it.
    #[test]
    fn any_bits_are_an_entry_or_none(tid: u32, identity: u64, words: [u64; 6], valid: bool) {
        let mut bits = Bits { tid, identity, words };
        if valid {
            // What is checked, so that the rest of the way is taken too.
            bits.words[2] = words[2] & !0xffff_ffff | 0x0180;
            bits.words[3..].copy_from_slice(&role("a").words());
        }
        if let Some(entry) = Entry::checked(&bits) {
            prop_assert_eq!(entry.bits(), bits);
        }
        let memory = Memory::new(16);
        memory.0.segments.store(tid, Ordering::Relaxed);
        memory.1[3].write(|it| *it = bits).unwrap();
        prop_assert!(memory.lines().iter().count() <= 1);
        let _ = memory.lines().get(identity);
        let _ = memory.lines().by_thread_id(tid);
    }
}

/// Two who write and one who reads: each sees what one of them wrote.
#[test]
fn nobody_sees_half_of_what_another_writes() {
    let memory = Memory::new(16);
    let table = memory.lines();
    table.insert(entry(1)).unwrap();
    let one = Attributes::of(role("aaaaaaaaaaaaaaaaaaaaaaaa")).time_critical(Priority::FIRST);
    let other = Attributes::of(role("bbbbbbbbbbbbbbbbbbbbbbbb"));
    table.set(1, &one).unwrap();
    let rounds = if cfg!(miri) { 10 } else { 20_000 };
    std::thread::scope(|scope| {
        for attributes in [one, other] {
            scope.spawn(move || {
                for _ in 0..rounds {
                    let _ = table.set(1, &attributes);
                }
            });
        }
        scope.spawn(move || {
            for _ in 0..rounds {
                // A writer that was preempted at the wrong moment is no failure.
                if let Ok(seen) = table.get(1) {
                    assert!(seen == one || seen == other, "{seen:?}");
                }
            }
        });
    });
}

#[test]
fn what_is_handed_on_is_what_the_kernel_gives() {
    let own = |policy: i32, nice, is_reset_on_fork| Scheduling {
        policy: policy as u8,
        nice,
        realtime_priority: u8::from(policy == libc::SCHED_RR),
        is_reset_on_fork,
    };
    for policy in [libc::SCHED_OTHER, libc::SCHED_IDLE, libc::SCHED_RR] {
        let kept = own(policy, -3, false);
        assert_eq!(kept.handed_on(), kept);
    }
    for (nice, expected) in [(-11, 0), (7, 7)] {
        let handed_on = own(libc::SCHED_BATCH, nice, true).handed_on();
        assert_eq!(handed_on, own(libc::SCHED_BATCH, expected, false));
    }
    let handed_on = own(libc::SCHED_RR, -11, true).handed_on();
    assert_eq!(handed_on, Scheduling::default());
}
