//! What sessions and publications cost in memory, counted by the allocator.

mod support;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicIsize, Ordering},
};

use support::*;

environment! { mod env;
    language: Text = "/sw/pi/%session%/language" { "default" = "en" };
    theme: Text = "/sw/pi/%session%/theme" { "default" = "light" };
    plain: i64 = "/plain";
}
use env::{Environment, at};

/// Counts the bytes that are allocated.
struct Counting;
static BYTES: AtomicIsize = AtomicIsize::new(0);

// SAFETY: it is the system's allocator; counting changes nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: as the caller vouches.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: as the caller vouches.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn bytes() -> isize {
    BYTES.load(Ordering::Relaxed)
}

/// One test, since the counter is one: sessions cost what they assign, give it
/// back, and publications beside a sleeping context cost nothing lasting.
#[test]
fn memory_is_what_is_assigned() {
    let sessions: u32 = if cfg!(miri) { 20 } else { 100_000 };
    let coordinator = coordinator(&[]);
    let mut cx = coordinator.context::<Environment>().unwrap();
    let name = |i: u32| format!("{i:032x}");
    cx.with(Session(&name(0)), |_| ());
    let empty = bytes();

    for i in 0..sessions {
        cx.with(Session(&name(i)), |cx| assert_eq!(cx.language, "en"));
    }
    assert!(
        bytes() - empty < 4096,
        "entering alone costs nothing lasting"
    );

    for i in 0..sessions {
        cx.with(Session(&name(i)), |cx| {
            cx.set::<at::language>("de").unwrap()
        });
    }
    let each = (bytes() - empty) / sessions as isize;
    println!("{each} bytes a session with one assigned value");
    assert!(each < 400, "{each} bytes a session");

    // Nine in ten sessions are forgotten, and their memory with them.
    for i in (0..sessions).filter(|i| i % 10 != 0) {
        cx.forget(Session(&name(i)));
    }
    let left = bytes() - empty;
    println!("{left} bytes left of {}", each * sessions as isize);
    assert!(left < each * sessions as isize / 4);
    cx.with(Session(&name(10)), |cx| assert_eq!(cx.language, "de"));
    cx.with(Session(&name(11)), |cx| assert_eq!(cx.language, "en"));

    // A context that sleeps holds one snapshot, however much is published.
    let mut sleeper = coordinator.context::<Environment>().unwrap();
    let before = bytes();
    let publications: u32 = if cfg!(miri) {
        50
    } else if cfg!(debug_assertions) {
        200_000
    } else {
        10_000_000
    };
    for i in 0..publications {
        if i % 2 == 0 {
            cx.activate(A("1")).unwrap();
        } else {
            cx.deactivate::<A>().unwrap();
        }
        if i % 16 == 0 {
            cx.set::<at::plain>(i.into()).unwrap();
        }
    }
    let grown = bytes() - before;
    println!("{grown} bytes after {publications} publications");
    assert!(grown < 64 * 1024, "{grown} bytes");
    sleeper.sync();
    assert_eq!(sleeper.plain, cx.plain);
    assert_eq!(sleeper.layers(), cx.layers());
}
