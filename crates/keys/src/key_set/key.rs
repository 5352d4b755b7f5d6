//! A key: a name in a namespace, its value, and where the value came from.

use super::order::compare;
use crate::name::Name;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Where a key belongs; the order is that of the cascade, the first one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Namespace {
    /// Of this process only: command line and environment variables.
    Proc,
    /// Of the user.
    User,
    /// Of the whole machine.
    System,
    /// Of the specification.
    Default,
}

impl Namespace {
    /// All namespaces in the order of the cascade.
    pub const ALL: [Namespace; 4] = [
        Namespace::Proc,
        Namespace::User,
        Namespace::System,
        Namespace::Default,
    ];

    /// `proc`, `user`, `system` or `default`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Namespace::Proc => "proc",
            Namespace::User => "user",
            Namespace::System => "system",
            Namespace::Default => "default",
        }
    }

    /// The namespace of that name, if there is one.
    pub fn parse(text: &str) -> Option<Namespace> {
        Self::ALL.into_iter().find(|n| n.as_str() == text)
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who gave a value; shared by all keys that came from the same place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SourceOf {
    /// A file, by its path.
    File(String),
    /// An option of the command line, as it was written: `--language`.
    Option(String),
    /// An argument of the command line, by the name the help gives it: `FILE`.
    Argument(String),
    /// An environment variable.
    Variable(String),
    /// The default that the specification of that name gives.
    Specification(String),
    /// An assignment by the running program.
    Program,
    /// A stream of events that the program has bound to the key, by its flow.
    Stream(String),
}

/// The provenance of a value, precise enough to go there and change it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Who gave the value.
    pub source: Arc<SourceOf>,
    /// The line in the source, from 1; 0 where there are no lines.
    pub line: u32,
}

impl Origin {
    /// An origin without a line.
    pub fn new(source: SourceOf) -> Origin {
        Origin {
            source: Arc::new(source),
            line: 0,
        }
    }

    /// A line of a source that several keys share.
    pub fn at(source: &Arc<SourceOf>, line: u32) -> Origin {
        Origin {
            source: Arc::clone(source),
            line,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.source {
            SourceOf::File(path) if self.line > 0 => write!(f, "{path}:{}", self.line),
            SourceOf::File(path) => f.write_str(path),
            SourceOf::Option(option) => write!(f, "option {option}"),
            SourceOf::Argument(argument) => write!(f, "argument {argument}"),
            SourceOf::Variable(variable) => write!(f, "variable {variable}"),
            SourceOf::Specification(_) => f.write_str("default of the specification"),
            SourceOf::Program => f.write_str("the program"),
            SourceOf::Stream(flow) => write!(f, "stream {flow}"),
        }
    }
}

/// A name in a namespace, its value, and where that value came from.
///
/// Name and value share one allocation, since a key is made once and its value
/// is replaced with the key.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// The name, directly followed by the value.
    text: Box<str>,
    name_bytes: u32,
    namespace: Namespace,
    origin: Origin,
}

impl Key {
    /// A key of that name and value.
    ///
    /// # Panics
    /// When the name is 4 GiB or longer.
    pub fn new(namespace: Namespace, name: &Name, value: &str, origin: Origin) -> Key {
        let name = name.as_str();
        let mut text = String::with_capacity(name.len() + value.len());
        text.push_str(name);
        text.push_str(value);
        Key {
            text: text.into_boxed_str(),
            name_bytes: u32::try_from(name.len()).expect("a name is shorter than 4 GiB"),
            namespace,
            origin,
        }
    }

    /// The namespace.
    pub fn namespace(&self) -> Namespace {
        self.namespace
    }

    /// The canonical name, without the namespace.
    pub fn name(&self) -> &str {
        &self.text[..self.name_bytes as usize]
    }

    /// The value as text.
    pub fn value(&self) -> &str {
        &self.text[self.name_bytes as usize..]
    }

    /// Where the value came from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// This key with another value from another origin.
    pub fn with_value(&self, value: &str, origin: Origin) -> Key {
        let mut text = String::with_capacity(self.name_bytes as usize + value.len());
        text.push_str(self.name());
        text.push_str(value);
        Key {
            text: text.into_boxed_str(),
            name_bytes: self.name_bytes,
            namespace: self.namespace,
            origin,
        }
    }

    /// This key in another namespace.
    pub fn in_namespace(mut self, namespace: Namespace) -> Key {
        self.namespace = namespace;
        self
    }

    /// By name, then in the order of the cascade.
    pub(super) fn order(&self, other: &Key) -> Ordering {
        compare(self.name(), other.name()).then(self.namespace.cmp(&other.namespace))
    }
}

impl fmt::Display for Key {
    /// `user:/sw/pi/language = "de" (user.ini:12)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Key {
            namespace, origin, ..
        } = self;
        write!(
            f,
            "{namespace}:{} = {:?} ({origin})",
            self.name(),
            self.value()
        )
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
