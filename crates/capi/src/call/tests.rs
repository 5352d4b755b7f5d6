//! How calls end, and what is said of it.

use super::*;

fn message() -> String {
    // SAFETY: it is valid until the next call that fails in this thread.
    let message = unsafe { CStr::from_ptr(milieu_message()) };
    message.to_string_lossy().into_owned()
}

fn of_callback() -> Payload {
    CallbackFailed::payload("an action", "tamper", Said::default())
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

/// Fails with a number, which is put away.
fn fails_with(number: usize) -> milieu_result {
    let why = milieu_text::of("no bus");
    // SAFETY: the text is there, and what destroys the number reads nothing.
    unsafe {
        milieu_fail_with(
            why,
            std::ptr::without_provenance_mut(number),
            Some(put_away),
        )
    }
}

thread_local! {
    static AWAY: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

unsafe extern "C" fn put_away(number: *mut c_void) {
    AWAY.with_borrow_mut(|away| away.push(number.addr()));
}

unsafe extern "C" fn other(_: *mut c_void) {
    AWAY.with_borrow_mut(|away| away.push(0));
}

#[test]
fn what_a_call_failed_with_is_handed_out_once() {
    assert_eq!(fails_with(1), MILIEU_CALLBACK);
    assert_eq!(message(), "no bus");
    assert!(milieu_failed_with(None).is_null(), "it is something else");
    assert!(milieu_failed_with(Some(other)).is_null(), "so it is");
    assert_eq!(milieu_failed_with(Some(put_away)).addr(), 1);
    assert!(milieu_failed_with(Some(put_away)).is_null(), "it was");
    assert_eq!(fails_with(2), MILIEU_CALLBACK);
    assert_eq!(call(|| Ok(())), MILIEU_OK);
    assert_eq!(AWAY.take(), [0; 0]);
    assert_eq!(call(|| Err(null("place"))), MILIEU_NULL);
    assert_eq!(AWAY.take(), [2]);
}

#[test]
fn only_what_a_callback_has_said_is_of_its_failure() {
    assert_eq!(fails_with(3), MILIEU_CALLBACK);
    let said = Before::callback().said(MILIEU_CALLBACK);
    assert!(said.why.is_empty() && said.with.is_none(), "of before");
    let before = Before::callback();
    assert_eq!(fails_with(4), MILIEU_CALLBACK);
    assert_eq!(AWAY.take(), [3]);
    assert!(
        before.said(MILIEU_NULL).with.is_none(),
        "as it says something else"
    );
    let said = before.said(MILIEU_CALLBACK);
    assert_eq!(said.why, "no bus");
    let failed = CallbackFailed::payload("an action", "tamper", said);
    assert_eq!(keep(panicked(failed)), MILIEU_CALLBACK);
    assert_eq!(message(), "an action of layer `tamper` has failed: no bus");
    assert_eq!(milieu_failed_with(Some(put_away)).addr(), 4);
    assert_eq!(AWAY.take(), [0; 0]);
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
        let result = call(|| resume_unwind(of_callback()));
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
    assert!(waiting(Some(of_callback())).is_none());
    let result = call(|| {
        assert!(waiting(None).is_none(), "of another call");
        Ok(())
    });
    assert_eq!(result, MILIEU_OK);
    assert_eq!(call(|| Err(null("place"))), MILIEU_NULL);
    let waits = waiting(None);
    assert_eq!(waits.is_some(), cfg!(not(panic = "unwind")));
    let is_it = |failed: Payload| failed.is::<Box<dyn Error + Send + Sync>>();
    assert!(waits.is_none_or(is_it));
}

#[cfg(not(panic = "unwind"))]
#[test]
fn a_failure_that_waits_is_the_result_of_its_call() {
    assert!(waiting(Some(Box::new("of an outer call"))).is_none());
    let result = call(|| {
        waiting(Some(of_callback()));
        Ok(())
    });
    assert_eq!(result, MILIEU_CALLBACK);
    let said = "an action of layer `tamper` has failed, as the program's callback said";
    assert_eq!(message(), said);
    let outer = waiting(None);
    assert!(outer.is_some_and(|outer| outer.is::<&str>()));
    works_after(said);
}
