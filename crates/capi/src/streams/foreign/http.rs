//! Streams over HTTP.

use std::{io::ErrorKind, net::SocketAddr, time::Duration};

use milieu_adapters::http::{self, Access, Bounds, Page, Settings, Token};

use super::{Foreign, Kept, components_of, invalid, milieu_component};
use crate::{
    abi::{MILIEU_INVALID, MILIEU_SYSTEM, milieu_result, milieu_text},
    call::{Failure, call, null, out},
    handle,
    layout::check_abi,
    streams::{Streams, milieu_rights, milieu_streams, rights::rights},
    text::read_slice,
};

/// What whoever has a token may do, as `foreign.h` lays it out.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_http_access {
    /// What is shown.
    pub token: milieu_text,
    /// What is allowed.
    pub rights: milieu_rights,
    /// Whether what was counted may be seen.
    pub measures: bool,
}

/// Something for browsers, as `foreign.h` lays it out.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_http_page {
    /// Where it is.
    pub path: milieu_text,
    /// What it is.
    pub media_type: milieu_text,
    /// What it says.
    pub content: milieu_text,
}

/// How a server is told to serve, as `foreign.h` lays it out.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_http_options {
    /// `MILIEU_ABI`
    pub abi: u32,
    /// Whether others than this machine may reach it.
    pub for_others: bool,
    /// Where it listens.
    pub address: milieu_text,
    /// Who may use it.
    pub accesses: *const milieu_http_access,
    /// How many there are.
    pub access_count: usize,
    /// Names by which clients call this host.
    pub hosts: *const milieu_text,
    /// How many there are.
    pub host_count: usize,
    /// Origins of pages that are let in.
    pub origins: *const milieu_text,
    /// How many there are.
    pub origin_count: usize,
    /// What is shown to everybody.
    pub pages: *const milieu_http_page,
    /// How many there are.
    pub page_count: usize,
    /// How many connections there may be at a time.
    pub connections: u32,
    /// How many events may wait for one subscriber.
    pub queue_events: u32,
    /// How many bytes the head of a request may have.
    pub head_bytes: u32,
    /// How many lines the head of a request may have.
    pub head_lines: u32,
    /// How many bytes may be sent in one request.
    pub body_bytes: u32,
    /// How deep that may be.
    pub body_depth: u32,
    /// Under how many names clients may publish.
    pub names: u32,
    /// How many operators and names one flow may have.
    pub operators: u32,
    /// How long a client may take.
    pub patience_ns: i64,
}

/// Serves streams over HTTP.
///
/// # Safety
///
/// As `foreign.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_http_serve(
    streams: *const milieu_streams,
    options: *const milieu_http_options,
    server: *mut *mut milieu_component,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), options, server) = unsafe {
            (
                handle::shared(streams)?,
                options.as_ref().ok_or_else(|| null("options"))?,
                out(server, "server")?,
            )
        };
        check_abi(options.abi, "options")?;
        // SAFETY: as the caller vouches.
        let settings = unsafe { settings(options)? };
        let settings = settings.components(&components_of(&opened.milieu));
        let own = opened.milieu.own_modes();
        let settings = own.into_iter().fold(settings, Settings::mode);
        let serving = http::serve(opened.graph(), settings).map_err(|error| {
            let result = match error.kind() {
                ErrorKind::InvalidInput => MILIEU_INVALID,
                _ => MILIEU_SYSTEM,
            };
            Failure::new(result, error)
        })?;
        *server = Foreign::new(Kept::Serving(serving), opened);
        Ok(())
    })
}

/// # Safety
///
/// Everything that the options lead to can be read.
unsafe fn settings(options: &milieu_http_options) -> Result<Settings, Failure> {
    // SAFETY: as the caller vouches.
    let (address, given, hosts, origins) = unsafe {
        (
            options.address.read("address")?,
            read_slice(options.accesses, options.access_count, "accesses")?,
            texts(options.hosts, options.host_count, "hosts")?,
            texts(options.origins, options.origin_count, "origins")?,
        )
    };
    let Some((first, others)) = given.split_first() else {
        return Err(invalid(
            "nobody may use this server; say by `accesses` who may do what",
        ));
    };
    // SAFETY: as the caller vouches.
    let mut settings = Settings::new(unsafe { access(first)? });
    for other in others {
        // SAFETY: as the caller vouches.
        settings = settings.access(unsafe { access(other)? });
    }
    if !address.is_empty() {
        let address: SocketAddr = address.parse().map_err(|_| {
            invalid(format_args!(
                "`{address}` is no address with a port; write one such as 127.0.0.1:8080"
            ))
        })?;
        settings = match (options.for_others, address.ip().is_loopback()) {
            (true, _) => settings.address_for_others(address),
            (false, true) => settings.address(address),
            (false, false) => {
                return Err(invalid(format_args!(
                    "others could reach {address}; if that is meant, say so by `for_others`"
                )));
            }
        };
    }
    let settings = hosts.into_iter().fold(settings, Settings::host);
    let mut settings = origins.into_iter().fold(settings, Settings::origin);
    // SAFETY: as the caller vouches.
    unsafe {
        for given in read_slice(options.pages, options.page_count, "pages")? {
            settings = settings.page(page(given)?);
        }
    }
    Ok(settings.bounds(bounds(options)))
}

/// What is not given is as it is by default.
fn bounds(options: &milieu_http_options) -> Bounds {
    let mut bounds = Bounds::default();
    let set = |bound: &mut usize, given: u32| {
        if given > 0 {
            *bound = usize::try_from(given).unwrap_or(usize::MAX);
        }
    };
    set(&mut bounds.connections, options.connections);
    set(&mut bounds.head_bytes, options.head_bytes);
    set(&mut bounds.head_lines, options.head_lines);
    set(&mut bounds.body.bytes, options.body_bytes);
    set(&mut bounds.body.depth, options.body_depth);
    set(&mut bounds.names, options.names);
    set(&mut bounds.operators, options.operators);
    if options.queue_events > 0 {
        bounds.queue_events = options.queue_events;
    }
    if let Ok(patience @ 1..) = u64::try_from(options.patience_ns) {
        bounds.patience = Duration::from_nanos(patience);
    }
    bounds
}

/// # Safety
///
/// Everything that it leads to can be read.
unsafe fn access(given: &milieu_http_access) -> Result<Access, Failure> {
    // SAFETY: as the caller vouches.
    let (token, rights) = unsafe { (given.token.read("token")?, rights(&raw const given.rights)?) };
    let access = Access::new(Token::new(token).map_err(invalid)?, rights);
    Ok(match given.measures {
        true => access.measuring(),
        false => access,
    })
}

/// A copy of a page.
///
/// # Safety
///
/// Everything that it leads to can be read.
unsafe fn page(given: &milieu_http_page) -> Result<Page, Failure> {
    // SAFETY: as the caller vouches.
    let (path, media_type, content) = unsafe {
        (
            given.path.read("path")?,
            given.media_type.read("media_type")?,
            given.content.bytes("content")?,
        )
    };
    Ok(Page::new(
        path.to_owned(),
        media_type.to_owned(),
        content.to_owned(),
    ))
}

/// # Safety
///
/// So many texts can be read, for as long as the caller says.
unsafe fn texts<'a>(
    given: *const milieu_text,
    count: usize,
    what: &str,
) -> Result<Vec<&'a str>, Failure> {
    // SAFETY: as the caller vouches.
    let given = unsafe { read_slice(given, count, what)? };
    // SAFETY: as the caller vouches.
    given.iter().map(|it| unsafe { it.read(what) }).collect()
}
