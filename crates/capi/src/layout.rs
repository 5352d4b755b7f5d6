//! Tables of generated code, read and checked.

use milieu::context::{Kind, Layout, LayoutValue};

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

/// Reads a table.
///
/// # Safety
///
/// The pointer is null, or everything that it leads to can be read, and stays as
/// it is during the call.
pub unsafe fn read(layout: *const milieu_layout) -> Result<&'static Layout, Failure> {
    // SAFETY: as the caller vouches.
    let layout = unsafe { layout.as_ref() }.ok_or_else(|| null("layout"))?;
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
    Layout::of(&fields, layout.size, layout.align).map_err(wrong)
}

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
