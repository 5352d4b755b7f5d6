//! Events, as the other side reads them.

use std::{
    ffi::c_void,
    sync::{Mutex, PoisonError},
};

use milieu::transfer::{Event, Quality, Rights, Row, Selection, Slot as Cell, Span, Time, Value};

use super::{
    abi::{
        MILIEU_BYTES, MILIEU_JSON, MILIEU_NOW, MILIEU_SPAN, MILIEU_TIME, milieu_content,
        milieu_datum, milieu_header, milieu_quality,
    },
    lent::{Lend, Standing},
    types::{EventType, Record, Typed, handle_of, milieu_event_type},
};
use crate::{
    abi::{MILIEU_BUSY, MILIEU_INVALID, MILIEU_NO_SUCH, MILIEU_UNFIT, milieu_result, milieu_text},
    call::{Failure, call, out},
    handle::{self, Lending, Slot, handle},
};

/// An event that the other side looks at.
pub struct Seen {
    /// It is there for as long as the handle is good.
    event: *const Event,
    /// The event itself, where the other side has kept it.
    kept: Option<Box<Event>>,
    /// What reading it took. What is learnt is good for the next event too.
    reading: Option<Box<Reading>>,
}

#[derive(Default)]
struct Reading {
    fields: Vec<Field>,
    /// The event as one of these types.
    adopted: Vec<Event>,
    text: String,
}

/// How a field is read.
struct Field {
    path: String,
    selection: Selection,
    row: Row,
}

// SAFETY: the pointer is used while whoever lends the event has it.
unsafe impl Send for Seen {}
// SAFETY: as above.
unsafe impl Sync for Seen {}

handle!(
    Seen,
    b"evnt",
    "milieu_event",
    "was freed, or was lent and is not any more; keep it by milieu_event_keep"
);

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_event = Slot<Seen>;

/// Lends one event after the other.
pub(crate) struct Lender(Lending<Seen>);

impl Lender {
    pub fn new() -> Self {
        Lender(Lending::new(Seen {
            event: std::ptr::null(),
            kept: None,
            reading: None,
        }))
    }

    /// Lends an event until [`recall`](Lender::recall), up to which it has to be there.
    #[inline]
    pub fn lend(&self, event: &Event) -> *const milieu_event {
        let handle = self.0.lend(|seen| {
            seen.event = event;
            if let Some(reading) = &mut seen.reading {
                reading.adopted.clear();
            }
        });
        handle.cast_const()
    }

    #[inline]
    pub fn recall(&self) {
        self.0.recall();
    }
}

/// Lenders of events, and of what else a callback is handed with each, for one that several
/// threads may run at once: those that nobody uses now.
pub(crate) struct Lenders<T: Lend>(Mutex<Vec<(Lender, Standing<T>)>>);

impl<T: Lend> Default for Lenders<T> {
    fn default() -> Self {
        Lenders(Mutex::default())
    }
}

impl<T: Lend> Lenders<T> {
    /// Lends an event to a callback, and what else that has to lend.
    pub fn lend<R>(
        &self,
        event: &Event,
        callback: impl FnOnce(*const milieu_event, &mut Standing<T>) -> R,
    ) -> R {
        let free = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lenders = free().pop();
        let (lender, mut standing) = lenders.unwrap_or_else(|| (Lender::new(), Standing::new()));
        let result = callback(lender.lend(event), &mut standing);
        lender.recall();
        free().push((lender, standing));
        result
    }
}

impl Seen {
    fn event(&self) -> &Event {
        // SAFETY: whoever lends it has it until the handle is recalled; a kept one
        // is in its box.
        unsafe { &*self.event }
    }
}

/// The event that a handle leads to.
///
/// # Safety
///
/// As the header says of handles.
#[inline]
pub(crate) unsafe fn find<'a>(event: *const milieu_event) -> Result<&'a Event, Failure> {
    // SAFETY: as the caller vouches.
    let seen = unsafe { handle::shared(event)? };
    // SAFETY: as in `Seen::event`.
    Ok(unsafe { &*seen.event })
}

/// An event that the other side has for as long as it likes.
pub(crate) fn kept(event: Event) -> *mut milieu_event {
    let event = Box::new(event);
    handle::new(Seen {
        event: &raw const *event,
        kept: Some(event),
        reading: None,
    })
}

/// When something was so, and how well that is known.
pub(crate) struct When {
    pub time: Option<Time>,
    pub quality: Option<Quality>,
}

impl When {
    /// # Safety
    ///
    /// It is null, or everything that it leads to can be read.
    #[inline]
    pub unsafe fn read(quality: *const milieu_quality) -> Result<When, Failure> {
        // SAFETY: as the caller vouches.
        match unsafe { quality.as_ref() } {
            None => Ok(When {
                time: None,
                quality: None,
            }),
            // SAFETY: as the caller vouches.
            Some(quality) => unsafe { When::of(quality) },
        }
    }

    /// # Safety
    ///
    /// Its text can be read.
    unsafe fn of(given: &milieu_quality) -> Result<When, Failure> {
        // SAFETY: as the caller vouches.
        let failure = unsafe { given.failure.read("failure")? };
        if given.accuracy.is_nan() {
            return Err(Failure::new(
                MILIEU_INVALID,
                "`accuracy` is no number; say -1 where it is not known",
            ));
        }
        let quality = Quality {
            age: (given.age_ns != 0).then(|| Span::from_nanoseconds(given.age_ns)),
            accuracy: (given.accuracy >= 0.0).then_some(given.accuracy),
            failure: (!failure.is_empty()).then(|| failure.into()),
        };
        let time = (given.time_ns != MILIEU_NOW).then(|| Time::from_nanoseconds(given.time_ns));
        Ok(When {
            time,
            quality: (quality != Quality::default()).then_some(quality),
        })
    }
}

/// What every event has.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_event_header(
    event: *const milieu_event,
    header: *mut milieu_header,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (event, into) = unsafe { (find(event)?, out(header, "header")?) };
        let header = event.header();
        let quality = header.quality.as_deref();
        let failure = quality.and_then(|quality| quality.failure.as_deref());
        *into = milieu_header {
            name: milieu_text::of(header.stream.name.as_str()),
            origin: milieu_text::of(&header.stream.origin.0),
            incarnation: header.stream.incarnation,
            sequence: header.sequence,
            quality: milieu_quality {
                time_ns: header.time.nanoseconds(),
                age_ns: quality
                    .and_then(|quality| quality.age)
                    .map_or(0, Span::nanoseconds),
                accuracy: quality.and_then(|quality| quality.accuracy).unwrap_or(-1.0),
                failure: failure.map_or(milieu_text::EMPTY, milieu_text::of),
            },
        };
        Ok(())
    })
}

/// The type of an event's body, if it is one of this program's.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_event_type_of(
    event: *const milieu_event,
    of: *mut *const milieu_event_type,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (event, of) = unsafe { (find(event)?, out(of, "type")?) };
        let record = event.get::<Record>();
        *of = record.map_or(std::ptr::null(), |record| handle_of(record.of()));
        Ok(())
    })
}

/// The body of an event, as a struct.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_event_body(
    event: *const milieu_event,
    of: *const milieu_event_type,
    body: *mut *const c_void,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (found, Typed(of), body) =
            unsafe { (find(event)?, handle::shared(of)?, out(body, "body")?) };
        *body = match body_of(found, of) {
            Some(start) => start.cast(),
            // SAFETY: as the caller vouches.
            None => unsafe { adopted(event, of)? }.cast(),
        };
        Ok(())
    })
}

/// Where the struct is, if the event has one of this type.
#[inline]
fn body_of(event: &Event, of: &EventType) -> Option<*const u8> {
    event.get::<Record>()?.seen_as(of)
}

/// The struct that an event becomes which has come as something else.
///
/// # Safety
///
/// As [`find`].
#[cold]
unsafe fn adopted(
    event: *const milieu_event,
    of: &'static EventType,
) -> Result<*const u8, Failure> {
    // SAFETY: as the caller vouches.
    let mut seen = unsafe { handle::using(event)? };
    let known = seen.reading.iter().flat_map(|reading| &reading.adopted);
    if let Some(start) = known.into_iter().find_map(|event| body_of(event, of)) {
        return Ok(start);
    }
    let made = seen.event().get::<Record>();
    if let Some((field, ours, theirs)) = made.and_then(|record| record.of().differs(of)) {
        return Err(Failure::new(
            MILIEU_UNFIT,
            format_args!("`{field}` of this event is in {ours}, and not in {theirs}"),
        ));
    }
    let adopted = of.kind().adopt(seen.event(), Rights::ALL);
    let adopted = adopted.map_err(|error| {
        let header = seen.event().header();
        Failure::new(
            MILIEU_UNFIT,
            format_args!("an event of {}: {error}", header.stream.name.as_str()),
        )
    })?;
    let start = body_of(&adopted, of).ok_or_else(|| {
        Failure::new(
            MILIEU_UNFIT,
            "the event is of another type of the same name",
        )
    })?;
    seen.reading.get_or_insert_default().adopted.push(adopted);
    Ok(start)
}

/// The right to read private fields.
const READ_PRIVATE: u32 = 1;

/// The rights of these flags.
fn rights_of(flags: u32) -> Result<Rights, Failure> {
    match flags {
        0 => Ok(Rights::NONE),
        READ_PRIVATE => Ok(Rights::READ),
        _ => Err(Failure::new(
            MILIEU_INVALID,
            format_args!("{flags} says no rights; they are 0 or MILIEU_READ_PRIVATE"),
        )),
    }
}

/// The body with these rights, in which nothing is private any more.
fn opened(event: &Event, rights: Rights) -> Result<Value, Failure> {
    let value = event.value(Rights::ALL);
    let value = value.map_err(|error| Failure::new(MILIEU_UNFIT, error))?;
    Ok(match rights.may_read() {
        Some(right) => value.opened(right),
        None => value,
    })
}

/// A field of an event, by its name.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_event_get(
    event: *const milieu_event,
    path: milieu_text,
    datum: *mut milieu_datum,
) -> milieu_result {
    // SAFETY: as the caller vouches.
    call(|| unsafe { get(event, path, Rights::NONE, datum) })
}

/// The same with rights.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_event_get_with(
    event: *const milieu_event,
    path: milieu_text,
    rights: u32,
    datum: *mut milieu_datum,
) -> milieu_result {
    // SAFETY: as the caller vouches.
    call(|| unsafe { get(event, path, rights_of(rights)?, datum) })
}

/// # Safety
///
/// As `streams.h` says.
unsafe fn get(
    event: *const milieu_event,
    path: milieu_text,
    rights: Rights,
    datum: *mut milieu_datum,
) -> Result<(), Failure> {
    // SAFETY: as the caller vouches.
    let (mut seen, path, datum) = unsafe {
        (
            handle::using(event)?,
            path.read("path")?,
            out(datum, "datum")?,
        )
    };
    let event = seen.event().clone();
    let reading = &mut **seen.reading.get_or_insert_default();
    let place = match reading.fields.iter().position(|field| field.path == path) {
        Some(place) => place,
        None => {
            reading.fields.push(Field::new(path)?);
            reading.fields.len() - 1
        }
    };
    let Field { selection, row, .. } = &mut reading.fields[place];
    if rights.may_read().is_some() {
        row.read_value(selection, &opened(&event, rights)?);
    }
    // What is not of the body is found in the event.
    if rights.may_read().is_none() || matches!(row.slot(0), Cell::Missing) {
        event.read(selection, row);
    }
    *datum = match row.slot(0) {
        Cell::Value(value) => {
            reading.text = json(value)?;
            datum_of(MILIEU_JSON, text(&reading.text))
        }
        cell => said(&cell),
    };
    Ok(())
}

impl Field {
    fn new(path: &str) -> Result<Field, Failure> {
        let mut selection = Selection::default();
        let added = selection.add(path);
        added.map_err(|error| Failure::new(MILIEU_NO_SUCH, error))?;
        Ok(Field {
            path: path.to_owned(),
            selection,
            row: Row::default(),
        })
    }
}

fn text(text: &str) -> milieu_content {
    milieu_content {
        text: milieu_text::of(text),
    }
}

fn datum_of(kind: u32, content: milieu_content) -> milieu_datum {
    milieu_datum { kind, content }
}

fn said(cell: &Cell<'_>) -> milieu_datum {
    match *cell {
        Cell::Missing | Cell::Null | Cell::Value(_) => milieu_datum::NOTHING,
        Cell::Bool(boolean) => datum_of(1, milieu_content { boolean }),
        Cell::Int(whole) => datum_of(4, milieu_content { whole }),
        Cell::Uint(natural) => datum_of(7, milieu_content { natural }),
        Cell::Double(number) => datum_of(9, milieu_content { number }),
        Cell::Time(time) => {
            let whole = time.nanoseconds();
            datum_of(MILIEU_TIME, milieu_content { whole })
        }
        Cell::Span(span) => {
            let whole = span.nanoseconds();
            datum_of(MILIEU_SPAN, milieu_content { whole })
        }
        Cell::Text(said) => datum_of(10, text(said)),
        Cell::Bytes(bytes) => datum_of(
            MILIEU_BYTES,
            milieu_content {
                text: milieu_text {
                    bytes: bytes.as_ptr().cast(),
                    length: bytes.len(),
                },
            },
        ),
    }
}

/// What a value says; `text` is where its JSON is kept.
pub(crate) fn datum_of_value(value: &Value, json_of: &mut String) -> Result<milieu_datum, Failure> {
    Ok(said(&match value {
        Value::Null => Cell::Null,
        Value::Bool(boolean) => Cell::Bool(*boolean),
        Value::Int(whole) => Cell::Int(*whole),
        Value::Uint(natural) => Cell::Uint(*natural),
        Value::Double(number) => Cell::Double(*number),
        Value::Time(time) => Cell::Time(*time),
        Value::Span(span) => Cell::Span(*span),
        Value::Text(said) => Cell::Text(said),
        Value::Bytes(bytes) => Cell::Bytes(bytes),
        value => {
            *json_of = json(value)?;
            return Ok(datum_of(MILIEU_JSON, text(json_of)));
        }
    }))
}

fn json(value: &Value) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::new(MILIEU_UNFIT, error))
}

/// The whole body as JSON.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_event_json(
    event: *const milieu_event,
    body: *mut milieu_text,
) -> milieu_result {
    // SAFETY: as the caller vouches.
    call(|| unsafe { whole(event, Rights::NONE, body) })
}

/// The same with rights.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_event_json_with(
    event: *const milieu_event,
    rights: u32,
    body: *mut milieu_text,
) -> milieu_result {
    // SAFETY: as the caller vouches.
    call(|| unsafe { whole(event, rights_of(rights)?, body) })
}

/// # Safety
///
/// As `streams.h` says.
unsafe fn whole(
    event: *const milieu_event,
    rights: Rights,
    body: *mut milieu_text,
) -> Result<(), Failure> {
    // SAFETY: as the caller vouches.
    let (mut seen, body) = unsafe { (handle::using(event)?, out(body, "body")?) };
    let value = opened(seen.event(), rights)?;
    let reading = &mut **seen.reading.get_or_insert_default();
    reading.text = json(&value)?;
    *body = milieu_text::of(&reading.text);
    Ok(())
}

/// Keeps an event.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_event_keep(
    event: *const milieu_event,
    kept: *mut *mut milieu_event,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (event, into) = unsafe { (find(event)?, out(kept, "kept")?) };
        *into = self::kept(event.clone());
        Ok(())
    })
}

/// Gives a kept event back.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_event_free(event: *mut milieu_event) -> milieu_result {
    call(|| {
        if event.is_null() {
            return Ok(());
        }
        // SAFETY: as the caller vouches.
        unsafe {
            if handle::shared(event.cast_const())?.kept.is_none() {
                return Err(Failure::new(
                    MILIEU_BUSY,
                    "this event is lent, and goes by itself; free what milieu_event_keep gave",
                ));
            }
            drop(handle::take(event)?);
        }
        Ok(())
    })
}
