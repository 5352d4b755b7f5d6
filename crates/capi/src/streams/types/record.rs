//! The bodies of events that programs in C make: copies of plain structs.
//!
//! ```text
//!  Record ─ of ──▶ EventType: name, fields with offsets
//!         ─ inline [struct]            if it has 64 bytes at most
//!         ─ rest ──▶ [struct] [elements of arrays] [bytes of texts]
//! ```
//!
//! What a struct points to is copied behind it, and its pointers lead there.

use std::{ffi::c_char, ptr::NonNull};

use milieu::transfer::{Private, Span, Time};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::Error as _,
    ser::{Error as _, SerializeSeq, SerializeStruct},
};

use super::{Element, Elements, EventType, Field};
use crate::{
    abi::{MILIEU_INVALID, milieu_text},
    call::{Failure, null},
};

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

impl Record {
    /// Of which type it is.
    pub(crate) fn of(&self) -> &'static EventType {
        self.of
    }

    /// The struct as one of this type: the whole, or what it extends.
    #[inline]
    pub(crate) fn seen_as(&self, of: &EventType) -> Option<*const u8> {
        if self.of == of {
            return Some(self.start());
        }
        let place = self.of.place_of(of)?;
        Some(self.start().wrapping_add(place))
    }

    /// The struct.
    #[inline]
    fn start(&self) -> *const u8 {
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
        // SAFETY: as the caller vouches.
        let behind = unsafe { of.length(body)? };
        let length = sum(of, "", own.next_multiple_of(8), behind)?;
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
            of.carry(start, &mut next);
        }
        Ok(())
    }
}

impl EventType {
    /// How many bytes what a struct points to takes, if all is as it should be.
    ///
    /// # Safety
    ///
    /// Such a struct is there, and what it points to can be read.
    unsafe fn length(&self, at: *const u8) -> Result<usize, Failure> {
        let mut length = 0;
        for field in &self.fields {
            // SAFETY: as the caller vouches.
            let more = unsafe { field.length(self, at.add(field.offset))? };
            length = sum(self, field.name, length, more)?;
        }
        Ok(length)
    }

    /// Copies what a struct points to.
    ///
    /// # Safety
    ///
    /// The struct is valid, and `next` has room for what `length` has said.
    unsafe fn carry(&self, at: *mut u8, next: &mut *mut u8) {
        for field in &self.fields {
            // SAFETY: as the caller vouches.
            unsafe { field.carry(at.add(field.offset), next) };
        }
    }
}

impl Field {
    /// Whether it is there, of one that was looked at.
    ///
    /// # Safety
    ///
    /// Such a field is there.
    #[inline]
    unsafe fn is_there(&self, at: *const u8) -> bool {
        // SAFETY: as the caller vouches.
        !self.is_optional || unsafe { at.add(self.content_size()).read() != 0 }
    }

    /// How many bytes what it points to takes, if it is as it should be.
    ///
    /// # Safety
    ///
    /// Such a field is there, and what it points to can be read.
    unsafe fn length(&self, of: &EventType, at: *const u8) -> Result<usize, Failure> {
        let name = self.name;
        if self.is_optional {
            // SAFETY: as the caller vouches; it may be any byte.
            match unsafe { at.add(self.content_size()).read() } {
                0 => return Ok(0),
                1 => {}
                _ => return Err(invalid(of, name, "neither is there nor is it not")),
            }
        }
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
        // One that overflows is more than there can be.
        let own = count.saturating_mul(size).min(LENGTH_MAX + 1);
        let mut length = sum(of, name, own.next_multiple_of(8), 0)?;
        if self.element.is_flat() {
            return Ok(length);
        }
        for index in 0..count {
            // SAFETY: as the caller vouches.
            let more = unsafe { self.element.length(of, name, first.add(index * size))? };
            length = sum(of, name, length, more)?;
        }
        Ok(length)
    }

    /// Copies what it points to.
    ///
    /// # Safety
    ///
    /// The field is valid, and `next` has room for what `length` has said.
    unsafe fn carry(&self, at: *mut u8, next: &mut *mut u8) {
        // SAFETY: as the caller vouches.
        unsafe {
            if !self.is_there(at) {
                // Nobody looks where it points to.
                return at.write_bytes(0, self.content_size());
            }
            if !self.is_array {
                return self.element.carry(at, next);
            }
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

/// The most bytes that a record, and so what it is made of, can have.
const LENGTH_MAX: usize = isize::MAX as usize - 7;

/// Two lengths together, each of which may be what nobody can have.
#[inline]
fn sum(of: &EventType, name: &str, a: usize, b: usize) -> Result<usize, Failure> {
    match a.checked_add(b) {
        Some(sum) if sum <= LENGTH_MAX => Ok(sum),
        _ => Err(invalid(of, name, "has more than there is memory")),
    }
}

#[cold]
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
                // SAFETY: as the caller vouches.
                let bytes = unsafe {
                    match self {
                        Element::Text => text.read(name)?.as_bytes(),
                        _ => text.bytes(name)?,
                    }
                };
                return Ok(bytes.len().next_multiple_of(8));
            }
            // SAFETY: as the caller vouches.
            Element::Struct(of) if !of.is_flat => return unsafe { of.length(at) },
            _ => {}
        }
        Ok(0)
    }

    /// # Safety
    ///
    /// As [`Field::carry`].
    unsafe fn carry(&self, at: *mut u8, next: &mut *mut u8) {
        match self {
            Element::Text | Element::Bytes => {}
            // SAFETY: as the caller vouches.
            Element::Struct(of) => return unsafe { of.carry(at, next) },
            _ => return,
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
        let whole = Struct {
            of: self.of,
            at: self.start(),
        };
        match self.of.is_plain {
            true => whole.field(&self.of.fields[0]).serialize(serializer),
            false => whole.serialize(serializer),
        }
    }
}

/// A struct of a record, which was looked at when it was copied.
#[derive(Clone, Copy)]
struct Struct<'a> {
    of: &'a EventType,
    at: *const u8,
}

impl<'a> Struct<'a> {
    fn field(self, field: &'a Field) -> Whole<'a> {
        Whole {
            field,
            at: self.at.wrapping_add(field.offset),
        }
    }
}

impl Serialize for Struct<'_> {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = &self.of.fields;
        let mut body = serializer.serialize_struct(self.of.name, fields.len())?;
        for field in fields {
            body.serialize_field(field.name, &self.field(field))?;
        }
        body.end()
    }
}

/// A field, with all of its elements, if it is there.
struct Whole<'a> {
    field: &'a Field,
    at: *const u8,
}

impl<'a> Serialize for Whole<'a> {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Whole { field, at } = *self;
        let content = Content { field, at };
        if !field.is_optional && !field.is_private {
            return content.serialize(serializer);
        }
        // SAFETY: the field is in a record.
        let is_there = unsafe { field.is_there(at) };
        match (field.is_private, is_there) {
            (true, true) => Private::new(content).serialize(serializer),
            (true, false) => Private::<Content<'a>>::absent().serialize(serializer),
            (false, true) => serializer.serialize_some(&content),
            (false, false) => serializer.serialize_none(),
        }
    }
}

/// What a field has that is there.
struct Content<'a> {
    field: &'a Field,
    at: *const u8,
}

impl Serialize for Content<'_> {
    #[inline]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Content { field, at } = *self;
        let element = &field.element;
        if !field.is_array {
            return Read { element, at }.serialize(serializer);
        }
        // SAFETY: the field is there, and its elements are the record's.
        let Elements { first, count } = unsafe { at.cast::<Elements>().read() };
        let mut list = serializer.serialize_seq(Some(count))?;
        for index in 0..count {
            let at = first.wrapping_add(index * element.size());
            list.serialize_element(&Read { element, at })?;
        }
        list.end()
    }
}

/// One field of a record, or an element of one.
struct Read<'a> {
    element: &'a Element,
    at: *const u8,
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
                Element::Struct(of) => Struct { of, at: self.at }.serialize(serializer),
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
