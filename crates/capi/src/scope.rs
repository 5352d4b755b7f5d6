//! Thread-based layers, whose value a callback of the program says.

use std::ffi::c_void;

use milieu::Scope;

use crate::{
    abi::{MILIEU_OK, MILIEU_WRONG_HANDLE, milieu_destroy, milieu_result, milieu_text},
    call::{CallbackFailed, Failure, call, null},
};

/// What was handed over with a callback, and is destroyed when nobody has it any more.
pub(crate) struct User {
    data: *mut c_void,
    destroy: milieu_destroy,
}

// SAFETY: the header says that callbacks and what they are handed come to any thread.
unsafe impl Send for User {}
// SAFETY: as above, and by several threads at once.
unsafe impl Sync for User {}

impl User {
    pub(crate) fn new(data: *mut c_void, destroy: milieu_destroy) -> Self {
        User { data, destroy }
    }

    pub(crate) fn data(&self) -> *mut c_void {
        self.data
    }
}

impl Drop for User {
    fn drop(&mut self) {
        if let Some(destroy) = self.destroy {
            // SAFETY: the header says what `destroy` is given, and that it is once.
            unsafe { destroy(self.data) };
        }
    }
}

/// What a thread-based layer may know, and what it answers.
#[allow(non_camel_case_types)]
#[repr(C)]
pub struct milieu_scope {
    tag: u32,
    inside: Inside,
}

struct Inside {
    /// Borrowed for the callback, which may not keep it.
    scope: *const Scope<'static>,
    answer: String,
}

const TAG: u32 = u32::from_le_bytes(*b"scop");

/// See `milieu.h`.
#[allow(non_camel_case_types)]
pub type milieu_evaluate =
    Option<unsafe extern "C" fn(user: *mut c_void, scope: *mut milieu_scope) -> milieu_result>;

/// Asks the program for the value of a layer.
///
/// # Safety
///
/// `evaluate` may be called with this `user`.
pub(crate) unsafe fn ask(
    evaluate: unsafe extern "C" fn(*mut c_void, *mut milieu_scope) -> milieu_result,
    user: &User,
    layer: &str,
    scope: &Scope<'_>,
) -> String {
    let mut asked = milieu_scope {
        tag: TAG,
        inside: Inside {
            scope: std::ptr::from_ref(scope).cast(),
            answer: String::new(),
        },
    };
    // SAFETY: as the caller vouches; `asked` is there during the call.
    let result = unsafe { evaluate(user.data(), &raw mut asked) };
    // SAFETY: it is a field of `asked`. Whoever has kept the pointer finds no tag.
    unsafe { (&raw mut asked.tag).write_volatile(0) };
    if result != MILIEU_OK {
        // The contexts see to it that everything else is done first.
        scope.fail(Box::new(CallbackFailed {
            what: "the value",
            layer: layer.to_owned(),
        }));
        return String::new();
    }
    asked.inside.answer
}

/// # Safety
///
/// `scope` is null, or was handed to a callback that runs.
unsafe fn find<'a>(scope: *const milieu_scope) -> Result<&'a Inside, Failure> {
    // SAFETY: as the caller vouches.
    let found = unsafe { scope.as_ref() }.ok_or_else(|| null("milieu_scope"))?;
    match found.tag == TAG {
        true => Ok(&found.inside),
        false => Err(Failure::new(
            MILIEU_WRONG_HANDLE,
            "this is no `milieu_scope`; it is one during the callback that it was handed to",
        )),
    }
}

impl Inside {
    fn scope(&self) -> &Scope<'_> {
        // SAFETY: `ask` has borrowed it until the callback returns.
        unsafe { &*self.scope.cast() }
    }
}

/// The number of the context; 0 without one.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_scope_identity(scope: *const milieu_scope) -> u64 {
    let mut identity = 0;
    call(|| {
        // SAFETY: as the caller vouches.
        identity = unsafe { find(scope)? }.scope().identity();
        Ok(())
    });
    identity
}

/// The role of the context.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_scope_role(scope: *const milieu_scope) -> milieu_text {
    let mut role = milieu_text::EMPTY;
    call(|| {
        // SAFETY: as the caller vouches.
        role = milieu_text::of(unsafe { find(scope)? }.scope().role());
        Ok(())
    });
    role
}

/// The text of a contextual value that the layer depends on.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_scope_get(
    scope: *const milieu_scope,
    pattern: milieu_text,
) -> milieu_text {
    let mut text = milieu_text::EMPTY;
    call(|| {
        // SAFETY: as the caller vouches.
        let (inside, pattern) = unsafe { (find(scope)?, pattern.read("pattern")?) };
        text = inside
            .scope()
            .get(pattern)
            .map_or(milieu_text::EMPTY, milieu_text::of);
        Ok(())
    });
    text
}

/// The layer's value in this context.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_scope_answer(
    scope: *mut milieu_scope,
    value: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        unsafe {
            find(scope.cast_const())?;
            let value = value.read("value")?;
            value.clone_into(&mut (*scope).inside.answer);
        }
        Ok(())
    })
}
