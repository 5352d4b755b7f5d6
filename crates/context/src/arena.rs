//! Where a context keeps the texts of entered layers: a stack of bytes.
//!
//! Texts are pushed when layers are entered and popped, all at once, when they
//! are left. Chunks never move, so a text stays where it is until then.

use std::ptr::NonNull;

/// A stack of texts.
pub struct Arena {
    /// The first free byte of the chunk in use, and its end.
    next: *mut u8,
    end: *mut u8,
    current: usize,
    chunks: Vec<Chunk>,
}

struct Chunk {
    bytes: NonNull<u8>,
    length: usize,
}

// SAFETY: the arena owns its chunks, plain bytes that only it writes.
unsafe impl Send for Arena {}
// SAFETY: as above; shared, they are only read.
unsafe impl Sync for Arena {}

impl Default for Arena {
    fn default() -> Self {
        Arena {
            next: NOWHERE,
            end: NOWHERE,
            current: 0,
            chunks: Vec::new(),
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let slice = std::ptr::slice_from_raw_parts_mut(self.bytes.as_ptr(), self.length);
        // SAFETY: `Arena::grow` made it from a boxed slice of this length.
        drop(unsafe { Box::from_raw(slice) });
    }
}

/// A height of the stack.
#[derive(Clone, Copy)]
pub struct Mark {
    next: *mut u8,
    chunk: usize,
}

// SAFETY: a mark is only compared and given back to its arena.
unsafe impl Send for Mark {}
// SAFETY: as above.
unsafe impl Sync for Mark {}

/// Where an arena without chunks ends: no byte fits, and an empty text does.
const NOWHERE: *mut u8 = NonNull::dangling().as_ptr();

/// A new context's first chunk is small, since a request's context is short-lived.
const CHUNK: usize = 120;

impl Arena {
    /// The height as of now.
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark {
            next: self.next,
            chunk: self.current,
        }
    }

    /// Pops everything above a height.
    #[inline]
    pub fn pop_to(&mut self, mark: Mark) {
        self.next = mark.next;
        if self.current != mark.chunk || self.next == NOWHERE {
            self.back_to(mark);
        }
    }

    /// As [`pop_to`](Arena::pop_to), for a height in the chunk in use.
    ///
    /// # Safety
    ///
    /// No chunk was begun since the height was taken.
    #[inline]
    pub unsafe fn pop_within(&mut self, mark: Mark) {
        self.next = mark.next;
    }

    /// Whether another chunk was begun since a height was taken.
    pub fn has_grown(&self, mark: Mark) -> bool {
        self.current != mark.chunk || (mark.next == NOWHERE && self.next != NOWHERE)
    }

    #[cold]
    fn back_to(&mut self, mark: Mark) {
        self.current = mark.chunk;
        let Some(chunk) = self.chunks.get(self.current) else {
            return;
        };
        // SAFETY: the end of the chunk's allocation.
        self.end = unsafe { chunk.bytes.as_ptr().add(chunk.length) };
        if self.next == NOWHERE {
            // The height was taken before there was any chunk.
            self.next = chunk.bytes.as_ptr();
        }
    }

    /// Pushes a text; the pointer is valid until it is popped.
    pub fn push(&mut self, text: &str) -> *const u8 {
        self.make_room(text.len());
        // SAFETY: the room was just made.
        unsafe { self.push_fitting(text) }
    }

    /// Whether a text of that length fits without another chunk.
    #[inline]
    pub fn has_room(&self, length: usize) -> bool {
        self.end.addr() - self.next.addr() >= length
    }

    /// Makes sure that a text of that length fits.
    #[inline]
    pub fn make_room(&mut self, length: usize) {
        if !self.has_room(length) {
            self.grow(length);
        }
    }

    /// As [`push`](Arena::push).
    ///
    /// # Safety
    ///
    /// The text [fits](Arena::has_room).
    #[inline]
    pub unsafe fn push_fitting(&mut self, text: &str) -> *const u8 {
        let place = self.next;
        // SAFETY: there is room for the text up to `end`, in one allocation,
        // and the text lies elsewhere.
        unsafe {
            copy(text.as_ptr(), place, text.len());
            self.next = place.add(text.len());
        }
        place
    }

    /// Goes on with a chunk that has room for `length` bytes.
    #[cold]
    fn grow(&mut self, length: usize) {
        assert!(
            u32::try_from(length).is_ok(),
            "layer values are shorter than 4 GiB"
        );
        if self.next != NOWHERE {
            self.current += 1;
        }
        let fits = |chunk: &Chunk| chunk.length >= length;
        if !self.chunks.get(self.current).is_some_and(fits) {
            let bytes = vec![0_u8; length.max(CHUNK << self.current.min(4))].into_boxed_slice();
            let length = bytes.len();
            let bytes = NonNull::from(Box::leak(bytes)).cast();
            // Nothing above the current height is in use.
            self.chunks.truncate(self.current);
            self.chunks.push(Chunk { bytes, length });
        }
        let chunk = &self.chunks[self.current];
        self.next = chunk.bytes.as_ptr();
        // SAFETY: the end of the chunk's allocation.
        self.end = unsafe { self.next.add(chunk.length) };
    }
}

/// The longest text that is copied without a call.
pub const SHORT: usize = 16;

/// Copies a few bytes, without a call where they are at most [`SHORT`].
///
/// # Safety
///
/// As `std::ptr::copy_nonoverlapping`.
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: as the caller vouches.
    unsafe {
        if length > SHORT {
            std::ptr::copy_nonoverlapping(from, to, length);
        } else {
            copy_short(from, to, length);
        }
    }
}

/// The same without a call, for at most [`SHORT`] bytes.
///
/// # Safety
///
/// As `std::ptr::copy_nonoverlapping`.
#[inline]
pub unsafe fn copy_short(from: *const u8, to: *mut u8, length: usize) {
    /// Copies first and last word, which may overlap.
    #[inline]
    unsafe fn ends<T: Copy>(from: *const u8, to: *mut u8, length: usize) {
        let last = length - size_of::<T>();
        // SAFETY: both words lie within `length`, as the caller vouches.
        unsafe {
            let first = from.cast::<T>().read_unaligned();
            let second = from.add(last).cast::<T>().read_unaligned();
            to.cast::<T>().write_unaligned(first);
            to.add(last).cast::<T>().write_unaligned(second);
        }
    }
    debug_assert!(length <= SHORT);
    // SAFETY: each access lies within `length`, as the caller vouches for all of it.
    unsafe {
        if length >= 8 {
            ends::<u64>(from, to, length);
        } else if length >= 4 {
            ends::<u32>(from, to, length);
        } else if length >= 2 {
            ends::<u16>(from, to, length);
        } else if length > 0 {
            to.write(from.read());
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn texts_stay_until_they_are_popped() {
        let mut arena = Arena::default();
        let mut kept: Vec<(Mark, String, *const u8)> = Vec::new();
        for round in 0..40_usize {
            let text = "x".repeat(round * 37 % 700) + &round.to_string();
            kept.push((arena.mark(), text.clone(), arena.push(&text)));
            if round % 7 == 6 {
                for _ in 0..5 {
                    if let Some((mark, ..)) = kept.pop() {
                        arena.pop_to(mark);
                    }
                }
            }
            for (_, text, pointer) in &kept {
                // SAFETY: the text has not been popped.
                let bytes = unsafe { std::slice::from_raw_parts(*pointer, text.len()) };
                assert_eq!(bytes, text.as_bytes());
            }
        }
    }
}
