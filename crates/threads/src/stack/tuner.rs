//! How large the stack of a thread shall be: a function of what was observed of
//! threads with its key, of what the program asked for, and of a policy.
//!
//! It decides without I/O and without a clock, and keeps these rules:
//!
//! - never below the floor, never below the peak and a margin in which a signal can
//!   be delivered, never above what the program asked for;
//! - a greater peak never gives a smaller stack;
//! - only threads that were observed often enough, over several runs;
//! - a size that the program set is left alone, unless that is asked for; memory that
//!   it brought always is;
//! - a key whose stack overflowed, or was refused as too small, is left alone;
//! - unless that is asked for, nothing is made smaller as long as there is space for all,
//!   so that nobody overflows a stack that need not have been small;
//! - there is a guard page.

use core::ffi::c_int;
use core::fmt;
use core::str::FromStr;

use super::{page_bytes, signal_bytes};

/// What is done with stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Nothing: they are not even measured.
    Off,
    /// They are measured.
    Learn,
    /// Learned sizes are applied where address space is limited, in 32 bits or by
    /// `RLIMIT_AS`, and runs short.
    #[default]
    Tune,
    /// Learned sizes are applied everywhere.
    Force,
}

impl Mode {
    /// Whether stacks are measured.
    pub fn learns(self) -> bool {
        self != Self::Off
    }

    fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Learn => "learn",
            Self::Tune => "tune",
            Self::Force => "force",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// A word that is no mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeError;

impl fmt::Display for ModeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the mode of the stack tuner is `off`, `learn`, `tune` or `force`")
    }
}

impl core::error::Error for ModeError {}

impl FromStr for Mode {
    type Err = ModeError;

    fn from_str(text: &str) -> Result<Self, ModeError> {
        let all = [Self::Off, Self::Learn, Self::Tune, Self::Force];
        let found = all.into_iter().find(|mode| mode.word() == text);
        found.ok_or(ModeError)
    }
}

/// How the tuner decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What is done.
    pub mode: Mode,
    /// Whether also sizes that the program set are made smaller.
    pub shrinks_set_sizes: bool,
    /// Whether address space is limited; [`is_space_limited`](super::is_space_limited).
    pub is_space_limited: bool,
    /// No stack is made smaller than this.
    pub floor_bytes: u64,
    /// What is added to a peak, in percent of it.
    pub margin_percent: u8,
    /// What is added to a peak at least; never less than a signal needs.
    pub margin_bytes_min: u64,
    /// Sizes are multiples of this, and of a page: threads whose stacks have one size
    /// can take each other's from the C library's cache.
    pub step_bytes: u64,
    /// In how many runs of the program a thread must have been seen.
    pub runs_min: u32,
    /// How many threads with its key must have ended.
    pub threads_min: u64,
}

impl Default for Policy {
    /// On this machine, for this process.
    fn default() -> Self {
        let is_small = cfg!(target_pointer_width = "32");
        Self {
            mode: Mode::default(),
            shrinks_set_sizes: false,
            is_space_limited: super::is_space_limited(),
            floor_bytes: Policy::floor_bytes_of(is_small),
            margin_percent: 25,
            margin_bytes_min: signal_bytes(),
            step_bytes: 16 << 10,
            runs_min: 3,
            threads_min: 3,
        }
    }
}

/// What is known of the threads of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// In how many runs they were seen.
    pub runs: u32,
    /// How many have ended and were measured.
    pub threads: u64,
    /// The deepest of them.
    pub peak_bytes: u64,
    /// Whether one of them has overflowed its stack.
    pub has_overflowed: bool,
    /// Whether the C library refused a smaller stack, as where there is much
    /// thread-local storage.
    pub was_refused: bool,
}

/// What the program asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// No size; it gets this one.
    Default(u64),
    /// This size.
    Set(u64),
    /// Its own memory.
    Memory,
}

/// What becomes of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is as the program asked for.
    Keep(Reason),
    /// It is made smaller.
    Apply {
        /// Its size, as `pthread_attr_setstacksize` takes it.
        bytes: u64,
        /// Its guard, as `pthread_attr_setguardsize` takes it.
        guard_bytes: u64,
    },
}

impl Decision {
    /// Whether the thread is to be created once more, with the program's attributes,
    /// after `pthread_create` has said this. What it said then is the program's to know.
    pub fn is_to_be_repeated(self, error: c_int) -> bool {
        matches!(self, Self::Apply { .. }) && error == libc::EINVAL
    }
}

/// Why a stack is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The mode says so: nothing is applied.
    Mode,
    /// Address space is not limited here, or there is enough of it left.
    SpaceIsAmple,
    /// The program brought the memory.
    Memory,
    /// The program set the size.
    Set,
    /// One of these threads has overflowed.
    Overflowed,
    /// A smaller one was refused.
    Refused,
    /// They have not been observed often enough.
    TooFew,
    /// It would not be smaller.
    NotSmaller,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Mode => "the mode applies no sizes",
            Self::SpaceIsAmple => "address space is ample",
            Self::Memory => "the program brought the memory",
            Self::Set => "the program set the size",
            Self::Overflowed => "such a thread overflowed its stack",
            Self::Refused => "the C library refused a smaller stack",
            Self::TooFew => "not observed often enough",
            Self::NotSmaller => "it would not be smaller",
        })
    }
}

impl Policy {
    /// The floor of programs where nobody says another: of 32 bits, or of more.
    #[must_use]
    pub const fn floor_bytes_of(is_small: bool) -> u64 {
        if is_small { 128 << 10 } else { 256 << 10 }
    }

    /// What is enough for a thread with this peak: peak and margin, or the floor.
    pub fn enough_bytes(&self, peak_bytes: u64) -> u64 {
        let share = u128::from(peak_bytes) * u128::from(self.margin_percent) / 100;
        let share = u64::try_from(share).unwrap_or(u64::MAX);
        let margin = share.max(self.margin_bytes_min).max(signal_bytes());
        let bytes = peak_bytes.saturating_add(margin).max(self.floor_bytes);
        let step = self
            .step_bytes
            .max(1)
            .checked_next_multiple_of(page_bytes());
        let rounded = step.and_then(|step| bytes.checked_next_multiple_of(step));
        rounded.unwrap_or(u64::MAX)
    }

    /// Whether these threads were seen often enough to be tuned.
    pub fn is_well_observed(&self, learned: &Learned) -> bool {
        learned.runs >= self.runs_min && learned.threads >= self.threads_min.max(1)
    }

    /// What becomes of the stack of a thread that is about to be created. Whether address
    /// space runs short, [`is_space_short`](super::is_space_short), is asked last, where
    /// that decides.
    pub fn decide(
        &self,
        learned: Option<&Learned>,
        asked: Asked,
        guard_bytes: u64,
        is_space_short: impl FnOnce() -> bool,
    ) -> Decision {
        match self.applied(learned, asked) {
            Ok(_) if self.mode == Mode::Tune && !is_space_short() => {
                Decision::Keep(Reason::SpaceIsAmple)
            }
            Ok(bytes) => Decision::Apply {
                bytes,
                guard_bytes: guard_bytes.max(page_bytes()),
            },
            Err(reason) => Decision::Keep(reason),
        }
    }

    fn applied(&self, learned: Option<&Learned>, asked: Asked) -> Result<u64, Reason> {
        match self.mode {
            Mode::Off | Mode::Learn => return Err(Reason::Mode),
            Mode::Tune if !self.is_space_limited => return Err(Reason::SpaceIsAmple),
            Mode::Tune | Mode::Force => {}
        }
        let asked_bytes = match asked {
            Asked::Memory => return Err(Reason::Memory),
            Asked::Set(_) if !self.shrinks_set_sizes => return Err(Reason::Set),
            Asked::Set(bytes) | Asked::Default(bytes) => bytes,
        };
        let learned = learned.ok_or(Reason::TooFew)?;
        if learned.has_overflowed {
            return Err(Reason::Overflowed);
        }
        if learned.was_refused {
            return Err(Reason::Refused);
        }
        if !self.is_well_observed(learned) {
            return Err(Reason::TooFew);
        }
        let enough = self.enough_bytes(learned.peak_bytes);
        if enough >= asked_bytes {
            return Err(Reason::NotSmaller);
        }
        Ok(enough)
    }
}
