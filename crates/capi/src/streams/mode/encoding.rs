//! How a mode makes frames of events.

use std::{borrow::Cow, ffi::c_void};

use milieu::transfer::{Encode, Error, Event, Rights, Value};

use super::{
    MILIEU_MODE_BODY, MILIEU_MODE_WHOLE, STANDARD, State, encode_body, named, private, unfit,
};
use crate::{
    abi::{MILIEU_OK, milieu_result, milieu_text},
    call::{Before, call},
    lent::{Lend, Lent},
    streams::{
        event::{Lender, find, milieu_event},
        source::Inside,
        types::Record,
    },
    text::read_slice,
};

/// Where a mode puts the bytes of a frame.
pub struct Encoding {
    /// The frame, and the event as the callback sees it and as it is; borrowed for the
    /// callback.
    frame: *mut Vec<u8>,
    shown: *const Event,
    event: *const Event,
    rights: Rights,
    asked: u32,
}

impl Lend for Encoding {
    const TAG: [u8; 4] = *b"enco";
    const NAME: &'static str = "milieu_encoding";
}

/// See `modes.h`.
#[allow(non_camel_case_types)]
pub type milieu_encoding = Lent<Encoding>;

pub(super) struct Encoder {
    pub state: State,
    pub rights: Rights,
    pub lender: Lender,
}

/// Whether nothing of an event is private.
fn is_public(event: &Event) -> bool {
    if let Some(value) = event.get::<Value>() {
        return !value.has_private();
    }
    // Of another type it is what its body extends, which says nothing of the rest.
    let record = event.get::<Record>().map(Record::of);
    record.is_some_and(|of| std::ptr::eq(of.kind().of(), event.of()) && !of.has_private())
}

/// The event as a receiver with these rights may see it.
fn shown(event: &Event, rights: Rights) -> Result<Cow<'_, Event>, Error> {
    if rights.may_read().is_some() || is_public(event) {
        return Ok(Cow::Borrowed(event));
    }
    let value = event.value(rights)?;
    Ok(Cow::Owned(Event::of_value(event.header().clone(), value)))
}

impl Encoder {
    pub(super) fn encode(
        &self,
        event: &Event,
        asked: u32,
        frame: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let data = self.state.data()?;
        let mode = &self.state.mode;
        let shown = shown(event, self.rights)?;
        let asked = asked | private(self.rights.may_read().is_some());
        let start = frame.len();
        let inside = Encoding {
            frame,
            shown: &raw const *shown,
            event,
            rights: self.rights,
            asked,
        };
        let lent = self.lender.lend(&shown);
        let _inside = Inside::callback();
        let before = Before::callback();
        let (result, Encoding { frame, .. }) = Lent::during(inside, |encoding| {
            // SAFETY: the program has handed over both for this.
            unsafe { (mode.0.encode)(data, lent, asked, encoding) }
        });
        self.lender.recall();
        if result == MILIEU_OK {
            return Ok(());
        }
        // SAFETY: it is the caller's, and nobody else has it any more.
        unsafe { (*frame).truncate(start) };
        Err(mode.failed(before, result))
    }
}

impl Encode for Encoder {
    fn encode(&mut self, event: &Event, out: &mut Vec<u8>) -> Result<(), Error> {
        Encoder::encode(self, event, 0, out)
    }

    fn key_frame(&mut self, event: &Event, out: &mut Vec<u8>) -> Result<(), Error> {
        Encoder::encode(self, event, MILIEU_MODE_WHOLE, out)
    }

    fn is_stateless(&self) -> bool {
        !self.state.mode.0.builds_on_frames
    }
}

/// Appends bytes to the frame.
///
/// # Safety
///
/// As `modes.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_encoding_put(
    encoding: *mut milieu_encoding,
    bytes: *const c_void,
    length: usize,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches; the frame is there until the callback returns.
        unsafe {
            let inside = Lent::find(encoding)?;
            let bytes: &[u8] = read_slice(bytes.cast(), length, "bytes")?;
            (*inside.frame).extend_from_slice(bytes);
        }
        Ok(())
    })
}

/// Appends an event as one of the modes of Milieu has it.
///
/// # Safety
///
/// As `modes.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_encoding_event(
    encoding: *mut milieu_encoding,
    event: *const milieu_event,
    mode: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches; the frame is there until the callback returns.
        let (inside, event, mode) =
            unsafe { (Lent::find(encoding)?, find(event)?, mode.read("mode")?) };
        // SAFETY: as above.
        let frame = unsafe { &mut *inside.frame };
        // What is to be encoded is there as it is, its schema included: modes of Milieu leave
        // out themselves what the receiver may not see.
        let event = match std::ptr::eq(event, inside.shown) {
            // SAFETY: as above.
            true => unsafe { &*inside.event },
            false => event,
        };
        let mode = named(&STANDARD, mode)?;
        let start = frame.len();
        let done = match inside.asked & MILIEU_MODE_BODY {
            0 => mode.encoder(inside.rights).encode(event, frame),
            _ => encode_body(&*mode, event, inside.rights, frame),
        };
        done.map_err(|error| {
            frame.truncate(start);
            unfit(error)
        })
    })
}
