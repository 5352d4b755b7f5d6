//! What each verb does.

use milieu_keys::{Key, Name};
use milieu_store::{Change, Commit, Store, Strategy, ini};

use super::json::Object;
use super::{Explain, Failure, Get, Ls, Rm, Scope, Set, name, show, suggest};
use crate::terminal;

impl Get {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let name = name(&self.name)?;
        let store = self.scope.open()?;
        let Some(key) = store.lookup(&name) else {
            return Err(suggest::not_found(&name, &store));
        };
        if let Some(schema) = store.schema() {
            schema.check(&key)?;
        }
        let line = if self.scope.json {
            Object::of(&key).line()
        } else {
            format!("{}\n", key.value())
        };
        Ok(terminal::print(&line)?)
    }
}

impl Set {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let name = name(&self.name)?;
        let mut store = self.scope.open()?;
        let change = Change::set(name.clone(), self.value.as_str());
        let commit = commit(&mut store, &self.scope, &[change])?;
        if !self.verbose {
            return Ok(());
        }
        let key = store
            .keys()
            .get(self.scope.namespace(), name.as_str())
            .expect("it was just set");
        // A key that has the value already is not written again.
        let before = match commit.replaced.first() {
            Some((_, before)) => before.as_deref(),
            None => Some(key.value()),
        };
        let line = if self.scope.json {
            Object::of(key).optional("replaced", before).line()
        } else {
            let (name, value) = (ini::encode_name(key.name()), ini::encode_value(key.value()));
            let before = before.map_or_else(
                || "new".to_owned(),
                |before| format!("was {}", ini::encode_value(before)),
            );
            format!("{name} = {value}  ({before}; {})\n", show::origin(key))
        };
        Ok(terminal::print(&line)?)
    }
}

impl Rm {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let names: Vec<Name> = self
            .names
            .iter()
            .map(|text| name(text))
            .collect::<Result<_, _>>()?;
        let mut store = self.scope.open()?;
        let namespace = self.scope.namespace();
        let mut doomed: Vec<Key> = Vec::new();
        for name in &names {
            let below = store
                .keys()
                .below(name.as_str())
                .filter(|key| key.namespace() == namespace);
            let found: Vec<&Key> = below
                .filter(|key| self.recursive || key.name() == name.as_str())
                .collect();
            if found.is_empty() {
                return Err(suggest::not_found_in(namespace, name, &store));
            }
            let new: Vec<Key> = found
                .into_iter()
                .filter(|key| !doomed.contains(key))
                .cloned()
                .collect();
            doomed.extend(new);
        }
        let changes: Vec<Change> = doomed
            .iter()
            .map(|key| {
                Change::remove(Name::parse(key.name()).expect("the name of a key is a name"))
            })
            .collect();
        commit(&mut store, &self.scope, &changes)?;
        if !self.verbose {
            return Ok(());
        }
        let lines = doomed.iter().map(|key| {
            if self.scope.json {
                Object::of(key).line()
            } else {
                show::long(key)
            }
        });
        Ok(terminal::print(&lines.collect::<String>())?)
    }
}

impl Ls {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let prefix = self
            .prefix
            .as_deref()
            .map_or_else(|| Ok(Name::root()), name)?;
        let store = self.scope.open()?;
        let mut lines = String::new();
        let mut last = "";
        for key in store.keys().below(prefix.as_str()) {
            // Keys of one name stand together, the winner first.
            if std::mem::replace(&mut last, key.name()) == key.name() {
                continue;
            }
            if self.scope.json {
                lines.push_str(&Object::of(key).line());
            } else if self.long {
                lines.push_str(&show::long(key));
            } else {
                lines.push_str(&ini::encode_name(key.name()));
                lines.push('\n');
            }
        }
        if lines.is_empty() && self.prefix.is_some() {
            return Err(suggest::not_found(&prefix, &store));
        }
        terminal::print(&lines)?;
        Ok(())
    }
}

impl Explain {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let name = name(&self.name)?;
        let store = self.scope.open()?;
        let explanation = store.explain(&name);
        let text = if self.scope.json {
            show::explanation_json(&explanation)
        } else {
            show::explanation(&explanation)
        };
        terminal::print(&text)?;
        if explanation.winner().is_none() {
            return Err(suggest::not_found(&name, &store));
        }
        Ok(())
    }
}

/// Writes changes. Whoever gives a command means it, so it wins over what was
/// written in the moment between reading and writing.
fn commit(store: &mut Store, scope: &Scope, changes: &[Change]) -> Result<Commit, Failure> {
    Ok(store.commit(scope.namespace(), changes, Strategy::Ours)?)
}
