//! Thread-based layers, whose value a callback of the program says.

use std::ffi::c_void;

use milieu::Scope;

use crate::{
    abi::{MILIEU_OK, milieu_destroy, milieu_result, milieu_text},
    call::{Before, CallbackFailed, call},
    lent::{Lend, Lent},
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

    /// Whether this is what destroys it.
    pub(crate) fn goes_by(&self, destroy: milieu_destroy) -> bool {
        self.destroy.map(|it| it as usize) == destroy.map(|it| it as usize)
    }

    /// The same, which is not destroyed.
    pub(crate) fn into_data(mut self) -> *mut c_void {
        self.destroy = None;
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
pub struct Evaluating {
    /// Borrowed for the callback, which may not keep it.
    scope: *const Scope<'static>,
    answer: String,
}

impl Lend for Evaluating {
    const TAG: [u8; 4] = *b"scop";
    const NAME: &'static str = "milieu_scope";
    const IS_OF_THREAD: bool = true;
}

/// See `milieu.h`.
#[allow(non_camel_case_types)]
pub type milieu_scope = Lent<Evaluating>;

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
    let inside = Evaluating {
        scope: std::ptr::from_ref(scope).cast(),
        answer: String::new(),
    };
    let before = Before::callback();
    // SAFETY: as the caller vouches.
    let asked = |asked| unsafe { evaluate(user.data(), asked) };
    let (result, inside) = Lent::during(inside, asked);
    if result != MILIEU_OK {
        // The contexts see to it that everything else is done first.
        let said = before.said(result);
        scope.fail(CallbackFailed::payload("the value", layer, said));
        return String::new();
    }
    inside.answer
}

impl Evaluating {
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
        identity = unsafe { Lent::find(scope)? }.scope().identity();
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
        role = milieu_text::of(unsafe { Lent::find(scope)? }.scope().role());
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
        let (inside, pattern) = unsafe { (Lent::find(scope)?, pattern.read("pattern")?) };
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
            let inside = Lent::find(scope.cast_const())?;
            value.read("value")?.clone_into(&mut inside.answer);
        }
        Ok(())
    })
}
