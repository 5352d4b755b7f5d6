//! Random numbers that can be had again.

use super::number_from;

/// A linear congruential generator whose output is scrambled.
pub struct Random(u64);

impl Random {
    /// Begins at `MILIEU_SEED`, or somewhere, and returns where.
    pub fn new() -> (Random, u64) {
        let somewhere = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        let seed = number_from("MILIEU_SEED", u64::from(somewhere.subsec_nanos()));
        (Random(seed), seed)
    }

    /// A number below the limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        const FACTOR: u64 = 0x5851_f42d_4c95_7f2d;
        self.0 = self.0.wrapping_mul(FACTOR).wrapping_add(1);
        let mixed = (self.0 ^ self.0 >> 32).wrapping_mul(FACTOR);
        (mixed >> 32) % limit
    }
}
