//! Coordinators and the files behind them.

use std::sync::Arc;

use milieu::{Error, Milieu, context::KeyError};

#[cfg(feature = "options")]
use crate::abi::MILIEU_USAGE;
#[cfg(feature = "store")]
use crate::abi::{MILIEU_FILES, MILIEU_WRONG_LAYOUT};
#[cfg(feature = "stream")]
use crate::abi::{MILIEU_SYSTEM, MILIEU_WRONG_FLOW};
use crate::{
    abi::{
        MILIEU_CYCLE, MILIEU_INVALID, MILIEU_NO_SUCH, MILIEU_UNFIT, MILIEU_WRONG_NAME,
        milieu_result, milieu_text,
    },
    call::{Failure, call, out},
    handle::{self, Slot, handle},
};

/// What contexts share.
pub struct Coordinator(pub(crate) Arc<Milieu>);

handle!(Coordinator, b"coor", "milieu_coordinator");

/// See `milieu.h`.
#[allow(non_camel_case_types)]
pub type milieu_coordinator = Slot<Coordinator>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let result = match &error {
            #[cfg(feature = "store")]
            Error::Store(_) => MILIEU_FILES,
            #[cfg(feature = "options")]
            Error::Options(_) => MILIEU_USAGE,
            #[cfg(feature = "store")]
            Error::Rules(_) => MILIEU_WRONG_LAYOUT,
            Error::Switch(_) => MILIEU_CYCLE,
            Error::Layer(_) => MILIEU_NO_SUCH,
            Error::Invalid(_) => MILIEU_INVALID,
            Error::Name(_) => MILIEU_WRONG_NAME,
            Error::Key(key) => match **key {
                KeyError::Invalid(_) => MILIEU_INVALID,
                KeyError::Name(_) => MILIEU_WRONG_NAME,
            },
            #[cfg(feature = "stream")]
            Error::Flow(_) => MILIEU_WRONG_FLOW,
            #[cfg(feature = "stream")]
            Error::Naming(_) => MILIEU_WRONG_NAME,
            #[cfg(feature = "stream")]
            Error::Snapshot(..) => MILIEU_FILES,
            #[cfg(feature = "stream")]
            Error::System(_) => MILIEU_SYSTEM,
            // Of the others only some are of the parts that are used here.
            _ => MILIEU_UNFIT,
        };
        Failure::new(result, error)
    }
}

/// A coordinator without files.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_coordinator_new(
    coordinator: *mut *mut milieu_coordinator,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let coordinator = unsafe { out(coordinator, "coordinator")? };
        *coordinator = handle::new(Coordinator(Arc::new(Milieu::in_memory())));
        Ok(())
    })
}

/// Gives a coordinator back.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_coordinator_free(coordinator: *mut milieu_coordinator) {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(coordinator)? });
        Ok(())
    });
}

/// Assigns a key by its name.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_coordinator_assign(
    coordinator: *const milieu_coordinator,
    name: milieu_text,
    value: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Coordinator(milieu), name, value) = unsafe {
            (
                handle::shared(coordinator)?,
                name.read("name")?,
                value.read("value")?,
            )
        };
        let assigned = milieu.coordinator().assign(name, value, None);
        Ok(assigned.map_err(Error::from)?)
    })
}

/// Removes the user's key of a name.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_coordinator_remove(
    coordinator: *const milieu_coordinator,
    name: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Coordinator(milieu), name) =
            unsafe { (handle::shared(coordinator)?, name.read("name")?) };
        let removed = milieu.coordinator().remove(name);
        Ok(removed.map_err(Error::from)?)
    })
}

/// Whether a key could be assigned.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_coordinator_check(
    coordinator: *const milieu_coordinator,
    name: milieu_text,
    value: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Coordinator(milieu), name, value) = unsafe {
            (
                handle::shared(coordinator)?,
                name.read("name")?,
                value.read("value")?,
            )
        };
        let checked = milieu.coordinator().check(name, Some(value));
        Ok(checked.map_err(Error::from)?)
    })
}

/// Whether a value depends on a layer.
///
/// # Safety
///
/// As `milieu.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_coordinator_check_layer(
    coordinator: *const milieu_coordinator,
    id: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Coordinator(milieu), id) = unsafe { (handle::shared(coordinator)?, id.read("id")?) };
        milieu.coordinator().layer(id, "").map_err(Error::from)?;
        Ok(())
    })
}
