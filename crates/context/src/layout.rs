//! Environments that are described while the program runs.
//!
//! A derived or generated Rust struct describes itself at compile time. For other
//! languages generated code hands in a table, with the offset and the kind of
//! each field. All of it is checked here, so that a wrong table is an error and
//! never a write outside the struct.
//!
//! A table that was seen is kept for as long as the program runs, once, wherever
//! it came from: a library that is unloaded takes nothing with it.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use milieu_keys::sort;

use crate::{Description, Descriptor, Kind};

/// One field of a struct that is described while the program runs.
#[derive(Clone, Debug)]
pub struct LayoutValue<'a> {
    /// The name with placeholders: `/sw/pi/%session%/language`.
    pub pattern: &'a str,
    /// Offset of the field from the start of the struct, in bytes.
    pub offset: usize,
    /// The field's representation.
    pub kind: Kind,
    /// The specification's metadata.
    pub metadata: Vec<(&'a str, &'a str)>,
}

/// A struct that is described while the program runs: its values and its size.
#[derive(Debug)]
pub struct Layout {
    values: Vec<Descriptor>,
    size: usize,
    align: usize,
}

/// Every layout that the program has handed in.
static KNOWN: Mutex<Vec<&'static Layout>> = Mutex::new(Vec::new());

/// The largest alignment of a field.
const ALIGN_MAX: usize = align_of::<u64>();

impl Layout {
    /// The layout of a struct of this size and alignment, in bytes, with these
    /// fields and no others that matter. Equal ones are one.
    ///
    /// # Errors
    ///
    /// Fails where a field is not aligned, lies outside the struct, or overlaps
    /// another.
    pub fn of(
        values: &[LayoutValue<'_>],
        size: usize,
        align: usize,
    ) -> Result<&'static Layout, LayoutError> {
        check(values, size, align)?;
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.iter().find(|it| it.is(values, size, align)) {
            return Ok(known);
        }
        let layout: &'static Layout = Box::leak(Box::new(Layout {
            values: values.iter().map(kept).collect(),
            size,
            align,
        }));
        known.push(layout);
        Ok(layout)
    }

    /// What it says of itself.
    #[must_use]
    pub fn description(&'static self) -> Description {
        Description::of_layout(std::ptr::from_ref(self).addr(), &self.values)
    }

    /// All values, in the order in which they were handed in.
    #[must_use]
    pub fn values(&self) -> &[Descriptor] {
        &self.values
    }

    /// The size of the struct in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The alignment of the struct in bytes.
    #[must_use]
    pub fn align(&self) -> usize {
        self.align
    }

    fn is(&self, values: &[LayoutValue<'_>], size: usize, align: usize) -> bool {
        let same = |(kept, value): (&Descriptor, &LayoutValue<'_>)| {
            kept.offset == value.offset
                && kept.kind == value.kind
                && kept.pattern == value.pattern
                && kept.metadata == value.metadata
        };
        self.size == size
            && self.align == align
            && self.values.len() == values.len()
            && self.values.iter().zip(values).all(same)
    }
}

fn kept(value: &LayoutValue<'_>) -> Descriptor {
    let kept = |text: &str| -> &'static str { Box::leak(text.into()) };
    let metadata = value.metadata.iter().map(|(k, v)| (kept(k), kept(v)));
    Descriptor {
        pattern: kept(value.pattern),
        offset: value.offset,
        kind: value.kind,
        metadata: metadata.collect::<Vec<_>>().leak(),
    }
}

fn check(values: &[LayoutValue<'_>], size: usize, align: usize) -> Result<(), LayoutError> {
    if !align.is_power_of_two() || align > ALIGN_MAX {
        return Err(LayoutError(format!(
            "an alignment of {align} bytes is none that a struct of such fields has"
        )));
    }
    if u32::try_from(size).is_err() {
        return Err(LayoutError(format!(
            "a struct of {size} bytes is too large; environments are below 4 GiB"
        )));
    }
    let mut order: Vec<&LayoutValue<'_>> = values.iter().collect();
    sort::by(&mut order, |a, b| a.offset.cmp(&b.offset));
    let mut end = 0;
    for value in order {
        let LayoutValue {
            pattern,
            offset,
            kind,
            ..
        } = value;
        let wrong = |what: String| Err(LayoutError(format!("{pattern}: {what}")));
        let width = kind.width();
        let own = kind.align();
        if offset % own != 0 || own > align {
            return wrong(format!(
                "offset {offset} is not aligned to {own} bytes, as a field of kind {kind:?} is"
            ));
        }
        if *offset < end {
            return wrong(format!("offset {offset} is inside another field"));
        }
        match offset.checked_add(width) {
            Some(behind) if behind <= size => end = behind,
            _ => {
                return wrong(format!(
                    "a field of {width} bytes at offset {offset} ends behind the struct, \
                     which has {size} bytes"
                ));
            }
        }
    }
    Ok(())
}

/// Why a table does not describe a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutError(String);

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}; generate the table anew from the specification",
            self.0
        )
    }
}

impl std::error::Error for LayoutError {}
