//! Texts of the other side.

use std::{
    ffi::{CStr, c_char},
    sync::{Mutex, PoisonError},
};

use crate::{
    abi::{MILIEU_INVALID, MILIEU_NOT_UTF8, milieu_text},
    call::{Failure, null},
};

impl milieu_text {
    /// No text.
    pub(crate) const EMPTY: milieu_text = milieu_text {
        bytes: std::ptr::null(),
        length: 0,
    };

    /// A text that the library owns.
    pub(crate) fn of(text: &str) -> Self {
        milieu_text {
            bytes: text.as_ptr().cast(),
            length: text.len(),
        }
    }

    /// A text that the library owns; without bytes where there is none.
    #[cfg(feature = "store")]
    pub(crate) fn of_some(text: Option<&str>) -> Self {
        text.map_or(milieu_text::EMPTY, milieu_text::of)
    }

    /// Reads a text; `what` is what the caller calls it.
    ///
    /// # Safety
    ///
    /// The bytes are readable, and stay as they are, for as long as the caller says.
    #[inline]
    pub(crate) unsafe fn read<'a>(self, what: &str) -> Result<&'a str, Failure> {
        // SAFETY: as the caller vouches.
        unsafe { self.read_often(what) }
    }

    /// The same where a call would be half of what it costs.
    ///
    /// # Safety
    ///
    /// As [`read`](milieu_text::read).
    #[inline(always)]
    pub(crate) unsafe fn read_often<'a>(self, what: &str) -> Result<&'a str, Failure> {
        if self.length > SHORT {
            // SAFETY: as the caller vouches.
            return unsafe { self.read_long(what) };
        }
        // SAFETY: as the caller vouches.
        let bytes = unsafe { self.bytes(what)? };
        if is_ascii(bytes) {
            // SAFETY: ASCII is UTF-8. This is known sooner, and nearly always so.
            return Ok(unsafe { std::str::from_utf8_unchecked(bytes) });
        }
        std::str::from_utf8(bytes).map_err(|error| not_utf8(what, error))
    }

    /// The same of one that takes a call to look at, or is said to be longer than any.
    ///
    /// # Safety
    ///
    /// As [`read`](milieu_text::read).
    #[inline(never)]
    unsafe fn read_long<'a>(self, what: &str) -> Result<&'a str, Failure> {
        // SAFETY: as the caller vouches.
        let bytes = unsafe { self.bytes(what)? };
        std::str::from_utf8(bytes).map_err(|error| not_utf8(what, error))
    }

    /// What may be a text.
    ///
    /// # Safety
    ///
    /// As [`read`](milieu_text::read).
    #[inline]
    pub(crate) unsafe fn bytes<'a>(self, what: &str) -> Result<&'a [u8], Failure> {
        // SAFETY: as the caller vouches.
        unsafe { read_slice(self.bytes.cast::<u8>(), self.length, what) }
    }
}

/// How many bytes a text has at most that is looked at without a call.
const SHORT: usize = 2 * size_of::<u64>();

/// All bytes of a short text, in two words; some of them are in both.
#[inline]
fn words(bytes: &[u8]) -> Option<[u64; 2]> {
    let ends = (bytes.first_chunk(), bytes.last_chunk());
    if let (Some(first), Some(last)) = ends {
        let words = [*first, *last].map(u64::from_ne_bytes);
        return (bytes.len() <= SHORT).then_some(words);
    }
    let ends = (bytes.first_chunk(), bytes.last_chunk());
    if let (Some(first), Some(last)) = ends {
        return Some([*first, *last].map(|word| u32::from_ne_bytes(word).into()));
    }
    Some(match *bytes {
        [] => [0; 2],
        [only] => [only.into(), 0],
        [first, .., last] => [first.into(), u64::from(bytes[1]) << 8 | u64::from(last)],
    })
}

/// Whether a text is ASCII; without a call where it is short.
#[inline]
fn is_ascii(bytes: &[u8]) -> bool {
    const NOT: u64 = u64::from_ne_bytes([0x80; 8]);
    words(bytes).map_or_else(|| bytes.is_ascii(), |[a, b]| (a | b) & NOT == 0)
}

/// Whether texts are the same; without a call where they are short.
#[inline]
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len()
        && match (words(a), words(b)) {
            (Some(a), Some(b)) => a == b,
            _ => a == b,
        }
}

/// Reads a string that ends in a zero byte.
///
/// # Safety
///
/// It is null, or readable up to a zero byte for as long as the caller says.
pub unsafe fn read_string<'a>(string: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if string.is_null() {
        return Err(null(what));
    }
    // SAFETY: as the caller vouches.
    let string = unsafe { CStr::from_ptr(string) };
    string.to_str().map_err(|error| not_utf8(what, error))
}

#[cold]
fn not_utf8(what: &str, error: std::str::Utf8Error) -> Failure {
    Failure::new(
        MILIEU_NOT_UTF8,
        format_args!("`{what}` is not UTF-8: {error}; convert it first"),
    )
}

/// Reads what an array of the other side holds. Null, an address that such elements
/// cannot have and more of them than memory can hold are refused: whoever hands in
/// -1 is told, and no slice is made of it.
///
/// # Safety
///
/// The elements are readable, and stay as they are, for as long as the caller says.
#[inline]
pub unsafe fn read_slice<'a, T>(
    elements: *const T,
    count: usize,
    what: &str,
) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    let count_max = isize::MAX as usize / size_of::<T>();
    if elements.is_null() || !elements.is_aligned() || count > count_max {
        return Err(no_array::<T>(elements, count, what));
    }
    // SAFETY: as the caller vouches, and there can be as many there.
    Ok(unsafe { std::slice::from_raw_parts(elements, count) })
}

/// Why there can be no such array.
#[cold]
fn no_array<T>(elements: *const T, count: usize, what: &str) -> Failure {
    if elements.is_null() {
        return null(what);
    }
    if !elements.is_aligned() {
        let align = align_of::<T>();
        let message = format!(
            "`{what}` begins at {elements:p}, where no such element can be: its address is a \
             multiple of {align}; hand in the address of the first element"
        );
        return Failure::new(MILIEU_INVALID, message);
    }
    let message = format!(
        "`{what}` is said to have a length of {count}, for which there is no memory; hand in how \
         many there are"
    );
    Failure::new(MILIEU_INVALID, message)
}

/// The identifiers of layers that the program has used, each once, in their order.
static IDENTIFIERS: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// An identifier that stays where it is. Coordinators keep the identifiers of
/// layers for as long as they live as well.
#[cold]
pub fn interned(id: &str) -> &'static str {
    let mut known = IDENTIFIERS.lock().unwrap_or_else(PoisonError::into_inner);
    match known.binary_search(&id) {
        Ok(place) => known[place],
        Err(place) => {
            let id: &'static str = Box::leak(id.into());
            known.insert(place, id);
            id
        }
    }
}

/// Identifiers that a context has used, by where the program has them.
pub struct Identifiers {
    /// Each with its address, which is never null.
    known: [(usize, &'static str); PLACES],
}

const PLACES: usize = 8;

/// Where no text is, and not null either.
const NOTHING_AT: usize = 1;

impl Default for Identifiers {
    #[inline]
    fn default() -> Self {
        Identifiers {
            known: std::array::from_fn(|_| (NOTHING_AT, "")),
        }
    }
}

#[inline]
fn place_of(address: usize) -> usize {
    (address ^ (address >> 4)) % PLACES
}

impl Identifiers {
    /// The identifier that stays where it is. Whoever names a layer often does
    /// so from one place, so that a look there and a comparison are enough.
    ///
    /// # Safety
    ///
    /// As [`read`](milieu_text::read).
    #[inline(always)]
    pub unsafe fn get(&mut self, id: milieu_text) -> Result<&'static str, Failure> {
        let address = id.bytes.addr();
        let (known_at, known) = self.known[place_of(address)];
        if known_at == address && known.len() == id.length {
            // SAFETY: as the caller vouches. Nothing is known at null, and a length that a
            // text has is one that can be.
            let bytes = unsafe { std::slice::from_raw_parts(id.bytes.cast(), id.length) };
            if same(known.as_bytes(), bytes) {
                return Ok(known);
            }
        }
        // SAFETY: as the caller vouches.
        unsafe { self.look_up(id) }
    }

    /// The same where another identifier has the place. The next places are for
    /// such, so that two which are used in turns don't drive each other out: all
    /// threads share what [`interned`] locks.
    ///
    /// # Safety
    ///
    /// As [`get`](Identifiers::get).
    #[inline(never)]
    unsafe fn look_up(&mut self, id: milieu_text) -> Result<&'static str, Failure> {
        // SAFETY: as the caller vouches.
        let bytes = unsafe { id.bytes("id")? };
        if bytes.is_empty() {
            return Ok("");
        }
        let address = id.bytes.addr();
        let home = place_of(address);
        let mut place = home;
        for step in 0..PLACES {
            let next = (home + step) % PLACES;
            let (known_at, known) = self.known[next];
            if known_at == address && known.as_bytes() == bytes {
                return Ok(known);
            }
            // Where the program had another text before, or nothing is yet.
            if known_at == address || known_at == NOTHING_AT {
                place = next;
                break;
            }
        }
        // SAFETY: as the caller vouches.
        let interned = interned(unsafe { id.read("id")? });
        self.known[place] = (address, interned);
        Ok(interned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts lie `step` bytes apart.
    fn identifiers_at(step: usize, count: usize) -> (Vec<u8>, Vec<milieu_text>) {
        let bytes = vec![b'a'; step * count + count];
        let texts = (0..count).map(|i| milieu_text {
            bytes: bytes[i * step..].as_ptr().cast(),
            length: i + 1,
        });
        let texts = texts.collect();
        (bytes, texts)
    }

    fn known(identifiers: &Identifiers, id: milieu_text) -> bool {
        let mut known = identifiers.known.iter();
        known.any(|(at, text)| *at == id.bytes.addr() && text.len() == id.length)
    }

    #[test]
    fn identifiers_of_one_place_do_not_drive_each_other_out() {
        let (_bytes, texts) = identifiers_at(128, PLACES);
        let homes: Vec<usize> = texts.iter().map(|it| place_of(it.bytes.addr())).collect();
        assert!(homes.iter().all(|home| *home == homes[0]), "{homes:?}");
        let mut identifiers = Identifiers::default();
        for _ in 0..2 {
            for (i, text) in texts.iter().enumerate() {
                // SAFETY: `_bytes` are there until the end.
                let id = unsafe { identifiers.get(*text) }.ok().expect("it is UTF-8");
                assert_eq!(id, "a".repeat(i + 1));
            }
            assert!(texts.iter().all(|text| known(&identifiers, *text)));
        }
    }

    #[test]
    fn more_identifiers_than_places_are_found_as_well() {
        let (_bytes, texts) = identifiers_at(16, 3 * PLACES);
        let mut identifiers = Identifiers::default();
        for _ in 0..2 {
            for (i, text) in texts.iter().enumerate() {
                // SAFETY: `_bytes` are there until the end.
                let id = unsafe { identifiers.get(*text) }.ok().expect("it is UTF-8");
                assert_eq!(id, "a".repeat(i + 1));
            }
        }
    }

    #[test]
    fn another_text_at_the_same_address_is_another_identifier() {
        let mut bytes = *b"one";
        let mut identifiers = Identifiers::default();
        for text in ["one", "two", "one"] {
            bytes.copy_from_slice(text.as_bytes());
            let id = milieu_text {
                bytes: bytes.as_ptr().cast(),
                length: bytes.len(),
            };
            // SAFETY: `bytes` stay as they are meanwhile.
            let id = unsafe { identifiers.get(id) }.ok().expect("it is UTF-8");
            assert_eq!(id, text);
        }
        let taken = identifiers.known.iter().filter(|it| it.0 != NOTHING_AT);
        assert_eq!(taken.count(), 1);
    }

    #[test]
    fn short_texts_are_compared_and_checked_as_all_are() {
        for length in 0..20 {
            let text: Vec<u8> = (b'a'..).take(length).collect();
            assert!(is_ascii(&text) && same(&text, &text.clone()));
            assert!(!same(&text, &text[..length.saturating_sub(1)]) || length == 0);
            for place in 0..length {
                let mut other = text.clone();
                other[place] ^= 1;
                assert!(!same(&text, &other), "{length} bytes, another at {place}");
                other[place] = 0x80;
                assert!(!is_ascii(&other), "{length} bytes, no ASCII at {place}");
            }
        }
    }
}
