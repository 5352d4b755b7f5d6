//! The string of an environment: a pointer and a length, and nothing owned.

use std::{
    fmt,
    hash::{Hash, Hasher},
    ops::Deref,
};

/// A contextual string: pointer and length, read without a copy.
///
/// The context that owns the environment keeps the bytes alive until the next
/// switch or synchronization, which borrow the context mutably. For this reason
/// a `Text` can be neither copied nor cloned: it cannot leave its environment.
/// Take a `String` where a value must outlive a switch.
///
/// ```
/// use milieu_context::Text;
/// const GREETING: Text = Text::from_static("Hello");
/// assert_eq!(GREETING, "Hello");
/// assert_eq!(GREETING.len(), 5);
/// ```
#[repr(C)]
pub struct Text {
    pointer: *const u8,
    length: usize,
}

// SAFETY: the bytes are immutable UTF-8 that the owner keeps alive; sharing or
// sending the pointer is sharing or sending a `&str`.
unsafe impl Send for Text {}
// SAFETY: as above, there is no interior mutability.
unsafe impl Sync for Text {}

impl Text {
    /// A text that lives as long as the program, for literals and tests.
    #[must_use]
    pub const fn from_static(text: &'static str) -> Self {
        Text {
            pointer: text.as_ptr(),
            length: text.len(),
        }
    }

    /// A text from its parts.
    ///
    /// # Safety
    ///
    /// The parts are those of a `str` that outlives the environment's use of it.
    #[inline]
    pub(crate) const unsafe fn from_raw(pointer: *const u8, length: usize) -> Self {
        Text { pointer, length }
    }

    /// Pointer and length.
    #[inline]
    pub(crate) const fn parts(&self) -> (*const u8, usize) {
        (self.pointer, self.length)
    }

    /// The string itself.
    #[inline]
    #[must_use]
    pub fn as_str(&self) -> &str {
        // SAFETY: every `Text` is made from a `&str`, either `'static` or kept
        // alive by the context that owns this environment; no `Text` leaves it.
        unsafe {
            std::str::from_utf8_unchecked(std::slice::from_raw_parts(self.pointer, self.length))
        }
    }
}

impl Default for Text {
    fn default() -> Self {
        Text::from_static("")
    }
}

impl From<&'static str> for Text {
    fn from(text: &'static str) -> Self {
        Text::from_static(text)
    }
}

impl Deref for Text {
    type Target = str;
    #[inline]
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}
impl Eq for Text {}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}
impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}
impl PartialEq<String> for Text {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == other
    }
}
impl PartialEq<Text> for str {
    fn eq(&self, other: &Text) -> bool {
        self == other.as_str()
    }
}
impl PartialEq<Text> for &str {
    fn eq(&self, other: &Text) -> bool {
        *self == other.as_str()
    }
}
impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Text {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_str().cmp(other.as_str())
    }
}
impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}
