//! Handles: what a pointer of the other side leads to, if it is one of ours.
//!
//! A handle is a slot with a tag that says its type and whether it lives. Slots
//! are never given back to the allocator, and a freed one waits behind others
//! before it is used again, so that a stale pointer is told and harms nobody.
//!
//! A slot also says whether it is in use ([`Exclusive`]). That catches a callback
//! that uses the handle of the call which runs it, and two threads that use one
//! context at once.

use std::{
    cell::UnsafeCell,
    collections::VecDeque,
    mem::MaybeUninit,
    ops::{Deref, DerefMut},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use crate::{
    abi::{MILIEU_BUSY, MILIEU_FREED, MILIEU_WRONG_HANDLE},
    call::{Failure, null},
    exclusive::{Exclusive, Inside},
};

/// Where a value of the library is while the other side has a pointer to it.
#[repr(C)]
pub struct Slot<T> {
    tag: AtomicU32,
    uses: Exclusive,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// A type of which the other side has handles.
pub trait Handle: Sized + 'static {
    /// Four letters, which no other type has.
    const TAG: [u8; 4];
    /// What the header calls it.
    const NAME: &'static str;
    /// Why a handle may be good no more, and the way out.
    const GONE: &'static str = "was freed; free it after its last use";
    /// The slots that are free.
    fn pool() -> &'static Pool<Self>;
    /// Whether nobody may use handles of this type here and now, and why.
    #[inline]
    fn refuse() -> Result<(), Failure> {
        Ok(())
    }
}

/// The slots of a type that are free, longest first.
pub struct Pool<T: 'static>(Mutex<VecDeque<&'static Slot<T>>>);

/// How many slots wait before the first is used again.
const WAITING: usize = 64;

/// Added to the tag of a slot that is free.
const FREE: u32 = 0x8080_8080;

// SAFETY: a slot is shared by way of its atomics; its value is reached by whoever
// has made sure that the tag allows it.
unsafe impl<T: Send> Sync for Slot<T> {}

impl<T> Pool<T> {
    pub const fn new() -> Self {
        Pool(Mutex::new(VecDeque::new()))
    }

    fn free(&self) -> std::sync::MutexGuard<'_, VecDeque<&'static Slot<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tag<T: Handle>() -> u32 {
    u32::from_le_bytes(T::TAG)
}

/// Puts a value into a slot, whose address is the handle.
pub fn new<T: Handle + Send>(value: T) -> *mut Slot<T> {
    new_by(|_| value)
}

/// The same for a value that knows its handle.
pub fn new_by<T: Handle + Send>(make: impl FnOnce(*mut Slot<T>) -> T) -> *mut Slot<T> {
    let mut free = T::pool().free();
    let waiting = free.len() > WAITING;
    let slot = waiting.then(|| free.pop_front()).flatten();
    drop(free);
    let slot = slot.unwrap_or_else(|| {
        Box::leak(Box::new(Slot {
            tag: AtomicU32::new(tag::<T>() ^ FREE),
            uses: Exclusive::new(),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }))
    });
    let handle = std::ptr::from_ref(slot).cast_mut();
    let value = make(handle);
    // SAFETY: the slot is free, and nobody else has taken it from the pool.
    unsafe { (*slot.value.get()).write(value) };
    slot.uses.renew();
    slot.tag.store(tag::<T>(), Ordering::Release);
    handle
}

/// The slot that a pointer leads to.
///
/// # Safety
///
/// `pointer` is null, or what is there can be read, as it can where a handle of
/// any type was ever made.
#[inline]
unsafe fn find<'a, T: Handle>(pointer: *const Slot<T>) -> Result<&'a Slot<T>, Failure> {
    if !pointer.is_null() && pointer.is_aligned() {
        // SAFETY: as the caller vouches; a tag stands first in every slot.
        let found = unsafe { (*pointer.cast::<AtomicU32>()).load(Ordering::Acquire) };
        if found == tag::<T>() {
            T::refuse()?;
            // SAFETY: nothing else of this library has this tag.
            return Ok(unsafe { &*pointer });
        }
        return Err(wrong::<T>(found));
    }
    Err(match pointer.is_null() {
        true => null(T::NAME),
        false => wrong::<T>(0),
    })
}

#[cold]
fn wrong<T: Handle>(found: u32) -> Failure {
    let name = T::NAME;
    if found == tag::<T>() ^ FREE {
        let message = format!("this `{name}` {}", T::GONE);
        return Failure::new(MILIEU_FREED, message);
    }
    let message = format!("this is no `{name}`; hand in what the library has handed out as one");
    Failure::new(MILIEU_WRONG_HANDLE, message)
}

/// What a handle leads to, for a type that threads share.
///
/// # Safety
///
/// As the header says of handles: the pointer is null or was one once, and is
/// not freed meanwhile.
#[inline]
pub unsafe fn shared<'a, T: Handle + Sync>(pointer: *const Slot<T>) -> Result<&'a T, Failure> {
    // SAFETY: as the caller vouches.
    let slot = unsafe { find(pointer)? };
    // SAFETY: the tag says that there is a value, and it is only read.
    Ok(unsafe { (*slot.value.get()).assume_init_ref() })
}

/// A value that is in use until this is dropped.
pub struct Using<'a, T: Handle>(&'a Slot<T>, #[expect(dead_code)] Inside<'a>);

/// What a handle leads to, for a type that one thread uses at a time.
///
/// # Safety
///
/// As [`shared`], and no two threads use it at once.
#[inline]
pub unsafe fn using<'a, T: Handle>(pointer: *const Slot<T>) -> Result<Using<'a, T>, Failure> {
    // SAFETY: as the caller vouches.
    let slot = unsafe { find(pointer)? };
    match slot.uses.enter() {
        Some(inside) => Ok(Using(slot, inside)),
        None => Err(busy::<T>()),
    }
}

#[cold]
fn busy<T: Handle>() -> Failure {
    let message = format!(
        "this `{}` is in use, by another thread or by the call that runs this callback; give each \
         thread its own, and let an action switch layers by milieu_activation_activate",
        T::NAME
    );
    Failure::new(MILIEU_BUSY, message)
}

impl<T: Handle> Deref for Using<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the tag said that there is a value, and this one alone uses it.
        unsafe { (*self.0.value.get()).assume_init_ref() }
    }
}

impl<T: Handle> DerefMut for Using<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`.
        unsafe { (*self.0.value.get()).assume_init_mut() }
    }
}

/// Takes a value out of its slot, which is free from then on. Null has none.
///
/// # Safety
///
/// As [`using`].
pub unsafe fn take<T: Handle>(pointer: *mut Slot<T>) -> Result<Option<T>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller vouches.
    let using = unsafe { using(pointer.cast_const())? };
    let slot = using.0;
    let (lives, freed) = (tag::<T>(), tag::<T>() ^ FREE);
    let taken = slot
        .tag
        .compare_exchange(lives, freed, Ordering::AcqRel, Ordering::Acquire);
    if taken.is_err() {
        return Err(wrong::<T>(freed));
    }
    // SAFETY: whoever sets the tag to freed has the value, and nobody else.
    let value = unsafe { (*slot.value.get()).assume_init_read() };
    drop(using);
    T::pool().free().push_back(slot);
    Ok(Some(value))
}

/// A slot whose handle is good only now and then: while a callback runs, or until
/// the next call.
#[cfg(feature = "stream")]
pub struct Lending<T: Handle>(&'static Slot<T>);

#[cfg(feature = "stream")]
impl<T: Handle + Send> Lending<T> {
    /// Nobody has it yet.
    pub fn new(value: T) -> Self {
        // SAFETY: slots are never unmapped, and this one was just made.
        let lending = Lending(unsafe { &*new(value) });
        lending.recall();
        lending
    }

    /// Changes the value and hands it out.
    #[inline]
    pub fn lend(&self, change: impl FnOnce(&mut T)) -> *mut Slot<T> {
        // SAFETY: the slot has a value for as long as this is there, and nobody
        // has its handle now.
        change(unsafe { (*self.0.value.get()).assume_init_mut() });
        self.0.tag.store(tag::<T>(), Ordering::Release);
        std::ptr::from_ref(self.0).cast_mut()
    }

    /// From now on whoever has the handle is told that it was freed.
    #[inline]
    pub fn recall(&self) {
        self.0.tag.store(tag::<T>() ^ FREE, Ordering::Release);
    }
}

#[cfg(feature = "stream")]
impl<T: Handle> Drop for Lending<T> {
    fn drop(&mut self) {
        self.0.tag.store(tag::<T>() ^ FREE, Ordering::Release);
        // SAFETY: it has a value, which nobody reaches any more.
        drop(unsafe { (*self.0.value.get()).assume_init_read() });
        T::pool().free().push_back(self.0);
    }
}

/// Makes a type one that the other side has handles of.
macro_rules! handle {
    ($type:ty, $tag:literal, $name:literal $(, $gone:literal)? $(; $refuse:path)?) => {
        impl $crate::handle::Handle for $type {
            const TAG: [u8; 4] = *$tag;
            const NAME: &'static str = $name;
            $(const GONE: &'static str = $gone;)?
            fn pool() -> &'static $crate::handle::Pool<Self> {
                static POOL: $crate::handle::Pool<$type> = $crate::handle::Pool::new();
                &POOL
            }
            $(#[inline]
            fn refuse() -> Result<(), $crate::call::Failure> {
                $refuse()
            })?
        }
    };
}
pub(crate) use handle;
