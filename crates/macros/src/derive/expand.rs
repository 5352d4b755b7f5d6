//! The implementation of `Environment`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use super::{
    check, join, markers,
    model::{Holds, Member, Model, Value},
};

/// Everything that the derive adds.
pub(super) fn expand(model: &Model) -> TokenStream {
    let Model {
        name, crate_path, ..
    } = model;
    let values = values(model);
    let initial = model.members.iter().map(|member| match member {
        Member::Value(value) => initial(value, crate_path),
        Member::Part(part) => {
            let (field, type_) = (&part.field, &part.type_);
            quote! { #field: <#type_ as #crate_path::context::Environment>::initial() }
        }
    });
    let assertions = model
        .values()
        .filter_map(|value| assertion(value, crate_path));
    let markers = markers::markers(model);
    let removed = removed(model);
    quote! {
        #(#assertions)*

        // SAFETY: each field is either a value, described with its own offset
        // and the kind of its own type, or an environment, whose descriptions
        // are moved by the field's offset. An enum's metadata are its own.
        #[automatically_derived]
        unsafe impl #crate_path::context::Environment for #name {
            const VALUES: &'static [#crate_path::context::Descriptor] = #values;

            fn initial() -> Self {
                Self { #(#initial),* }
            }

            #removed
        }

        // The table is checked even if nothing uses it.
        const _: &[#crate_path::context::Descriptor] =
            <#name as #crate_path::context::Environment>::VALUES;

        #markers
    }
}

/// The keys that are no more, with those of parts, where there are any.
fn removed(model: &Model) -> TokenStream {
    if model.removed.is_empty() && !model.has_parts() {
        return TokenStream::new();
    }
    let crate_path = &model.crate_path;
    let own = model
        .removed
        .iter()
        .map(|(name, why)| quote! { (#name.into(), #why) });
    let parts = model.members.iter().filter_map(|member| match member {
        Member::Value(_) => None,
        Member::Part(part) => {
            let type_ = &part.type_;
            let prefix = part.prefix.as_ref().map(|prefix| prefix.value());
            let prefix = prefix.unwrap_or_default();
            let prefix = prefix.trim_end_matches('/');
            Some(quote! {
                for (name, why) in <#type_ as #crate_path::context::Environment>::removed() {
                    removed.push((::std::format!("{}{}", #prefix, name), why));
                }
            })
        }
    });
    quote! {
        fn removed() -> ::std::vec::Vec<(::std::string::String, &'static str)> {
            #[allow(unused_mut)]
            let mut removed: ::std::vec::Vec<(::std::string::String, &'static str)> =
                ::std::vec![#(#own),*];
            #(#parts)*
            removed
        }
    }
}

/// A literal table, or, where there are parts, one that is joined at compile time.
fn values(model: &Model) -> TokenStream {
    let crate_path = &model.crate_path;
    let name = &model.name;
    if !model.has_parts() {
        let descriptors = model.values().map(|value| descriptor(model, value));
        return quote! { &[#(#descriptors),*] };
    }
    let pieces = model.members.iter().map(|member| match member {
        Member::Value(value) => {
            let descriptor = descriptor(model, value);
            quote! { (0, "", &[#descriptor]) }
        }
        Member::Part(part) => {
            let (field, type_) = (&part.field, &part.type_);
            let prefix = part.prefix.as_ref().map(|prefix| prefix.value());
            let prefix = prefix.unwrap_or_default();
            let prefix = prefix.trim_end_matches('/');
            quote! {(
                ::core::mem::offset_of!(#name, #field),
                #prefix,
                <#type_ as #crate_path::context::Environment>::VALUES,
            )}
        }
    });
    let join = join::functions(crate_path);
    quote! {{
        #join
        const PIECES: &[Piece] = &[#(#pieces),*];
        const COUNT: usize = count(PIECES);
        const BYTES: usize = bytes(PIECES);
        const TEXTS: &[u8; BYTES] = &texts(PIECES);
        const ALL: &[Descriptor; COUNT] = &join(PIECES, TEXTS);
        distinct(ALL);
        ALL
    }}
}

fn descriptor(model: &Model, value: &Value) -> TokenStream {
    let Model {
        name, crate_path, ..
    } = model;
    let Value {
        field,
        type_,
        pattern,
        ..
    } = value;
    let metadata = metadata(value);
    quote! {
        #crate_path::context::Descriptor {
            pattern: #pattern,
            offset: ::core::mem::offset_of!(#name, #field),
            kind: <#type_ as #crate_path::context::Field>::KIND,
            metadata: #metadata,
        }
    }
}

/// The metadata of a field. An enum brings the list of its variants along.
fn metadata(value: &Value) -> TokenStream {
    let own = value
        .entries
        .iter()
        .filter(|entry| entry.name != "type")
        .map(|entry| {
            let (name, text) = (&entry.name, &entry.text);
            quote! { (#name, #text) }
        });
    match value.holds {
        Holds::Known(type_, _) => quote! { &[("type", #type_), #(#own),*] },
        Holds::Choice => {
            let type_ = value.element();
            let count = value
                .entries
                .iter()
                .filter(|entry| entry.name != "type")
                .count();
            quote! {{
                const OWN: [(&str, &str); #count] = [#(#own),*];
                const CHOICE: &[(&str, &str)] = <#type_>::__MILIEU_METADATA;
                const ALL: [(&str, &str); OWN.len() + CHOICE.len()] = {
                    let mut all = [("", ""); OWN.len() + CHOICE.len()];
                    let mut at = 0;
                    while at < all.len() {
                        all[at] = if at < CHOICE.len() { CHOICE[at] } else { OWN[at - CHOICE.len()] };
                        at += 1;
                    }
                    all
                };
                &ALL
            }}
        }
    }
}

fn initial(value: &Value, crate_path: &TokenStream) -> TokenStream {
    let (field, type_) = (&value.field, &value.type_);
    let default = value.entry("default");
    let span = default.map_or(value.pattern_span, |entry| entry.text_span);
    let text = default.map(|entry| entry.text.as_str());
    let initial = match value.holds {
        _ if value.is_array => quote! { ::core::default::Default::default() },
        Holds::Choice => match text {
            None => quote! { <#type_>::__MILIEU_FIRST },
            Some(text) => quote_spanned! {span=>
                const { <#type_>::__milieu_from_text(#text).unwrap() }
            },
        },
        Holds::Known("string", _) => {
            let text = text.unwrap_or("");
            quote! { #crate_path::context::Text::from_static(#text) }
        }
        Holds::Known(..) => check::initial(value),
    };
    quote! { #field: #initial }
}

/// What only the compiler can check: that a default is a variant, and, where
/// the specification's `type` stands for the type's name, that it is right.
fn assertion(value: &Value, crate_path: &TokenStream) -> Option<TokenStream> {
    let type_ = &value.type_;
    match value.holds {
        Holds::Choice => {
            let default = value.entry("default")?;
            let (span, text) = (default.text_span, &default.text);
            let message = format!("the enum has no variant with the text `{text}`");
            Some(quote_spanned! {span=>
                const _: () = assert!(<#type_>::__milieu_from_text(#text).is_some(), #message);
            })
        }
        Holds::Known(_, kind) => {
            let entry = value.entry("type")?;
            let kind = syn::Ident::new(kind, entry.text_span);
            let kind = quote! { #crate_path::context::Kind::#kind };
            let kind = match value.is_array {
                true => quote! { #crate_path::context::Kind::Array(#kind) },
                false => kind,
            };
            let message = format!(
                "the field's type is not what `type = \"{}\"` says",
                entry.text
            );
            Some(quote_spanned! {type_.span()=>
                const _: () = assert!(
                    matches!(
                        <#type_ as #crate_path::context::Field>::KIND,
                        #kind
                    ),
                    #message
                );
            })
        }
    }
}
