//! What holds until it is given back: flows under names, flows that act on
//! contexts, files of subscriptions.

use std::{ffi::c_void, sync::Arc, time::Duration};

use milieu::{
    Acting, Applied, Control, Keeping,
    diagnostics::Source,
    stream::{Bound, CannotName, Named, Status, Watching},
};

use super::{
    Opened, Streams,
    compute::{Computing, milieu_compute},
    flow::language_of,
    limit, milieu_streams,
    source::within,
    subscription::{Subscription, Troubles, milieu_subscription},
};
use crate::{
    abi::{MILIEU_INVALID, MILIEU_NO_SUCH, milieu_destroy, milieu_result, milieu_text},
    call::{Failure, call, out},
    handle::{self, Slot, handle},
    scope::User,
    text::read_slice,
};

/// What holds until it is given back.
pub struct Effect {
    pub(super) holds: Holds,
    pub(super) opened: Arc<Opened>,
    /// What it said last of a failure.
    said: String,
}

pub(super) enum Holds {
    Applied(Applied),
    Named(Named),
    Bound(Bound),
    Acting(Acting),
    Keeping(Keeping),
    Control(Control),
    Watching(#[allow(dead_code)] Watching, Arc<Troubles>),
}

handle!(Effect, b"effc", "milieu_effect"; super::clock::refuse);

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_effect = Slot<Effect>;

/// Brings something about.
///
/// # Safety
///
/// The pointers are as the header says.
pub(super) unsafe fn bring(
    streams: *const milieu_streams,
    effect: *mut *mut milieu_effect,
    about: impl FnOnce(&Opened) -> Result<Holds, Failure>,
) -> Result<(), Failure> {
    // SAFETY: as the caller vouches.
    let (Streams(opened), effect) = unsafe { (handle::shared(streams)?, out(effect, "effect")?) };
    *effect = handle::new(Effect {
        holds: about(opened)?,
        opened: Arc::clone(opened),
        said: String::new(),
    });
    Ok(())
}

/// Brings about what a file of subscriptions says.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_effect_apply(
    streams: *const milieu_streams,
    file: milieu_text,
    text: milieu_text,
    effect: *mut *mut milieu_effect,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (file, text) = unsafe { (file.read("file")?, text.read("text")?) };
        let language = language_of(file)?;
        let source = Source::new(file, text);
        // SAFETY: as the caller vouches.
        unsafe {
            bring(streams, effect, |opened| {
                outside(opened)?;
                Ok(Holds::Applied(opened.milieu.apply(&source, language)?))
            })
        }
    })
}

/// Publishes a flow under a name.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_effect_publish(
    streams: *const milieu_streams,
    flow: milieu_text,
    name: milieu_text,
    effect: *mut *mut milieu_effect,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        unsafe {
            let (flow, name) = (flow.read("flow")?, name.read("name")?);
            bring(streams, effect, |opened| {
                outside(opened)?;
                Ok(Holds::Named(opened.milieu.flow(flow)?.publish(name)?))
            })
        }
    })
}

/// Lets a name stand for the names that the events of a flow say.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_effect_bind_flow(
    streams: *const milieu_streams,
    flow: milieu_text,
    name: milieu_text,
    effect: *mut *mut milieu_effect,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        unsafe {
            let (flow, name) = (flow.read("flow")?, name.read("name")?);
            bring(streams, effect, |opened| {
                outside(opened)?;
                Ok(Holds::Bound(opened.milieu.flow(flow)?.bind(name)?))
            })
        }
    })
}

/// Refuses what asks the naming tree within a callback, which that waits for.
fn outside(opened: &Opened) -> Result<(), Failure> {
    match opened.graph().is_inside() {
        false => Ok(()),
        true => Err(CannotName::Inside.into()),
    }
}

/// # Safety
///
/// So many texts can be read.
pub(super) unsafe fn texts<'a>(
    targets: *const milieu_text,
    count: usize,
) -> Result<Vec<&'a str>, Failure> {
    // SAFETY: as the caller vouches.
    let targets = unsafe { read_slice(targets, count, "targets")? };
    let targets = targets.iter();
    // SAFETY: as the caller vouches.
    targets
        .map(|target| unsafe { target.read("target") })
        .collect()
}

/// Binds a name to others.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_effect_bind(
    streams: *const milieu_streams,
    name: milieu_text,
    targets: *const milieu_text,
    count: usize,
    effect: *mut *mut milieu_effect,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        unsafe {
            let name = name.read("name")?;
            let targets = texts(targets, count)?;
            bring(streams, effect, |opened| {
                outside(opened)?;
                Ok(Holds::Named(opened.milieu.bind(name, targets)?))
            })
        }
    })
}

/// Lets a flow switch a layer.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_effect_activate(
    streams: *const milieu_streams,
    flow: milieu_text,
    layer: milieu_text,
    lasting_ns: i64,
    value: milieu_compute,
    user: *mut c_void,
    destroy: milieu_destroy,
    effect: *mut *mut milieu_effect,
) -> milieu_result {
    let user = User::new(user, destroy);
    call(|| {
        let computing = Computing::new(value, user)?;
        // SAFETY: as the caller vouches.
        unsafe {
            let (flow, layer) = (flow.read("flow")?, layer.read("layer")?);
            let lasting = limit(lasting_ns).filter(|lasting| !lasting.is_zero());
            bring(streams, effect, |opened| {
                outside(opened)?;
                let stream = opened.milieu.flow(flow)?;
                let acting = stream
                    .activates_named(layer, lasting, move |event| computing.text_of(event))?;
                Ok(Holds::Acting(acting))
            })
        }
    })
}

/// Lets a flow assign a contextual value.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_effect_assign(
    streams: *const milieu_streams,
    flow: milieu_text,
    name: milieu_text,
    value: milieu_compute,
    user: *mut c_void,
    destroy: milieu_destroy,
    effect: *mut *mut milieu_effect,
) -> milieu_result {
    let user = User::new(user, destroy);
    call(|| {
        let computing = Computing::new(value, user)?;
        // SAFETY: as the caller vouches.
        unsafe {
            let (flow, name) = (flow.read("flow")?, name.read("name")?);
            bring(streams, effect, |opened| {
                let stream = opened.milieu.flow(flow)?;
                let acting = stream.tries_to_assign(name, move |event| computing.text_of(event))?;
                Ok(Holds::Acting(acting))
            })
        }
    })
}

/// Keeps what streams remember in a file.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_effect_keep(
    streams: *const milieu_streams,
    path: milieu_text,
    every_ns: i64,
    effect: *mut *mut milieu_effect,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        unsafe {
            let path = path.read("path")?;
            bring(streams, effect, |opened| {
                within(opened)?;
                let every = limit(every_ns).unwrap_or(Duration::MAX);
                Ok(Holds::Keeping(opened.milieu.keep_streams(path, every)?))
            })
        }
    })
}

/// Lets other tools look at the streams.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_effect_control(
    streams: *const milieu_streams,
    effect: *mut *mut milieu_effect,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        unsafe {
            bring(streams, effect, |opened| {
                Ok(Holds::Control(opened.milieu.control()?))
            })
        }
    })
}

/// Where the socket is by which other tools look.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_effect_path(
    effect: *const milieu_effect,
    path: *mut milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (effect, path) = unsafe { (handle::using(effect)?, out(path, "path")?) };
        let Holds::Control(control) = &effect.holds else {
            return Err(Failure::new(
                MILIEU_INVALID,
                "this effect has no socket; milieu_effect_control makes one that has",
            ));
        };
        let bytes = control.path().as_os_str().as_encoded_bytes();
        *path = milieu_text {
            bytes: bytes.as_ptr().cast(),
            length: bytes.len(),
        };
        Ok(())
    })
}

/// Ends what holds.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_effect_free(effect: *mut milieu_effect) {
    call(|| {
        // SAFETY: as the caller vouches.
        let Some(Effect { holds, opened, .. }) = (unsafe { handle::take(effect)? }) else {
            return Ok(());
        };
        drop(holds);
        // As listeners are: nothing of it runs any more then.
        let _ = opened.graph().due();
        Ok(())
    });
}

/// How often something could not be done.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_effect_failures(
    effect: *const milieu_effect,
    count: *mut u64,
    last: *mut milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (mut effect, count, last) =
            unsafe { (handle::using(effect)?, out(count, "count")?, last.as_mut()) };
        let (failures, why) = effect.holds.troubles();
        effect.said = why.unwrap_or_default();
        *count = failures;
        if let Some(last) = last {
            *last = milieu_text::of(&effect.said);
        }
        Ok(())
    })
}

impl Holds {
    fn troubles(&self) -> (u64, Option<String>) {
        match self {
            Holds::Acting(acting) => acting.troubles(),
            Holds::Bound(bound) => of_bound(bound),
            Holds::Applied(applied) => {
                let acting = applied.acting.iter().map(Acting::troubles);
                let all = acting.chain(applied.bound.iter().map(of_bound));
                all.fold((0, None), |(count, last), (more, why)| {
                    (count + more, why.or(last))
                })
            }
            Holds::Keeping(keeping) => match keeping.status() {
                Status::Failing(why) => (1, Some(why.to_string())),
                _ => (0, None),
            },
            Holds::Watching(_, troubles) => {
                let (count, last) = troubles.get();
                (count, (count > 0).then_some(last))
            }
            Holds::Named(_) | Holds::Control(_) => (0, None),
        }
    }
}

fn of_bound(bound: &Bound) -> (u64, Option<String>) {
    let fault = bound.fault().map(|fault| fault.to_string());
    (u64::from(fault.is_some()), fault)
}

/// Subscribes as a file of subscriptions says.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_effect_subscribe(
    effect: *const milieu_effect,
    name: milieu_text,
    subscription: *mut *mut milieu_subscription,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (effect, name, subscription) = unsafe {
            (
                handle::using(effect)?,
                name.read("name")?,
                out(subscription, "subscription")?,
            )
        };
        let all = match &effect.holds {
            Holds::Applied(applied) => &*applied.subscriptions,
            _ => &[],
        };
        let mut found = all.iter().filter(|it| match name {
            "" => true,
            name => it.name.as_deref() == Some(name),
        });
        let Some(wanted) = found.next() else {
            let known: Vec<&str> = all.iter().filter_map(|it| it.name.as_deref()).collect();
            return Err(Failure::new(
                MILIEU_NO_SUCH,
                format_args!(
                    "there is no subscription `{name}` in what was applied; there are: {}",
                    known.join(", ")
                ),
            ));
        };
        let opened = &effect.opened;
        let stream = opened.milieu.stream_of(wanted.flow.clone())?;
        let subscriber = stream.subscribe(wanted.delivery)?;
        *subscription = handle::new(Subscription::new(subscriber, opened));
        Ok(())
    })
}

/// Writes the file now.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_effect_save(effect: *const milieu_effect) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let effect = unsafe { handle::using(effect)? };
        match &effect.holds {
            Holds::Keeping(keeping) => {
                within(&effect.opened)?;
                Ok(keeping.save()?)
            }
            _ => Err(Failure::new(
                MILIEU_INVALID,
                "this effect keeps no file; milieu_effect_keep makes one that does",
            )),
        }
    })
}
