//! Models of a line and of the table: every interleaving of the shipped code.

use loom::sync::Arc;
use loom::thread;

use super::*;

/// How many orders the checker has seen: it has to see them.
static ROUNDS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

/// Memory of two lines.
pub(crate) struct Memory(Header, [Line; 2]);

impl Memory {
    pub fn new() -> Memory {
        Memory(Header::new(), [Line::new(), Line::new()])
    }

    pub fn lines(&self) -> Lines<'_> {
        Lines {
            header: &self.0,
            lines: &self.1,
        }
    }
}

fn bits(identity: u64, value: u64) -> Bits {
    Bits {
        tid: value as u32,
        identity,
        words: [value, 0, 0, 0, 0, value],
    }
}

fn whole(bits: &Bits) -> bool {
    let value = bits.words[0];
    bits.words[5] == value && u64::from(bits.tid) == value
}

/// The checker looks for other orders at the last access before one that conflicts
/// with it. Who writes reads before, which would hide who has read earlier; so the
/// one that reads is the thread that comes second.
#[test]
fn who_reads_sees_all_of_a_write_or_nothing() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        ROUNDS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let line = Arc::new(Line::new());
        let reading = line.clone();
        let reader = thread::spawn(move || {
            if let Ok(seen) = reading.read(Line::bits) {
                assert!(whole(&seen), "{seen:?}");
            }
        });
        line.write(|it| *it = bits(1, 1)).unwrap();
        line.write(|it| *it = bits(1, 2)).unwrap();
        reader.join().unwrap();
        assert_eq!(line.read(Line::bits), Ok(bits(1, 2)));
    });
    let rounds = ROUNDS.load(std::sync::atomic::Ordering::Relaxed);
    assert!(rounds > 100, "{rounds} orders are not many");
}

#[test]
fn who_writes_sees_what_was_written_before() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let line = Arc::new(Line::new());
        let add = |line: &Line| {
            let add = |it: &mut Bits| {
                assert!(whole(it), "{it:?}");
                *it = bits(1, it.words[0] + 1);
            };
            u64::from(line.write(add).is_ok())
        };
        let other = line.clone();
        let writer = thread::spawn(move || add(&other));
        let here = add(&line);
        let there = writer.join().unwrap();
        assert_eq!(line.read(Line::bits), Ok(bits(1, here + there)));
    });
}

#[test]
fn two_threads_never_get_the_same_line() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let memory = Arc::new(Memory::new());
        let insert = |memory: &Memory, identity| {
            let entry = Entry::of(identity, identity as u32, Attributes::default());
            memory.lines().insert(entry)
        };
        let other = memory.clone();
        let inserting = thread::spawn(move || insert(&other, 2));
        let here = insert(&memory, 3);
        let there = inserting.join().unwrap();
        assert!(here != there, "{here:?} {there:?}");
        let table = memory.lines();
        for (identity, slot) in [(3, here), (2, there)] {
            assert_eq!(table.slot(identity), slot.ok());
        }
    });
}
