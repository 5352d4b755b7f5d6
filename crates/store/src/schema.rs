//! A specification as the store uses it: checks of values, defaults, other
//! names to look up.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use milieu_diagnostics::{Diagnostic, Source, Span};
use milieu_keys::rules::{FileKind, FileSystem, array_index};
use milieu_keys::{
    Key, KeySpec, Migration, Name, Namespace, Origin, Pattern, Rules, Secrets, SourceOf,
    Specification, Violation,
};

use crate::error::{READ_SPECIFICATION, StoreError};
use crate::format::{self, Entry};
use crate::ini;
use crate::merge::Change;
use crate::read;
use crate::redact::Redacted;

/// A specification without errors. Cloning it is cheap.
#[derive(Clone)]
pub struct Schema {
    inner: Arc<Inner>,
    files: Option<Arc<dyn FileSystem + Send + Sync>>,
}

struct Inner {
    source: Source,
    origin: Arc<SourceOf>,
    /// Each declaration with its rules, without those of keys that are no more.
    keys: Vec<(KeySpec, Rules)>,
    old_names: Migration,
    secrets: Secrets,
    /// What [`Schema::check_all`] does. By a pointer, so that programs which never
    /// read a specification have nothing of it.
    check_all: fn(&Schema, &[&Change]) -> Vec<Diagnostic>,
}

/// The files of this machine, for rules such as `check/path=device`.
#[derive(Debug, Clone)]
pub struct HostFiles {
    /// What `~` stands for.
    pub home: Option<PathBuf>,
}

impl Schema {
    /// Reads a specification from a file.
    ///
    /// # Errors
    /// A file that cannot be read, and every error in the specification.
    pub fn read(path: &Path) -> Result<Schema, StoreError> {
        let missing = || StoreError::io(READ_SPECIFICATION, path, rustix::io::Errno::NOENT);
        let content = read::text(path)?.ok_or_else(missing)?;
        Schema::parse(Source::new(path.display().to_string(), content.text))
    }

    /// Reads a specification from a text.
    ///
    /// # Errors
    /// Every error in it.
    pub fn parse(source: Source) -> Result<Schema, StoreError> {
        let (specification, mut diagnostics) = Specification::parse(&source);
        diagnostics.extend(specification.check(&source));
        diagnostics.retain(Diagnostic::is_error);
        let (old_names, secrets) = before(&specification, &mut diagnostics);
        let mut keys = Vec::new();
        for key in specification
            .keys
            .into_iter()
            .filter(|key| !key.is_removed())
        {
            match Rules::from_metadata(&key.borrowed()) {
                Ok(rules) => keys.push((key, rules)),
                Err(_) if !diagnostics.is_empty() => {}
                Err(error) => diagnostics
                    .push(Diagnostic::error(error.to_string()).label(key.span, "of this key")),
            }
        }
        if !diagnostics.is_empty() {
            return Err(StoreError::Text {
                source,
                diagnostics,
            });
        }
        let origin = Arc::new(SourceOf::Specification(source.name.clone()));
        Ok(Schema {
            inner: Arc::new(Inner {
                source,
                origin,
                keys,
                old_names,
                secrets,
                check_all: Schema::refused,
            }),
            files: None,
        })
    }

    /// Has rules about paths look at files from now on. Without, only the form
    /// of a path is checked.
    pub fn with_files(mut self, files: impl FileSystem + Send + Sync + 'static) -> Schema {
        self.files = Some(Arc::new(files));
        self
    }

    /// The declaration that a name belongs to. If several match it is the one
    /// with the fewest placeholders.
    pub fn find(&self, name: &str) -> Option<&KeySpec> {
        self.entry(name).map(|(key, _)| key)
    }

    /// The type of a key's values.
    pub(crate) fn type_of(&self, name: &str) -> Option<milieu_keys::Type> {
        self.entry(name).map(|(_, rules)| *rules.type_())
    }

    fn entry(&self, name: &str) -> Option<&(KeySpec, Rules)> {
        let declared = |is_it: &dyn Fn(&Pattern) -> bool| {
            let keys = self.inner.keys.iter();
            keys.filter(|(key, _)| is_it(&key.pattern))
                .min_by_key(|(key, _)| key.pattern.layers().len())
        };
        declared(&|pattern| pattern.matches(name))
            // An element, `/hosts/#2`, is declared by its array, `/hosts/#`.
            .or_else(|| declared(&|pattern| pattern.declares(name)))
    }

    /// The text of the specification.
    pub fn source(&self) -> &Source {
        &self.inner.source
    }

    /// The declarations of keys that somebody has to give a value and that none
    /// of these names is of.
    pub(crate) fn missing<'n>(
        &self,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> impl Iterator<Item = &KeySpec> {
        let required = self.inner.keys.iter().filter(|(_, rules)| rules.required());
        let given = move |pattern: &Pattern| names.clone().any(|name| pattern.declares(name));
        required
            .filter(move |(key, _)| !given(&key.pattern))
            .map(|(key, _)| key)
    }

    /// What the specification says about names of before.
    pub fn old_names(&self) -> &Migration {
        &self.inner.old_names
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.inner.secrets
    }

    /// The patterns of all declarations.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.inner.keys.iter().map(|(key, _)| &key.pattern)
    }

    fn violation(&self, name: &str, value: &str) -> Option<(&KeySpec, Violation)> {
        let (key, rules) = self.entry(name)?;
        if let (Some((_, index)), (_, Some(most))) = (element(name), rules.array()) {
            if index >= most as usize {
                let violation = Violation {
                    rule: format!("array/max={most}"),
                    value: name.into(),
                    message: format!(
                        "is one too many for an array of at most {most}; change an element that \
                         is there, or raise `array/max`"
                    ),
                };
                return Some((key, violation));
            }
        }
        let checked = match &self.files {
            Some(files) => rules.check_with(value, &**files),
            None => rules.check(value),
        };
        checked.err().map(|violation| (key, violation))
    }

    /// Why an element of an array cannot be removed.
    fn needed(&self, name: &str) -> Option<Diagnostic> {
        let (_, index) = element(name)?;
        let (key, rules) = self.entry(name)?;
        let least = rules.array().0.filter(|least| index < *least as usize)?;
        let shown = ini::encode_name(name);
        let message = format!("`{shown}` cannot be removed: the array needs {least} or more");
        let rule = key
            .metadata
            .iter()
            .position(|(word, _)| word == "array/min");
        let span = rule
            .and_then(|at| key.spans.get(at))
            .map_or(key.span, |spans| spans.key);
        let diagnostic = Diagnostic::error(message).label(span, "by this rule");
        Some(diagnostic.help("remove elements from the end of the array, or lower `array/min`"))
    }

    /// Whether a commit may write these changes.
    pub(crate) fn check_all(&self, changes: &[&Change]) -> Result<(), StoreError> {
        let diagnostics = (self.inner.check_all)(self, changes);
        if diagnostics.is_empty() {
            return Ok(());
        }
        Err(StoreError::Refused {
            source: self.inner.source.clone(),
            diagnostics,
        })
    }

    fn refused(&self, changes: &[&Change]) -> Vec<Diagnostic> {
        let refused = changes.iter().filter_map(|change| {
            let name = change.name.as_str();
            let shown = ini::encode_name(name);
            let Some(value) = change.value.as_deref() else {
                return self.needed(name);
            };
            if self.entry(name).is_none() {
                return Some(self.undeclared(name));
            }
            let (key, violation) = self.violation(name, value)?;
            Some(
                Diagnostic::error(format!("`{shown}`: {violation}"))
                    .label(place_of(key, &violation), "by this rule"),
            )
        });
        refused.collect()
    }

    /// Why a key that is not declared cannot be written.
    fn undeclared(&self, name: &str) -> Diagnostic {
        let shown = ini::encode_name(name);
        let today: Vec<String> = self
            .old_names()
            .names(name)
            .iter()
            .map(|name| format!("`{}`", ini::encode_name(name.as_str())))
            .collect();
        if !today.is_empty() {
            let today = today.join(" and ");
            return Diagnostic::error(format!("`{shown}` is called {today} today"))
                .code("renamed")
                .help(format!("write {today} instead"));
        }
        if let Some(reason) = self.old_names().removed(name) {
            return Diagnostic::error(format!("there is no key `{shown}` any more: {reason}"))
                .code("removed");
        }
        let diagnostic = Diagnostic::error(format!("the specification has no key `{shown}`"));
        match self.suggestion(name) {
            Some(near) => diagnostic.help(format!("did you mean `{}`?", ini::encode_name(&near))),
            None => diagnostic.help("declare it there, or mend the name"),
        }
    }

    /// What is wrong with a value, and where the rule stands; without the place
    /// of the value.
    pub(crate) fn refusal(&self, name: &str, value: &str) -> Option<Diagnostic> {
        let (key, violation) = self.violation(name, value)?;
        let source = &self.inner.source;
        let rule = source.line_column(place_of(key, &violation).start).0;
        let message = format!("`{}`: {violation}", ini::encode_name(name));
        Some(Diagnostic::error(message).note(format!("the rule is in {}:{rule}", source.name)))
    }

    /// Whether a key has a value that the specification allows. A key that it
    /// does not declare may have any.
    ///
    /// # Errors
    /// [`StoreError::Refused`], with the place of the value and of the rule.
    pub fn check(&self, key: &Key) -> Result<(), StoreError> {
        let Some(diagnostic) = self.refusal(key.name(), key.value()) else {
            return Ok(());
        };
        let place = self.place_in_file(key);
        let (source, span) = place.unwrap_or((Source::new(key.origin().to_string(), ""), None));
        let diagnostic = match span {
            Some(span) => diagnostic.label(span, "this value"),
            None => diagnostic,
        };
        Err(StoreError::Refused {
            source,
            diagnostics: vec![diagnostic],
        })
    }

    /// Where the value of a key stands in its file, as that is now without its
    /// secrets; under its old name perhaps. No place if the file has changed
    /// since it was read.
    fn place_in_file(&self, key: &Key) -> Option<(Source, Option<Span>)> {
        let SourceOf::File(path) = &*key.origin().source else {
            return None;
        };
        let text = read::text(Path::new(path)).ok()??.text;
        let (document, _) = format::of_path(Path::new(path))
            .unwrap_or(&ini::Ini)
            .parse(&text);
        let is_it = |entry: &Entry<'_>| {
            let (name, same) = (entry.name.as_str(), entry.value == key.value());
            // In a mounted file it lacks the mount point.
            let is_mounted = || same && key.name().ends_with(name);
            match name == key.name() {
                true => same,
                false => {
                    entry.line == key.origin().line && (self.was(name, key.name()) || is_mounted())
                }
            }
        };
        let span = document.keys().find(is_it).and_then(|entry| entry.span);
        let secrets = document
            .keys()
            .filter(|entry| self.hides(entry.name.as_str()));
        let source = Source::new(path.clone(), &*text);
        let redacted = Redacted::new(&source, secrets.filter_map(|entry| entry.span));
        let span = span.map(|span| redacted.place(span));
        Some((redacted.source, span))
    }

    /// Whether a name is an old one of another.
    pub(crate) fn was(&self, old: &str, today: &str) -> bool {
        let names = self.old_names().names(old);
        names.iter().any(|name| name.as_str() == today)
    }

    /// What the origins of all defaults share.
    pub(crate) fn origin(&self) -> &Arc<SourceOf> {
        &self.inner.origin
    }

    /// The defaults as keys, under the names that they have without any layer.
    pub fn defaults(&self) -> impl Iterator<Item = Key> {
        let default =
            |(key, _): &(KeySpec, Rules)| self.default(key, &key.pattern.resolve(|_| None));
        self.inner.keys.iter().filter_map(default)
    }

    /// The default of a name, which may be contextual.
    pub(crate) fn default_of(&self, name: &Name) -> Option<Key> {
        self.default(self.find(name.as_str())?, name)
    }

    fn default(&self, key: &KeySpec, name: &Name) -> Option<Key> {
        let at = key
            .metadata
            .iter()
            .position(|(word, _)| word == "default")?;
        let span = key.spans.get(at).map_or(key.span, |spans| spans.key);
        let line = u32::try_from(self.inner.source.line_column(span.start).0).unwrap_or(0);
        let origin = Origin::at(&self.inner.origin, line);
        Some(Key::new(
            Namespace::Default,
            name,
            &key.metadata[at].1,
            origin,
        ))
    }

    /// The options and variables by which a program can be told the value when it starts.
    pub(crate) fn inputs(&self, name: &Name) -> Vec<SourceOf> {
        let metadata = self
            .find(name.as_str())
            .map_or(&[][..], |key| &key.metadata);
        let input = |(key, value): &(String, String)| {
            let mut levels = key.split('/').filter(|level| !level.starts_with('#'));
            match (levels.next(), levels.next()) {
                (Some("env"), None) => Some(SourceOf::Variable(value.clone())),
                (Some("opt"), None) => Some(SourceOf::Option(format!(
                    "-{}",
                    value.trim_start_matches('-')
                ))),
                (Some("opt"), Some("long")) => Some(SourceOf::Option(format!(
                    "--{}",
                    value.trim_start_matches('-')
                ))),
                _ => None,
            }
        };
        metadata.iter().filter_map(input).collect()
    }

    /// The names that the metadata `override/#` or `fallback/#` of a key give,
    /// under the layers that the key's own name shows.
    pub(crate) fn links(&self, name: &Name, word: &str) -> Vec<Name> {
        let Some(key) = self.find(name.as_str()) else {
            return Vec::new();
        };
        let layers = key.pattern.layers_of(name.as_str()).unwrap_or_default();
        let value_of = |layer: &str| {
            layers
                .iter()
                .find(|(id, _)| *id == layer)
                .map(|(_, value)| value.as_str())
        };
        let links = key.metadata.iter().filter(|(key, _)| {
            key.strip_prefix(word)
                .is_some_and(|rest| rest.starts_with("/#"))
        });
        links
            .filter_map(|(_, link)| Some(Pattern::parse(link).ok()?.resolve(value_of)))
            .collect()
    }
}

/// What the specification says about names of before, and about secrets.
fn before(
    specification: &Specification,
    diagnostics: &mut Vec<Diagnostic>,
) -> (Migration, Secrets) {
    let keys = &specification.keys;
    let metadata: Vec<Vec<(&str, &str)>> = keys.iter().map(KeySpec::borrowed).collect();
    let pairs = || {
        let keys = keys.iter().zip(&metadata);
        keys.map(|(key, metadata)| (key.pattern.as_str(), &metadata[..]))
    };
    let old_names = Migration::new(pairs()).unwrap_or_else(|error| {
        // The check has found it, unless the two disagree.
        if diagnostics.is_empty() {
            diagnostics.push(Diagnostic::error(error.to_string()));
        }
        Migration::default()
    });
    (old_names, Secrets::new(pairs()))
}

/// Where a rule stands in the specification, or else the key.
fn place_of(key: &KeySpec, violation: &Violation) -> Span {
    let word = violation.rule.split('=').next().unwrap_or_default();
    let of_word = |exact: bool| {
        key.metadata.iter().position(|(key, value)| match exact {
            true => violation.rule == format!("{key}={value}"),
            false => key == word || key.starts_with(&format!("{word}/")),
        })
    };
    let entry = of_word(true)
        .or_else(|| of_word(false))
        .and_then(|at| key.spans.get(at));
    entry.map_or(key.span, |spans| {
        spans.key.to(if spans.value.is_empty() {
            spans.key
        } else {
            spans.value
        })
    })
}

impl FileSystem for HostFiles {
    fn kind(&self, path: &str) -> Option<FileKind> {
        let path = match path.strip_prefix('~') {
            Some(rest) => self.home.as_ref()?.join(rest.trim_start_matches('/')),
            None => PathBuf::from(path),
        };
        use std::os::unix::fs::FileTypeExt;
        let kind = std::fs::metadata(path).ok()?.file_type();
        Some(if kind.is_file() {
            FileKind::File
        } else if kind.is_dir() {
            FileKind::Directory
        } else if kind.is_block_device() || kind.is_char_device() {
            FileKind::Device
        } else {
            FileKind::Other
        })
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.files.is_some();
        f.debug_struct("Schema")
            .field("source", &self.inner.source.name)
            .field("files", &files)
            .finish()
    }
}

/// The array and the index of a name such as `/hosts/#2` or `/hosts/#_10`.
fn element(name: &str) -> Option<(&str, usize)> {
    let (array, level) = milieu_keys::split(name);
    Some((array, array_index(level)?))
}
