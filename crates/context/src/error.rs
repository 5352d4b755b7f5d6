//! What can go wrong, with the place and the way out.

use std::fmt;

use milieu_keys::{NameError, Origin, RuleError, Violation};

use crate::Kind;

/// A value that breaks the rule of its key.
#[derive(Clone)]
pub struct Invalid {
    /// The name of the key.
    pub name: String,
    /// The rule, the value and what to write instead.
    pub violation: Violation,
    /// Who said so; absent where the program assigned it.
    pub origin: Option<Origin>,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        write!(f, "{}: {}", self.name, self.violation)
    }
}

impl std::error::Error for Invalid {}

/// Why an assignment was refused. Nothing has changed.
#[derive(Clone)]
pub enum KeyError {
    /// The value breaks a rule of its key.
    Invalid(Invalid),
    /// The name is not one.
    Name(NameError),
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::Invalid(invalid) => invalid.fmt(f),
            KeyError::Name(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for KeyError {}

impl From<Invalid> for KeyError {
    fn from(invalid: Invalid) -> Self {
        KeyError::Invalid(invalid)
    }
}

/// Why a layer was not switched. Nothing has changed.
#[derive(Clone, PartialEq, Eq)]
pub enum SwitchError {
    /// The layer would depend on itself by way of contextual values.
    Cycle {
        /// The layer.
        layer: String,
        /// The names of the values that lead back to it.
        through: Vec<String>,
    },
    /// An action switched a layer whose switch had caused the action.
    ActionCycle {
        /// The layer.
        layer: String,
    },
}

impl fmt::Display for SwitchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SwitchError::Cycle { layer, through } => write!(
                f,
                "layer `{layer}` would depend on itself, by way of {}; give one of these values \
                 a name without the placeholder, or the layer a fixed value",
                through.join(", ")
            ),
            SwitchError::ActionCycle { layer } => write!(
                f,
                "an action switched layer `{layer}`, whose switch had caused the action; let the \
                 action set a contextual value instead, or leave the layer to its first cause"
            ),
        }
    }
}

impl std::error::Error for SwitchError {}

/// No environment of the coordinator has a value that depends on this layer.
#[derive(Clone, PartialEq, Eq)]
pub struct UnknownLayer {
    /// The layer.
    pub layer: String,
    /// The layers that are known, in the order of their names.
    pub known: Vec<String>,
}

impl fmt::Display for UnknownLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no layer `{}`", self.layer)?;
        let known = self.known.iter().map(String::as_str);
        match milieu_keys::rules::nearest(&self.layer, known) {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
            None if self.known.is_empty() => write!(f, ", and no other: no name has a placeholder"),
            None => write!(f, "; there are {}", self.known.join(", ")),
        }
    }
}

impl std::error::Error for UnknownLayer {}

/// Why an environment cannot be used with a coordinator.
#[derive(Clone)]
pub enum OpenError {
    /// A pattern of the environment is not a name.
    Pattern {
        /// The pattern.
        pattern: String,
        /// Why.
        error: NameError,
    },
    /// The metadata of a value is not understood.
    Metadata {
        /// The pattern.
        pattern: String,
        /// Why.
        error: RuleError,
    },
    /// The default breaks the value's own rules, or its type is not the field's.
    Default(Invalid),
    /// One key would have two types.
    Types {
        /// The pattern.
        pattern: String,
        /// The other one, known before.
        other: String,
    },
    /// A field cannot hold all that its key can be.
    Field {
        /// The pattern.
        pattern: String,
        /// The type of the key; `string` where none is stated.
        type_: String,
        /// How the field lies in memory.
        kind: Kind,
    },
    /// A value is an array and cannot be one, or is none and should be.
    Array {
        /// The pattern.
        pattern: String,
        /// Why, and what to do.
        problem: &'static str,
    },
    /// Keys that were loaded break the rules of the environment; all of them.
    Invalid(Vec<Invalid>),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Pattern { pattern, error } => write!(f, "{pattern}: {error}"),
            OpenError::Metadata { pattern, error } => write!(f, "{pattern}: {error}"),
            OpenError::Default(invalid) => write!(f, "default of {invalid}"),
            OpenError::Types { pattern, other } => write!(
                f,
                "{pattern} and {other} can both name one key but differ in type; give them one \
                 type, or rename one of them"
            ),
            OpenError::Field {
                pattern,
                type_,
                kind,
            } => write!(
                f,
                "{pattern}: a field of kind {kind:?} does not hold every {type_}; state the field's own \
                 type as `type`, or make the field that of the specification"
            ),
            OpenError::Array { pattern, problem } => write!(f, "{pattern}: {problem}"),
            OpenError::Invalid(all) => {
                for (i, invalid) in all.iter().enumerate() {
                    if i > 0 {
                        writeln!(f)?;
                    }
                    invalid.fmt(f)?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for OpenError {}

/// `main` prints the `Debug` of the error that it returns, so that is the text
/// for people as well.
macro_rules! debug_as_display {
    ($($error:ty),*) => {$(
        impl fmt::Debug for $error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}
debug_as_display!(Invalid, KeyError, SwitchError, UnknownLayer, OpenError);
