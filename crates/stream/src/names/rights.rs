//! Who may read and publish what.
//!
//! A right is a set of queries. What somebody asks for is never compared with a
//! right as a whole: `/**` is wider than every right, and yet asked for all the
//! time. Asking is answered with those names that both the query and the right
//! mean, and refused only if there can be none.
//!
//! Properties kept:
//! - every name is looked at by itself, the names that a binding leads to too:
//!   no wildcard, binding or layer value reaches past a right;
//! - a right has neither placeholders nor conditions: it does not depend on what
//!   the one says who asks.

use super::query::Query;
use super::refusal::{Refusal, Why, quoted};

/// A set of names, as queries that mean them.
///
/// ```
/// use milieu_stream::names::{Query, Scope};
///
/// let scope = Scope::parse(["/labs/005/**", "/weather/*"])?;
/// assert!(scope.allows("/labs/005/temperature"));
/// assert!(!scope.allows("/labs/006/temperature"));
/// // What is asked for may be wider; it is narrowed, not refused.
/// let query = Query::parse("/labs/**")?;
/// assert!(scope.meets(&query) && !scope.covers(&query));
/// # Ok::<(), milieu_stream::names::Refusal>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    queries: Box<[Query]>,
    /// Nothing has to be looked at.
    is_all: bool,
}

/// What somebody may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// Names whose events and entries may be read.
    pub read: Scope,
    /// Names at which may be published, and entries be put.
    pub publish: Scope,
    /// Names whose private fields may be read.
    pub private: Scope,
    /// Names whose private fields may be set by events from outside.
    pub set: Scope,
}

impl Rights {
    /// Everything is allowed.
    #[must_use]
    pub fn all() -> Rights {
        Rights {
            read: Scope::all(),
            publish: Scope::all(),
            private: Scope::all(),
            set: Scope::all(),
        }
    }
}

impl Scope {
    /// All names.
    #[must_use]
    pub fn all() -> Scope {
        let all = Query::parse("/**");
        Scope {
            queries: all.into_iter().collect(),
            is_all: true,
        }
    }

    /// No name.
    #[must_use]
    pub fn none() -> Scope {
        Scope::default()
    }

    /// The names that these queries mean.
    ///
    /// # Errors
    /// If one has placeholders or conditions.
    pub fn new(queries: impl IntoIterator<Item = Query>) -> Result<Scope, Refusal> {
        let mut all: Vec<Query> = queries.into_iter().collect();
        for query in &all {
            if query.is_contextual() || !query.conditions().is_empty() {
                let message = format!("{} is no right", quoted(query.as_str()));
                let help = "write it without placeholders and attributes";
                return Err(Refusal::new(Why::Text, message, help));
            }
        }
        all.sort();
        all.dedup();
        Ok(Scope {
            is_all: all.iter().any(|query| query.as_str() == "/**"),
            queries: all.into(),
        })
    }

    /// As [`new`](Scope::new), of texts.
    ///
    /// # Errors
    /// If a text is no query, and as for [`new`](Scope::new).
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Scope, Refusal> {
        let queries: Result<Vec<Query>, Refusal> = texts.into_iter().map(Query::parse).collect();
        Scope::new(queries?)
    }

    /// What it consists of, in order.
    #[must_use]
    pub fn queries(&self) -> &[Query] {
        &self.queries
    }

    /// Whether every name is in it.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.is_all
    }

    /// Whether a canonical name is in it.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        self.is_all || self.queries.iter().any(|query| query.matches(name))
    }

    /// Whether something that a query means may be in it. What a query means in
    /// fact are the names that it [matches](Query::matches) and that this
    /// [allows](Scope::allows).
    #[must_use]
    pub fn meets(&self, query: &Query) -> bool {
        self.is_all || self.queries.iter().any(|right| right.intersects(query))
    }

    /// Whether all that a query means is in it: no name has to be looked at by
    /// itself. A yes is certain.
    #[must_use]
    pub fn covers(&self, query: &Query) -> bool {
        self.is_all || self.queries.iter().any(|right| right.contains(query))
    }

    /// Refuses a query if nothing that it means is in here.
    ///
    /// # Errors
    /// [`Why::Right`], without saying which names there are.
    pub fn check(&self, query: &Query) -> Result<(), Refusal> {
        if self.meets(query) {
            return Ok(());
        }
        let message = format!("there is no right to {}", quoted(query.as_str()));
        let help = match &*self.queries {
            [] => "there is a right to nothing here; ask who grants it".to_owned(),
            [first, ..] => format!(
                "ask for a name below a right, such as {}",
                quoted(first.as_str())
            ),
        };
        Err(Refusal::new(Why::Right, message, help))
    }
}
