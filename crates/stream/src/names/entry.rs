//! What stands at a name: a stream, a service, or a binding to other names.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use milieu_transfer::Time;

use super::query::Query;
use super::refusal::{Refusal, Why, quoted};
use super::text::{BYTES_MAX, check_characters};

/// Most names that a binding may stand for.
pub(crate) const TARGETS_MAX: usize = 65_536;

/// Most of them that have a wildcard or a placeholder: each is looked for among
/// all names.
const WILDCARDS_MAX: usize = 64;

/// Most attributes that a service may have.
const ATTRIBUTES_MAX: usize = 64;

/// What stands at a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The events of a publisher.
    Stream(Publisher),
    /// Something that is reached by other means: a printer, a display.
    Service(Arc<Service>),
    /// Other names.
    Binding(Arc<Binding>),
}

/// Who publishes a stream. The number is the machine's; one that comes back
/// after a restart is another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Publisher(pub u64);

/// A service: what it is, where it is reached, and until when that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// In order of their names.
    attributes: Box<[(Box<str>, Box<str>)]>,
    endpoint: Box<str>,
    until: Time,
}

/// Other names that a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    targets: Box<[Query]>,
}

impl Service {
    /// A service that is reached at an endpoint (`ipp://printer-23/`), until its
    /// lease ends; [`Time::MAX`] is without end.
    ///
    /// # Errors
    /// If there are too many attributes, one twice or without a name, or if a
    /// text is too long or has control characters.
    pub fn new<'a>(
        endpoint: &str,
        attributes: impl IntoIterator<Item = (&'a str, &'a str)>,
        until: Time,
    ) -> Result<Service, Refusal> {
        check(endpoint)?;
        let mut sorted = BTreeMap::new();
        for (attribute, value) in attributes {
            check(attribute)?;
            check(value)?;
            if attribute.is_empty() {
                let help = "name each attribute";
                return Err(Refusal::new(Why::Text, "an attribute has no name", help));
            }
            if sorted
                .insert(Box::from(attribute), Box::from(value))
                .is_some()
            {
                let message = format!("the attribute {} is there twice", quoted(attribute));
                return Err(Refusal::new(Why::Text, message, "leave one of them out"));
            }
            if sorted.len() > ATTRIBUTES_MAX {
                let help = format!("use {ATTRIBUTES_MAX} at most");
                return Err(Refusal::new(
                    Why::Size,
                    "there are too many attributes",
                    help,
                ));
            }
        }
        Ok(Service {
            attributes: sorted.into_iter().collect(),
            endpoint: endpoint.into(),
            until,
        })
    }

    /// Where it is reached.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// When its lease ends.
    #[must_use]
    pub fn until(&self) -> Time {
        self.until
    }

    /// The value of an attribute.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&str> {
        let found = self
            .attributes
            .binary_search_by(|(known, _)| (**known).cmp(name));
        found.ok().map(|at| &*self.attributes[at].1)
    }

    /// The attributes with their values, in order.
    pub fn attributes(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.attributes
            .iter()
            .map(|(name, value)| (&**name, &**value))
    }

    pub(super) fn renew(&mut self, until: Time) {
        self.until = until;
    }
}

impl Binding {
    /// A name that stands for others: one, several, those that a wildcard covers,
    /// or those that follow a layer of whoever reads it (`/labs/%room%/devices`).
    ///
    /// # Errors
    /// If there are too many, or one asks for attributes.
    pub fn new(targets: impl IntoIterator<Item = Query>) -> Result<Binding, Refusal> {
        let mut all = Vec::new();
        for target in targets {
            if !target.conditions().is_empty() {
                let message = format!(
                    "the binding to {} asks for attributes",
                    quoted(target.as_str())
                );
                let help = format!(
                    "bind to `{}`, and ask where the name is read",
                    target.path()
                );
                return Err(Refusal::new(Why::Text, message, help));
            }
            if all.len() == TARGETS_MAX {
                let help = format!("bind to {TARGETS_MAX} names at most, or to a wildcard");
                return Err(Refusal::new(
                    Why::Size,
                    "the binding has too many names",
                    help,
                ));
            }
            all.push(target);
        }
        if all.iter().filter(|target| !target.is_exact()).count() > WILDCARDS_MAX {
            let message = "the binding has too many wildcards and placeholders";
            let help = format!("use {WILDCARDS_MAX} at most, and name the others");
            return Err(Refusal::new(Why::Size, message, help));
        }
        all.sort();
        all.dedup();
        Ok(Binding {
            targets: all.into(),
        })
    }

    /// What the name stands for, in order and each once.
    #[must_use]
    pub fn targets(&self) -> &[Query] {
        &self.targets
    }
}

impl Entry {
    /// `stream`, `service` or `binding`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Entry::Stream(_) => "stream",
            Entry::Service(_) => "service",
            Entry::Binding(_) => "binding",
        }
    }

    pub(super) fn is_binding(&self) -> bool {
        matches!(self, Entry::Binding(_))
    }

    /// Whether both say the same; until when a lease holds concerns nobody.
    pub(super) fn says_the_same(&self, other: &Entry) -> bool {
        match (self, other) {
            (Entry::Service(one), Entry::Service(other)) => {
                one.endpoint == other.endpoint && one.attributes == other.attributes
            }
            _ => self == other,
        }
    }
}

impl From<Publisher> for Entry {
    fn from(publisher: Publisher) -> Entry {
        Entry::Stream(publisher)
    }
}

impl From<Service> for Entry {
    fn from(service: Service) -> Entry {
        Entry::Service(Arc::new(service))
    }
}

impl From<Binding> for Entry {
    fn from(binding: Binding) -> Entry {
        Entry::Binding(Arc::new(binding))
    }
}

impl fmt::Display for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

fn check(text: &str) -> Result<(), Refusal> {
    if text.len() > BYTES_MAX {
        let message = format!("{} bytes are too many for a text of a service", text.len());
        let help = format!("use {BYTES_MAX} bytes at most");
        return Err(Refusal::new(Why::Size, message, help));
    }
    check_characters(text)
}
