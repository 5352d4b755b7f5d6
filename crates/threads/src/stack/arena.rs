//! Stacks that grow: each is at the upper end of a place as large as what the program asked
//! for, and takes as much address space as was learned. The rest of its place is not there
//! until the thread goes so deep: then the kernel makes the mapping larger, as it does for
//! the stack that a program begins with.
//!
//! ```text
//!  end   ┌────────────────┐
//!        │ the stack      │  what counts as address space
//!  low   ├────────────────┤
//!        │ nothing yet    │  what the kernel maps where it is touched
//!        ├────────────────┤
//!  start │ guard pages    │
//!        └────────────────┘
//! ```
//!
//! A program has such a stack from [`Arena::take`] to the moment in which its thread has
//! been joined, or was detached and is gone. Places stay where they are, and are taken again;
//! what others map in a place that is not there stays theirs, and no stack grows over it.
//!
//! Nothing here waits, allocates or locks.

mod places;

use core::ffi::{c_int, c_void};

use super::measure::{Hint, Process, Stack};
use super::system::page_bytes;
use crate::kernel::{self, Errno};
use crate::sync::{AtomicU32, AtomicUsize, Ordering};

pub use places::Taken;
use places::{Kernel, Place, Places};

/// That of this machine.
struct Own;

impl Kernel for Own {
    fn unmap(&self, place: &Place) -> bool {
        let low = lowest_of(place);
        if let Some(low) = low {
            unmap(low, place.end() - low);
        }
        low.is_some()
    }

    fn is_thread(&self, thread: u32) -> bool {
        kernel::is_alive(thread)
    }
}

/// The lowest address of a stack, which may have grown; none where the kernel does not tell.
fn lowest_of(place: &Place) -> Option<usize> {
    let made_low = place.made_low();
    if !is_mapped(made_low - page_bytes() as usize) {
        return Some(made_low);
    }
    let process = Process::own().ok()?;
    let last = place.end().saturating_sub(1) as u64;
    let stack = process.stack_around(last, Hint::default()).ok()?;
    let lowest = place.start() + place.guard_bytes();
    Some((stack.low as usize).max(lowest).min(made_low))
}

/// Makes a stack of so many bytes.
fn make(place: &Place, bytes: usize) -> Result<(), Errno> {
    let low = place.end() - bytes;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    map(low, bytes, protection, libc::MAP_GROWSDOWN)?;
    place.set_made_low(low);
    Ok(())
}

/// A stack that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    place: usize,
    /// Its lowest address.
    pub low: *mut c_void,
    /// How large it is for now.
    pub bytes: usize,
}

impl Taken<'_> {
    /// Its thread was joined.
    pub fn joined(self) {
        self.give_back(&Own);
    }
}

/// All such stacks of a process. Zeros are one with none.
pub struct Arena {
    places: [Place; Self::PLACES],
    /// As in [`Places`].
    highest: AtomicUsize,
    /// Below this nothing was given yet; 0 at first.
    next: AtomicUsize,
    /// Nothing is given below this.
    lowest: AtomicUsize,
    /// Whether the kernel makes stacks larger.
    is_tried: AtomicU32,
}

const UNKNOWN: u32 = 0;
const GROWS: u32 = 1;
const GROWS_NOT: u32 = 2;

#[cfg(not(loom))]
impl Default for Arena {
    fn default() -> Self {
        Self::new()
    }
}

impl Arena {
    /// How many there are at most; further ones cannot grow.
    pub const PLACES: usize = 4096;

    /// With none.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self {
            places: [Place::NEW; Self::PLACES],
            highest: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            lowest: AtomicUsize::new(0),
            is_tried: AtomicU32::new(UNKNOWN),
        }
    }

    /// Makes a stack of so many bytes that can grow until it has `whole_bytes`, with a guard
    /// below those. None where there is no place or no memory, or where the kernel would not
    /// make it larger.
    pub fn take(
        &self,
        bytes: u64,
        guard_bytes: u64,
        whole_bytes: u64,
        is_detached: bool,
    ) -> Option<Made> {
        let page = page_bytes();
        let pages = |bytes: u64| usize::try_from(bytes.checked_next_multiple_of(page)?).ok();
        let (bytes, guard_bytes) = (pages(bytes)?, pages(guard_bytes.max(page))?);
        let whole_bytes = pages(whole_bytes)?.max(bytes);
        // The kernel makes no stack larger than that.
        if whole_bytes as u64 > stack_limit() {
            return None;
        }
        self.places().sweep(&Own);
        // Large enough, and not far too large, or nowhere yet.
        let fits = whole_bytes..=whole_bytes.saturating_mul(2);
        let is_right = |place: &Place| {
            place.start() == 0
                || (fits.contains(&place.whole_bytes()) && place.guard_bytes() >= guard_bytes)
        };
        let make = |place: &Place| {
            let is_made = match place.start() {
                0 => self.settle(place, bytes, guard_bytes, whole_bytes),
                _ => match make(place, bytes) {
                    // Somebody else is there by now.
                    Err(Errno(libc::EEXIST)) => {
                        place.forget();
                        false
                    }
                    made => made.is_ok(),
                },
            };
            is_made && self.grows(place)
        };
        let (number, place) = self.places().take(is_right, make, is_detached)?;
        Some(Made {
            place: number,
            low: place.made_low() as *mut c_void,
            bytes,
        })
    }

    fn places(&self) -> Places<'_> {
        Places {
            all: &self.places,
            highest: &self.highest,
        }
    }

    /// No thread was created on it.
    pub fn give_back(&self, made: Made) {
        self.places().give_back(made.place, &Own);
    }

    /// The place of a thread by its descriptor, if that is one of these. Who joins or detaches
    /// the thread finds it before: afterwards it may be another one's, with this descriptor.
    pub fn of(&self, descriptor: usize) -> Option<Taken<'_>> {
        self.places().of(descriptor)
    }

    /// The stack of a thread by its descriptor, if it is one of these: its bounds when it is
    /// as large as the program wanted it.
    pub fn whole(&self, descriptor: usize) -> Option<Stack> {
        let place = self.places().of(descriptor)?.place();
        let guard_bytes = place.guard_bytes();
        Some(Stack {
            low: (place.start() + guard_bytes) as u64,
            high: place.end() as u64,
            guard_bytes: guard_bytes as u64,
        })
    }

    /// A stack of these by where it ends, as it is now.
    pub fn now(&self, stack: &Stack) -> Option<Stack> {
        let is_it = |it: &&Place| it.is_taken() && it.end() as u64 == stack.high;
        let place = self.places().ever_held().iter().find(is_it)?;
        Some(Stack {
            low: lowest_of(place)? as u64,
            high: stack.high,
            guard_bytes: 0,
        })
    }

    /// Whether an address is where that stack would have grown, or its guard.
    pub fn is_below(&self, stack: &Stack, address: u64) -> bool {
        let is_it = |it: &&Place| it.is_taken() && it.end() as u64 == stack.high;
        let place = self.places().ever_held().iter().find(is_it);
        place.is_some_and(|it| (it.start() as u64..it.made_low() as u64).contains(&address))
    }

    /// The thread with this descriptor ends, and has this number of the kernel's.
    pub fn ends(&self, descriptor: usize, thread: u32) {
        self.places().ends(descriptor, thread);
        self.places().sweep(&Own);
    }

    /// In the child of a fork, where only the thread with this descriptor is, by this number
    /// of the kernel's. The stacks of others stay as long as somebody may ask for them.
    pub fn forked(&self, descriptor: usize, thread: u32) {
        self.places().forked(descriptor, thread, &Own);
    }

    /// Whether the thread with this descriptor is one of the process of which this is a fork.
    /// Nobody needs its stack any more then: as of the C library's, whoever waits for it does
    /// not wait.
    pub fn forgets(&self, descriptor: usize) -> bool {
        self.places().forgets(descriptor, &Own)
    }

    /// Finds where a new place can be, and makes a stack there; whether there is one.
    fn settle(&self, place: &Place, bytes: usize, guard_bytes: usize, whole_bytes: usize) -> bool {
        /// How often others may be there already.
        const TIMES: usize = 8;
        for _ in 0..TIMES {
            let Some((start, end)) = self.new_bounds(whole_bytes + guard_bytes) else {
                return false;
            };
            match map(start, guard_bytes, libc::PROT_NONE, 0) {
                Err(Errno(libc::EEXIST)) => continue,
                Err(_) => return false,
                Ok(()) => {}
            }
            place.settle(start, end, guard_bytes);
            match make(place, bytes) {
                Err(Errno(libc::EEXIST)) => {}
                // Without memory it is a place still.
                made => return made.is_ok(),
            }
            unmap(start, guard_bytes);
            place.forget();
        }
        false
    }

    /// Where nobody has a place yet.
    fn new_bounds(&self, bytes: usize) -> Option<(usize, usize)> {
        let (first, lowest) = bounds();
        // Whoever is first says where all of them are.
        let (new, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = self.lowest.compare_exchange(0, lowest, new, failure);
        let _ = self.next.compare_exchange(0, first, new, failure);
        let lowest = self.lowest.load(Ordering::Relaxed);
        let fits = |next: usize| next.checked_sub(bytes).filter(|start| *start >= lowest);
        let end = self.next.fetch_update(new, failure, fits).ok()?;
        Some((end - bytes, end))
    }

    /// Whether the kernel makes this stack larger, which nobody uses yet. It is asked once:
    /// emulators may not. Otherwise the stack is given back.
    fn grows(&self, place: &Place) -> bool {
        let page = page_bytes() as usize;
        let (start, low) = (place.start() + place.guard_bytes(), place.made_low());
        if self.is_tried.load(Ordering::Relaxed) == UNKNOWN && low - start >= page {
            // The kernel writes there, which is an error where nothing is.
            let arguments = [libc::CLOCK_MONOTONIC as usize, low - page, 0, 0, 0, 0];
            // SAFETY: it is the stack's, or nobody's.
            let said = unsafe { kernel::call(libc::SYS_clock_gettime, arguments) };
            let found = if said.is_ok() { GROWS } else { GROWS_NOT };
            self.is_tried.store(found, Ordering::Relaxed);
            if found == GROWS {
                unmap(low - page, page);
            }
        }
        let grows = self.is_tried.load(Ordering::Relaxed) != GROWS_NOT;
        if !grows {
            unmap(low, place.end() - low);
        }
        grows
    }
}

/// Where the highest place ends, and below what there is none: at a distance from what the
/// kernel gives out, which begins where libraries are and grows down from there.
fn bounds() -> (usize, usize) {
    static HERE: u8 = 0;
    /// Most programs map less than that; sanitizers know no addresses that are much lower.
    const AWAY: u64 = 64 << 30;
    const UNIT: usize = 2 << 20;
    let here = (&raw const HERE) as usize;
    let is_small = cfg!(target_pointer_width = "32");
    let away = if is_small { here / 4 } else { here / 16 };
    let away = away.min(usize::try_from(AWAY).unwrap_or(usize::MAX));
    let first = (here - away) / UNIT * UNIT;
    // Of 32 bits, a place that is not there is still in the way of what is large.
    let all = if is_small { 1 << 30 } else { here / 4 };
    (first, first.saturating_sub(all).max(UNIT))
}

/// Maps memory where nothing is.
fn map(start: usize, bytes: usize, protection: c_int, more: c_int) -> Result<(), Errno> {
    // Before Linux 4.17 the last flag is not known, and the address a wish.
    let flags = libc::MAP_PRIVATE
        | libc::MAP_ANONYMOUS
        | libc::MAP_NORESERVE
        | libc::MAP_STACK
        | libc::MAP_FIXED_NOREPLACE
        | more;
    let wanted = start as *mut c_void;
    // SAFETY: new memory, in nobody's way.
    let made = unsafe { kernel::map(wanted, bytes, protection, flags, -1) }?;
    if made.as_ptr() != wanted {
        unmap(made.as_ptr() as usize, bytes);
        return Err(Errno(libc::EEXIST));
    }
    Ok(())
}

fn unmap(start: usize, bytes: usize) {
    // SAFETY: it was mapped here, and nobody uses it any more.
    let _ = unsafe { kernel::call(libc::SYS_munmap, [start, bytes, 0, 0, 0, 0]) };
}

/// Whether there is anything at a page.
fn is_mapped(page: usize) -> bool {
    let mut state = 0_u8;
    let arguments = [page, 1, &raw mut state as usize, 0, 0, 0];
    // SAFETY: writes a byte for the page.
    unsafe { kernel::call(libc::SYS_mincore, arguments) }.is_ok()
}

/// How large the kernel makes a stack at most.
fn stack_limit() -> u64 {
    // SAFETY: all zeros are a value of this structure.
    let mut limit: libc::rlimit64 = unsafe { core::mem::zeroed() };
    // SAFETY: the kernel writes one such structure.
    let said = kernel::unnoticed(|| unsafe { libc::getrlimit64(libc::RLIMIT_STACK, &mut limit) });
    if said == 0 { limit.rlim_cur } else { 0 }
}

/// Whether libraries of this program want stacks from which code is executed, which these
/// are not. This asks the loader, and is not for signal handlers.
pub fn are_stacks_executable() -> bool {
    /// What the first of them is to be asked, and what any has said.
    unsafe extern "C" fn one(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        wants: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader hands over a description of a module with its headers, and
        // what it was given.
        let (headers, wants) = unsafe {
            let info = &*info;
            let count = usize::from(info.dlpi_phnum);
            let headers = match info.dlpi_phdr.is_null() {
                true => &[],
                false => core::slice::from_raw_parts(info.dlpi_phdr, count),
            };
            (headers, &mut *wants.cast::<bool>())
        };
        let stack = headers.iter().find(|it| it.p_type == libc::PT_GNU_STACK);
        *wants = stack.is_some_and(|it| it.p_flags & libc::PF_X != 0);
        c_int::from(*wants)
    }
    let mut wants = false;
    // SAFETY: the function keeps to what the loader wants of it.
    unsafe { libc::dl_iterate_phdr(Some(one), (&raw mut wants).cast()) };
    wants
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;

    /// A process has one, and others would be in its way.
    static ARENA: Arena = Arena::new();

    /// Each test has it for itself.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(address: usize) {
        // SAFETY: there is a stack that nobody else uses.
        unsafe { (address as *mut u8).write_volatile(7) };
    }

    fn joined(descriptor: usize) {
        ARENA.of(descriptor).expect("it is there").joined();
    }

    fn is_empty() -> bool {
        let places = ARENA.places();
        places.ever_held().iter().all(|it| !it.is_taken())
    }

    fn low_of(arena: &Arena, end: usize) -> usize {
        let stack = Stack {
            high: end as u64,
            ..Stack::default()
        };
        arena.now(&stack).expect("it is known").low as usize
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory where it wants it")]
    fn stacks_grow_until_they_are_whole() {
        let _alone = alone();
        let page = page_bytes() as usize;
        let (small, whole) = (64 << 10, 1 << 20);
        let made = ARENA.take(small, 1, whole, false).expect("there is room");
        let (low, end) = (made.low as usize, made.low as usize + made.bytes);
        assert_eq!((made.bytes as u64, low_of(&ARENA, end)), (small, low));
        write(low);
        assert_eq!(low_of(&ARENA, end), low);
        write(low - 1);
        assert_eq!(low_of(&ARENA, end), low - page);
        let lowest = end - whole as usize;
        write(lowest);
        assert_eq!(low_of(&ARENA, end), lowest);
        let stack = ARENA.whole(end - 1).expect("it is known");
        assert_eq!((stack.low as usize, stack.high as usize), (lowest, end));
        assert_eq!(stack.guard_bytes as usize, page);
        for (address, is_below) in [
            (lowest - page, true),
            (lowest - page - 1, false),
            (low, false),
        ] {
            assert_eq!(ARENA.is_below(&stack, address as u64), is_below);
        }
        joined(end - 1);
        assert_eq!(ARENA.whole(end - 1), None);
        assert!(!is_mapped(lowest) && !is_mapped(low) && !is_mapped(end - page));
        // The same place again, for what is as large.
        let again = ARENA.take(small, 1, whole, false).expect("there is room");
        assert_eq!(again, made);
        let other = ARENA.take(small, 1, whole, false).expect("there is room");
        assert_ne!(other.place, made.place);
        // Only this one has its thread in a child.
        ARENA.forked(other.low as usize, kernel::thread_id());
        assert_eq!(ARENA.whole(end - 1), None);
        write(low);
        assert!(ARENA.forgets(end - 1) && !ARENA.forgets(end - 1) && !is_mapped(low));
        assert!(!ARENA.forgets(other.low as usize));
        ARENA.give_back(other);
        assert!(is_empty());
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory where it wants it")]
    fn what_others_have_in_a_place_stays_theirs() {
        let _alone = alone();
        let page = page_bytes() as usize;
        let made = ARENA
            .take(1 << 16, 1, 1 << 22, false)
            .expect("there is room");
        let low = made.low as usize;
        let others = low - (2 << 20);
        map(others, page, libc::PROT_READ | libc::PROT_WRITE, 0).expect("it is free");
        write(low - 1);
        // It is no thread of ours that has its descriptor there.
        assert!(ARENA.of(others).is_none());
        assert!(ARENA.whole(low).is_some() && ARENA.whole(others).is_none());
        ARENA.give_back(made);
        write(others);
        unmap(others, page);
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory where it wants it")]
    fn stacks_of_detached_threads_are_given_back_when_these_are_gone() {
        let _alone = alone();
        let made = ARENA
            .take(1 << 16, 1, 1 << 20, true)
            .expect("there is room");
        let address = made.low as usize;
        let (say, told) = std::sync::mpsc::channel();
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let _ = say.send(kernel::thread_id());
            let _ = ends.recv();
        });
        ARENA.ends(address, told.recv().expect("it says so"));
        assert!(ARENA.whole(address).is_some(), "it is there still");
        drop(end);
        thread.join().expect("it ends");
        // What joins waits for less than that the kernel has forgotten it.
        while ARENA.whole(address).is_some() {
            ARENA.places().sweep(&Own);
            std::thread::yield_now();
        }
    }

    /// The C library lets a thread be detached while it is joined, and what it says of that
    /// may be late.
    #[test]
    #[cfg_attr(miri, ignore = "maps memory where it wants it")]
    fn what_is_late_is_not_said_of_the_thread_that_follows() {
        let _alone = alone();
        let take = || {
            let made = ARENA.take(1 << 16, 1, 1 << 20, false);
            made.expect("there is room")
        };
        let gone = take();
        let [joined, late, later] = [(); 3].map(|()| ARENA.of(gone.low as usize));
        joined.expect("it is there").joined();
        assert_eq!(take(), gone);
        late.expect("it was there").detached();
        // Such a thread never was.
        ARENA.ends(gone.low as usize, u32::MAX >> 1);
        later.expect("it was there").joined();
        write(gone.low as usize);
        ARENA.give_back(gone);
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory where it wants it")]
    fn there_is_an_end_to_it() {
        let _alone = alone();
        let too_large = usize::MAX as u64 / 2;
        assert_eq!(ARENA.take(1 << 16, 1, too_large, false), None);
        assert_eq!(ARENA.take(u64::MAX, 1, u64::MAX, false), None);
        assert!(!are_stacks_executable());
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory where it wants it")]
    fn nobody_has_what_another_has() {
        let _alone = alone();
        let work = |number: u8| {
            for turn in 0..500 {
                let is_detached = turn % 3 == 0;
                let made = ARENA.take(1 << 14, 1, 1 << 16, is_detached);
                let made = made.expect("there is room");
                let low = made.low as usize;
                let at = |address: usize| address as *mut u8;
                // SAFETY: it is this thread's, if all is well.
                unsafe { at(low).write_bytes(number, made.bytes) };
                write(low - 1);
                for address in (low..low + made.bytes).step_by(512) {
                    // SAFETY: as above.
                    assert_eq!(unsafe { at(address).read_volatile() }, number);
                }
                match is_detached {
                    // Such a thread never was.
                    true => ARENA.ends(low, u32::MAX >> 1),
                    false => joined(low),
                }
            }
        };
        std::thread::scope(|scope| {
            for number in 1..=4 {
                scope.spawn(move || work(number));
            }
        });
        ARENA.places().sweep(&Own);
        assert!(is_empty());
        let count = ARENA.places().ever_held().len();
        assert!(count <= 16, "places are taken again");
    }
}
