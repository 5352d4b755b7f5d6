//! Expressions that flows hand to operators of the program.

use milieu::stream::{Kind, Parameter, operators::Computation};

use super::{
    super::{
        abi::milieu_datum,
        event::{datum_of_value, find as find_event, milieu_event},
        lent::Lent,
    },
    Made, milieu_arguments,
};
use crate::{
    abi::{MILIEU_UNFIT, milieu_result, milieu_text},
    call::{Failure, call, out},
    handle::{self, Slot, handle},
};

/// What an operator computes of events.
pub struct Expression {
    computation: Computation,
    /// What was computed last, where the other side reads it.
    value: milieu::transfer::Value,
    json: String,
}

handle!(Expression, b"expr", "milieu_expression");

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_expression = Slot<Expression>;

/// What is computed by a parameter, which is called so.
pub(super) fn made(
    of: &Made,
    name: &str,
    parameter: &Parameter,
) -> Result<*mut milieu_expression, Failure> {
    let made = of.arguments().computation_of(parameter);
    let computation = made
        .map_err(|wrong| Failure::new(MILIEU_UNFIT, format_args!("`{name}`: {}", wrong.message)))?;
    Ok(handle::new(Expression {
        computation,
        value: milieu::transfer::Value::Null,
        json: String::new(),
    }))
}

/// An expression that an operator is told, which is the operator's from then on.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_arguments_expression(
    arguments: *const milieu_arguments,
    name: milieu_text,
    expression: *mut *mut milieu_expression,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (found, name, expression) = unsafe {
            (
                Lent::find(arguments.cast_mut())?,
                name.read("name")?,
                out(expression, "expression")?,
            )
        };
        let of_events = |kind| matches!(kind, Kind::Expression | Kind::Fields);
        let kinds = "MILIEU_EXPRESSION or MILIEU_FIELDS";
        *expression = match found.parameter(name, of_events, kinds)? {
            None | Some(Parameter::Fields(_)) => std::ptr::null_mut(),
            Some(parameter) => made(found, name, parameter)?,
        };
        Ok(())
    })
}

/// What an expression makes of an event.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_expression_value(
    expression: *mut milieu_expression,
    event: *const milieu_event,
    datum: *mut milieu_datum,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (mut expression, event, datum) = unsafe {
            (
                handle::using(expression.cast_const())?,
                find_event(event)?,
                out(datum, "datum")?,
            )
        };
        let Expression {
            computation,
            value,
            json,
        } = &mut *expression;
        *value = computation.value(event).map_err(|reason| {
            let why = computation.fault().unwrap_or(reason.as_str());
            Failure::new(MILIEU_UNFIT, why)
        })?;
        *datum = datum_of_value(value, json)?;
        Ok(())
    })
}

/// Gives an expression back.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_expression_free(expression: *mut milieu_expression) {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(expression)? });
        Ok(())
    });
}
