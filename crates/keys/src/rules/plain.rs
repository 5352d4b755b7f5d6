//! From the metadata of a key to its rules, without the feature `checks`.
//!
//! What a program does not check must not look as if it were: metadata that
//! only the feature gives a meaning is refused, and never passed over. What is
//! wrong with the rest has been said by the compiler of the specification, so
//! that less is said of it here.

use super::known::{array_index, flag};
use super::{Metadata, RuleError, Rules, Type};

pub(super) fn rules(metadata: Metadata<'_>) -> Result<Rules, RuleError> {
    let mut rules = Rules::unrestricted();
    let get = |wanted: &str| {
        let mut from_behind = metadata.iter().rev();
        from_behind.find(|(key, _)| *key == wanted).map(|it| it.1)
    };
    if let Some(name) = get("type") {
        let parsed = Type::parse(name);
        // Reading and writing decimals takes more room than all layers.
        let known = parsed.filter(|type_| cfg!(feature = "floats") || !type_.is_float());
        rules.type_ = known.ok_or_else(|| match parsed {
            Some(_) => absent("type", name, "floats"),
            None => RuleError::new("type", name, "there is no such type", "correct it"),
        })?;
    }
    let is = |key| get(key).and_then(flag).unwrap_or(false);
    rules.read_only = is("readonly");
    rules.required = is("require");
    rules.secret = is("secret");
    let number = |key| get(key).and_then(|text: &str| text.parse().ok());
    rules.array = (number("array/min"), number("array/max"));
    for &(key, value) in metadata {
        let variant = key
            .strip_prefix("check/enum")
            .filter(|_| rules.type_ == Type::Enum);
        match variant {
            Some("") if array_index(value).is_none() => list(value, &mut rules.variants),
            // The compiler has put them in their order.
            Some(index) if index.starts_with("/#") => rules.variants.push(value.to_owned()),
            Some(_) => {}
            None if ["check/", "range", "was/"]
                .iter()
                .any(|word| key.starts_with(word)) =>
            {
                return Err(absent(key, value, "checks"));
            }
            None => {}
        }
    }
    if rules.type_ == Type::Enum && rules.variants.is_empty() {
        let help = "list them: `check/enum/#0=…`, `check/enum/#1=…`";
        return Err(RuleError::new(
            "type",
            "enum",
            "the variants are missing",
            help,
        ));
    }
    if let Some(default) = get("default") {
        let checked = rules.check(default);
        checked.map_err(|violation| {
            let help = "give `default` a value that keeps the rules";
            RuleError::new("default", default, violation.to_string(), help)
        })?;
        rules.default = Some(default.to_owned());
    }
    Ok(rules)
}

fn absent(key: &str, value: &str, feature: &str) -> RuleError {
    let message = format!("this program was built without the feature `{feature}`");
    RuleError::new(
        key,
        value,
        message,
        "build it with the feature, or remove this",
    )
}

/// Reads `red, green` or `'red', 'green'`.
fn list(list: &str, variants: &mut Vec<String>) {
    let items = list.split(',').map(str::trim);
    variants.extend(items.map(|item| item.trim_matches(['\'', '"']).to_owned()));
}

#[cfg(test)]
mod tests {
    use super::rules;
    use crate::rules::{Rules, Scalar};

    fn refused(metadata: &[(&str, &str)]) -> String {
        rules(metadata).unwrap_err().to_string()
    }

    #[test]
    fn types_defaults_and_variants_are_those_of_the_full_rules() {
        let metadata: [&[(&str, &str)]; 5] = [
            &[("type", "short"), ("default", "7"), ("readonly", "")],
            &[("type", "boolean"), ("secret", ""), ("require", "")],
            &[("array/min", "1"), ("array/max", "3")],
            &[("type", "enum"), ("check/enum", "'low', high")],
            &[
                ("type", "enum"),
                ("check/enum", "#1"),
                ("check/enum/#0", "low"),
                ("check/enum/#1", "very high"),
            ],
        ];
        for metadata in metadata {
            let (plain, full) = (rules(metadata), Rules::from_metadata(metadata));
            let (plain, full) = (plain.unwrap(), full.unwrap());
            assert_eq!(format!("{plain:?}"), format!("{full:?}"));
        }
        let level = rules(metadata[4]).unwrap();
        assert_eq!(level.check("very high"), Ok(Scalar::Variant(1)));
    }

    #[test]
    fn what_would_not_be_checked_is_refused() {
        for (key, value) in [
            ("check/range", "1-3"),
            ("range", "1-3"),
            ("check/validation", "a+"),
            ("check/enum", "a, b"),
            ("was/#0", "/old"),
        ] {
            let said = refused(&[(key, value)]);
            assert!(said.contains("without the feature `checks`"), "{said}");
            assert!(said.contains(key), "{said}");
        }
        assert!(refused(&[("type", "lnog")]).contains("no such type"));
        assert!(refused(&[("type", "enum")]).contains("list them"));
        assert!(refused(&[("type", "short"), ("default", "x")]).contains("whole number"));
    }
}
