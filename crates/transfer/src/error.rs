//! What can be wrong with an event or with its encoding.

use std::fmt;

/// Why an event could not be encoded or decoded.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not what the mode prescribes.
    Malformed {
        /// The name of the mode.
        mode: &'static str,
        /// Where, in bytes from the beginning; as near as the mode knows it.
        at: usize,
        /// What is wrong there.
        what: String,
    },
    /// The event is larger than the limit, in bytes or in values.
    TooLarge {
        /// What is allowed.
        limit: usize,
    },
    /// Lists and maps lie more deeply in each other than the limit.
    TooDeep {
        /// What is allowed.
        limit: usize,
    },
    /// A reference to a shared value that is not in the event.
    Dangling(u64),
    /// A value that holds itself, in a mode without identity.
    Cycle,
    /// The mode cannot say this.
    Unrepresentable {
        /// The name of the mode.
        mode: &'static str,
        /// What it cannot say.
        what: &'static str,
    },
    /// A private field was to be set without the right to.
    Private,
    /// The envelope of an event lacks a member, or it is not as it should be.
    Envelope {
        /// The member.
        member: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// The encoding is of a version that this program does not know.
    Version {
        /// The name of the mode.
        mode: &'static str,
        /// The version of the encoding.
        found: u32,
        /// The newest that is understood.
        known: u32,
    },
    /// The encoding names a schema that has not come: ask for it, or for a key frame.
    UnknownSchema(u64),
    /// Frames are missing between the last and this one: wait for a key frame, or ask for it.
    Lost {
        /// The sequence number of the event that this frame builds on; nothing
        /// where an opening is missing.
        needed: Option<u64>,
    },
    /// What is in the value does not fit the type, in the words of `serde`.
    Body(String),
    /// What a mode that is none of this library finds wrong.
    Mode {
        /// The name of the mode.
        mode: &'static str,
        /// What is wrong, in its words.
        what: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Malformed { mode, at, what } => {
                write!(f, "this is not {mode}: {what}, at byte {at}")
            }
            Error::TooLarge { limit } => write!(
                f,
                "the event is larger than {limit}; raise the limit if that is meant"
            ),
            Error::TooDeep { limit } => write!(
                f,
                "values lie more than {limit} levels deep; raise the limit if that is meant"
            ),
            Error::Dangling(number) => {
                write!(
                    f,
                    "there is a reference to shared value {number}, which is not there"
                )
            }
            Error::Cycle => f.write_str(
                "a value holds itself, which only data-stream and CBOR with identity can say",
            ),
            Error::Unrepresentable { mode, what } => {
                write!(f, "{mode} cannot say {what}; choose another mode")
            }
            Error::Private => {
                f.write_str("a private field would be set, which the sender has no right to do")
            }
            Error::Envelope { member, what } => {
                write!(f, "the event's `{member}` is wrong: {what}")
            }
            Error::Version { mode, found, known } => write!(
                f,
                "{mode} of version {found} has come, and only up to {known} is understood; \
                 agree on a version before sending"
            ),
            Error::UnknownSchema(id) => write!(
                f,
                "the schema {id:016x} is not known; ask the sender for it or for a key frame"
            ),
            Error::Lost { needed } => {
                match needed {
                    Some(needed) => {
                        write!(f, "event {needed} is missing, on which this one builds")?
                    }
                    None => f.write_str("the frame that opened the stream is missing")?,
                }
                f.write_str("; ask the sender for a key frame or wait for it")
            }
            Error::Body(what) => write!(f, "the value does not fit the type: {what}"),
            Error::Mode { mode, what } => write!(f, "{mode}: {what}"),
        }
    }
}

impl std::error::Error for Error {}

impl serde::ser::Error for Error {
    fn custom<T: fmt::Display>(what: T) -> Error {
        Error::Body(what.to_string())
    }
}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(what: T) -> Error {
        match what.to_string() {
            what if what == crate::private::DENIED => Error::Private,
            what => Error::Body(what),
        }
    }
}
