//! What links say to each other on their control channel.
//!
//! A control frame is the version, a byte, and then messages until its end. A
//! message is its tag, a byte, and its members in the order in which they stand
//! here. Numbers are seven bits a byte, the lowest first; a text is its length in
//! bytes, and UTF-8.
//!
//! | tag | message | members |
//! |---|---|---|
//! | 1 | hello | origin (text), incarnation, count of modes, modes (texts as `delta/1`) |
//! | 2 | announce | number, name (text), whether it retains (byte, 0 or 1) |
//! | 3 | withdraw | number |
//! | 4 | want | number, channel, delivery, count of modes, modes |
//! | 5 | unwant | channel |
//! | 6 | ended | channel, why (byte) |
//!
//! A delivery is a byte, 0 latest, 1 drop the oldest, 2 drop the newest, 3 close,
//! and for all but the first a capacity. Questions are the version, a tag, and a
//! channel: 1 asks for a whole frame.

use std::num::NonZeroU32;
use std::sync::Arc;

use milieu_keys::Name;
use milieu_transfer::Offer;

use crate::names::{self, BYTES_MAX};
use crate::subscription::{Delivery, Overflow};

/// The version of what links say to each other.
pub const VERSION: u8 = 1;

/// Most modes that a machine may offer.
const MODES_MAX: usize = 64;

/// What a link says to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Who this is; before everything else.
    Hello {
        /// Of whom its events are.
        origin: Arc<str>,
        /// Which of its lives this is.
        incarnation: u64,
        /// The modes that it writes. Frames name theirs by its place here,
        /// counted from 1; 0 is an event as it is.
        modes: Vec<Offer>,
    },
    /// There is a name to which the other may subscribe.
    Announce {
        /// Its number, which no other name of this sender ever has.
        number: u64,
        /// The name.
        name: Name,
        /// Whether late subscribers get its last event.
        retains: bool,
    },
    /// There is no such name any more.
    Withdraw {
        /// The number of the name.
        number: u64,
    },
    /// The events of a name are wanted.
    Want {
        /// The number that the other has given the name.
        number: u64,
        /// On which channel they are wanted.
        channel: u32,
        /// Which of them, where they come faster than they are taken.
        delivery: Delivery,
        /// In which modes, what is liked best first.
        modes: Vec<Offer>,
    },
    /// What was wanted on this channel is wanted no more.
    Unwant {
        /// The channel.
        channel: u32,
    },
    /// What was wanted on this channel will not come.
    Ended {
        /// The channel.
        channel: u32,
        /// Why.
        why: Ended,
    },
}

/// Why the events of a name do not come any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ended {
    /// Both sides know no mode in common.
    Mode,
    /// There is no right to the name.
    Denied,
    /// More has come than the subscription holds, which was to end then.
    Overflow,
    /// The peer has as many edges as it may.
    Full,
}

/// What a link asks another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// The next frame on this channel is to say all: some have been lost.
    Whole(u32),
}

/// A frame that is none of the above, and where that shows, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub usize);

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Malformed(at) = self;
        write!(
            f,
            "the other machine has sent what is no message, at byte {at}; both may have to be of one version"
        )
    }
}

impl std::error::Error for Malformed {}

impl Ended {
    const ALL: [Ended; 4] = [Ended::Mode, Ended::Denied, Ended::Overflow, Ended::Full];
}

/// Reads a control frame.
///
/// # Errors
/// If anything in it is no message.
pub fn decode(bytes: &[u8]) -> Result<Vec<Message>, Malformed> {
    let mut reader = Reader { bytes, at: 0 };
    reader.version()?;
    let mut messages = Vec::new();
    while reader.at < bytes.len() {
        messages.push(reader.message()?);
    }
    Ok(messages)
}

/// Begins a control frame.
#[must_use]
pub fn begin() -> Vec<u8> {
    vec![VERSION]
}

/// Appends a message to a control frame.
pub fn encode(message: &Message, out: &mut Vec<u8>) {
    match message {
        Message::Hello {
            origin,
            incarnation,
            modes,
        } => {
            out.push(1);
            text(origin, out);
            number(*incarnation, out);
            offers(modes, out);
        }
        Message::Announce {
            number: of,
            name,
            retains,
        } => {
            out.push(2);
            number(*of, out);
            text(name.as_str(), out);
            out.push(u8::from(*retains));
        }
        Message::Withdraw { number: of } => {
            out.push(3);
            number(*of, out);
        }
        Message::Want {
            number: of,
            channel,
            delivery,
            modes,
        } => {
            out.push(4);
            number(*of, out);
            number(u64::from(*channel), out);
            write_delivery(*delivery, out);
            offers(modes, out);
        }
        Message::Unwant { channel } => {
            out.push(5);
            number(u64::from(*channel), out);
        }
        Message::Ended { channel, why } => {
            out.push(6);
            number(u64::from(*channel), out);
            out.push(*why as u8);
        }
    }
}

/// Reads a question.
///
/// # Errors
/// If it is none.
pub fn decode_question(bytes: &[u8]) -> Result<Question, Malformed> {
    let mut reader = Reader { bytes, at: 0 };
    reader.version()?;
    match reader.byte()? {
        1 => {
            let channel = reader.channel()?;
            match reader.at == bytes.len() {
                true => Ok(Question::Whole(channel)),
                false => reader.malformed(),
            }
        }
        _ => reader.malformed(),
    }
}

/// Writes a question.
#[must_use]
pub fn encode_question(question: Question) -> Vec<u8> {
    let Question::Whole(channel) = question;
    let mut out = vec![VERSION, 1];
    number(u64::from(channel), &mut out);
    out
}

fn number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn text(text: &str, out: &mut Vec<u8>) {
    number(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

fn offers(offers: &[Offer], out: &mut Vec<u8>) {
    let offers = &offers[..offers.len().min(MODES_MAX)];
    number(offers.len() as u64, out);
    for offer in offers {
        text(&offer.to_string(), out);
    }
}

fn write_delivery(delivery: Delivery, out: &mut Vec<u8>) {
    let (kind, capacity) = match delivery {
        Delivery::Latest => return out.push(0),
        Delivery::Every { capacity, overflow } => match overflow {
            Overflow::DropOldest => (1, capacity),
            // Nobody holds up publishers of other machines.
            Overflow::DropNewest | Overflow::Refuse => (2, capacity),
            Overflow::Close => (3, capacity),
        },
    };
    out.push(kind);
    number(u64::from(capacity.get()), out);
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn malformed<T>(&self) -> Result<T, Malformed> {
        Err(Malformed(self.at))
    }

    fn version(&mut self) -> Result<(), Malformed> {
        match self.bytes.first() {
            Some(&VERSION) => {
                self.at = 1;
                Ok(())
            }
            _ => self.malformed(),
        }
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        let Some(byte) = self.bytes.get(self.at) else {
            return self.malformed();
        };
        self.at += 1;
        Ok(*byte)
    }

    /// A number in its shortest form: there is no other.
    fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits || (byte == 0 && shift > 0) {
                return self.malformed();
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        self.malformed()
    }

    fn channel(&mut self) -> Result<u32, Malformed> {
        let number = self.number()?;
        number.try_into().or_else(|_| self.malformed())
    }

    fn text(&mut self) -> Result<&str, Malformed> {
        let length = self.number()?;
        let rest = &self.bytes[self.at..];
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > rest.len().min(BYTES_MAX) {
            return self.malformed();
        }
        let Ok(text) = std::str::from_utf8(&rest[..length]) else {
            return self.malformed();
        };
        self.at += length;
        Ok(text)
    }

    fn offers(&mut self) -> Result<Vec<Offer>, Malformed> {
        let count = self.number()?;
        if count > MODES_MAX as u64 {
            return self.malformed();
        }
        let mut offers = Vec::new();
        for _ in 0..count {
            let at = self.at;
            let text = self.text()?;
            let offer: Offer = text.parse().map_err(|_| Malformed(at))?;
            // What would be written otherwise says something else elsewhere.
            if offer.to_string() != text {
                return Err(Malformed(at));
            }
            offers.push(offer);
        }
        Ok(offers)
    }

    fn delivery(&mut self) -> Result<Delivery, Malformed> {
        let overflow = match self.byte()? {
            0 => return Ok(Delivery::Latest),
            1 => Overflow::DropOldest,
            2 => Overflow::DropNewest,
            3 => Overflow::Close,
            _ => return self.malformed(),
        };
        match NonZeroU32::new(self.channel()?) {
            Some(capacity) => Ok(Delivery::Every { capacity, overflow }),
            None => self.malformed(),
        }
    }

    fn message(&mut self) -> Result<Message, Malformed> {
        Ok(match self.byte()? {
            1 => Message::Hello {
                origin: self.text()?.into(),
                incarnation: self.number()?,
                modes: self.offers()?,
            },
            2 => Message::Announce {
                number: self.number()?,
                name: {
                    let at = self.at;
                    names::name(self.text()?).map_err(|_| Malformed(at))?
                },
                retains: match self.byte()? {
                    0 => false,
                    1 => true,
                    _ => return self.malformed(),
                },
            },
            3 => Message::Withdraw {
                number: self.number()?,
            },
            4 => Message::Want {
                number: self.number()?,
                channel: self.channel()?,
                delivery: self.delivery()?,
                modes: self.offers()?,
            },
            5 => Message::Unwant {
                channel: self.channel()?,
            },
            6 => Message::Ended {
                channel: self.channel()?,
                why: {
                    let why = usize::from(self.byte()?);
                    let known = Ended::ALL.get(why).copied();
                    known.map_or_else(|| self.malformed(), Ok)?
                },
            },
            _ => return self.malformed(),
        })
    }
}
