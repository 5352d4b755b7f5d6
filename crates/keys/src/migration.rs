//! Keys that were renamed, moved, deprecated or removed, and files that still
//! have them.
//!
//! The metadata `was/#` of a key lists the names that it had, `removed` says
//! that there is no such key any more, and `deprecated` that it should not be
//! used. A [`Migration`] is made of the metadata of all keys; it turns what a
//! file says into what it means today ([`Migration::apply`]), and says of every
//! key that it found what became of it ([`Notice`]).
//!
//! ```text
//!   [/sw/pi/%session%/language]          /pi/lang/anna = de
//!   was/#0=/pi/lang/%session%       ──▶  /sw/pi/anna/language = de
//! ```
//!
//! Properties kept:
//! - within one file the name of today wins, then come the old names in the
//!   order of `was/#`; which file wins over which other one does not change;
//! - a value under an old name is converted and then keeps the rules of the
//!   key, or it is refused: an error, and the key stays as it was;
//! - a key of today knows the file and line of the old one;
//! - a name that a key has today is never an old one;
//! - what was migrated once is not changed by migrating it again.
//!
//! Without the feature `checks` there are no names of before, and nothing is said
//! of keys that are deprecated or no more.

mod notice;
mod rename;

pub use notice::{Fate, Notice, Outcome, Target};

use crate::key_set::{Key, KeySet, Namespace};
use crate::name::Name;
use crate::options::DeclarationError;
use crate::pattern::Pattern;
use crate::rules::{Metadata, OldName, RuleError, Rules};
use crate::secrets::Secrets;
pub(crate) use rename::lacking;
use rename::{renamed, start};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// What a specification says about the names of before.
///
/// ```
/// use milieu_keys::{Key, KeySet, Migration, Name, Namespace, Origin, SourceOf};
///
/// let metadata = [("was/#0", "/pi/lang/%session%"), ("was/#0/convert", "german -> de")];
/// let migration = Migration::new([("/sw/pi/%session%/language", &metadata[..])])?;
///
/// let name = Name::parse("/pi/lang/anna").unwrap();
/// let origin = Origin::new(SourceOf::File("pi.ini".into()));
/// let old = Key::new(Namespace::User, &name, "german", origin);
/// let (keys, notices) = migration.apply(KeySet::from_iter([old]));
///
/// let key = keys.lookup("/sw/pi/anna/language").unwrap();
/// assert_eq!(key.to_string(), "user:/sw/pi/anna/language = \"de\" (pi.ini)");
/// let message = notices[0].diagnostics()[0].message.clone();
/// assert_eq!(message, "`/pi/lang/anna` is now `/sw/pi/anna/language`");
/// # Ok::<(), milieu_keys::options::DeclarationError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Migration {
    renames: Vec<Rename>,
    removed: Vec<(Pattern, String)>,
    deprecated: Vec<(Pattern, String)>,
    /// All patterns of today, if there are old ones to tell them from.
    declared: Vec<Pattern>,
    secrets: Secrets,
}

/// Renames, by their numbers, and the names of today that they lead to.
type Targets = Vec<(usize, Name)>;

/// An old name of one key.
#[derive(Clone)]
struct Rename {
    old: Pattern,
    /// What every old name begins with: most names do not.
    start: Box<str>,
    today: Pattern,
    rules: Rules,
    /// Which of the key's old names it is; the least counts first.
    index: usize,
}

impl Rename {
    fn rule(&self) -> &OldName {
        &self.rules.old_names()[self.index]
    }
}

impl fmt::Debug for Rename {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.old, self.today)
    }
}

impl Migration {
    /// Reads the metadata of all keys of a program.
    ///
    /// # Errors
    /// Metadata that cannot be meant: an old name from which today's cannot be
    /// made.
    pub fn new<'a>(
        keys: impl IntoIterator<Item = (&'a str, Metadata<'a>)>,
    ) -> Result<Migration, DeclarationError> {
        let keys: Vec<(&str, Metadata<'_>)> = keys.into_iter().collect();
        let mut migration = Migration {
            secrets: Secrets::new(keys.iter().copied()),
            ..Migration::default()
        };
        if cfg!(not(feature = "checks")) {
            return Ok(migration);
        }
        for (pattern, metadata) in keys {
            migration.declare(pattern, metadata).map_err(|error| {
                let pattern = pattern.to_owned();
                DeclarationError { pattern, error }
            })?;
        }
        if migration.renames.is_empty() && migration.removed.is_empty() {
            migration.declared = Vec::new();
        }
        Ok(migration)
    }

    fn declare(&mut self, pattern: &str, metadata: Metadata<'_>) -> Result<(), RuleError> {
        let today = parse("", pattern)?;
        let get = |word: &str| metadata.iter().find(|(key, _)| *key == word);
        let rules = match metadata.iter().any(|(key, _)| key.starts_with("was/")) {
            true => Rules::from_metadata(metadata)?,
            false => Rules::unrestricted(),
        };
        let old = |index: usize| {
            let key = format!("was/#{index}");
            let pattern = parse(&key, rules.old_names()[index].name())?;
            Ok::<_, RuleError>((key, pattern))
        };
        if let Some((_, reason)) = get("removed") {
            for index in 0..rules.old_names().len() {
                self.removed.push((old(index)?.1, (*reason).to_owned()));
            }
            self.removed.push((today, (*reason).to_owned()));
            return Ok(());
        }
        if let Some((_, advice)) = get("deprecated") {
            self.deprecated.push((today.clone(), (*advice).to_owned()));
        }
        for index in 0..rules.old_names().len() {
            let (key, old) = old(index)?;
            readable(&key, &old, &today)?;
            self.renames.push(Rename {
                start: start(&old),
                old,
                today: today.clone(),
                rules: rules.clone(),
                index,
            });
        }
        self.declared.push(today);
        Ok(())
    }

    /// Whether no key was ever renamed, removed or deprecated.
    pub fn is_empty(&self) -> bool {
        cfg!(not(feature = "checks"))
            || self.renames.is_empty() && self.removed.is_empty() && self.deprecated.is_empty()
    }

    /// What the key of an old name is called today, perhaps several keys;
    /// nothing for a name of today and for one that never was.
    pub fn names(&self, name: &str) -> Vec<Name> {
        self.targets(name)
            .into_iter()
            .map(|(_, name)| name)
            .collect()
    }

    /// Why there is no key of that name any more.
    pub fn removed(&self, name: &str) -> Option<&str> {
        let reason = said_of(&self.removed, name)?;
        (!self.is_declared(name)).then_some(reason)
    }

    /// Why the key should not be used, and what to use instead.
    pub fn deprecated(&self, name: &str) -> Option<&str> {
        said_of(&self.deprecated, name)
    }

    /// The keys as they are today, and what there is to say about those of
    /// before: in the namespaces of files, for others have no names of before.
    ///
    /// The keys are those of one file. Of several that are one key set already,
    /// the name of today wins in a whole namespace, since no key set knows
    /// which file comes first.
    pub fn apply(&self, mut keys: KeySet) -> (KeySet, Vec<Notice>) {
        if self.is_empty() {
            return (keys, Vec::new());
        }
        let mut old = Vec::new();
        let mut notices = Vec::new();
        let in_file = |key: &&Key| matches!(key.namespace(), Namespace::User | Namespace::System);
        for key in keys.iter().filter(in_file) {
            let targets = self.targets(key.name());
            if !targets.is_empty() {
                old.push((key.clone(), targets));
            } else if let Some(reason) = self.removed(key.name()) {
                notices.push(self.notice(key, Fate::Removed(reason.to_owned())));
            } else if let Some(advice) = self.deprecated(key.name()) {
                notices.push(self.notice(key, Fate::Deprecated(advice.to_owned())));
            }
        }
        let mut gone: HashSet<(Namespace, &str)> = HashSet::new();
        for ((key, _), targets) in old.iter().zip(self.rename(&mut keys, &old)) {
            if targets.iter().all(Target::is_settled) {
                gone.insert((key.namespace(), key.name()));
            }
            notices.push(self.notice(key, Fate::Renamed(targets)));
        }
        if !gone.is_empty() {
            keys.retain(|key| !gone.contains(&(key.namespace(), key.name())));
        }
        notices.sort_by(|a, b| a.place().cmp(&b.place()));
        (keys, notices)
    }

    /// Gives keys of today the values of old ones, and says for each of these
    /// what its targets have of it.
    fn rename(&self, keys: &mut KeySet, old: &[(Key, Targets)]) -> Vec<Vec<Target>> {
        // The old names that count first come first, whatever keys they are of.
        let mut claims: Vec<(usize, usize, usize)> = Vec::new();
        for (at, (_, targets)) in old.iter().enumerate() {
            let index = |&(rename, _): &(usize, Name)| self.renames[rename].index;
            claims.extend(
                targets
                    .iter()
                    .map(index)
                    .enumerate()
                    .map(|(t, i)| (i, at, t)),
            );
        }
        claims.sort_unstable();
        let mut refused: HashMap<(Namespace, Name), Key> = HashMap::new();
        let mut results: Vec<Vec<Target>> = old.iter().map(|_| Vec::new()).collect();
        for (_, at, target) in claims {
            let (key, targets) = &old[at];
            let (rename, name) = &targets[target];
            let place = (key.namespace(), name.clone());
            let preferred = keys.get(key.namespace(), name.as_str());
            // A value that is refused is no reason to take another one.
            let outcome = match preferred.or_else(|| refused.get(&place)) {
                Some(other) => Outcome::Outranked(other.clone()),
                None => self.renames[*rename].outcome(key, name),
            };
            match &outcome {
                Outcome::Taken(today) => drop(keys.insert(today.clone())),
                Outcome::Refused(_) => drop(refused.insert(place, key.clone())),
                Outcome::Outranked(_) => {}
            }
            let name = name.clone();
            results[at].push(Target { name, outcome });
        }
        results
    }

    fn notice(&self, key: &Key, fate: Fate) -> Notice {
        Notice {
            key: key.clone(),
            fate,
            secret: self.secrets.contains(key.name()),
        }
    }

    /// The renames that an old name is subject to, with the names of today.
    fn targets(&self, name: &str) -> Targets {
        let renames = self.renames.iter().enumerate();
        let targets: Targets = renames
            .filter(|(_, rename)| name.starts_with(&*rename.start))
            .filter_map(|(at, rename)| {
                let reading = rename.old.read(name)?;
                Some((at, renamed(&reading, &rename.today)))
            })
            .collect();
        if targets.is_empty() || self.is_declared(name) {
            return Vec::new();
        }
        targets
    }

    fn is_declared(&self, name: &str) -> bool {
        self.declared.iter().any(|pattern| pattern.declares(name))
    }
}

impl Rename {
    fn outcome(&self, key: &Key, name: &Name) -> Outcome {
        match self.rules.convert(self.rule(), key.value()) {
            Ok(value) => Outcome::Taken(Key::new(
                key.namespace(),
                name,
                &value,
                key.origin().clone(),
            )),
            Err(violation) => Outcome::Refused(violation),
        }
    }
}

fn said_of<'t>(texts: &'t [(Pattern, String)], name: &str) -> Option<&'t str> {
    let found = texts.iter().find(|(pattern, _)| pattern.declares(name));
    found.map(|(_, text)| text.as_str())
}

fn parse(key: &str, pattern: &str) -> Result<Pattern, RuleError> {
    Pattern::parse(pattern).map_err(|error| RuleError::new(key, pattern, error.message, error.help))
}

/// Whether of every old name of a key that of today can be made.
pub(crate) fn readable(key: &str, old: &Pattern, today: &Pattern) -> Result<(), RuleError> {
    let wrong = |message: String, help: String| RuleError::new(key, old.as_str(), message, help);
    if !old.is_readable() {
        return Err(wrong(
            "a level has several placeholders, and what each stood for cannot be told".to_owned(),
            "list the names that files have, with the values written out".to_owned(),
        ));
    }
    if let Some(layer) = lacking(old, today) {
        return Err(wrong(
            format!("`{today}` has no `%{layer}%`, so that two old keys could become one"),
            format!(
                "write the value of the layer that is meant, or `%` for none, instead of `%{layer}%`"
            ),
        ));
    }
    let indices = |pattern: &Pattern| {
        let levels = pattern.level_patterns().iter();
        levels.filter(|level| level.literal() == Some("#")).count()
    };
    if indices(old) != indices(today) {
        return Err(wrong(
            "an array was renamed to a single key, or a single key to an array".to_owned(),
            "give both names as many levels `#`".to_owned(),
        ));
    }
    Ok(())
}
