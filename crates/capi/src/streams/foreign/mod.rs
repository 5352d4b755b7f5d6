//! Streams for programs that are not this one: what `include/milieu/foreign.h`
//! declares and documents.

#[cfg(feature = "http")]
mod http;
#[cfg(feature = "mqtt")]
mod mqtt;

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    thread,
};

use milieu::{Milieu, stream::Status};
use milieu_adapters::component::{Component, Components};

use super::{Opened, source::within};
use crate::{
    abi::{milieu_result, milieu_text},
    call::{Failure, call, out},
    handle::{self, Slot, handle},
};

#[cfg(feature = "http")]
pub use http::*;
#[cfg(feature = "mqtt")]
pub use mqtt::*;

/// A server or a connection.
pub struct Foreign {
    kept: Kept,
    opened: Arc<Opened>,
    /// What the status said last.
    said: String,
}

enum Kept {
    #[cfg(feature = "http")]
    Serving(milieu_adapters::http::Serving),
    #[cfg(feature = "mqtt")]
    Connection(milieu_adapters::mqtt::Connection),
}

handle!(Foreign, b"forn", "milieu_component");

/// See `foreign.h`.
#[allow(non_camel_case_types)]
pub type milieu_component = Slot<Foreign>;

impl Foreign {
    fn new(kept: Kept, opened: &Arc<Opened>) -> *mut milieu_component {
        handle::new(Foreign {
            kept,
            opened: Arc::clone(opened),
            said: String::new(),
        })
    }

    fn component(&self) -> &Component {
        match &self.kept {
            #[cfg(feature = "http")]
            Kept::Serving(serving) => serving.component(),
            #[cfg(feature = "mqtt")]
            Kept::Connection(connection) => connection.component(),
        }
    }

    /// Ends it in this way. Its thread may wait for a callback that runs now; then
    /// another one waits for that.
    fn end(self, way: impl FnOnce(Kept) + Send + 'static) {
        let Foreign { kept, opened, .. } = self;
        if within(&opened).is_ok() {
            return way(kept);
        }
        let ending = thread::Builder::new().name("milieu-end".to_owned());
        let kept = Arc::new(Mutex::new(Some(kept)));
        let taken = Arc::clone(&kept);
        let take = move || taken.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ended = ending.spawn(move || take().map(way));
        if ended.is_err() {
            // Where there is no thread for that, it goes on.
            std::mem::forget(kept);
        }
    }
}

/// The servers and connections of each coordinator, which tell of each other.
static COMPONENTS: Mutex<Vec<(Weak<Milieu>, Components)>> = Mutex::new(Vec::new());

fn components_of(milieu: &Arc<Milieu>) -> Components {
    let mut known = COMPONENTS.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|(of, _)| of.strong_count() > 0);
    let weak = Arc::downgrade(milieu);
    if let Some((_, components)) = known.iter().find(|(of, _)| of.ptr_eq(&weak)) {
        return components.clone();
    }
    let components = Components::new();
    known.push((weak, components.clone()));
    components
}

/// What it is called.
///
/// # Safety
///
/// As `foreign.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_component_id(
    component: *const milieu_component,
    id: *mut milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (foreign, id) = unsafe { (handle::using(component)?, out(id, "id")?) };
        *id = milieu_text::of(foreign.component().id());
        Ok(())
    })
}

/// How it is.
///
/// # Safety
///
/// As `foreign.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_component_status(
    component: *const milieu_component,
    status: *mut u32,
    why: *mut milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (mut foreign, status, why) = unsafe {
            (
                handle::using(component)?,
                out(status, "status")?,
                why.as_mut(),
            )
        };
        foreign.said.clear();
        *status = match foreign.component().status() {
            Status::Starting => 0,
            Status::Working => 1,
            Status::Failing(text) => {
                foreign.said.push_str(&text);
                2
            }
            Status::Ended => 3,
        };
        if let Some(why) = why {
            *why = milieu_text::of(&foreign.said);
        }
        Ok(())
    })
}

/// How many events came in and went out.
///
/// # Safety
///
/// As `foreign.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_component_events(
    component: *const milieu_component,
    received: *mut u64,
    sent: *mut u64,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (foreign, received, sent) = unsafe {
            (
                handle::using(component)?,
                out(received, "received")?,
                out(sent, "sent")?,
            )
        };
        *received = foreign.component().received();
        *sent = foreign.component().sent();
        Ok(())
    })
}

/// Says how often something has happened for a reason.
///
/// # Safety
///
/// The pointers are as the header says.
unsafe fn tell_count(
    component: *const milieu_component,
    why: milieu_text,
    count: *mut u64,
    counted: impl FnOnce(&Component, &str) -> u64,
) -> Result<(), Failure> {
    // SAFETY: as the caller vouches.
    let (foreign, why, count) = unsafe {
        (
            handle::using(component)?,
            why.read("why")?,
            out(count, "count")?,
        )
    };
    *count = counted(foreign.component(), why);
    Ok(())
}

/// How many events were discarded for a reason.
///
/// # Safety
///
/// As `foreign.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_component_discarded(
    component: *const milieu_component,
    why: milieu_text,
    count: *mut u64,
) -> milieu_result {
    // SAFETY: as the caller vouches.
    call(|| unsafe { tell_count(component, why, count, Component::discarded) })
}

/// How many errors there were for a reason.
///
/// # Safety
///
/// As `foreign.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_component_errors(
    component: *const milieu_component,
    why: milieu_text,
    count: *mut u64,
) -> milieu_result {
    // SAFETY: as the caller vouches.
    call(|| unsafe { tell_count(component, why, count, Component::errors) })
}

/// Ends it.
///
/// # Safety
///
/// As `foreign.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_component_free(component: *mut milieu_component) {
    call(|| {
        // SAFETY: as the caller vouches.
        if let Some(foreign) = unsafe { handle::take(component)? } {
            foreign.end(drop);
        }
        Ok(())
    });
}
