//! What every function does around its work: panics end here, and messages are kept.

use std::{
    any::Any,
    cell::RefCell,
    ffi::{CStr, CString, c_char},
    fmt::Display,
    panic::{AssertUnwindSafe, catch_unwind},
};

use milieu::context::waiting;

use crate::abi::{
    MILIEU_CALLBACK, MILIEU_NULL, MILIEU_OK, MILIEU_PANIC, RESULTS, milieu_result, milieu_text,
};

/// Why a call did not do what it was asked to. One pointer, so that what
/// succeeds comes back in registers.
pub struct Failure(Box<Failed>);

struct Failed {
    result: milieu_result,
    message: String,
}

impl Failure {
    #[cold]
    pub fn new(result: milieu_result, message: impl Display) -> Self {
        Failure(Box::new(Failed {
            result,
            message: message.to_string(),
        }))
    }
}

/// What goes on from a callback of the program that has failed.
pub struct CallbackFailed {
    pub what: &'static str,
    pub layer: String,
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::new(CString::default());
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
    let Failed { result, message } = *failure.0;
    // A zero byte would end the message early.
    let message = CString::new(message.replace('\0', "\u{fffd}")).unwrap_or_default();
    // While the thread ends there is nobody to read it.
    let _ = MESSAGE.try_with(|kept| kept.replace(message));
    result
}

fn panicked(payload: Box<dyn Any + Send>) -> Failure {
    if let Some(CallbackFailed { what, layer }) = payload.downcast_ref() {
        return Failure::new(
            MILIEU_CALLBACK,
            format_args!("{what} of layer `{layer}` has failed, as the program's callback said"),
        );
    }
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

#[cold]
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
    let message = MESSAGE.try_with(|kept| kept.borrow().as_ptr());
    message.unwrap_or(c"".as_ptr())
}

/// What a callback of the program that has failed just now says of it.
#[cfg(feature = "store")]
pub fn said() -> String {
    let said = MESSAGE.try_with(|kept| kept.borrow().to_string_lossy().into_owned());
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
        Err(Failure::new(MILIEU_CALLBACK, why))
    })
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
mod tests {
    use super::*;

    fn message() -> String {
        // SAFETY: it is valid until the next call that fails in this thread.
        let message = unsafe { CStr::from_ptr(milieu_message()) };
        message.to_string_lossy().into_owned()
    }

    fn of_callback() -> CallbackFailed {
        CallbackFailed {
            what: "an action",
            layer: "tamper".to_owned(),
        }
    }

    /// Another call is none the worse for one before it, and what that one has
    /// said is there until the next that fails.
    fn works_after(said: &str) {
        assert_eq!(call(|| Ok(())), MILIEU_OK);
        assert_eq!(message(), said);
        let failed = call(|| Err(null("place")));
        assert_eq!(
            (failed, message()),
            (MILIEU_NULL, "`place` is null".to_owned())
        );
    }

    #[cfg(panic = "unwind")]
    mod that_unwinds {
        use std::panic::{panic_any, resume_unwind};

        use super::*;

        /// Work that panics. The panic is a defect, whatever it carries.
        #[track_caller]
        fn is_defect(text: &str, work: impl FnOnce()) {
            let result = call(|| {
                work();
                Ok(())
            });
            assert_eq!(result, MILIEU_PANIC);
            let said = format!("a defect of the library: {text}; please report it");
            assert_eq!(message(), said);
            works_after(&said);
        }

        #[test]
        fn a_panic_with_a_text_is_a_result_with_a_message() {
            is_defect("out of reach", || panic!("out of reach"));
        }

        #[test]
        fn so_is_one_whose_text_was_made_for_it() {
            let place = std::hint::black_box(7);
            is_defect("no value 7", || panic!("no value {place}"));
        }

        #[test]
        fn a_panic_without_a_text_is_told_as_such() {
            is_defect("a panic without a text", || panic_any(7));
        }

        /// It would end in the middle of what catches it.
        #[test]
        fn a_payload_that_panics_when_it_is_dropped_stays_within() {
            struct Sore;
            impl Drop for Sore {
                fn drop(&mut self) {
                    panic!("dropped");
                }
            }
            is_defect("a panic without a text", || panic_any(Sore));
        }

        /// A zero byte would hide the rest from C.
        #[test]
        fn a_message_with_a_zero_byte_is_whole() {
            is_defect("half\u{fffd}and half", || panic!("half\0and half"));
        }

        #[test]
        fn a_callback_that_failed_is_no_defect() {
            let result = call(|| resume_unwind(Box::new(of_callback())));
            assert_eq!(result, MILIEU_CALLBACK);
            let said = "an action of layer `tamper` has failed, as the program's callback said";
            assert_eq!(message(), said);
            works_after(said);
        }

        /// As of a callback that calls the library in its turn.
        #[test]
        fn a_call_within_a_call_keeps_its_panic_to_itself() {
            let mut within = MILIEU_OK;
            let result = call(|| {
                within = call(|| panic!("within"));
                Ok(())
            });
            assert_eq!((result, within), (MILIEU_OK, MILIEU_PANIC));
            let said = "a defect of the library: within; please report it";
            assert_eq!(message(), said);
            works_after(said);
        }
    }

    /// Where nothing unwinds, the failure of a callback waits for the call that
    /// runs it, and others that come meanwhile leave it where it is.
    #[test]
    fn what_waits_goes_on_waiting() {
        assert!(waiting(Some(Box::new(of_callback()))).is_none());
        let result = call(|| {
            assert!(waiting(None).is_none(), "of another call");
            Ok(())
        });
        assert_eq!(result, MILIEU_OK);
        assert_eq!(call(|| Err(null("place"))), MILIEU_NULL);
        let waits = waiting(None);
        assert_eq!(waits.is_some(), cfg!(not(panic = "unwind")));
        let is_it = |failed: milieu::context::Failed| failed.is::<CallbackFailed>();
        assert!(waits.is_none_or(is_it));
    }

    #[cfg(not(panic = "unwind"))]
    #[test]
    fn a_failure_that_waits_is_the_result_of_its_call() {
        assert!(waiting(Some(Box::new("of an outer call"))).is_none());
        let result = call(|| {
            waiting(Some(Box::new(of_callback())));
            Ok(())
        });
        assert_eq!(result, MILIEU_CALLBACK);
        let said = "an action of layer `tamper` has failed, as the program's callback said";
        assert_eq!(message(), said);
        let outer = waiting(None);
        assert!(outer.is_some_and(|outer| outer.is::<&str>()));
        works_after(said);
    }
}
