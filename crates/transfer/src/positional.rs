//! Values of known types without names: one field after the other.
//!
//! | what | how |
//! |---|---|
//! | whole number of 16 bits and more | seven bits a byte, the lowest first; signed ones alternate, 0, −1, 1, −2 |
//! | `u8`, `i8`, `bool` | a byte |
//! | `f32`, `f64`, point in time | little-endian, the latter as nanoseconds |
//! | text, bytes, list, map | the number of bytes or entries, then these |
//! | option, private field | 0, or 1 and what it holds; a private field that is kept back is 0 |
//! | variant | its number and what it holds |
//! | [`Value`](crate::Value) | a CBOR item |

mod read;
mod typeless;
mod write;

pub(crate) use read::Reader;
pub(crate) use typeless::{read, skip};
pub(crate) use write::Writer;

/// Signed numbers so that small ones are short: 0, −1, 1, −2 are 0, 1, 2, 3.
#[inline]
pub(crate) fn zigzag(number: i64) -> u64 {
    #[allow(clippy::cast_sign_loss, reason = "the bits are what is meant")]
    let bits = ((number << 1) ^ (number >> 63)) as u64;
    bits
}

#[inline]
pub(crate) fn unzigzag(bits: u64) -> i64 {
    #[allow(clippy::cast_possible_wrap, reason = "the highest bit is clear")]
    let half = (bits >> 1) as i64;
    if bits & 1 == 0 { half } else { !half }
}
