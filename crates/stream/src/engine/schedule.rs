//! Schedules: what becomes of frames, decided by a test.

use milieu_transfer::{Span, Time};

use super::{Channel, PeerId};

/// A frame that sets out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// From which port.
    pub from: PeerId,
    /// To which port.
    pub to: PeerId,
    /// On which channel.
    pub channel: Channel,
    /// Its number there.
    pub sequence: u64,
    /// When it sets out.
    pub time: Time,
}

/// Decides what becomes of each frame: after how long it arrives. One that
/// arrives several times is doubled, one that never does is lost.
///
/// Closures are schedules, so that a test can decide frame by frame:
///
/// ```
/// use milieu_stream::engine::{Hub, Passage};
/// use milieu_transfer::Span;
///
/// // Every third frame is lost.
/// let hub = Hub::scheduled(|passage: &Passage| match passage.sequence % 3 {
///     0 => vec![],
///     _ => vec![Span::from_seconds(1)],
/// });
/// # drop(hub);
/// ```
pub trait Schedule: Send {
    /// After how long the frame arrives, once for each time.
    fn pass(&mut self, passage: &Passage) -> Vec<Span>;
}

impl<F: FnMut(&Passage) -> Vec<Span> + Send> Schedule for F {
    fn pass(&mut self, passage: &Passage) -> Vec<Span> {
        self(passage)
    }
}

/// A schedule by chance, which a seed repeats.
#[derive(Clone, Copy, Debug)]
pub struct Chances {
    /// Where the chance comes from.
    pub seed: u64,
    /// How many frames of 1000 are lost.
    pub lost: u16,
    /// How many of 1000 arrive twice.
    pub doubled: u16,
    /// The longest way. Frames overtake each other on ways of different length.
    pub way_max: Span,
}

impl Chances {
    /// A number below this one.
    fn below(&mut self, bound: u64) -> u64 {
        // SplitMix64, after Steele, Lea and Flood, "Fast splittable pseudorandom
        // number generators" (2014).
        self.seed = self.seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.seed;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (bits ^ (bits >> 31)) % bound.max(1)
    }

    fn way(&mut self) -> Span {
        let way = self.below(self.way_max.nanoseconds().max(0) as u64 + 1);
        Span::from_nanoseconds(way as i64)
    }
}

impl Schedule for Chances {
    fn pass(&mut self, _: &Passage) -> Vec<Span> {
        if self.below(1000) < u64::from(self.lost) {
            return Vec::new();
        }
        let mut ways = vec![self.way()];
        if self.below(1000) < u64::from(self.doubled) {
            ways.push(self.way());
        }
        ways
    }
}
