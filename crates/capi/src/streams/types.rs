//! Types of events that programs define, and their bodies: copies of plain structs.
//!
//! ```text
//!  Record ─ of ──▶ EventType: name, fields with offsets
//!         ─ inline [struct]            if it has 64 bytes at most
//!         ─ rest ──▶ [struct] [elements of arrays] [bytes of texts]
//! ```
//!
//! What a struct points to is copied behind it, and its pointers lead there.

mod adopt;

use std::{
    ffi::c_char,
    fmt,
    ptr::NonNull,
    sync::{Mutex, OnceLock, PoisonError},
};

use milieu::transfer::{Kind, Named, Part, Span, Time};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::Error as _,
    ser::{Error as _, SerializeSeq, SerializeStruct},
};

use super::abi::{
    MILIEU_BYTES, MILIEU_I8, MILIEU_SPAN, MILIEU_TIME, MILIEU_U8, milieu_event_field,
    milieu_event_layout,
};
use crate::{
    abi::{MILIEU_ARRAY, MILIEU_INVALID, MILIEU_WRONG_LAYOUT, milieu_result, milieu_text},
    call::{Failure, call, null, out},
    handle::{self, Slot, handle},
    layout::check_abi,
    text::{interned, read_slice, read_string},
};

/// A type of events.
#[derive(Debug)]
pub struct EventType {
    name: &'static str,
    fields: Vec<Field>,
    size: usize,
    align: usize,
    /// Whether the body is its only field.
    is_plain: bool,
    /// Whether it may be copied as it is: it has no pointers and every pattern of
    /// bits is one of its values.
    is_flat: bool,
    kind: OnceLock<Kind<Record>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Field {
    name: &'static str,
    offset: usize,
    element: Element,
    is_array: bool,
    id: Option<u32>,
}

/// What a field is, or each element of one.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Element {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F32,
    F64,
    Text,
    Bytes,
    Time,
    Span,
    Choice(Vec<&'static str>),
}

/// The elements of an array, as a struct has them.
#[repr(C)]
#[derive(Clone, Copy)]
struct Elements {
    first: *const u8,
    count: usize,
}

/// A type, as the other side has it.
pub struct Typed(pub(crate) &'static EventType);

handle!(Typed, b"etyp", "milieu_event_type");

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_event_type = Slot<Typed>;

impl Element {
    fn size(&self) -> usize {
        match self {
            Element::Bool | Element::I8 | Element::U8 => 1,
            Element::I16 | Element::U16 => 2,
            Element::I32 | Element::U32 | Element::F32 | Element::Choice(_) => 4,
            Element::I64 | Element::U64 | Element::F64 | Element::Time | Element::Span => 8,
            Element::Text | Element::Bytes => size_of::<milieu_text>(),
        }
    }

    fn align(&self) -> usize {
        match self {
            Element::Text | Element::Bytes => align_of::<milieu_text>(),
            // On 32 bits, C aligns these to four in structs.
            Element::I64 | Element::Time | Element::Span => align_of::<i64>(),
            Element::U64 => align_of::<u64>(),
            Element::F64 => align_of::<f64>(),
            other => other.size(),
        }
    }

    fn has_pointer(&self) -> bool {
        matches!(self, Element::Text | Element::Bytes)
    }

    fn part(&self) -> Part {
        match self {
            Element::Bool => Part::Bool,
            Element::I8 => Part::I8,
            Element::I16 => Part::I16,
            Element::I32 => Part::I32,
            Element::I64 => Part::I64,
            Element::U8 => Part::U8,
            Element::U16 => Part::U16,
            Element::U32 => Part::U32,
            Element::U64 => Part::U64,
            Element::F32 => Part::F32,
            Element::F64 => Part::F64,
            Element::Text => Part::Text,
            Element::Bytes => Part::Bytes,
            Element::Time => Part::Time,
            Element::Span => Part::Span,
            Element::Choice(words) => {
                Part::Choice(words.iter().map(|word| (*word).into()).collect())
            }
        }
    }
}

impl Field {
    fn size(&self) -> usize {
        match self.is_array {
            true => size_of::<Elements>(),
            false => self.element.size(),
        }
    }

    fn align(&self) -> usize {
        match self.is_array {
            true => align_of::<Elements>(),
            false => self.element.align(),
        }
    }

    fn part(&self) -> Part {
        match self.is_array {
            true => Part::List(Box::new(self.element.part())),
            false => self.element.part(),
        }
    }

    fn named(&self) -> Named {
        Named {
            name: self.name.into(),
            id: self.id,
            part: self.part(),
        }
    }
}

fn wrong(message: impl fmt::Display) -> Failure {
    Failure::new(MILIEU_WRONG_LAYOUT, message)
}

impl EventType {
    /// What makes events of it quickly.
    pub(crate) fn kind(&'static self) -> Kind<Record> {
        *self.kind.get_or_init(|| {
            let part = match (self.is_plain, &*self.fields) {
                (true, [field]) => field.part(),
                _ => Part::Fields(self.fields.iter().map(Field::named).collect()),
            };
            Kind::defined(self.name, &part, |value| self.record_of(value))
        })
    }

    fn is_like(&self, other: &EventType) -> bool {
        (self.name, self.size, self.align) == (other.name, other.size, other.align)
            && self.fields == other.fields
    }

    /// # Safety
    ///
    /// Everything that the layout leads to can be read.
    unsafe fn read(layout: &milieu_event_layout) -> Result<EventType, Failure> {
        check_abi(layout.abi, "layout")?;
        // SAFETY: as the caller vouches.
        let (name, described) = unsafe {
            let fields = read_slice(layout.fields, layout.count as usize, "fields")?;
            (interned(read_string(layout.name, "name")?), fields)
        };
        if name.is_empty() {
            return Err(wrong("a type of events has a name; say one"));
        }
        let mut fields = Vec::with_capacity(described.len());
        for field in described {
            // SAFETY: as the caller vouches.
            fields.push(unsafe { Field::read(name, field)? });
        }
        let mut of = EventType {
            name,
            is_plain: matches!(&*fields, [only] if only.name.is_empty()),
            is_flat: true,
            fields,
            size: layout.size,
            align: layout.align,
            kind: OnceLock::new(),
        };
        of.check()?;
        of.is_flat = of.fields.iter().all(|field| {
            let checked = matches!(field.element, Element::Bool | Element::Choice(_));
            !field.is_array && !field.element.has_pointer() && !checked
        });
        Ok(of)
    }

    fn check(&self) -> Result<(), Failure> {
        let EventType {
            name, size, align, ..
        } = self;
        if !align.is_power_of_two() || *align > 8 || size % align != 0 {
            return Err(wrong(format_args!(
                "{name}: a struct of {size} bytes aligned to {align} cannot be an event; state \
                 sizeof and alignof of the struct, which may be 8 at most"
            )));
        }
        for (at, field) in self.fields.iter().enumerate() {
            let what = field.name;
            if what.is_empty() && !self.is_plain {
                return Err(wrong(format_args!(
                    "{name}: field {at} has no name; only the single field of a type whose body it \
                     is has none"
                )));
            }
            if self.fields[..at].iter().any(|other| other.name == what) {
                return Err(wrong(format_args!("{name}: there are two fields `{what}`")));
            }
            let end = field.offset.checked_add(field.size());
            if end.is_none_or(|end| end > *size) || field.offset % field.align() != 0 {
                return Err(wrong(format_args!(
                    "{name}: `{what}` at byte {} does not lie in a struct of {size} bytes, or is \
                     not aligned; state offsetof of the member",
                    field.offset
                )));
            }
            let overlaps = |other: &Field| {
                field.offset < other.offset + other.size()
                    && other.offset < field.offset + field.size()
            };
            if let Some(other) = self.fields[..at].iter().find(|other| overlaps(other)) {
                return Err(wrong(format_args!(
                    "{name}: `{what}` and `{}` overlap; state the kind that each member has",
                    other.name
                )));
            }
        }
        Ok(())
    }
}

impl Field {
    /// # Safety
    ///
    /// Everything that the field leads to can be read.
    unsafe fn read(of: &str, field: &milieu_event_field) -> Result<Field, Failure> {
        // SAFETY: as the caller vouches.
        let (name, metadata) = unsafe {
            let metadata = read_slice(field.metadata, field.metadata_count as usize, "metadata")?;
            (interned(read_string(field.name, "name")?), metadata)
        };
        let (mut id, mut words) = (None, Vec::new());
        for entry in metadata {
            // SAFETY: as the caller vouches.
            let (key, text) = unsafe {
                (
                    read_string(entry.key, "key")?,
                    read_string(entry.text, "text")?,
                )
            };
            match key {
                "id" => match text.parse() {
                    Ok(number) => id = Some(number),
                    Err(_) => {
                        return Err(wrong(format_args!(
                            "{of}: the id `{text}` of `{name}` is not a number from 0 to {}",
                            u32::MAX
                        )));
                    }
                },
                "variant" => words.push(interned(text)),
                _ => {
                    return Err(wrong(format_args!(
                        "{of}: `{name}` has metadata `{key}`; a field of an event may have `id` and \
                         `variant`"
                    )));
                }
            }
        }
        let element = Element::of(field.kind & !MILIEU_ARRAY, &words).ok_or_else(|| {
            wrong(format_args!(
                "{of}: `{name}` is of kind {:#x}, which no field has, or an enum without \
                 variants",
                field.kind
            ))
        })?;
        Ok(Field {
            name,
            offset: field.offset,
            element,
            is_array: field.kind & MILIEU_ARRAY != 0,
            id,
        })
    }
}

impl Element {
    fn of(kind: u32, words: &[&'static str]) -> Option<Element> {
        Some(match kind {
            1 => Element::Bool,
            2 => Element::I16,
            3 => Element::I32,
            4 => Element::I64,
            5 => Element::U16,
            6 => Element::U32,
            7 => Element::U64,
            8 => Element::F32,
            9 => Element::F64,
            10 => Element::Text,
            11 if !words.is_empty() => Element::Choice(words.to_vec()),
            MILIEU_I8 => Element::I8,
            MILIEU_U8 => Element::U8,
            MILIEU_TIME => Element::Time,
            MILIEU_SPAN => Element::Span,
            MILIEU_BYTES => Element::Bytes,
            _ => return None,
        })
    }
}

/// How many bytes of a struct need no memory of their own.
const INLINE: usize = 64;

/// The body of an event that a program in C has made.
pub struct Record {
    of: &'static EventType,
    inline: [u64; INLINE / 8],
    rest: Option<Rest>,
}

/// Memory that stays where it is.
struct Rest {
    words: NonNull<[u64]>,
}

// SAFETY: a record never changes once it is made, and what its pointers lead to
// is its own.
unsafe impl Send for Rest {}
// SAFETY: as above.
unsafe impl Sync for Rest {}

impl Rest {
    fn new(bytes: usize) -> Rest {
        let words = vec![0_u64; bytes.div_ceil(8)].into_boxed_slice();
        let words = NonNull::from(Box::leak(words));
        Rest { words }
    }

    fn start(&self) -> *mut u8 {
        self.words.as_ptr().cast()
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        // SAFETY: `new` has leaked this box.
        drop(unsafe { Box::from_raw(self.words.as_ptr()) });
    }
}

/// One field of a record, or an element of one.
struct Read<'a> {
    element: &'a Element,
    at: *const u8,
}

impl Record {
    /// Of which type it is.
    pub(crate) fn of(&self) -> &'static EventType {
        self.of
    }

    /// The struct.
    #[inline]
    pub(crate) fn start(&self) -> *const u8 {
        match &self.rest {
            Some(rest) if self.of.size > INLINE => rest.start().cast_const(),
            _ => self.inline.as_ptr().cast(),
        }
    }

    /// Copies a struct of the other side, after a look at what is in it.
    ///
    /// # Safety
    ///
    /// It is of this type, and what it points to can be read.
    #[inline]
    pub(crate) unsafe fn copy(of: &'static EventType, body: *const u8) -> Result<Record, Failure> {
        let mut record = Record {
            of,
            inline: [0; INLINE / 8],
            rest: None,
        };
        if of.is_flat && of.size <= INLINE {
            // SAFETY: as the caller vouches; it has room.
            unsafe { body.copy_to_nonoverlapping(record.inline.as_mut_ptr().cast(), of.size) };
            return Ok(record);
        }
        // SAFETY: as the caller vouches.
        unsafe { record.fill(body)? };
        Ok(record)
    }

    /// # Safety
    ///
    /// As [`copy`](Record::copy).
    unsafe fn fill(&mut self, body: *const u8) -> Result<(), Failure> {
        let of = self.of;
        let own = if of.size > INLINE { of.size } else { 0 };
        let mut length = own.next_multiple_of(8);
        for field in &of.fields {
            // SAFETY: as the caller vouches.
            length += unsafe { field.length(of, body.add(field.offset))? };
        }
        if length > 0 {
            self.rest = Some(Rest::new(length));
        }
        let start = self.start().cast_mut();
        let mut next = match &self.rest {
            // SAFETY: there is room for the struct.
            Some(rest) => unsafe { rest.start().add(own.next_multiple_of(8)) },
            None => start,
        };
        // SAFETY: `start` has room for the struct, whose fields are as the caller
        // vouches; `next` for what `length` has counted.
        unsafe {
            body.copy_to_nonoverlapping(start, of.size);
            for field in &of.fields {
                field.carry(start.add(field.offset), &mut next);
            }
        }
        Ok(())
    }

    fn field<'a>(&'a self, field: &'a Field) -> Read<'a> {
        Read {
            element: &field.element,
            at: self.start().wrapping_add(field.offset),
        }
    }
}

impl Field {
    /// How many bytes what it points to takes, if it is as it should be.
    ///
    /// # Safety
    ///
    /// Such a field is there, and what it points to can be read.
    unsafe fn length(&self, of: &EventType, at: *const u8) -> Result<usize, Failure> {
        let name = self.name;
        if !self.is_array {
            // SAFETY: as the caller vouches.
            return unsafe { self.element.length(of, name, at) };
        }
        // SAFETY: as the caller vouches.
        let Elements { first, count } = unsafe { at.cast::<Elements>().read_unaligned() };
        if count > 0 && first.is_null() {
            return Err(null(name));
        }
        let size = self.element.size();
        let Some(mut length) = count
            .checked_mul(size)
            .filter(|length| *length < isize::MAX as usize)
        else {
            return Err(invalid(of, name, "has more elements than there is memory"));
        };
        length = length.next_multiple_of(8);
        for index in 0..count {
            // SAFETY: as the caller vouches.
            length += unsafe { self.element.length(of, name, first.add(index * size))? };
        }
        Ok(length)
    }

    /// Copies what it points to.
    ///
    /// # Safety
    ///
    /// The field is valid, and `next` has room for what `length` has said.
    unsafe fn carry(&self, at: *mut u8, next: &mut *mut u8) {
        if !self.is_array {
            // SAFETY: as the caller vouches.
            return unsafe { self.element.carry(at, next) };
        }
        let size = self.element.size();
        // SAFETY: as the caller vouches.
        unsafe {
            let Elements { first, count } = at.cast::<Elements>().read();
            let here = *next;
            if count > 0 {
                first.copy_to_nonoverlapping(here, count * size);
            }
            at.cast::<Elements>().write(Elements { first: here, count });
            *next = next.add((count * size).next_multiple_of(8));
            for index in 0..count {
                self.element.carry(here.add(index * size), next);
            }
        }
    }
}

fn invalid(of: &EventType, name: &str, why: &str) -> Failure {
    let place = match name {
        "" => of.name.to_owned(),
        name => format!("`{name}` of `{}`", of.name),
    };
    Failure::new(MILIEU_INVALID, format_args!("{place} {why}"))
}

impl Element {
    /// # Safety
    ///
    /// As [`Field::length`].
    unsafe fn length(&self, of: &EventType, name: &str, at: *const u8) -> Result<usize, Failure> {
        match self {
            Element::Bool => {
                // SAFETY: as the caller vouches; it may be any byte.
                let byte = unsafe { at.read() };
                if byte > 1 {
                    return Err(invalid(of, name, "is neither true nor false"));
                }
            }
            Element::Choice(words) => {
                // SAFETY: as the caller vouches.
                let number = unsafe { at.cast::<u32>().read_unaligned() };
                if number as usize >= words.len() {
                    let why = format!("has no variant {number}; it has {}", words.len());
                    return Err(invalid(of, name, &why));
                }
            }
            Element::Text | Element::Bytes => {
                // SAFETY: as the caller vouches.
                let text = unsafe { at.cast::<milieu_text>().read_unaligned() };
                if *self == Element::Text {
                    // SAFETY: as the caller vouches.
                    unsafe { text.read(name)? };
                } else if text.length > 0 && text.bytes.is_null() {
                    return Err(null(name));
                }
                return Ok(text.length.next_multiple_of(8));
            }
            _ => {}
        }
        Ok(0)
    }

    /// # Safety
    ///
    /// As [`Field::carry`].
    unsafe fn carry(&self, at: *mut u8, next: &mut *mut u8) {
        if !self.has_pointer() {
            return;
        }
        // SAFETY: as the caller vouches.
        unsafe {
            let text = at.cast::<milieu_text>().read();
            let here = *next;
            if text.length > 0 {
                text.bytes
                    .cast::<u8>()
                    .copy_to_nonoverlapping(here, text.length);
            }
            let bytes = here.cast_const().cast::<c_char>();
            at.cast::<milieu_text>()
                .write(milieu_text { bytes, ..text });
            *next = next.add(text.length.next_multiple_of(8));
        }
    }
}

impl Serialize for Record {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of = self.of;
        if of.is_plain {
            return Whole(self, &of.fields[0]).serialize(serializer);
        }
        let mut body = serializer.serialize_struct(of.name, of.fields.len())?;
        for field in &of.fields {
            body.serialize_field(field.name, &Whole(self, field))?;
        }
        body.end()
    }
}

/// A field, with all of its elements.
struct Whole<'a>(&'a Record, &'a Field);

impl Serialize for Whole<'_> {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Whole(record, field) = self;
        let read = record.field(field);
        if !field.is_array {
            return read.serialize(serializer);
        }
        // SAFETY: the field is there, and its elements are the record's.
        let Elements { first, count } = unsafe { read.at.cast::<Elements>().read() };
        let mut list = serializer.serialize_seq(Some(count))?;
        for index in 0..count {
            list.serialize_element(&Read {
                element: &field.element,
                at: first.wrapping_add(index * field.element.size()),
            })?;
        }
        list.end()
    }
}

impl Read<'_> {
    /// # Safety
    ///
    /// A `T` is what the field has.
    #[inline]
    unsafe fn get<T: Copy>(&self) -> T {
        // SAFETY: as the caller vouches; it is aligned, as the type was checked.
        unsafe { self.at.cast::<T>().read() }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the field is a text, whose bytes are the record's.
        unsafe {
            let text: milieu_text = self.get();
            match text.length {
                0 => &[],
                length => std::slice::from_raw_parts(text.bytes.cast(), length),
            }
        }
    }
}

impl Serialize for Read<'_> {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // SAFETY: each kind is read as what it is; booleans were looked at.
        unsafe {
            match self.element {
                Element::Bool => serializer.serialize_bool(self.get()),
                Element::I8 => serializer.serialize_i8(self.get()),
                Element::I16 => serializer.serialize_i16(self.get()),
                Element::I32 => serializer.serialize_i32(self.get()),
                Element::I64 => serializer.serialize_i64(self.get()),
                Element::U8 => serializer.serialize_u8(self.get()),
                Element::U16 => serializer.serialize_u16(self.get()),
                Element::U32 => serializer.serialize_u32(self.get()),
                Element::U64 => serializer.serialize_u64(self.get()),
                Element::F32 => serializer.serialize_f32(self.get()),
                Element::F64 => serializer.serialize_f64(self.get()),
                Element::Time => Time::from_nanoseconds(self.get()).serialize(serializer),
                Element::Span => Span::from_nanoseconds(self.get()).serialize(serializer),
                Element::Bytes => serializer.serialize_bytes(self.bytes()),
                Element::Text => {
                    let text = std::str::from_utf8(self.bytes());
                    serializer.serialize_str(text.map_err(S::Error::custom)?)
                }
                Element::Choice(words) => {
                    let number: u32 = self.get();
                    let word = words[number as usize];
                    serializer.serialize_unit_variant("choice", number, word)
                }
            }
        }
    }
}

/// Nothing says by itself of which type it is: the kind of the type makes records.
impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Record, D::Error> {
        Err(D::Error::custom("only its type makes a record"))
    }
}

/// A type, as an address that may go to any thread.
struct Known(*mut milieu_event_type, &'static EventType);

// SAFETY: types are never changed nor freed.
unsafe impl Send for Known {}

/// The types of this program; one that is defined twice is one.
static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// Defines a type.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_event_type_new(
    layout: *const milieu_event_layout,
    of: *mut *const milieu_event_type,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (made, of) = unsafe {
            let layout = layout.as_ref().ok_or_else(|| null("layout"))?;
            (EventType::read(layout)?, out(of, "type")?)
        };
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.iter().find(|known| known.1.is_like(&made)) {
            *of = same.0;
            return Ok(());
        }
        let made: &'static EventType = Box::leak(Box::new(made));
        let slot = handle::new(Typed(made));
        known.push(Known(slot, made));
        *of = slot;
        Ok(())
    })
}

/// The name of a type.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_event_type_name(
    of: *const milieu_event_type,
    name: *mut milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Typed(of), name) = unsafe { (handle::shared(of)?, out(name, "name")?) };
        *name = milieu_text::of(of.name);
        Ok(())
    })
}
