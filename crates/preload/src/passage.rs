//! Functions that programs call all the time: a jump leads from each to the C library's at
//! once, for as long as there is nothing that comes before.
//!
//! Where it leads stands in a word. First that is a function of ours which finds the C
//! library's; then the C library's, whose caller does not notice us; and, while somebody
//! wants it, one of ours that does something before and after.

use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Where a function leads.
pub struct Passage {
    at: AtomicPtr<c_void>,
    /// Finds the C library's function, and sees to it that the word leads there.
    finds: Address,
    /// Does something before.
    watches: Address,
}

/// A function, of whatever type.
#[derive(Clone, Copy)]
pub struct Address(pub *mut c_void);

// SAFETY: functions stay where they are, and anybody may call them.
unsafe impl Sync for Address {}

impl Passage {
    pub const fn new(finds: Address, watches: Address) -> Passage {
        Passage {
            at: AtomicPtr::new(finds.0),
            finds,
            watches,
        }
    }

    /// The function that is to be called.
    #[inline]
    pub fn get(&self) -> *mut c_void {
        self.at.load(Ordering::Relaxed)
    }

    /// The C library's function is this: it is called from now on, unless it was decided
    /// otherwise meanwhile.
    pub fn found(&self, real: *mut c_void) {
        if !real.is_null() {
            let (new, failure) = (Ordering::Relaxed, Ordering::Relaxed);
            let _ = self.at.compare_exchange(self.finds.0, real, new, failure);
        }
    }

    /// Whether something comes before from now on.
    pub fn watch(&self, is_watched: bool) {
        let to = if is_watched { self.watches } else { self.finds };
        self.at.store(to.0, Ordering::Relaxed);
    }
}

/// Defines functions that go on by a passage. `around` of the module is called with what the
/// function does and its arguments, for as long as [`Passage::watch`] wants it.
macro_rules! passages {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(
            /// As the C library has it.
            ///
            /// # Safety
            /// As there.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                // SAFETY: the caller's, and it leads to functions of this type alone.
                unsafe {
                    let next: unsafe extern "C" fn($($type),*) -> $result =
                        core::mem::transmute(passage::$name::PASSAGE.get());
                    next($($argument),*)
                }
            }
        )*

        /// Where they lead.
        mod passage {
            use super::*;
            use crate::passage::{Address, Passage};

            $(
                pub mod $name {
                    use super::*;

                    pub static PASSAGE: Passage = Passage::new(
                        Address(finds as *const () as *mut c_void),
                        Address(watches as *const () as *mut c_void),
                    );

                    unsafe extern "C" fn finds($($argument: $type),*) -> $result {
                        PASSAGE.found(real::$name::REAL.get());
                        // SAFETY: the caller's.
                        unsafe { watches($($argument),*) }
                    }

                    unsafe extern "C" fn watches($($argument: $type),*) -> $result {
                        // SAFETY: the caller's.
                        unsafe { around(|| real::$name($($argument),*), ($($argument,)*)) }
                    }
                }
            )*

            pub fn all() -> impl Iterator<Item = &'static Passage> {
                [$(&$name::PASSAGE),*].into_iter()
            }
        }

        /// Whether something comes before these functions from now on.
        pub fn watch(is_watched: bool) {
            passage::all().for_each(|it| it.watch(is_watched));
        }
    };
}

pub(crate) use passages;
