//! Readers: subscriptions under the layers of a context.

use std::{ffi::c_void, sync::Arc};

use milieu::{
    diagnostics::{Diagnostic, Source, render},
    stream::{
        Reader as Reading,
        names::{LayerValues, Rights},
    },
};

use super::{
    Opened, Streams,
    abi::milieu_delivery,
    milieu_streams,
    subscription::{
        Listener, Subscription, delivery, milieu_listener, milieu_receive, milieu_subscription,
        receiver,
    },
};
use crate::{
    abi::{MILIEU_WRONG_FLOW, milieu_destroy, milieu_result, milieu_text},
    call::{Failure, call, out},
    context::{Context, milieu_context},
    handle::{self, Slot, handle},
    scope::User,
};

/// Subscribes under the layers of a context.
pub struct Reader {
    reader: Reading,
    opened: Arc<Opened>,
}

handle!(Reader, b"read", "milieu_reader"; super::clock::refuse);

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_reader = Slot<Reader>;

fn layers_of(context: &Context) -> LayerValues {
    context.erased.layers().into_iter().collect()
}

pub(super) fn hand_out(
    opened: &Arc<Opened>,
    context: &Context,
    rights: Rights,
) -> *mut milieu_reader {
    handle::new(Reader {
        reader: opened.graph().reader(layers_of(context), rights),
        opened: Arc::clone(opened),
    })
}

fn wrong(flow: &str, found: Diagnostic) -> Failure {
    let source = Source::new("flow", flow);
    Failure::new(MILIEU_WRONG_FLOW, render(&source, &[found], false))
}

/// A reader under the layers of a context.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_reader_new(
    streams: *const milieu_streams,
    context: *const milieu_context,
    reader: *mut *mut milieu_reader,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), context, reader) = unsafe {
            (
                handle::shared(streams)?,
                handle::using(context)?,
                out(reader, "reader")?,
            )
        };
        *reader = hand_out(opened, &context, Rights::all());
        Ok(())
    })
}

/// Gives a reader back.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_reader_free(reader: *mut milieu_reader) {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(reader)? });
        Ok(())
    });
}

/// The layers of the context are others now.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_reader_follow(
    reader: *mut milieu_reader,
    context: *const milieu_context,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (reader, context) =
            unsafe { (handle::using(reader.cast_const())?, handle::using(context)?) };
        reader.reader.set_layers(layers_of(&context));
        Ok(())
    })
}

/// Subscribes by a queue.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_reader_subscribe(
    reader: *const milieu_reader,
    flow: milieu_text,
    given: *const milieu_delivery,
    subscription: *mut *mut milieu_subscription,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (reader, text, delivery, subscription) = unsafe {
            (
                handle::using(reader)?,
                flow.read("flow")?,
                delivery(given)?,
                out(subscription, "subscription")?,
            )
        };
        let flow = reader.opened.milieu.flow(text)?;
        let subscriber = reader.reader.subscribe(flow.as_flow(), delivery);
        let subscriber = subscriber.map_err(|found| wrong(text, found))?;
        *subscription = handle::new(Subscription::new(subscriber, &reader.opened));
        Ok(())
    })
}

/// Subscribes by a callback.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_reader_listen(
    reader: *const milieu_reader,
    flow: milieu_text,
    receive: milieu_receive,
    user: *mut c_void,
    destroy: milieu_destroy,
    listener: *mut *mut milieu_listener,
) -> milieu_result {
    let user = User::new(user, destroy);
    call(|| {
        // SAFETY: as the caller vouches.
        let (reader, text, listener) = unsafe {
            (
                handle::using(reader)?,
                flow.read("flow")?,
                out(listener, "listener")?,
            )
        };
        let (troubles, receiver) = receiver(receive, user)?;
        let flow = reader.opened.milieu.flow(text)?;
        let listening = reader.reader.listen(flow.as_flow(), receiver);
        let listening = listening.map_err(|found| wrong(text, found))?;
        *listener = Listener::hand_out(listening, troubles, &reader.opened);
        Ok(())
    })
}
