//! What callbacks are handed for as long as they run.
//!
//! The other side has a pointer to a head, which leads to what was lent while the
//! callback runs. Heads are never given back to the allocator, and one that was used
//! waits behind others before it is used again, so that whoever has kept the pointer is
//! told and harms nobody. What is lent for each event is so by a head that stays with who
//! lends it ([`Standing`]), where it costs nothing to find.

use std::{
    cell::Cell,
    collections::VecDeque,
    ffi::c_void,
    marker::PhantomData,
    ptr::null_mut,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use crate::{
    abi::{MILIEU_FREED, MILIEU_WRONG_HANDLE, MILIEU_WRONG_THREAD},
    call::{Failure, null},
};

/// A type that callbacks are handed.
pub trait Lend {
    /// Four letters, which no other type has.
    const TAG: [u8; 4];
    /// What the header calls it.
    const NAME: &'static str;
    /// Whether it is of the thread alone in which the callback runs.
    const IS_OF_THREAD: bool = false;
}

/// What a callback is handed, as the other side has it: a head.
#[repr(C)]
pub struct Lent<T> {
    head: Head,
    inside: PhantomData<*mut T>,
}

#[repr(C)]
struct Head {
    tag: AtomicU32,
    /// Who lends it.
    thread: Cell<*const Own>,
    inside: Cell<*mut c_void>,
}

/// Added to the tag when the callback has returned.
const FREE: u32 = 0x8080_8080;

/// How many of a thread take turns.
const TURNS: usize = 8;

// SAFETY: whoever has taken a head out of where it waits writes to it, until it is there
// again; others look at the tag before anything else.
unsafe impl Sync for Head {}

/// The heads of a thread that wait, and whose turn is next.
struct Own {
    heads: [Cell<Option<&'static Head>>; TURNS],
    next: Cell<usize>,
}

/// Those of threads that have ended.
static LEFT: Mutex<VecDeque<&'static Head>> = Mutex::new(VecDeque::new());

thread_local! {
    // Without anything to be dropped, so that it costs next to nothing to find it.
    static OWN: Own = const {
        Own {
            heads: [const { Cell::new(None) }; TURNS],
            next: Cell::new(0),
        }
    };
    static END: End = const { End };
}

/// Gives the heads of a thread away that ends.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        OWN.with(|own| left().extend(own.heads.iter().filter_map(Cell::take)));
    }
}

fn left() -> std::sync::MutexGuard<'static, VecDeque<&'static Head>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One that nobody has any more, or a new one.
fn another() -> &'static Head {
    let mut left = left();
    let waiting = left.len() >= TURNS;
    let head = waiting.then(|| left.pop_front()).flatten();
    head.unwrap_or_else(|| {
        Box::leak(Box::new(Head {
            tag: AtomicU32::new(0),
            thread: Cell::new(std::ptr::null()),
            inside: Cell::new(null_mut()),
        }))
    })
}

/// Another for a thread.
#[cold]
fn another_of(own: &Own) -> &'static Head {
    // Unless the thread ends already, it gives it away then.
    let _ = END.try_with(|_| ());
    let head = another();
    head.thread.set(own);
    head
}

/// A head that is to wait once more when this is dropped.
struct Turn {
    head: &'static Head,
    /// Where it waits, of this thread.
    place: *const Cell<Option<&'static Head>>,
}

impl Drop for Turn {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it is this thread's, which has not ended.
        let place = unsafe { &*self.place };
        if let Some(other) = place.replace(Some(self.head)) {
            give_away(other);
        }
    }
}

/// More callbacks were within another than there are turns, or nobody lends by it any more.
#[cold]
fn give_away(head: &'static Head) {
    left().push_back(head);
}

/// What is lent until this is dropped.
struct Lending {
    head: &'static Head,
    tag: u32,
}

impl Drop for Lending {
    #[inline]
    fn drop(&mut self) {
        self.head.tag.store(self.tag ^ FREE, Ordering::Release);
    }
}

/// A head by which somebody lends one after the other. Whoever has kept the pointer is told
/// until the next is lent, which it leads to then.
#[cfg(feature = "stream")]
pub struct Standing<T: Lend> {
    head: &'static Head,
    lends: PhantomData<fn(T)>,
}

#[cfg(feature = "stream")]
impl<T: Lend> Standing<T> {
    pub fn new() -> Self {
        const { assert!(!T::IS_OF_THREAD, "a head that stays is of no thread") };
        Standing {
            head: another(),
            lends: PhantomData,
        }
    }

    /// Hands it to a callback.
    #[inline]
    pub fn during<R>(&mut self, inside: &mut T, callback: impl FnOnce(*mut Lent<T>) -> R) -> R {
        Lent::lend(self.head, inside, callback)
    }
}

#[cfg(feature = "stream")]
impl<T: Lend> Drop for Standing<T> {
    fn drop(&mut self) {
        give_away(self.head);
    }
}

impl<T: Lend> Lent<T> {
    const TAG: u32 = u32::from_le_bytes(T::TAG);

    /// Hands it to a callback, and gives it back with what that returns.
    #[inline]
    pub fn during<R>(mut inside: T, callback: impl FnOnce(*mut Lent<T>) -> R) -> (R, T) {
        let turn = OWN.with(|own| {
            let turn = own.next.get();
            own.next.set(turn.wrapping_add(1));
            let place = &own.heads[turn % TURNS];
            Turn {
                head: place.take().unwrap_or_else(|| another_of(own)),
                place: std::ptr::from_ref(place),
            }
        });
        let result = Self::lend(turn.head, &mut inside, callback);
        (result, inside)
    }

    #[inline]
    fn lend<R>(head: &'static Head, inside: &mut T, callback: impl FnOnce(*mut Lent<T>) -> R) -> R {
        let tag = Self::TAG;
        head.inside.set((&raw mut *inside).cast());
        head.tag.store(tag, Ordering::Release);
        let _lending = Lending { head, tag };
        callback(std::ptr::from_ref(head).cast_mut().cast())
    }

    /// What the other side has handed back.
    ///
    /// # Safety
    ///
    /// It is null, or what is there can be read, as it can where anything of the library
    /// ever was; and what was lent is used by one call at a time.
    #[inline]
    pub unsafe fn find<'a>(pointer: *const Lent<T>) -> Result<&'a mut T, Failure> {
        if pointer.is_null() || !pointer.is_aligned() {
            return Err(no_address::<T>(pointer));
        }
        // SAFETY: as the caller vouches; a tag stands first in every head and handle.
        let found = unsafe { (*pointer.cast::<AtomicU32>()).load(Ordering::Acquire) };
        if found != Self::TAG {
            return Err(wrong::<T>(found));
        }
        // SAFETY: nothing else of this library has this tag, and heads stay.
        let head = unsafe { &(*pointer).head };
        if T::IS_OF_THREAD {
            let is_own = OWN.with(|own| std::ptr::eq(own, head.thread.get()));
            if !is_own {
                return Err(elsewhere::<T>());
            }
        }
        // SAFETY: `lend` has it until the callback returns, when the tag is another one,
        // and does not touch it meanwhile.
        Ok(unsafe { &mut *head.inside.get().cast() })
    }
}

#[cold]
fn no_address<T: Lend>(pointer: *const Lent<T>) -> Failure {
    match pointer.is_null() {
        true => null(T::NAME),
        false => wrong::<T>(0),
    }
}

#[cold]
fn wrong<T: Lend>(found: u32) -> Failure {
    let name = T::NAME;
    if found == u32::from_le_bytes(T::TAG) ^ FREE {
        let message =
            format!("this `{name}` is gone: it was one during the callback that it was handed to");
        return Failure::new(MILIEU_FREED, message);
    }
    let message =
        format!("this is no `{name}`; it is one during the callback that it was handed to");
    Failure::new(MILIEU_WRONG_HANDLE, message)
}

#[cold]
fn elsewhere<T: Lend>() -> Failure {
    let name = T::NAME;
    let message =
        format!("this `{name}` is another thread's; use it in the callback that it was handed to");
    Failure::new(MILIEU_WRONG_THREAD, message)
}
