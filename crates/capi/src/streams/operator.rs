//! Operators of the program: callbacks over a state of its own.

mod arguments;
mod expression;
mod output;

use std::{
    collections::{BTreeSet, HashMap},
    ffi::{c_char, c_void},
    sync::{Arc, LazyLock, Mutex, PoisonError, Weak},
};

use milieu::{
    diagnostics::Diagnostic,
    stream::{
        Arguments, Declared, Definition, Fate, Inputs, Kind, Operator, Output, Parameter, Reason,
    },
    transfer::{Event, Time, Value},
};

use super::{
    abi::{
        MILIEU_EXPRESSION, MILIEU_FIELDS, MILIEU_FUNCTIONS, MILIEU_SPAN, milieu_datum,
        milieu_operator, milieu_parameter,
    },
    event::{Lender, milieu_event},
    lent::{Lend, Lent, Standing},
};
use crate::{
    abi::{
        MILIEU_LATE, MILIEU_NO_SUCH, MILIEU_OK, MILIEU_WRONG_LAYOUT, milieu_destroy, milieu_result,
        milieu_text,
    },
    call::{Failure, call, null, said},
    coordinator::{Coordinator, milieu_coordinator},
    handle,
    layout::check_abi,
    scope::User,
    text::{interned, read_slice, read_string},
};

pub use arguments::*;
pub use expression::{
    milieu_arguments_expression, milieu_expression, milieu_expression_free, milieu_expression_value,
};
pub use output::*;
pub(super) use output::{reason, with_output};

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

/// What an operator is made with, for the callback.
pub struct Made {
    /// Borrowed for the callback, which may not keep it.
    arguments: *const Arguments<'static>,
    /// What was not given and has a default.
    defaults: Vec<(&'static str, Parameter)>,
    /// What functions are told, where the other side reads it.
    told: Vec<Box<[milieu_datum]>>,
}

/// Where an operator puts what it remembers.
#[derive(Default)]
pub struct Bytes(Vec<u8>);

impl Lend for Made {
    const TAG: [u8; 4] = *b"argu";
    const NAME: &'static str = "milieu_arguments";
}

impl Lend for Bytes {
    const TAG: [u8; 4] = *b"snap";
    const NAME: &'static str = "milieu_snapshot";
}

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_arguments = Lent<Made>;
/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_snapshot = Lent<Bytes>;

impl Made {
    fn new(arguments: &Arguments<'_>) -> Made {
        let declared = arguments.definition.parameters.iter();
        let missing = declared.filter(|declared| arguments.given(declared.name).is_none());
        let defaults = missing.filter_map(|it| Some((it.name, it.default_value()?)));
        Made {
            arguments: std::ptr::from_ref(arguments).cast(),
            defaults: defaults.collect(),
            told: Vec::new(),
        }
    }

    fn arguments(&self) -> &Arguments<'_> {
        // SAFETY: `make` has borrowed them until the callback returns.
        unsafe { &*self.arguments.cast() }
    }

    /// How a parameter is declared.
    fn declared(&self, name: &str) -> Result<&'static Declared, Failure> {
        let definition = self.arguments().definition;
        let mut declared = definition.parameters.iter();
        declared
            .find(|declared| declared.name == name)
            .ok_or_else(|| {
                Failure::new(
                    MILIEU_NO_SUCH,
                    format_args!("`{}` has no parameter `{name}`", definition.name),
                )
            })
    }

    /// A parameter of one of these kinds, which are called so: as it was given, or its
    /// default.
    fn parameter(
        &self,
        name: &str,
        is_meant: fn(Kind) -> bool,
        kinds: &str,
    ) -> Result<Option<&Parameter>, Failure> {
        if !is_meant(self.declared(name)?.kind) {
            let of = self.arguments().definition.name;
            return Err(Failure::new(
                MILIEU_NO_SUCH,
                format_args!("the parameter `{name}` of `{of}` is not {kinds}"),
            ));
        }
        let mut defaults = self.defaults.iter();
        let mut default = || defaults.find(|(known, _)| *known == name);
        Ok(match self.arguments().given(name) {
            Some(given) => Some(given),
            None => default().map(|(_, default)| default),
        })
    }
}

/// An operator of the program.
struct Own {
    defined: Arc<Defined>,
    state: *mut c_void,
    lender: Lender,
    output: Standing<Emitting>,
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
            let (result, _) = Lent::during(Made::new(arguments), |seen| {
                // SAFETY: the program has handed over both for this.
                unsafe { make(defined.user.data(), seen.cast_const(), &mut state) }
            });
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
            output: Standing::new(),
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
        let output = &mut self.output;
        let (result, emitting) = with_output(output, event, out, self.due, remembers, callback);
        self.due = emitting.due;
        self.held -= emitting.settled.min(self.held);
        if let Err(why) = result {
            self.fault = Some(why);
            return Fate::Dropped(Reason::Fault);
        }
        if emitting.fate == Fate::Held {
            self.held += 1;
        }
        emitting.fate
    }
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
        let (result, Bytes(bytes)) = Lent::during(Bytes::default(), |seen| {
            // SAFETY: the program has made the state for this.
            unsafe { save(self.state, seen) }
        });
        match result {
            MILIEU_OK => Value::Bytes(bytes.into()),
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

/// Words that stay, each list once, whether what they are for is accepted or not.
fn listed(words: Vec<&'static str>) -> &'static [&'static str] {
    static LISTS: Mutex<BTreeSet<&'static [&'static str]>> = Mutex::new(BTreeSet::new());
    let mut lists = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = lists.get(&words[..]) {
        return known;
    }
    let kept = Vec::leak(words);
    lists.insert(kept);
    kept
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
        MILIEU_FIELDS => Kind::Fields,
        11 | MILIEU_FUNCTIONS if !choices.is_empty() => {
            let mut words = Vec::with_capacity(choices.len());
            for choice in choices {
                // SAFETY: as the caller vouches.
                words.push(interned(unsafe { read_string(*choice, "choice")? }));
            }
            let words = listed(words);
            match parameter.kind {
                MILIEU_FUNCTIONS => Kind::Functions(words),
                _ => Kind::Choice(words),
            }
        }
        _ => {
            return Err(wrong(
                "is of no kind that parameters have: MILIEU_BOOL, MILIEU_I64, MILIEU_F64, \
                 MILIEU_SPAN, MILIEU_TEXT, MILIEU_EXPRESSION, MILIEU_FIELDS, or MILIEU_ENUM or \
                 MILIEU_FUNCTIONS with choices",
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
    let declared = Declared {
        name,
        kind,
        positional: parameter.positional,
        default,
        summary,
    };
    let has_value = default.is_some_and(|text| !text.is_empty());
    if has_value && declared.default_value().is_none() {
        return Err(wrong("has a default that is not of its kind"));
    }
    Ok(declared)
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
        let Bytes(kept) = unsafe { Lent::find(snapshot)? };
        let bytes = milieu_text {
            bytes: bytes.cast::<c_char>(),
            length,
        };
        // SAFETY: as the caller vouches.
        kept.extend_from_slice(unsafe { bytes.bytes("bytes")? });
        Ok(())
    })
}
