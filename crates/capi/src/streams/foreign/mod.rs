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

use super::{
    Opened, Streams, milieu_streams,
    source::{number_of, within},
};
use crate::{
    abi::{MILIEU_INVALID, milieu_result, milieu_text},
    call::{Failure, call, out},
    handle::{self, Slot, handle},
};

#[cfg(feature = "http")]
pub use http::*;
#[cfg(feature = "mqtt")]
pub use mqtt::*;

/// A server, a connection, or what the program says of something else.
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
    Own(Arc<Component>),
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
            Kept::Own(component) => component,
        }
    }

    /// Ends it in this way. Its thread may wait for a callback that runs now; then
    /// another one waits for that.
    fn end(self, way: impl FnOnce(Kept) + Send + 'static) {
        let Foreign { kept, opened, .. } = self;
        if matches!(kept, Kept::Own(_)) || within(&opened).is_ok() {
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

/// The components of each coordinator, of which its servers tell.
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

fn invalid(message: impl std::fmt::Display) -> Failure {
    Failure::new(MILIEU_INVALID, message)
}

/// Enters something that the program has.
///
/// # Safety
///
/// As `foreign.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_component_new(
    streams: *const milieu_streams,
    id: milieu_text,
    kind: milieu_text,
    component: *mut *mut milieu_component,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), id, kind, component) = unsafe {
            (
                handle::shared(streams)?,
                id.read("id")?,
                kind.read("kind")?,
                out(component, "component")?,
            )
        };
        for (text, what) in [(id, "id"), (kind, "kind")] {
            if text.is_empty() {
                return Err(invalid(format_args!(
                    "`{what}` is empty; say by it what `/ready` and `/metrics` call this"
                )));
            }
        }
        let own = components_of(&opened.milieu).add(id, kind.to_owned());
        *component = Foreign::new(Kept::Own(own), opened);
        Ok(())
    })
}

/// Says how something is that the program has.
///
/// # Safety
///
/// As `foreign.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_component_tell(
    component: *const milieu_component,
    status: u32,
    why: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (foreign, why) = unsafe { (handle::using(component)?, why.read("why")?) };
        let Kept::Own(own) = &foreign.kept else {
            return Err(invalid(
                "a server or a connection says itself how it is; milieu_component_new makes what \
                 the program says it of",
            ));
        };
        let status = match (status, why) {
            (0, _) => Status::Starting,
            (1, _) => Status::Working,
            (2, "") => {
                return Err(invalid(
                    "`why` is empty; say what is wrong, and how it is mended",
                ));
            }
            (2, why) => Status::Failing(why.into()),
            (3, _) => Status::Ended,
            _ => {
                return Err(invalid(format_args!(
                    "there is no status {status}; there are those of milieu_status"
                )));
            }
        };
        own.say(status);
        Ok(())
    })
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
        let now = foreign.component().status();
        *status = number_of(&now, &mut foreign.said);
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
