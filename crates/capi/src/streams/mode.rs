//! Transfer modes of the program's own: what `include/milieu/modes.h` declares and documents.
//!
//! ```text
//!  link, server, broker ──▶ OwnMode ──▶ encode ──▶ milieu_encoding_put, …  ──▶ a frame
//!                                  ──▶ decode ──▶ milieu_decoding_body, … ──▶ an event
//! ```

mod decoding;
mod encoding;

use std::{
    ffi::{c_char, c_void},
    fmt,
    ptr::null_mut,
    sync::{Arc, LazyLock},
};

use milieu::transfer::{
    Decode, Encode, Error, Event, Header, Limits, Mode, Modes, Name, Origin, Rights, Stream, Time,
    Value,
};

use super::{
    event::{Lender, milieu_event},
    source::Inside,
};
use crate::{
    abi::{
        MILIEU_NO_SUCH, MILIEU_OK, MILIEU_UNFIT, MILIEU_WRONG_NAME, milieu_destroy, milieu_result,
        milieu_text,
    },
    call::{Before, Failure, call, null},
    coordinator::{Coordinator, milieu_coordinator},
    handle,
    layout::check_abi,
    scope::User,
    text::{interned, read_string},
};

pub use decoding::*;
use decoding::{Body, Decoder};
use encoding::Encoder;
pub use encoding::*;

/// See `modes.h`.
pub const MILIEU_MODE_PRIVATE: u32 = 1;
/// See `modes.h`.
pub const MILIEU_MODE_WHOLE: u32 = 2;
/// See `modes.h`.
pub const MILIEU_MODE_BODY: u32 = 4;

/// See `modes.h`.
#[allow(non_camel_case_types)]
pub type milieu_mode_begin = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        decodes: bool,
        state: *mut *mut c_void,
    ) -> milieu_result,
>;

type EncodeOne = unsafe extern "C" fn(
    state: *mut c_void,
    event: *const milieu_event,
    asked: u32,
    encoding: *mut milieu_encoding,
) -> milieu_result;

type DecodeOne = unsafe extern "C" fn(
    state: *mut c_void,
    bytes: milieu_text,
    asked: u32,
    decoding: *mut milieu_decoding,
) -> milieu_result;

/// See `modes.h`.
#[allow(non_camel_case_types)]
pub type milieu_mode_encode = Option<EncodeOne>;

/// See `modes.h`.
#[allow(non_camel_case_types)]
pub type milieu_mode_decode = Option<DecodeOne>;

/// A transfer mode of the program, as `modes.h` lays it out.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct milieu_mode {
    /// `MILIEU_ABI`
    pub abi: u32,
    /// The version of its encoding.
    pub version: u32,
    /// By which it is chosen.
    pub name: *const c_char,
    /// What its frames are.
    pub media_type: *const c_char,
    /// Whether frames build on those before.
    pub builds_on_frames: bool,
    /// Whether it stands in the place of Milieu's of its name.
    pub replaces: bool,
    /// Makes what an encoder or a decoder has.
    pub begin: milieu_mode_begin,
    /// Makes a frame of an event.
    pub encode: milieu_mode_encode,
    /// Makes an event of a frame.
    pub decode: milieu_mode_decode,
    /// Lets go of what an encoder or a decoder has.
    pub end: milieu_destroy,
}

/// A mode of the program.
#[derive(Clone)]
pub(crate) struct OwnMode(Arc<Definition>);

struct Definition {
    name: &'static str,
    version: u32,
    media_type: &'static str,
    builds_on_frames: bool,
    begin: milieu_mode_begin,
    encode: EncodeOne,
    decode: DecodeOne,
    end: milieu_destroy,
    user: User,
}

impl fmt::Debug for OwnMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Another mode of this name is not the same one.
        write!(f, "{}/{} at {:p}", self.0.name, self.0.version, self.0)
    }
}

/// Those of Milieu.
static STANDARD: LazyLock<Modes> = LazyLock::new(Modes::standard);

/// The mode of a name.
pub(crate) fn named(modes: &Modes, name: &str) -> Result<Arc<dyn Mode>, Failure> {
    modes.named(name).cloned().ok_or_else(|| {
        let offers = modes.offers();
        let there: Vec<&str> = offers.iter().map(|offer| &*offer.name).collect();
        let text = format!("there is no mode `{name}`; there are {}", there.join(", "));
        Failure::new(MILIEU_NO_SUCH, text)
    })
}

/// Why an event or its bytes are not right.
pub(crate) fn unfit(error: Error) -> Failure {
    Failure::new(MILIEU_UNFIT, error)
}

impl OwnMode {
    fn error(&self, what: impl Into<String>) -> Error {
        Error::Mode {
            mode: self.0.name,
            what: what.into(),
        }
    }

    /// Why a callback has failed that began then.
    fn failed(&self, before: Before, result: milieu_result) -> Error {
        let why = before.said(result).why;
        self.error(match &*why {
            "" => "the callback has failed, and has not said why",
            why => why,
        })
    }

    fn begin(&self, decodes: bool) -> State {
        let mut data = self.0.user.data();
        let mut failed = None;
        if let Some(begin) = self.0.begin {
            data = null_mut();
            let _inside = Inside::callback();
            let before = Before::callback();
            // SAFETY: the program has handed over both for this.
            let result = unsafe { begin(self.0.user.data(), decodes, &raw mut data) };
            if result != MILIEU_OK {
                failed = Some(self.failed(before, result));
            }
        }
        State {
            mode: self.clone(),
            data,
            failed,
        }
    }
}

/// What an encoder or a decoder has of the program.
struct State {
    mode: OwnMode,
    data: *mut c_void,
    /// Why it could not begin.
    failed: Option<Error>,
}

// SAFETY: the header says that it goes to any thread.
unsafe impl Send for State {}

impl Drop for State {
    fn drop(&mut self) {
        if let (Some(end), Some(_), None) = (self.mode.0.end, self.mode.0.begin, &self.failed) {
            let _inside = Inside::callback();
            // SAFETY: the program has handed it over for this, and it is done once.
            unsafe { end(self.data) };
        }
    }
}

impl State {
    /// What its callbacks are handed.
    fn data(&self) -> Result<*mut c_void, Error> {
        match &self.failed {
            None => Ok(self.data),
            Some(error) => Err(error.clone()),
        }
    }
}

fn private(is_allowed: bool) -> u32 {
    if is_allowed { MILIEU_MODE_PRIVATE } else { 0 }
}

/// The header of a body that stands alone.
fn no_header() -> Header {
    static NOWHERE: LazyLock<Arc<Stream>> = LazyLock::new(|| {
        Arc::new(Stream {
            name: Name::root(),
            origin: Origin("".into()),
            incarnation: 0,
        })
    });
    Header {
        stream: Arc::clone(&NOWHERE),
        time: Time::from_nanoseconds(0),
        sequence: 0,
        quality: None,
    }
}

/// The body of an event alone, as this mode has it.
pub(crate) fn encode_body(
    mode: &dyn Mode,
    event: &Event,
    rights: Rights,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    mode.encode_value(&event.value(rights)?, rights, out)
}

/// An event of a body that stands alone.
pub(crate) fn decode_body(
    mode: &dyn Mode,
    bytes: &[u8],
    limits: &Limits,
    rights: Rights,
) -> Result<Event, Error> {
    let value = mode.decode_value(bytes, limits, rights)?;
    Ok(Event::of_value(no_header(), value))
}

impl Mode for OwnMode {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn version(&self) -> u32 {
        self.0.version
    }

    fn media_type(&self) -> &'static str {
        self.0.media_type
    }

    fn encoder(&self, rights: Rights) -> Box<dyn Encode> {
        Box::new(self.encoding(rights))
    }

    fn decoder(&self, limits: Limits, rights: Rights) -> Box<dyn Decode> {
        Box::new(self.decoding(limits, rights))
    }

    fn encode_value(&self, value: &Value, rights: Rights, out: &mut Vec<u8>) -> Result<(), Error> {
        let event = Event::of_value(no_header(), value.clone());
        self.encoding(rights).encode(&event, MILIEU_MODE_BODY, out)
    }

    fn decode_value(&self, bytes: &[u8], limits: &Limits, rights: Rights) -> Result<Value, Error> {
        let decoding = self.decoding(*limits, rights).decode(bytes, true)?;
        match decoding.body {
            Some(Body::Value(value)) => Ok(value),
            Some(Body::Record(record)) => Value::of(&record, Rights::ALL),
            None => Err(self.error("the callback has not said the body")),
        }
    }
}

impl OwnMode {
    fn encoding(&self, rights: Rights) -> Encoder {
        Encoder {
            state: self.begin(false),
            rights,
            lender: Lender::new(),
        }
    }

    fn decoding(&self, limits: Limits, rights: Rights) -> Decoder {
        Decoder {
            state: self.begin(true),
            limits,
            rights,
            stream: None,
            expected: Vec::new(),
        }
    }
}

/// Defines a transfer mode.
///
/// # Safety
///
/// As `modes.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_mode_define(
    coordinator: *const milieu_coordinator,
    mode: *const milieu_mode,
    user: *mut c_void,
    destroy: milieu_destroy,
) -> milieu_result {
    let user = User::new(user, destroy);
    call(|| {
        // SAFETY: as the caller vouches.
        let (Coordinator(milieu), mode) = unsafe {
            (
                handle::shared(coordinator)?,
                mode.as_ref().ok_or_else(|| null("mode"))?,
            )
        };
        check_abi(mode.abi, "mode")?;
        // SAFETY: as the caller vouches.
        let (name, media_type) = unsafe {
            (
                read_string(mode.name, "name")?,
                read_string(mode.media_type, "media_type")?,
            )
        };
        let made = OwnMode(Arc::new(Definition {
            name: interned(name),
            version: mode.version,
            media_type: interned(media_type),
            builds_on_frames: mode.builds_on_frames,
            begin: mode.begin,
            encode: mode.encode.ok_or_else(|| null("encode"))?,
            decode: mode.decode.ok_or_else(|| null("decode"))?,
            end: mode.end,
            user,
        }));
        let added = match mode.replaces {
            true => milieu.replace_mode(made),
            false => milieu.add_mode(made),
        };
        added.map_err(|error| Failure::new(MILIEU_WRONG_NAME, error))
    })
}
