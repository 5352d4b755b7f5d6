//! Types of events that programs define: the tables that describe plain structs,
//! read and checked.
//!
//! A field may be a struct that is described by itself, and one such field may be
//! what the whole extends: then its events are events of that type too.

mod adopt;
mod record;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{Mutex, OnceLock, PoisonError},
};

use milieu::transfer::{Kind, Named, Part};

use super::abi::{
    MILIEU_BYTES, MILIEU_I8, MILIEU_OPTIONAL, MILIEU_SPAN, MILIEU_STRUCT, MILIEU_TIME, MILIEU_U8,
    milieu_event_field, milieu_event_layout,
};
use crate::{
    abi::{MILIEU_ARRAY, MILIEU_NO_SUCH, MILIEU_WRONG_LAYOUT, milieu_result, milieu_text},
    call::{Failure, call, null, out},
    handle::{self, Slot, handle},
    layout::check_abi,
    text::{interned, read_slice, read_string},
};

pub(crate) use record::Record;

/// A type of events.
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
    /// Whether only some may see all of it.
    has_private: bool,
    /// What it extends, and where in the struct that is.
    parent: Option<(usize, &'static EventType)>,
    kind: OnceLock<Kind<Record>>,
}

/// A type that is described alike is the same one.
impl PartialEq for EventType {
    fn eq(&self, other: &EventType) -> bool {
        std::ptr::eq(self, other)
    }
}

#[derive(PartialEq)]
struct Field {
    name: &'static str,
    offset: usize,
    element: Element,
    is_array: bool,
    /// Behind it is a `bool`: whether it is there.
    is_optional: bool,
    is_private: bool,
    extends: bool,
    id: Option<u32>,
    unit: &'static str,
}

/// What a field is, or each element of one.
#[derive(Clone, PartialEq)]
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
    Struct(&'static EventType),
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
            Element::Struct(of) => of.size,
        }
    }

    fn align(&self) -> usize {
        match self {
            Element::Text | Element::Bytes => align_of::<milieu_text>(),
            // On 32 bits, C aligns these to four in structs.
            Element::I64 | Element::Time | Element::Span => align_of::<i64>(),
            Element::U64 => align_of::<u64>(),
            Element::F64 => align_of::<f64>(),
            Element::Struct(of) => of.align,
            other => other.size(),
        }
    }

    /// Whether every pattern of bits is one of its values, and none a pointer.
    fn is_flat(&self) -> bool {
        match self {
            Element::Bool | Element::Choice(_) | Element::Text | Element::Bytes => false,
            Element::Struct(of) => of.is_flat,
            _ => true,
        }
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
            Element::Struct(of) => of.part(),
        }
    }
}

impl Field {
    fn size(&self) -> usize {
        self.content_size() + usize::from(self.is_optional)
    }

    /// Without what says whether it is there.
    fn content_size(&self) -> usize {
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
        let part = match self.is_array {
            true => Part::List(Box::new(self.element.part())),
            false => self.element.part(),
        };
        // What is private may be missing as it is.
        match (self.is_private, self.is_optional) {
            (true, _) => Part::Private(Box::new(part)),
            (false, true) => Part::Optional(Box::new(part)),
            (false, false) => part,
        }
    }

    fn named(&self) -> Named {
        Named {
            name: self.name.into(),
            id: self.id,
            extends: self.extends,
            part: self.part(),
        }
    }
}

/// How deep structs may lie in each other.
const DEPTH: usize = 16;

fn wrong(message: impl fmt::Display) -> Failure {
    Failure::new(MILIEU_WRONG_LAYOUT, message)
}

impl EventType {
    /// What makes events of it quickly.
    pub(crate) fn kind(&'static self) -> Kind<Record> {
        *self
            .kind
            .get_or_init(|| Kind::defined(self.name, &self.part(), |value| self.record_of(value)))
    }

    fn part(&self) -> Part {
        match (self.is_plain, &*self.fields) {
            (true, [field]) => field.part(),
            _ => Part::Fields(self.fields.iter().map(Field::named).collect()),
        }
    }

    /// Whether only some may see all of it.
    pub(crate) fn has_private(&self) -> bool {
        self.has_private
    }

    /// Where in its structs those of another type are: it is that type, or extends it.
    fn place_of(&self, other: &EventType) -> Option<usize> {
        match self.parent {
            _ if self == other => Some(0),
            Some((offset, parent)) => Some(offset + parent.place_of(other)?),
            None => None,
        }
    }

    /// A field that both have and count in other units, and these.
    pub(crate) fn differs(&self, other: &EventType) -> Option<(&str, &str, &str)> {
        self.fields.iter().find_map(|ours| {
            let is_same = |theirs: &&Field| match (ours.id, theirs.id) {
                (Some(ours), Some(theirs)) => ours == theirs,
                _ => ours.name == theirs.name,
            };
            let theirs = other.fields.iter().find(is_same)?;
            if let (Element::Struct(ours), Element::Struct(theirs)) =
                (&ours.element, &theirs.element)
            {
                return ours.differs(theirs);
            }
            let is_said = !ours.unit.is_empty() && !theirs.unit.is_empty();
            (is_said && ours.unit != theirs.unit).then_some((ours.name, ours.unit, theirs.unit))
        })
    }

    /// A field by its path: `row.value`.
    fn field(&self, path: &str) -> Option<&Field> {
        let (first, rest) = match path.split_once('.') {
            Some((first, rest)) => (first, Some(rest)),
            None => (path, None),
        };
        let field = self.fields.iter().find(|field| field.name == first)?;
        match (rest, &field.element) {
            (None, _) => Some(field),
            (Some(rest), Element::Struct(of)) => of.field(rest),
            (Some(_), _) => None,
        }
    }

    fn is_like(&self, other: &EventType) -> bool {
        (self.name, self.size, self.align) == (other.name, other.size, other.align)
            && self.fields == other.fields
    }

    /// # Safety
    ///
    /// Everything that the layout leads to can be read.
    unsafe fn read(layout: &milieu_event_layout, depth: usize) -> Result<EventType, Failure> {
        check_abi(layout.abi, "layout")?;
        // SAFETY: as the caller vouches.
        let (name, described) = unsafe {
            let fields = read_slice(layout.fields, layout.count as usize, "fields")?;
            (interned(read_string(layout.name, "name")?), fields)
        };
        if name.is_empty() {
            return Err(wrong("a type of events has a name; say one"));
        }
        if depth == DEPTH {
            return Err(wrong(format_args!(
                "{name}: structs lie in each other more than {DEPTH} deep; a struct cannot have \
                 itself as a part"
            )));
        }
        let mut fields = Vec::with_capacity(described.len());
        for field in described {
            // SAFETY: as the caller vouches.
            fields.push(unsafe { Field::read(name, field, depth)? });
        }
        let mut of = EventType {
            name,
            is_plain: matches!(&*fields, [only] if only.name.is_empty()),
            is_flat: true,
            has_private: false,
            fields,
            size: layout.size,
            align: layout.align,
            parent: None,
            kind: OnceLock::new(),
        };
        of.check()?;
        let is_flat = |field: &Field| {
            field.element.is_flat() && !field.is_array && !field.is_optional && !field.is_private
        };
        of.is_flat = of.fields.iter().all(is_flat);
        of.has_private = of.fields.iter().any(|field| match field.element {
            _ if field.is_private => true,
            Element::Struct(part) => part.has_private,
            _ => false,
        });
        of.parent = of.parent_of_fields()?;
        Ok(of)
    }

    fn parent_of_fields(&self) -> Result<Option<(usize, &'static EventType)>, Failure> {
        let name = self.name;
        let mut parents = self.fields.iter().filter(|field| field.extends);
        let Some(field) = parents.next() else {
            return Ok(None);
        };
        if let Some(second) = parents.next() {
            return Err(wrong(format_args!(
                "{name}: it extends both `{}` and `{}`; one of them can be a plain field",
                field.name, second.name
            )));
        }
        let is_whole = !field.is_array && !field.is_optional && !field.is_private;
        match field.element {
            Element::Struct(of) if is_whole && !self.is_plain => Ok(Some((field.offset, of))),
            _ => Err(wrong(format_args!(
                "{name}: `{}` cannot be what it extends; that is a MILIEU_STRUCT which is always \
                 there",
                field.name
            ))),
        }
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
    unsafe fn read(of: &str, field: &milieu_event_field, depth: usize) -> Result<Field, Failure> {
        // SAFETY: as the caller vouches.
        let (name, metadata) = unsafe {
            let metadata = read_slice(field.metadata, field.metadata_count as usize, "metadata")?;
            (interned(read_string(field.name, "name")?), metadata)
        };
        let (mut id, mut unit, mut words) = (None, "", Vec::new());
        let (mut is_private, mut extends) = (false, false);
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
                "unit" => unit = interned(text),
                "private" => is_private = true,
                "extends" => extends = true,
                _ => {
                    return Err(wrong(format_args!(
                        "{of}: `{name}` has metadata `{key}`; a field of an event may have `id`, \
                         `variant`, `unit`, `private` and `extends`"
                    )));
                }
            }
        }
        let element = match field.kind & !(MILIEU_ARRAY | MILIEU_OPTIONAL) {
            MILIEU_STRUCT => {
                // SAFETY: as the caller vouches.
                let layout = unsafe { field.layout.as_ref() }.ok_or_else(|| {
                    wrong(format_args!(
                        "{of}: `{name}` is a struct without `layout`; say how it is described"
                    ))
                })?;
                // SAFETY: as the caller vouches.
                let (_, of) = unsafe { defined(layout, depth + 1)? };
                Element::Struct(of)
            }
            kind => Element::of(kind, &words).ok_or_else(|| {
                wrong(format_args!(
                    "{of}: `{name}` is of kind {:#x}, which no field has, or an enum without \
                     variants",
                    field.kind
                ))
            })?,
        };
        Ok(Field {
            name,
            offset: field.offset,
            element,
            is_array: field.kind & MILIEU_ARRAY != 0,
            is_optional: field.kind & MILIEU_OPTIONAL != 0,
            is_private,
            extends,
            id,
            unit,
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

/// A type, as an address that may go to any thread.
struct Known(*mut milieu_event_type, &'static EventType);

// SAFETY: types are never changed nor freed.
unsafe impl Send for Known {}

/// The types of this program; one that is defined twice is one.
static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// The type that a layout describes, which is defined where there is none such yet.
///
/// # Safety
///
/// Everything that the layout leads to can be read.
unsafe fn defined(
    layout: &milieu_event_layout,
    depth: usize,
) -> Result<(*mut milieu_event_type, &'static EventType), Failure> {
    // SAFETY: as the caller vouches.
    let made = unsafe { EventType::read(layout, depth)? };
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(same) = known.iter().find(|known| known.1.is_like(&made)) {
        return Ok((same.0, same.1));
    }
    let made: &'static EventType = Box::leak(Box::new(made));
    let slot = handle::new(Typed(made));
    known.push(Known(slot, made));
    Ok((slot, made))
}

/// The handle of a type.
pub(crate) fn handle_of(of: &'static EventType) -> *const milieu_event_type {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known.iter().find(|known| known.1 == of);
    found.map_or(std::ptr::null(), |known| known.0.cast_const())
}

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
        unsafe {
            let layout = layout.as_ref().ok_or_else(|| null("layout"))?;
            let of = out(of, "type")?;
            *of = defined(layout, 0)?.0;
        }
        Ok(())
    })
}

/// In which unit a field is.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_event_type_unit(
    of: *const milieu_event_type,
    field: milieu_text,
    unit: *mut milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Typed(of), path, unit) = unsafe {
            (
                handle::shared(of)?,
                field.read("field")?,
                out(unit, "unit")?,
            )
        };
        let field = of.field(path).ok_or_else(|| {
            let fields: Vec<&str> = of.fields.iter().map(|field| field.name).collect();
            Failure::new(
                MILIEU_NO_SUCH,
                format_args!(
                    "`{}` has no field `{path}`; it has: {}",
                    of.name,
                    fields.join(", ")
                ),
            )
        })?;
        *unit = milieu_text::of(field.unit);
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
