//! The lines of a profile.

use core::fmt::{self, Write};

use super::{Entry, Name, ProfileError};
use crate::stack::key::{BuildId, Key, Place};
use crate::stack::text::Text;

/// The first line: whose file this is, and the version of its language.
pub(super) const HEADER: &[u8] = b"milieu stacks 1";
const HEADER_OF_ANY: &[u8] = b"milieu stacks ";

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// What was seen of a thread.
    Thread(Entry),
    /// Where a module lies.
    Module(Module<'a>),
    /// Where threads were created.
    Site(Site<'a>),
    /// Something for people.
    Remark(&'a [u8]),
}

/// Where threads of a key were created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site<'a> {
    /// Their key.
    pub key: Key,
    /// All of it.
    pub(super) line: &'a [u8],
}

impl<'a> Site<'a> {
    /// To where the calls return that have led there, the innermost first.
    pub fn calls(&self) -> impl Iterator<Item = Place> + use<'a> {
        words(self.line).skip(2).filter_map(Place::parse)
    }
}

/// Where a program or a library lies, for symbolizers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Module<'a> {
    /// What keys call it.
    pub build: BuildId,
    /// Its path, with `%` and two digits for spaces, control characters and `%`.
    pub encoded_path: &'a [u8],
}

impl Module<'_> {
    /// For memory that waits for modules.
    pub const EMPTY: Self = Self {
        build: BuildId::NONE,
        encoded_path: b"",
    };

    /// The bytes of the path.
    pub fn path(&self) -> impl Iterator<Item = u8> {
        decoded(self.encoded_path)
    }
}

/// A line that cannot be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineError<'a> {
    /// Its number; the first is 1.
    pub number: usize,
    /// The line.
    pub line: &'a [u8],
    /// What is wrong with it.
    pub problem: Problem<'a>,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem<'a> {
    /// It begins with another word than `thread`, `module` or `site`.
    Kind(&'a [u8]),
    /// This is no key.
    Key(&'a [u8]),
    /// This is no build id.
    Build(&'a [u8]),
    /// This is no path, or there is none.
    Path(&'a [u8]),
    /// This is no place, or there is none.
    Place(&'a [u8]),
    /// This is no number of the field before it.
    Number(&'a [u8]),
    /// This field is unknown, or there a second time.
    Field(&'a [u8]),
}

impl fmt::Display for LineError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.number)?;
        let (Problem::Kind(word)
        | Problem::Key(word)
        | Problem::Build(word)
        | Problem::Path(word)
        | Problem::Place(word)
        | Problem::Number(word)
        | Problem::Field(word)) = self.problem;
        write!(f, "`{}` is ", word.escape_ascii())?;
        f.write_str(match self.problem {
            Problem::Kind(_) => "none of `thread`, `module` and `site`; put `#` before a remark",
            Problem::Key(_) => "no key of a thread, as in `ab12+1f0` or `ab12+1f0/ab12+9c8`",
            Problem::Build(_) => "no build id, which has 2 to 40 hexadecimal digits",
            Problem::Path(_) => "no path; write a space as `%20` and `%` as `%25`",
            Problem::Place(_) => "no place of a call, as in `ab12+1f0`",
            Problem::Number(_) => "no number with its field, as in `peak=8192`",
            Problem::Field(_) => {
                "no field, or there twice; there are runs, threads, peak, given, set, \
                 overflow and role"
            }
        })?;
        f.write_str("; mend the line or remove it: it is kept, but does not count")
    }
}

impl core::error::Error for LineError<'_> {}

/// The lines of a profile, one after the other, without those that say nothing.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    rest: Option<&'a [u8]>,
    number: usize,
}

impl<'a> Lines<'a> {
    /// Of this text; nothing at all is a profile without threads.
    ///
    /// # Errors
    /// The first line that says something is not a profile's, or that of a later version.
    pub fn of(text: &'a [u8]) -> Result<Self, ProfileError> {
        let mut lines = Self {
            rest: Some(text),
            number: 0,
        };
        match lines.next_line() {
            None => Ok(lines),
            Some(HEADER) => Ok(lines),
            Some(line) if line.starts_with(HEADER_OF_ANY) => Err(ProfileError::Version),
            Some(_) => Err(ProfileError::Foreign),
        }
    }

    /// The next line that is not empty, without spaces around it, and without the zeros
    /// before it that a file has where nothing was written yet.
    fn next_line(&mut self) -> Option<&'a [u8]> {
        loop {
            let rest = self.rest?;
            let end = rest.iter().position(|&byte| byte == b'\n');
            let line = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
            self.rest = end.and_then(|end| rest.get(end + 1..));
            self.number += 1;
            let line = trimmed(line);
            if !line.is_empty() {
                return Some(line);
            }
        }
    }
}

fn trimmed(line: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| !byte.is_ascii_whitespace() && *byte != 0;
    let start = line.iter().position(is_text);
    let rest = start.and_then(|start| line.get(start..));
    rest.unwrap_or_default().trim_ascii_end()
}

impl<'a> Iterator for Lines<'a> {
    type Item = Result<Line<'a>, LineError<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.next_line()?;
        Some(parsed(line).map_err(|problem| LineError {
            number: self.number,
            line,
            problem,
        }))
    }
}

fn parsed(line: &[u8]) -> Result<Line<'_>, Problem<'_>> {
    // The header of another profile, where somebody has put files behind each other.
    if line.starts_with(b"#") || line == HEADER {
        return Ok(Line::Remark(line));
    }
    let mut words = words(line);
    let kind = words.next().unwrap_or_default();
    let name = words.next().unwrap_or_default();
    match kind {
        b"thread" => {
            let mut entry = Entry::new(Key::parse(name).ok_or(Problem::Key(name))?);
            let mut seen = 0;
            for word in words {
                field(&mut entry, &mut seen, word)?;
            }
            Ok(Line::Thread(entry))
        }
        b"module" => {
            let build = BuildId::parse(name).ok_or(Problem::Build(name))?;
            let path = words.next().unwrap_or_default();
            if let Some(more) = words.next() {
                return Err(Problem::Path(more));
            }
            if path.is_empty() || !is_encoded(path) {
                return Err(Problem::Path(path));
            }
            Ok(Line::Module(Module {
                build,
                encoded_path: path,
            }))
        }
        b"site" => {
            let key = Key::parse(name).ok_or(Problem::Key(name))?;
            let first = words.next().unwrap_or_default();
            let mut places = core::iter::once(first).chain(words);
            match places.find(|it| Place::parse(it).is_none()) {
                Some(wrong) => Err(Problem::Place(wrong)),
                None => Ok(Line::Site(Site { key, line })),
            }
        }
        _ => Err(Problem::Kind(kind)),
    }
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty())
}

/// Takes `name=value`, or a word that is true by being there.
fn field<'a>(entry: &mut Entry, seen: &mut u8, word: &'a [u8]) -> Result<(), Problem<'a>> {
    let equals = word.iter().position(|&byte| byte == b'=');
    let name = word.get(..equals.unwrap_or(word.len())).unwrap_or_default();
    let value = equals.and_then(|at| word.get(at + 1..));
    let number = || value.and_then(decimal).ok_or(Problem::Number(word));
    let bit = match (name, value) {
        (b"runs", _) => {
            entry.runs = number()?.try_into().map_err(|_| Problem::Number(word))?;
            0
        }
        (b"threads", _) => {
            entry.threads = number()?;
            1
        }
        (b"peak", _) => {
            entry.peak_bytes = number()?;
            2
        }
        (b"given", _) => {
            entry.given_bytes = number()?;
            3
        }
        (b"overflow", _) => {
            entry.overflow_bytes = number()?;
            4
        }
        (b"set", None) => {
            entry.is_set = true;
            5
        }
        (b"role", Some(role)) if is_encoded(role) => {
            let mut bytes = [0; Name::BYTES];
            let mut role = decoded(role);
            bytes
                .iter_mut()
                .zip(&mut role)
                .for_each(|(into, byte)| *into = byte);
            entry.role = Name::new(&bytes);
            // A role that is longer, or has a zero, is none that was written here.
            if role.next().is_some() || entry.role.as_bytes().len() != length(&bytes) {
                return Err(Problem::Field(word));
            }
            6
        }
        _ => return Err(Problem::Field(word)),
    };
    if *seen & 1 << bit != 0 {
        return Err(Problem::Field(word));
    }
    *seen |= 1 << bit;
    Ok(())
}

/// Without the zeros at the end.
fn length(bytes: &[u8]) -> usize {
    let last = bytes.iter().rposition(|&byte| byte != 0);
    last.map_or(0, |last| last + 1)
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    core::str::from_utf8(digits).ok()?.parse().ok()
}

/// What stands for itself in a line.
fn is_plain(byte: u8) -> bool {
    byte > b' ' && byte != b'%' && byte != 0x7f
}

/// Writes bytes so that they are one word of a line.
pub(super) fn encode(bytes: &[u8], put: &mut dyn FnMut(&[u8])) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for &byte in bytes {
        if is_plain(byte) {
            put(&[byte]);
        } else {
            let digit = |bits: u8| DIGITS.get(usize::from(bits)).copied().unwrap_or(b'0');
            put(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
}

/// Whether these are what [`encode`] writes; each text is written in one way.
fn is_encoded(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let [byte, after @ ..] = rest {
        rest = match (byte, after) {
            (b'%', [high, low, after @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) if !is_plain(high << 4 | low) => after,
                _ => return false,
            },
            (b'%', _) => return false,
            (byte, _) if is_plain(*byte) => after,
            _ => return false,
        };
    }
    true
}

fn decoded(bytes: &[u8]) -> impl Iterator<Item = u8> {
    let mut bytes = bytes.iter().copied();
    core::iter::from_fn(move || match bytes.next()? {
        b'%' => Some(digit(bytes.next()?)? << 4 | digit(bytes.next()?)?),
        byte => Some(byte),
    })
}

/// Lower-case digits, as they are written here.
fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

/// The line of a thread. The longest has less than 400 bytes.
pub(super) fn thread(entry: &Entry) -> Text<512> {
    let mut line = Text::of(format_args!(
        "thread {} runs={} threads={} peak={} given={}",
        entry.key, entry.runs, entry.threads, entry.peak_bytes, entry.given_bytes
    ));
    if entry.is_set {
        line.push(b" set");
    }
    if entry.overflow_bytes > 0 {
        // Texts in place are cut, they do not fail.
        let _ = write!(line, " overflow={}", entry.overflow_bytes);
    }
    if !entry.role.is_empty() {
        line.push(b" role=");
        encode(entry.role.as_bytes(), &mut |part| line.push(part));
    }
    line
}
