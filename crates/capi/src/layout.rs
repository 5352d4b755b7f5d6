//! Tables of generated code, read and checked.

use std::{
    ffi::{CStr, c_char},
    sync::{PoisonError, RwLock},
};

use milieu::context::{Descriptor, Kind, Layout, LayoutValue};

use crate::{
    abi::{MILIEU_ABI, MILIEU_ARRAY, MILIEU_WRONG_LAYOUT, milieu_layout},
    call::{Failure, null},
    text::{read_slice, read_string},
};

fn wrong(message: impl std::fmt::Display) -> Failure {
    Failure::new(MILIEU_WRONG_LAYOUT, message)
}

/// Refuses what was compiled for another version of the library.
pub fn check_abi(abi: u32, what: &str) -> Result<(), Failure> {
    if abi == MILIEU_ABI {
        return Ok(());
    }
    Err(wrong(format_args!(
        "`{what}` states the interface {abi} and this library has {MILIEU_ABI}; begin with what \
         milieu.h defines for it, and compile with the library's own header"
    )))
}

/// The tables that were read, by where they are: a program has few.
static KNOWN: RwLock<Vec<(usize, &'static Layout)>> = RwLock::new(Vec::new());

/// Reads a table. One that was read before is compared with what it was, which
/// takes no memory: a context for each request reads it again and again.
///
/// # Safety
///
/// The pointer is null, or everything that it leads to can be read, and stays as
/// it is during the call.
pub unsafe fn read(layout: *const milieu_layout) -> Result<&'static Layout, Failure> {
    // SAFETY: as the caller vouches.
    let table = unsafe { layout.as_ref() }.ok_or_else(|| null("layout"))?;
    if let Some(known) = known_at(layout.addr()) {
        // SAFETY: as the caller vouches.
        if unsafe { is(table, known) } {
            return Ok(known);
        }
    }
    // SAFETY: as the caller vouches.
    unsafe { read_anew(table) }
}

fn known_at(place: usize) -> Option<&'static Layout> {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    let found = known.iter().find(|(known, _)| *known == place);
    found.map(|(_, layout)| *layout)
}

/// Whether a table says what this one said.
///
/// # Safety
///
/// As [`read`].
unsafe fn is(table: &milieu_layout, known: &Layout) -> bool {
    let values = known.values();
    let is_alike = (table.abi, table.count as usize) == (MILIEU_ABI, values.len())
        && (table.size, table.align) == (known.size(), known.align());
    if !is_alike || table.values.is_null() || !table.values.is_aligned() {
        return false;
    }
    let same = |(place, value): (usize, &Descriptor)| {
        // SAFETY: the table has as many values, as the caller vouches.
        let given = unsafe { &*table.values.add(place) };
        let entries = value.metadata;
        given.offset == value.offset
            && kind(given.kind) == Some(value.kind)
            && given.metadata_count as usize == entries.len()
            && (entries.is_empty() || !given.metadata.is_null() && given.metadata.is_aligned())
            // SAFETY: as above.
            && unsafe { is_text(given.pattern, value.pattern) }
            && entries.iter().enumerate().all(|(place, (key, text))| {
                // SAFETY: as above.
                unsafe {
                    let given = &*given.metadata.add(place);
                    is_text(given.key, key) && is_text(given.text, text)
                }
            })
    };
    values.iter().enumerate().all(same)
}

/// # Safety
///
/// The string is null, or readable up to a zero byte.
unsafe fn is_text(string: *const c_char, text: &str) -> bool {
    // SAFETY: as the caller vouches.
    !string.is_null() && unsafe { CStr::from_ptr(string) }.to_bytes() == text.as_bytes()
}

/// # Safety
///
/// As [`read`].
#[cold]
unsafe fn read_anew(layout: &milieu_layout) -> Result<&'static Layout, Failure> {
    check_abi(layout.abi, "layout")?;
    // SAFETY: as the caller vouches.
    let values = unsafe { read_slice(layout.values, layout.count as usize, "values")? };
    let mut fields = Vec::with_capacity(values.len());
    for value in values {
        // SAFETY: as the caller vouches.
        let (pattern, metadata) = unsafe {
            let metadata = read_slice(value.metadata, value.metadata_count as usize, "metadata")?;
            (read_string(value.pattern, "pattern")?, metadata)
        };
        let mut entries = Vec::with_capacity(metadata.len());
        for entry in metadata {
            // SAFETY: as the caller vouches.
            entries.push(unsafe {
                (
                    read_string(entry.key, "key")?,
                    read_string(entry.text, "text")?,
                )
            });
        }
        fields.push(LayoutValue {
            pattern,
            offset: value.offset,
            kind: kind(value.kind).ok_or_else(|| {
                wrong(format_args!(
                    "{pattern}: there is no kind {:#x}; generate the table anew",
                    value.kind
                ))
            })?,
            metadata: entries,
        });
    }
    let read = Layout::of(&fields, layout.size, layout.align).map_err(wrong)?;
    let place = std::ptr::from_ref(layout).addr();
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    match known.iter().position(|(known, _)| *known == place) {
        Some(at) => known[at].1 = read,
        // Tables that are made on the go would be ever more.
        None if known.len() < KNOWN_MAX => known.push((place, read)),
        None => {}
    }
    Ok(read)
}

/// How many tables are known by where they are; others are read each time.
const KNOWN_MAX: usize = 64;

/// The kinds, at their numbers.
const KINDS: [Kind; 11] = [
    Kind::Bool,
    Kind::I16,
    Kind::I32,
    Kind::I64,
    Kind::U16,
    Kind::U32,
    Kind::U64,
    Kind::F32,
    Kind::F64,
    Kind::Text,
    Kind::Enum,
];

fn kind(number: u32) -> Option<Kind> {
    static ELEMENTS: [Kind; KINDS.len()] = KINDS;
    let place = (number & !MILIEU_ARRAY).checked_sub(1)? as usize;
    let element = ELEMENTS.get(place)?;
    Some(match number & MILIEU_ARRAY {
        0 => *element,
        _ => Kind::Array(element),
    })
}
