//! The last changes of a file: what, when and by whom.
//!
//! ```ini
//! [/7]
//! time = 1763769321.250000000
//! user = anna
//! program = milieu
//! process = 4711
//! host = station
//! before = 0x8c1f…
//! after = 0x11d0…
//! 0/name = /sw/pi/anna/language
//! 0/old = en
//! 0/new = de
//! id = 7
//! ```
//!
//! The history stands beside the file, as `.APP.ini.history`, and is bounded.
//! A record is appended while the file is locked and before the file is
//! replaced, so that a process that is killed in between leaves one record too
//! many and none too few: it is told by `before`, which then is still the
//! fingerprint of the file. A record that was written by half lacks its last
//! line and does not count. The history is not synchronized with the disk: a
//! loss of power may cost its last records, never a key.

use std::fmt::{self, Write};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use milieu_keys::Name;

use crate::disk::Disk;
use crate::error::StoreError;
use crate::ini;
use crate::read;
use crate::replace::{self, beside};

/// The size from which a history loses its older half.
const BYTES_MAX: u64 = 256 * 1024;

/// How much of a history is looked at for what is new.
const TAIL_BYTES: u64 = 16 * 1024;

/// Who changes keys, and when. Handed in, as the store reads no clock itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The user's name.
    pub user: String,
    /// The program.
    pub program: String,
    /// The number of its process.
    pub process: u32,
    /// The machine.
    pub host: String,
}

impl Author {
    /// This process, as the system knows it.
    #[must_use]
    pub fn of_this_process() -> Author {
        let program = std::env::current_exe().ok();
        let program = program.as_deref().and_then(Path::file_name);
        let host = rustix::system::uname();
        Author {
            user: user(rustix::process::getuid().as_raw()),
            program: program.map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
            process: std::process::id(),
            host: host.nodename().to_string_lossy().into_owned(),
        }
    }
}

/// The name of a user in the machine's own list, or the number.
fn user(id: u32) -> String {
    let list = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = list.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == id.to_string()).then(|| name.to_owned())
    });
    named.unwrap_or_else(|| id.to_string())
}

/// A commit in the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its number in the file's history, counted from 1.
    pub id: u64,
    /// When, as the author's clock had it.
    pub time: SystemTime,
    /// Who.
    pub author: Author,
    /// The record that it takes back.
    pub undoes: Option<u64>,
    /// What.
    pub changes: Vec<Changed>,
    /// Fingerprints of the file's text.
    pub(crate) before: u64,
    pub(crate) after: u64,
}

/// A key in the history.
///
/// `{:?}` does not show the values of a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Changed {
    /// The key.
    pub name: Name,
    /// Its value before; nothing if there was none.
    pub old: Option<String>,
    /// Its value since; nothing if it was removed.
    pub new: Option<String>,
    /// Whether the values are secret, and so left out; but for what was noted
    /// before anybody said so.
    pub secret: bool,
}

impl fmt::Debug for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.noted();
        f.debug_struct("Changed")
            .field("name", &shown.name)
            .field("old", &shown.old)
            .field("new", &shown.new)
            .field("secret", &shown.secret)
            .finish()
    }
}

impl Changed {
    /// As it may be written down: without the values of a secret.
    pub(crate) fn noted(&self) -> Changed {
        let mut noted = self.clone();
        if noted.secret {
            (noted.old, noted.new) = (None, None);
        }
        noted
    }
}

/// A number that tells texts apart, the same on every machine.
pub(crate) fn fingerprint(text: &str) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    const WORD: usize = size_of::<u64>();
    let mix = |hash: u64, word: u64| {
        let mixed = (hash ^ word).wrapping_mul(FACTOR);
        mixed ^ mixed >> 29
    };
    // Four at a time, as each has to wait for its own only.
    let mut lanes = [1, 2, 3, 4];
    let mut rest = text.as_bytes();
    while let Some((block, after)) = rest.split_first_chunk::<{ 4 * WORD }>() {
        for (lane, word) in lanes.iter_mut().zip(block.chunks_exact(WORD)) {
            *lane = mix(*lane, u64::from_le_bytes(word.try_into().expect("a word")));
        }
        rest = after;
    }
    let mut last = [0; 4 * WORD];
    last[..rest.len()].copy_from_slice(rest);
    let words = last.chunks_exact(WORD);
    let words = words.map(|word| u64::from_le_bytes(word.try_into().expect("a word")));
    let hash = lanes.into_iter().fold(text.len() as u64, mix);
    words.fold(hash, mix)
}

/// Reads the history of a file, the oldest record first. `text` is what the
/// file holds: a last record that never came true is left out.
pub(crate) fn read(path: &Path, text: &str) -> Result<Vec<Record>, StoreError> {
    let Some(content) = read::text(&beside(path, ".history"))? else {
        return Ok(Vec::new());
    };
    let mut records = parse(&content.text);
    let now = fingerprint(text);
    while let Some(last) = records.last() {
        if last.before != now || last.after == now {
            break;
        }
        records.pop();
    }
    Ok(records)
}

/// The number of the last record that a file had when this was the fingerprint
/// of its text. Where nobody has noted that lately, that of the last record.
pub(crate) fn noted(path: &Path, seen: u64) -> u64 {
    let records = beside_file(path)
        .and_then(|path| end(&path))
        .unwrap_or_default();
    let record = records.iter().rev().find(|record| record.after == seen);
    record.or(records.last()).map_or(0, |record| record.id)
}

/// The records after this one, as far as they can be read. A record that never
/// came true is among them: whoever asks knows what did.
pub(crate) fn since(path: &Path, id: u64) -> Vec<Record> {
    let Ok(path) = beside_file(path) else {
        return Vec::new();
    };
    // Most of it is old.
    let mut records = end(&path).unwrap_or_default();
    if records.first().is_none_or(|first| first.id > id + 1) {
        let all = read::text(&path).ok().flatten();
        records = all.map_or_else(Vec::new, |all| parse(&all.text));
    }
    // A history that was removed begins again.
    if records.last().is_some_and(|last| last.id >= id) {
        records.retain(|record| record.id > id);
    }
    records
}

/// Where the history of a file is, which may be a link.
fn beside_file(path: &Path) -> io::Result<PathBuf> {
    let path = replace::follow(path).map_err(io::Error::other)?;
    Ok(beside(&path, ".history"))
}

/// The records at the end of a history.
fn end(path: &Path) -> io::Result<Vec<Record>> {
    let mut file = File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(TAIL_BYTES);
    file.seek(io::SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // It may begin in the middle of one.
    let first = if start > 0 { text.find("\n[/") } else { None };
    Ok(parse(&text[first.unwrap_or(0)..]))
}

/// Who gave a key this value, or took it away.
pub(crate) fn author_of(records: &[Record], name: &Name, value: Option<&str>) -> Option<Author> {
    records.iter().rev().find_map(|record| {
        let mut changes = record.changes.iter();
        let change = changes.find(|change| change.name == *name)?;
        let known = change.secret || change.new.as_deref() == value;
        Some(known.then(|| record.author.clone()))
    })?
}

/// What can be read of a history; what cannot does not count.
fn parse(text: &str) -> Vec<Record> {
    let (document, _) = ini::Document::parse(text);
    let ids = document.keys().filter_map(|entry| {
        let (id, field) = entry.name.as_str().strip_prefix('/')?.split_once('/')?;
        (field == "id" && entry.value == id).then(|| id.parse().ok())?
    });
    let ids: Vec<u64> = ids.collect();
    ids.into_iter()
        .filter_map(|id| record(&document, id))
        .collect()
}

fn record(document: &ini::Document, id: u64) -> Option<Record> {
    let field = |field: &str| document.get(&format!("/{id}/{field}")).map(String::from);
    let number = |name: &str| field(name)?.parse().ok();
    let text = |name: &str| field(name).unwrap_or_default();
    let print = |name: &str| u64::from_str_radix(field(name)?.strip_prefix("0x")?, 16).ok();
    let changes = (0..number("changes")?).map(|index| {
        Some(Changed {
            name: Name::parse(&field(&format!("{index}/name"))?).ok()?,
            old: field(&format!("{index}/old")),
            new: field(&format!("{index}/new")),
            secret: field(&format!("{index}/secret")).is_some(),
        })
    });
    Some(Record {
        id,
        time: SystemTime::UNIX_EPOCH.checked_add(seconds(&text("time"))?)?,
        author: Author {
            user: text("user"),
            program: text("program"),
            process: number("process")?.try_into().ok()?,
            host: text("host"),
        },
        undoes: number("undoes"),
        changes: changes.collect::<Option<_>>()?,
        before: print("before")?,
        after: print("after")?,
    })
}

/// Reads `12.5`, exactly.
fn seconds(text: &str) -> Option<Duration> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let nanos = format!("{part:0<9}");
    let nanos = nanos.get(..9)?.parse().ok()?;
    Some(Duration::new(whole.parse().ok()?, nanos))
}

impl Record {
    /// The value that the commit gave to a key.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let mut changes = self.changes.iter();
        let change = changes.find(|change| change.name.as_str() == name)?;
        change.new.as_deref()
    }

    fn write(&self, out: &mut String) {
        let time = self.time.duration_since(SystemTime::UNIX_EPOCH);
        let time = time.unwrap_or_default();
        let (seconds, nanos) = (time.as_secs(), time.subsec_nanos());
        let author = &self.author;
        // The empty line ends what a writer that was killed left by half.
        let _ = write!(
            out,
            "\n[/{}]\ntime = {seconds}.{nanos:09}\nuser = {}\nprogram = {}\nprocess = {}\nhost = {}\n",
            self.id,
            ini::encode_value(&author.user),
            ini::encode_value(&author.program),
            author.process,
            ini::encode_value(&author.host),
        );
        if let Some(id) = self.undoes {
            let _ = writeln!(out, "undoes = {id}");
        }
        let (before, after) = (self.before, self.after);
        let _ = writeln!(out, "before = {before:#x}\nafter = {after:#x}");
        let _ = writeln!(out, "changes = {}", self.changes.len());
        for (index, change) in self.changes.iter().enumerate() {
            let name = ini::encode_value(change.name.as_str());
            let _ = writeln!(out, "{index}/name = {name}");
            if change.secret {
                let _ = writeln!(out, "{index}/secret = true");
            }
            for (side, value) in [("old", &change.old), ("new", &change.new)] {
                if let Some(value) = value.as_deref().filter(|_| !change.secret) {
                    let _ = writeln!(out, "{index}/{side} = {}", ini::encode_value(value));
                }
            }
        }
        let _ = writeln!(out, "id = {}", self.id);
    }
}

/// Appends a record, with the next number, to the history of a file that is
/// locked. An overlong history loses its older half.
pub(crate) fn append(
    disk: &dyn Disk,
    path: &Path,
    record: &mut Record,
    mode: u32,
) -> io::Result<()> {
    let path = beside(path, ".history");
    let (last, length) = last(&path)?;
    record.id = last + 1;
    let mut text = String::new();
    if length < BYTES_MAX {
        record.write(&mut text);
        return disk.append(&path, text.as_bytes(), mode);
    }
    let records = parse(&std::fs::read_to_string(&path)?);
    let kept = records[records.len() / 2..].iter().chain([&*record]);
    kept.for_each(|record| record.write(&mut text));
    let temporary = beside(&path, ".new");
    let _ = disk.remove(&temporary);
    let mut file = disk.create(&temporary, mode)?;
    disk.write(&mut file, text.as_bytes())?;
    disk.rename(&temporary, &path)
}

/// The number of the last record, and the length of the history in bytes.
fn last(path: &Path) -> io::Result<(u64, u64)> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((0, 0)),
        file => file?,
    };
    let length = file.metadata()?.len();
    // Its last line says it, unless a writer was killed.
    file.seek(io::SeekFrom::Start(length.saturating_sub(32)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    let end = String::from_utf8_lossy(&end);
    let line = end
        .strip_suffix('\n')
        .and_then(|end| end.rsplit('\n').next());
    if let Some(id) = line.and_then(|line| line.strip_prefix("id = ")?.parse().ok()) {
        return Ok((id, length));
    }
    // The number of a record that was written by half is not given again.
    let text = std::fs::read_to_string(path)?;
    let headers = text.lines().filter_map(|line| line.strip_prefix("[/"));
    let ids = headers.filter_map(|header| header.strip_suffix(']')?.parse().ok());
    Ok((ids.max().unwrap_or(0), length))
}
