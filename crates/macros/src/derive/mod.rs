//! `#[derive(Environment)]`: the user's own struct as an environment.
//!
//! ```text
//! attribute.rs   #[key(…)] and #[environment(…)] as they are written
//! model.rs       the struct: values, parts, their patterns and metadata
//! check.rs       what the specification compiler would check, at the right token
//! expand.rs      the implementation
//! join.rs        … of an environment that has others as parts
//! markers.rs     the module `at`
//! ```

mod attribute;
mod check;
mod expand;
mod join;
mod markers;
mod model;

use proc_macro2::TokenStream;
use syn::DeriveInput;

/// The implementation of `Environment` for a struct, or every mistake found.
pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let model = model::Model::of(input)?;
    check::check(&model)?;
    Ok(expand::expand(&model))
}
