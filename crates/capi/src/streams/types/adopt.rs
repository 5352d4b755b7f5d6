//! Records of what has come without a type, or as one of another program's.

use milieu::transfer::{Span, Time, Value};

use super::{Element, Elements, EventType, Field, Record};
use crate::abi::milieu_text;

type Refused = milieu::transfer::Error;

/// Up to this a double is every whole number.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

fn refused(message: String) -> Refused {
    Refused::Body(message)
}

impl EventType {
    /// A record of what has come without a type, or as one of another program's.
    pub(crate) fn record_of(&'static self, value: &Value) -> Result<Record, Refused> {
        let mut words = vec![0_u64; self.size.div_ceil(8)];
        let start: *mut u8 = words.as_mut_ptr().cast();
        // What fields point to until all is copied.
        let mut lists = Vec::new();
        self.fill(value, start, &mut lists)?;
        // SAFETY: it was filled just now, and what it points to is there.
        let record = unsafe { Record::copy(self, start.cast_const()) };
        drop(lists);
        record.map_err(|_| refused(format!("it is no `{}`", self.name)))
    }

    /// Fills in a struct, which is all zero.
    fn fill(&self, value: &Value, start: *mut u8, lists: &mut Lists) -> Result<(), Refused> {
        for field in &self.fields {
            let name = field.name;
            let part = match self.is_plain {
                true => Some(value),
                false => value.field(name),
            };
            let at = start.wrapping_add(field.offset);
            let part = match part.map(bare) {
                None | Some(Value::Null) if field.is_optional => continue,
                Some(part) => part,
                None => return Err(refused(format!("it has no field `{name}`"))),
            };
            if field.is_optional {
                // SAFETY: the caller has room for the field, of which this is the end.
                unsafe { at.add(field.content_size()).write(1) };
            }
            if !field.fill(part, at, lists)? {
                return Err(refused(format!("`{name}` is not what `{}` has", self.name)));
            }
        }
        Ok(())
    }
}

/// What is pointed to by what is being filled in.
type Lists = Vec<Vec<u64>>;

impl Field {
    /// Fills in what the field has; false if the value is none of its kind.
    fn fill(&self, value: &Value, at: *mut u8, lists: &mut Lists) -> Result<bool, Refused> {
        if !self.is_array {
            return self.element.fill(value, at, lists);
        }
        let Value::List(items) = value else {
            return Ok(false);
        };
        let size = self.element.size();
        let mut list = vec![0_u64; (items.len() * size).div_ceil(8)];
        let first: *mut u8 = list.as_mut_ptr().cast();
        for (index, item) in items.iter().enumerate() {
            let at = first.wrapping_add(index * size);
            if !self.element.fill(bare(item), at, lists)? {
                return Ok(false);
            }
        }
        lists.push(list);
        let count = items.len();
        let elements = Elements { first, count };
        // SAFETY: the field is an array, for which there is room.
        unsafe { at.cast::<Elements>().write(elements) };
        Ok(true)
    }
}

fn bare(value: &Value) -> &Value {
    match value {
        Value::Private(value) | Value::Shared(_, value) => bare(value),
        value => value,
    }
}

impl Element {
    fn fill(&self, value: &Value, at: *mut u8, lists: &mut Lists) -> Result<bool, Refused> {
        match self {
            Element::Struct(of) => of.fill(value, at, lists).map(|()| true),
            element => Ok(element.write(value, at)),
        }
    }

    /// Writes what a value says; false if it is none of this kind.
    fn write(&self, value: &Value, at: *mut u8) -> bool {
        /// # Safety
        ///
        /// There is room for a `T`.
        unsafe fn put<T>(value: Option<T>, at: *mut u8) -> bool {
            let Some(value) = value else {
                return false;
            };
            // SAFETY: as the caller vouches.
            unsafe { at.cast::<T>().write(value) };
            true
        }
        let whole = || match *value {
            Value::Int(number) => Some(i128::from(number)),
            Value::Uint(number) => Some(i128::from(number)),
            // As a column of a recording that nobody has declared has whole numbers, too.
            #[allow(clippy::cast_possible_truncation, reason = "it is a whole number")]
            Value::Double(number) if number.fract() == 0.0 && number.abs() <= WHOLE_MAX => {
                Some(number as i128)
            }
            _ => None,
        };
        #[allow(clippy::cast_precision_loss, reason = "a number was asked for")]
        let number = || match *value {
            Value::Double(number) => Some(number),
            Value::Int(number) => Some(number as f64),
            Value::Uint(number) => Some(number as f64),
            _ => None,
        };
        let bytes = |bytes: &[u8]| milieu_text {
            bytes: bytes.as_ptr().cast(),
            length: bytes.len(),
        };
        macro_rules! integer {
            ($type:ty) => {
                whole().and_then(|number| <$type>::try_from(number).ok())
            };
        }
        // SAFETY: the caller has room for an element of this kind.
        unsafe {
            match self {
                Element::Bool => match value {
                    Value::Bool(value) => put(Some(*value), at),
                    _ => false,
                },
                Element::I8 => put(integer!(i8), at),
                Element::I16 => put(integer!(i16), at),
                Element::I32 => put(integer!(i32), at),
                Element::I64 => put(integer!(i64), at),
                Element::U8 => put(integer!(u8), at),
                Element::U16 => put(integer!(u16), at),
                Element::U32 => put(integer!(u32), at),
                Element::U64 => put(integer!(u64), at),
                #[allow(
                    clippy::cast_possible_truncation,
                    reason = "single precision is asked for"
                )]
                Element::F32 => put(number().map(|number| number as f32), at),
                Element::F64 => put(number(), at),
                Element::Time => match value {
                    Value::Time(time) => put(Some(time.nanoseconds()), at),
                    // As JSON has it.
                    Value::Text(text) => put(text.parse().ok().map(Time::nanoseconds), at),
                    _ => false,
                },
                Element::Span => match value {
                    Value::Span(span) => put(Some(span.nanoseconds()), at),
                    Value::Text(text) => put(text.parse().ok().map(Span::nanoseconds), at),
                    _ => false,
                },
                Element::Text => match value {
                    Value::Text(text) => put(Some(milieu_text::of(text)), at),
                    _ => false,
                },
                Element::Bytes => match value {
                    Value::Bytes(all) => put(Some(bytes(all)), at),
                    _ => false,
                },
                Element::Choice(words) => match value {
                    Value::Text(text) => {
                        let place = words.iter().position(|word| *word == &**text);
                        put(place.and_then(|place| u32::try_from(place).ok()), at)
                    }
                    _ => false,
                },
                Element::Struct(_) => false,
            }
        }
    }
}
