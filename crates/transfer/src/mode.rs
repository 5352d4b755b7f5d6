//! Transfer modes: how events travel.

use std::fmt::Debug;
use std::sync::Arc;

use crate::emit::{Emit, Said, Sink};
use crate::envelope;
use crate::error::Error;
use crate::event::Event;
use crate::kind::Type;
use crate::limits::Limits;
use crate::private::Rights;
use crate::schema::Schema;
use crate::value::Value;

/// A transfer mode, which a subscriber may choose.
///
/// Source: A. Abram White, *Performance and Interoperability in Solar*,
/// section 8.2.
pub trait Mode: Debug + Send + Sync {
    /// The name by which it is chosen, as `json`.
    fn name(&self) -> &'static str;

    /// The newest version of its encoding; every earlier one is understood too.
    fn version(&self) -> u32;

    /// The media type of an encoded event, as `application/json`.
    fn media_type(&self) -> &'static str;

    /// Encodes the events of a stream, one frame each, for receivers with these
    /// rights. Some modes say in a frame only what is new since the frames before.
    fn encoder(&self, rights: Rights) -> Box<dyn Encode>;

    /// Decodes the frames of one encoder, whose sender has these rights.
    fn decoder(&self, limits: Limits, rights: Rights) -> Box<dyn Decode>;

    /// Appends a value alone.
    ///
    /// # Errors
    /// [`Error::TooDeep`], and what this mode cannot say.
    fn encode_value(&self, value: &Value, rights: Rights, out: &mut Vec<u8>) -> Result<(), Error>;

    /// Decodes a value alone, whose sender has these rights.
    ///
    /// # Errors
    /// Whatever is wrong with the bytes.
    fn decode_value(&self, bytes: &[u8], limits: &Limits, rights: Rights) -> Result<Value, Error>;

    /// One event for a receiver who knows nothing yet.
    ///
    /// # Errors
    /// As [`Encode::encode`].
    fn encode(&self, event: &Event, rights: Rights) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        self.encoder(rights).encode(event, &mut out)?;
        Ok(out)
    }

    /// One event that stands alone.
    ///
    /// # Errors
    /// As [`Decode::decode`].
    fn decode(&self, bytes: &[u8], limits: &Limits, rights: Rights) -> Result<Event, Error> {
        self.decoder(*limits, rights).decode(bytes)
    }
}

/// A mode that several have.
impl Mode for Arc<dyn Mode> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn version(&self) -> u32 {
        (**self).version()
    }

    fn media_type(&self) -> &'static str {
        (**self).media_type()
    }

    fn encoder(&self, rights: Rights) -> Box<dyn Encode> {
        (**self).encoder(rights)
    }

    fn decoder(&self, limits: Limits, rights: Rights) -> Box<dyn Decode> {
        (**self).decoder(limits, rights)
    }

    fn encode_value(&self, value: &Value, rights: Rights, out: &mut Vec<u8>) -> Result<(), Error> {
        (**self).encode_value(value, rights, out)
    }

    fn decode_value(&self, bytes: &[u8], limits: &Limits, rights: Rights) -> Result<Value, Error> {
        (**self).decode_value(bytes, limits, rights)
    }
}

/// Encodes the events of a stream.
pub trait Encode: Send {
    /// Appends the frame of the next event. After an error nothing was appended
    /// and the event counts as not sent.
    ///
    /// # Errors
    /// [`Error::TooDeep`], [`Error::Unrepresentable`], [`Error::Cycle`],
    /// [`Error::Dangling`], and what the type of the body finds wrong.
    fn encode(&mut self, event: &Event, out: &mut Vec<u8>) -> Result<(), Error>;

    /// Appends a frame that says all of the event that was encoded last, for
    /// receivers that do not have the frames before it. Those that have them
    /// lose nothing by it, and both go on with the same next frame.
    ///
    /// # Errors
    /// As [`Encode::encode`].
    fn key_frame(&mut self, event: &Event, out: &mut Vec<u8>) -> Result<(), Error> {
        self.encode(event, out)
    }

    /// Whether a frame can be understood without those before it.
    fn is_stateless(&self) -> bool {
        true
    }
}

/// Decodes the frames of one encoder.
pub trait Decode: Send {
    /// The event of a frame.
    ///
    /// # Errors
    /// Whatever is wrong with the bytes; [`Error::Lost`] and
    /// [`Error::UnknownSchema`] where frames are missing that this one builds on:
    /// a key frame mends that.
    fn decode(&mut self, frame: &[u8]) -> Result<Event, Error>;

    /// From now on events whose schema is that of this type get bodies of it; of
    /// those of a type that extends it, `get` finds what they extend beside the
    /// value. Without that, and in modes that name everything, bodies are values, and
    /// [`Kind::adopt`](crate::Kind::adopt) makes types of them.
    fn expect(&mut self, _of: &'static Type) {}

    /// From now on this schema is known, as if it had come with the events.
    fn learn(&mut self, _schema: Schema) {}
}

/// A mode whose frames stand alone and name everything.
pub(crate) trait Notation: Debug + Send + Sync + Clone + 'static {
    const NAME: &'static str;
    const VERSION: u32;
    const MEDIA_TYPE: &'static str;

    /// Lets something be said to a sink that appends it. Some call the whole by
    /// a name.
    fn write(
        &self,
        out: &mut Vec<u8>,
        whole: &'static str,
        say: &mut dyn FnMut(&mut dyn Sink) -> Said,
    ) -> Said;

    /// Reads everything that these bytes say.
    fn parse(&self, bytes: &[u8], limits: &Limits) -> Result<Value, Error>;

    /// Appends something, or nothing after an error.
    fn append(
        &self,
        out: &mut Vec<u8>,
        whole: &'static str,
        say: &mut dyn FnMut(&mut dyn Sink) -> Said,
    ) -> Said {
        let start = out.len();
        let result = self.write(out, whole, say);
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    fn encode_event(&self, event: &Event, rights: Rights, out: &mut Vec<u8>) -> Said {
        match self.append(out, "event", &mut |sink| envelope::say(event, rights, sink)) {
            // Modes without identity write out what is shared.
            Err(Error::Cycle) => {
                let value = event.value(rights)?.expanded()?;
                let event = Event::of_value(event.header().clone(), value);
                self.append(out, "event", &mut |sink| {
                    envelope::say(&event, rights, sink)
                })
            }
            result => result,
        }
    }

    fn encode_any(&self, value: &Value, rights: Rights, out: &mut Vec<u8>) -> Said {
        match self.append(out, "value", &mut |sink| say(value, rights, sink)) {
            Err(Error::Cycle) => {
                let value = value.readable(rights).expanded()?;
                self.append(out, "value", &mut |sink| say(&value, rights, sink))
            }
            result => result,
        }
    }

    fn decode_any(&self, bytes: &[u8], limits: &Limits, rights: Rights) -> Result<Value, Error> {
        if bytes.len() > limits.bytes {
            let limit = limits.bytes;
            return Err(Error::TooLarge { limit });
        }
        let value = self.parse(bytes, limits)?;
        if rights.may_set().is_none() && value.has_private() {
            return Err(Error::Private);
        }
        Ok(value)
    }
}

/// What is not said at all is null.
pub(crate) fn say(value: &impl serde::Serialize, rights: Rights, sink: &mut dyn Sink) -> Said {
    if value.serialize(Emit::new(sink, rights))? {
        Ok(())
    } else {
        sink.null()
    }
}

/// The encoder and the decoder of a notation.
pub(crate) struct Plain<N> {
    pub(crate) notation: N,
    pub(crate) limits: Limits,
    pub(crate) rights: Rights,
}

impl<N: Notation> Encode for Plain<N> {
    fn encode(&mut self, event: &Event, out: &mut Vec<u8>) -> Result<(), Error> {
        self.notation.encode_event(event, self.rights, out)
    }
}

impl<N: Notation> Decode for Plain<N> {
    fn decode(&mut self, frame: &[u8]) -> Result<Event, Error> {
        let value = self.notation.decode_any(frame, &self.limits, self.rights)?;
        envelope::read(&value)
    }
}

/// Makes a mode of a notation.
macro_rules! mode_of_notation {
    ($type:ty) => {
        impl $crate::mode::Mode for $type {
            fn name(&self) -> &'static str {
                <$type as $crate::mode::Notation>::NAME
            }

            fn version(&self) -> u32 {
                <$type as $crate::mode::Notation>::VERSION
            }

            fn media_type(&self) -> &'static str {
                <$type as $crate::mode::Notation>::MEDIA_TYPE
            }

            fn encoder(&self, rights: $crate::Rights) -> Box<dyn $crate::mode::Encode> {
                Box::new($crate::mode::Plain {
                    notation: self.clone(),
                    limits: $crate::Limits::default(),
                    rights,
                })
            }

            fn decoder(
                &self,
                limits: $crate::Limits,
                rights: $crate::Rights,
            ) -> Box<dyn $crate::mode::Decode> {
                Box::new($crate::mode::Plain {
                    notation: self.clone(),
                    limits,
                    rights,
                })
            }

            fn encode_value(
                &self,
                value: &$crate::Value,
                rights: $crate::Rights,
                out: &mut Vec<u8>,
            ) -> Result<(), $crate::Error> {
                $crate::mode::Notation::encode_any(self, value, rights, out)
            }

            fn decode_value(
                &self,
                bytes: &[u8],
                limits: &$crate::Limits,
                rights: $crate::Rights,
            ) -> Result<$crate::Value, $crate::Error> {
                $crate::mode::Notation::decode_any(self, bytes, limits, rights)
            }
        }
    };
}

pub(crate) use mode_of_notation;
