//! The table as other processes see it.

use std::ffi::CString;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::attributes::Attributes;
use crate::table::Scheduling;

fn entry(identity: u64, tid: u32) -> Entry {
    Entry::of(identity, tid, Attributes::default())
}

fn path_of(table: &Table) -> CString {
    let descriptor = table.descriptor().expect("a descriptor");
    CString::new(std::format!("/proc/self/fd/{descriptor}")).expect("no zero")
}

/// A file as others may make one, with these bytes.
fn file_of(bytes: &[u8], sealed: bool) -> (File, CString) {
    let file = sealable(bytes.len()).expect("a file");
    file.write(bytes).expect("written");
    if sealed {
        seal(&file).expect("sealed");
    }
    let path = CString::new(std::format!("/proc/self/fd/{}", file.raw())).expect("no zero");
    (file, path)
}

fn error_of(bytes: &[u8], sealed: bool) -> AttachError {
    let (_file, path) = file_of(bytes, sealed);
    View::open(&path).err().expect("no table")
}

#[test]
fn others_see_what_is_written() {
    let table = Table::new(100).expect("memory");
    assert_eq!(table.lines().capacity(), 128);
    let view = View::open(&path_of(&table)).expect("a table");
    assert_eq!(view.iter().count(), 0);
    let whole = Entry {
        own: Scheduling {
            nice: 5,
            ..Scheduling::default()
        },
        ..entry(0xabc, 42)
    };
    let slot = table.lines().insert(whole).expect("a line");
    assert_eq!(view.iter().collect::<Vec<_>>(), [(slot, whole)]);
    assert_eq!(view.by_thread_id(42), Some((slot, whole)));
    assert_eq!(view.entry(0xabc), Ok(whole));
    assert_eq!(view.process(), std::process::id());
    // A process that is gone leaves its last words.
    drop(table);
    assert_eq!(view.entry(0xabc), Ok(whole));
}

#[test]
fn others_cannot_write_or_truncate() {
    let table = Table::new(16).expect("memory");
    let file = File::open(&path_of(&table), libc::O_RDWR).expect("opened");
    let refused = Err(Errno(libc::EPERM));
    assert_eq!(file.write(b"nonsense"), refused);
    let arguments = [file.raw() as usize, 0, 0, 0, 0, 0];
    // SAFETY: what it would harm is the table of this test.
    let truncated = unsafe { call(libc::SYS_ftruncate, arguments) };
    assert_eq!(truncated.map(|_| ()), refused);
    assert_eq!(Mapping::new(Some(&file), 16, None).map(|_| ()), refused);
}

#[test]
fn what_is_no_table_is_refused() {
    let unreachable = View::open(c"/nowhere").err();
    let missing = AttachError::Unreachable(Errno(libc::ENOENT));
    assert_eq!(unreachable, Some(missing));
    assert_eq!(View::open(c"/dev/null").err(), Some(AttachError::Unsealed));
    assert_eq!(View::of_process(u32::MAX).err(), Some(missing));

    // A table's bytes, then ever less of them.
    let table = Table::new(16).expect("memory");
    let mut whole = vec![0; bytes_of(16)];
    let file = File::open(&path_of(&table), libc::O_RDONLY).expect("opened");
    assert_eq!(file.read(&mut whole).map(<[u8]>::len), Ok(bytes_of(16)));
    assert_eq!(error_of(&whole, false), AttachError::Unsealed);
    let (_file, path) = file_of(&whole, true);
    assert!(View::open(&path).is_ok());
    for length in [0, 1, 63, 64, 65, whole.len() - 1] {
        assert_eq!(error_of(&whole[..length], true), AttachError::Damaged);
    }
    for (at, value, expected) in [
        (0, 0, AttachError::Damaged),
        (8, 9, AttachError::Version(9)),
        (12, 63, AttachError::Damaged),
        (16, 15, AttachError::Damaged),
        (16, 32, AttachError::Damaged),
        (18, 255, AttachError::Damaged),
    ] {
        let mut changed = whole.clone();
        changed[at] = value;
        let error = error_of(&changed, true);
        assert_eq!(error, expected, "{at} {value}");
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn lines_of_threads_that_ended_unseen_are_swept() {
    let table = Table::new(16).expect("memory");
    let tid = kernel::thread_id();
    let lines = table.lines();
    lines.insert(entry(1, tid)).expect("a line");
    lines.insert(entry(2, u32::MAX >> 1)).expect("a line");
    // The kernel has given the number of the first to a third.
    let later = Entry {
        created_us: 7,
        ..entry(3, tid)
    };
    lines.insert(later).expect("a line");
    table.sweep();
    let left: Vec<u64> = lines.iter().map(|(_, it)| it.identity).collect();
    assert_eq!(left, [3]);
}
