//! Notices of keys that have other names today, or are deprecated.

use milieu::{
    diagnostics::render,
    keys::migration::{Fate, Notice, Outcome, Target},
};

use crate::{
    abi::{
        MILIEU_DEPRECATED, MILIEU_NOT_ALLOWED, MILIEU_OUTRANKED, MILIEU_RENAMED, MILIEU_TAKEN,
        milieu_notice, milieu_result, milieu_target, milieu_text,
    },
    call::{call, out},
    coordinator::{Coordinator, milieu_coordinator},
    handle::{self, Slot, handle},
};

/// Notices as the other side reads them.
pub struct Notices {
    notices: Vec<milieu_notice>,
    // What the notices point to goes last.
    _told: Vec<Told>,
}

/// What one of them points to.
struct Told {
    notice: Notice,
    targets: Vec<milieu_target>,
    origin: String,
    message: String,
}

// SAFETY: the notices point to what `_told` keeps, which nobody alters.
unsafe impl Send for Notices {}
// SAFETY: as above.
unsafe impl Sync for Notices {}

handle!(Notices, b"noti", "milieu_notices");

/// See `files.h`.
#[allow(non_camel_case_types)]
pub type milieu_notices = Slot<Notices>;

impl Told {
    fn new(notice: Notice) -> Self {
        Told {
            targets: Vec::new(),
            origin: notice.key.origin().to_string(),
            message: render(&notice.source(), &notice.diagnostics(), false),
            notice,
        }
    }

    /// As the other side reads it, for as long as this stays where it is.
    fn shown(&mut self) -> milieu_notice {
        let Notice { key, fate, secret } = &self.notice;
        let (number, reason) = match fate {
            Fate::Renamed(targets) => {
                self.targets = targets.iter().map(target).collect();
                (MILIEU_RENAMED, milieu_text::EMPTY)
            }
            // Tables name no keys that were removed.
            Fate::Removed(advice) | Fate::Deprecated(advice) => {
                (MILIEU_DEPRECATED, milieu_text::of(advice))
            }
        };
        milieu_notice {
            name: milieu_text::of(key.name()),
            value: milieu_text::of_some(Some(key.value()).filter(|_| !secret)),
            origin: milieu_text::of(&self.origin),
            targets: self.targets.as_ptr(),
            count: self.targets.len(),
            reason,
            message: milieu_text::of(self.message.trim_end()),
            fate: number,
            is_error: self.notice.is_error(),
            secret: *secret,
        }
    }
}

fn target(target: &Target) -> milieu_target {
    milieu_target {
        name: milieu_text::of(target.name.as_str()),
        outcome: match target.outcome {
            Outcome::Taken(_) => MILIEU_TAKEN,
            Outcome::Outranked(_) => MILIEU_OUTRANKED,
            Outcome::Refused(_) => MILIEU_NOT_ALLOWED,
        },
    }
}

/// What the files say under names of before.
///
/// # Safety
///
/// As `files.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_notices_new(
    coordinator: *const milieu_coordinator,
    notices: *mut *mut milieu_notices,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Coordinator(milieu), notices) =
            unsafe { (handle::shared(coordinator)?, out(notices, "notices")?) };
        let mut told: Vec<Told> = milieu.notices().into_iter().map(Told::new).collect();
        *notices = handle::new(Notices {
            notices: told.iter_mut().map(Told::shown).collect(),
            _told: told,
        });
        Ok(())
    })
}

/// Gives notices back.
///
/// # Safety
///
/// As `files.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_notices_free(notices: *mut milieu_notices) {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(notices)? });
        Ok(())
    });
}

/// All of them.
///
/// # Safety
///
/// As `files.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_notices_all(
    notices: *const milieu_notices,
    all: *mut *const milieu_notice,
    count: *mut usize,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (notices, all, count) = unsafe {
            (
                handle::shared(notices)?,
                out(all, "all")?,
                out(count, "count")?,
            )
        };
        *all = notices.notices.as_ptr();
        *count = notices.notices.len();
        Ok(())
    })
}
