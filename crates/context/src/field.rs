//! What a contextual value can be, and its type-erased form, the [`Cell`].

use std::{borrow::Cow, ptr::NonNull};

use milieu_keys::Scalar;

use crate::{Array, Text};

/// The representation of a contextual value in the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `bool`
    Bool,
    /// `i16`
    I16,
    /// `i32`
    I32,
    /// `i64`
    I64,
    /// `u16`
    U16,
    /// `u32`
    U32,
    /// `u64`
    U64,
    /// `f32`
    F32,
    /// `f64`
    F64,
    /// [`Text`]
    Text,
    /// A `#[repr(u32)]` enum without fields whose discriminants count from 0.
    Enum,
    /// An [`Array`] whose elements are of this kind, which is no array itself.
    Array(&'static Kind),
}

impl Kind {
    /// Size of the field in bytes.
    #[must_use]
    pub const fn width(self) -> usize {
        match self.shape() {
            Shape::One => 1,
            Shape::Two => 2,
            Shape::Four => 4,
            Shape::Eight => 8,
            Shape::Pair => size_of::<Text>(),
        }
    }

    /// Alignment of the field in bytes.
    #[must_use]
    pub const fn align(self) -> usize {
        match self.shape() {
            Shape::One => 1,
            Shape::Two => align_of::<u16>(),
            Shape::Four => align_of::<u32>(),
            Shape::Eight => align_of::<u64>(),
            Shape::Pair => align_of::<Text>(),
        }
    }

    pub(crate) const fn shape(self) -> Shape {
        match self {
            Kind::Bool => Shape::One,
            Kind::I16 | Kind::U16 => Shape::Two,
            Kind::I32 | Kind::U32 | Kind::F32 | Kind::Enum => Shape::Four,
            Kind::I64 | Kind::U64 | Kind::F64 => Shape::Eight,
            Kind::Text | Kind::Array(_) => Shape::Pair,
        }
    }

    /// What the elements are, of an array.
    pub(crate) const fn element(self) -> Option<Kind> {
        match self {
            Kind::Array(element) => Some(*element),
            _ => None,
        }
    }
}

/// How a field lies in memory, whatever it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    One,
    Two,
    Four,
    Eight,
    /// A pointer and a length: a text, or an array.
    Pair,
}

/// A Rust type that can be a contextual value.
///
/// Implemented for `bool`, the integers from 16 to 64 bits, the floats,
/// [`Text`], and [`Array`]s of these; `#[derive(Choice)]` implements it for enums.
///
/// # Safety
///
/// `Self` has exactly the representation that [`Kind`] documents for `KIND`.
pub unsafe trait Field: 'static {
    /// The representation.
    const KIND: Kind;
    /// What an assignment takes: `&str` for [`Text`], a slice for [`Array`], the
    /// type itself otherwise.
    type Input<'a>: 'a;
    /// The text that the key set keeps for an assigned value. That of an array
    /// has one line for each element.
    fn text<'a>(input: Self::Input<'a>) -> Cow<'a, str>;
    /// One text, or one for each element.
    #[doc(hidden)]
    fn texts<'a>(input: Self::Input<'a>) -> Texts<'a> {
        Texts::One(Self::text(input))
    }
}

/// What an assignment assigns.
#[doc(hidden)]
pub enum Texts<'a> {
    One(Cow<'a, str>),
    Each(Vec<Cow<'a, str>>),
}

macro_rules! number {
    ($($type:ty => $kind:ident),*) => {$(
        // SAFETY: `Kind` documents this very type.
        unsafe impl Field for $type {
            const KIND: Kind = Kind::$kind;
            type Input<'a> = $type;
            fn text<'a>(input: Self::Input<'a>) -> Cow<'a, str> {
                Cow::Owned(input.to_string())
            }
        }
    )*};
}
number!(i16 => I16, i32 => I32, i64 => I64, u16 => U16, u32 => U32, u64 => U64, f32 => F32, f64 => F64);

// SAFETY: `Kind::Bool` documents `bool`.
unsafe impl Field for bool {
    const KIND: Kind = Kind::Bool;
    type Input<'a> = bool;
    fn text<'a>(input: Self::Input<'a>) -> Cow<'a, str> {
        Cow::Borrowed(if input { "true" } else { "false" })
    }
}

// SAFETY: `Kind::Text` documents `Text`.
unsafe impl Field for Text {
    const KIND: Kind = Kind::Text;
    type Input<'a> = &'a str;
    fn text<'a>(input: Self::Input<'a>) -> Cow<'a, str> {
        Cow::Borrowed(input)
    }
}

// SAFETY: `Kind::Array` documents an array of this kind.
unsafe impl<T: Field> Field for Array<T>
where
    for<'a> T::Input<'a>: Copy,
{
    const KIND: Kind = {
        assert!(
            T::KIND.element().is_none(),
            "the elements of an array are no arrays"
        );
        Kind::Array(&T::KIND)
    };
    type Input<'a> = &'a [T::Input<'a>];
    fn text<'a>(input: Self::Input<'a>) -> Cow<'a, str> {
        let texts: Vec<_> = input.iter().map(|element| T::text(*element)).collect();
        Cow::Owned(texts.join("\n"))
    }
    fn texts<'a>(input: Self::Input<'a>) -> Texts<'a> {
        Texts::Each(input.iter().map(|element| T::text(*element)).collect())
    }
}

/// A value without its type: the bits of a number, or the pointer and the
/// length of a text or an array.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    pointer: *const u8,
    bits: u64,
}

// SAFETY: the pointer is only ever read as the immutable bytes of a text, or the
// immutable elements of an array, that the holder of the cell keeps alive.
unsafe impl Send for Cell {}
// SAFETY: as above.
unsafe impl Sync for Cell {}

impl Cell {
    /// The cell of a checked scalar. `text` must outlive every use of the cell.
    pub fn new(kind: Kind, scalar: &Scalar<'_>, text: &str) -> Option<Cell> {
        let bits = match (kind, scalar) {
            (Kind::Text, _) => {
                return Some(Cell {
                    pointer: text.as_ptr(),
                    bits: text.len() as u64,
                });
            }
            (Kind::Bool, Scalar::Boolean(value)) => u64::from(*value),
            (Kind::I16, Scalar::Signed(v)) => signed(i16::try_from(*v).ok()?.into()),
            (Kind::I32, Scalar::Signed(v)) => signed(i32::try_from(*v).ok()?.into()),
            (Kind::I64, Scalar::Signed(v)) => signed(*v),
            (Kind::U16, Scalar::Unsigned(v)) => u64::from(u16::try_from(*v).ok()?),
            (Kind::U32, Scalar::Unsigned(v)) => u64::from(u32::try_from(*v).ok()?),
            (Kind::U64, Scalar::Unsigned(v)) => *v,
            #[allow(clippy::cast_possible_truncation)]
            (Kind::F32, Scalar::Float(v)) => u64::from((*v as f32).to_bits()),
            (Kind::F64, Scalar::Float(v)) => v.to_bits(),
            (Kind::Enum, Scalar::Variant(v)) => u64::from(*v),
            _ => return None,
        };
        Some(Cell {
            pointer: std::ptr::null(),
            bits,
        })
    }

    /// The value of a field that nothing gives a value: zero, false, the first
    /// variant, no elements, or `text`, which must outlive every use of the cell.
    pub fn zero(kind: Kind, text: &str) -> Cell {
        match kind {
            Kind::Text => Cell {
                pointer: text.as_ptr(),
                bits: text.len() as u64,
            },
            Kind::Array(_) => Cell::slice(NonNull::<u64>::dangling().as_ptr().cast(), 0),
            _ => Cell {
                pointer: std::ptr::null(),
                bits: 0,
            },
        }
    }

    /// The cell of an array: so many elements from there on, which must outlive
    /// every use of the cell.
    pub fn slice(elements: *const u8, count: usize) -> Cell {
        Cell {
            pointer: elements,
            bits: count as u64,
        }
    }

    /// Writes the value into its field.
    ///
    /// # Safety
    ///
    /// `field` is valid for writing a field of this shape, and this cell was made
    /// or read with the field's kind (and, for enums, the same variants).
    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    pub unsafe fn store(self, shape: Shape, field: *mut u8) {
        // SAFETY: the caller vouches for the field; the representations are
        // those that `Kind` documents, of which `Text` and `Array` are one, and
        // `bool` and enum cells hold only values that `Cell::new` accepted.
        unsafe {
            match shape {
                Shape::Pair => field
                    .cast::<Text>()
                    .write(Text::from_raw(self.pointer, self.bits as usize)),
                Shape::Eight => field.cast::<u64>().write(self.bits),
                Shape::Four => field.cast::<u32>().write(self.bits as u32),
                Shape::Two => field.cast::<u16>().write(self.bits as u16),
                Shape::One => field.write(self.bits as u8),
            }
        }
    }

    /// Writes the value into its field; returns what was there, for a later
    /// [`Cell::store`] to bring it back.
    ///
    /// # Safety
    ///
    /// As [`store`](Cell::store), and the field is valid for reading.
    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    pub unsafe fn exchange(self, shape: Shape, field: *mut u8) -> Cell {
        let number = |bits| Cell {
            pointer: std::ptr::null(),
            bits,
        };
        // SAFETY: as in `store`.
        unsafe {
            match shape {
                Shape::Pair => {
                    let new = Text::from_raw(self.pointer, self.bits as usize);
                    let (pointer, length) = field.cast::<Text>().replace(new).parts();
                    Cell::slice(pointer, length)
                }
                Shape::Eight => number(field.cast::<u64>().replace(self.bits)),
                Shape::Four => number(field.cast::<u32>().replace(self.bits as u32).into()),
                Shape::Two => number(field.cast::<u16>().replace(self.bits as u16).into()),
                Shape::One => number(field.replace(self.bits as u8).into()),
            }
        }
    }
}

/// The bits of a signed number, which narrower fields take the lower ones of.
#[allow(clippy::cast_sign_loss)]
fn signed(value: i64) -> u64 {
    value as u64
}
