//! Formats of the program: what texts become.

use std::ffi::c_void;

use milieu_adapters::Format;

use crate::{
    abi::{milieu_result, milieu_text},
    scope::User,
    streams::source::{Fed, milieu_feed},
};

/// See `sources.h`.
#[allow(non_camel_case_types)]
pub type milieu_format = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        feed: *mut milieu_feed,
        text: milieu_text,
    ) -> milieu_result,
>;

type Publish = unsafe extern "C" fn(*mut c_void, *mut milieu_feed, milieu_text) -> milieu_result;

/// A format that asks the program.
pub(super) fn of(publish: Publish, user: User) -> Format {
    Format::with(move |feed, text| {
        let (failed, Fed { failing, .. }) = Fed::lend(feed, std::ptr::null_mut(), |seen| {
            // SAFETY: the program has handed over both for this.
            unsafe { publish(user.data(), seen, milieu_text::of(text)) }
        });
        failing.or(failed).map_or(Ok(()), Err)
    })
}
