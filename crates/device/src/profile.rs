//! What was learned of stacks, as people read it: with names and places of start
//! functions, found in the files of programs and libraries.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{CString, OsString};
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use addr2line::{Loader, Location, demangle_auto};
use milieu_threads::stack::{
    BuildId, Entry, Key, Line, Lines, Module, Place, Policy, Profile as Text, ProfileError, Room,
    Verdict, Zones,
};
use object::{
    Object, ObjectSection, ObjectSegment, ObjectSymbol, RelocationTarget, SymbolKind, SymbolSection,
};

/// What was learned, of one file or of several together.
#[derive(Default)]
pub struct Profile {
    /// By key.
    pub entries: Vec<Entry>,
    /// Where threads of a key were created: to where the calls return that have led there.
    pub sites: Vec<(Key, Vec<Place>)>,
    /// Where modules lie.
    pub modules: Vec<(BuildId, PathBuf)>,
    /// All of it as one file.
    pub text: Vec<u8>,
    /// Lines that nobody understands; they are kept and do not count.
    pub complaints: Vec<String>,
}

/// Why a profile cannot be had.
#[derive(Debug)]
pub enum LoadError {
    /// The file cannot be read.
    Read(PathBuf, io::Error),
    /// It is no profile.
    Profile(PathBuf, ProfileError),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Read(path, error) => {
                write!(f, "{} cannot be read: {error}", path.display())
            }
            LoadError::Profile(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for LoadError {}

/// Adds to a profile what processes have noted that were ended, as far as one may write it.
pub fn settle(path: &Path) {
    const PATIENCE_MILLISECONDS: u32 = 2000;
    if let Ok(name) = CString::new(path.as_os_str().as_bytes()) {
        // Otherwise it is read as it is, and somebody else does that.
        let _ = milieu_threads::stack::settle(&name, PATIENCE_MILLISECONDS);
    }
}

/// Joins what files say, with what processes that were ended have noted beside them.
///
/// # Errors
/// One of them cannot be read, or is no profile.
pub fn load(paths: &[PathBuf]) -> Result<Profile, LoadError> {
    let mut texts = Vec::new();
    for path in paths {
        settle(path);
        let text = fs::read(path).map_err(|error| LoadError::Read(path.clone(), error))?;
        texts.push(text);
    }
    let mut room = Room::default();
    for text in &texts {
        let of = Room::of(text);
        room.entries += of.entries;
        room.modules += of.modules;
        room.lines += of.lines;
    }
    let mut entries = vec![Entry::EMPTY; room.entries];
    let mut modules = vec![Module::EMPTY; room.modules];
    let mut kept: Vec<&[u8]> = vec![b""; room.lines];
    let mut joined = Text::new(&mut entries, &mut modules, &mut kept);
    let mut complaints = Vec::new();
    for (path, text) in paths.iter().zip(&texts) {
        let mut wrong = |error: milieu_threads::stack::LineError<'_>| {
            complaints.push(format!("{}, {error}", path.display()));
        };
        joined
            .read(text, &mut wrong)
            .map_err(|error| LoadError::Profile(path.clone(), error))?;
    }
    let mut text = Vec::new();
    joined.write(&mut |part| text.extend_from_slice(part));
    // It was read before.
    let lines = Lines::of(&text).into_iter().flatten();
    let sites = lines.filter_map(|it| match it {
        Ok(Line::Site(site)) => Some((site.key, site.calls().collect())),
        _ => None,
    });
    let sites = sites.collect();
    let path = |it: &Module<'_>| PathBuf::from(OsString::from_vec(it.path().collect()));
    Ok(Profile {
        entries: joined.entries().to_vec(),
        sites,
        modules: joined
            .modules()
            .iter()
            .map(|it| (it.build, path(it)))
            .collect(),
        text,
        complaints,
    })
}

impl Profile {
    /// What was seen since an earlier state of the same file.
    #[must_use]
    pub fn since(&self, before: &Profile) -> Vec<Entry> {
        let was = |key: &Key| before.entries.iter().find(|it| it.key == *key);
        let news = self.entries.iter().filter_map(|now| {
            let mut news = *now;
            if let Some(before) = was(&now.key) {
                news.runs = now.runs.saturating_sub(before.runs);
                news.threads = now.threads.saturating_sub(before.threads);
                if before.overflow_bytes == now.overflow_bytes {
                    news.overflow_bytes = 0;
                }
            }
            (news.threads > 0 || news.overflow_bytes > 0 || news.runs > 0).then_some(news)
        });
        news.collect()
    }
}

/// What is to be said of the threads of a key.
#[must_use]
pub fn verdict(entry: &Entry, zones: Zones, policy: &Policy) -> Verdict {
    if entry.overflow_bytes > 0 {
        return Verdict::NearOverflow;
    }
    let enough = policy.enough_bytes(entry.peak_bytes);
    zones.verdict(entry.peak_bytes, entry.given_bytes, enough)
}

/// A start function, as the sources have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Start {
    /// Its name; what it calls, where it is one that begins all threads of a language.
    /// Without symbols, the file and the offset.
    pub name: String,
    /// File and line, where there is debug information.
    pub position: Option<String>,
}

/// Finds start functions in the files that have them.
#[derive(Default)]
pub struct Symbols {
    paths: HashMap<BuildId, Vec<PathBuf>>,
    files: HashMap<BuildId, Option<Symbolic>>,
}

/// A program or library with its symbols.
struct Symbolic {
    name: String,
    lines: Option<Loader>,
    /// Symbols of functions and data, by address.
    symbols: Vec<(u64, u64, String)>,
    /// Pointers that the loader writes: where, and what.
    pointers: HashMap<u64, u64>,
    /// What it exports, by address, as the loader calls it.
    exported: HashMap<u64, String>,
    /// Where its first segment is loaded.
    first: u64,
}

impl Symbols {
    /// Those of the modules of a profile.
    #[must_use]
    pub fn of(profile: &Profile) -> Symbols {
        let mut symbols = Symbols::default();
        for (build, path) in &profile.modules {
            let paths = symbols.paths.entry(*build).or_default();
            paths.push(path.clone());
        }
        symbols
    }

    /// What threads of a key begin with: what tells them apart, if it says anything.
    pub fn start(&mut self, key: &Key) -> Start {
        let start = self.place(&key.start);
        let Some(place) = &key.argument else {
            return start;
        };
        let argument = self.argument(place);
        match argument {
            Some(argument) => Start {
                position: argument.position.or(start.position),
                name: argument.name,
            },
            None => start,
        }
    }

    /// What patterns know the start function of a key by: its symbol, if its file exports
    /// it, and else `FILE+0xOFFSET`. None where the file is not there, or is another by now.
    pub fn pattern_text(&mut self, key: &Key) -> Option<String> {
        let Place { build, offset } = key.start;
        let file = self.file(&build)?;
        Some(match file.exported.get(&offset) {
            Some(symbol) => symbol.clone(),
            None => format!("{}+{:#x}", file.name, offset.wrapping_sub(file.first)),
        })
    }

    /// What tells threads of a key from others of the same start function, which patterns
    /// do not know; none where the argument says nothing.
    pub fn kind(&mut self, key: &Key) -> Option<Place> {
        let place = key.argument?;
        self.argument(&place).map(|_| place)
    }

    /// Where a thread is created by these calls, by where they return to, the innermost
    /// first: the functions that are none of a language's own.
    pub fn creators(&mut self, calls: &[Place]) -> Vec<Start> {
        let mut creators = Vec::new();
        for call in calls {
            let Some(file) = self.file(&call.build) else {
                creators.push(unnamed(None, call));
                continue;
            };
            if is_of_a_language_file(&file.name) {
                continue;
            }
            // The last call of a function may return to the next one.
            let functions = file.functions(call.offset.saturating_sub(1));
            if functions.is_empty() {
                creators.push(unnamed(Some(&file.name), call));
            }
            let is_own = |it: &Named| is_of_a_language(&it.0);
            let functions = functions.into_iter().filter(|it| !is_own(it));
            creators.extend(functions.map(start));
        }
        creators
    }

    fn place(&mut self, place: &Place) -> Start {
        let found = self.file(&place.build);
        found
            .and_then(|it| it.function(place.offset))
            .unwrap_or_else(|| unnamed(self.file(&place.build).map(|it| &*it.name), place))
    }

    /// A function, or a virtual table whose functions tell what is run: the fourth
    /// word of Rust's, the third of C++'s thread states.
    fn argument(&mut self, place: &Place) -> Option<Start> {
        const WORD: u64 = 8;
        let file = self.file(&place.build)?;
        let called = [3, 2].into_iter().find_map(|index| {
            let target = file.pointers.get(&(place.offset + index * WORD))?;
            file.function(*target)
        });
        let own = file.function(place.offset);
        match (own, called) {
            // The name of the data says what it is for; the function says where that is.
            (Some(own), Some(called)) if own.name.starts_with("vtable for ") => Some(Start {
                name: own.name.trim_start_matches("vtable for ").to_owned(),
                position: called.position,
            }),
            (_, Some(called)) => Some(called),
            // What points into a function is left over from who had the memory before.
            (own, None) => own.filter(|_| file.begins(place.offset)),
        }
    }

    fn file(&mut self, build: &BuildId) -> Option<&Symbolic> {
        let paths = self.paths.get(build).map(Vec::as_slice).unwrap_or_default();
        let file = self.files.entry(*build).or_insert_with(|| {
            let mut found = paths.iter().filter_map(|it| Symbolic::open(it, build));
            found.next()
        });
        file.as_ref()
    }
}

impl Symbolic {
    /// None where the file is not there, or is another by now.
    fn open(path: &Path, build: &BuildId) -> Option<Symbolic> {
        let bytes = fs::read(path).ok()?;
        let file = object::File::parse(&*bytes).ok()?;
        let id = file.build_id().ok().flatten()?;
        if BuildId::new(id) != Some(*build) {
            return None;
        }
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let mut symbols: Vec<(u64, u64, String)> = symbols
            .filter(|it| it.is_definition())
            .filter_map(|it| {
                let name = it.name().ok().filter(|it| !it.is_empty())?;
                Some((
                    it.address(),
                    it.address().saturating_add(it.size()),
                    name.to_owned(),
                ))
            })
            .collect();
        symbols.sort();
        // Those in assembly may not say how far they reach: to the next one.
        let starts: Vec<u64> = symbols.iter().skip(1).map(|it| it.0).collect();
        for (symbol, next) in symbols.iter_mut().zip(starts.iter().chain([&u64::MAX])) {
            if symbol.1 == symbol.0 {
                symbol.1 = *next;
            }
        }
        Some(Symbolic {
            name: path
                .file_name()
                .map_or(String::new(), |it| it.to_string_lossy().into_owned()),
            lines: Loader::new(path).ok(),
            symbols,
            pointers: pointers(&file),
            exported: exported(&file),
            first: first(&file),
        })
    }

    fn function(&self, address: u64) -> Option<Start> {
        self.symbol(address).map(start)
    }

    fn symbol(&self, address: u64) -> Option<Named> {
        let at = self.symbols.partition_point(|it| it.0 <= address);
        let symbol = at.checked_sub(1).and_then(|it| self.symbols.get(it));
        // What a stripped file does not name is no part of the symbol before it; where there
        // is debug information, that names it.
        let symbol = symbol.filter(|it| address < it.1).map(|it| it.2.clone());
        let symbol = symbol.or_else(|| self.debugged(address))?;
        let location = self.lines.as_ref();
        let location = location.and_then(|it| it.find_location(address).ok().flatten());
        Some((symbol, location.and_then(position)))
    }

    /// The functions that have an address: several where some were inlined, of which the
    /// innermost is the first. None if nothing names them.
    fn functions(&self, address: u64) -> Vec<Named> {
        let frames = self.lines.as_ref();
        let mut frames = frames.and_then(|it| it.find_frames(address).ok());
        let mut functions = Vec::new();
        while let Some(Ok(Some(frame))) = frames.as_mut().map(|it| it.next()) {
            let name = frame.function.as_ref().and_then(|it| it.raw_name().ok());
            let place = frame.location.and_then(position);
            functions.extend(name.map(|it| (it.into_owned(), place)));
        }
        if functions.is_empty() {
            functions.extend(self.symbol(address));
        }
        functions
    }

    /// Whether a function or data begins there.
    fn begins(&self, address: u64) -> bool {
        let at = self.symbols.binary_search_by_key(&address, |it| it.0);
        at.is_ok()
    }

    /// The name of a function by the debug information, which is that of the outermost one
    /// where others are inlined.
    fn debugged(&self, address: u64) -> Option<String> {
        let mut frames = self.lines.as_ref()?.find_frames(address).ok()?;
        let mut name = None;
        while let Ok(Some(frame)) = frames.next() {
            name = frame.function.or(name);
        }
        Some(name?.raw_name().ok()?.into_owned())
    }
}

/// The symbol of a function, and where that is.
type Named = (String, Option<String>);

fn start((symbol, position): Named) -> Start {
    Start {
        name: readable(&symbol).into_owned(),
        position,
    }
}

/// A symbol as the sources write it. A short name of C's is one that C++ gives a type:
/// `f` would be `float`.
fn readable(symbol: &str) -> Cow<'_, str> {
    let is_mangled = ["_Z", "__Z", "_R"].iter().any(|it| symbol.starts_with(it));
    match is_mangled {
        true => demangle_auto(symbol.into(), None),
        false => symbol.into(),
    }
}

/// What no file names.
fn unnamed(file: Option<&str>, place: &Place) -> Start {
    Start {
        name: match file {
            Some(file) => format!("{file}+0x{:x}", place.offset),
            None => place.to_string(),
        },
        position: None,
    }
}

fn position(location: Location<'_>) -> Option<String> {
    let file = location.file?;
    Some(match location.line {
        Some(line) => format!("{file}:{line}"),
        None => file.to_owned(),
    })
}

/// Whether a file is a language's own library.
fn is_of_a_language_file(name: &str) -> bool {
    let files = ["libc.so.", "libpthread.so.", "libstdc++.so.", "libc++.so."];
    files.iter().any(|it| name.starts_with(it))
}

/// Whether the function of a symbol is one of Rust's or C++'s own, or what begins a program.
fn is_of_a_language(symbol: &str) -> bool {
    if symbol == "_start" {
        return true;
    }
    let name = readable(symbol);
    let own: &[&str] = match is_of_rust(symbol) {
        true => &["std::", "core::", "alloc::"],
        false => &["std::", "__gnu_cxx::"],
    };
    let is_own = |path: &str| own.iter().any(|it| path.starts_with(it));
    if let Some(of) = name.strip_prefix('<') {
        return is_own(of);
    }
    // A function that is made for types says before its name what it returns.
    let mut depth = 0_u32;
    let mut plain = String::new();
    for character in name.chars() {
        match character {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 => break,
            it if depth == 0 => plain.push(it),
            _ => {}
        }
    }
    is_own(&name) || plain.rsplit(' ').next().is_some_and(is_own)
}

/// Whether it is a symbol of Rust's: one of its own kind, or one of C++'s that ends with a
/// hash.
fn is_of_rust(symbol: &str) -> bool {
    const HASH: usize = "17h0123456789abcdefE".len();
    let symbol = symbol.split('.').next().unwrap_or_default();
    let hash = symbol
        .len()
        .checked_sub(HASH)
        .and_then(|it| symbol.get(it..));
    symbol.starts_with("_R") || hash.is_some_and(|it| it.starts_with("17h") && it.ends_with('E'))
}

/// Functions and data that the loader finds by an address; where there are several, it
/// takes the first one.
fn exported(file: &object::File<'_>) -> HashMap<u64, String> {
    let mut exported = HashMap::new();
    for symbol in file.dynamic_symbols() {
        // One of another file has an address where a program that is not moved calls it.
        let is_there = !symbol.is_undefined() || symbol.address() != 0;
        let is_fixed = symbol.section() == SymbolSection::Absolute;
        if !is_there || symbol.is_local() || is_fixed || symbol.kind() == SymbolKind::Tls {
            continue;
        }
        if let Some(name) = symbol.name().ok().filter(|it| !it.is_empty()) {
            let place = exported.entry(symbol.address());
            place.or_insert_with(|| name.to_owned());
        }
    }
    exported
}

/// Where the first segment is loaded, in whole pages; 0 in what can be moved, mostly.
fn first(file: &object::File<'_>) -> u64 {
    let addresses = file.segments().map(|it| it.address());
    let page = rustix::param::page_size() as u64;
    addresses.min().map_or(0, |it| it - it % page)
}

/// What the loader writes into a file's data: addresses in the file itself.
fn pointers(file: &object::File<'_>) -> HashMap<u64, u64> {
    let mut pointers = HashMap::new();
    let relocations = file.dynamic_relocations().into_iter().flatten();
    for (at, relocation) in relocations {
        if relocation.target() == RelocationTarget::Absolute {
            pointers.insert(at, relocation.addend() as u64);
        }
    }
    // Those of a file that is not moved stand there.
    if file.kind() == object::ObjectKind::Executable && pointers.is_empty() {
        for name in [".data.rel.ro", ".rodata"] {
            let Some(section) = file.section_by_name(name) else {
                continue;
            };
            let data = section.data().unwrap_or_default();
            for (index, word) in data.chunks_exact(8).enumerate() {
                let word = word.try_into().map_or(0, u64::from_le_bytes);
                pointers.insert(section.address() + 8 * index as u64, word);
            }
        }
    }
    pointers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, text).expect("it is written");
        path
    }

    #[test]
    fn what_a_killed_process_has_noted_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let profile = folder.path().join("a");
        let mut child = std::process::Command::new("true")
            .spawn()
            .expect("it starts");
        child.wait().expect("it ends");
        let notes = write(
            folder.path(),
            &format!("a.{}.notes", child.id()),
            "milieu stacks 1\n# notes of a process that began at 7; \nthread ab12+10 runs=1 \
             threads=2 peak=8192 given=8388608\n",
        );
        for _ in 0..2 {
            let learned = load(std::slice::from_ref(&profile)).expect("it is there");
            assert_eq!(learned.entries.len(), 1);
            assert_eq!(learned.entries[0].threads, 2);
            assert!(!notes.exists());
        }
    }

    #[test]
    fn files_are_joined_and_their_wrong_lines_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let a = write(
            folder.path(),
            "a",
            "milieu stacks 1\nmodule ab12 /usr/bin/a%20b\nthread ab12+10 runs=1 threads=2 \
             peak=8192 given=8388608 role=net\nnonsense\n",
        );
        let b = write(
            folder.path(),
            "b",
            "milieu stacks 1\nthread ab12+10 runs=3 threads=9 peak=4096 given=8388608\n",
        );
        let joined = load(&[a.clone(), b.clone()]).expect("they are profiles");
        assert_eq!(joined.entries.len(), 1);
        let entry = joined.entries[0];
        assert_eq!((entry.runs, entry.threads, entry.peak_bytes), (3, 9, 8192));
        assert_eq!(joined.modules[0].1, Path::new("/usr/bin/a b"));
        assert_eq!(joined.complaints.len(), 1);
        assert!(
            joined.complaints[0].contains("line 4"),
            "{:?}",
            joined.complaints
        );
        let again = write(folder.path(), "c", &String::from_utf8_lossy(&joined.text));
        assert_eq!(load(&[again]).expect("it is one").entries, joined.entries);

        let before = load(&[a]).expect("it is one");
        let since = joined.since(&before);
        assert_eq!((since[0].runs, since[0].threads), (2, 7));
        assert_eq!(joined.since(&joined), []);
        let none = folder.path().join("none");
        let error = load(&[none]).map(|_| ()).expect_err("it is not there");
        assert!(error.to_string().contains("cannot be read"));
    }

    #[test]
    fn a_verdict_is_about_what_was_given() {
        let key = Key::parse(b"ab12+10").expect("a key");
        let policy = Policy::default();
        let of = |peak_bytes, given_bytes, overflow_bytes| {
            let entry = Entry {
                peak_bytes,
                given_bytes,
                overflow_bytes,
                ..Entry::new(key)
            };
            verdict(&entry, Zones::default(), &policy)
        };
        assert_eq!(of(8192, 8 << 20, 0), Verdict::Wastes);
        assert_eq!(of(8192, 64 << 10, 0), Verdict::Fine);
        assert_eq!(of(60 << 10, 64 << 10, 0), Verdict::NearOverflow);
        assert_eq!(of(8192, 8 << 20, 65536), Verdict::NearOverflow);
    }

    #[test]
    fn what_has_no_file_is_its_key() {
        let key = Key::parse(b"ab12+10/ab12+20").expect("a key");
        let start = Symbols::default().start(&key);
        assert_eq!((start.name.as_str(), start.position), ("ab12+10", None));
    }

    #[test]
    fn what_languages_have_is_known_by_its_name() {
        for own in [
            // std::thread::spawn, as Rust writes names, and core::ops::function::FnOnce::call_once
            "_ZN3std6thread5spawn17h0123456789abcdefE",
            "_ZN4core3ops8function6FnOnce9call_once17h0123456789abcdefE.llvm.7",
            // std::thread::thread(std::thread&&)
            "_ZNSt6threadC1EOS_",
            // void std::__invoke_impl<void, void (*)()>(std::__invoke_other, void (*&&)())
            "_ZSt13__invoke_implIvPFvvEJEET_St14__invoke_otherOT0_DpOT1_",
            "_start",
        ] {
            assert!(is_of_a_language(own), "{own}");
        }
        for other in [
            "main",
            "stdout_begins",
            // a::std::work
            "_ZN1a3std4work17h0123456789abcdefE",
            // core::work() of C++
            "_ZN4core4workEv",
            // void hires<std::thread>(std::thread)
            "_Z5hiresISt6threadEvT_",
        ] {
            assert!(!is_of_a_language(other), "{other}");
        }
    }

    #[test]
    fn only_symbols_that_a_compiler_has_made_are_read() {
        for (symbol, name) in [
            ("f", "f"),
            ("i", "i"),
            ("Pv", "Pv"),
            ("_Reset", "_Reset"),
            ("_Z", "_Z"),
            ("_Z4workv", "work()"),
            ("__Z4workv", "work()"),
            ("_ZN1a4work17h0123456789abcdefE", "a::work"),
            ("_RNvC1a4work", "a::work"),
        ] {
            assert_eq!(readable(symbol), name);
        }
    }

    /// What a compiler makes of three functions, of which the second is not exported; and
    /// where that begins, if there are symbols.
    fn compiled(folder: &Path, name: &str, flags: &[&str]) -> Option<(PathBuf, Option<u64>)> {
        let source = write(
            folder,
            "functions.c",
            "int exported(void) { return 1; }\n\
             static __attribute__((used, noinline)) int hidden(int a) { return a + 2; }\n\
             int other(int a) { return hidden(a); }\n",
        );
        let library = folder.join(name);
        let mut compiler = std::process::Command::new("gcc");
        compiler.args(["-shared", "-fPIC", "-O1", "-fno-toplevel-reorder"]);
        compiler.args(["-Wl,--build-id", "-o"]).arg(&library);
        let ran = compiler.arg(&source).args(flags).status().ok()?;
        assert!(ran.success(), "gcc does not compile {}", source.display());
        let bytes = fs::read(&library).expect("a library");
        let file = object::File::parse(&*bytes).expect("a library");
        let hidden = file.symbols().find(|it| it.name() == Ok("hidden"));
        let offset = hidden.map(|it| it.address());
        Some((library, offset))
    }

    /// The name of what begins there, and of something within the function before it.
    fn named(library: &Path, offset: u64) -> [String; 2] {
        let bytes = fs::read(library).expect("a library");
        let file = object::File::parse(&*bytes).expect("a library");
        let id = file.build_id().expect("it is read").expect("there is one");
        let build: String = id.iter().map(|it| format!("{it:02x}")).collect();
        let shown = library.display();
        let exported = file.dynamic_symbols();
        let exported = exported.map(|it| (it.name(), it.address()));
        let exported = exported.into_iter().find(|it| it.0 == Ok("exported"));
        let (_, exported) = exported.expect("it is exported");
        let lines = [offset, exported]
            .map(|at| format!("thread {build}+{at:x} runs=1 threads=1 peak=4096 given=8388608\n"));
        let text = format!(
            "milieu stacks 1\nmodule {build} {shown}\n{}",
            lines.concat()
        );
        let path = library.with_extension("stacks");
        fs::write(&path, text).expect("it is written");
        let profile = load(&[path]).expect("it is a profile");
        let mut symbols = Symbols::of(&profile);
        let start = |at: u64| profile.entries.iter().find(|it| it.key.start.offset == at);
        [offset, exported].map(|at| {
            let entry = start(at).expect("it was written");
            symbols.start(&entry.key).name
        })
    }

    /// A file without symbols names what it exports, and nothing that comes after it.
    #[test]
    fn a_function_that_has_no_name_has_none_of_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let Some((named_all, offset)) = compiled(folder.path(), "all.so", &[]) else {
            return eprintln!("not tested: gcc is not installed");
        };
        let offset = offset.expect("it has symbols");
        assert_eq!(named(&named_all, offset), ["hidden", "exported"]);
        let stripped = compiled(folder.path(), "stripped.so", &["-s"]);
        let (stripped, none) = stripped.expect("gcc is installed");
        assert_eq!(none, None);
        let unnamed = format!("stripped.so+0x{offset:x}");
        assert_eq!(named(&stripped, offset), [&unnamed, "exported"]);
    }
}
