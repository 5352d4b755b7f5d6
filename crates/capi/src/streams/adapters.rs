//! Sources that have names: what `include/milieu/sources.h` declares and documents.

mod format;
mod replay;

use std::{
    ffi::{CString, c_char, c_void},
    sync::{Arc, LazyLock},
};

use milieu::stream::{Declared, Kind};
use milieu_adapters::{
    catalogue::{self, Definition, With},
    replay::RowType,
};

use super::{
    Opened, Streams,
    abi::{MILIEU_EXPRESSION, MILIEU_SPAN, milieu_attribute, milieu_parameter},
    milieu_streams,
    source::{Source, add, milieu_source},
    types::{Typed, milieu_event_type},
};
use crate::{
    abi::{MILIEU_INVALID, MILIEU_NO_SUCH, milieu_destroy, milieu_result, milieu_text},
    call::{Failure, call, null, out},
    handle,
    layout::check_abi,
    scope::User,
    text::read_slice,
};

pub use format::milieu_format;
pub use replay::*;

/// A source that has a name, as `sources.h` lays it out.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_source_definition {
    /// Its name: `machine.load`.
    pub name: *const c_char,
    /// What it does, in one sentence.
    pub summary: *const c_char,
    /// The types of its events.
    pub events: *const c_char,
    /// What the process needs besides an ordinary user's rights.
    pub needs: *const c_char,
    /// What it is told.
    pub parameters: *const milieu_parameter,
    /// How many there are.
    pub parameter_count: usize,
}

/// What a program gives a source beside its parameters, as `sources.h` lays it out.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_source_terms {
    /// `MILIEU_ABI`
    pub abi: u32,
    /// What texts become.
    pub format: milieu_format,
    /// A recording that lies in memory.
    pub content: milieu_text,
    /// What its rows become.
    pub rows: *const milieu_event_type,
}

/// All sources, as the other side reads them.
struct Known(&'static [milieu_source_definition]);

// SAFETY: what they lead to is never changed nor freed.
unsafe impl Send for Known {}
// SAFETY: as above.
unsafe impl Sync for Known {}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let all: Vec<_> = catalogue::all().map(definition).collect();
    Known(Vec::leak(all))
});

fn definition(source: &Definition) -> milieu_source_definition {
    let parameters: Vec<_> = source.parameters.iter().map(parameter).collect();
    let parameters = Vec::leak(parameters);
    milieu_source_definition {
        name: lasting(source.name),
        summary: lasting(source.summary),
        events: lasting(source.events),
        needs: lasting(source.needs),
        parameters: parameters.as_ptr(),
        parameter_count: parameters.len(),
    }
}

fn parameter(declared: &Declared) -> milieu_parameter {
    let (kind, words) = kind(declared.kind);
    let words: Vec<_> = words.iter().map(|word| lasting(word)).collect();
    let words = Vec::leak(words);
    milieu_parameter {
        name: lasting(declared.name),
        kind,
        choice_count: u32::try_from(words.len()).unwrap_or(u32::MAX),
        choices: words.as_ptr(),
        otherwise: declared.default.map_or(std::ptr::null(), lasting),
        summary: lasting(declared.summary),
        positional: declared.positional,
    }
}

/// The number of a kind, and its words.
fn kind(kind: Kind) -> (u32, &'static [&'static str]) {
    match kind {
        Kind::Flag => (1, &[]),
        Kind::Integer => (4, &[]),
        Kind::Number => (9, &[]),
        Kind::Span => (MILIEU_SPAN, &[]),
        Kind::Choice(words) => (11, words),
        Kind::Expression => (MILIEU_EXPRESSION, &[]),
        Kind::Text | Kind::Fields | Kind::Functions(_) => (10, &[]),
    }
}

/// A text with a zero byte behind it, for as long as the program runs.
fn lasting(text: &str) -> *const c_char {
    // No text of the catalogue has such a byte.
    CString::new(text).unwrap_or_default().into_raw()
}

/// Which sources there are.
///
/// # Safety
///
/// As `sources.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_sources(
    sources: *mut *const milieu_source_definition,
    count: *mut usize,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (sources, count) = unsafe { (out(sources, "sources")?, out(count, "count")?) };
        let Known(all) = &*KNOWN;
        *sources = all.as_ptr();
        *count = all.len();
        Ok(())
    })
}

/// Adds a source that has a name.
///
/// # Safety
///
/// As `sources.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_source_open(
    streams: *const milieu_streams,
    name: milieu_text,
    what: milieu_text,
    parameters: *const milieu_attribute,
    count: usize,
    source: *mut *mut milieu_source,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), name, what, parameters, source) = unsafe {
            (
                handle::shared(streams)?,
                name.read("name")?,
                what.read("what")?,
                attributes(parameters, count, "parameters")?,
                out(source, "source")?,
            )
        };
        *source = handle::new(opened_with(
            opened,
            name,
            what,
            &parameters,
            With::default(),
        )?);
        Ok(())
    })
}

/// Adds a source that has a name, with what the program gives it.
///
/// # Safety
///
/// As `sources.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_source_open_with(
    streams: *const milieu_streams,
    name: milieu_text,
    what: milieu_text,
    parameters: *const milieu_attribute,
    count: usize,
    terms: *const milieu_source_terms,
    user: *mut c_void,
    destroy: milieu_destroy,
    source: *mut *mut milieu_source,
) -> milieu_result {
    let user = User::new(user, destroy);
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), name, what, parameters, terms, source) = unsafe {
            (
                handle::shared(streams)?,
                name.read("name")?,
                what.read("what")?,
                attributes(parameters, count, "parameters")?,
                terms.as_ref().ok_or_else(|| null("terms"))?,
                out(source, "source")?,
            )
        };
        check_abi(terms.abi, "terms")?;
        // SAFETY: as the caller vouches.
        let content = unsafe { terms.content.bytes("content")? };
        // One that is empty is somewhere all the same.
        let is_there = !terms.content.bytes.is_null();
        let with = With {
            format: terms.format.map(|format| format::of(format, user)),
            content: is_there.then(|| Arc::from(content)),
            // SAFETY: as the caller vouches.
            rows: unsafe { rows(terms.rows)? },
        };
        *source = handle::new(opened_with(opened, name, what, &parameters, with)?);
        Ok(())
    })
}

/// The type that rows become, if there is one.
///
/// # Safety
///
/// It is null, or a type.
unsafe fn rows(of: *const milieu_event_type) -> Result<Option<RowType>, Failure> {
    if of.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller vouches.
    let Typed(of) = unsafe { handle::shared(of)? };
    let of: &'static _ = *of;
    Ok(Some(RowType::with(of.kind(), |fields| {
        of.record_of(fields)
    })))
}

/// A source that has a name, which is polled.
fn opened_with(
    opened: &Arc<Opened>,
    name: &str,
    what: &str,
    parameters: &[(&str, &str)],
    with: With,
) -> Result<Source, Failure> {
    let made = catalogue::make_with(what, parameters, with).map_err(|error| {
        let result = match catalogue::get(what) {
            Some(_) => MILIEU_INVALID,
            None => MILIEU_NO_SUCH,
        };
        Failure::new(result, error)
    })?;
    let mut source = add(opened, name, made.source)?;
    source.control = made.control;
    Ok(source)
}

/// Names and what is said under them.
///
/// # Safety
///
/// So many can be read, and their texts, for as long as the caller says.
unsafe fn attributes<'a>(
    given: *const milieu_attribute,
    count: usize,
    what: &str,
) -> Result<Vec<(&'a str, &'a str)>, Failure> {
    // SAFETY: as the caller vouches.
    let given = unsafe { read_slice(given, count, what)? };
    let read = |it: &milieu_attribute| {
        // SAFETY: as the caller vouches.
        unsafe { Ok((it.name.read("name")?, it.value.read("value")?)) }
    };
    given.iter().map(read).collect()
}
