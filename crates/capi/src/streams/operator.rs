//! Operators of the program: callbacks over a state of its own.

mod arguments;
mod expression;

use std::{
    collections::HashMap,
    ffi::{c_char, c_void},
    sync::{Arc, LazyLock, Mutex, PoisonError, Weak},
};

use milieu::{
    diagnostics::Diagnostic,
    stream::{
        Arguments, Declared, Definition, Failed, Fate, Inputs, Kind, Operator, Output, Reason,
    },
    transfer::{Event, Quality, Time, Value},
};

use super::{
    abi::{MILIEU_EXPRESSION, MILIEU_SPAN, milieu_operator, milieu_parameter, milieu_quality},
    event::{Lender, Lenders, When, find as find_event, milieu_event},
    types::{Record, Typed, milieu_event_type},
};
use crate::{
    abi::{
        MILIEU_INVALID, MILIEU_LATE, MILIEU_NO_SUCH, MILIEU_OK, MILIEU_WRONG_HANDLE,
        MILIEU_WRONG_LAYOUT, milieu_destroy, milieu_result, milieu_text,
    },
    call::{Failure, call, null, out, said},
    coordinator::{Coordinator, milieu_coordinator},
    handle,
    layout::check_abi,
    scope::User,
    text::{interned, read_slice, read_string},
};

pub use arguments::milieu_arguments_get;
pub use expression::{
    milieu_arguments_expression, milieu_expression, milieu_expression_free,
    milieu_expression_value,
};

/// It may take long over an event.
const BLOCKS: u32 = 1;
/// Its last event says how things are until the next.
const RETAINS: u32 = 2;
/// It remembers nothing.
const STATELESS: u32 = 4;

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_make = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        arguments: *const milieu_arguments,
        state: *mut *mut c_void,
    ) -> milieu_result,
>;
/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_step = Option<
    unsafe extern "C" fn(
        state: *mut c_void,
        input: u32,
        event: *const milieu_event,
        output: *mut milieu_output,
    ) -> milieu_result,
>;
/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_wake =
    Option<unsafe extern "C" fn(state: *mut c_void, output: *mut milieu_output) -> milieu_result>;
/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_save = Option<
    unsafe extern "C" fn(state: *mut c_void, snapshot: *mut milieu_snapshot) -> milieu_result,
>;
/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_restore =
    Option<unsafe extern "C" fn(state: *mut c_void, bytes: milieu_text) -> milieu_result>;

/// What the program has said of an operator.
struct Defined {
    make: milieu_make,
    step: unsafe extern "C" fn(
        *mut c_void,
        u32,
        *const milieu_event,
        *mut milieu_output,
    ) -> milieu_result,
    wake: milieu_wake,
    save: milieu_save,
    restore: milieu_restore,
    free: milieu_destroy,
    flags: u32,
    user: User,
}

/// The operators of this program, by the addresses of their definitions, which stay.
/// The coordinators for which they were defined keep what they do.
static DEFINED: LazyLock<Mutex<HashMap<usize, Known>>> = LazyLock::new(Mutex::default);

struct Known {
    _definition: &'static Definition,
    defined: Weak<Defined>,
}

fn address(definition: &Definition) -> usize {
    std::ptr::from_ref(definition).addr()
}

/// What an operator is made with.
#[allow(non_camel_case_types)]
#[repr(C)]
pub struct milieu_arguments {
    tag: u32,
    /// Borrowed for the callback.
    arguments: *const Arguments<'static>,
}

/// Where an operator puts what it publishes.
#[allow(non_camel_case_types)]
#[repr(C)]
pub struct milieu_output {
    tag: u32,
    inside: Inside,
}

struct Inside {
    /// Borrowed for the callback, which may not keep it.
    output: *mut Output<'static>,
    /// The event that has come, if one has.
    event: *const Event,
    /// Whether it is an operator's, which goes on after the callback.
    remembers: bool,
    fate: Fate,
    due: Option<Time>,
    /// How many of those that were held are so no more.
    settled: usize,
}

/// Where an operator puts what it remembers.
#[allow(non_camel_case_types)]
#[repr(C)]
pub struct milieu_snapshot {
    tag: u32,
    bytes: Vec<u8>,
}

const ARGUMENTS: u32 = u32::from_le_bytes(*b"argu");
const OUTPUT: u32 = u32::from_le_bytes(*b"outp");
const SNAPSHOT: u32 = u32::from_le_bytes(*b"snap");

/// An operator of the program.
struct Own {
    defined: Arc<Defined>,
    state: *mut c_void,
    lender: Lender,
    due: Option<Time>,
    held: usize,
    fault: Option<String>,
}

// SAFETY: the header says that the state of an operator goes from thread to thread.
unsafe impl Send for Own {}

impl Own {
    fn make(arguments: &Arguments<'_>) -> Result<Box<dyn Operator>, Diagnostic> {
        let known = DEFINED.lock().unwrap_or_else(PoisonError::into_inner);
        let defined = known.get(&address(arguments.definition));
        let defined = defined.and_then(|known| known.defined.upgrade());
        drop(known);
        let defined = defined.expect("a coordinator that knows an operator keeps it");
        let mut state = std::ptr::null_mut();
        if let Some(make) = defined.make {
            let mut seen = milieu_arguments {
                tag: ARGUMENTS,
                arguments: std::ptr::from_ref(arguments).cast(),
            };
            // SAFETY: the program has handed over both for this; `seen` is there
            // during the call.
            let result = unsafe { make(defined.user.data(), &raw const seen, &mut state) };
            // SAFETY: whoever has kept the pointer finds no tag.
            unsafe { (&raw mut seen.tag).write_volatile(0) };
            if result != MILIEU_OK {
                let name = arguments.definition.name;
                let why = said();
                return Err(Diagnostic::error(format!("`{name}` cannot be made: {why}")));
            }
        }
        Ok(Box::new(Own {
            defined,
            state,
            lender: Lender::new(),
            due: None,
            held: 0,
            fault: None,
        }))
    }

    /// Runs a callback with an output; what became of the event.
    fn run(
        &mut self,
        event: Option<&Event>,
        out: &mut Output<'_>,
        callback: impl FnOnce(*mut milieu_output) -> milieu_result,
    ) -> Fate {
        let remembers = true;
        let (result, inside) = with_output(event, out, self.due, remembers, callback);
        self.due = inside.due;
        self.held -= inside.settled.min(self.held);
        if let Err(why) = result {
            self.fault = Some(why);
            return Fate::Dropped(Reason::Fault);
        }
        if inside.fate == Fate::Held {
            self.held += 1;
        }
        inside.fate
    }
}

/// Runs a callback with an output: why it has failed if it has, and what it has said.
fn with_output(
    event: Option<&Event>,
    out: &mut Output<'_>,
    due: Option<Time>,
    remembers: bool,
    callback: impl FnOnce(*mut milieu_output) -> milieu_result,
) -> (Result<(), String>, Inside) {
    let mut seen = milieu_output {
        tag: OUTPUT,
        inside: Inside {
            output: std::ptr::from_mut(out).cast(),
            event: event.map_or(std::ptr::null(), std::ptr::from_ref),
            remembers,
            fate: Fate::Used,
            due,
            settled: 0,
        },
    };
    let result = callback(&raw mut seen);
    // SAFETY: it is a field of `seen`. Whoever has kept the pointer finds no tag.
    unsafe { (&raw mut seen.tag).write_volatile(0) };
    let result = match result {
        MILIEU_OK => Ok(()),
        _ => Err(said()),
    };
    (result, seen.inside)
}

impl Operator for Own {
    fn event(&mut self, input: usize, event: &Event, out: &mut Output<'_>) -> Fate {
        let (step, state) = (self.defined.step, self.state);
        let lent = self.lender.lend(event);
        let input = u32::try_from(input).unwrap_or(u32::MAX);
        // SAFETY: the program has made the state for this.
        let fate = self.run(Some(event), out, |output| unsafe {
            step(state, input, lent, output)
        });
        self.lender.recall();
        fate
    }

    fn wake(&mut self, out: &mut Output<'_>) {
        self.due = None;
        let state = self.state;
        if let Some(wake) = self.defined.wake {
            // SAFETY: the program has made the state for this.
            self.run(None, out, |output| unsafe { wake(state, output) });
        }
    }

    fn due(&self) -> Option<Time> {
        self.due
    }

    fn held(&self) -> usize {
        self.held
    }

    fn retains(&self) -> bool {
        self.defined.flags & RETAINS != 0
    }

    fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    fn blocks(&self) -> bool {
        self.defined.flags & BLOCKS != 0
    }

    fn is_like(&self, other: &dyn Operator, _: Time) -> bool {
        if self.defined.flags & STATELESS != 0 {
            return true;
        }
        let ours = self.snapshot();
        ours != Value::Null && ours == other.snapshot()
    }

    fn snapshot(&self) -> Value {
        let Some(save) = self.defined.save else {
            return Value::Null;
        };
        let mut seen = milieu_snapshot {
            tag: SNAPSHOT,
            bytes: Vec::new(),
        };
        // SAFETY: the program has made the state for this; `seen` is there during
        // the call.
        let result = unsafe { save(self.state, &raw mut seen) };
        // SAFETY: it is a field of `seen`. Whoever has kept the pointer finds no tag.
        unsafe { (&raw mut seen.tag).write_volatile(0) };
        match result {
            MILIEU_OK => Value::Bytes(seen.bytes.into()),
            _ => Value::Null,
        }
    }

    fn restore(&mut self, state: &Value) -> Result<(), String> {
        match (state, self.defined.restore) {
            (Value::Null, _) => Ok(()),
            (Value::Bytes(bytes), Some(restore)) => {
                let bytes = milieu_text {
                    bytes: bytes.as_ptr().cast(),
                    length: bytes.len(),
                };
                // SAFETY: the program has made the state for this.
                match unsafe { restore(self.state, bytes) } {
                    MILIEU_OK => Ok(()),
                    _ => Err(said()),
                }
            }
            _ => Err("this operator remembers nothing".to_owned()),
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(free) = self.defined.free {
            // SAFETY: the program has made the state, and this is the last use of it.
            unsafe { free(self.state) };
        }
    }
}

/// # Safety
///
/// `output` is null, or was handed to a callback that runs.
unsafe fn find<'a>(output: *mut milieu_output) -> Result<&'a mut Inside, Failure> {
    // SAFETY: as the caller vouches.
    let found = unsafe { output.as_mut() }.ok_or_else(|| null("milieu_output"))?;
    match found.tag == OUTPUT {
        true => Ok(&mut found.inside),
        false => Err(no_more("milieu_output")),
    }
}

fn no_more(name: &str) -> Failure {
    Failure::new(
        MILIEU_WRONG_HANDLE,
        format_args!("this is no `{name}`; it is one during the callback that it was handed to"),
    )
}

impl Inside {
    fn output(&mut self) -> &mut Output<'static> {
        // SAFETY: `run` has it until the callback returns, and does not touch it
        // meanwhile.
        unsafe { &mut *self.output }
    }

    fn event(&self) -> Option<&Event> {
        // SAFETY: as above.
        unsafe { self.event.as_ref() }
    }

    /// Refuses what only operators can do.
    fn remembers(&self) -> Result<(), Failure> {
        match self.remembers {
            true => Ok(()),
            false => Err(Failure::new(
                MILIEU_INVALID,
                "a function remembers nothing from event to event; define an operator by \
                 milieu_operator_define",
            )),
        }
    }

    fn decide(&mut self, fate: Fate) -> Result<(), Failure> {
        if self.event.is_null() {
            return Err(Failure::new(
                MILIEU_NO_SUCH,
                "no event has come whose fate could be said: the operator was woken",
            ));
        }
        self.fate = fate;
        Ok(())
    }
}

/// # Safety
///
/// Everything that it leads to can be read.
unsafe fn declared(of: &str, parameter: &milieu_parameter) -> Result<Declared, Failure> {
    // SAFETY: as the caller vouches.
    let (name, summary, choices) = unsafe {
        (
            interned(read_string(parameter.name, "name")?),
            interned(read_string(parameter.summary, "summary")?),
            read_slice(
                parameter.choices,
                parameter.choice_count as usize,
                "choices",
            )?,
        )
    };
    let wrong = |why: &str| {
        Failure::new(
            MILIEU_WRONG_LAYOUT,
            format_args!("{of}: the parameter `{name}` {why}"),
        )
    };
    let kind = match parameter.kind {
        1 => Kind::Flag,
        4 => Kind::Integer,
        9 => Kind::Number,
        10 => Kind::Text,
        MILIEU_SPAN => Kind::Span,
        MILIEU_EXPRESSION => Kind::Expression,
        11 if !choices.is_empty() => {
            let mut words = Vec::with_capacity(choices.len());
            for choice in choices {
                // SAFETY: as the caller vouches.
                words.push(interned(unsafe { read_string(*choice, "choice")? }));
            }
            Kind::Choice(Vec::leak(words))
        }
        _ => {
            return Err(wrong(
                "is of no kind that parameters have: MILIEU_BOOL, MILIEU_I64, MILIEU_F64, \
                 MILIEU_SPAN, MILIEU_TEXT, MILIEU_EXPRESSION, or MILIEU_ENUM with choices",
            ));
        }
    };
    let default = match parameter.otherwise.is_null() {
        true => None,
        // SAFETY: as the caller vouches.
        false => Some(interned(unsafe {
            read_string(parameter.otherwise, "otherwise")?
        })),
    };
    let fits = match (kind, default) {
        (_, None | Some("")) => true,
        (Kind::Flag, Some(text)) => text.parse::<bool>().is_ok(),
        (Kind::Integer, Some(text)) => text.parse::<i64>().is_ok(),
        (Kind::Number, Some(text)) => text.parse::<f64>().is_ok(),
        (Kind::Span, Some(text)) => milieu::transfer::Span::from_units(text).is_some(),
        (Kind::Choice(words), Some(text)) => words.contains(&text),
        _ => true,
    };
    if !fits {
        return Err(wrong("has a default that is not of its kind"));
    }
    Ok(Declared {
        name,
        kind,
        positional: parameter.positional,
        default,
        summary,
    })
}

/// Defines an operator.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_operator_define(
    coordinator: *const milieu_coordinator,
    operator: *const milieu_operator,
    user: *mut c_void,
    destroy: milieu_destroy,
) -> milieu_result {
    let user = User::new(user, destroy);
    call(|| {
        // SAFETY: as the caller vouches.
        let (Coordinator(milieu), operator) = unsafe {
            (
                handle::shared(coordinator)?,
                operator.as_ref().ok_or_else(|| null("operator"))?,
            )
        };
        check_abi(operator.abi, "operator")?;
        // SAFETY: as the caller vouches.
        let (name, summary, parameters) = unsafe {
            (
                interned(read_string(operator.name, "name")?),
                interned(read_string(operator.summary, "summary")?),
                read_slice(
                    operator.parameters,
                    operator.parameter_count as usize,
                    "parameters",
                )?,
            )
        };
        let mut letters = name.chars();
        let begins = letters
            .next()
            .is_some_and(|c| c.is_ascii_lowercase() || c == '_');
        if !begins || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(Failure::new(
                MILIEU_WRONG_LAYOUT,
                format_args!("an operator cannot be called `{name}`; it is a word of a-z, 0-9, _"),
            ));
        }
        let mut declaring = Vec::with_capacity(parameters.len());
        for parameter in parameters {
            // SAFETY: as the caller vouches.
            declaring.push(unsafe { declared(name, parameter)? });
        }
        // What is leaked below has to be known to whoever looks for it.
        let step = operator.step.ok_or_else(|| null("step"))?;
        let definition: &'static Definition = Box::leak(Box::new(Definition {
            name,
            summary,
            inputs: match operator.inputs {
                0 => Inputs::Unordered,
                1 => Inputs::One,
                count => Inputs::Ordered(count as usize),
            },
            parameters: Vec::leak(declaring),
            make: Own::make,
        }));
        let defined = Arc::new(Defined {
            make: operator.make,
            step,
            wake: operator.wake,
            save: operator.save,
            restore: operator.restore,
            free: operator.free,
            flags: operator.flags,
            user,
        });
        let mut known = DEFINED.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(
            address(definition),
            Known {
                _definition: definition,
                defined: Arc::downgrade(&defined),
            },
        );
        drop(known);
        // What the streams know of functions is kept for as long as they are: this
        // one, which no text can name, is there to keep the operator.
        let late = |error| Failure::new(MILIEU_LATE, error);
        milieu.operators([definition]).map_err(late)?;
        let kept = milieu.functions(|functions| {
            let name = functions.unnamed();
            functions.value_of_event(&name, move |_| {
                let _ = &defined;
                Ok::<_, Reason>(Value::Null)
            });
        });
        kept.map_err(late)
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
            lenders.lend(event, |lent| {
                let (result, inside) = with_output(Some(event), out, None, false, |output| {
                    // SAFETY: the program has handed over both for this.
                    unsafe { transform(user.data(), lent, output) }
                });
                result.map_err(Failed::new).map(|()| inside.fate)
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

/// What time it is.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_output_now(
    output: *const milieu_output,
    now_ns: *mut i64,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (inside, now_ns) = unsafe { (find(output.cast_mut())?, out(now_ns, "now_ns")?) };
        *now_ns = inside.output().now().nanoseconds();
        Ok(())
    })
}

/// Publishes an event of the operator's own.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_output_publish(
    output: *mut milieu_output,
    of: *const milieu_event_type,
    body: *const c_void,
    quality: *const milieu_quality,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (inside, Typed(of), known) =
            unsafe { (find(output)?, handle::shared(of)?, When::read(quality)?) };
        if body.is_null() {
            return Err(null("body"));
        }
        // SAFETY: as the caller vouches.
        let record = unsafe { Record::copy(of, body.cast())? };
        let come = inside.event().map(Event::time);
        let carried = match quality.is_null() {
            true => inside.event().and_then(carried),
            false => known.quality.map(Box::new),
        };
        let output = inside.output();
        let time = known.time.or(come).unwrap_or_else(|| output.now());
        output.emit_kind(of.kind(), time, carried, record);
        Ok(())
    })
}

/// What stays true of something else that is made of an event.
fn carried(event: &Event) -> Option<Box<Quality>> {
    let quality = event.header().quality.as_deref()?;
    let kept = Quality {
        accuracy: None,
        ..quality.clone()
    };
    (kept != Quality::default()).then(|| Box::new(kept))
}

/// The event goes on as it is.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_output_pass(output: *mut milieu_output) -> milieu_result {
    // SAFETY: as the caller vouches.
    call(|| unsafe { find(output)? }.decide(Fate::Passed))
}

/// The event goes no further.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_output_drop(
    output: *mut milieu_output,
    why: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (inside, why) = unsafe { (find(output)?, why.read("why")?) };
        inside.decide(Fate::Dropped(reason(why)?))
    })
}

/// A reason by its word; none is that an event was not asked for.
pub(super) fn reason(why: &str) -> Result<Reason, Failure> {
    if why.is_empty() {
        return Ok(Reason::Filtered);
    }
    let mut all = Reason::ALL.into_iter();
    all.find(|reason| reason.as_str() == why).ok_or_else(|| {
        let all: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        Failure::new(
            MILIEU_INVALID,
            format_args!("`{why}` is none of the reasons {}", all.join(", ")),
        )
    })
}

/// The operator keeps the event.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_output_hold(output: *mut milieu_output) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let inside = unsafe { find(output)? };
        inside.remembers()?;
        inside.decide(Fate::Held)
    })
}

/// Sends an event on that was held.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_output_pass_held(
    output: *mut milieu_output,
    kept: *const milieu_event,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (inside, event) = unsafe { (find(output)?, find_event(kept)?) };
        inside.remembers()?;
        let event = event.clone();
        inside.output().pass(event);
        inside.settled += 1;
        Ok(())
    })
}

/// Held events have gone into what was published, or go no further.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_output_settle_held(
    output: *mut milieu_output,
    used: u32,
    dropped: u32,
    why: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (inside, why) = unsafe { (find(output)?, why.read("why")?) };
        let reason = reason(why)?;
        inside.remembers()?;
        inside.output().used(u64::from(used));
        if dropped > 0 {
            inside.output().drop(reason, u64::from(dropped));
        }
        inside.settled += used as usize + dropped as usize;
        Ok(())
    })
}

/// When the operator wants to be woken.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_output_wake_at(
    output: *mut milieu_output,
    at_ns: i64,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let inside = unsafe { find(output)? };
        inside.remembers()?;
        inside.due = (at_ns != i64::MAX).then(|| Time::from_nanoseconds(at_ns));
        Ok(())
    })
}

/// Adds to what the operator remembers.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_snapshot_put(
    snapshot: *mut milieu_snapshot,
    bytes: *const c_void,
    length: usize,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let found = unsafe { snapshot.as_mut() }.ok_or_else(|| null("milieu_snapshot"))?;
        if found.tag != SNAPSHOT {
            return Err(no_more("milieu_snapshot"));
        }
        let bytes = milieu_text {
            bytes: bytes.cast::<c_char>(),
            length,
        };
        // SAFETY: as the caller vouches.
        found
            .bytes
            .extend_from_slice(unsafe { bytes.bytes("bytes")? });
        Ok(())
    })
}
