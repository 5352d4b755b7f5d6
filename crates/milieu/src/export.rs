//! From an environment back to its specification.

use milieu_context::Environment;
use milieu_diagnostics::Span;
use milieu_keys::{KeySpec, Pattern, Specification};

/// The specification of an environment as INI, wherever the environment came
/// from: a struct with `#[derive(Environment)]` can be the beginning of a file
/// that documentation, other languages and `milieu key --spec` work from.
#[must_use]
pub fn specification_of<E: Environment>() -> String {
    let keys = E::VALUES.iter().filter_map(|value| {
        let owned = |(key, value): &(&str, &str)| ((*key).into(), (*value).into());
        Some(KeySpec {
            // The derive and the compiler have parsed it before.
            pattern: Pattern::parse(value.pattern).ok()?,
            metadata: value.metadata.iter().map(owned).collect(),
            span: Span::default(),
            spans: Vec::new(),
        })
    });
    let removed = E::removed().into_iter().filter_map(|(name, why)| {
        Some(KeySpec {
            pattern: Pattern::parse(&name).ok()?,
            metadata: vec![("removed".into(), why.into())],
            span: Span::default(),
            spans: Vec::new(),
        })
    });
    Specification {
        keys: keys.chain(removed).collect(),
        layers: Vec::new(),
    }
    .to_ini()
}
