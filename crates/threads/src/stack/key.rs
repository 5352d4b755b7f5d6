//! What a thread is known by, from one run of a program to the next.
//!
//! A thread's key is the place of its start function, which is the build id of the
//! file that has it and the offset therein: neither depends on where the file was
//! loaded, and a program that is built anew is another. Many threads of C++ and
//! Rust share one start function, which calls the real one through its argument;
//! what tells them apart is the first pointer to code, or to data that is constant
//! once the program has begun (virtual tables), in the first four words there.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

use super::system;

/// What the linker calls the contents of a file: 1 to 20 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId {
    bytes: [u8; Self::BYTES_MAX],
    length: u8,
}

impl BuildId {
    /// Longer ones are cut.
    pub const BYTES_MAX: usize = 20;

    /// That of nothing, for memory that waits for ids; no text says it.
    pub(super) const NONE: Self = Self {
        bytes: [0; Self::BYTES_MAX],
        length: 0,
    };

    /// None if there is not one byte.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let length = bytes.len().min(Self::BYTES_MAX);
        let mut id = Self {
            bytes: [0; Self::BYTES_MAX],
            length: length as u8,
        };
        id.bytes
            .get_mut(..length)?
            .copy_from_slice(bytes.get(..length)?);
        (length > 0).then_some(id)
    }

    /// From hexadecimal digits, as [`fmt::Display`] writes them.
    pub fn parse(digits: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::BYTES_MAX];
        if digits.len() % 2 != 0 || digits.len() > 2 * Self::BYTES_MAX {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = hexadecimal(pair)? as u8;
        }
        Self::new(bytes.get(..digits.len() / 2)?)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length.into()).unwrap_or_default()
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A place in a file that was linked: `BUILD+OFFSET`, hexadecimal.
///
/// Symbolizers take the offset as an address: it counts from where the file's first
/// segment is loaded if that is at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file.
    pub build: BuildId,
    /// Bytes from its load address.
    pub offset: u64,
}

impl Place {
    /// From text, as [`fmt::Display`] writes it.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let plus = text.iter().position(|&byte| byte == b'+')?;
        Some(Self {
            build: BuildId::parse(text.get(..plus)?)?,
            offset: hexadecimal(text.get(plus + 1..)?)?,
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{:x}", self.build, self.offset)
    }
}

/// What a thread is known by: `PLACE`, or `PLACE/PLACE` where its argument says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its start function.
    pub start: Place,
    /// The first pointer to code or to constant data behind its argument.
    pub argument: Option<Place>,
}

impl Key {
    /// From text, as [`fmt::Display`] writes it.
    pub fn parse(text: &[u8]) -> Option<Self> {
        Some(match text.iter().position(|&byte| byte == b'/') {
            None => Self {
                start: Place::parse(text)?,
                argument: None,
            },
            Some(slash) => Self {
                start: Place::parse(text.get(..slash)?)?,
                argument: Some(Place::parse(text.get(slash + 1..)?)?),
            },
        })
    }

    /// The key of a thread that would be created with these. None where the file that
    /// has the start function has no build id; linkers write one when told
    /// `--build-id`, as compilers of distributions do.
    ///
    /// The argument may be anything; it need not be an address.
    pub fn of(start: usize, argument: usize) -> Option<Self> {
        let mut bytes = [0; Search::WORDS * size_of::<usize>()];
        let read = match argument {
            0 => 0,
            address => system::peek(address, &mut bytes),
        };
        let mut search = Search {
            start,
            words: [0; Search::WORDS],
            found_start: None,
            found: [None; Search::WORDS],
        };
        let known = bytes.get(..read).unwrap_or_default();
        let words = known.chunks_exact(size_of::<usize>());
        for (word, bytes) in search.words.iter_mut().zip(words) {
            *word = bytes.try_into().map_or(0, usize::from_ne_bytes);
        }
        let question = Question {
            start,
            words: search.words,
            changes: changes(),
        };
        let answered = &ANSWERED[question.place()];
        if let Some(key) = answered.get(&question) {
            return Some(key);
        }
        each_module(&mut |module| search.look_in(module));
        let key = Self {
            start: search.found_start?,
            argument: search.found.into_iter().flatten().next(),
        };
        answered.set(question, key);
        Some(key)
    }

    /// As words that threads can read and write on their own.
    pub(super) fn to_words(self) -> [u32; Self::WORDS] {
        let mut words = [0; Self::WORDS];
        let places = [Some(self.start), self.argument];
        for (into, place) in words.chunks_exact_mut(Self::WORDS / 2).zip(places) {
            let Some(place) = place else { continue };
            let bytes = place.build.bytes.chunks_exact(4);
            let bytes = bytes.map(|it| it.try_into().map_or(0, u32::from_le_bytes));
            let rest = [
                place.build.length.into(),
                place.offset as u32,
                (place.offset >> 32) as u32,
            ];
            into.iter_mut()
                .zip(bytes.chain(rest))
                .for_each(|(word, it)| *word = it);
        }
        words
    }

    /// From what [`to_words`](Self::to_words) made.
    pub(super) fn from_words(words: &[u32; Self::WORDS]) -> Option<Self> {
        let place = |words: &[u32]| {
            let &[a, b, c, d, e, length, low, high] = words else {
                return None;
            };
            let mut bytes = [0; BuildId::BYTES_MAX];
            for (into, word) in bytes.chunks_exact_mut(4).zip([a, b, c, d, e]) {
                into.copy_from_slice(&word.to_le_bytes());
            }
            Some(Place {
                build: BuildId::new(bytes.get(..length as usize)?)?,
                offset: u64::from(high) << 32 | u64::from(low),
            })
        };
        let (start, argument) = words.split_at(Self::WORDS / 2);
        Some(Self {
            start: place(start)?,
            argument: place(argument),
        })
    }

    /// How many words it takes.
    pub(super) const WORDS: usize = 16;
    /// Which of them tell keys apart mostly: of each place a word of its file and the lower
    /// one of its offset.
    pub(super) const TELLING: [usize; 4] = [0, 6, 8, 14];
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.start, f)?;
        match &self.argument {
            Some(place) => write!(f, "/{place}"),
            None => Ok(()),
        }
    }
}

/// Lower-case digits, as they are written here, so that a key has one text.
fn hexadecimal(digits: &[u8]) -> Option<u64> {
    if !digits
        .iter()
        .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    {
        return None;
    }
    u64::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
}

/// What decides which key it is.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Question {
    start: usize,
    words: [usize; Search::WORDS],
    /// How often anything has been loaded and unloaded.
    changes: [u64; 2],
}

impl Question {
    fn place(&self) -> usize {
        let mixed = self
            .words
            .iter()
            .fold(self.start, |hash, word| hash.rotate_left(7) ^ word);
        (mixed.wrapping_mul(0x9e37_79b1) >> 16) % ANSWERS
    }
}

/// A question that has been answered: threads of a kind are often created one after the
/// other, and a program may have hundreds of libraries.
struct Answered {
    is_taken: AtomicBool,
    is: UnsafeCell<Option<(Question, Key)>>,
}

const ANSWERS: usize = 16;

static ANSWERED: [Answered; ANSWERS] = [const {
    Answered {
        is_taken: AtomicBool::new(false),
        is: UnsafeCell::new(None),
    }
}; ANSWERS];

// SAFETY: what it has is only looked at by whoever has taken it.
unsafe impl Sync for Answered {}

impl Answered {
    /// Nobody waits: who finds it taken, also for ever by a thread that was not there any
    /// more after a fork, asks the loader.
    fn with<T>(&self, action: impl FnOnce(&mut Option<(Question, Key)>) -> T) -> Option<T> {
        if self.is_taken.swap(true, Ordering::Acquire) {
            return None;
        }
        // SAFETY: this thread has taken it.
        let result = action(unsafe { &mut *self.is.get() });
        self.is_taken.store(false, Ordering::Release);
        Some(result)
    }

    fn get(&self, question: &Question) -> Option<Key> {
        let known = self.with(|it| *it)??;
        (known.0 == *question).then_some(known.1)
    }

    fn set(&self, question: Question, key: Key) {
        self.with(|it| *it = Some((question, key)));
    }
}

/// The places of a start function and of what its argument points at.
struct Search {
    start: usize,
    words: [usize; Self::WORDS],
    found_start: Option<Place>,
    found: [Option<Place>; Self::WORDS],
}

impl Search {
    const WORDS: usize = 4;

    fn look_in(&mut self, module: &Loaded<'_>) {
        // A program may have hundreds of libraries.
        let (start, bytes) = module.extent();
        let mut addresses = self.words.iter().chain([&self.start]);
        if !addresses.any(|it| it.wrapping_sub(start) < bytes) {
            return;
        }
        let place = |address: usize| {
            Some(Place {
                build: module.build_id()?,
                offset: address.wrapping_sub(module.base) as u64,
            })
        };
        if self.found_start.is_none() && module.is_code(self.start) {
            self.found_start = place(self.start);
        }
        for (word, found) in self.words.iter().zip(&mut self.found) {
            if found.is_none() && (module.is_code(*word) || module.is_constant(*word)) {
                *found = place(*word);
            }
        }
    }
}

/// A program or library that is loaded.
pub(super) struct Loaded<'l> {
    pub(super) base: usize,
    headers: &'l [Header],
    /// Its path; empty for the program itself.
    pub(super) path: &'l core::ffi::CStr,
}

#[cfg(target_pointer_width = "64")]
type Header = libc::Elf64_Phdr;
#[cfg(target_pointer_width = "32")]
type Header = libc::Elf32_Phdr;

impl Loaded<'_> {
    /// Where it is loaded, and how many bytes it takes there.
    fn extent(&self) -> (usize, usize) {
        let is_loaded = |it: &&Header| it.p_type == libc::PT_LOAD;
        let first = self.headers.iter().find(is_loaded);
        let last = self.headers.iter().rfind(is_loaded);
        // They are in the order of their addresses.
        let start = first.map_or(0, |it| it.p_vaddr as usize);
        let end = last.map_or(0, |it| {
            (it.p_vaddr as usize).wrapping_add(it.p_memsz as usize)
        });
        (self.base.wrapping_add(start), end.wrapping_sub(start))
    }

    /// Whether a segment that satisfies this has the address.
    fn has(&self, address: usize, is_meant: impl Fn(&Header) -> bool) -> bool {
        self.headers.iter().filter(|it| is_meant(it)).any(|header| {
            let start = self.base.wrapping_add(header.p_vaddr as usize);
            address.wrapping_sub(start) < header.p_memsz as usize
        })
    }

    pub(super) fn is_code(&self, address: usize) -> bool {
        self.has(address, |it| {
            it.p_type == libc::PT_LOAD && it.p_flags & libc::PF_X != 0
        })
    }

    fn is_constant(&self, address: usize) -> bool {
        // A program that is not moved has its virtual tables among its constants.
        let is_unmoved = self.base == 0;
        self.has(address, |it| {
            let is_read_only = it.p_flags & (libc::PF_W | libc::PF_X) == 0;
            it.p_type == libc::PT_GNU_RELRO
                || is_unmoved && it.p_type == libc::PT_LOAD && is_read_only
        })
    }

    pub(super) fn build_id(&self) -> Option<BuildId> {
        self.headers
            .iter()
            .filter(|it| it.p_type == libc::PT_NOTE)
            .find_map(|header| {
                let start = self.base.wrapping_add(header.p_vaddr as usize) as *const u8;
                // SAFETY: the loader has mapped the segment, and keeps it while it
                // walks over what is loaded.
                let notes = unsafe { core::slice::from_raw_parts(start, header.p_filesz as usize) };
                build_id_in(notes, if header.p_align == 8 { 8 } else { 4 })
            })
    }
}

/// Notes are three words (length of the name, of the contents, kind), name, contents.
fn build_id_in(mut notes: &[u8], align: usize) -> Option<BuildId> {
    const BUILD_ID: u32 = 3;
    loop {
        let word = |at: usize| {
            let bytes = notes.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_ne_bytes(bytes))
        };
        let (name, contents, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let start = 12_usize
            .checked_add(name)?
            .checked_next_multiple_of(align)?;
        let end = start.checked_add(contents)?;
        if kind == BUILD_ID && notes.get(12..16)? == b"GNU\0" && name == 4 {
            return BuildId::new(notes.get(start..end)?);
        }
        notes = notes.get(end.checked_next_multiple_of(align)?..)?;
    }
}

/// How often anything has been loaded and unloaded so far, as the loader says.
fn changes() -> [u64; 2] {
    unsafe extern "C" fn one(info: *mut libc::dl_phdr_info, _: usize, into: *mut c_void) -> c_int {
        // SAFETY: the loader hands over a description that lives during this call, and the
        // pointer that `changes` gave it.
        let (info, into) = unsafe { (&*info, &mut *into.cast::<[u64; 2]>()) };
        *into = [info.dlpi_adds, info.dlpi_subs];
        1
    }

    let mut changes = [0; 2];
    // SAFETY: the pointer lives as long as the walk.
    unsafe { libc::dl_iterate_phdr(Some(one), (&raw mut changes).cast()) };
    changes
}

/// Calls with everything that is loaded, the program first.
pub(super) fn each_module(visit: &mut dyn FnMut(&Loaded<'_>)) {
    type Visit<'v> = &'v mut dyn FnMut(&Loaded<'_>);

    unsafe extern "C" fn one(info: *mut libc::dl_phdr_info, _: usize, visit: *mut c_void) -> c_int {
        // SAFETY: the loader hands over a description that lives during this call,
        // and the pointer that `each_module` gave it.
        let (info, visit) = unsafe { (&*info, &mut *visit.cast::<Visit<'_>>()) };
        if info.dlpi_phdr.is_null() || info.dlpi_name.is_null() {
            return 0;
        }
        // SAFETY: so many headers, and a name that ends with a zero, are there for
        // as long as the module is loaded.
        let module = unsafe {
            Loaded {
                base: info.dlpi_addr as usize,
                headers: core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()),
                path: core::ffi::CStr::from_ptr(info.dlpi_name),
            }
        };
        visit(&module);
        0
    }

    let mut visit: Visit<'_> = visit;
    // SAFETY: the pointer lives as long as the walk.
    unsafe { libc::dl_iterate_phdr(Some(one), (&raw mut visit).cast()) };
}

#[cfg(test)]
mod tests {
    use std::string::ToString;
    use std::vec::Vec;

    use super::*;

    fn note(name: &[u8], contents: &[u8], kind: u32, align: usize) -> Vec<u8> {
        let mut note = Vec::new();
        for word in [name.len() as u32, contents.len() as u32, kind] {
            note.extend(word.to_ne_bytes());
        }
        note.extend(name);
        note.resize(note.len().next_multiple_of(align), 0);
        note.extend(contents);
        note.resize(note.len().next_multiple_of(align), 0);
        note
    }

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        for align in [4, 8] {
            let mut notes = note(b"GNU\0", &[7; 12], 5, align);
            notes.extend(note(b"Go\0\0", b"no build id", 3, align));
            notes.extend(note(b"GNU\0", &[0xab, 0xcd], 3, align));
            let found = build_id_in(&notes, align);
            assert_eq!(found, BuildId::new(&[0xab, 0xcd]), "aligned by {align}");
            // Broken in any place, it is not found, and nothing else happens.
            for end in 0..notes.len() {
                let found = build_id_in(notes.get(..end).unwrap(), align);
                assert!(found.is_none() || notes.len() - end < align);
            }
        }
        assert_eq!(build_id_in(&note(b"GNU\0", &[], 3, 4), 4), None);
        assert_eq!(build_id_in(&[0xff; 64], 4), None);
    }

    #[test]
    fn a_key_is_its_text_and_its_words() {
        let build = |bytes: &[u8]| BuildId::new(bytes).unwrap();
        let start = Place {
            build: build(&[0xab, 0x01]),
            offset: 0x1_2345_6789,
        };
        let other = Place {
            build: build(&[9; 30]),
            offset: 0,
        };
        for argument in [None, Some(start), Some(other)] {
            let key = Key { start, argument };
            assert_eq!(Key::parse(key.to_string().as_bytes()), Some(key));
            assert_eq!(Key::from_words(&key.to_words()), Some(key));
        }
        assert_eq!(
            Key {
                start,
                argument: None
            }
            .to_string(),
            "ab01+123456789"
        );
        assert_eq!(Key::from_words(&[0; Key::WORDS]), None);
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in [
            "",
            "ab",
            "+1",
            "ab+",
            "abc+1",
            "AB+1",
            "ab+0x1",
            "ab++1",
            "ab+1/",
            "ab+1/cd",
            "zz+1",
            "ab+11111111111111111",
            "ab +1",
            "ab+1/ab+1/ab+1",
            "ababababababababababababababababababababab+1",
        ] {
            assert_eq!(Key::parse(text.as_bytes()), None, "{text}");
        }
    }
}
