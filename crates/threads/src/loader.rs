//! Which C library a program is of, by the loader that it names.

use core::ffi::CStr;
use core::fmt::Write;

use crate::kernel::{File, Text};

/// What the beginning of a program tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Image<'h> {
    /// This loader loads it.
    Loaded(&'h [u8]),
    /// This program reads it.
    Script(&'h [u8]),
    /// It is static, or nothing can be told.
    Other,
}

/// The beginning of a program that is looked at. What a linker puts first is there.
const HEAD: usize = 2048;

/// How many scripts in a row the kernel follows.
const SCRIPTS: usize = 5;

/// Whether a loader is glibc's: `ld-linux-x86-64.so.2`, `ld-linux.so.2`, `ld.so.1`,
/// `ld64.so.2`. musl's is `ld-musl-x86_64.so.1`, Android's `linker64`, uClibc's
/// `ld-uClibc.so.0`.
#[must_use]
pub fn is_of_glibc(loader: &[u8]) -> bool {
    let name = loader.rsplit(|it| *it == b'/').next().unwrap_or(loader);
    let names: [&[u8]; 3] = [b"ld-linux", b"ld.so", b"ld64.so"];
    names.iter().any(|it| name.starts_with(it))
}

/// Whether a program, or what reads it, is loaded by another C library's loader. What
/// cannot be read is not.
#[must_use]
pub fn is_foreign(path: &CStr) -> bool {
    let mut reader = Text::<256>::new();
    for at in 0..SCRIPTS {
        let path = if at == 0 { path } else { reader.as_c_str() };
        let mut head = [0; HEAD];
        let opened = File::open(path, libc::O_RDONLY | libc::O_NOCTTY | libc::O_NONBLOCK);
        let Ok(head) = opened.and_then(|it| it.read(&mut head)) else {
            return false;
        };
        match image(head) {
            Image::Loaded(loader) => return !is_of_glibc(loader),
            Image::Script(by) => {
                let mut text = Text::new();
                let by = core::str::from_utf8(by).unwrap_or_default();
                if text.write_str(by).is_err() {
                    return false;
                }
                reader = text;
            }
            Image::Other => return false,
        }
    }
    false
}

/// What the beginning of a program tells.
#[must_use]
pub fn image(head: &[u8]) -> Image<'_> {
    if let Some(line) = head.strip_prefix(b"#!") {
        let is_blank = |it: &u8| b" \t".contains(it);
        let start = line.iter().position(|it| !is_blank(it));
        let line = line.get(start.unwrap_or(0)..).unwrap_or_default();
        let end = line.iter().position(|it| is_blank(it) || *it == b'\n');
        return line
            .get(..end.unwrap_or(0))
            .map_or(Image::Other, Image::Script);
    }
    loader(head).map_or(Image::Other, Image::Loaded)
}

/// The loader of a program in the Executable and Linkable Format of this machine's order
/// of bytes.
fn loader(head: &[u8]) -> Option<&[u8]> {
    const INTERPRETER: usize = 3;
    let is_wide = match head.strip_prefix(b"\x7fELF")?.first()? {
        1 => false,
        2 => true,
        _ => return None,
    };
    let short = |at: usize| {
        let bytes = head.get(at..at.checked_add(2)?)?;
        Some(usize::from(u16::from_ne_bytes(bytes.try_into().ok()?)))
    };
    let word = |at: usize| {
        let bytes = head.get(at..at.checked_add(4)?)?;
        usize::try_from(u32::from_ne_bytes(bytes.try_into().ok()?)).ok()
    };
    let address = |at: usize| {
        if !is_wide {
            return word(at);
        }
        let bytes = head.get(at..at.checked_add(8)?)?;
        usize::try_from(u64::from_ne_bytes(bytes.try_into().ok()?)).ok()
    };
    let (table, size, count) = match is_wide {
        true => (address(32)?, short(54)?, short(56)?),
        false => (address(28)?, short(42)?, short(44)?),
    };
    for index in 0..count {
        let at = table.checked_add(size.checked_mul(index)?)?;
        if word(at)? != INTERPRETER {
            continue;
        }
        let (offset, bytes) = if is_wide { (8, 32) } else { (4, 16) };
        let (offset, bytes) = (address(at + offset)?, address(at + bytes)?);
        let text = head.get(offset..offset.checked_add(bytes)?)?;
        return text.split(|it| *it == 0).next();
    }
    None
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// A program that names a loader, in 32 or 64 bits.
    fn program(is_wide: bool, named: &[u8]) -> Vec<u8> {
        let (head, part) = if is_wide { (64, 56) } else { (52, 32) };
        let mut bytes = Vec::from(*b"\x7fELF");
        bytes.push(if is_wide { 2 } else { 1 });
        bytes.resize(head + 2 * part, 0);
        let mut put = |at: usize, number: u32| {
            bytes[at..at + 4].copy_from_slice(&number.to_ne_bytes());
        };
        let (offset, size) = (head + 2 * part, named.len() + 1);
        let at = head + part;
        put(at, 3);
        if is_wide {
            put(32, head as u32);
            put(at + 8, offset as u32);
            put(at + 32, size as u32);
        } else {
            put(28, head as u32);
            put(at + 4, offset as u32);
            put(at + 16, size as u32);
        }
        let (size_at, count_at) = if is_wide { (54, 56) } else { (42, 44) };
        bytes[size_at..size_at + 2].copy_from_slice(&(part as u16).to_ne_bytes());
        bytes[count_at..count_at + 2].copy_from_slice(&2u16.to_ne_bytes());
        bytes.extend_from_slice(named);
        bytes.push(0);
        bytes
    }

    #[test]
    fn a_program_names_its_loader() {
        for is_wide in [true, false] {
            let whole = program(is_wide, b"/lib/ld-musl-x86_64.so.1");
            assert_eq!(image(&whole), Image::Loaded(b"/lib/ld-musl-x86_64.so.1"));
            // Nothing is read that is not there.
            for end in 0..whole.len() {
                assert_eq!(image(&whole[..end]), Image::Other);
            }
            for at in 0..whole.len() {
                for byte in [0, 1, 0x7f, 0xff] {
                    let mut other = whole.clone();
                    other[at] = byte;
                    let _ = image(&other);
                }
            }
        }
    }

    #[test]
    fn a_script_names_its_reader() {
        assert_eq!(image(b"#! /bin/sh -e\n:"), Image::Script(b"/bin/sh"));
        assert_eq!(image(b"#!/bin/sh\n"), Image::Script(b"/bin/sh"));
        assert_eq!(image(b"#!"), Image::Script(b""));
        assert_eq!(image(b"text"), Image::Other);
        assert_eq!(image(b""), Image::Other);
    }

    #[test]
    fn loaders_are_known_by_their_names() {
        let own: [&[u8]; 3] = [
            b"/lib64/ld-linux-x86-64.so.2",
            b"/lib/ld.so.1",
            b"ld64.so.2",
        ];
        assert!(own.into_iter().all(is_of_glibc));
        let others: [&[u8]; 4] = [
            b"/lib/ld-musl-x86_64.so.1",
            b"/system/bin/linker64",
            b"/lib/ld-uClibc.so.0",
            b"",
        ];
        assert!(!others.into_iter().any(is_of_glibc));
    }

    #[cfg_attr(miri, ignore = "reads files by the kernel")]
    #[test]
    fn what_runs_here_is_not_foreign() {
        assert!(!is_foreign(c"/proc/self/exe"));
        assert!(!is_foreign(c"/nowhere"));
        assert!(!is_foreign(c"/"));
    }
}
