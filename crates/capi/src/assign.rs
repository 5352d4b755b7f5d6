//! Assigning: what comes as a C type goes on as the text of its value.

use milieu::context::Invalid;

use crate::{
    abi::{
        MILIEU_INVALID, MILIEU_READ_ONLY, MILIEU_WITHOUT_ASSIGNMENT, milieu_layer, milieu_result,
        milieu_text,
    },
    call::{Failure, call},
    context::{Context, milieu_context},
    handle::using,
    text::read_slice,
};

impl Context {
    /// The place of a value that may be assigned; `several`, if as an array.
    fn assignable(&self, value: u32, several: bool) -> Result<usize, Failure> {
        let index = self.value(value)?;
        let name = |index: usize| self.erased.layout().values()[index].pattern;
        let refused =
            |result, why| Err(Failure::new(result, format_args!("{}: {why}", name(index))));
        if self.policy & MILIEU_WITHOUT_ASSIGNMENT != 0 {
            return refused(
                MILIEU_READ_ONLY,
                "this context was made with MILIEU_WITHOUT_ASSIGNMENT",
            );
        }
        if self.erased.is_read_only(index) {
            return refused(
                MILIEU_READ_ONLY,
                "the specification says `readonly`; remove that if the program is meant to change it",
            );
        }
        match (self.erased.is_array(index), several) {
            (true, false) => refused(
                MILIEU_INVALID,
                "is an array; assign all elements by milieu_context_set_elements",
            ),
            (false, true) => refused(MILIEU_INVALID, "is no array, and has no elements"),
            _ => Ok(index),
        }
    }

    fn set(&mut self, value: u32, text: &str) -> Result<(), Failure> {
        let index = self.assignable(value, false)?;
        self.erased.set(index, text).map_err(invalid)
    }
}

fn invalid(error: Invalid) -> Failure {
    Failure::new(MILIEU_INVALID, error)
}

macro_rules! setters {
    ($($(#[$attribute:meta])* $name:ident($input:ident: $type:ty) $text:expr;)*) => {$(
        $(#[$attribute])*
        ///
        /// # Safety
        ///
        /// As `milieu.h` says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            context: *mut milieu_context,
            value: u32,
            $input: $type,
        ) -> milieu_result {
            call(|| {
                // SAFETY: as the caller vouches.
                let mut context = unsafe { using(context.cast_const())? };
                context.set(value, $text)
            })
        }
    )*};
}
setters! {
    /// Assigns a boolean.
    milieu_context_set_bool(boolean: bool) if boolean { "true" } else { "false" };
    /// Assigns a signed integer.
    milieu_context_set_signed(number: i64) &number.to_string();
    /// Assigns an unsigned integer.
    milieu_context_set_unsigned(number: u64) &number.to_string();
    #[cfg(feature = "floats")]
    /// Assigns a float of 32 bits.
    milieu_context_set_float(number: f32) &number.to_string();
    #[cfg(feature = "floats")]
    /// Assigns a float of 64 bits.
    milieu_context_set_double(number: f64) &number.to_string();
}

/// Assigns a text.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_set_text(
    context: *mut milieu_context,
    value: u32,
    text: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (mut context, text) = unsafe { (using(context.cast_const())?, text.read("text")?) };
        context.set(value, text)
    })
}

/// Assigns a variant.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_set_variant(
    context: *mut milieu_context,
    value: u32,
    variant: u32,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let mut context = unsafe { using(context.cast_const())? };
        let index = context.value(value)?;
        let text = context.erased.variants(index).get(variant as usize);
        let text = text.cloned().ok_or_else(|| {
            let pattern = context.erased.layout().values()[index].pattern;
            let message = format!("{pattern}: there is no variant {variant}");
            Failure::new(MILIEU_INVALID, message)
        })?;
        context.set(value, &text)
    })
}

/// Assigns all elements of an array.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_set_elements(
    context: *mut milieu_context,
    value: u32,
    elements: *const milieu_text,
    count: usize,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        unsafe {
            let mut context = using(context.cast_const())?;
            let elements = read_slice(elements, count, "elements")?;
            let elements = elements.iter().map(|text| text.read("elements"));
            let elements: Vec<&str> = elements.collect::<Result<_, _>>()?;
            let index = context.assignable(value, true)?;
            let elements = elements.into_iter();
            context.erased.set_all(index, elements).map_err(invalid)
        }
    })
}

/// Removes the user's value.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_unset(
    context: *mut milieu_context,
    value: u32,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let mut context = unsafe { using(context.cast_const())? };
        let index = context.value(value)?;
        context.assignable(value, context.erased.is_array(index))?;
        context.erased.unset(index);
        Ok(())
    })
}

/// Removes what belongs to a value of a layer.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_context_forget(
    context: *mut milieu_context,
    layer: milieu_layer,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let mut context = unsafe { using(context.cast_const())? };
        if context.policy & MILIEU_WITHOUT_ASSIGNMENT != 0 {
            return Err(Failure::new(
                MILIEU_READ_ONLY,
                "this context was made with MILIEU_WITHOUT_ASSIGNMENT",
            ));
        }
        // SAFETY: as the caller vouches.
        let layer = unsafe { context.layer(&layer)? };
        context.erased.forget(layer.id, layer.value);
        Ok(())
    })
}
