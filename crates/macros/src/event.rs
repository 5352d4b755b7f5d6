//! `#[derive(Event)]`: ids of fields and what a type extends.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Data, DeriveInput, Error, Field, Fields, LitInt, Path, Type};

/// A field that `serde` reads.
struct Known<'a> {
    id: Option<u32>,
    /// Its name and type, where it holds what the struct extends.
    extends: Option<(&'a syn::Ident, &'a Type)>,
}

/// The implementation of `Described`.
pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let fields = fields(input)?;
    let crate_path = crate_path(input)?;
    let facts = fields.iter().map(|field| {
        let id = match field.id {
            Some(id) => quote! { ::core::option::Option::Some(#id) },
            None => quote! { ::core::option::Option::None },
        };
        let extends = match field.extends {
            Some((_, parent)) => quote! {
                ::core::option::Option::Some(<#parent as #crate_path::Described>::facts())
            },
            None => quote! { ::core::option::Option::None },
        };
        quote! { #crate_path::Fact { id: #id, extends: #extends } }
    });
    let parent = fields.iter().find_map(|field| field.extends);
    let find = parent.map(|(name, parent)| {
        quote! { return <#parent as #crate_path::Described>::find(&self.#name, of); }
    });
    let otherwise = parent
        .is_none()
        .then(|| quote! { ::core::option::Option::None });
    let lineage = parent.map(|(_, parent)| {
        quote! { <#parent as #crate_path::Described>::lineage(types); }
    });
    let name = &input.ident;
    let mut generics = input.generics.clone();
    if !generics.params.is_empty() {
        let (_, type_generics, _) = input.generics.split_for_impl();
        let bound = syn::parse_quote! { #name #type_generics: #crate_path::Body };
        generics.make_where_clause().predicates.push(bound);
    }
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let derived = input.generics.params.is_empty().then(|| {
        quote! {
            #crate_path::inventory::submit! { #crate_path::Derived::new::<#name>() }
        }
    });
    Ok(quote! {
        #derived

        #[automatically_derived]
        #[allow(clippy::needless_return)]
        impl #impl_generics #crate_path::Described for #name #type_generics #where_clause {
            fn facts() -> ::std::vec::Vec<#crate_path::Fact> {
                ::std::vec![#(#facts),*]
            }

            fn find(
                &self,
                of: ::core::any::TypeId,
            ) -> ::core::option::Option<&dyn ::core::any::Any> {
                if of == ::core::any::TypeId::of::<Self>() {
                    return ::core::option::Option::Some(self);
                }
                #find
                #otherwise
            }

            fn lineage(types: &mut ::std::vec::Vec<::core::any::TypeId>) {
                types.push(::core::any::TypeId::of::<Self>());
                #lineage
            }
        }
    })
}

fn fields(input: &DeriveInput) -> syn::Result<Vec<Known<'_>>> {
    let Data::Struct(data) = &input.data else {
        let what = "only structs have fields with ids; an enum is an event without this derive";
        return Err(Error::new_spanned(&input.ident, what));
    };
    let fields = match &data.fields {
        Fields::Named(fields) => &fields.named,
        _ => {
            let what = "fields without names are told apart by their order; \
                        such a struct is an event without this derive";
            return Err(Error::new_spanned(&input.ident, what));
        }
    };
    let mut known: Vec<Known<'_>> = Vec::new();
    for field in fields {
        let (id, extends) = attributes(field)?;
        if let Some(id) = &id {
            let number = id.base10_parse::<u32>()?;
            if known.iter().any(|other| other.id == Some(number)) {
                let what = format!("another field has the id {number}");
                return Err(Error::new_spanned(id, what));
            }
        }
        if extends && known.iter().any(|other| other.extends.is_some()) {
            let what = "a type extends at most one other";
            return Err(Error::new_spanned(field, what));
        }
        if is_skipped(field) {
            continue;
        }
        let name = field.ident.as_ref();
        known.push(Known {
            id: id.map(|id| id.base10_parse()).transpose()?,
            extends: name.filter(|_| extends).map(|name| (name, &field.ty)),
        });
    }
    Ok(known)
}

/// `#[event(id = 3)]`, `#[event(extends)]`
fn attributes(field: &Field) -> syn::Result<(Option<LitInt>, bool)> {
    let (mut id, mut extends) = (None, false);
    for attribute in field.attrs.iter().filter(|it| it.path().is_ident("event")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("id") {
                id = Some(meta.value()?.parse()?);
                Ok(())
            } else if meta.path.is_ident("extends") {
                extends = true;
                Ok(())
            } else {
                Err(meta.error("expected `id = 1` or `extends`"))
            }
        })?;
    }
    Ok((id, extends))
}

/// Whether `serde` reads no such field.
fn is_skipped(field: &Field) -> bool {
    let mut skipped = false;
    for attribute in field.attrs.iter().filter(|it| it.path().is_ident("serde")) {
        // What else serde understands is its own affair, its mistakes included.
        let _ = attribute.parse_nested_meta(|meta| {
            skipped |= meta.path.is_ident("skip") || meta.path.is_ident("skip_deserializing");
            if meta.input.peek(syn::Token![=]) {
                meta.value()?.parse::<syn::Lit>()?;
            } else if meta.input.peek(syn::token::Paren) {
                let content;
                syn::parenthesized!(content in meta.input);
                content.parse::<TokenStream>()?;
            }
            Ok(())
        });
    }
    skipped
}

/// `#[event(crate = ::milieu::transfer)]`
fn crate_path(input: &DeriveInput) -> syn::Result<TokenStream> {
    let mut path = quote! { ::milieu::transfer };
    for attribute in input.attrs.iter().filter(|it| it.path().is_ident("event")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("crate") {
                path = meta.value()?.call(Path::parse_mod_style)?.to_token_stream();
                Ok(())
            } else {
                Err(meta.error("expected `crate = ::milieu::transfer`"))
            }
        })?;
    }
    Ok(path)
}
