//! A byte of the hash of each of a few items, side by side.
//!
//! They are compared eight at a time, and an item is looked at only where its
//! byte agrees: one that is not wanted is rarely fetched from memory.

use crate::hash::Hash;

/// Tags of up to `8 * WORDS` items.
#[derive(Clone, Copy)]
pub struct Tags<const WORDS: usize>([u64; WORDS]);

/// Tags in a word.
const WORD: usize = size_of::<u64>();
/// A word with 1 in each byte.
const EACH: u64 = u64::MAX / 0xFF;

/// The bits of a hash that are used for nothing else.
fn tag(hash: Hash) -> u64 {
    hash.check >> (u64::BITS - 8)
}

impl<const WORDS: usize> Tags<WORDS> {
    /// The tags of these items, in their order.
    pub fn of(hashes: impl Iterator<Item = Hash>) -> Self {
        let mut tags = Tags([0; WORDS]);
        for (at, hash) in hashes.enumerate() {
            tags.set(at, hash);
        }
        tags
    }

    /// Notes the item at a place.
    pub fn set(&mut self, at: usize, hash: Hash) {
        let shift = at % WORD * 8;
        let word = &mut self.0[at / WORD];
        *word &= !(0xFF << shift);
        *word |= tag(hash) << shift;
    }

    /// The first place of which `is` says that the wanted item is there; it is
    /// asked of places that can have it, and seldom of others. Places without
    /// an item count as well.
    #[inline]
    pub fn find(&self, hash: Hash, mut is: impl FnMut(usize) -> bool) -> Option<usize> {
        let wanted = tag(hash) * EACH;
        for (word, tags) in self.0.iter().enumerate() {
            let differing = tags ^ wanted;
            // The high bit of each byte that is zero.
            let mut hits = differing.wrapping_sub(EACH) & !differing & (EACH << 7);
            while hits != 0 {
                let at = word * WORD + hits.trailing_zeros() as usize / 8;
                if is(at) {
                    return Some(at);
                }
                hits &= hits - 1;
            }
        }
        None
    }
}
