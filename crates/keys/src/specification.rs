//! The specification: which contextual values and layers a program has.
//!
//! ```text
//! ; Which language a page is in. A session may choose its own.
//! [/sw/pi/%session%/language]
//! type=enum
//! check/enum=en, de, fr
//! default=en
//! opt/long=language
//!
//! [/version]
//! type=boolean
//! readonly
//! opt=-V
//!
//! /hw/pi/pi/gpio/folder = /sys/class/gpio/
//!
//! [%session%]
//! type=string
//! description="One visitor; \
//!     it lives as long as the cookie."
//! ```
//!
//! # Grammar
//!
//! A specification is read line by line. Spaces and tabs at both ends of a line
//! and around `=` do not count; a byte order mark at the start and a carriage
//! return at the end of a line do not either.
//!
//! ```text
//! specification = { line }
//! line          = "" | comment | section | layer | key | metadata
//! comment       = ( ";" | "#" ) text           only at the start of a line
//! section       = "[" name "]"                 declares a contextual value
//! layer         = "[" "%" layer name "%" "]"   declares a layer
//! key           = name [ "=" value ]           declares a value and its default
//! metadata      = word [ "=" value ]           of the declaration above it
//! name          = "/" ...                      a pattern, see `Pattern`
//! value         = text | quoted
//! quoted        = '"' { character | escape } '"'
//! escape        = "\n" | "\r" | "\t" | '\"' | "\\" | "\u{" hexadecimal "}"
//! ```
//!
//! - A line that starts with `/` is a key, wherever it stands; the metadata
//!   below it are its own. `/a = b` is short for `[/a]` and `default=b`, so that
//!   the files of key sets that the paper prints are specifications too.
//! - Text without quotes is taken as it stands, backslashes included, so regular
//!   expressions need no care. Escapes are for quoted text. Quotes keep spaces
//!   at the ends.
//! - A value goes on in the next line after a backslash at the end of the line,
//!   in quotes or not; the line break and the blanks that begin the next line
//!   do not count. An even number of backslashes is just that.
//! - A word without value, such as `readonly`, has the empty text.
//! - In names, `\]`, `\=`, `\n`, `\r`, `\t` and `\u{...}` stand for characters
//!   that this format cannot have there, beside the escapes of names.
//!
//! # Metadata
//!
//! The metadata that mean something for values and checks are listed in
//! [`KNOWN`](crate::rules::KNOWN). Beyond them a specification knows:
//!
//! | metadata        | of     | meaning                                                        |
//! |-----------------|--------|----------------------------------------------------------------|
//! | `identifier`    | values | the last identifier in generated code, instead of the last level |
//! | `allow/overlap` | values | may share names with a value of another type                   |
//! | `allow/unused`  | layers | no name mentions the layer; code activates it for its actions  |
//! | `inherited`     | layers | forks of a context start with it active                        |
//! | `x/...`         | both   | the user's own, without a meaning here                         |
//!
//! A layer has `type` and checks too, of its value; without a type, or with
//! `boolean`, it has no value and is only active or not.
//!
//! A section with `removed` declares no value: it says what became of a key
//! that is no more, for the files that still have it.
//!
//! Properties kept:
//! - every text is read without a panic, in time proportional to its length,
//!   and reading goes on after an error, so that one run shows many;
//! - what is read is exported ([`Specification::to_ini`]) and read again as the
//!   same specification; comments are not part of it.

mod check;
mod escape;
mod export;
mod lexer;
mod parser;

use crate::name::NameError;
use crate::pattern::{LevelPattern, Pattern, Piece};
use milieu_diagnostics::{Diagnostic, Source, Span};

/// Contextual values and layers, as a specification declares them.
///
/// Two specifications are equal if they declare the same in the same order;
/// where in a text they do does not count.
///
/// ```
/// use milieu_diagnostics::{Source, render};
/// use milieu_keys::Specification;
///
/// let source = Source::new("station.ini", "[/sw/%session%/language]\ndefault=en\n");
/// let (specification, mut found) = Specification::parse(&source);
/// found.extend(specification.check(&source));
/// assert!(found.is_empty(), "{}", render(&source, &found, false));
/// assert_eq!(specification.keys[0].get("default"), Some("en"));
/// assert_eq!(specification.layers(), ["session"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Specification {
    /// The contextual values in the order of declaration.
    pub keys: Vec<KeySpec>,
    /// The declared layers in the order of declaration.
    pub layers: Vec<LayerSpec>,
}

/// The declaration of a contextual value.
#[derive(Clone, Debug)]
pub struct KeySpec {
    /// Its name with placeholders.
    pub pattern: Pattern,
    /// Its metadata in the order of declaration. A word without value has the
    /// empty text.
    pub metadata: Vec<(String, String)>,
    /// Where its name stands.
    pub span: Span,
    /// Where each of the metadata stands; empty if they come from no text.
    pub spans: Vec<EntrySpans>,
}

/// The declaration of a layer.
#[derive(Clone, Debug)]
pub struct LayerSpec {
    /// Its name, without percent signs.
    pub name: String,
    /// Its metadata, as those of a contextual value.
    pub metadata: Vec<(String, String)>,
    /// Where its name stands.
    pub span: Span,
    /// Where each of the metadata stands; empty if they come from no text.
    pub spans: Vec<EntrySpans>,
}

/// Where the two parts of a line of metadata stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntrySpans {
    /// The word before `=`.
    pub key: Span,
    /// The value, with its quotes; empty if there is none.
    pub value: Span,
}

impl Specification {
    /// Reads a specification. What is wrong with its form is reported; the rest
    /// of it is in the result all the same.
    #[must_use]
    pub fn parse(source: &Source) -> (Specification, Vec<Diagnostic>) {
        parser::parse(&source.text)
    }

    /// What is wrong or doubtful with its content, in the order of the text;
    /// `source` is where the specification was read from.
    #[must_use]
    pub fn check(&self, source: &Source) -> Vec<Diagnostic> {
        check::check(self, source)
    }

    /// The text of the specification: layers, then contextual values, in the
    /// order of declaration.
    #[must_use]
    pub fn to_ini(&self) -> String {
        export::to_ini(self)
    }

    /// The names of all layers: those declared, in order, then those that only
    /// placeholders mention, in the order of the first mention.
    #[must_use]
    pub fn layers(&self) -> Vec<&str> {
        let mut seen = std::collections::HashSet::new();
        let declared = self.layers.iter().map(|layer| layer.name.as_str());
        let used = self.keys.iter().flat_map(|key| key.pattern.layers());
        declared
            .chain(used)
            .filter(|name| seen.insert(*name))
            .collect()
    }

    /// The declaration of a contextual value by its canonical pattern.
    #[must_use]
    pub fn key(&self, pattern: &str) -> Option<&KeySpec> {
        self.keys.iter().find(|key| key.pattern.as_str() == pattern)
    }

    /// The declaration of a layer.
    #[must_use]
    pub fn layer(&self, name: &str) -> Option<&LayerSpec> {
        self.layers.iter().find(|layer| layer.name == name)
    }
}

impl KeySpec {
    /// A contextual value that no text declares.
    #[must_use]
    pub fn new(pattern: Pattern, metadata: Vec<(String, String)>) -> KeySpec {
        KeySpec {
            pattern,
            metadata,
            span: Span::default(),
            spans: Vec::new(),
        }
    }

    /// The value of a metadata key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        get(&self.metadata, key)
    }

    /// The metadata as [`Rules`](crate::rules::Rules) and run times take them.
    #[must_use]
    pub fn borrowed(&self) -> Vec<(&str, &str)> {
        borrowed(&self.metadata)
    }

    /// Whether the last level is `#`, which stands for the numbers of elements.
    #[must_use]
    pub fn is_array(&self) -> bool {
        let levels = self.pattern.level_patterns();
        levels.last().is_some_and(LevelPattern::is_number)
    }

    /// Whether a level before the last one is `#`, so that it stands for one of
    /// several values of each element.
    #[must_use]
    pub fn is_inside_array(&self) -> bool {
        let levels = self.pattern.level_patterns();
        levels.iter().rev().skip(1).any(LevelPattern::is_number)
    }

    /// The levels without placeholders, and without the number of an element.
    #[must_use]
    pub fn levels(&self) -> Vec<String> {
        let mut levels = self.pattern.identifiers();
        if self.is_array() {
            levels.pop();
        }
        levels
    }

    /// What the value is called in generated code, from the root: its
    /// [`levels`](Self::levels), where `identifier` replaces the last one.
    #[must_use]
    pub fn identifiers(&self) -> Vec<String> {
        let mut path = self.levels();
        if let Some(own) = self.get("identifier") {
            path.pop();
            path.push(own.to_owned());
        }
        path
    }

    /// Whether there is no such key any more: the section says what became of
    /// it, and declares no value.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.get("removed").is_some()
    }

    /// Whether there is nothing but text for people, so that the section may
    /// describe a branch instead of declaring a value.
    #[must_use]
    pub fn only_describes(&self) -> bool {
        self.metadata.iter().all(|(key, _)| {
            matches!(key.as_str(), "description" | "rationale" | "order") || key.starts_with("x/")
        })
    }
}

impl LayerSpec {
    /// A layer that no text declares.
    ///
    /// # Errors
    /// If no layer can have that name.
    pub fn new(name: &str, metadata: Vec<(String, String)>) -> Result<LayerSpec, NameError> {
        let pattern = Pattern::parse(&format!("/%{name}%"))?;
        let [Piece::Literal(_), Piece::Layer(name)] = pattern.pieces() else {
            return Err(NameError::new(
                0,
                name.len(),
                &format!("`{}` is not the name of one layer", name.escape_debug()),
                "use letters, digits, `_` and `-`",
            ));
        };
        Ok(LayerSpec {
            name: name.to_string(),
            metadata,
            span: Span::default(),
            spans: Vec::new(),
        })
    }

    /// The value of a metadata key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        get(&self.metadata, key)
    }

    /// What generated code calls the layer, if the specification says so: the
    /// metadata `layer/name`, or `identifier`, as it was written before.
    #[must_use]
    pub fn identifier(&self) -> Option<&str> {
        self.get("layer/name").or_else(|| self.get("identifier"))
    }

    /// The metadata as [`Rules`](crate::rules::Rules) and run times take them.
    #[must_use]
    pub fn borrowed(&self) -> Vec<(&str, &str)> {
        borrowed(&self.metadata)
    }
}

impl PartialEq for KeySpec {
    fn eq(&self, other: &KeySpec) -> bool {
        self.pattern == other.pattern && self.metadata == other.metadata
    }
}

impl Eq for KeySpec {}

impl PartialEq for LayerSpec {
    fn eq(&self, other: &LayerSpec) -> bool {
        self.name == other.name && self.metadata == other.metadata
    }
}

impl Eq for LayerSpec {}

fn get<'a>(metadata: &'a [(String, String)], wanted: &str) -> Option<&'a str> {
    let found = metadata.iter().find(|(key, _)| key == wanted);
    found.map(|(_, value)| value.as_str())
}

fn borrowed(metadata: &[(String, String)]) -> Vec<(&str, &str)> {
    metadata
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}

#[cfg(test)]
mod tests;
