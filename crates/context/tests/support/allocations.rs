//! An allocator that counts the bytes that each thread has in use, for tests of what
//! memory costs: neither another test nor the harness changes what a test counts.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

struct Counting;

thread_local! {
    // Negative where a thread frees what another one has allocated.
    static IN_USE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn taken(bytes: usize) {
    let now = in_use() + bytes as isize;
    IN_USE.set(now);
    PEAK.set(PEAK.get().max(now));
}

fn given_back(bytes: usize) {
    IN_USE.set(in_use() - bytes as isize);
}

// SAFETY: everything is handed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: as the caller vouches.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        given_back(layout.size());
        // SAFETY: as the caller vouches.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        taken(size);
        given_back(layout.size());
        // SAFETY: as the caller vouches.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Bytes that this thread has allocated and not freed.
pub fn in_use() -> isize {
    IN_USE.get()
}

/// The most bytes that this thread had in use at once since the last call.
pub fn peak_since() -> isize {
    PEAK.replace(in_use())
}
