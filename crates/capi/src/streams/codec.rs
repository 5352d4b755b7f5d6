//! Events as bytes, by hand: what `include/milieu/modes.h` declares and documents.

use std::sync::Arc;

use milieu::transfer::{Decode, Encode, Error, Limits, Mode, Rights};

use super::{
    Streams,
    event::{find, kept, milieu_event},
    milieu_streams,
    mode::{MILIEU_MODE_BODY, MILIEU_MODE_WHOLE, decode_body, encode_body, named, unfit},
    types::{Typed, milieu_event_type},
};
use crate::{
    abi::{MILIEU_INVALID, MILIEU_LATE, milieu_result, milieu_text},
    call::{Failure, call, out},
    handle::{self, Slot, handle},
};

/// Makes bytes of events.
pub struct Encoder {
    mode: Arc<dyn Mode>,
    rights: Rights,
    encode: Box<dyn Encode>,
    /// What was encoded last.
    frame: Vec<u8>,
}

handle!(Encoder, b"encr", "milieu_encoder");

/// See `modes.h`.
#[allow(non_camel_case_types)]
pub type milieu_encoder = Slot<Encoder>;

/// Makes events of bytes.
pub struct Decoder {
    mode: Arc<dyn Mode>,
    rights: Rights,
    limits: Limits,
    decode: Box<dyn Decode>,
}

handle!(Decoder, b"decr", "milieu_decoder");

/// See `modes.h`.
#[allow(non_camel_case_types)]
pub type milieu_decoder = Slot<Decoder>;

/// What is wrong with bytes; what they build on may come yet.
fn wrong(error: Error) -> Failure {
    match error {
        Error::Lost { .. } | Error::UnknownSchema(_) => Failure::new(MILIEU_LATE, error),
        error => unfit(error),
    }
}

fn unasked(asked: u32) -> Failure {
    let text = format!("{asked} asks for nothing that can be had here; see MILIEU_MODE_WHOLE");
    Failure::new(MILIEU_INVALID, text)
}

/// An encoder.
///
/// # Safety
///
/// As `modes.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_encoder_new(
    streams: *const milieu_streams,
    mode: milieu_text,
    with_private: bool,
    encoder: *mut *mut milieu_encoder,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), mode, encoder) = unsafe {
            (
                handle::shared(streams)?,
                mode.read("mode")?,
                out(encoder, "encoder")?,
            )
        };
        let mode = named(&opened.milieu.modes(), mode)?;
        let rights = if with_private {
            Rights::READ
        } else {
            Rights::NONE
        };
        let encode = mode.encoder(rights);
        *encoder = handle::new(Encoder {
            mode,
            rights,
            encode,
            frame: Vec::new(),
        });
        Ok(())
    })
}

/// The bytes of an event.
///
/// # Safety
///
/// As `modes.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_encoder_encode(
    encoder: *const milieu_encoder,
    event: *const milieu_event,
    asked: u32,
    bytes: *mut milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (mut encoder, event, bytes) =
            unsafe { (handle::using(encoder)?, find(event)?, out(bytes, "bytes")?) };
        let Encoder {
            mode,
            rights,
            encode,
            frame,
        } = &mut *encoder;
        frame.clear();
        let done = match asked {
            0 => encode.encode(event, frame),
            MILIEU_MODE_WHOLE => encode.key_frame(event, frame),
            MILIEU_MODE_BODY => encode_body(&**mode, event, *rights, frame),
            asked => return Err(unasked(asked)),
        };
        done.map_err(unfit)?;
        *bytes = milieu_text {
            bytes: frame.as_ptr().cast(),
            length: frame.len(),
        };
        Ok(())
    })
}

/// Gives an encoder back.
///
/// # Safety
///
/// As `modes.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_encoder_free(encoder: *mut milieu_encoder) {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(encoder)? });
        Ok(())
    });
}

/// A decoder.
///
/// # Safety
///
/// As `modes.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_decoder_new(
    streams: *const milieu_streams,
    mode: milieu_text,
    with_private: bool,
    bytes_max: usize,
    depth_max: usize,
    decoder: *mut *mut milieu_decoder,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), mode, decoder) = unsafe {
            (
                handle::shared(streams)?,
                mode.read("mode")?,
                out(decoder, "decoder")?,
            )
        };
        let mode = named(&opened.milieu.modes(), mode)?;
        let rights = if with_private {
            Rights::SET
        } else {
            Rights::NONE
        };
        let mut limits = Limits::default();
        if bytes_max > 0 {
            limits.bytes = bytes_max;
        }
        if depth_max > 0 {
            limits.depth = depth_max;
        }
        let decode = mode.decoder(limits, rights);
        *decoder = handle::new(Decoder {
            mode,
            rights,
            limits,
            decode,
        });
        Ok(())
    })
}

/// Lets bodies of this type be it.
///
/// # Safety
///
/// As `modes.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_decoder_expect(
    decoder: *const milieu_decoder,
    of: *const milieu_event_type,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (mut decoder, Typed(of)) = unsafe { (handle::using(decoder)?, handle::shared(of)?) };
        decoder.decode.expect(of.kind().of());
        Ok(())
    })
}

/// The event that bytes say.
///
/// # Safety
///
/// As `modes.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_decoder_decode(
    decoder: *const milieu_decoder,
    bytes: milieu_text,
    asked: u32,
    event: *mut *mut milieu_event,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (mut decoder, bytes, event) = unsafe {
            (
                handle::using(decoder)?,
                bytes.bytes("bytes")?,
                out(event, "event")?,
            )
        };
        let Decoder {
            mode,
            rights,
            limits,
            decode,
        } = &mut *decoder;
        let decoded = match asked {
            0 => decode.decode(bytes),
            MILIEU_MODE_BODY => decode_body(&**mode, bytes, limits, *rights),
            asked => return Err(unasked(asked)),
        };
        *event = kept(decoded.map_err(wrong)?);
        Ok(())
    })
}

/// Gives a decoder back.
///
/// # Safety
///
/// As `modes.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_decoder_free(decoder: *mut milieu_decoder) {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(decoder)? });
        Ok(())
    });
}
