//! What callbacks are handed for as long as they run.
//!
//! The other side has a pointer to a head, which leads to what was lent while the
//! callback runs. Heads are never given back to the allocator, and one that was used
//! waits behind others before it is used again, so that whoever has kept the pointer is
//! told and harms nobody.

use std::{
    cell::{Cell, RefCell},
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

/// How many of a thread wait before the first is used again.
const WAITING: usize = 8;

// SAFETY: whoever has taken a head out of where it waits writes to it, until it is there
// again; others look at the tag before anything else.
unsafe impl Sync for Head {}

/// The heads of a thread that wait.
struct Own(RefCell<VecDeque<&'static Head>>);

/// Those of threads that have ended.
static LEFT: Mutex<VecDeque<&'static Head>> = Mutex::new(VecDeque::new());

thread_local! {
    static OWN: Own = const { Own(RefCell::new(VecDeque::new())) };
}

fn left() -> std::sync::MutexGuard<'static, VecDeque<&'static Head>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Own {
    fn drop(&mut self) {
        left().append(self.0.get_mut());
    }
}

/// A head that nobody else has, and by whom it is lent.
fn take() -> (&'static Head, *const Own) {
    let own = OWN.try_with(|own| {
        let mut waiting = own.0.borrow_mut();
        let head = (waiting.len() >= WAITING).then(|| waiting.pop_front());
        (head.flatten(), std::ptr::from_ref(own))
    });
    // While the thread ends it has none of its own.
    let (head, own) = own.unwrap_or((None, std::ptr::null()));
    (head.unwrap_or_else(another), own)
}

/// One of a thread that has ended, or a new one.
#[cold]
fn another() -> &'static Head {
    let mut left = left();
    let waiting = left.len() >= WAITING;
    let head = waiting.then(|| left.pop_front()).flatten();
    head.unwrap_or_else(|| {
        Box::leak(Box::new(Head {
            tag: AtomicU32::new(0),
            thread: Cell::new(std::ptr::null()),
            inside: Cell::new(null_mut()),
        }))
    })
}

/// What is lent until this is dropped.
struct Lending(&'static Head, u32);

impl Drop for Lending {
    fn drop(&mut self) {
        let Lending(head, tag) = *self;
        head.tag.store(tag ^ FREE, Ordering::Release);
        if OWN
            .try_with(|own| own.0.borrow_mut().push_back(head))
            .is_err()
        {
            left().push_back(head);
        }
    }
}

impl<T: Lend> Lent<T> {
    const TAG: u32 = u32::from_le_bytes(T::TAG);

    /// Hands it to a callback, and gives it back with what that returns.
    pub fn during<R>(mut inside: T, callback: impl FnOnce(*mut Lent<T>) -> R) -> (R, T) {
        let (head, thread) = take();
        head.thread.set(thread);
        head.inside.set((&raw mut inside).cast());
        head.tag.store(Self::TAG, Ordering::Release);
        let lending = Lending(head, Self::TAG);
        let result = callback(std::ptr::from_ref(head).cast_mut().cast());
        drop(lending);
        (result, inside)
    }

    /// What the other side has handed back.
    ///
    /// # Safety
    ///
    /// It is null, or what is there can be read, as it can where anything of the library
    /// ever was; and what was lent is used by one call at a time.
    pub unsafe fn find<'a>(pointer: *const Lent<T>) -> Result<&'a mut T, Failure> {
        if pointer.is_null() {
            return Err(null(T::NAME));
        }
        if !pointer.is_aligned() {
            return Err(wrong::<T>(0));
        }
        // SAFETY: as the caller vouches; a tag stands first in every head and handle.
        let found = unsafe { (*pointer.cast::<AtomicU32>()).load(Ordering::Acquire) };
        if found != Self::TAG {
            return Err(wrong::<T>(found));
        }
        // SAFETY: nothing else of this library has this tag, and heads stay.
        let head = unsafe { &(*pointer).head };
        if T::IS_OF_THREAD {
            let own = OWN.try_with(std::ptr::from_ref);
            if own.is_ok_and(|own| own != head.thread.get()) {
                return Err(elsewhere::<T>());
            }
        }
        // SAFETY: `during` has it until the callback returns, when the tag is another one,
        // and does not touch it meanwhile.
        Ok(unsafe { &mut *head.inside.get().cast() })
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
