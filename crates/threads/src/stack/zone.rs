//! Zones of a stack: whether its thread wastes, is fine, or is near overflow.

use core::fmt;

use crate::table::Entry;

/// Where in its stack a thread's peak lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Zone {
    /// Most of the stack was never used.
    Low,
    /// As it should be.
    Normal,
    /// A little more, and it overflows.
    High,
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        })
    }
}

/// What is to be said of a thread's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It takes address space that it does not need.
    Wastes,
    /// Nothing.
    Fine,
    /// It may overflow in the near future, or has done so.
    NearOverflow,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Wastes => "wastes",
            Self::Fine => "fine",
            Self::NearOverflow => "near overflow",
        })
    }
}

/// The bounds of the zones, in percent of the stack: what is below the first is low,
/// what is above the second is high.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zones {
    low: u8,
    high: u8,
}

impl Default for Zones {
    fn default() -> Self {
        Self { low: 25, high: 75 }
    }
}

impl Zones {
    /// With other bounds.
    ///
    /// # Errors
    /// They are not in order, or above 100.
    pub const fn new(low: u8, high: u8) -> Result<Self, ZonesError> {
        if low <= high && high <= 100 {
            Ok(Self { low, high })
        } else {
            Err(ZonesError)
        }
    }

    /// From text: two numbers with a comma between them, as in `25,75`.
    ///
    /// # Errors
    /// It is none, they are not in order, or above 100.
    pub fn parse(text: &str) -> Result<Self, ZonesError> {
        let (low, high) = text.split_once(',').ok_or(ZonesError)?;
        let number = |text: &str| text.trim().parse().map_err(|_| ZonesError);
        Self::new(number(low)?, number(high)?)
    }

    /// In which zone the stack of a thread of the table is; `None` where it was not
    /// measured.
    pub fn of(self, entry: &Entry) -> Option<Zone> {
        let (peak, size) = (entry.stack_kib_peak.into(), entry.stack_kib.into());
        (size > 0).then(|| self.zone(peak, size))
    }

    /// In which zone of a stack of so many bytes this peak lies.
    pub fn zone(self, peak_bytes: u64, bytes: u64) -> Zone {
        let (peak, bytes) = (u128::from(peak_bytes) * 100, u128::from(bytes));
        if peak > bytes * u128::from(self.high) {
            Zone::High
        } else if peak < bytes * u128::from(self.low) {
            Zone::Low
        } else {
            Zone::Normal
        }
    }

    /// What is to be said of it, when so many bytes would be enough: a stack in its
    /// low zone that cannot be smaller is fine.
    pub fn verdict(self, peak_bytes: u64, bytes: u64, enough_bytes: u64) -> Verdict {
        match self.zone(peak_bytes, bytes) {
            Zone::High => Verdict::NearOverflow,
            Zone::Low if enough_bytes < bytes => Verdict::Wastes,
            Zone::Low | Zone::Normal => Verdict::Fine,
        }
    }
}

/// Bounds of zones that are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonesError;

impl fmt::Display for ZonesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the bounds of stack zones are two percentages in ascending order, \
             with a comma between them, as in `25,75`",
        )
    }
}

impl core::error::Error for ZonesError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attributes::Attributes;

    #[test]
    fn a_stack_that_was_not_measured_is_in_no_zone() {
        let mut entry = Entry::of(1, 2, Attributes::default());
        assert_eq!(Zones::default().of(&entry), None);
        (entry.stack_kib, entry.stack_kib_peak) = (100, 80);
        assert_eq!(Zones::default().of(&entry), Some(Zone::High));
        assert_eq!(Zones::new(10, 90).unwrap().of(&entry), Some(Zone::Normal));
    }

    #[test]
    fn bounds_belong_to_the_normal_zone() {
        let zones = Zones::default();
        let found = [0, 24, 25, 75, 76, 100, 200].map(|peak| zones.zone(peak, 100));
        use Zone::{High, Low, Normal};
        assert_eq!(found, [Low, Low, Normal, Normal, High, High, High]);
        assert_eq!(zones.zone(u64::MAX, u64::MAX), High);
    }

    #[test]
    fn a_stack_that_cannot_be_smaller_does_not_waste() {
        let zones = Zones::default();
        assert_eq!(zones.verdict(10, 100, 50), Verdict::Wastes);
        assert_eq!(zones.verdict(10, 100, 100), Verdict::Fine);
        assert_eq!(zones.verdict(90, 100, 100), Verdict::NearOverflow);
    }

    #[test]
    fn bounds_are_two_percentages_in_order() {
        assert_eq!(Zones::parse("10, 90"), Zones::new(10, 90));
        assert_eq!(Zones::parse("0,100"), Zones::new(0, 100));
        for text in [
            "", "10", "90,10", "10,101", "10,20,30", "a,b", "-1,5", "10;90",
        ] {
            assert_eq!(Zones::parse(text), Err(ZonesError), "{text}");
        }
    }
}
