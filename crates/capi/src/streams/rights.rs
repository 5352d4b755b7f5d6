//! Rights: what somebody may read and publish.

use milieu::stream::names::{Rights, Scope};

use super::{
    Streams,
    abi::{milieu_names, milieu_rights},
    milieu_streams,
    reader::{hand_out, milieu_reader},
};
use crate::{
    abi::{MILIEU_WRONG_NAME, milieu_result},
    call::{Failure, call, null, out},
    context::milieu_context,
    handle,
    layout::check_abi,
    text::read_slice,
};

/// # Safety
///
/// Everything that it leads to can be read.
unsafe fn scope(names: milieu_names, what: &str) -> Result<Scope, Failure> {
    // SAFETY: as the caller vouches.
    let queries = unsafe { read_slice(names.queries, names.count, what)? };
    // SAFETY: as the caller vouches.
    let queries = queries.iter().map(|query| unsafe { query.read(what) });
    let queries: Vec<&str> = queries.collect::<Result<_, _>>()?;
    Scope::parse(queries).map_err(|wrong| {
        let text = format!("`{what}`: {}; {}", wrong.message, wrong.help);
        Failure::new(MILIEU_WRONG_NAME, text)
    })
}

/// # Safety
///
/// It is null, or everything that it leads to can be read.
pub(super) unsafe fn rights(given: *const milieu_rights) -> Result<Rights, Failure> {
    // SAFETY: as the caller vouches.
    let given = unsafe { given.as_ref() }.ok_or_else(|| null("rights"))?;
    check_abi(given.abi, "rights")?;
    // SAFETY: as the caller vouches.
    unsafe {
        Ok(Rights {
            read: scope(given.read, "read")?,
            publish: scope(given.publish, "publish")?,
            private: scope(given.read_private, "read_private")?,
            set: scope(given.set_private, "set_private")?,
        })
    }
}

/// A reader with rights.
///
/// # Safety
///
/// As `links.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_reader_new_with(
    streams: *const milieu_streams,
    context: *const milieu_context,
    given: *const milieu_rights,
    reader: *mut *mut milieu_reader,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), context, rights, reader) = unsafe {
            (
                handle::shared(streams)?,
                handle::using(context)?,
                rights(given)?,
                out(reader, "reader")?,
            )
        };
        *reader = hand_out(opened, &context, rights);
        Ok(())
    })
}
