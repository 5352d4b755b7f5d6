//! Where a context keeps the texts of entered layers: a stack of bytes.
//!
//! Texts are pushed when layers are entered and popped, all at once, when they
//! are left. Chunks never move, so a text stays where it is until then.

use std::ptr::NonNull;

/// A stack of texts.
#[derive(Default)]
pub struct Arena {
    chunks: Vec<Chunk>,
    /// The chunk in use, and how much of it is taken.
    current: usize,
    used: usize,
}

struct Chunk {
    bytes: NonNull<u8>,
    length: usize,
}

// SAFETY: a chunk is an owned allocation of plain bytes.
unsafe impl Send for Chunk {}
// SAFETY: as above; shared, it is only read.
unsafe impl Sync for Chunk {}

impl Drop for Chunk {
    fn drop(&mut self) {
        let slice = std::ptr::slice_from_raw_parts_mut(self.bytes.as_ptr(), self.length);
        // SAFETY: `Arena::grow` made it from a boxed slice of this length.
        drop(unsafe { Box::from_raw(slice) });
    }
}

/// A height of the stack.
#[derive(Clone, Copy, Default)]
pub struct Mark {
    chunk: u32,
    used: u32,
}

/// A new context's first chunk is small, since a request's context is short-lived.
const CHUNK: usize = 120;

impl Arena {
    /// The height as of now.
    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    pub fn mark(&self) -> Mark {
        Mark {
            chunk: self.current as u32,
            used: self.used as u32,
        }
    }

    /// Pops everything above a height.
    #[inline]
    pub fn pop_to(&mut self, mark: Mark) {
        self.current = mark.chunk as usize;
        self.used = mark.used as usize;
    }

    /// Pushes a text; the pointer is valid until it is popped.
    #[inline]
    pub fn push(&mut self, text: &str) -> *const u8 {
        let fits = match self.chunks.get(self.current) {
            Some(chunk) => chunk.length - self.used >= text.len(),
            None => false,
        };
        if !fits {
            self.grow(text.len());
        }
        // SAFETY: the chunk has room for the text behind what is used, and the
        // text lies elsewhere.
        unsafe {
            let place = self.chunks[self.current].bytes.as_ptr().add(self.used);
            copy(text.as_ptr(), place, text.len());
            self.used += text.len();
            place
        }
    }

    /// Goes on with a chunk that has room for `length` bytes.
    #[cold]
    fn grow(&mut self, length: usize) {
        if !self.chunks.is_empty() {
            self.current += 1;
        }
        self.used = 0;
        if self
            .chunks
            .get(self.current)
            .is_some_and(|chunk| chunk.length >= length)
        {
            return;
        }
        let bytes = vec![0_u8; length.max(CHUNK << self.current.min(4))].into_boxed_slice();
        let length = bytes.len();
        let bytes = NonNull::from(Box::leak(bytes)).cast();
        // Nothing above the current height is in use.
        self.chunks.truncate(self.current);
        self.chunks.push(Chunk { bytes, length });
    }
}

/// Copies a few bytes without a call where they are at most sixteen.
///
/// # Safety
///
/// As `std::ptr::copy_nonoverlapping`.
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: each access lies within `length`, as the caller vouches for all of it.
    unsafe {
        match length {
            8..=16 => {
                let last = length - 8;
                let (a, b) = (
                    from.cast::<u64>().read_unaligned(),
                    from.add(last).cast::<u64>().read_unaligned(),
                );
                to.cast::<u64>().write_unaligned(a);
                to.add(last).cast::<u64>().write_unaligned(b);
            }
            4..=7 => {
                let last = length - 4;
                let (a, b) = (
                    from.cast::<u32>().read_unaligned(),
                    from.add(last).cast::<u32>().read_unaligned(),
                );
                to.cast::<u32>().write_unaligned(a);
                to.add(last).cast::<u32>().write_unaligned(b);
            }
            _ => std::ptr::copy_nonoverlapping(from, to, length),
        }
    }
}

#[cfg(test)]
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
