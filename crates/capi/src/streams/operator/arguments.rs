//! What an operator is told when it is made.

use milieu::stream::{Kind, Parameter};

use super::{
    super::{
        abi::{MILIEU_SPAN, milieu_content, milieu_datum, milieu_function_call},
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
        let (made, name, datum) = unsafe {
            (
                Lent::find(arguments.cast_mut())?,
                name.read("name")?,
                out(datum, "datum")?,
            )
        };
        let parameter = made.parameter(name, |_| true, "")?;
        *datum = parameter.map_or(milieu_datum::NOTHING, of_parameter);
        Ok(())
    })
}

fn datum(kind: u32, content: milieu_content) -> milieu_datum {
    milieu_datum { kind, content }
}

fn of_parameter(parameter: &Parameter) -> milieu_datum {
    match parameter {
        Parameter::Flag(boolean) => datum(1, milieu_content { boolean: *boolean }),
        Parameter::Integer(whole) => datum(4, milieu_content { whole: *whole }),
        Parameter::Number(text) => {
            let number = text.parse().unwrap_or(f64::NAN);
            datum(9, milieu_content { number })
        }
        Parameter::Span(span) => {
            let whole = span.nanoseconds();
            datum(MILIEU_SPAN, milieu_content { whole })
        }
        Parameter::Text(text) | Parameter::Expression(text) => {
            let text = milieu_text::of(text);
            datum(10, milieu_content { text })
        }
        // They have functions of their own.
        Parameter::Fields(_)
        | Parameter::Function(_)
        | Parameter::List(_)
        | Parameter::Call(..) => milieu_datum::NOTHING,
    }
}

const FIELDS: &str = "MILIEU_FIELDS";
const FUNCTIONS: &str = "MILIEU_FUNCTIONS";

fn is_fields(kind: Kind) -> bool {
    kind == Kind::Fields
}

fn is_functions(kind: Kind) -> bool {
    matches!(kind, Kind::Functions(_))
}

/// The parts of a parameter that may have several.
fn functions(parameter: Option<&Parameter>) -> &[Parameter] {
    match parameter {
        Some(Parameter::List(functions)) => functions,
        Some(function) => std::slice::from_ref(function),
        None => &[],
    }
}

fn none(name: &str, index: usize, count: usize) -> Failure {
    Failure::new(
        MILIEU_NO_SUCH,
        format_args!("`{name}` has no part {index}; there are {count}, counted from 0"),
    )
}

/// How many fields or functions a parameter has.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_arguments_count(
    arguments: *const milieu_arguments,
    name: milieu_text,
    count: *mut usize,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (made, name, count) = unsafe {
            (
                Lent::find(arguments.cast_mut())?,
                name.read("name")?,
                out(count, "count")?,
            )
        };
        let either = |kind| is_fields(kind) || is_functions(kind);
        let parameter = made.parameter(name, either, "MILIEU_FIELDS or MILIEU_FUNCTIONS")?;
        *count = match parameter {
            Some(Parameter::Fields(fields)) => fields.len(),
            // One of the whole.
            Some(Parameter::Expression(_) | Parameter::Function(_)) => 0,
            parameter => functions(parameter).len(),
        };
        Ok(())
    })
}

/// A field of a parameter, and the expression that it becomes.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_arguments_field(
    arguments: *const milieu_arguments,
    name: milieu_text,
    index: usize,
    field: *mut milieu_text,
    expression: *mut *mut super::milieu_expression,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (made, name, field, expression) = unsafe {
            (
                Lent::find(arguments.cast_mut())?,
                name.read("name")?,
                out(field, "field")?,
                out(expression, "expression")?,
            )
        };
        let fields = match made.parameter(name, is_fields, FIELDS)? {
            Some(Parameter::Fields(fields)) => &fields[..],
            _ => &[],
        };
        let wanted = fields.get(index);
        let (known, text) = wanted.ok_or_else(|| none(name, index, fields.len()))?;
        let computed = Parameter::Expression(text.clone());
        *expression = super::expression::made(made, known, &computed)?;
        *field = milieu_text::of(known);
        Ok(())
    })
}

/// A function of a parameter.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_arguments_function(
    arguments: *const milieu_arguments,
    name: milieu_text,
    index: usize,
    function: *mut milieu_function_call,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (made, name, function) = unsafe {
            (
                Lent::find(arguments.cast_mut())?,
                name.read("name")?,
                out(function, "function")?,
            )
        };
        let all = functions(made.parameter(name, is_functions, FUNCTIONS)?);
        let wanted = all.get(index);
        let (word, told) = match wanted.ok_or_else(|| none(name, index, all.len()))? {
            Parameter::Call(word, told) => (milieu_text::of(word), &told[..]),
            Parameter::Text(word) => (milieu_text::of(word), &[][..]),
            _ => (milieu_text::EMPTY, &[][..]),
        };
        let told: Box<[_]> = told.iter().map(of_parameter).collect();
        *function = milieu_function_call {
            name: word,
            arguments: told.as_ptr(),
            argument_count: told.len(),
        };
        made.told.push(told);
        Ok(())
    })
}
