//! Looks at what runs, and at names.

use milieu::stream::{NotRestored, WhyNot};

use super::{
    Streams,
    effect::{Holds, milieu_effect},
    milieu_streams,
    source::within,
};
use crate::{
    abi::{MILIEU_INVALID, milieu_result, milieu_text},
    call::{Failure, call, out},
    handle::{self, Slot, handle},
};

/// What was seen, as JSON.
pub struct Picture(String);

handle!(Picture, b"pict", "milieu_picture");

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_picture = Slot<Picture>;

pub(super) fn hand_out(json: String) -> *mut milieu_picture {
    handle::new(Picture(json))
}

/// # Safety
///
/// `picture` is null or valid for writing.
unsafe fn take(
    streams: *const milieu_streams,
    picture: *mut *mut milieu_picture,
    look: impl FnOnce(&milieu::Milieu) -> Result<Option<String>, milieu::Error>,
) -> Result<(), Failure> {
    // SAFETY: as the caller vouches.
    let (Streams(opened), picture) =
        unsafe { (handle::shared(streams)?, out(picture, "picture")?) };
    within(opened)?;
    let text = look(&opened.milieu)?;
    *picture = hand_out(text.unwrap_or_default());
    Ok(())
}

/// A picture of the operator graph.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_picture_of_graph(
    streams: *const milieu_streams,
    picture: *mut *mut milieu_picture,
) -> milieu_result {
    // SAFETY: as the caller vouches.
    call(|| unsafe { take(streams, picture, |milieu| Ok(milieu.graph())) })
}

/// What stands at names.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_picture_of_names(
    streams: *const milieu_streams,
    query: milieu_text,
    picture: *mut *mut milieu_picture,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let query = unsafe { query.read("query")? };
        // SAFETY: as the caller vouches.
        unsafe { take(streams, picture, |milieu| milieu.names(query)) }
    })
}

/// What a file of what streams remember had, and no operator has got.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_picture_of_losses(
    effect: *const milieu_effect,
    picture: *mut *mut milieu_picture,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (effect, picture) = unsafe { (handle::using(effect)?, out(picture, "picture")?) };
        let Holds::Keeping(keeping) = &effect.holds else {
            return Err(Failure::new(
                MILIEU_INVALID,
                "this effect keeps no file; milieu_effect_keep makes one that does",
            ));
        };
        within(&effect.opened)?;
        *picture = hand_out(of_losses(keeping.not_restored()));
        Ok(())
    })
}

fn of_losses(losses: Vec<NotRestored>) -> String {
    let losses = losses.into_iter().map(|NotRestored { flow, why }| {
        let (why, text) = match why {
            WhyNot::Waits => ("waits", String::new()),
            WhyNot::Runs => ("runs", String::new()),
            WhyNot::Unknown(text) => ("unknown", text),
            WhyNot::Refused(text) => ("refused", text),
            WhyNot::NotKept(text) => ("not kept", text),
        };
        serde_json::json!({ "flow": flow, "why": why, "text": text })
    });
    losses.collect::<serde_json::Value>().to_string()
}

/// What streams have restored and no operator has got.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_picture_of_not_restored(
    streams: *const milieu_streams,
    picture: *mut *mut milieu_picture,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), picture) =
            unsafe { (handle::shared(streams)?, out(picture, "picture")?) };
        within(opened)?;
        let losses = opened.graph().not_restored();
        *picture = hand_out(of_losses(losses.unwrap_or_default()));
        Ok(())
    })
}

/// What was seen.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_picture_json(
    picture: *const milieu_picture,
    text: *mut milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Picture(seen), text) = unsafe { (handle::shared(picture)?, out(text, "text")?) };
        *text = milieu_text::of(seen);
        Ok(())
    })
}

/// Gives a picture back.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_picture_free(picture: *mut milieu_picture) {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(picture)? });
        Ok(())
    });
}
