//! Patterns: which threads of a program that knows nothing of roles have which.
//!
//! ```text
//! # WHAT PATTERN => ROLE [critical[=NICE]] [lazy] [stack=BYTES] [exclude]
//! start  worker_libevent => net/worker
//! name   audio-*         => audio critical=-5
//! number 3-5             => logger lazy
//! name   watchdog        => - exclude
//! ```
//!
//! The first line counts that says anything of a thread. Patterns have `*` for any
//! bytes and `?` for one. `#` begins a remark.

use core::ffi::CStr;
use core::fmt;

use super::bytes;
use crate::attributes::{Attributes, Invalid, Priority, Role, StackSize};
use crate::kernel::{self, Errno};

/// By what a line knows a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What<'t> {
    /// The symbol of its start function as its file exports it, or `FILE+0xOFFSET`, from
    /// where the file's first segment is loaded, where it exports none.
    Start(&'t str),
    /// Its name, from when it is given one; the main thread has that of its program.
    Name(&'t str),
    /// When it was created: the main thread is 0, the first that it creates is 1.
    Number(u32, u32),
}

/// A line of patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule<'t> {
    /// Of which threads it says something.
    pub what: What<'t>,
    /// What they are for.
    pub attributes: Attributes,
    /// Whether the mediator leaves them alone.
    pub is_excluded: bool,
}

/// What is known of a thread when a line is looked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Thread<'n> {
    /// The symbol of its start function.
    pub start: Option<&'n [u8]>,
    /// Its name.
    pub name: Option<&'n [u8]>,
    /// When it was created.
    pub number: Option<u32>,
}

/// Why a line says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleError<'t> {
    /// Which, from 1 on.
    pub line: usize,
    /// What stands there.
    pub text: &'t str,
    /// What is wrong with it.
    pub kind: RuleErrorKind,
}

/// What is wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleErrorKind {
    /// It has no `=>` with something on both sides.
    Arrow,
    /// It begins with another word than `start`, `name` or `number`, or a word more.
    What,
    /// What follows `number` is neither a number nor two with `-` between them.
    Number,
    /// What follows `=>` is no role.
    Role(Invalid),
    /// Something else follows the role than what may.
    Word,
    /// A priority or a stack that is none.
    Value,
}

impl fmt::Display for RuleError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, `{}`: ", self.line, self.text)?;
        match self.kind {
            RuleErrorKind::Arrow => f.write_str(
                "expected what it is about, `=>`, and a role, for instance `name audio-* => audio`",
            ),
            RuleErrorKind::What => {
                f.write_str("expected `start`, `name` or `number`, and one pattern")
            }
            RuleErrorKind::Number => f.write_str("expected a number such as `3`, or two as `3-5`"),
            RuleErrorKind::Role(invalid) => write!(f, "{invalid}; `-` is no role"),
            RuleErrorKind::Word => f.write_str(
                "expected `critical`, `critical=NICE`, `lazy`, `stack=BYTES` or `exclude` after \
                 the role",
            ),
            RuleErrorKind::Value => {
                f.write_str("expected a nice value from -20 to 19, or a stack such as `256K`")
            }
        }
    }
}

impl core::error::Error for RuleError<'_> {}

/// The lines of a file of patterns that say something, or why they do not.
pub fn rules(text: &str) -> impl Iterator<Item = Result<Rule<'_>, RuleError<'_>>> {
    (1..).zip(text.lines()).filter_map(|(line, text)| {
        let text = text.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            return None;
        }
        Some(Rule::parse(text).map_err(|kind| RuleError { line, text, kind }))
    })
}

/// The lines of a file of patterns, which stay for as long as the process lives;
/// tells which say nothing.
///
/// # Errors
/// It cannot be read (`EILSEQ` if it is no text, `EFBIG` from a mebibyte on).
pub fn load(
    path: &CStr,
    wrong: &mut dyn FnMut(RuleError<'static>),
) -> Result<&'static [Rule<'static>], Errno> {
    const BYTES_MAX: usize = 1 << 20;
    // Memory of zeros is used as it is written.
    let space = kernel::memory(BYTES_MAX)?;
    // SAFETY: there are as many bytes, which nobody else has and nobody gives back.
    let space: &'static mut [u8] =
        unsafe { core::slice::from_raw_parts_mut(space.cast().as_ptr(), BYTES_MAX) };
    let read = kernel::read_file(path, space)?;
    if read.len() == BYTES_MAX {
        return Err(Errno(libc::EFBIG));
    }
    let text = core::str::from_utf8(read).map_err(|_| Errno(libc::EILSEQ))?;
    let nothing = Rule {
        what: What::Start(""),
        attributes: Attributes::default(),
        is_excluded: false,
    };
    let said = || rules(text).filter_map(Result::ok);
    rules(text).filter_map(Result::err).for_each(wrong);
    let kept = kernel::keep_all(said().count(), nothing)?;
    kept.iter_mut()
        .zip(said())
        .for_each(|(into, rule)| *into = rule);
    Ok(kept)
}

impl<'t> Rule<'t> {
    fn parse(text: &'t str) -> Result<Rule<'t>, RuleErrorKind> {
        let (left, right) = text.split_once("=>").ok_or(RuleErrorKind::Arrow)?;
        let mut left = left.split_whitespace();
        let (what, pattern) = match (left.next(), left.next(), left.next()) {
            (Some(what), Some(pattern), None) => (what, pattern),
            (None, _, _) => return Err(RuleErrorKind::Arrow),
            _ => return Err(RuleErrorKind::What),
        };
        let what = match what {
            "start" => What::Start(pattern),
            "name" => What::Name(pattern),
            "number" => {
                let (first, last) = pattern.split_once('-').unwrap_or((pattern, pattern));
                let number = |digits: &str| digits.parse().map_err(|_| RuleErrorKind::Number);
                What::Number(number(first)?, number(last)?)
            }
            _ => return Err(RuleErrorKind::What),
        };
        let mut right = right.split_whitespace();
        let role = match right.next().ok_or(RuleErrorKind::Arrow)? {
            "-" => Role::NONE,
            name => Role::new(name).map_err(RuleErrorKind::Role)?,
        };
        let mut rule = Rule {
            what,
            attributes: Attributes::of(role),
            is_excluded: false,
        };
        right.try_for_each(|word| rule.say(word))?;
        Ok(rule)
    }

    fn say(&mut self, word: &str) -> Result<(), RuleErrorKind> {
        let value = RuleErrorKind::Value;
        let attributes = self.attributes;
        self.attributes = match word.split_once('=') {
            None if word == "critical" => attributes.time_critical(Priority::default()),
            None if word == "lazy" => attributes.lazy(),
            None if word == "exclude" => {
                self.is_excluded = true;
                attributes
            }
            Some(("critical", nice)) => {
                let nice = nice.parse().ok().and_then(|it| Priority::new(it).ok());
                attributes.time_critical(nice.ok_or(value)?)
            }
            Some(("stack", size)) => {
                let size = bytes(size).and_then(|it| StackSize::of_bytes(it).ok());
                attributes.with_stack(size.ok_or(value)?)
            }
            _ => return Err(RuleErrorKind::Word),
        };
        Ok(())
    }

    /// Whether it says something of this thread.
    #[must_use]
    pub fn is_about(&self, thread: &Thread<'_>) -> bool {
        match self.what {
            What::Start(pattern) => thread.start.is_some_and(|it| matches(pattern, it)),
            What::Name(pattern) => thread.name.is_some_and(|it| matches(pattern, it)),
            What::Number(first, last) => {
                let is_between = |it| (first..=last).contains(&it);
                thread.number.is_some_and(is_between)
            }
        }
    }
}

/// Whether a pattern with `*` and `?` is about all of this text.
#[must_use]
pub fn matches(pattern: &str, text: &[u8]) -> bool {
    let pattern = pattern.as_bytes();
    let (mut at, mut seen) = (0, 0);
    // Where the last `*` stands, and how much of the text it may have at least.
    let mut star: Option<(usize, usize)> = None;
    while let Some(byte) = text.get(seen) {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(wanted) if *wanted == b'?' || wanted == byte => {
                at += 1;
                seen += 1;
            }
            _ => match &mut star {
                Some((place, taken)) => {
                    *taken += 1;
                    (at, seen) = (*place + 1, *taken);
                }
                None => return false,
            },
        }
    }
    let rest = pattern.get(at..).unwrap_or_default();
    rest.iter().all(|it| *it == b'*')
}
