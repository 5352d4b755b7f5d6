//! A specification as the store uses it: checks of values, defaults, other
//! names to look up.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use milieu_diagnostics::{Diagnostic, Source, Span};
use milieu_keys::rules::{FileKind, FileSystem, array_index, nearest};
use milieu_keys::{
    Key, KeySpec, Name, Namespace, Origin, Pattern, Rules, SourceOf, Specification, Violation,
};

use crate::error::StoreError;
use crate::ini;
use crate::merge::Change;
use crate::read;

/// A specification without errors. Cloning it is cheap.
#[derive(Clone)]
pub struct Schema {
    inner: Arc<Inner>,
    files: Option<Arc<dyn FileSystem + Send + Sync>>,
}

struct Inner {
    source: Source,
    origin: Arc<SourceOf>,
    /// Each declaration with its rules.
    keys: Vec<(KeySpec, Rules)>,
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
        let missing = || StoreError::io("read the specification", path, rustix::io::Errno::NOENT);
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
        let mut keys = Vec::new();
        for key in specification.keys {
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

    fn entry(&self, name: &str) -> Option<&(KeySpec, Rules)> {
        let declared = |name: &str| {
            let matching = self
                .inner
                .keys
                .iter()
                .filter(|(key, _)| key.pattern.matches(name));
            matching.min_by_key(|(key, _)| key.pattern.layers().len())
        };
        declared(name).or_else(|| {
            // An element, `/hosts/#2`, is declared by its array, `/hosts/#`.
            let (array, _) = element(name)?;
            declared(&format!("{array}/#"))
        })
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
        let refused = changes.iter().filter_map(|change| {
            let name = change.name.as_str();
            let shown = ini::encode_name(name);
            let Some(value) = change.value.as_deref() else {
                return self.needed(name);
            };
            if self.entry(name).is_none() {
                let diagnostic =
                    Diagnostic::error(format!("the specification has no key `{shown}`"));
                let known = self.inner.keys.iter().map(|(key, _)| key.pattern.as_str());
                return Some(match nearest(name, known) {
                    Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                    None => diagnostic.help("declare it there, or mend the name"),
                });
            }
            let (key, violation) = self.violation(name, value)?;
            Some(
                Diagnostic::error(format!("`{shown}`: {violation}"))
                    .label(place_of(key, &violation), "by this rule"),
            )
        });
        let diagnostics: Vec<Diagnostic> = refused.collect();
        if diagnostics.is_empty() {
            return Ok(());
        }
        Err(StoreError::Refused {
            source: self.inner.source.clone(),
            diagnostics,
        })
    }

    /// Whether a key has a value that the specification allows. A key that it
    /// does not declare may have any.
    ///
    /// # Errors
    /// [`StoreError::Refused`], with the place of the value and of the rule.
    pub fn check(&self, key: &Key) -> Result<(), StoreError> {
        let Some((spec, violation)) = self.violation(key.name(), key.value()) else {
            return Ok(());
        };
        let rule = self
            .inner
            .source
            .line_column(place_of(spec, &violation).start)
            .0;
        let diagnostic =
            Diagnostic::error(format!("`{}`: {violation}", ini::encode_name(key.name())))
                .note(format!("the rule is in {}:{rule}", self.inner.source.name));
        let (source, span) =
            place_in_file(key).unwrap_or((Source::new(key.origin().to_string(), ""), None));
        let diagnostic = match span {
            Some(span) => diagnostic.label(span, "this value"),
            None => diagnostic,
        };
        Err(StoreError::Refused {
            source,
            diagnostics: vec![diagnostic],
        })
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
        let layers = key
            .pattern
            .level_patterns()
            .iter()
            .zip(name.levels())
            .filter_map(|(pattern, level)| {
                let value = milieu_keys::name::unescape(level).into_owned();
                Some((
                    pattern.layer()?,
                    if level == "%" { String::new() } else { value },
                ))
            });
        let layers: Vec<(&str, String)> = layers.collect();
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

/// Where the value of a key stands in its file, as that is now. No place if
/// the file has changed since it was read.
fn place_in_file(key: &Key) -> Option<(Source, Option<Span>)> {
    let SourceOf::File(path) = &*key.origin().source else {
        return None;
    };
    let text = read::text(Path::new(path)).ok()??.text;
    let (document, _) = ini::Document::parse(&text);
    let entry = document
        .keys()
        .find(|entry| entry.name.as_str() == key.name() && entry.value == key.value());
    let span = entry.and_then(|entry| entry.span);
    Some((Source::new(path.clone(), text), span))
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
