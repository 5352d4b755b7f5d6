//! The types of values, and the texts that stand for their values.

use super::known::nearest;
use std::borrow::Cow;
use std::fmt;
use std::num::IntErrorKind;

/// What kind of value a key has. The names are those of CORBA, as users of
/// Elektra know them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Type {
    /// True or false.
    Boolean,
    /// 16 bits with sign.
    Short,
    /// 16 bits without sign.
    UnsignedShort,
    /// 32 bits with sign.
    Long,
    /// 32 bits without sign.
    UnsignedLong,
    /// 64 bits with sign.
    LongLong,
    /// 64 bits without sign.
    UnsignedLongLong,
    /// A floating-point number of 32 bits.
    Float,
    /// A floating-point number of 64 bits.
    Double,
    /// Any text; the type of keys that state none.
    #[default]
    String,
    /// One of the texts that `check/enum/#` lists.
    Enum,
}

impl Type {
    /// All types.
    pub const ALL: [Type; 11] = [
        Type::Boolean,
        Type::Short,
        Type::UnsignedShort,
        Type::Long,
        Type::UnsignedLong,
        Type::LongLong,
        Type::UnsignedLongLong,
        Type::Float,
        Type::Double,
        Type::String,
        Type::Enum,
    ];

    /// As the specification writes it: `unsigned_long`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Type::Boolean => "boolean",
            Type::Short => "short",
            Type::UnsignedShort => "unsigned_short",
            Type::Long => "long",
            Type::UnsignedLong => "unsigned_long",
            Type::LongLong => "long_long",
            Type::UnsignedLongLong => "unsigned_long_long",
            Type::Float => "float",
            Type::Double => "double",
            Type::String => "string",
            Type::Enum => "enum",
        }
    }

    /// The type of that name, if there is one.
    pub fn parse(name: &str) -> Option<Type> {
        Self::ALL.into_iter().find(|t| t.as_str() == name)
    }

    /// The least and the greatest value of a type of whole numbers.
    pub const fn integer_bounds(self) -> Option<(i128, i128)> {
        Some(match self {
            Type::Short => (i16::MIN as i128, i16::MAX as i128),
            Type::UnsignedShort => (0, u16::MAX as i128),
            Type::Long => (i32::MIN as i128, i32::MAX as i128),
            Type::UnsignedLong => (0, u32::MAX as i128),
            Type::LongLong => (i64::MIN as i128, i64::MAX as i128),
            Type::UnsignedLongLong => (0, u64::MAX as i128),
            _ => return None,
        })
    }

    /// Whether values are numbers, whole or floating-point.
    pub const fn is_number(self) -> bool {
        self.integer_bounds().is_some() || self.is_float()
    }

    /// Whether values are floating-point numbers.
    pub const fn is_float(self) -> bool {
        matches!(self, Type::Float | Type::Double)
    }

    /// The value of a key that nobody gave one: false, 0, the empty text, the
    /// first variant.
    pub const fn zero(self) -> Scalar<'static> {
        match self {
            Type::Boolean => Scalar::Boolean(false),
            Type::Short | Type::Long | Type::LongLong => Scalar::Signed(0),
            Type::UnsignedShort | Type::UnsignedLong | Type::UnsignedLongLong => {
                Scalar::Unsigned(0)
            }
            Type::Float | Type::Double => Scalar::Float(0.0),
            Type::String => Scalar::Text(""),
            Type::Enum => Scalar::Variant(0),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A value that has been checked. Whole numbers come as the widest of their
/// sign; the rules have made sure that they fit the type. A `float` comes as
/// the `f64` of exactly the value that its `f32` has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar<'a> {
    /// Of a `boolean`.
    Boolean(bool),
    /// Of `short`, `long` and `long_long`.
    Signed(i64),
    /// Of `unsigned_short`, `unsigned_long` and `unsigned_long_long`.
    Unsigned(u64),
    /// Of `float` and `double`.
    Float(f64),
    /// Of a `string`.
    Text(&'a str),
    /// Of an `enum`: the index of the variant.
    Variant(u32),
}

const TRUE: [&str; 5] = ["true", "1", "yes", "on", "enabled"];
const FALSE: [&str; 5] = ["false", "0", "no", "off", "disabled"];

/// What boolean the text stands for, in any case of letters.
pub fn parse_boolean(text: &str) -> Option<bool> {
    let is = |words: [&str; 5]| words.iter().any(|word| word.eq_ignore_ascii_case(text));
    if is(TRUE) {
        Some(true)
    } else if is(FALSE) {
        Some(false)
    } else {
        None
    }
}

/// Reads a boolean; the error says why it is none.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    parse_boolean(text).ok_or_else(|| "is not a boolean; give `true` or `false`".to_owned())
}

/// Reads a whole number of that type; the error says why it is none.
pub(super) fn integer(type_: Type, text: &str) -> Result<i128, String> {
    let (min, max) = type_.integer_bounds().expect("a type of whole numbers");
    let fits = match text.parse::<i128>() {
        Ok(number) if (min..=max).contains(&number) => return Ok(number),
        Ok(_) => false,
        Err(error) => !matches!(
            error.kind(),
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow
        ),
    };
    // They are bounds of types that have 64 bits at most, which take less to print.
    let (min, max) = (min as i64, max as u64);
    Err(match fits {
        true => format!("is not a whole number; give digits only, from {min} to {max}"),
        false => format!("does not fit {type_}; give a whole number from {min} to {max}"),
    })
}

/// Reads a floating-point number of that type; the error says why it is none.
#[cfg(feature = "floats")]
pub(super) fn float(type_: Type, text: &str, infinite: bool) -> Result<f64, String> {
    let not_a_number = || "is not a number; give one such as `0.5` or `1e-3`".to_owned();
    let number = if type_ == Type::Float {
        // Through f32, since rounding twice may give another number.
        text.parse::<f32>().map(f64::from)
    } else {
        text.parse::<f64>()
    };
    let number = number.map_err(|_| not_a_number())?;
    if number.is_finite() {
        return Ok(number);
    }
    if number.is_nan() {
        return Err(not_a_number());
    }
    let spelled_out = !text.contains(|c: char| c.is_ascii_digit());
    if spelled_out && infinite {
        Ok(number)
    } else if spelled_out {
        Err(
            "is infinite; give a finite number, or allow it with a range such as `0-inf`"
                .to_owned(),
        )
    } else {
        let max = if type_ == Type::Float {
            format!("{:e}", f32::MAX)
        } else {
            format!("{:e}", f64::MAX)
        };
        Err(format!(
            "does not fit {type_}; give a number from -{max} to {max}"
        ))
    }
}

/// The shortest text that reads back as the same number of that type.
#[cfg(feature = "floats")]
pub(super) fn float_text(type_: Type, number: f64) -> String {
    // Plain digits as long as a person would write them. The float nearest to
    // 0.00001 is a little less than that.
    let plain = number == 0.0 || (9.5e-6..1e16).contains(&number.abs()) || number.is_infinite();
    match (type_ == Type::Float, plain) {
        (true, true) => format!("{}", number as f32),
        (true, false) => format!("{:e}", number as f32),
        (false, true) => format!("{number}"),
        (false, false) => format!("{number:e}"),
    }
}

/// The canonical text of a value.
pub(super) fn text<'a>(type_: Type, variants: &'a [String], scalar: Scalar<'a>) -> Cow<'a, str> {
    match scalar {
        Scalar::Boolean(true) => Cow::Borrowed("true"),
        Scalar::Boolean(false) => Cow::Borrowed("false"),
        Scalar::Signed(number) => Cow::Owned(number.to_string()),
        Scalar::Unsigned(number) => Cow::Owned(number.to_string()),
        #[cfg(feature = "floats")]
        Scalar::Float(number) => Cow::Owned(float_text(type_, number)),
        // There are no such types then.
        #[cfg(not(feature = "floats"))]
        Scalar::Float(_) => Cow::Borrowed(type_.as_str()),
        Scalar::Text(text) => Cow::Borrowed(text),
        Scalar::Variant(index) => variants
            .get(index as usize)
            .map_or(Cow::Borrowed(""), |v| Cow::Borrowed(v.as_str())),
    }
}

/// Says that a text is none of the choices, and which one may be meant.
pub(super) fn not_among(text: &str, choices: &[String]) -> String {
    const MOST: usize = 12;
    let meant = nearest(text, choices.iter().map(String::as_str));
    let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
    let mut listed = choices[..choices.len().min(MOST)].join(", ");
    if choices.len() > MOST {
        listed.push_str(", …");
    }
    format!("is not one of the texts allowed: {listed}{meant}")
}
