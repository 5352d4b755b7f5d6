//! Flows: put together of values, written in other languages, and rehearsed.

use std::{cell::Cell, ffi::c_char, sync::Arc};

use milieu::{
    diagnostics::{Diagnostic, Source, render},
    stream::{
        language::{
            self, Language,
            build::{Grown, Told, given},
        },
        rehearsal,
    },
    transfer::Value,
};

use super::{
    Opened, Streams,
    abi::{milieu_case, milieu_datum, milieu_told},
    compute::value_of,
    milieu_streams,
    source::within,
};
use crate::{
    abi::{MILIEU_BUSY, MILIEU_INVALID, MILIEU_WRONG_FLOW, milieu_result, milieu_text},
    call::{Failure, call, null, out},
    handle::{self, Slot, handle},
    text::read_slice,
};

/// A flow that is put together.
pub struct Flow {
    grown: Grown,
    opened: Arc<Opened>,
    /// Its text, where the other side reads it.
    text: String,
}

handle!(Flow, b"flow", "milieu_flow"; super::clock::refuse);

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_flow = Slot<Flow>;

fn wrong(mistakes: &language::build::Mistakes) -> Failure {
    Failure::new(MILIEU_WRONG_FLOW, mistakes)
}

/// Begins a flow with the events of a name.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_flow_new(
    streams: *const milieu_streams,
    name: milieu_text,
    flow: *mut *mut milieu_flow,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), name, flow) = unsafe {
            (
                handle::shared(streams)?,
                name.read("name")?,
                out(flow, "flow")?,
            )
        };
        let grown = Grown::stream(name, opened.graph().catalogue());
        *flow = handle::new(Flow {
            grown: grown.map_err(|mistakes| wrong(&mistakes))?,
            opened: Arc::clone(opened),
            text: String::new(),
        });
        Ok(())
    })
}

/// Lets the next operator read another flow too.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_flow_and(
    flow: *mut milieu_flow,
    other: *const milieu_flow,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches. One at a time: both may be the same.
        let grown = unsafe { handle::using(other)? }.grown.clone();
        // SAFETY: as above.
        let mut flow = unsafe { handle::using(flow.cast_const())? };
        if flow.grown.count() + grown.count() > INPUTS_MAX {
            return Err(Failure::new(
                MILIEU_WRONG_FLOW,
                format_args!(
                    "no operator reads more than {INPUTS_MAX} flows; let one read some of them first"
                ),
            ));
        }
        flow.grown = flow.grown.and(&grown);
        Ok(())
    })
}

/// So many flows an operator may read: so many operators a flow may have.
const INPUTS_MAX: usize = 4096;

/// Adds an operator.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_flow_then(
    flow: *mut milieu_flow,
    operation: milieu_text,
    told: *const milieu_told,
    count: usize,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (mut flow, operation, told) = unsafe {
            (
                handle::using(flow.cast_const())?,
                operation.read("operation")?,
                read_slice(told, count, "told")?,
            )
        };
        // SAFETY: as the caller vouches.
        let told = told.iter().map(|told| unsafe { told_of(told) });
        let told = told.collect::<Result<Vec<Told>, Failure>>()?;
        let catalogue = flow.opened.graph().catalogue();
        let grown = flow.grown.then(operation, told, catalogue);
        flow.grown = grown.map_err(|mistakes| wrong(&mistakes))?;
        Ok(())
    })
}

/// # Safety
///
/// What it leads to can be read.
unsafe fn told_of(told: &milieu_told) -> Result<Told, Failure> {
    // SAFETY: as the caller vouches.
    let (name, value) = unsafe { (told.name.read("name")?, value_of(&told.value)?) };
    let value = match value {
        Value::Bool(flag) => Told::from(flag),
        Value::Int(whole) => Told::from(whole),
        Value::Uint(natural) => Told::from(natural.to_string()),
        Value::Double(number) => Told::from(number),
        Value::Span(span) => Told::from(span),
        Value::Text(text) => Told::from(&*text),
        _ => {
            return Err(Failure::new(
                MILIEU_INVALID,
                "no parameter is a point in time, bytes or nothing; write it as an expression, with \
                 milieu_literal, or leave it out",
            ));
        }
    };
    Ok(match name {
        "" => value,
        name => given(name, value),
    })
}

/// The text of a flow.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_flow_text(
    flow: *const milieu_flow,
    text: *mut milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (mut flow, text) = unsafe { (handle::using(flow)?, out(text, "text")?) };
        let Some(grown) = flow.grown.flow() else {
            let count = flow.grown.count();
            return Err(Failure::new(
                MILIEU_WRONG_FLOW,
                format_args!(
                    "here are {count} flows and not one; let an operator such as `merge` read them"
                ),
            ));
        };
        let written = Language::Pipeline.write_flow(grown, flow.opened.graph().catalogue());
        flow.text = written;
        *text = milieu_text::of(&flow.text);
        Ok(())
    })
}

/// Gives a flow back.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_flow_free(flow: *mut milieu_flow) {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(flow)? });
        Ok(())
    });
}

/// Writes a value as expressions have it.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_literal(
    value: milieu_datum,
    buffer: *mut c_char,
    size: usize,
    length: *mut usize,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (value, length) = unsafe { (value_of(&value)?, length.as_mut()) };
        if let Value::Double(number) = &value {
            if !number.is_finite() {
                return Err(Failure::new(
                    MILIEU_INVALID,
                    format_args!("expressions have no number {number}"),
                ));
            }
        }
        let text = language::literal(&value);
        if !buffer.is_null() {
            if size <= text.len() {
                return Err(Failure::new(
                    MILIEU_INVALID,
                    format_args!(
                        "`buffer` has {size} bytes, and {} are needed",
                        text.len() + 1
                    ),
                ));
            }
            // SAFETY: the caller vouches for so many bytes.
            unsafe {
                text.as_ptr().copy_to(buffer.cast(), text.len());
                buffer.add(text.len()).write(0);
            }
        } else if length.is_none() {
            return Err(null("buffer"));
        }
        if let Some(length) = length {
            *length = text.len();
        }
        Ok(())
    })
}

/// A text that was written.
pub struct Writing(String);

handle!(Writing, b"writ", "milieu_writing");

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_writing = Slot<Writing>;

fn shown(source: &Source, found: &[Diagnostic]) -> Failure {
    Failure::new(MILIEU_WRONG_FLOW, render(source, found, false))
}

/// The language of a file.
pub(super) fn language_of(file: &str) -> Result<Language, Failure> {
    Language::of_file(file.as_ref()).ok_or_else(|| {
        Failure::new(
            MILIEU_INVALID,
            format_args!("`{file}` ends neither in .flow, .toml nor .xml"),
        )
    })
}

/// Writes what a file says in another language.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_writing_of_flows(
    streams: *const milieu_streams,
    file: milieu_text,
    text: milieu_text,
    language: u32,
    writing: *mut *mut milieu_writing,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), file, text, writing) = unsafe {
            (
                handle::shared(streams)?,
                file.read("file")?,
                text.read("text")?,
                out(writing, "writing")?,
            )
        };
        let into = match language {
            0 => Some(Language::Pipeline),
            1 => Some(Language::Toml),
            2 => Some(Language::Xml),
            3 => None,
            _ => {
                return Err(Failure::new(
                    MILIEU_INVALID,
                    format_args!("{language} is no milieu_language"),
                ));
            }
        };
        let from = language_of(file)?;
        let (source, catalogue) = (Source::new(file, text), opened.graph().catalogue());
        let document = from.parse(&source, catalogue);
        let document = document.map_err(|found| shown(&source, &found))?;
        let written = match into {
            Some(into) => into.write(&document, catalogue),
            None => language::write_rust(&document, catalogue),
        };
        *writing = handle::new(Writing(written));
        Ok(())
    })
}

/// The schema of flows in XML.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_writing_of_schema(
    streams: *const milieu_streams,
    writing: *mut *mut milieu_writing,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), writing) =
            unsafe { (handle::shared(streams)?, out(writing, "writing")?) };
        *writing = handle::new(Writing(language::schema(opened.graph().catalogue())));
        Ok(())
    })
}

/// What was written.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_writing_text(
    writing: *const milieu_writing,
    text: *mut milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Writing(written), text) = unsafe { (handle::shared(writing)?, out(text, "text")?) };
        *text = milieu_text::of(written);
        Ok(())
    })
}

/// Gives it back.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_writing_free(writing: *mut milieu_writing) {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(writing)? });
        Ok(())
    });
}

/// Cases that were rehearsed.
pub struct Rehearsal {
    /// What `cases` refer to.
    _texts: Vec<[String; 4]>,
    cases: Vec<milieu_case>,
}

// SAFETY: the pointers lead into texts that it owns and that never change.
unsafe impl Send for Rehearsal {}
// SAFETY: as above.
unsafe impl Sync for Rehearsal {}

handle!(Rehearsal, b"rehe", "milieu_rehearsal");

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_rehearsal = Slot<Rehearsal>;

thread_local! {
    /// Whether this thread rehearses.
    static REHEARSING: Cell<bool> = const { Cell::new(false) };
}

/// Rehearses the cases of a text.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_rehearsal_new(
    streams: *const milieu_streams,
    file: milieu_text,
    text: milieu_text,
    rehearsal: *mut *mut milieu_rehearsal,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), file, text, rehearsal) = unsafe {
            (
                handle::shared(streams)?,
                file.read("file")?,
                text.read("text")?,
                out(rehearsal, "rehearsal")?,
            )
        };
        within(opened)?;
        if REHEARSING.get() {
            return Err(Failure::new(
                MILIEU_BUSY,
                "a rehearsal waits for this callback; rehearse where nothing runs",
            ));
        }
        let _ends = Rehearsing::begin();
        let source = Source::new(file, text);
        let cases = rehearsal::cases(&source).map_err(|found| shown(&source, &[found]))?;
        let mut texts = Vec::with_capacity(cases.len());
        for case in cases {
            let found = rehearsal::rehearse(&case, opened.graph().catalogue());
            let found = found.map_err(|wrong| {
                let (source, found) = case.placed(&source, wrong);
                shown(&source, &found)
            })?;
            let difference = match found == case.lines {
                true => String::new(),
                false => case.difference(&found),
            };
            texts.push([case.title, case.lines, found, difference]);
        }
        let cases = texts
            .iter()
            .map(|[title, expected, found, difference]| milieu_case {
                title: milieu_text::of(title),
                expected: milieu_text::of(expected),
                found: milieu_text::of(found),
                difference: milieu_text::of(difference),
                passed: expected == found,
            });
        let cases = cases.collect();
        *rehearsal = handle::new(Rehearsal {
            _texts: texts,
            cases,
        });
        Ok(())
    })
}

/// That this thread rehearses, until it is dropped.
struct Rehearsing;

impl Rehearsing {
    fn begin() -> Rehearsing {
        REHEARSING.set(true);
        Rehearsing
    }
}

impl Drop for Rehearsing {
    fn drop(&mut self) {
        REHEARSING.set(false);
    }
}

/// What came of each.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_rehearsal_cases(
    rehearsal: *const milieu_rehearsal,
    cases: *mut *const milieu_case,
    count: *mut usize,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (rehearsal, cases, count) = unsafe {
            (
                handle::shared(rehearsal)?,
                out(cases, "cases")?,
                out(count, "count")?,
            )
        };
        *cases = rehearsal.cases.as_ptr();
        *count = rehearsal.cases.len();
        Ok(())
    })
}

/// Gives it back.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_rehearsal_free(rehearsal: *mut milieu_rehearsal) {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(rehearsal)? });
        Ok(())
    });
}
