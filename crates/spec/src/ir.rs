//! The intermediate representation: a specification that is known to be right.
//!
//! Every back end reads this and nothing else. What holds here:
//!
//! - the specification passed all checks, and every default is of its type;
//! - `values` stand in the order of the specification, and each is a member of
//!   exactly one branch of `root`;
//! - if the back end writes identifiers, siblings have different ones and no
//!   level is without one;
//! - nothing here is particular to one target: identifiers are neutral words,
//!   of which the target makes its own.

use milieu_diagnostics::Span;
use milieu_keys::{Options, Specification, Type, options::Entry};

/// One environment: a whole specification or one branch of it.
#[derive(Debug)]
pub struct Environment {
    /// What the specification is called: its file name, without folders.
    pub title: String,
    /// The text as it was written.
    pub text: String,
    /// The specification of just these values, and of all layers.
    pub specification: Specification,
    /// The branches. The root is the environment itself.
    pub root: Branch,
    /// All contextual values of the environment.
    pub values: Vec<Value>,
    /// Declared layers in the order of declaration, then those that only
    /// placeholders name, in the order of their first use.
    pub layers: Vec<Layer>,
    /// The command line and the environment variables.
    pub options: Options,
}

impl Environment {
    /// Whether the command line, and not just a variable, can set anything.
    #[must_use]
    pub fn has_command_line(&self) -> bool {
        let is_option = |entry: &Entry| entry.spelling().is_some() || entry.position().is_some();
        self.options.entries().iter().any(is_option) || self.options.commands().count() > 1
    }

    /// What the specification says about the whole.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        let program = self.options.commands().next();
        let program = program.and_then(|(_, command)| command.help());
        self.root.description.as_deref().or(program)
    }
}

/// A part of the name space: what the name starts with, and what is below.
#[derive(Debug)]
pub struct Branch {
    /// The levels without placeholders: `/sw/pi`. The root is `/`.
    pub name: String,
    /// The last level as a neutral identifier; empty for the root.
    pub identifier: String,
    /// What the specification says about the branch itself.
    pub description: Option<String>,
    /// What stands directly below, in the order of the specification.
    pub members: Vec<Member>,
}

/// What stands directly below a branch.
#[derive(Debug)]
pub enum Member {
    /// A branch of its own.
    Branch(Branch),
    /// A contextual value, by its position in [`Environment::values`].
    Value(usize),
}

/// One contextual value.
#[derive(Debug)]
pub struct Value {
    /// The name with placeholders.
    pub pattern: String,
    /// The neutral identifiers from the root of the environment to the value.
    pub identifiers: Vec<String>,
    /// The type of every value the key can have.
    pub type_: Type,
    /// Whether it is an array. Then all this is said of each of its elements.
    pub is_array: bool,
    /// The texts an enumeration allows, in their order; empty for other types.
    pub variants: Vec<String>,
    /// The value where nothing else says one; an array then has no elements.
    pub default: Literal,
    /// Whether programs are kept from assigning it.
    pub read_only: bool,
    /// Whether somebody has to give a value.
    pub required: bool,
    /// The layers that the name depends on, each once.
    pub layers: Vec<String>,
    /// All metadata as written.
    pub metadata: Vec<(String, String)>,
    /// How the command line and variables set it, if they do.
    pub entry: Option<Entry>,
    /// The section in the specification.
    pub span: Span,
}

impl Value {
    /// The text of one metadata entry.
    #[must_use]
    pub fn metadata(&self, name: &str) -> Option<&str> {
        entry(&self.metadata, name)
    }

    /// Whether nothing that people see may show a value.
    #[must_use]
    pub fn is_secret(&self) -> bool {
        self.metadata("secret").is_some_and(|text| {
            text.is_empty() || milieu_keys::rules::parse_boolean(text) == Some(true)
        })
    }

    /// The elements of a metadata array: `env/#0`, `env/#1`, … .
    pub fn metadata_array<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.metadata
            .iter()
            .filter(move |(key, _)| {
                key.strip_prefix(name)
                    .and_then(|rest| rest.strip_prefix("/#"))
                    .is_some_and(|index| index.trim_start_matches('_').parse::<u32>().is_ok())
            })
            .map(|(_, value)| value.as_str())
    }
}

/// A value of a known type.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `true` or `false`
    Boolean(bool),
    /// A signed integer of any width.
    Signed(i64),
    /// An unsigned integer of any width.
    Unsigned(u64),
    /// A float of any width.
    Float(f64),
    /// A string.
    Text(String),
    /// One of the value's variants, by its position.
    Variant(u32),
}

/// A layer that the specification declares or only uses.
#[derive(Debug)]
pub struct Layer {
    /// What the placeholder says between its percent signs.
    pub name: String,
    /// The name as a neutral identifier in camel case.
    pub identifier: String,
    /// What an activation brings along.
    pub shape: LayerShape,
    /// Whether a spawned task's context keeps the layer.
    pub inherited: bool,
    /// All metadata as written; empty for a layer that is only used.
    pub metadata: Vec<(String, String)>,
    /// The declaration, or the first section that uses the layer.
    pub span: Span,
}

impl Layer {
    /// The text of one metadata entry.
    #[must_use]
    pub fn metadata(&self, name: &str) -> Option<&str> {
        entry(&self.metadata, name)
    }
}

/// What an activation of a layer brings along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayerShape {
    /// Nothing: the layer is active or not.
    Flag,
    /// Any text.
    Text,
    /// A number of this type.
    Number(Type),
    /// One of these texts.
    Choice(Vec<String>),
}

fn entry<'a>(metadata: &'a [(String, String)], name: &str) -> Option<&'a str> {
    metadata
        .iter()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.as_str())
}
