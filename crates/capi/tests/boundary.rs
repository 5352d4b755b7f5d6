//! The functions as Rust calls them, for Miri and the sanitizer, which both look
//! into Rust alone: what C programs do with them stands in `c.rs`.

#[cfg(feature = "stream")]
#[path = "boundary/streams.rs"]
mod streams;

use std::{
    ffi::{CStr, c_void},
    ptr,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use milieu_capi::*;

/// What generated code would declare.
#[repr(C)]
struct Station {
    enable: bool,
    interval: i32,
    language: milieu_text,
}

struct Sharable<T>(T);
// SAFETY: what is in it is never written.
unsafe impl<T> Sync for Sharable<T> {}

static TYPES: Sharable<[milieu_entry; 2]> = Sharable([type_of(c"boolean"), type_of(c"long")]);

const fn type_of(text: &'static CStr) -> milieu_entry {
    milieu_entry {
        key: c"type".as_ptr(),
        text: text.as_ptr(),
    }
}

static VALUES: Sharable<[milieu_value; 3]> = Sharable([
    milieu_value {
        metadata_count: 1,
        metadata: &raw const TYPES.0[0],
        ..value(
            c"/watchdog/%security%/enable",
            std::mem::offset_of!(Station, enable),
            1,
        )
    },
    milieu_value {
        metadata_count: 1,
        metadata: &raw const TYPES.0[1],
        ..value(
            c"/station/interval",
            std::mem::offset_of!(Station, interval),
            3,
        )
    },
    value(
        c"/station/%session%/language",
        std::mem::offset_of!(Station, language),
        10,
    ),
]);

const fn value(pattern: &'static CStr, offset: usize, kind: u32) -> milieu_value {
    milieu_value {
        pattern: pattern.as_ptr(),
        offset,
        kind,
        metadata_count: 0,
        metadata: ptr::null(),
    }
}

fn layout() -> milieu_layout {
    milieu_layout {
        abi: MILIEU_ABI,
        count: 3,
        values: VALUES.0.as_ptr(),
        size: size_of::<Station>(),
        align: align_of::<Station>(),
    }
}

fn text(text: &str) -> milieu_text {
    milieu_text {
        bytes: text.as_ptr().cast(),
        length: text.len(),
    }
}

fn layer(id: &'static str, value: &str) -> milieu_layer {
    milieu_layer {
        id: text(id),
        value: text(value),
        inherited: false,
    }
}

/// # Safety
///
/// The text is still valid.
unsafe fn read(text: milieu_text) -> String {
    // SAFETY: as the caller vouches.
    let bytes = unsafe { std::slice::from_raw_parts(text.bytes.cast::<u8>(), text.length) };
    String::from_utf8(bytes.to_vec()).expect("UTF-8 is handed out")
}

fn message() -> String {
    // SAFETY: it is valid until the next call that fails.
    let message = unsafe { CStr::from_ptr(milieu_message()) };
    message.to_string_lossy().into_owned()
}

fn coordinator() -> *mut milieu_coordinator {
    let mut coordinator = ptr::null_mut();
    // SAFETY: the place is there.
    let result = unsafe { milieu_coordinator_new(&mut coordinator) };
    assert_eq!(result, MILIEU_OK, "{}", message());
    coordinator
}

fn context(coordinator: *const milieu_coordinator) -> (*mut milieu_context, *const Station) {
    let (mut context, mut environment) = (ptr::null_mut(), ptr::null());
    // SAFETY: everything is there, and the table describes `Station`.
    let result = unsafe {
        milieu_context_new(
            coordinator,
            &layout(),
            ptr::null(),
            &mut context,
            &mut environment,
        )
    };
    assert_eq!(result, MILIEU_OK, "{}", message());
    (context, environment.cast())
}

#[test]
fn fields_follow_switches_and_assignments() {
    let coordinator = coordinator();
    let (cx, env) = context(coordinator);
    let (mut outer, mut inner) = (0, 0);
    // SAFETY: the handles live, and fields are read between calls.
    unsafe {
        assert_eq!(milieu_context_set_text(cx, 2, text("en")), MILIEU_OK);
        assert_eq!(
            milieu_context_enter(cx, layer("session", "anna"), &mut outer),
            MILIEU_OK
        );
        assert_eq!(milieu_context_set_text(cx, 2, text("de")), MILIEU_OK);
        assert_eq!(read((*env).language), "de");
        let both = [layer("session", "ben"), layer("security", "A")];
        let entered = milieu_context_enter_all(cx, both.as_ptr(), 2, &mut inner);
        assert_eq!(entered, MILIEU_OK);
        assert_eq!(milieu_context_set_bool(cx, 0, true), MILIEU_OK);
        assert!((*env).enable);
        let mut name = text("");
        assert_eq!(milieu_context_name(cx, 2, &mut name), MILIEU_OK);
        assert_eq!(read(name), "/station/ben/language");
        assert_eq!(milieu_context_leave(cx, outer), MILIEU_WRONG_FRAME);
        assert_eq!(milieu_context_leave(cx, inner), MILIEU_OK);
        assert_eq!(milieu_context_leave(cx, outer), MILIEU_OK);
        assert_eq!((read((*env).language), (*env).enable), ("en".into(), false));
        assert_eq!(milieu_context_set_signed(cx, 1, 7), MILIEU_OK);
        assert_eq!((*env).interval, 7);

        let (mut fork, mut place) = (ptr::null_mut(), ptr::null());
        let forked = milieu_context_fork(cx, text("/pool/1"), &mut fork, &mut place);
        assert_eq!(forked, MILIEU_OK);
        assert_eq!((*place.cast::<Station>()).interval, 7);
        assert_eq!(milieu_context_free(cx), MILIEU_OK);
        assert_eq!(read((*place.cast::<Station>()).language), "en");
        assert_eq!(milieu_context_free(fork), MILIEU_OK);
        milieu_coordinator_free(coordinator);
    }
}

#[test]
fn stale_and_wrong_handles_are_told() {
    let coordinator = coordinator();
    let (cx, _) = context(coordinator);
    let words = [0_u64; 8];
    // SAFETY: these are the mistakes that the library knows.
    unsafe {
        assert_eq!(milieu_context_sync(ptr::null_mut()), MILIEU_NULL);
        assert_eq!(milieu_context_sync(coordinator.cast()), MILIEU_WRONG_HANDLE);
        let no_handle = words.as_ptr().cast_mut();
        assert_eq!(milieu_context_sync(no_handle.cast()), MILIEU_WRONG_HANDLE);
        assert_eq!(milieu_context_free(cx), MILIEU_OK);
        assert_eq!(milieu_context_free(cx), MILIEU_FREED);
        assert!(message().contains("was freed"));
        // Slots are used again, behind others.
        let mut seen = std::collections::HashSet::new();
        for _ in 0..50 {
            let (other, _) = context(coordinator);
            assert_ne!(other, cx);
            seen.insert(other);
            assert_eq!(milieu_context_free(other), MILIEU_OK);
        }
        assert_eq!(seen.len(), 50);
        milieu_coordinator_free(coordinator);
        assert_eq!(
            milieu_coordinator_assign(coordinator, text("/a"), text("b")),
            MILIEU_FREED
        );
    }
}

/// No slice is ever made of what cannot be one.
#[test]
fn lengths_that_cannot_be_are_told() {
    let coordinator = coordinator();
    let (cx, _) = context(coordinator);
    let mut frame = 0;
    let there = [layer("session", "anna"), layer("security", "A")];
    // SAFETY: these are the mistakes that the library knows.
    unsafe {
        for length in [usize::MAX, isize::MAX as usize + 1] {
            let wrong = milieu_text {
                length,
                ..text("anna")
            };
            let named = milieu_layer {
                value: wrong,
                ..there[0]
            };
            let entered = milieu_context_enter(cx, named, &mut frame);
            assert_eq!(entered, MILIEU_INVALID);
            assert!(message().contains(&length.to_string()), "{}", message());
            let entered = milieu_context_enter(
                cx,
                milieu_layer {
                    id: wrong,
                    ..there[0]
                },
                &mut frame,
            );
            assert_eq!(entered, MILIEU_INVALID);
            assert_eq!(milieu_context_set_text(cx, 2, wrong), MILIEU_INVALID);
            for count in [length, length / size_of::<milieu_layer>() + 1] {
                let entered = milieu_context_enter_all(cx, there.as_ptr(), count, &mut frame);
                assert_eq!(entered, MILIEU_INVALID);
            }
        }
        let between = there.as_ptr().byte_add(1);
        let entered = milieu_context_enter_all(cx, between, 1, &mut frame);
        assert_eq!(entered, MILIEU_INVALID);
        assert!(message().contains("multiple of"), "{}", message());
        assert_eq!(milieu_context_free(cx), MILIEU_OK);
        milieu_coordinator_free(coordinator);
    }
}

static RUNS: AtomicUsize = AtomicUsize::new(0);
static DESTROYED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn act(user: *mut c_void, activation: *mut milieu_activation) -> milieu_result {
    RUNS.fetch_add(1, Ordering::Relaxed);
    let mut value = text("");
    // SAFETY: the action was just handed its activation; `user` is the context.
    unsafe {
        assert_eq!(milieu_activation_value(activation, &mut value), MILIEU_OK);
        assert_eq!(read(value), "1");
        assert_eq!(milieu_context_sync(user.cast()), MILIEU_BUSY);
        let followed = milieu_activation_activate_value(activation, &layout(), 2);
        assert_eq!(followed, MILIEU_OK);
        milieu_activation_activate(activation, layer("security", "A"))
    }
}

unsafe extern "C" fn evaluate(_: *mut c_void, scope: *mut milieu_scope) -> milieu_result {
    // SAFETY: the layer was just handed its scope.
    unsafe {
        match milieu_scope_role(scope).length {
            0 => milieu_scope_answer(scope, text("alone")),
            _ => MILIEU_CALLBACK,
        }
    }
}

unsafe extern "C" fn destroy(_: *mut c_void) {
    DESTROYED.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn callbacks_come_and_go() {
    let coordinator = coordinator();
    let (cx, env) = context(coordinator);
    let mut registration = ptr::null_mut();
    // SAFETY: the handles live; fields are read between calls.
    unsafe {
        let registered = milieu_coordinator_on_activation(
            coordinator,
            text("tamper"),
            Some(act),
            cx.cast(),
            Some(destroy),
            &mut registration,
        );
        assert_eq!(registered, MILIEU_OK);
        let assigned =
            milieu_coordinator_assign(coordinator, text("/watchdog/A/enable"), text("true"));
        assert_eq!(assigned, MILIEU_OK);
        assert_eq!(milieu_context_activate(cx, layer("tamper", "1")), MILIEU_OK);
        assert!((*env).enable);
        assert_eq!(RUNS.load(Ordering::Relaxed), 1);
        milieu_registration_free(registration);
        assert_eq!(DESTROYED.load(Ordering::Relaxed), 1);

        let activated = milieu_context_activate_each(
            cx,
            text("session"),
            ptr::null(),
            0,
            Some(evaluate),
            ptr::null_mut(),
            Some(destroy),
        );
        assert_eq!(activated, MILIEU_OK);
        let mut value = text("");
        assert_eq!(
            milieu_context_layer(cx, text("session"), &mut value),
            MILIEU_OK
        );
        assert_eq!(read(value), "alone");
        let (mut fork, mut place) = (ptr::null_mut(), ptr::null());
        let forked = milieu_context_fork(cx, text("/pool"), &mut fork, &mut place);
        assert_eq!(forked, MILIEU_CALLBACK, "{}", message());
        assert_eq!(milieu_context_deactivate(cx, text("session")), MILIEU_OK);
        assert_eq!(DESTROYED.load(Ordering::Relaxed), 2);
        assert_eq!(milieu_context_free(cx), MILIEU_OK);
        milieu_coordinator_free(coordinator);
    }
}

#[test]
fn a_hold_stays_in_its_thread() {
    let coordinator = coordinator();
    let mut hold = ptr::null_mut();
    // SAFETY: the handles live.
    unsafe {
        assert_eq!(
            milieu_coordinator_assign(coordinator, text("/a"), text("b")),
            MILIEU_OK
        );
        assert_eq!(milieu_hold_new(coordinator, &mut hold), MILIEU_OK);
    }
    let address = hold.expose_provenance();
    let elsewhere = thread::spawn(move || {
        // SAFETY: that is what is found out.
        unsafe { milieu_hold_free(ptr::with_exposed_provenance_mut(address)) }
    });
    assert_eq!(elsewhere.join().expect("it ends"), MILIEU_WRONG_THREAD);
    let (mut keys, mut count) = (ptr::null(), 0);
    // SAFETY: the handles live, and so do the keys of the hold.
    unsafe {
        assert_eq!(milieu_hold_keys(hold, &mut keys, &mut count), MILIEU_OK);
        assert_eq!((count, read((*keys).name)), (1, "/a".to_owned()));
        assert_eq!(milieu_hold_free(hold), MILIEU_OK);
        milieu_coordinator_free(coordinator);
    }
}
