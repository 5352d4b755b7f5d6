//! Where a stack lies, and how deep it was: its lowest page that was ever touched.
//!
//! ```text
//!  high ┌────────────────────┐ descriptor and thread-local storage, first frames
//!       │ used               │
//!       │ ┄ lowest touched ┄ │ ─ depth = high − lowest touched page
//!       │ never touched      │   (resident pages would not do: a large frame
//!   low ├────────────────────┤    may leave pages out)
//!       │ guard page         │
//!       └────────────────────┘
//! ```
//!
//! Addresses are 64 bits also where this program has 32, so that it can look into
//! others. Nothing allocates, and buffers are small: all of this may run on the
//! stack that is measured.

use core::cell::Cell;
use core::ffi::c_int;

use super::system::{self, Errno, File, Mapping};
use super::text::Text;

/// A stack without its guard page: addresses from `low` on, below `high`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// The lowest address that may be used.
    pub low: u64,
    /// Where it ends; stacks grow downwards from here.
    pub high: u64,
    /// How much below `low` may not be touched.
    pub guard_bytes: u64,
}

impl Stack {
    /// How large it is, without its guard page.
    pub fn bytes(&self) -> u64 {
        self.high.saturating_sub(self.low)
    }

    /// Whether the address is in its guard page.
    pub fn is_guard(&self, address: u64) -> bool {
        address < self.low && self.low - address <= self.guard_bytes
    }
}

/// What is known of a stack before it is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// What `pthread_self()` says in the thread. The C library keeps the descriptor
    /// there, at the upper end of the stack.
    pub descriptor: Option<u64>,
    /// The size that was asked for. A stack from the C library's cache can be larger.
    pub asked_bytes: Option<u64>,
}

/// What was found of a stack, for threads that get the same one again. Numbers only, of
/// which zeros are no stack.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    question: Question,
    stack: Stack,
    /// How deep it was when the last thread on it ended that was measured.
    depth: u64,
}

impl Known {
    /// The stack that is known, if the C library has made this one with the same descriptor,
    /// at the same place, of the size that was asked for: one that it has at least.
    pub fn again(&self, hint: Hint, guard_bytes: u64) -> Option<Stack> {
        let Question {
            descriptor,
            asked_bytes,
            ..
        } = self.question;
        let is_same = hint.descriptor == Some(descriptor)
            && hint.asked_bytes == Some(asked_bytes)
            && self.question.guard_bytes == guard_bytes
            && self.stack.bytes() == asked_bytes;
        is_same.then_some(self.stack)
    }

    /// A thread on this stack has ended, which was so deep.
    pub fn ends(&mut self, stack: &Stack, depth: u64) {
        self.depth = if self.stack == *stack { depth } else { 0 };
    }

    /// Whether the last thread on it that was measured has left some of it untouched, as the
    /// next one will find it: of what threads touch, the C library keeps the upper end for
    /// the next. Who locks all memory meanwhile has one thread counted as deep as can be.
    pub fn was_ample(&self) -> bool {
        self.depth > 0 && self.depth < self.stack.bytes()
    }
}

/// What decides where a stack of the C library's lies in a mapping of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Question {
    start: u64,
    end: u64,
    descriptor: u64,
    asked_bytes: u64,
    guard_bytes: u64,
}

/// How the lowest touched page is found; each is exact but where it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The control `PAGEMAP_SCAN`, Linux 6.7.
    Scan,
    /// Reading `/proc/…/pagemap`, a word for each page.
    Pagemap,
    /// `mincore`; of one's own stacks only, and it misses pages that were swapped out.
    Mincore,
}

impl Way {
    /// All of them, the cheapest of the exact ones first.
    pub const ALL: [Self; 3] = [Self::Scan, Self::Pagemap, Self::Mincore];
}

/// How deep a thread was, when its stack was measured at its start and at its end.
///
/// The C library hands on stacks of threads that have ended, with pages that those
/// touched; a program can have all of its memory locked, which touches every page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peak {
    /// So many bytes.
    Exact(u64),
    /// At most so many: as deep had somebody else been before.
    AtMost(u64),
    /// All of it was touched before the thread began.
    Unknown,
}

impl Peak {
    /// The peak of a thread on a stack of so many bytes.
    pub fn between(depth_at_start: u64, depth_at_end: u64, bytes: u64) -> Self {
        if depth_at_end > depth_at_start {
            Self::Exact(depth_at_end)
        } else if depth_at_start < bytes {
            Self::AtMost(depth_at_start)
        } else {
            Self::Unknown
        }
    }

    /// What a stack must have had for it.
    pub fn bytes(self) -> Option<u64> {
        match self {
            Self::Exact(bytes) | Self::AtMost(bytes) => Some(bytes),
            Self::Unknown => None,
        }
    }
}

/// A process whose stacks are looked at. Its files stay open: a process that forks
/// opens them anew in its child, where the old ones still show the parent.
#[derive(Debug)]
pub struct Process {
    /// None is this process.
    number: Option<c_int>,
    maps: File,
    pagemap: Option<File>,
    /// What the files were when they were opened.
    identities: [Option<(u64, u64)>; 2],
}

impl Process {
    /// This one.
    ///
    /// # Errors
    /// `/proc` is not there.
    pub fn own() -> Result<Self, Errno> {
        Self::open(None)
    }

    /// Another one; whoever may trace it may also measure it.
    ///
    /// # Errors
    /// There is none, or it is not permitted.
    pub fn other(number: c_int) -> Result<Self, Errno> {
        Self::open(Some(number))
    }

    fn open(number: Option<c_int>) -> Result<Self, Errno> {
        let maps = file(number, "maps")?.out_of_the_way();
        let pagemap = file(number, "pagemap").ok().map(File::out_of_the_way);
        let identities = [
            maps.identity().ok(),
            pagemap.as_ref().and_then(|it| it.identity().ok()),
        ];
        Ok(Self {
            number,
            maps,
            pagemap,
            identities,
        })
    }

    /// Whether the files are still the ones that were opened. Programs that become
    /// daemons close files that they do not know, and open others in their place.
    pub fn is_intact(&self) -> bool {
        let pagemap = self.pagemap.as_ref().and_then(|it| it.identity().ok());
        [self.maps.identity().ok(), pagemap] == self.identities
    }

    /// Forgets the files without closing them: after [`is_intact`](Self::is_intact)
    /// has said no, their numbers may be the program's.
    pub fn forget(self) {
        core::mem::forget(self);
    }

    /// The stack of a thread of which an address in use is known, for instance that
    /// of a local variable.
    ///
    /// Without a hint, `high` is the end of the mapping; kernels before 6.7 may have
    /// joined others to it.
    ///
    /// # Errors
    /// There is nothing at the address, or the kernel does not tell.
    pub fn stack_around(&self, address: u64, hint: Hint) -> Result<Stack, Errno> {
        let mapping = self.mapping(address)?.ok_or(Errno(libc::EFAULT))?;
        Ok(self.stack_in(mapping, address, hint))
    }

    /// As [`stack_around`](Self::stack_around), of a stack that the C library has made with
    /// a guard of so many bytes: if it fills the same mapping as the one that is known, it
    /// is that.
    ///
    /// # Errors
    /// As there.
    pub fn stack_again(
        &self,
        address: u64,
        hint: Hint,
        guard_bytes: u64,
        known: &mut Known,
    ) -> Result<Stack, Errno> {
        let mapping = self.mapping(address)?.ok_or(Errno(libc::EFAULT))?;
        let question = Question {
            start: mapping.start,
            end: mapping.end,
            descriptor: hint.descriptor.unwrap_or(0),
            asked_bytes: hint.asked_bytes.unwrap_or(0),
            guard_bytes,
        };
        if known.question == question {
            return Ok(known.stack);
        }
        let stack = self.stack_in(mapping, address, hint);
        // What is joined to others may have become another one meanwhile.
        let is_alone = stack.low == mapping.start && stack.high == mapping.end;
        *known = match is_alone {
            true => Known {
                question,
                stack,
                depth: 0,
            },
            false => Known::default(),
        };
        Ok(stack)
    }

    fn stack_in(&self, mapping: Mapping, address: u64, hint: Hint) -> Stack {
        let page = system::page_bytes();
        let end = self.guard_above(address, mapping.end);
        let (low, guard_bytes) = match self.guard_in(mapping.start, address, hint) {
            // Guard pages within the mapping, as of C libraries since glibc 2.42.
            Some((start, end)) => (end, end.saturating_sub(start)),
            None => (mapping.start, self.guard_below(mapping.start)),
        };
        Stack {
            low,
            high: high(low, end, address, hint, page),
            guard_bytes,
        }
    }

    /// The stack of any thread, found by its stack pointer, while it waits.
    ///
    /// # Errors
    /// It runs just now (`EAGAIN`), it is not permitted, or there is no such thread.
    pub fn stack_of(&self, thread: c_int) -> Result<Stack, Errno> {
        let path: Text<64> = match self.number {
            Some(number) => Text::of(format_args!("/proc/{number}/task/{thread}/syscall")),
            None => Text::of(format_args!("/proc/self/task/{thread}/syscall")),
        };
        let path = path.as_path().ok_or(Errno(libc::ENAMETOOLONG))?;
        let mut line = [0; 256];
        let read = File::open(path, libc::O_RDONLY)?.read(&mut line)?;
        let line = line.get(..read).unwrap_or_default();
        // `running`, or: call, arguments, stack pointer, instruction.
        let mut words = line.trim_ascii().rsplit(|&byte| byte == b' ');
        let pointer = words.nth(1).and_then(|word| word.strip_prefix(b"0x"));
        let pointer = pointer.and_then(hexadecimal).ok_or(Errno(libc::EAGAIN))?;
        self.stack_around(pointer, Hint::default())
    }

    /// How deep the stack was: from its end to the lowest page that was touched.
    ///
    /// # Errors
    /// It is not permitted, the process has ended, or the file is another one by now
    /// (`EBADF`), which then [is not intact](Self::is_intact).
    pub fn depth(&self, stack: &Stack) -> Result<u64, Errno> {
        // No other file understands the first of the ways; what is read is any file's.
        if let Ok(depth) = self.depth_by(Way::Scan, stack) {
            return Ok(depth);
        }
        if !self.is_intact() {
            return Err(Errno(libc::EBADF));
        }
        let found = self.depth_by(Way::Pagemap, stack);
        found.or_else(|_| self.depth_by(Way::Mincore, stack))
    }

    /// As [`depth`](Self::depth), of a thread of this process that begins, where more than
    /// nothing counts only if all of it was touched, as where all memory is locked; see
    /// [`Peak`]. This takes less time than the depth itself.
    ///
    /// # Errors
    /// As there.
    pub fn depth_at_start(&self, stack: &Stack) -> Result<u64, Errno> {
        let page = system::page_bytes();
        let start = stack.low - stack.low % page;
        match (self.number, lowest_resident(start, start + page, page)) {
            (None, Ok(None)) => Ok(0),
            _ => self.depth(stack),
        }
    }

    /// The same in one way, for instance to compare what each of them costs.
    ///
    /// # Errors
    /// This kernel does not have it, or it is not permitted.
    pub fn depth_by(&self, way: Way, stack: &Stack) -> Result<u64, Errno> {
        let page = system::page_bytes();
        let start = stack.low - stack.low % page;
        let end = stack.high.div_ceil(page).saturating_mul(page);
        let pagemap = || self.pagemap.as_ref().ok_or(Errno(libc::EACCES));
        let lowest = match way {
            Way::Scan => {
                system::scan(pagemap()?, (start, end), system::TOUCHED)?.map(|(start, _)| start)
            }
            Way::Pagemap => lowest_in_pagemap(pagemap()?, start, end, page)?,
            Way::Mincore if self.number.is_none() => lowest_resident(start, end, page)?,
            Way::Mincore => return Err(Errno(libc::EPERM)),
        };
        let lowest = lowest.unwrap_or(stack.high);
        Ok(stack.high.saturating_sub(lowest).min(stack.bytes()))
    }

    fn mapping(&self, address: u64) -> Result<Option<Mapping>, Errno> {
        system::query_mapping(&self.maps, address).or_else(|_| self.mapping_in_text(address))
    }

    /// The mapping that has the address, from the text of `/proc/…/maps`.
    fn mapping_in_text(&self, address: u64) -> Result<Option<Mapping>, Errno> {
        // From the beginning, which a file that others read too does not say.
        let file = file(self.number, "maps")?;
        let found = Cell::new(None);
        let mut lines = Lines::default();
        let mut chunk = [0; 512];
        while found.get().is_none() {
            let read = file.read(&mut chunk)?;
            if read == 0 {
                break;
            }
            lines.feed(chunk.get(..read).unwrap_or_default(), |mapping| {
                if (mapping.start..mapping.end).contains(&address) && found.get().is_none() {
                    found.set(Some(mapping));
                }
            });
        }
        Ok(found.get())
    }

    /// How much directly below may not be touched at all.
    fn guard_below(&self, low: u64) -> u64 {
        /// Guards are smaller; what is further below is somebody's reserve.
        const FAR: u64 = 1 << 20;
        let mut start = low;
        // A guard that was made larger later is several mappings.
        while low - start < FAR {
            let below = start.checked_sub(1).map(|address| self.mapping(address));
            match below {
                Some(Ok(Some(below))) if !below.is_accessible && below.start < start => {
                    start = below.start;
                }
                _ => break,
            }
        }
        (low - start).min(FAR)
    }

    /// Where the stack of a neighbour begins with its guard pages within the mapping,
    /// or else where the mapping ends.
    fn guard_above(&self, address: u64, end: u64) -> u64 {
        let page = system::page_bytes();
        let range = (address - address % page, end);
        let found = self
            .pagemap
            .as_ref()
            .map(|it| system::scan(it, range, system::GUARD));
        match found {
            Some(Ok(Some((start, _)))) => start,
            _ => end,
        }
    }

    /// The last guard pages between two addresses, of those that are no mapping.
    fn guard_in(&self, start: u64, address: u64, hint: Hint) -> Option<(u64, u64)> {
        /// Stacks are smaller; what is further below is another's.
        const FAR: u64 = 1 << 30;
        let far = hint.asked_bytes.map_or(FAR, |bytes| bytes.max(FAR));
        let pagemap = self.pagemap.as_ref()?;
        let page = system::page_bytes();
        let end = address - address % page;
        let mut start = start.max(end.saturating_sub(far));
        let mut last = None;
        while start < end {
            match system::scan(pagemap, (start, end), system::GUARD) {
                Ok(Some(found)) if found.1 > start => {
                    last = Some(found);
                    start = found.1;
                }
                _ => break,
            }
        }
        last
    }
}

/// Where the stack ends.
fn high(low: u64, mapping_end: u64, address: u64, hint: Hint, page: u64) -> u64 {
    let highest_known = hint.descriptor.filter(|it| *it < mapping_end && *it >= low);
    let known = highest_known.unwrap_or(address).max(address);
    let asked = hint.asked_bytes.map(|bytes| low.saturating_add(bytes));
    if let Some(asked) = asked.filter(|end| known < *end && *end <= mapping_end) {
        return asked;
    }
    // Where thread-local storage is below the descriptor, that is in the last page.
    let descriptor_is_last = cfg!(any(target_arch = "x86", target_arch = "x86_64"));
    match highest_known {
        Some(last) if descriptor_is_last => (last - last % page + page).min(mapping_end),
        _ => mapping_end,
    }
}

fn file(process: Option<c_int>, name: &str) -> Result<File, Errno> {
    let path: Text<48> = match process {
        Some(number) => Text::of(format_args!("/proc/{number}/{name}")),
        None => Text::of(format_args!("/proc/self/{name}")),
    };
    let path = path.as_path().ok_or(Errno(libc::ENAMETOOLONG))?;
    File::open(path, libc::O_RDONLY)
}

/// Each page has a word; its upper two bits say: in memory, in swap.
fn lowest_in_pagemap(file: &File, start: u64, end: u64, page: u64) -> Result<Option<u64>, Errno> {
    const WORD: usize = 8;
    let mut words = [0; 128 * WORD];
    let mut at = start;
    while at < end {
        let pages = usize::try_from((end - at) / page).unwrap_or(usize::MAX);
        let bytes = pages.saturating_mul(WORD).min(words.len());
        let read = file.read_at(words.get_mut(..bytes).unwrap_or_default(), at / page * 8)?;
        if read < WORD {
            return Err(Errno(libc::EIO));
        }
        let words = words.get(..read).unwrap_or_default();
        for (index, word) in (0..).zip(words.chunks_exact(WORD)) {
            let word = word.try_into().map_or(0, u64::from_ne_bytes);
            if word >> 62 != 0 {
                return Ok(Some(at + index * page));
            }
        }
        at += (read / WORD) as u64 * page;
    }
    Ok(None)
}

fn lowest_resident(start: u64, end: u64, page: u64) -> Result<Option<u64>, Errno> {
    let mut pages = [0; 512];
    let mut at = start;
    while at < end {
        let count =
            usize::try_from((end - at) / page).map_or(pages.len(), |it| it.min(pages.len()));
        let part = pages.get_mut(..count).unwrap_or_default();
        system::resident(at as usize, part, page as usize)?;
        if let Some(index) = part.iter().position(|page| page & 1 != 0) {
            return Ok(Some(at + index as u64 * page));
        }
        at += count as u64 * page;
    }
    Ok(None)
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
}

/// The lines of `/proc/…/maps`, which come in pieces: `start-end rwxp …`.
#[derive(Default)]
struct Lines {
    /// The start, the end, and the rights: what has been read of the line.
    start: u64,
    end: u64,
    is_accessible: bool,
    column: Column,
}

#[derive(Default, Clone, Copy)]
enum Column {
    #[default]
    Start,
    End,
    Rights,
    Rest,
}

impl Lines {
    fn feed(&mut self, text: &[u8], mut line: impl FnMut(Mapping)) {
        for &byte in text {
            let digit = || u64::from(char::from(byte).to_digit(16).unwrap_or(0));
            match (self.column, byte) {
                (_, b'\n') => {
                    line(Mapping {
                        start: self.start,
                        end: self.end,
                        is_accessible: self.is_accessible,
                    });
                    *self = Self::default();
                }
                (Column::Start, b'-') => self.column = Column::End,
                (Column::End, b' ') => self.column = Column::Rights,
                (Column::Rights, b' ') => self.column = Column::Rest,
                (Column::Start, _) => self.start = self.start << 4 | digit(),
                (Column::End, _) => self.end = self.end << 4 | digit(),
                (Column::Rights, _) => self.is_accessible |= matches!(byte, b'r' | b'w' | b'x'),
                (Column::Rest, _) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[cfg_attr(miri, ignore = "all lengths, of code that is safe")]
    #[test]
    fn mappings_are_read_from_pieces_of_any_length() {
        let text = b"55d0a000-55d0b000 r-xp 00000000 fe:00 77  /usr/bin/a-b c\n\
                     7f00-7f10 ---p 00000000 00:00 0 \n\
                     ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n";
        let mapping = |start, end, is_accessible| Mapping {
            start,
            end,
            is_accessible,
        };
        for piece in 1..text.len() {
            let mut found = Vec::new();
            let mut lines = Lines::default();
            for part in text.chunks(piece) {
                lines.feed(part, |mapping| found.push(mapping));
            }
            let expected = [
                mapping(0x55d0_a000, 0x55d0_b000, true),
                mapping(0x7f00, 0x7f10, false),
                mapping(0xffff_ffff_ff60_0000, 0xffff_ffff_ff60_1000, true),
            ];
            assert_eq!(found, expected, "in pieces of {piece}");
        }
    }

    // An interpreter has neither mappings nor calls for them.
    #[cfg(not(miri))]
    #[test]
    fn the_text_of_the_mappings_says_what_the_query_says() {
        let process = Process::own().unwrap();
        let local = 0_u8;
        let address = (&raw const local) as usize as u64;
        let from_text = process.mapping_in_text(address).unwrap().unwrap();
        assert!((from_text.start..from_text.end).contains(&address));
        assert!(from_text.is_accessible);
        assert_eq!(process.mapping_in_text(0).unwrap(), None);
        // Kernels before 6.11 have none.
        if let Ok(asked) = system::query_mapping(&process.maps, address) {
            assert_eq!(asked, Some(from_text));
        }
    }

    #[test]
    fn the_upper_end_is_the_size_that_was_asked_for_where_that_can_be() {
        let hint = |descriptor, asked_bytes| Hint {
            descriptor,
            asked_bytes,
        };
        let page = 0x1000;
        let asked = |bytes| hint(Some(0x17_f700), Some(bytes));
        assert_eq!(
            high(0x10_0000, 0x20_0000, 0x17_0000, asked(0x8_0000), page),
            0x18_0000
        );
        // The descriptor says that the stack is a larger one, or the mapping that it is smaller.
        let cached = high(0x10_0000, 0x20_0000, 0x17_0000, asked(0x4_0000), page);
        let joined = high(0x10_0000, 0x20_0000, 0x17_0000, asked(0x80_0000), page);
        assert_eq!(cached, joined);
        if cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
            assert_eq!(cached, 0x18_0000);
        }
        let nothing = hint(None, None);
        assert_eq!(
            high(0x10_0000, 0x20_0000, 0x17_0000, nothing, page),
            0x20_0000
        );
    }

    #[test]
    fn a_stack_is_ample_while_its_threads_leave_some_of_it() {
        let stack = Stack {
            low: 0x10_0000,
            high: 0x20_0000,
            guard_bytes: 0x1000,
        };
        let mut known = Known {
            stack,
            ..Known::default()
        };
        assert!(!known.was_ample(), "nobody was measured on it");
        known.ends(&stack, 0x4000);
        assert!(known.was_ample());
        known.ends(&stack, stack.bytes());
        assert!(!known.was_ample());
        known.ends(&Stack { low: 0, ..stack }, 0x4000);
        assert!(!known.was_ample(), "that was another stack");
    }

    #[test]
    fn what_others_touched_before_is_no_peak() {
        assert_eq!(Peak::between(8, 40, 100), Peak::Exact(40));
        assert_eq!(Peak::between(40, 40, 100), Peak::AtMost(40));
        // The C library gives back what a thread that ended used most deeply.
        assert_eq!(Peak::between(40, 16, 100), Peak::AtMost(40));
        assert_eq!(Peak::between(100, 100, 100), Peak::Unknown);
    }
}
