//! The forms that texts can be required to have: paths, ports, addresses.

// Without the feature there is nobody to require them.
#![cfg_attr(not(feature = "checks"), allow(dead_code))]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a path is to name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A block or character device.
    Device,
    /// Something else: a socket, a pipe.
    Other,
}

impl FileKind {
    pub(super) fn describe(self) -> &'static str {
        match self {
            FileKind::File => "a file",
            FileKind::Directory => "a directory",
            FileKind::Device => "a device",
            FileKind::Other => "neither file, directory nor device",
        }
    }
}

/// The view of the file system that `check/path=file`, `=directory` and
/// `=device` need. This crate does no input or output, so whoever does hands it
/// in.
pub trait FileSystem {
    /// What stands at that path, or nothing. The path may begin with `~`, the
    /// home directory of the user.
    fn kind(&self, path: &str) -> Option<FileKind>;
}

/// The versions of the Internet protocol that an address may have.
#[derive(Clone, Copy, Debug)]
pub(super) enum IpVersion {
    Any,
    V4,
    V6,
}

pub(super) fn path(text: &str) -> Result<(), String> {
    if text.contains('\0') {
        return Err("contains a NUL, which no path can; remove it".to_owned());
    }
    if text.starts_with('/') || text == "~" || text.starts_with("~/") {
        return Ok(());
    }
    Err("is not an absolute path; begin it with `/` or `~/`".to_owned())
}

pub(super) fn port(text: &str) -> Result<(), String> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse::<u16>() {
        Ok(1..) if digits => Ok(()),
        _ => Err("is not a port; give a number from 1 to 65535".to_owned()),
    }
}

pub(super) fn ip_address(text: &str, version: IpVersion) -> Result<(), String> {
    let (valid, what) = match version {
        IpVersion::Any => (
            text.parse::<IpAddr>().is_ok(),
            "an IP address; give one such as `127.0.0.1` or `::1`",
        ),
        IpVersion::V4 => (
            text.parse::<Ipv4Addr>().is_ok(),
            "an IPv4 address; give one such as `127.0.0.1`",
        ),
        IpVersion::V6 => (
            text.parse::<Ipv6Addr>().is_ok(),
            "an IPv6 address; give one such as `::1`",
        ),
    };
    valid.then_some(()).ok_or_else(|| format!("is not {what}"))
}

/// A mail address of the usual form; quoted local parts and address literals,
/// which RFC 5321 also knows, are refused.
pub(super) fn email(text: &str) -> Result<(), String> {
    let valid = text.rsplit_once('@').is_some_and(|(local, domain)| {
        let local_character = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c);
        let local_part = |part: &str| !part.is_empty() && part.chars().all(local_character);
        let label = |part: &str| {
            !part.is_empty()
                && part.len() <= 63
                && !part.starts_with('-')
                && !part.ends_with('-')
                && part.chars().all(|c| c.is_alphanumeric() || c == '-')
        };
        local.len() <= 64
            && local.split('.').all(local_part)
            && domain.len() <= 253
            && domain.split('.').all(label)
    });
    valid
        .then_some(())
        .ok_or_else(|| "is not a mail address; give one such as `anna@example.org`".to_owned())
}
