//! Keyed hashes of names, which stand for the names in lookups.
//!
//! A name is found by 128 bits, two lanes under keys that a process draws at
//! its start. Whoever sends names from outside does not know the keys and
//! cannot choose names that agree; that two names agree by chance has, for a
//! billion names, a probability below 2⁻⁶⁸.

use std::{
    hash::{BuildHasher, RandomState},
    sync::OnceLock,
};

/// The hash of a name, of the parent of one, or of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Hash {
    pub main: u64,
    pub check: u64,
}

/// Keys of the two lanes.
#[derive(Clone, Copy)]
struct Keys {
    main: (u64, u64),
    check: (u64, u64),
}

static KEYS: OnceLock<Keys> = OnceLock::new();

const FIXED: Keys = Keys {
    main: (0x5851_F42D_4C95_7F2D, 0x1405_7B7E_F767_814F),
    check: (0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93),
};

/// Takes keys that are the same in every run, for counting instructions. Only
/// before the first name is hashed, and never where names come from outside.
pub fn fix_keys() {
    // Set already, it stays as it is, and counts differ a little.
    let _ = KEYS.set(FIXED);
}

fn keys() -> &'static Keys {
    KEYS.get_or_init(|| {
        if cfg!(any(miri, loom)) {
            return FIXED;
        }
        let state = RandomState::new();
        let key = |n: u8| state.hash_one(n) | 1;
        Keys {
            main: (key(1), key(2)),
            check: (key(3), key(4)),
        }
    })
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    #[allow(clippy::cast_possible_truncation)]
    let folded = (product as u64) ^ ((product >> 64) as u64);
    folded
}

impl Hash {
    /// The hash of one level.
    #[inline]
    pub fn level(level: &str) -> Hash {
        let keys = keys();
        let bytes = level.as_bytes();
        let mut hash = Hash {
            main: keys.main.0,
            check: keys.check.0,
        };
        let mut add = |word: u64| {
            hash.main = fold(hash.main ^ word, keys.main.1);
            hash.check = fold(hash.check ^ word, keys.check.1);
        };
        let mut rest = bytes;
        while let Some((word, after)) = rest.split_first_chunk::<8>() {
            add(u64::from_le_bytes(*word));
            rest = after;
        }
        if !rest.is_empty() {
            add(last_word(rest));
        }
        // Not before: there, a word could make up for another length.
        hash.main ^= bytes.len() as u64;
        hash.check ^= bytes.len() as u64;
        hash
    }

    /// The hash of a parent extended by one level.
    #[inline]
    #[must_use]
    pub fn then(self, level: Hash) -> Hash {
        let keys = keys();
        Hash {
            main: fold(self.main ^ level.main, keys.main.0) ^ level.main.rotate_left(29),
            check: fold(self.check ^ level.check, keys.check.0) ^ level.check.rotate_left(29),
        }
    }

    /// The hash of the parent of a first level.
    pub const ROOT: Hash = Hash {
        main: 0x243F_6A88_85A3_08D3,
        check: 0x1319_8A2E_0370_7344,
    };
}

/// Fewer than eight bytes as a number; the length is part of the hash already.
#[inline]
fn last_word(rest: &[u8]) -> u64 {
    if let (Some(low), Some(high)) = (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
        let [low, high] = [low, high].map(|half| u64::from(u32::from_le_bytes(*half)));
        return low | high << 32;
    }
    let (first, middle, last) = (rest[0], rest[rest.len() / 2], rest[rest.len() - 1]);
    u64::from(first) | u64::from(middle) << 8 | u64::from(last) << 16
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::size::size;
    use std::collections::{HashMap, HashSet};

    /// Every text of at most `length` of these characters.
    fn texts(characters: &str, length: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut last = all.clone();
        for _ in 0..length {
            let longer = last
                .iter()
                .flat_map(|text| characters.chars().map(move |c| format!("{text}{c}")));
            last = longer.collect();
            all.extend_from_slice(&last);
        }
        all
    }

    #[test]
    fn different_levels_have_different_hashes() {
        let mut levels = texts("0123456789abcdef", size(3, 2, 1));
        levels.extend(texts("ab`", size(9, 4, 2)));
        levels.sort_unstable();
        levels.dedup();
        let mut seen = HashMap::new();
        let mut lanes = [HashSet::new(), HashSet::new()];
        for level in &levels {
            let hash = Hash::level(level);
            assert_eq!(seen.insert(hash, level), None, "`{level}`");
            lanes[0].insert(hash.main);
            lanes[1].insert(hash.check);
        }
        assert!(lanes.iter().all(|lane| lane.len() == levels.len()));
    }
}
