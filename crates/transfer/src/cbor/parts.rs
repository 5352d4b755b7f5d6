//! CBOR items as they lie in their bytes.

use super::read::Reader;
use crate::error::Error;

/// A list or a map, taken apart.
pub(crate) struct Parts<'a> {
    /// What says what it is and how long.
    pub(crate) head: &'a [u8],
    /// The keys of a map.
    pub(crate) keys: Vec<&'a [u8]>,
    /// The items, or the values.
    pub(crate) parts: Vec<&'a [u8]>,
}

/// The parts of an item that begins here, if it is a list or a map of known length.
pub(crate) fn parts<'a>(
    bytes: &'a [u8],
    mode: &'static str,
    depth: usize,
) -> Result<Option<Parts<'a>>, Error> {
    let mut reader = Reader::new(bytes, mode, depth);
    let Some((is_map, count)) = reader.container()? else {
        return Ok(None);
    };
    let head = &bytes[..bytes.len() - reader.rest().len()];
    let mut keys = Vec::new();
    let mut parts = Vec::new();
    for _ in 0..count {
        if is_map {
            keys.push(reader.item()?);
        }
        parts.push(reader.item()?);
    }
    Ok(Some(Parts { head, keys, parts }))
}
