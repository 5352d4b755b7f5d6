//! Functions of the program that flows name: what is computed or made of an event.

use std::ffi::c_void;

use milieu::{
    Error,
    stream::{Failed, Output},
    transfer::{Event, Span, Time, Value},
};

use super::{
    abi::{MILIEU_BYTES, MILIEU_SPAN, MILIEU_TIME, milieu_datum},
    event::{Lenders, milieu_event},
    lent::{Lend, Lent},
    operator::{milieu_output, with_output},
};
use crate::{
    abi::{MILIEU_INVALID, MILIEU_LATE, MILIEU_OK, milieu_destroy, milieu_result, milieu_text},
    call::{Failure, call, null, said},
    coordinator::{Coordinator, milieu_coordinator},
    handle,
    scope::User,
};

/// What a function has to say.
pub struct Answer(Option<Value>);

impl Lend for Answer {
    const TAG: [u8; 4] = *b"answ";
    const NAME: &'static str = "milieu_answer";
}

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_answer = Lent<Answer>;

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_compute = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        event: *const milieu_event,
        answer: *mut milieu_answer,
    ) -> milieu_result,
>;

/// A function of the program.
pub(crate) struct Computing {
    compute:
        unsafe extern "C" fn(*mut c_void, *const milieu_event, *mut milieu_answer) -> milieu_result,
    user: User,
    lenders: Lenders<Answer>,
}

impl Computing {
    pub fn new(compute: milieu_compute, user: User) -> Result<Self, Failure> {
        Ok(Computing {
            compute: compute.ok_or_else(|| null("compute"))?,
            user,
            lenders: Lenders::default(),
        })
    }

    /// What the function says of an event, or why it has failed.
    pub fn of(&self, event: &Event) -> Result<Option<Value>, String> {
        let mut answer = Answer(None);
        let result = self.lenders.lend(event, |lent, standing| {
            standing.during(&mut answer, |answer| {
                // SAFETY: the program has handed over both for this.
                unsafe { (self.compute)(self.user.data(), lent, answer) }
            })
        });
        match result {
            MILIEU_OK => Ok(answer.0),
            _ => Err(said()),
        }
    }

    /// The same as a key has it.
    pub fn text_of(&self, event: &Event) -> Result<Option<String>, Error> {
        let value = self.of(event).map_err(Error::Flow)?;
        Ok(value.map(|value| match value {
            Value::Bool(value) => i32::from(value).to_string(),
            Value::Int(value) => value.to_string(),
            Value::Uint(value) => value.to_string(),
            Value::Double(value) => value.to_string(),
            Value::Text(text) => text.to_string(),
            Value::Time(time) => time.nanoseconds().to_string(),
            Value::Span(span) => span.nanoseconds().to_string(),
            _ => String::new(),
        }))
    }
}

/// # Safety
///
/// Its content is of its kind, and can be read.
pub(crate) unsafe fn value_of(datum: &milieu_datum) -> Result<Value, Failure> {
    let content = &datum.content;
    // SAFETY: as the caller vouches.
    unsafe {
        Ok(match datum.kind {
            0 => Value::Null,
            // Any byte may stand there.
            1 => Value::Bool((&raw const content.boolean).cast::<u8>().read() != 0),
            4 => Value::Int(content.whole),
            7 => Value::Uint(content.natural),
            9 => Value::Double(content.number),
            10 => Value::Text(content.text.read("text")?.into()),
            MILIEU_TIME => Value::Time(Time::from_nanoseconds(content.whole)),
            MILIEU_SPAN => Value::Span(Span::from_nanoseconds(content.whole)),
            MILIEU_BYTES => Value::Bytes(content.text.bytes("bytes")?.into()),
            kind => {
                return Err(Failure::new(
                    MILIEU_INVALID,
                    format_args!("a datum cannot be of kind {kind}; see milieu_datum"),
                ));
            }
        })
    }
}

/// Says what was computed.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_answer_give(
    answer: *mut milieu_answer,
    datum: milieu_datum,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        unsafe {
            let given = value_of(&datum)?;
            let Answer(value) = Lent::find(answer)?;
            *value = Some(given);
        }
        Ok(())
    })
}

/// Registers a function that flows may name.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_function_define(
    coordinator: *const milieu_coordinator,
    name: milieu_text,
    compute: milieu_compute,
    blocks: bool,
    user: *mut c_void,
    destroy: milieu_destroy,
) -> milieu_result {
    let user = User::new(user, destroy);
    call(|| {
        // SAFETY: as the caller vouches.
        let (Coordinator(milieu), name) =
            unsafe { (handle::shared(coordinator)?, name.read("name")?) };
        let computing = Computing::new(compute, user)?;
        let compute = move |event: &Event| {
            let value = computing.of(event).map_err(Failed::new)?;
            Ok::<_, Failed>(value.unwrap_or(Value::Null))
        };
        let registered = milieu.functions(|functions| {
            match blocks {
                true => functions.value_of_event_blocking(name, compute),
                false => functions.value_of_event(name, compute),
            };
        });
        registered.map_err(|error| Failure::new(MILIEU_LATE, error))
    })
}

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_transform = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        event: *const milieu_event,
        output: *mut milieu_output,
    ) -> milieu_result,
>;

/// Registers a function that makes events, which `transform` may name.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_transform_define(
    coordinator: *const milieu_coordinator,
    name: milieu_text,
    transform: milieu_transform,
    blocks: bool,
    user: *mut c_void,
    destroy: milieu_destroy,
) -> milieu_result {
    let user = User::new(user, destroy);
    call(|| {
        // SAFETY: as the caller vouches.
        let (Coordinator(milieu), name) =
            unsafe { (handle::shared(coordinator)?, name.read("name")?) };
        let transform = transform.ok_or_else(|| null("transform"))?;
        let lenders = Lenders::default();
        let run = move |event: &Event, out: &mut Output<'_>| {
            lenders.lend(event, |lent, standing| {
                let run = |output| {
                    // SAFETY: the program has handed over both for this.
                    unsafe { transform(user.data(), lent, output) }
                };
                let (result, emitting) = with_output(standing, Some(event), out, None, false, run);
                result.map_err(Failed::new).map(|()| emitting.fate)
            })
        };
        let registered = milieu.functions(|functions| {
            match blocks {
                true => functions.tries_to_transform_event_blocking(name, run),
                false => functions.tries_to_transform_event(name, run),
            };
        });
        registered.map_err(|error| Failure::new(MILIEU_LATE, error))
    })
}
