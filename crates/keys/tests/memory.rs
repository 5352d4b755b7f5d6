//! What a key costs beyond the text of its name and value.
//!
//! The allocator of this test counts the bytes that each thread asks for and has
//! not given back.

use milieu_keys::{Key, KeySet, Name, Namespace, Origin, SourceOf};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

struct Counting;

thread_local! {
    // Constant and without a destructor, so that reaching it never allocates.
    static LIVE: Cell<usize> = const { Cell::new(0) };
}

fn count(change: impl FnOnce(usize) -> usize) {
    LIVE.with(|live| live.set(change(live.get())));
}

// SAFETY: every call is passed on to the system's allocator unchanged, so all
// that it promises holds; the counter is not part of the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(|live| live.wrapping_add(layout.size()));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(|live| live.wrapping_sub(layout.size()));
        // SAFETY: the caller keeps the contract of `dealloc`, and the pointer is
        // one that `System` gave.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const KEYS: usize = 10_000;
/// The most that a key may cost beyond its text.
const BOUND: usize = 120;

fn live() -> usize {
    LIVE.with(Cell::get)
}

/// The place of the key that comes at `n`-th, each place once.
fn scattered(n: usize) -> usize {
    n * 7_919 % KEYS
}

#[test]
fn a_key_costs_at_most_120_bytes_beyond_its_text() {
    let before = live();
    let empty = KeySet::new();
    assert_eq!(live(), before, "an empty set costs nothing");
    drop(empty);

    let source = Arc::new(SourceOf::File("user.ini".to_owned()));
    let key = |n: usize| {
        let name = Name::parse(&format!("/sw/station/%/section{}/key{n:05}", n / 40)).unwrap();
        let line = n as u32 + 1;
        let origin = Origin::at(&source, line);
        Key::new(Namespace::User, &name, &format!("value {n}"), origin)
    };
    let make: [(&str, &dyn Fn() -> KeySet); 4] = [
        ("in order", &|| {
            let mut keys = KeySet::new();
            (0..KEYS).for_each(|n| drop(keys.insert(key(n))));
            keys
        }),
        ("scattered", &|| {
            let mut keys = KeySet::new();
            (0..KEYS).for_each(|n| drop(keys.insert(key(scattered(n)))));
            keys
        }),
        ("at once", &|| {
            (0..KEYS).map(|n| key(scattered(n))).collect()
        }),
        ("by merging", &|| {
            let mut keys: KeySet = (0..KEYS / 2).map(key).collect();
            keys.merge((KEYS / 2..KEYS).rev().map(key).collect());
            keys
        }),
    ];
    let mut most = 0;
    for (how, make) in make {
        let before = live();
        let keys = make();
        // Walking makes the order, which costs memory too.
        let text: usize = keys.iter().map(|k| k.name().len() + k.value().len()).sum();
        let cost = live() - before - text;
        assert_eq!(keys.len(), KEYS);
        assert!(
            cost <= BOUND * KEYS,
            "{how}: {} bytes a key, {BOUND} allowed",
            cost as f64 / KEYS as f64,
        );

        most = most.max(cost);

        let full = live();
        let copy = keys.clone();
        assert!(live() - full <= BOUND * KEYS + text, "a copy costs no more");
        drop(copy);

        // What is removed is given back.
        let mut keys = keys;
        for n in 10..KEYS {
            let name = key(n);
            assert!(keys.remove(Namespace::User, name.name()).is_some());
        }
        assert_eq!(keys.len(), 10);
        assert!(
            live() - before <= 10 * 1000,
            "{} bytes left",
            live() - before
        );
        drop(keys);
        assert_eq!(live(), before, "{how}");
    } // What the goal `keys/bytes-each` reads.
    println!(
        "{{\"name\":\"key-bytes\",\"value\":{:.1}}}",
        most as f64 / KEYS as f64
    );
}
