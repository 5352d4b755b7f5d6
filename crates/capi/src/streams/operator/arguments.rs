//! What an operator is told when it is made.

use milieu::stream::{Declared, Kind, Parameter};

use super::{
    super::{
        abi::{MILIEU_SPAN, milieu_content, milieu_datum},
        lent::Lent,
    },
    milieu_arguments,
};
use crate::{
    abi::{MILIEU_NO_SUCH, milieu_result, milieu_text},
    call::{Failure, call, out},
};

/// A parameter of an operator that is being made.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_arguments_get(
    arguments: *const milieu_arguments,
    name: milieu_text,
    datum: *mut milieu_datum,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (found, name, datum) = unsafe {
            (
                Lent::find(arguments.cast_mut())?,
                name.read("name")?,
                out(datum, "datum")?,
            )
        };
        let arguments = found.arguments();
        let mut declared = arguments.definition.parameters.iter();
        let Some(declared) = declared.find(|declared| declared.name == name) else {
            let of = arguments.definition.name;
            return Err(Failure::new(
                MILIEU_NO_SUCH,
                format_args!("`{of}` has no parameter `{name}`"),
            ));
        };
        *datum = match arguments.given(name) {
            Some(given) => of_parameter(given),
            None => of_default(declared),
        };
        Ok(())
    })
}

const NOTHING: milieu_datum = milieu_datum {
    kind: 0,
    content: milieu_content { natural: 0 },
};

fn datum(kind: u32, content: milieu_content) -> milieu_datum {
    milieu_datum { kind, content }
}

fn of_number(text: &str) -> milieu_datum {
    let number = text.parse().unwrap_or(f64::NAN);
    datum(9, milieu_content { number })
}

fn of_parameter(parameter: &Parameter) -> milieu_datum {
    match parameter {
        Parameter::Flag(boolean) => datum(1, milieu_content { boolean: *boolean }),
        Parameter::Integer(whole) => datum(4, milieu_content { whole: *whole }),
        Parameter::Number(text) => of_number(text),
        Parameter::Span(span) => {
            let whole = span.nanoseconds();
            datum(MILIEU_SPAN, milieu_content { whole })
        }
        Parameter::Text(text) => {
            let text = milieu_text::of(text);
            datum(10, milieu_content { text })
        }
        // No parameter of these operators is of another kind.
        _ => NOTHING,
    }
}

fn of_default(declared: &Declared) -> milieu_datum {
    let Some(text) = declared.default.filter(|text| !text.is_empty()) else {
        return NOTHING;
    };
    match declared.kind {
        Kind::Flag => {
            let boolean = text == "true";
            datum(1, milieu_content { boolean })
        }
        Kind::Integer => {
            let whole = text.parse().unwrap_or_default();
            datum(4, milieu_content { whole })
        }
        Kind::Number => of_number(text),
        Kind::Span => {
            let span = milieu::transfer::Span::from_units(text);
            of_parameter(&Parameter::Span(span.unwrap_or_default()))
        }
        _ => {
            let text = milieu_text::of(text);
            datum(10, milieu_content { text })
        }
    }
}
