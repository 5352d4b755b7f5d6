//! Stacks that grow: each is at the upper end of a place as large as what the program asked
//! for, and takes as much address space as was learned. The rest of its place is not there
//! until the thread goes so deep.
//!
//! ```text
//!  end   ┌────────────────┐
//!        │ the stack      │  what counts as address space
//!  low   ├────────────────┤
//!        │ guard page     │
//!        ├────────────────┤
//!        │ nothing yet    │  what the handler of `SIGSEGV` maps
//!  start └ ┄ ┄ ┄ ┄ ┄ ┄ ┄ ┄┘
//! ```
//!
//! A program has such a stack from [`Arena::take`] to the moment in which its thread has
//! been joined, or was detached and is gone. Places stay where they are, and are taken again;
//! what others map in a place that is not there stays theirs, and no stack grows over it.
//!
//! Nothing here waits, allocates or locks, and [`Arena::grow`] may be called by a signal
//! handler.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use super::measure::Stack;
use super::system::page_bytes;
use crate::kernel::{self, Errno};

/// What a signal is delivered in, with some to spare.
const SPARE_BYTES: usize = 16 << 10;

const FREE: u32 = 0;
const TAKEN: u32 = 1;

/// Where a stack is or was.
struct Place {
    state: AtomicU32,
    /// The lowest address of the place; 0 if it is nowhere yet.
    start: AtomicUsize,
    end: AtomicUsize,
    /// The lowest address of the stack that may be used now.
    low: AtomicUsize,
    guard_bytes: AtomicUsize,
    /// Nobody joins its thread.
    is_detached: AtomicBool,
    /// The kernel's number of its thread, once that ends.
    ending: AtomicU32,
}

impl Place {
    #[allow(clippy::declare_interior_mutable_const)]
    const NEW: Self = Self {
        state: AtomicU32::new(FREE),
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        low: AtomicUsize::new(0),
        guard_bytes: AtomicUsize::new(0),
        is_detached: AtomicBool::new(false),
        ending: AtomicU32::new(0),
    };

    fn is_taken(&self) -> bool {
        self.state.load(Ordering::Acquire) == TAKEN
    }

    fn start(&self) -> usize {
        self.start.load(Ordering::Relaxed)
    }

    fn end(&self) -> usize {
        self.end.load(Ordering::Relaxed)
    }

    fn guard_bytes(&self) -> usize {
        self.guard_bytes.load(Ordering::Relaxed)
    }

    fn has(&self, address: usize) -> bool {
        (self.start()..self.end()).contains(&address)
    }

    /// How many bytes a stack in it can have.
    fn whole_bytes(&self, guard_bytes: usize) -> usize {
        (self.end() - self.start()).saturating_sub(guard_bytes)
    }

    /// Makes a stack of so many bytes with its guard.
    fn make(&self, bytes: usize, guard_bytes: usize) -> Result<(), Errno> {
        let low = self.end() - bytes;
        map(low - guard_bytes, bytes + guard_bytes)?;
        if let Err(error) = open(low, bytes) {
            unmap(low - guard_bytes, bytes + guard_bytes);
            return Err(error);
        }
        self.guard_bytes.store(guard_bytes, Ordering::Relaxed);
        self.low.store(low, Ordering::Release);
        Ok(())
    }

    /// Makes it larger, downwards, so that there is this address and what a signal needs.
    fn grow(&self, address: usize) -> Option<usize> {
        let (low, guard_bytes) = (self.low.load(Ordering::Relaxed), self.guard_bytes());
        let lowest = self.start() + guard_bytes;
        if address < lowest || address >= low {
            return None;
        }
        let page = page_bytes() as usize;
        let least = address.saturating_sub(SPARE_BYTES) / page * page;
        // Twice as much as there is, so that who goes on does not come again for each page.
        let twice = low.saturating_sub(self.end() - low);
        [least.min(twice), least].into_iter().find_map(|wanted| {
            let wanted = wanted.max(lowest);
            map(wanted - guard_bytes, low - wanted).ok()?;
            // The guard is where the new part ends now, and what it was is used.
            if open(wanted, low - wanted).is_err() {
                unmap(wanted - guard_bytes, low - wanted);
                return None;
            }
            self.low.store(wanted, Ordering::Release);
            Some(wanted)
        })
    }

    /// Nobody uses the stack any more.
    fn give_back(&self) {
        let low = self.low.load(Ordering::Acquire) - self.guard_bytes();
        unmap(low, self.end() - low);
        self.state.store(FREE, Ordering::Release);
    }
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

/// All such stacks of a process. Zeros are one with none.
pub struct Arena {
    places: [Place; Self::PLACES],
    /// No place from here on was ever taken.
    highest: AtomicUsize,
    /// Below this nothing was given yet; 0 at first.
    next: AtomicUsize,
    /// Nothing is given below this.
    lowest: AtomicUsize,
}

impl Default for Arena {
    fn default() -> Self {
        Self::new()
    }
}

impl Arena {
    /// How many there are at most; further ones cannot grow.
    pub const PLACES: usize = 4096;

    /// With none.
    pub const fn new() -> Self {
        Self {
            places: [Place::NEW; Self::PLACES],
            highest: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            lowest: AtomicUsize::new(0),
        }
    }

    /// Makes a stack of so many bytes that can grow until it has `whole_bytes`, with a guard
    /// below it. None where there is no place or no memory.
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
        self.sweep();
        let (number, place) = self.free_place(whole_bytes, guard_bytes)?;
        let is_made = match place.start() {
            0 => self.settle(place, bytes, guard_bytes, whole_bytes),
            _ => place.make(bytes, guard_bytes).is_ok(),
        };
        if !is_made {
            // Somebody else may be there by now.
            place.start.store(0, Ordering::Relaxed);
            place.end.store(0, Ordering::Relaxed);
            place.state.store(FREE, Ordering::Release);
            return None;
        }
        place.ending.store(0, Ordering::Relaxed);
        place.is_detached.store(is_detached, Ordering::Release);
        Some(Made {
            place: number,
            low: place.low.load(Ordering::Relaxed) as *mut c_void,
            bytes,
        })
    }

    /// No thread was created on it.
    pub fn give_back(&self, made: Made) {
        if let Some(place) = self.places.get(made.place) {
            place.give_back();
        }
    }

    /// Whether an address is within such a stack, or within what it may become: its bounds
    /// when it is as large as the program wanted it.
    pub fn whole(&self, address: usize) -> Option<Stack> {
        let place = self.place_of(address)?;
        let guard_bytes = place.guard_bytes();
        Some(Stack {
            low: (place.start() + guard_bytes) as u64,
            high: place.end() as u64,
            guard_bytes: guard_bytes as u64,
        })
    }

    /// The thread on the stack with this address was joined.
    pub fn joined(&self, address: usize) {
        if let Some(place) = self.place_of(address) {
            place.give_back();
        }
    }

    /// Nobody will join the thread on the stack with this address.
    pub fn detached(&self, address: usize) {
        if let Some(place) = self.place_of(address) {
            place.is_detached.store(true, Ordering::Release);
        }
    }

    /// The thread on the stack with this address ends, and has this number of the kernel's.
    pub fn ends(&self, address: usize, thread: u32) {
        if let Some(place) = self.place_of(address) {
            place.ending.store(thread, Ordering::Release);
        }
    }

    /// Makes the stack larger that begins at `low`, for this thread that is on it and wants
    /// to have this address: where it begins now.
    pub fn grow(&self, low: usize, address: usize) -> Option<usize> {
        let is_it = |it: &&Place| it.is_taken() && it.low.load(Ordering::Relaxed) == low;
        self.taken().iter().find(is_it)?.grow(address)
    }

    /// Gives back the stacks of detached threads that are gone.
    fn sweep(&self) {
        for place in self.taken() {
            let ending = place.ending.load(Ordering::Acquire);
            let is_over = ending != 0
                && place.is_taken()
                && place.is_detached.load(Ordering::Acquire)
                && !is_thread(ending);
            // Of two that see this one gives it back.
            let (mine, other) = (Ordering::AcqRel, Ordering::Relaxed);
            if is_over
                && place
                    .ending
                    .compare_exchange(ending, 0, mine, other)
                    .is_ok()
            {
                place.give_back();
            }
        }
    }

    fn taken(&self) -> &[Place] {
        let highest = self.highest.load(Ordering::Acquire);
        self.places.get(..highest).unwrap_or(&self.places)
    }

    fn place_of(&self, address: usize) -> Option<&Place> {
        let mut taken = self.taken().iter();
        taken.find(|it| it.is_taken() && it.has(address))
    }

    /// Takes a place that is large enough, and not far too large, or is nowhere yet.
    fn free_place(&self, whole_bytes: usize, guard_bytes: usize) -> Option<(usize, &Place)> {
        let fits = whole_bytes..=whole_bytes.saturating_mul(2);
        let mut numbered = self.places.iter().enumerate();
        let found = numbered.find(|(_, place)| {
            let is_free = place.state.load(Ordering::Relaxed) == FREE;
            let is_right = || place.start() == 0 || fits.contains(&place.whole_bytes(guard_bytes));
            let (new, failure) = (Ordering::Acquire, Ordering::Relaxed);
            is_free
                && is_right()
                && place
                    .state
                    .compare_exchange(FREE, TAKEN, new, failure)
                    .is_ok()
        });
        if let Some((number, _)) = found {
            self.highest.fetch_max(number + 1, Ordering::AcqRel);
        }
        found
    }

    /// Finds where a new place can be, and makes a stack there; whether there is one.
    fn settle(&self, place: &Place, bytes: usize, guard_bytes: usize, whole_bytes: usize) -> bool {
        /// How often others may be there already.
        const TIMES: usize = 8;
        for _ in 0..TIMES {
            let Some((start, end)) = self.new_bounds(whole_bytes + guard_bytes) else {
                return false;
            };
            place.start.store(start, Ordering::Relaxed);
            place.end.store(end, Ordering::Relaxed);
            match place.make(bytes, guard_bytes) {
                Err(Errno(libc::EEXIST)) => {}
                made => return made.is_ok(),
            }
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
}

/// Where the highest place ends, and below what there is none: at a distance from what the
/// kernel gives out, which begins where libraries are and grows down from there.
fn bounds() -> (usize, usize) {
    static HERE: u8 = 0;
    /// Twice as far apart as most programs are large; sanitizers know no addresses that are
    /// much lower.
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

/// Maps what may not be touched, where nothing is.
fn map(start: usize, bytes: usize) -> Result<(), Errno> {
    // Before Linux 4.17 the flag is not known, and the address a wish.
    let flags = libc::MAP_PRIVATE
        | libc::MAP_ANONYMOUS
        | libc::MAP_NORESERVE
        | libc::MAP_STACK
        | libc::MAP_FIXED_NOREPLACE;
    let wanted = start as *mut c_void;
    // SAFETY: new memory, in nobody's way.
    let made = unsafe { kernel::map(wanted, bytes, libc::PROT_NONE, flags, -1) }?;
    if made.as_ptr() != wanted {
        unmap(made.as_ptr() as usize, bytes);
        return Err(Errno(libc::EEXIST));
    }
    Ok(())
}

/// From now on it may be touched.
fn open(start: usize, bytes: usize) -> Result<(), Errno> {
    let protection = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    // SAFETY: it is a stack of ours, or the guard of one.
    let said = unsafe { kernel::call(libc::SYS_mprotect, [start, bytes, protection, 0, 0, 0]) };
    said.map(|_| ())
}

fn unmap(start: usize, bytes: usize) {
    // SAFETY: it was mapped here, and nobody uses it any more.
    let _ = unsafe { kernel::call(libc::SYS_munmap, [start, bytes, 0, 0, 0, 0]) };
}

/// Whether this process has such a thread still.
fn is_thread(thread: u32) -> bool {
    let arguments = [kernel::process_id() as usize, thread as usize, 0, 0, 0, 0];
    // SAFETY: signal 0 only asks.
    let said = unsafe { kernel::call(libc::SYS_tgkill, arguments) };
    said != Err(Errno(libc::ESRCH))
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

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;

    /// A process has one arena, and others would be in its way.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(address: usize) {
        // SAFETY: there is a stack that nobody else uses.
        unsafe { (address as *mut u8).write_volatile(7) };
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory where it wants it")]
    fn stacks_grow_until_they_are_whole() {
        static ARENA: Arena = Arena::new();
        let _alone = alone();
        let page = page_bytes() as usize;
        let (small, whole) = (64 << 10, 1 << 20);
        let made = ARENA.take(small, 1, whole, false).expect("there is room");
        let end = made.low as usize + made.bytes;
        assert_eq!(made.bytes as u64, small);
        let mut low = made.low as usize;
        write(low);
        assert_eq!(ARENA.grow(low, low), None, "what is there");
        assert_eq!(ARENA.grow(low + page, low - 1), None, "another's");
        // Twice as large for a little, and as large as must be for more.
        let grown = ARENA.grow(low, low - 1).expect("it grows");
        assert_eq!(end - grown, 2 * made.bytes);
        write(grown);
        write(low - 1);
        low = grown;
        let wanted = end - (512 << 10);
        let grown = ARENA.grow(low, wanted).expect("it grows");
        assert_eq!(grown, wanted - SPARE_BYTES);
        write(grown);
        let lowest = end - whole as usize;
        assert_eq!(ARENA.grow(grown, lowest), Some(lowest));
        write(lowest);
        assert_eq!(ARENA.grow(lowest, lowest - 1), None, "the guard");
        let stack = ARENA.whole(end - 1).expect("it is known");
        assert_eq!((stack.low as usize, stack.high as usize), (lowest, end));
        assert_eq!(stack.guard_bytes as usize, page);
        ARENA.joined(end - 1);
        assert_eq!(ARENA.whole(end - 1), None);
        // The same place again, for what is as large.
        let again = ARENA.take(small, 1, whole, false).expect("there is room");
        assert_eq!(again, made);
        let other = ARENA.take(small, 1, whole, false).expect("there is room");
        assert_ne!(other.place, made.place);
        ARENA.give_back(again);
        ARENA.give_back(other);
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory where it wants it")]
    fn stacks_do_not_grow_over_what_is_others() {
        static ARENA: Arena = Arena::new();
        let _alone = alone();
        let page = page_bytes() as usize;
        let made = ARENA
            .take(1 << 16, 1, 1 << 20, false)
            .expect("there is room");
        let low = made.low as usize;
        let others = low - (1 << 16) - page;
        map(others, page).expect("it is free");
        assert_eq!(ARENA.grow(low, others - page), None);
        let grown = ARENA.grow(low, low - page).expect("there is as much");
        assert!(grown > others && grown <= low - page - SPARE_BYTES);
        ARENA.give_back(made);
        open(others, page).expect("it is still there");
        unmap(others, page);
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory where it wants it")]
    fn stacks_of_detached_threads_are_given_back_when_these_are_gone() {
        static ARENA: Arena = Arena::new();
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
        ARENA.sweep();
        assert!(ARENA.whole(address).is_some(), "it is there still");
        drop(end);
        thread.join().expect("it ends");
        // What joins waits for less than that the kernel has forgotten it.
        while ARENA.whole(address).is_some() {
            ARENA.sweep();
            std::thread::yield_now();
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory where it wants it")]
    fn there_is_an_end_to_it() {
        static ARENA: Arena = Arena::new();
        let _alone = alone();
        let too_large = usize::MAX as u64 / 2;
        assert_eq!(ARENA.take(1 << 16, 1, too_large, false), None);
        assert_eq!(ARENA.take(u64::MAX, 1, u64::MAX, false), None);
        assert!(!are_stacks_executable());
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory where it wants it")]
    fn nobody_has_what_another_has() {
        static ARENA: Arena = Arena::new();
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
                let grown = ARENA.grow(low, low - 1).expect("it grows");
                for address in (low..low + made.bytes).step_by(512) {
                    // SAFETY: as above.
                    assert_eq!(unsafe { at(address).read_volatile() }, number);
                }
                write(grown);
                match is_detached {
                    // Such a thread never was.
                    true => ARENA.ends(low, u32::MAX >> 1),
                    false => ARENA.joined(low),
                }
            }
        };
        std::thread::scope(|scope| {
            for number in 1..=4 {
                scope.spawn(move || work(number));
            }
        });
        ARENA.sweep();
        assert!(ARENA.taken().iter().all(|it| !it.is_taken()));
        assert!(ARENA.taken().len() <= 16, "places are taken again");
    }
}
