//! What a thread is for: its role, whether it is time-critical, its priority
//! among those that are, and the stack that it asks for.
//!
//! Attributes are a value of 32 bytes, copied freely and valid by construction;
//! the thread information table keeps them for each thread. The names of the
//! Thread Evolution Kit (sections IV-A and IV-C) are these:
//!
//! | Paper | Here |
//! |---|---|
//! | `pthread_setschedparam(thread, SCHED_TEK, priority)` | [`Attributes::time_critical`] with that [`Priority`] |
//! | `pthread_setschedparam(thread, SCHED_OTHER, …)` | [`Attributes::not_critical`] |
//! | `pthread_set_attributes`, `pthread_get_attributes` | [`Table::set`](crate::table::Lines::set), [`get`](crate::table::Lines::get) |
//! | scheduling policy `SCHED_TEK` | [`SCHED_TEK`] |
//! | role of a thread, "gas detection" | [`Role`] |
//!
//! ```
//! use milieu_threads::attributes::{Attributes, Priority, Role, StackSize};
//!
//! let probe = Attributes::of(Role::new("gas-detection")?)
//!     .time_critical(Priority::new(-5)?)
//!     .with_stack(StackSize::of_bytes(256 * 1024)?);
//! assert!(probe.is_time_critical());
//! # Ok::<(), milieu_threads::attributes::Invalid>(())
//! ```

use core::fmt;
use core::num::{NonZeroU32, NonZeroU64};

/// The scheduling policy of time-critical threads, beside the kernel's
/// `SCHED_OTHER`, `SCHED_RR`, …; its priority is a nice value.
///
/// The kernel knows no such policy and refuses it, so a program that reaches it
/// unserved learns so at once.
pub const SCHED_TEK: i32 = 0x0054_454B;

/// Why a value is no attribute, with the way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalid {
    /// A role of so many bytes, which is more than [`Role::BYTES_MAX`].
    RoleLong(usize),
    /// A role with an empty part, or one that begins or ends with a blank.
    RolePart,
    /// A role with a character that names cannot have.
    RoleCharacter(char),
    /// A priority outside of the nice values.
    Priority(i32),
    /// A stack of so many bytes: none, or more than four tebibytes.
    Stack(u64),
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Invalid::RoleLong(bytes) => write!(
                f,
                "a role of {bytes} bytes; shorten it to {}",
                Role::BYTES_MAX
            ),
            Invalid::RolePart => f.write_str(
                "a role with an empty part; write parts with `/` between them and neither `/` \
                 nor a blank at either end, for instance `net/accept`",
            ),
            Invalid::RoleCharacter(character) => write!(
                f,
                "{character:?} in a role; names have neither control characters nor any of \
                 `%*?[]\\\"`"
            ),
            Invalid::Priority(priority) => write!(
                f,
                "priority {priority}; it is a nice value, from {} (first) to {} (last)",
                Priority::FIRST.nice(),
                Priority::LAST.nice()
            ),
            Invalid::Stack(bytes) => write!(
                f,
                "a stack of {bytes} bytes; ask for 1 to 4 TiB, or leave the size to the program"
            ),
        }
    }
}

impl core::error::Error for Invalid {}

/// What a thread is for: the rest of a name in Milieu's tree, `gas-detection` or
/// `net/accept`. The empty role is that of threads that nobody named.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(align(8))]
pub struct Role([u8; Role::BYTES_MAX]);

impl Role {
    /// The longest role: three words of a line of 64 bytes.
    pub const BYTES_MAX: usize = 24;

    /// Of a thread that nobody named.
    pub const NONE: Role = Role([0; Role::BYTES_MAX]);

    /// The role of this name; the empty one is [`Role::NONE`].
    ///
    /// # Errors
    /// A name that is too long, has an empty part, or has a character that names
    /// cannot have.
    pub fn new(name: &str) -> Result<Role, Invalid> {
        let mut role = Role::NONE;
        let Some(space) = role.0.get_mut(..name.len()) else {
            return Err(Invalid::RoleLong(name.len()));
        };
        space.copy_from_slice(name.as_bytes());
        let forbidden = |it: &char| it.is_control() || "%*?[]\\\"".contains(*it);
        if let Some(character) = name.chars().find(forbidden) {
            return Err(Invalid::RoleCharacter(character));
        }
        let is_whole = |part: &str| !part.is_empty() && part.trim() == part;
        if !name.is_empty() && !name.split('/').all(is_whole) {
            return Err(Invalid::RolePart);
        }
        Ok(role)
    }

    /// The role of a text that ends with a zero and needs no closer look, as nearly all do
    /// not.
    #[must_use]
    #[inline]
    pub(crate) fn plain(text: &[u8]) -> Option<Role> {
        let mut role = Role::NONE;
        for (into, byte) in role.0.iter_mut().zip(text) {
            match byte {
                0 => return Some(role),
                byte if is_plain(byte) => *into = *byte,
                _ => return None,
            }
        }
        (text.get(Role::BYTES_MAX) == Some(&0)).then_some(role)
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let end = self.0.iter().position(|it| *it == 0);
        let text = self.0.get(..end.unwrap_or(Role::BYTES_MAX));
        text.and_then(|it| core::str::from_utf8(it).ok())
            .unwrap_or("")
    }

    /// The bytes of the name, and zeros behind them.
    #[must_use]
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8; Role::BYTES_MAX] {
        &self.0
    }

    /// Whether nobody named it.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Role::NONE
    }

    /// The words that stand for it in the thread information table.
    #[must_use]
    #[inline]
    pub(crate) fn words(self) -> [u64; 3] {
        let [a, b, c] = [0, 8, 16].map(|at| {
            let mut word = [0; 8];
            word.copy_from_slice(&self.0[at..at + 8]);
            u64::from_ne_bytes(word)
        });
        [a, b, c]
    }

    /// The role that was written as these words by whom one trusts.
    #[must_use]
    #[inline]
    pub(crate) fn of_words(words: [u64; 3]) -> Role {
        let mut role = Role::NONE;
        role.0[..8].copy_from_slice(&words[0].to_ne_bytes());
        role.0[8..16].copy_from_slice(&words[1].to_ne_bytes());
        role.0[16..].copy_from_slice(&words[2].to_ne_bytes());
        role
    }

    /// As [`Role::of_words`], where anything may stand; nothing is no role.
    #[must_use]
    pub(crate) fn checked(words: [u64; 3]) -> Option<Role> {
        let role = Role::of_words(words);
        // Nearly all: words of letters with nothing between them.
        let length = role.0.iter().position(|it| !is_plain(it));
        let rest = role.0.split_at(length.unwrap_or(Role::BYTES_MAX)).1;
        if rest.iter().all(|it| *it == 0) {
            return Some(role);
        }
        let end = role.0.iter().position(|it| *it == 0);
        let (name, rest) = role.0.split_at(end.unwrap_or(Role::BYTES_MAX));
        let name = core::str::from_utf8(name).ok()?;
        (rest.iter().all(|it| *it == 0) && Role::new(name).is_ok()).then_some(role)
    }
}

/// Whether every name of such bytes is a role.
#[inline]
fn is_plain(byte: &u8) -> bool {
    const PLAIN: [bool; 256] = {
        let mut plain = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            let it = byte as u8;
            plain[byte] = it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.');
            byte += 1;
        }
        plain
    };
    PLAIN[*byte as usize]
}

impl fmt::Debug for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl core::str::FromStr for Role {
    type Err = Invalid;

    fn from_str(name: &str) -> Result<Role, Invalid> {
        Role::new(name)
    }
}

/// Orders time-critical threads among themselves: a nice value, −20 first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Priority(i8);

impl Priority {
    /// Before all others.
    pub const FIRST: Priority = Priority(-20);
    /// After all others.
    pub const LAST: Priority = Priority(19);

    /// The priority of this nice value.
    ///
    /// # Errors
    /// A value outside of −20 to 19.
    pub fn new(nice: i32) -> Result<Priority, Invalid> {
        match i8::try_from(nice) {
            Ok(value @ -20..=19) => Ok(Priority(value)),
            _ => Err(Invalid::Priority(nice)),
        }
    }

    /// The nice value.
    #[must_use]
    pub fn nice(self) -> i32 {
        i32::from(self.0)
    }

    /// The nice value of eight bits, if they are one.
    #[inline]
    pub(crate) fn of_bits(bits: u8) -> Option<Priority> {
        Priority::new(i32::from(bits as i8)).ok()
    }

    pub(crate) fn bits(self) -> u8 {
        self.0 as u8
    }
}

/// How much stack a thread asks for, in whole kibibytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackSize(NonZeroU32);

impl StackSize {
    /// At least so many bytes.
    ///
    /// # Errors
    /// None, or more than four tebibytes.
    pub fn of_bytes(bytes: u64) -> Result<StackSize, Invalid> {
        let kibibytes = u32::try_from(bytes.div_ceil(1024)).ok();
        let size = kibibytes.and_then(NonZeroU32::new).map(StackSize);
        size.ok_or(Invalid::Stack(bytes))
    }

    /// The size in bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        u64::from(self.0.get()) * 1024
    }

    pub(crate) fn of_kibibytes(kibibytes: u32) -> Option<StackSize> {
        NonZeroU32::new(kibibytes).map(StackSize)
    }
}

/// What is known of a thread by intent. The default is a thread of which nobody
/// said anything.
///
/// It is kept as the thread information table keeps it, so that getting and setting are
/// copies: the stack's kibibytes in the upper half of `state`, the priority in its second
/// byte, and the marks `CRITICAL` and `LAZY`. With `SAID` it is never 0, so that an `Option`
/// or a `Result` is no larger, and a free line has no attributes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    state: NonZeroU64,
    role: Role,
}

const CRITICAL: u64 = 1;
const LAZY: u64 = 8;
const SAID: NonZeroU64 = NonZeroU64::new(1 << 7).unwrap();
const PRIORITY_AT: u32 = 8;
const PRIORITY: u64 = 0xff << PRIORITY_AT;
const STACK_AT: u32 = 32;
const STACK: u64 = 0xffff_ffff << STACK_AT;

impl Default for Attributes {
    fn default() -> Attributes {
        Attributes {
            state: SAID,
            role: Role::NONE,
        }
    }
}

impl Attributes {
    /// Which bits of [`Attributes::words`]' first are of attributes.
    pub(crate) const STATE: u64 = STACK | PRIORITY | SAID.get() | LAZY | CRITICAL;

    /// As the table keeps it: `state` first, then the role.
    #[inline]
    pub(crate) fn words(&self) -> [u64; 4] {
        let [a, b, c] = self.role.words();
        [self.state.get(), a, b, c]
    }

    /// What was written as these words by whom one trusts, other bits beside
    /// [`Attributes::STATE`] not regarded; none if nothing was.
    #[inline]
    pub(crate) fn of_words([state, a, b, c]: [u64; 4]) -> Option<Attributes> {
        Some(Attributes {
            state: NonZeroU64::new(state & Attributes::STATE)?,
            role: Role::of_words([a, b, c]),
        })
    }

    /// As [`Attributes::of_words`], where anything may stand.
    pub(crate) fn checked(words: [u64; 4]) -> Option<Attributes> {
        let [state, a, b, c] = words;
        Role::checked([a, b, c])?;
        Priority::of_bits((state >> PRIORITY_AT) as u8)?;
        let is_one_thing = state & (CRITICAL | LAZY) != CRITICAL | LAZY;
        let is_said = state & SAID.get() != 0;
        Attributes::of_words(words).filter(|_| is_said && is_one_thing)
    }

    /// The same with these bits in place of those.
    fn replaced(self, those: u64, bits: u64) -> Attributes {
        Attributes {
            state: SAID | (self.state.get() & !those | bits),
            ..self
        }
    }

    /// A thread of this role, neither critical nor with a stack of its own.
    #[must_use]
    pub fn of(role: Role) -> Attributes {
        Attributes {
            role,
            ..Attributes::default()
        }
    }

    /// The same in another role.
    #[must_use]
    pub fn with_role(self, role: Role) -> Attributes {
        Attributes { role, ..self }
    }

    /// The same, but time-critical.
    #[must_use]
    pub fn time_critical(self, priority: Priority) -> Attributes {
        self.with_priority(priority).replaced(LAZY, CRITICAL)
    }

    /// The same, but not time-critical; the priority is kept for the next time.
    #[must_use]
    pub fn not_critical(self) -> Attributes {
        self.replaced(CRITICAL, 0)
    }

    /// The same, but bound to the lazy region: it stays there whether or not
    /// somebody is in the fast region, unless an urgent thread waits for it.
    #[must_use]
    pub fn lazy(self) -> Attributes {
        self.replaced(CRITICAL, LAZY)
    }

    /// The same, but not bound to the lazy region.
    #[must_use]
    pub fn not_lazy(self) -> Attributes {
        self.replaced(LAZY, 0)
    }

    /// The same with another place among critical threads, for when it is one.
    #[must_use]
    pub fn with_priority(self, priority: Priority) -> Attributes {
        self.replaced(PRIORITY, u64::from(priority.bits()) << PRIORITY_AT)
    }

    /// The same with a stack of at least this size.
    #[must_use]
    pub fn with_stack(self, size: StackSize) -> Attributes {
        self.replaced(STACK, u64::from(size.0.get()) << STACK_AT)
    }

    /// The same with whatever stack the program, or what was learned, gives it.
    #[must_use]
    pub fn without_stack(self) -> Attributes {
        self.replaced(STACK, 0)
    }

    /// What it is for.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Whether it goes to the fast region.
    #[must_use]
    pub fn is_time_critical(&self) -> bool {
        self.state.get() & CRITICAL != 0
    }

    /// Whether it stays in the lazy region.
    #[must_use]
    pub fn is_lazy(&self) -> bool {
        self.state.get() & LAZY != 0
    }

    /// Where it stands among critical threads.
    #[must_use]
    pub fn priority(&self) -> Priority {
        Priority::of_bits((self.state.get() >> PRIORITY_AT) as u8).unwrap_or_default()
    }

    /// The stack that it asks for.
    #[must_use]
    pub fn stack(&self) -> Option<StackSize> {
        StackSize::of_kibibytes((self.state.get() >> STACK_AT) as u32)
    }
}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attributes")
            .field("role", &self.role())
            .field("is_time_critical", &self.is_time_critical())
            .field("is_lazy", &self.is_lazy())
            .field("priority", &self.priority())
            .field("stack", &self.stack())
            .finish()
    }
}

const _: () = assert!(size_of::<Option<Attributes>>() == 32);

#[cfg(all(test, not(loom)))]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn roles_are_names() {
        for name in ["", "gas-detection", "gas detection", "net/accept", "größe"] {
            let role = Role::new(name).expect(name);
            assert_eq!(role.as_str(), name);
            assert_eq!(Role::of_words(role.words()), role);
            assert_eq!(Role::checked(role.words()), Some(role));
        }
        let longest = "x".repeat(Role::BYTES_MAX);
        assert_eq!(Role::new(&longest).unwrap().as_str(), longest);
        for (name, word) in [
            ("x".repeat(Role::BYTES_MAX + 1).as_str(), "shorten it to 24"),
            ("/a", "empty part"),
            ("a/", "empty part"),
            ("a//b", "empty part"),
            ("a /b", "empty part"),
            ("a%b", "'%' in a role"),
            ("a\n", "'\\n' in a role"),
            ("a\0b", "'\\0' in a role"),
        ] {
            let error = Role::new(name).expect_err(name).to_string();
            assert!(error.contains(word), "{name:?}: {error}");
        }
    }

    #[test]
    fn words_that_are_no_role_are_refused() {
        let after_the_end = u64::from_ne_bytes(*b"a\0b\0\0\0\0\0");
        let no_text = u64::from_ne_bytes([0xff, 0, 0, 0, 0, 0, 0, 0]);
        for word in [after_the_end, no_text] {
            assert_eq!(Role::checked([word, 0, 0]), None);
        }
        assert_eq!(Role::of_words([no_text, 0, 0]).as_str(), "");
    }

    #[test]
    fn bounds_are_kept_and_told() {
        assert_eq!(Priority::new(-20), Ok(Priority::FIRST));
        assert_eq!(Priority::new(19), Ok(Priority::LAST));
        for nice in [-21, 20, 300, i32::MIN] {
            assert_eq!(Priority::new(nice), Err(Invalid::Priority(nice)));
        }
        assert!(Invalid::Priority(20).to_string().contains("from -20"));
        assert_eq!(StackSize::of_bytes(1).map(StackSize::bytes), Ok(1024));
        assert_eq!(StackSize::of_bytes(0), Err(Invalid::Stack(0)));
        assert_eq!(StackSize::of_bytes(1 << 42), Err(Invalid::Stack(1 << 42)));
    }

    #[test]
    fn a_thread_that_is_critical_no_more_keeps_its_priority() {
        let critical = Attributes::default().time_critical(Priority::FIRST);
        let lazy = critical.not_critical();
        assert!(critical.is_time_critical() && !lazy.is_time_critical());
        assert_eq!(lazy.priority(), Priority::FIRST);
    }

    #[test]
    fn a_thread_is_critical_or_bound_to_be_lazy_and_never_both() {
        let lazy = Attributes::default().lazy();
        assert!(lazy.is_lazy() && !lazy.is_time_critical());
        let critical = lazy.time_critical(Priority::default());
        assert!(critical.is_time_critical() && !critical.is_lazy());
        assert!(critical.lazy().is_lazy() && !critical.lazy().is_time_critical());
        assert_eq!(lazy.not_lazy(), Attributes::default());
    }
}
