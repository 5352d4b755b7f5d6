//! What every function does around its work: panics end here, and messages are kept.

use std::{
    cell::{Cell, RefCell},
    error::Error,
    ffi::{CStr, CString, c_char, c_void},
    fmt::{self, Debug, Display, Formatter},
    panic::{AssertUnwindSafe, catch_unwind},
};

use milieu::context::{Failed as Payload, waiting};

use crate::{
    abi::{
        MILIEU_CALLBACK, MILIEU_NULL, MILIEU_OK, MILIEU_PANIC, RESULTS, milieu_destroy,
        milieu_result, milieu_text,
    },
    scope::User,
};

/// Why a call did not do what it was asked to. One pointer, so that what
/// succeeds comes back in registers.
pub struct Failure(Box<Failed>);

struct Failed {
    result: milieu_result,
    message: String,
    /// What a callback has failed with.
    with: Option<User>,
}

impl Failure {
    #[cold]
    pub fn new(result: milieu_result, message: impl Display) -> Self {
        Failure(Box::new(Failed {
            result,
            message: message.to_string(),
            with: None,
        }))
    }

    /// That a callback has failed, with this.
    #[cold]
    pub(crate) fn of_callback(message: impl Display, with: Option<User>) -> Self {
        let mut failure = Failure::new(MILIEU_CALLBACK, message);
        failure.0.with = with;
        failure
    }
}

/// What goes on from a callback of the program that has failed.
pub struct CallbackFailed {
    what: &'static str,
    layer: String,
    said: Said,
}

impl CallbackFailed {
    /// As what unwinds, or waits: an error, which whoever catches it can tell.
    #[cold]
    pub(crate) fn payload(what: &'static str, layer: &str, said: Said) -> Payload {
        let layer = layer.to_owned();
        let failed = CallbackFailed { what, layer, said };
        Box::new(Box::<dyn Error + Send + Sync>::from(failed))
    }
}

impl Display for CallbackFailed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let CallbackFailed { what, layer, said } = self;
        write!(f, "{what} of layer `{layer}` has failed")?;
        match &*said.why {
            "" => f.write_str(", as the program's callback said"),
            why => write!(f, ": {why}"),
        }
    }
}

impl Debug for CallbackFailed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl Error for CallbackFailed {}

/// What the last call that failed in a thread has to say.
struct Kept {
    message: CString,
    with: Option<User>,
}

thread_local! {
    static KEPT: RefCell<Kept> = RefCell::new(Kept {
        message: CString::default(),
        with: None,
    });
    /// How many calls have failed in this thread.
    static FAILURES: Cell<u32> = const { Cell::new(0) };
}

/// A moment before a callback runs.
#[derive(Clone, Copy)]
pub struct Before(u32);

impl Before {
    #[inline]
    pub fn callback() -> Self {
        Before(FAILURES.get())
    }

    /// What the callback, which has failed with this result, has said of it.
    #[cold]
    pub(crate) fn said(self, result: milieu_result) -> Said {
        // What was said before is of something else.
        if self.0 == FAILURES.get() {
            return Said::default();
        }
        let said = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            Said {
                why: kept.message.to_string_lossy().into_owned(),
                with: kept.with.take_if(|_| result == MILIEU_CALLBACK),
            }
        });
        said.unwrap_or_default()
    }
}

/// What a callback that has failed says of it.
#[derive(Default)]
pub(crate) struct Said {
    /// Nothing where it has said nothing.
    pub why: String,
    /// What it has failed with, such as an exception of another language.
    pub(crate) with: Option<User>,
}

/// Does the work of a function.
#[inline]
pub fn call(work: impl FnOnce() -> Result<(), Failure>) -> milieu_result {
    // Of a callback that runs right now another call will hear.
    let outer = waiting(None);
    let done = catch_unwind(AssertUnwindSafe(work));
    if let Some(failed) = waiting(outer) {
        return keep(panicked(failed));
    }
    match done {
        Ok(Ok(())) => MILIEU_OK,
        Ok(Err(failure)) => keep(failure),
        Err(payload) => keep(panicked(payload)),
    }
}

#[cold]
fn keep(failure: Failure) -> milieu_result {
    let Failed {
        result,
        message,
        with,
    } = *failure.0;
    // A zero byte would end the message early.
    let message = CString::new(message.replace('\0', "\u{fffd}")).unwrap_or_default();
    FAILURES.set(FAILURES.get().wrapping_add(1));
    // While the thread ends there is nobody to read it. What was kept goes when
    // nothing is borrowed any more: it may call the library.
    drop(KEPT.try_with(|kept| kept.replace(Kept { message, with })));
    result
}

fn panicked(payload: Payload) -> Failure {
    let payload = match payload.downcast::<Box<dyn Error + Send + Sync>>() {
        Ok(error) => match error.downcast::<CallbackFailed>() {
            Ok(failed) => {
                let message = failed.to_string();
                return Failure::of_callback(message, failed.said.with);
            }
            Err(other) => Box::new(other),
        },
        Err(payload) => payload,
    };
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    let message = format!(
        "a defect of the library: {}; please report it",
        text.unwrap_or("a panic without a text")
    );
    // Its payload may panic when it is dropped.
    std::mem::forget(payload);
    Failure::new(MILIEU_PANIC, message)
}

/// Where the caller wants a result.
///
/// # Safety
///
/// `pointer` is null or valid for writing a `T`, for as long as the caller says.
pub unsafe fn out<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: as the caller vouches.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(what))
}

// In line it would take room on the stack of functions that do without.
#[cold]
#[inline(never)]
pub fn null(what: &str) -> Failure {
    Failure::new(MILIEU_NULL, format_args!("`{what}` is null"))
}

/// The name of a result.
#[unsafe(no_mangle)]
pub extern "C" fn milieu_result_name(result: milieu_result) -> *const c_char {
    let mut known = RESULTS.iter();
    let name = known.find(|(number, _)| *number == result);
    name.map_or(c"MILIEU_UNKNOWN".as_ptr(), |(_, name)| name.as_ptr())
}

/// What the last call that failed in this thread has to say.
#[unsafe(no_mangle)]
pub extern "C" fn milieu_message() -> *const c_char {
    let message = KEPT.try_with(|kept| kept.borrow().message.as_ptr());
    message.unwrap_or(c"".as_ptr())
}

/// What a callback of the program that has failed just now says of it.
#[cfg(feature = "stream")]
pub fn said() -> String {
    let said = KEPT.try_with(|kept| kept.borrow().message.to_string_lossy().into_owned());
    said.unwrap_or_default()
}

/// What a callback returns that has failed.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_fail(why: milieu_text) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let why = unsafe { why.read("why")? };
        Err(Failure::of_callback(why, None))
    })
}

/// What a callback returns that has failed with something.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_fail_with(
    why: milieu_text,
    user: *mut c_void,
    destroy: milieu_destroy,
) -> milieu_result {
    let user = User::new(user, destroy);
    call(|| {
        // SAFETY: as the caller vouches.
        let why = unsafe { why.bytes("why") }?;
        // What goes along is worth more than each letter of a text.
        let why = String::from_utf8_lossy(why);
        Err(Failure::of_callback(why, Some(user)))
    })
}

/// What the last call that failed in this thread has failed with.
#[unsafe(no_mangle)]
pub extern "C" fn milieu_failed_with(destroy: milieu_destroy) -> *mut c_void {
    let with = KEPT.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        kept.with.take_if(|with| with.goes_by(destroy))
    });
    match with {
        Ok(Some(with)) => with.into_data(),
        _ => std::ptr::null_mut(),
    }
}

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn milieu_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

#[cfg(test)]
mod tests;
