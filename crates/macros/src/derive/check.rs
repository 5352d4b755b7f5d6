//! What the specification compiler would check, reported at the right token.

use std::collections::HashMap;

use milieu_keys::{
    Migration, Options, Pattern, RuleError, Rules, Scalar, Type, options::DeclarationError, rules,
};
use proc_macro2::{Literal, TokenStream};
use quote::quote;
use syn::Error;

use super::{
    attribute::Entry,
    model::{Errors, Holds, Member, Model, PartOf, Value},
};

/// All mistakes in patterns, metadata and defaults.
pub(super) fn check(model: &Model) -> syn::Result<()> {
    let mut errors = Errors::default();
    let mut patterns: Vec<(&Value, Pattern)> = Vec::new();
    for member in &model.members {
        match member {
            Member::Part(part) => prefix(part).unwrap_or_else(|error| errors.add(error)),
            Member::Value(value) => {
                match pattern(value) {
                    Ok(pattern) => patterns.push((value, pattern)),
                    Err(error) => errors.add(error),
                }
                metadata(value, &mut errors);
            }
        }
    }
    for (position, (value, pattern)) in patterns.iter().enumerate() {
        let other = patterns[..position]
            .iter()
            .find(|(other, earlier)| conflict((*other, earlier), (*value, pattern)));
        if let Some((other, _)) = other {
            errors.add(Error::new(
                value.pattern_span,
                format!(
                    "`{}` and `{}`, of the field `{}`, can be one key with two types",
                    value.pattern, other.pattern, other.field
                ),
            ));
        }
    }
    for (name, _) in &model.removed {
        match Pattern::parse(&name.value()) {
            Err(error) => errors.add(Error::new(name.span(), error)),
            Ok(removed) => {
                if let Some((value, _)) = patterns.iter().find(|(_, today)| *today == removed) {
                    let message = format!(
                        "`{}` is there, as the field `{}`; remove one of the two",
                        value.pattern, value.field
                    );
                    errors.add(Error::new(name.span(), message));
                }
            }
        }
    }
    errors.finish()?;
    together(model)
}

/// Whether two fields could have one key and cannot share it.
fn conflict(one: (&Value, &Pattern), other: (&Value, &Pattern)) -> bool {
    let same = one.0.holds == other.0.holds || one.0.is_array != other.0.is_array;
    one.1 == other.1 || (!same && one.1.unifies(other.1))
}

fn prefix(part: &PartOf) -> syn::Result<()> {
    let Some(prefix) = &part.prefix else {
        return Ok(());
    };
    let text = prefix.value();
    let pattern = Pattern::parse(&text)
        .map_err(|error| Error::new(prefix.span(), format!("`{text}` is no prefix: {error}")))?;
    let trimmed = text.trim_end_matches('/');
    if trimmed.is_empty() || pattern.as_str() != trimmed {
        return Err(Error::new(
            prefix.span(),
            format!("write the prefix as `{}`", pattern.as_str()),
        ));
    }
    Ok(())
}

fn pattern(value: &Value) -> syn::Result<Pattern> {
    let text = &value.pattern;
    let pattern = Pattern::parse(text).map_err(|error| {
        Error::new(
            value.pattern_span,
            format!("`{text}` is no name of a key: {error}"),
        )
    })?;
    if pattern.as_str() != text {
        return Err(Error::new(
            value.pattern_span,
            format!("write the name as `{}`", pattern.as_str()),
        ));
    }
    let problem = match text.strip_suffix("/#") {
        Some(above) if has_number(above) => NESTED.to_owned(),
        None if has_number(text) => NESTED.to_owned(),
        Some(_) if !value.is_array => {
            "the name is that of an array; make the field an `Array`".to_owned()
        }
        None if value.is_array => format!("the field is an `Array`; write the name as `{text}/#`"),
        _ => return Ok(pattern),
    };
    Err(Error::new(value.pattern_span, problem))
}

const NESTED: &str = "only the last level of a name can be `#`; for several values of each element \
    write several arrays, `/hosts/names/#` and `/hosts/ports/#`, or let a layer tell the elements \
    apart, `/hosts/%host%/port`";

fn has_number(pattern: &str) -> bool {
    pattern.split('/').any(|level| level == "#")
}

fn metadata(value: &Value, errors: &mut Errors) {
    let mut first: HashMap<&str, &Entry> = HashMap::new();
    for entry in &value.entries {
        if first.insert(&entry.name, entry).is_some() {
            errors.add(Error::new(
                entry.name_span,
                format!("`{}` is said twice", entry.name),
            ));
        }
        if let Some(error) = unknown(entry) {
            errors.add(error);
        }
    }
    if let Some(default) = value.entry("default").filter(|_| value.is_array) {
        errors.add(Error::new(
            default.text_span,
            "an array that nobody gives has no elements, so it has no default; leave this out",
        ));
    }
    if value.holds == Holds::Choice && value.entry("check/enum/#0").is_some() {
        errors.add(Error::new(
            value.pattern_span,
            "the enum's variants say what is allowed; leave out `check/enum`",
        ));
    }
    let error = match rules(value) {
        Err(error) => error,
        Ok(rules) => {
            // Where somebody has to give a value, nobody reads the zero; and an
            // array starts without elements.
            let is_read = !rules.required() && !value.is_array;
            if let (Err(violation), true) = (rules.initial(), is_read) {
                errors.add(Error::new(
                    value.pattern_span,
                    format!("without a default the value {violation}; say `default = …`"),
                ));
            }
            return;
        }
    };
    let entry = value
        .entries
        .iter()
        .find(|entry| entry.name == error.key)
        .or(value.entry("default"));
    errors.add(Error::new(
        entry.map_or(value.pattern_span, |entry| entry.text_span),
        format!("{}\nhelp: {}", error.message, error.help),
    ));
}

/// Metadata without a meaning are mistakes, unless they are marked as one's own.
fn unknown(entry: &Entry) -> Option<Error> {
    let name = &entry.name;
    if name.starts_with("x/") || name == "allow/overlap" || rules::known(name).is_some() {
        return None;
    }
    let names = rules::KNOWN.iter().map(|known| known.name);
    let nearest = match rules::nearest(name, names) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("for metadata of your own, put `x/` in front: `x/{name}`"),
    };
    Some(Error::new(
        entry.name_span,
        format!("there is no metadata `{name}`; {nearest}"),
    ))
}

/// Options that contradict each other, and old names from which those of today
/// cannot be made.
fn together(model: &Model) -> syn::Result<()> {
    let metadata: Vec<_> = model.values().map(|value| (value, pairs(value))).collect();
    let declared = || {
        let values = metadata.iter();
        values.map(|(value, pairs)| (value.pattern.as_str(), pairs.as_slice()))
    };
    let options = Options::new("program", declared()).map(drop);
    options
        .and_then(|()| Migration::new(declared()).map(drop))
        .map_err(|found| at_entry(model, &found))
}

fn at_entry(model: &Model, found: &DeclarationError) -> Error {
    let value = model.values().find(|value| value.pattern == found.pattern);
    let entry = value.and_then(|value| value.entry(&found.error.key));
    let span = match (entry, value) {
        (Some(entry), _) => entry.text_span,
        (None, Some(value)) => value.pattern_span,
        (None, None) => model.name.span(),
    };
    Error::new(
        span,
        format!("{}\nhelp: {}", found.error.message, found.error.help),
    )
}

/// The rules that hold for a value. Those of an enum know only what its
/// variants do not say.
fn rules(value: &Value) -> Result<Rules, RuleError> {
    Rules::from_metadata(&pairs(value))
}

fn pairs(value: &Value) -> Vec<(&str, &str)> {
    let type_ = match value.holds {
        Holds::Known(type_, _) => type_,
        Holds::Choice => "string",
    };
    let mut pairs = vec![("type", type_)];
    for entry in &value.entries {
        let is_variant = value.holds == Holds::Choice && entry.name == "default";
        if entry.name != "type" && !is_variant {
            pairs.push((&entry.name, &entry.text));
        }
    }
    pairs
}

/// What a field of a built-in type starts with. Call it after [`check`].
pub(super) fn initial(value: &Value) -> TokenStream {
    let rules = rules(value).unwrap_or_else(|_| Rules::unrestricted());
    let type_ = &value.type_;
    let scalar = rules.initial().unwrap_or_else(|_| rules.type_().zero());
    match scalar {
        Scalar::Boolean(value) => quote!(#value),
        Scalar::Signed(value) => {
            let literal = Literal::i64_unsuffixed(value);
            quote!(#literal)
        }
        Scalar::Unsigned(value) => {
            let literal = Literal::u64_unsuffixed(value);
            quote!(#literal)
        }
        Scalar::Float(value) if value.is_finite() => {
            let literal: Literal = digits(value, rules.type_())
                .parse()
                .unwrap_or_else(|_| Literal::f64_unsuffixed(value));
            quote!(#literal)
        }
        Scalar::Float(value) if value.is_nan() => quote!(<#type_>::NAN),
        Scalar::Float(value) if value > 0.0 => quote!(<#type_>::INFINITY),
        Scalar::Float(_) => quote!(<#type_>::NEG_INFINITY),
        Scalar::Text(_) | Scalar::Variant(_) => quote!(::core::default::Default::default()),
    }
}

/// A finite float with no more digits than its type tells apart.
#[allow(clippy::cast_possible_truncation)]
fn digits(value: f64, type_: &Type) -> String {
    if *type_ == Type::Float {
        format!("{:?}", value as f32)
    } else {
        format!("{value:?}")
    }
}
