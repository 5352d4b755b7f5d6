//! Choosing a mode that both sides know.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::cbor::Cbor;
use crate::mode::Mode;
use crate::stream::{DataStream, Delta};

/// A mode and its version, as they are negotiated: `delta/1`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Offer {
    /// The name of the mode.
    pub name: Arc<str>,
    /// The version of its encoding.
    pub version: u32,
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name, self.version)
    }
}

impl FromStr for Offer {
    type Err = OfferError;

    fn from_str(text: &str) -> Result<Offer, OfferError> {
        let (name, version) = text.split_once('/').ok_or(OfferError)?;
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(OfferError);
        }
        Ok(Offer {
            name: name.into(),
            version: version.parse().map_err(|_| OfferError)?,
        })
    }
}

/// A text that names no mode and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferError;

impl fmt::Display for OfferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a mode and its version, as `json/1`")
    }
}

impl std::error::Error for OfferError {}

/// Whether a text is a type and a subtype, as media types are without parameters
/// (RFC 9110, section 8.3.1).
#[must_use]
pub fn is_media_type(text: &str) -> bool {
    let is_token = |word: &str| {
        let is_in = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        !word.is_empty() && word.bytes().all(is_in)
    };
    let parts = text.split_once('/');
    parts.is_some_and(|(kind, of)| is_token(kind) && is_token(of))
}

/// The modes that a program knows, those it likes best first. A mode whose
/// encoding has several versions stands here once for each that it can write.
///
/// ```
/// # use milieu_transfer::{Modes, Offer};
/// let publisher = Modes::standard();
/// // What the subscriber sent, what it likes best first.
/// let wanted: Vec<Offer> = ["delta/9", "cbor/1", "json/1"]
///     .into_iter()
///     .map(str::parse)
///     .collect::<Result<_, _>>()?;
/// let mode = publisher.choose(&wanted).expect("a mode that both know");
/// assert_eq!(mode.name(), "cbor");
/// # Ok::<(), milieu_transfer::OfferError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Modes(Vec<Arc<dyn Mode>>);

impl Modes {
    /// The modes of this library, the smallest first.
    #[must_use]
    pub fn standard() -> Modes {
        Modes(vec![
            Arc::new(Delta::default()),
            Arc::new(DataStream::default()),
            Arc::new(Cbor::default()),
            #[cfg(feature = "messagepack")]
            Arc::new(crate::MessagePack),
            #[cfg(feature = "json")]
            Arc::new(crate::Json),
            #[cfg(feature = "xml")]
            Arc::new(crate::Xml),
        ])
    }

    /// Adds a mode, which is liked less than the others.
    pub fn add(&mut self, mode: Arc<dyn Mode>) {
        self.0.push(mode);
    }

    /// Puts a mode in the place of all that have its name; where there are none, this
    /// [adds](Modes::add) it.
    pub fn replace(&mut self, mode: Arc<dyn Mode>) {
        let name = mode.name().to_owned();
        let place = self.0.iter().position(|it| it.name() == name);
        self.0.retain(|it| it.name() != name);
        self.0.insert(place.unwrap_or(self.0.len()), mode);
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Mode>> {
        self.0.iter()
    }

    /// The mode of this name in its first place.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Arc<dyn Mode>> {
        self.0.iter().find(|mode| mode.name() == name)
    }

    /// What to offer the other side.
    #[must_use]
    pub fn offers(&self) -> Vec<Offer> {
        let offer = |mode: &Arc<dyn Mode>| Offer {
            name: mode.name().into(),
            version: mode.version(),
        };
        self.0.iter().map(offer).collect()
    }

    /// The first of what is wanted that is known here: the subscriber chooses.
    #[must_use]
    pub fn choose(&self, wanted: &[Offer]) -> Option<&Arc<dyn Mode>> {
        wanted.iter().find_map(|offer| {
            self.0
                .iter()
                .find(|mode| mode.name() == &*offer.name && mode.version() == offer.version)
        })
    }
}
