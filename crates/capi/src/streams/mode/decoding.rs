//! How a mode makes events of frames.

use std::{ffi::c_void, sync::Arc};

use milieu::transfer::{
    Decode, Error, Event, Header, Json, Limits, Mode, Name, Origin, Rights, Stream, Type, Value,
};

use super::{MILIEU_MODE_BODY, STANDARD, State, named, private, unfit};
use crate::{
    abi::{MILIEU_INVALID, MILIEU_OK, MILIEU_WRONG_NAME, milieu_result, milieu_text},
    call::{Before, Failure, call, null},
    handle,
    lent::{Lend, Lent},
    streams::{
        abi::{MILIEU_JSON, milieu_datum, milieu_header},
        compute::value_of,
        event::When,
        source::Inside,
        types::{Record, Typed, milieu_event_type},
    },
};

/// Where a mode puts what a frame says.
pub struct Decoding {
    mode: &'static str,
    limits: Limits,
    rights: Rights,
    is_body: bool,
    /// The stream of the event before, which is mostly that of this one.
    stream: Option<Arc<Stream>>,
    header: Option<Header>,
    pub(super) body: Option<Body>,
    /// What another mode has made of it.
    whole: Option<Event>,
    /// The types that bodies get; borrowed for the callback.
    expected: *const [&'static Type],
    is_lost: bool,
    /// Whether something private would have been set.
    is_denied: bool,
}

impl Decoding {
    /// Why what was sent does not fit.
    fn refused(&mut self, error: Error) -> Failure {
        self.is_denied |= error == Error::Private;
        unfit(error)
    }

    /// Refuses to say twice what the header and the body are.
    fn only(&self, is_said: bool) -> Result<(), Failure> {
        match is_said {
            true => Err(Failure::new(
                MILIEU_INVALID,
                "the event has header and body already; take them of another mode, or say them",
            )),
            false => Ok(()),
        }
    }
}

pub(super) enum Body {
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

pub(super) struct Decoder {
    pub state: State,
    pub limits: Limits,
    pub rights: Rights,
    pub stream: Option<Arc<Stream>>,
    /// For what other modes make of it.
    pub expected: Vec<&'static Type>,
}

impl Decoder {
    pub(super) fn decode(&mut self, frame: &[u8], is_body: bool) -> Result<Decoding, Error> {
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
            expected: self.expected.as_slice(),
            is_lost: false,
            is_denied: false,
        };
        let _inside = Inside::callback();
        let before = Before::callback();
        let (result, mut decoding) = Lent::during(inside, |decoding| {
            // SAFETY: the program has handed over both for this.
            unsafe { (mode.0.decode)(data, bytes, asked, decoding) }
        });
        self.stream = decoding.stream.take();
        if result != MILIEU_OK {
            return Err(match decoding.is_denied {
                true => Error::Private,
                false => mode.failed(before, result),
            });
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

    fn expect(&mut self, of: &'static Type) {
        self.expected.push(of);
    }
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
        inside.only(inside.whole.is_some())?;
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
        inside.only(inside.whole.is_some())?;
        // SAFETY: as the caller vouches.
        let record = unsafe { Record::copy(of, body.cast())? };
        if of.has_private() && inside.rights.may_set().is_none() {
            let value = Value::of(&record, Rights::ALL).map_err(unfit)?;
            if value.has_private() {
                return Err(inside.refused(Error::Private));
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
        inside.only(inside.whole.is_some())?;
        let value = match datum.kind {
            MILIEU_JSON => {
                // SAFETY: as the caller vouches; it is a text then.
                let json = unsafe { datum.content.text.read("text")? };
                let value = Json.decode_value(json.as_bytes(), &inside.limits, inside.rights);
                value.map_err(|error| inside.refused(error))?
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
        inside.only(inside.header.is_some() || inside.body.is_some())?;
        let mode = named(&STANDARD, mode)?;
        let (limits, rights) = (inside.limits, inside.rights);
        if inside.is_body {
            let value = mode.decode_value(bytes, &limits, rights);
            let value = value.map_err(|error| inside.refused(error))?;
            inside.body = Some(Body::Value(value));
            return Ok(());
        }
        let mut decoder = mode.decoder(limits, rights);
        // SAFETY: they are there until the callback returns.
        for of in unsafe { &*inside.expected } {
            decoder.expect(of);
        }
        let event = decoder.decode(bytes);
        inside.whole = Some(event.map_err(|error| inside.refused(error))?);
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
