//! Queries: which names are meant.
//!
//! Properties kept:
//! - one canonical form: queries of equal text are equal, and reading the text
//!   again changes nothing; `**/**` is `**`, `**/*` is `*/**`, attributes are in
//!   order;
//! - a layer's value names one level, whatever text it is: it is never a
//!   wildcard, and adds no level;
//! - whether a name is meant, and whether two queries meet, costs levels × levels
//!   at most, whatever the wildcards are; nothing is tried again.

mod language;
mod parse;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use milieu_keys::name::levels;
use milieu_keys::pattern::LevelPattern;

pub(super) use language::{Language, Next};

use super::entry::{Entry, Service};
use super::layers::LayerValues;
use super::refusal::Refusal;
use super::text::{check_size, is_level};

/// Which names are meant.
///
/// | written | means |
/// |---|---|
/// | `/labs/005/temperature` | this name |
/// | `/labs/*/temperature` | any one level in this place |
/// | `/labs/**` | any number of levels, none included: `/labs` too |
/// | `/labs/%room%/devices` | the level is the layer's value, where the reader is |
/// | `/devices/**?colour&kind=printer` | services alone, with these attributes |
///
/// A `\` in an attribute takes the meaning from `&`, `=` or `\` behind it.
///
/// ```
/// use milieu_stream::names::Query;
///
/// let query = Query::parse("/labs/**/*/temperature")?;
/// assert_eq!(query.as_str(), "/labs/*/**/temperature");
/// assert!(query.matches("/labs/005/temperature"));
/// assert!(!query.matches("/labs/temperature"));
/// assert!(query.intersects(&Query::parse("/*/005/**")?));
/// assert!(Query::parse("/labs/**")?.contains(&query));
/// # Ok::<(), milieu_stream::names::Refusal>(())
/// ```
///
/// A clone is the same query, and costs nothing.
#[derive(Clone)]
pub struct Query(Arc<Parts>);

struct Parts {
    text: Box<str>,
    /// How much of the text is not about conditions.
    path: usize,
    language: Language,
    conditions: Box<[Condition]>,
}

/// What one level of a name must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// This text, escaped as in a name.
    Text(Box<str>),
    /// What placeholders make of it.
    Placeholder(LevelPattern),
    /// Anything.
    One,
    /// Any number of levels, whatever they are.
    Any,
}

/// What an attribute of a service must be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Condition {
    /// The name of the attribute.
    pub attribute: Box<str>,
    /// Its value; nothing: it is enough that there is one.
    pub value: Option<Box<str>>,
}

impl Query {
    /// Reads a query and makes its text canonical.
    ///
    /// # Errors
    /// If the text is no query; the refusal names the place and the way out.
    pub fn parse(text: &str) -> Result<Query, Refusal> {
        parse::query(text)
    }

    pub(super) fn new(levels: Vec<Level>, conditions: Vec<Condition>) -> Query {
        let language = Language::new(levels);
        let mut text = language.to_string();
        let path = text.len();
        parse::write_conditions(&conditions, &mut text);
        Query(Arc::new(Parts {
            text: text.into(),
            path,
            language,
            conditions: conditions.into(),
        }))
    }

    /// The canonical text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// The text without its conditions.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.0.text[..self.0.path]
    }

    /// What the attributes of services must be; none: streams are meant too.
    #[must_use]
    pub fn conditions(&self) -> &[Condition] {
        &self.0.conditions
    }

    /// Whether it names one name, without wildcards and placeholders.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        let mut levels = self.levels().iter();
        levels.all(|level| matches!(level, Level::Text(_)))
    }

    /// The layers whose values it needs, in order of appearance; one that stands
    /// there twice comes twice.
    pub fn layers(&self) -> impl Iterator<Item = &str> {
        self.levels().iter().flat_map(Level::layers)
    }

    /// Whether there is a placeholder.
    #[must_use]
    pub fn is_contextual(&self) -> bool {
        self.layers().next().is_some()
    }

    /// Whether a canonical name is meant. Conditions are not looked at. A
    /// placeholder stands for every value that its layer may have, each place by
    /// itself.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.0.language.matches(levels(name))
    }

    /// Whether a service has the attributes that are asked for.
    #[must_use]
    pub fn holds(&self, service: &Service) -> bool {
        self.0.conditions.iter().all(|condition| {
            let found = service.attribute(&condition.attribute);
            found.is_some_and(|found| {
                condition
                    .value
                    .as_deref()
                    .is_none_or(|value| value == found)
            })
        })
    }

    /// Whether there may be something that both mean. A no is certain; a yes may
    /// be wrong where a level has several placeholders, or several levels one.
    #[must_use]
    pub fn intersects(&self, other: &Query) -> bool {
        let apart = |one: &Condition, other: &Condition| {
            one.attribute == other.attribute
                && matches!((&one.value, &other.value), (Some(one), Some(other)) if one != other)
        };
        let apart = |one| other.0.conditions.iter().any(|other| apart(one, other));
        !self.0.conditions.iter().any(apart) && self.0.language.intersects(&other.0.language)
    }

    /// Whether it means everything that `other` means. A yes is certain; a no may
    /// be wrong where levels have several placeholders.
    #[must_use]
    pub fn contains(&self, other: &Query) -> bool {
        let implied = |one: &Condition| {
            let mut others = other.0.conditions.iter();
            others.any(|other| {
                one.attribute == other.attribute
                    && (one.value.is_none() || one.value == other.value)
            })
        };
        self.0.conditions.iter().all(implied) && self.0.language.contains(&other.0.language)
    }

    /// The query under the values of layers, without placeholders. Nothing if no
    /// entry could have such a name: a value may be any text, and a `*` in one is
    /// no wildcard.
    #[must_use]
    pub fn resolve(&self, layers: &LayerValues) -> Option<Query> {
        if !self.is_contextual() {
            return Some(self.clone());
        }
        let mut resolved = Vec::with_capacity(self.levels().len());
        for level in self.levels() {
            resolved.push(match level {
                Level::Placeholder(pattern) => {
                    let mut text = String::new();
                    pattern.resolve_into(|layer| layers.get(layer), &mut text);
                    if !is_level(&text) {
                        return None;
                    }
                    Level::Text(text.into())
                }
                level => level.clone(),
            });
        }
        let query = Query::new(resolved, self.0.conditions.to_vec());
        check_size(query.as_str()).is_ok().then_some(query)
    }

    pub(super) fn levels(&self) -> &[Level] {
        self.0.language.levels()
    }

    /// Whether an entry is meant, apart from its name: conditions are about
    /// services.
    pub(super) fn means(&self, entry: &Entry) -> bool {
        self.0.conditions.is_empty()
            || matches!(entry, Entry::Service(service) if self.holds(service))
    }

    pub(super) fn language(&self) -> &Language {
        &self.0.language
    }
}

impl Level {
    fn layers(&self) -> impl Iterator<Item = &str> {
        use milieu_keys::Piece;
        let pieces = match self {
            Level::Placeholder(pattern) => pattern.pieces(),
            _ => &[],
        };
        pieces.iter().filter_map(|piece| match piece {
            Piece::Layer(layer) => Some(&**layer),
            // Groups are refused when a query is read.
            Piece::Literal(_) | Piece::Group(_) => None,
        })
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0.text, f)
    }
}

impl PartialEq for Query {
    fn eq(&self, other: &Query) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for Query {}

impl PartialOrd for Query {
    fn partial_cmp(&self, other: &Query) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Query {
    fn cmp(&self, other: &Query) -> std::cmp::Ordering {
        self.0.text.cmp(&other.0.text)
    }
}

impl Hash for Query {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.text.hash(state);
    }
}

impl std::str::FromStr for Query {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Query, Refusal> {
        Query::parse(text)
    }
}

#[cfg(test)]
mod tests;
