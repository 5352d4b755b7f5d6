//! What a key was called before.

#[cfg(feature = "checks")]
use super::RuleError;
#[cfg(feature = "checks")]
use super::build::Given;
#[cfg(feature = "checks")]
use super::convert::{Conversion, Kind};
#[cfg(feature = "checks")]
use super::known::{array_index, array_level};
use super::{Rules, Violation};
use std::borrow::Cow;

/// A name that a key had before.
#[derive(Clone, Debug)]
pub struct OldName {
    name: String,
    #[cfg(feature = "checks")]
    conversion: Option<Conversion>,
}

impl OldName {
    /// The name, perhaps with placeholders.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Rules {
    /// What the key was called before; the name that counts first comes first.
    pub fn old_names(&self) -> &[OldName] {
        &self.old_names
    }

    /// The value that one of an old name is today. It keeps the rules.
    ///
    /// # Errors
    /// A value that cannot be converted, or that the rules do not allow then.
    pub fn convert<'a>(&self, old: &OldName, text: &'a str) -> Result<Cow<'a, str>, Violation> {
        #[cfg(not(feature = "checks"))]
        let (_, converted) = (old, Cow::Borrowed(text));
        #[cfg(feature = "checks")]
        let converted = match &old.conversion {
            None => Cow::Borrowed(text),
            Some(conversion) => conversion
                .apply(text)
                .map_err(|why| self.veiled(Violation::new(&conversion.rule(), text, &why)))?,
        };
        self.check(&converted)?;
        Ok(converted)
    }
}

/// Reads the old names of a key that has these rules.
#[cfg(feature = "checks")]
pub(super) fn read(given: &Given<'_>, rules: &Rules) -> Result<Vec<OldName>, RuleError> {
    let names = given.array("was")?;
    for key in given.keys() {
        let Some((index, word)) = key.strip_prefix("was/").and_then(|key| key.split_once('/'))
        else {
            continue;
        };
        if array_index(index).is_none_or(|index| index >= names.len()) {
            return Err(RuleError::new(
                key,
                given.get(key).unwrap_or(""),
                format!("there is no `was/{index}` that it could be about"),
                format!("add `was/{index}=/old/name`, or remove `was/{index}/{word}`"),
            ));
        }
    }
    let mut old_names = Vec::new();
    for (index, &name) in names.iter().enumerate() {
        if names[..index].contains(&name) {
            return Err(RuleError::new(
                format!("was/{}", array_level(index)),
                name,
                "the name is listed twice",
                "remove one of the two",
            ));
        }
        old_names.push(OldName {
            name: name.to_owned(),
            conversion: conversion(given, rules, index)?,
        });
    }
    Ok(old_names)
}

/// How values of that old name are converted.
#[cfg(feature = "checks")]
fn conversion(
    given: &Given<'_>,
    rules: &Rules,
    index: usize,
) -> Result<Option<Conversion>, RuleError> {
    let of = |word| given.of_element("was", index, word);
    let (key, value, kind) = match (of("convert"), of("unit")) {
        (None, None) => return Ok(None),
        (Some((key, value)), Some((unit, _))) => {
            return Err(RuleError::new(
                key,
                value,
                format!("`{unit}` converts already"),
                "keep one of the two",
            ));
        }
        (Some((key, value)), None) => {
            let kind = Kind::parse(value, rules.type_)
                .map_err(|(message, help)| RuleError::new(key, value, message, help))?;
            (key, value, kind)
        }
        (None, Some((key, value))) => {
            if !rules.unit.as_ref().is_some_and(|unit| unit.knows(value)) {
                return Err(RuleError::new(
                    key,
                    value,
                    "values of the key cannot have that unit",
                    "add a `check/unit` that allows it, or calculate: \
                     `convert=/ 1000`, for example",
                ));
            }
            (key, value, Kind::Unit(value.to_owned()))
        }
    };
    if let Kind::Table(table) = &kind {
        for (_, new) in table {
            rules.check(new).map_err(|violation| {
                let help = "let old values become such as keep the rules";
                RuleError::new(key, value, violation.to_string(), help)
            })?;
        }
    }
    Ok(Some(Conversion {
        key: key.to_owned(),
        value: value.to_owned(),
        kind,
    }))
}
