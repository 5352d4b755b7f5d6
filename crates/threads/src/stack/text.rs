//! Short texts in place, which are cut where they do not fit: no allocation.

use core::ffi::CStr;
use core::fmt;

/// A text of at most `N - 1` bytes; a zero follows it.
#[derive(Clone, Copy)]
pub(super) struct Text<const N: usize> {
    bytes: [u8; N],
    length: usize,
    /// Whether something did not fit.
    pub(super) is_cut: bool,
}

impl<const N: usize> Text<N> {
    pub(super) const fn new() -> Self {
        Self {
            bytes: [0; N],
            length: 0,
            is_cut: false,
        }
    }

    /// What is written by `core::fmt`, for instance `format_args!`.
    pub(super) fn of(arguments: fmt::Arguments<'_>) -> Self {
        let mut text = Self::new();
        // Writing never fails; what does not fit is cut.
        let _ = fmt::write(&mut text, arguments);
        text
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// For the kernel; none where something is missing.
    pub(super) fn as_path(&self) -> Option<&CStr> {
        if self.is_cut {
            return None;
        }
        CStr::from_bytes_with_nul(self.bytes.get(..=self.length)?).ok()
    }

    pub(super) fn push(&mut self, more: &[u8]) {
        for &byte in more {
            match self.bytes.get_mut(self.length) {
                Some(place) if self.length + 1 < N => *place = byte,
                _ => {
                    self.is_cut = true;
                    return;
                }
            }
            self.length += 1;
        }
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}
