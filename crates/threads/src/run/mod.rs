//! How a program is started that is to be served without knowing of it: what the
//! preload is called, its settings in one variable of the environment, and the
//! patterns by which threads get their roles.
//!
//! ```text
//! MILIEU_THREADS=stacks=force;profile=/var/lib/milieu/player.profile;roles=/etc/player.roles
//! ```
//!
//! Settings are `key=value`, separated by `;`. What cannot be understood is told and
//! leaves the default in place: a program never fails by being served.

mod patterns;
#[cfg(all(test, not(loom)))]
mod tests;

use core::ffi::CStr;
use core::fmt;

use crate::mediator;
use crate::rung::Rung;
use crate::stack::{Mode, Policy};

pub use patterns::{Rule, RuleError, RuleErrorKind, Thread, What, load, matches, rules};

/// The file of the preload.
pub const LIBRARY: &str = "libmilieu_preload.so";

/// The variable that has the settings.
pub const VARIABLE: &CStr = c"MILIEU_THREADS";

/// The variable that names the folder of the preload.
pub const FOLDER_VARIABLE: &CStr = c"MILIEU_PRELOAD_DIR";

/// By which means threads are mediated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// The best that works here, tried when the first critical thread comes.
    #[default]
    Best,
    /// None: threads are listed and stay where they are.
    Off,
    /// This one.
    Only(Rung),
}

/// What a program is served with; texts are parts of the variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings<'t> {
    /// What is done with stacks.
    pub stacks: Policy,
    /// The file of learned sizes.
    pub profile: Option<&'t str>,
    /// Whether it is noted there where threads are created.
    pub notes_sites: bool,
    /// The file of patterns.
    pub roles: Option<&'t str>,
    /// By which means threads are mediated.
    pub rung: Choice,
    /// How they are.
    pub mediator: mediator::Settings,
    /// For how many threads there is a place in the table, at least.
    pub capacity: u32,
    /// The socket of a mediator that serves the whole device.
    pub socket: Option<&'t str>,
    /// Whether nothing is said on the standard error output.
    pub is_quiet: bool,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        Settings {
            stacks: Policy::default(),
            profile: None,
            notes_sites: false,
            roles: None,
            rung: Choice::default(),
            mediator: mediator::Settings::default(),
            capacity: 1024,
            socket: None,
            is_quiet: false,
        }
    }
}

/// A setting that is none, and what it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingError<'t> {
    /// The setting as it was written.
    pub setting: &'t str,
    /// What would be one.
    pub expected: &'static str,
}

impl fmt::Display for SettingError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SettingError { setting, expected } = self;
        write!(f, "`{setting}` in MILIEU_THREADS: expected {expected}")
    }
}

impl core::error::Error for SettingError<'_> {}

impl<'t> Settings<'t> {
    /// Reads the variable's text; tells what is wrong, and goes on.
    pub fn parse(text: &'t str, wrong: &mut dyn FnMut(SettingError<'t>)) -> Settings<'t> {
        let mut settings = Settings::default();
        let (mut asks_for_wait, mut has_most) = (false, false);
        let parts = text.split(';').map(str::trim);
        for setting in parts.filter(|it| !it.is_empty()) {
            let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
            match settings.set(key.trim(), value.trim()) {
                Ok(()) => {
                    asks_for_wait |= key.trim() == "wait";
                    has_most |= key.trim() == "turn-max";
                }
                Err(expected) => wrong(SettingError { setting, expected }),
            }
        }
        if settings.notes_sites && (settings.profile.is_none() || !settings.stacks.mode.learns()) {
            settings.notes_sites = false;
            wrong(SettingError {
                setting: "sites=yes",
                expected: "a `profile` beside it, and `stacks` to be more than `off`",
            });
        }
        if asks_for_wait && !has_most {
            settings.mediator.turn_percent_max = mediator::Settings::TURN_PERCENT_KEEPING;
        }
        settings
    }

    fn set(&mut self, key: &str, value: &'t str) -> Result<(), &'static str> {
        let stacks = &mut self.stacks;
        let mediator = &mut self.mediator;
        match key {
            "stacks" => stacks.mode = mode(value)?,
            "set-sizes" => stacks.shrinks_set_sizes = one_of(value, SIZES)?,
            "floor" => stacks.floor_bytes = bytes(value).ok_or(BYTES)?,
            "margin" => stacks.margin_percent = percent(value, 0, 250)?,
            "runs" => stacks.runs_min = count(value, 0)?,
            "threads" => stacks.threads_min = count(value, 1)?.into(),
            "profile" => self.profile = Some(path(value)?),
            "sites" => self.notes_sites = one_of(value, YES)?,
            "roles" => self.roles = Some(path(value)?),
            "rung" => self.rung = choice(value)?,
            "blocked" => mediator.leaves_while_blocked = one_of(value, BLOCKED)?,
            "wait" => mediator.lazy_wait_ns_max = wait(value)?,
            "turn" => mediator.turn_percent = percent(value, 1, 50)?,
            "turn-max" => mediator.turn_percent_max = percent(value, 1, 90)?,
            "spin" => mediator.spin_ns_max = u64::from(count(value, 1)?) * 1_000_000,
            "capacity" => self.capacity = count(value, 1)?,
            "mediator" => self.socket = Some(path(value)?),
            "quiet" => self.is_quiet = one_of(value, YES)?,
            _ => return Err(KEYS),
        }
        Ok(())
    }
}

const KEYS: &str = "`stacks`, `set-sizes`, `floor`, `margin`, `runs`, `threads`, `profile`, \
     `sites`, `roles`, `rung`, `blocked`, `wait`, `turn`, `turn-max`, `spin`, `capacity`, \
     `mediator` or `quiet`";
const BYTES: &str = "a number of bytes, perhaps with K or M";

/// The word for no, the word for yes, and both in a sentence.
type Words = (&'static str, &'static str, &'static str);

const SIZES: Words = ("keep", "shrink", "`keep` or `shrink`");
const BLOCKED: Words = ("stay", "leave", "`stay` or `leave`");
const YES: Words = ("no", "yes", "`yes` or `no`");

fn one_of(value: &str, (no, yes, expected): Words) -> Result<bool, &'static str> {
    match value {
        _ if value == no => Ok(false),
        _ if value == yes => Ok(true),
        _ => Err(expected),
    }
}

fn mode(value: &str) -> Result<Mode, &'static str> {
    value
        .parse()
        .map_err(|_| "`off`, `learn`, `tune` or `force`")
}

fn choice(value: &str) -> Result<Choice, &'static str> {
    match value {
        "auto" => Ok(Choice::Best),
        "off" => Ok(Choice::Off),
        _ => {
            let rung = Rung::ALL.into_iter().find(|it| it.name() == value);
            rung.map(Choice::Only)
                .ok_or("`auto`, `off`, `realtime`, `cgroup`, `idle` or `nice`")
        }
    }
}

fn count(value: &str, least: u32) -> Result<u32, &'static str> {
    let number = value.parse().ok().filter(|it| *it >= least);
    number.ok_or(if least == 0 {
        "a number"
    } else {
        "a number from 1 on"
    })
}

fn percent(value: &str, least: u8, most: u8) -> Result<u8, &'static str> {
    let number = value.parse().ok().filter(|it| (least..=most).contains(it));
    number.ok_or(match most {
        50 => "a percentage from 1 to 50",
        90 => "a percentage from 1 to 90",
        _ => "a percentage from 0 to 250",
    })
}

fn wait(value: &str) -> Result<Option<u64>, &'static str> {
    const EXPECTED: &str = "a number of milliseconds from 1 on, or `never`";
    if value == "never" {
        return Ok(None);
    }
    let milliseconds = count(value, 1).map_err(|_| EXPECTED)?;
    Ok(Some(u64::from(milliseconds) * 1_000_000))
}

fn path(value: &str) -> Result<&str, &'static str> {
    // Programs go to other folders, and so do their children.
    if value.starts_with('/') {
        Ok(value)
    } else {
        Err("a path from `/` on")
    }
}

/// A number of bytes, perhaps of KiB or MiB.
fn bytes(value: &str) -> Option<u64> {
    let (digits, factor) = match value.as_bytes().last()? {
        b'K' | b'k' => (value.split_at(value.len() - 1).0, 1 << 10),
        b'M' | b'm' => (value.split_at(value.len() - 1).0, 1 << 20),
        _ => (value, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}
