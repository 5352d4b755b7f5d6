//! Transfer modes of the program's own: what `include/milieu/modes.h` declares and documents.
//!
//! ```text
//!  link, server, broker ──▶ OwnMode ──▶ encode ──▶ milieu_encoding_put, …  ──▶ a frame
//!                                  ──▶ decode ──▶ milieu_decoding_body, … ──▶ an event
//! ```

use std::{
    borrow::Cow,
    ffi::{c_char, c_void},
    fmt,
    ptr::null_mut,
    sync::{Arc, LazyLock},
};

use milieu::transfer::{
    Decode, Encode, Error, Event, Header, Json, Limits, Mode, Modes, Name, Origin, Rights, Stream,
    Time, Value,
};

use super::{
    abi::{MILIEU_JSON, milieu_datum, milieu_header},
    compute::value_of,
    event::{Lender, When, find, milieu_event},
    types::{Record, Typed, milieu_event_type},
};
use crate::{
    abi::{
        MILIEU_INVALID, MILIEU_NO_SUCH, MILIEU_OK, MILIEU_UNFIT, MILIEU_WRONG_LAYOUT,
        MILIEU_WRONG_NAME, milieu_destroy, milieu_result, milieu_text,
    },
    call::{Before, Failure, call, null},
    coordinator::{Coordinator, milieu_coordinator},
    handle,
    layout::check_abi,
    lent::{Lend, Lent},
    scope::User,
    text::{interned, read_slice, read_string},
};

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
    /// Makes what an encoder or a decoder has.
    pub begin: milieu_mode_begin,
    /// Makes a frame of an event.
    pub encode: milieu_mode_encode,
    /// Makes an event of a frame.
    pub decode: milieu_mode_decode,
    /// Lets go of what an encoder or a decoder has.
    pub end: milieu_destroy,
}

/// Where a mode puts the bytes of a frame.
pub struct Encoding {
    /// The frame; borrowed for the callback.
    frame: *mut Vec<u8>,
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

/// Where a mode puts what a frame says.
pub struct Decoding {
    mode: &'static str,
    limits: Limits,
    rights: Rights,
    is_body: bool,
    /// The stream of the event before, which is mostly that of this one.
    stream: Option<Arc<Stream>>,
    header: Option<Header>,
    body: Option<Body>,
    /// What another mode has made of it.
    whole: Option<Event>,
    is_lost: bool,
}

enum Body {
    Value(Value),
    Record(Record),
}

impl Lend for Decoding {
    const TAG: [u8; 4] = *b"deco";
    const NAME: &'static str = "milieu_decoding";
}

/// See `modes.h`.
#[allow(non_camel_case_types)]
pub type milieu_decoding = Lent<Decoding>;

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

struct Encoder {
    state: State,
    rights: Rights,
    lender: Lender,
}

/// The event as a receiver with these rights may see it.
fn shown(event: &Event, rights: Rights) -> Result<Cow<'_, Event>, Error> {
    let is_public = |record: &Record| !record.of().has_private();
    if rights.may_read().is_some() || event.get::<Record>().is_some_and(is_public) {
        return Ok(Cow::Borrowed(event));
    }
    let value = event.value(rights)?;
    Ok(Cow::Owned(Event::of_value(event.header().clone(), value)))
}

impl Encoder {
    fn encode(&self, event: &Event, asked: u32, frame: &mut Vec<u8>) -> Result<(), Error> {
        let data = self.state.data()?;
        let mode = &self.state.mode;
        let event = shown(event, self.rights)?;
        let asked = asked | private(self.rights.may_read().is_some());
        let start = frame.len();
        let inside = Encoding {
            frame,
            rights: self.rights,
            asked,
        };
        let lent = self.lender.lend(&event);
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

fn private(is_allowed: bool) -> u32 {
    if is_allowed { MILIEU_MODE_PRIVATE } else { 0 }
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

struct Decoder {
    state: State,
    limits: Limits,
    rights: Rights,
    stream: Option<Arc<Stream>>,
}

impl Decoder {
    fn decode(&mut self, frame: &[u8], is_body: bool) -> Result<Decoding, Error> {
        let data = self.state.data()?;
        let limit = self.limits.bytes;
        if frame.len() > limit {
            return Err(Error::TooLarge { limit });
        }
        let mode = &self.state.mode;
        let asked =
            private(self.rights.may_set().is_some()) | if is_body { MILIEU_MODE_BODY } else { 0 };
        let bytes = milieu_text {
            bytes: frame.as_ptr().cast(),
            length: frame.len(),
        };
        let inside = Decoding {
            mode: mode.0.name,
            limits: self.limits,
            rights: self.rights,
            is_body,
            stream: self.stream.take(),
            header: None,
            body: None,
            whole: None,
            is_lost: false,
        };
        let before = Before::callback();
        let (result, mut decoding) = Lent::during(inside, |decoding| {
            // SAFETY: the program has handed over both for this.
            unsafe { (mode.0.decode)(data, bytes, asked, decoding) }
        });
        self.stream = decoding.stream.take();
        if result != MILIEU_OK {
            return Err(mode.failed(before, result));
        }
        match decoding.is_lost {
            true => Err(Error::Lost { needed: None }),
            false => Ok(decoding),
        }
    }
}

impl Decode for Decoder {
    fn decode(&mut self, frame: &[u8]) -> Result<Event, Error> {
        let decoding = Decoder::decode(self, frame, false)?;
        if let Some(event) = decoding.whole {
            return Ok(event);
        }
        let lacks = |what| {
            self.state
                .mode
                .error(format!("the callback has not said {what}"))
        };
        let header = decoding
            .header
            .ok_or_else(|| lacks("the header of the event"))?;
        Ok(match decoding.body.ok_or_else(|| lacks("the body"))? {
            Body::Value(value) => Event::of_value(header, value),
            Body::Record(record) => record.of().kind().event(header, record),
        })
    }
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
        let event = Event::of_value(no_header(), value.readable(rights));
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
        }
    }
}

fn wrong(message: impl fmt::Display) -> Failure {
    Failure::new(MILIEU_WRONG_LAYOUT, message)
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
        let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || !name.chars().all(is_letter) {
            return Err(wrong(format_args!(
                "a mode cannot be called `{name}`; its name has letters, digits, `-` and `_`"
            )));
        }
        if !is_media_type(media_type) {
            return Err(wrong(format_args!(
                "`{media_type}` is no media type; one is `application/x-{name}`"
            )));
        }
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
        let added = milieu.add_mode(made);
        added.map_err(|error| Failure::new(MILIEU_WRONG_NAME, error))
    })
}

/// Whether it is a type and a subtype, of what may stand there (RFC 9110, 8.3.1).
fn is_media_type(text: &str) -> bool {
    let is_token = |token: &str| {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        !token.is_empty() && token.chars().all(is_letter)
    };
    let parts = text.split_once('/');
    parts.is_some_and(|(kind, rest)| is_token(kind) && is_token(rest))
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

/// What the event is called, when it was and how well it is known.
///
/// # Safety
///
/// As `modes.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_decoding_header(
    decoding: *mut milieu_decoding,
    header: *const milieu_header,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (inside, given) = unsafe {
            (
                Lent::find(decoding)?,
                header.as_ref().ok_or_else(|| null("header"))?,
            )
        };
        // SAFETY: as the caller vouches.
        let (name, origin, When { time, quality }) = unsafe {
            (
                given.name.read("name")?,
                given.origin.read("origin")?,
                When::read(&raw const given.quality)?,
            )
        };
        let time = time.ok_or_else(|| {
            let text = "an event that has come says when it was; set `quality.time_ns`";
            Failure::new(MILIEU_INVALID, text)
        })?;
        let is_same = |stream: &&Arc<Stream>| {
            (stream.name.as_str(), &*stream.origin.0) == (name, origin)
                && stream.incarnation == given.incarnation
        };
        let stream = match inside.stream.as_ref().filter(is_same) {
            Some(same) => Arc::clone(same),
            None => Arc::new(Stream {
                name: Name::parse(name).map_err(|error| Failure::new(MILIEU_WRONG_NAME, error))?,
                origin: Origin(origin.into()),
                incarnation: given.incarnation,
            }),
        };
        inside.stream = Some(Arc::clone(&stream));
        inside.header = Some(Header {
            stream,
            time,
            sequence: given.sequence,
            quality: quality.map(Box::new),
        });
        Ok(())
    })
}

/// What the event says, as a struct.
///
/// # Safety
///
/// As `modes.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_decoding_body(
    decoding: *mut milieu_decoding,
    of: *const milieu_event_type,
    body: *const c_void,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (inside, Typed(of)) = unsafe { (Lent::find(decoding)?, handle::shared(of)?) };
        if body.is_null() {
            return Err(null("body"));
        }
        // SAFETY: as the caller vouches.
        let record = unsafe { Record::copy(of, body.cast())? };
        if of.has_private() && inside.rights.may_set().is_none() {
            let value = Value::of(&record, Rights::ALL).map_err(unfit)?;
            if value.has_private() {
                return Err(unfit(Error::Private));
            }
        }
        inside.body = Some(Body::Record(record));
        Ok(())
    })
}

/// What the event says, where that is one value, or JSON.
///
/// # Safety
///
/// As `modes.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_decoding_datum(
    decoding: *mut milieu_decoding,
    datum: milieu_datum,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let inside = unsafe { Lent::find(decoding)? };
        let value = match datum.kind {
            MILIEU_JSON => {
                // SAFETY: as the caller vouches; it is a text then.
                let json = unsafe { datum.content.text.read("text")? };
                let value = Json.decode_value(json.as_bytes(), &inside.limits, inside.rights);
                value.map_err(unfit)?
            }
            // SAFETY: as the caller vouches.
            _ => unsafe { value_of(&datum)? },
        };
        inside.body = Some(Body::Value(value));
        Ok(())
    })
}

/// The event as one of the modes of Milieu has it in these bytes.
///
/// # Safety
///
/// As `modes.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_decoding_event(
    decoding: *mut milieu_decoding,
    mode: milieu_text,
    bytes: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (inside, mode, bytes) = unsafe {
            (
                Lent::find(decoding)?,
                mode.read("mode")?,
                bytes.bytes("bytes")?,
            )
        };
        let mode = named(&STANDARD, mode)?;
        let (limits, rights) = (inside.limits, inside.rights);
        match inside.is_body {
            true => {
                let value = mode.decode_value(bytes, &limits, rights);
                inside.body = Some(Body::Value(value.map_err(unfit)?));
            }
            false => {
                let event = mode.decode(bytes, &limits, rights);
                inside.whole = Some(event.map_err(unfit)?);
            }
        }
        Ok(())
    })
}

/// Frames are missing that this one builds on.
///
/// # Safety
///
/// As `modes.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_decoding_lost(decoding: *mut milieu_decoding) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let inside = unsafe { Lent::find(decoding)? };
        if inside.is_body {
            let text = format!("{}: a body alone builds on nothing", inside.mode);
            return Err(Failure::new(MILIEU_INVALID, text));
        }
        inside.is_lost = true;
        Ok(())
    })
}
