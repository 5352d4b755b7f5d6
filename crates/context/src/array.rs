//! The list of an environment: a pointer and a length, and nothing owned.

use std::{fmt, ops::Deref, ptr::NonNull, slice};

/// A contextual list: pointer and length, read without a copy.
///
/// The field of a key whose name ends in `#`: `/hosts/#` has the elements
/// `/hosts/#0`, `/hosts/#1` and so on, up to the first that is not there. Each
/// is a `T`: a number, `bool`, [`Text`](crate::Text), or an enum.
///
/// The context that owns the environment keeps the elements alive until the
/// next switch or synchronization, which borrow the context mutably. For this
/// reason an `Array` can be neither copied nor cloned: it cannot leave its
/// environment. Take a `Vec` where the elements must outlive a switch.
///
/// ```
/// use milieu_context::Array;
/// const PORTS: Array<u16> = Array::from_static(&[80, 443]);
/// assert_eq!(PORTS, [80, 443]);
/// assert_eq!(PORTS.iter().max(), Some(&443));
/// ```
#[repr(C)]
pub struct Array<T> {
    pointer: *const T,
    length: usize,
}

// SAFETY: the elements are immutable and the owner keeps them alive; sharing or
// sending the pointer is sharing or sending a `&[T]`.
unsafe impl<T: Sync> Send for Array<T> {}
// SAFETY: as above, there is no interior mutability.
unsafe impl<T: Sync> Sync for Array<T> {}

impl<T: 'static> Array<T> {
    /// An array that lives as long as the program, for literals and tests.
    #[must_use]
    pub const fn from_static(elements: &'static [T]) -> Self {
        Array {
            pointer: elements.as_ptr(),
            length: elements.len(),
        }
    }

    /// The elements.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        // SAFETY: every `Array` is made from a slice, either `'static` or kept
        // alive by the context that owns this environment; no `Array` leaves
        // it. Contexts write elements of this very type (see `Field`).
        unsafe { slice::from_raw_parts(self.pointer, self.length) }
    }
}

impl<T> Default for Array<T> {
    fn default() -> Self {
        Array {
            pointer: NonNull::dangling().as_ptr(),
            length: 0,
        }
    }
}

impl<T: 'static> Deref for Array<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T: 'static> AsRef<[T]> for Array<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<'a, T: 'static> IntoIterator for &'a Array<T> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: fmt::Debug + 'static> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_slice(), f)
    }
}

impl<T: PartialEq + 'static> PartialEq for Array<T> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}
impl<T: Eq + 'static> Eq for Array<T> {}

impl<T: PartialEq<U> + 'static, U> PartialEq<[U]> for Array<T> {
    fn eq(&self, other: &[U]) -> bool {
        self.as_slice() == other
    }
}
impl<T: PartialEq<U> + 'static, U> PartialEq<&[U]> for Array<T> {
    fn eq(&self, other: &&[U]) -> bool {
        self.as_slice() == *other
    }
}
impl<T: PartialEq<U> + 'static, U, const N: usize> PartialEq<[U; N]> for Array<T> {
    fn eq(&self, other: &[U; N]) -> bool {
        self.as_slice() == other
    }
}
