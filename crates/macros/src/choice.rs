//! `#[derive(Choice)]`: an enum as the type of a contextual value.

use milieu_spec::snake_case;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Data, DeriveInput, Error, Fields, Ident, LitStr, Path, Token, Variant, ext::IdentExt};

/// The implementation of `Field`, and what goes from variants to texts and back.
pub(crate) fn derive(input: &DeriveInput) -> syn::Result<TokenStream> {
    let variants = variants(input)?;
    let name = &input.ident;
    let crate_path = crate_path(input)?;
    let names: Vec<_> = variants.iter().map(|(name, _)| name).collect();
    let texts: Vec<_> = variants.iter().map(|(_, text)| text).collect();
    let metadata = texts.iter().enumerate().map(|(index, text)| {
        let key = format!("check/enum/#{index}");
        quote! { (#key, #text) }
    });
    let first = names[0];
    Ok(quote! {
        #[automatically_derived]
        #[allow(dead_code)]
        impl #name {
            /// The texts of the variants, in their order.
            pub const TEXTS: &'static [&'static str] = &[#(#texts),*];

            #[doc(hidden)]
            pub const __MILIEU_METADATA: &'static [(&'static str, &'static str)] =
                &[("type", "enum"), #(#metadata),*];

            #[doc(hidden)]
            pub const __MILIEU_FIRST: Self = Self::#first;

            #[doc(hidden)]
            pub const fn __milieu_from_text(text: &str) -> ::core::option::Option<Self> {
                match text.as_bytes() {
                    #(text if Self::__milieu_equal(text, #texts) => {
                        ::core::option::Option::Some(Self::#names)
                    })*
                    _ => ::core::option::Option::None,
                }
            }

            const fn __milieu_equal(text: &[u8], variant: &str) -> bool {
                let variant = variant.as_bytes();
                if text.len() != variant.len() {
                    return false;
                }
                let mut at = 0;
                while at < text.len() {
                    if text[at] != variant[at] {
                        return false;
                    }
                    at += 1;
                }
                true
            }

            /// The text that files and options use.
            #[must_use]
            pub const fn as_str(&self) -> &'static str {
                match self {
                    #(Self::#names => #texts),*
                }
            }
        }

        #[automatically_derived]
        impl ::core::fmt::Display for #name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.pad(self.as_str())
            }
        }

        #[automatically_derived]
        impl ::core::str::FromStr for #name {
            type Err = #crate_path::keys::Violation;

            fn from_str(text: &str) -> ::core::result::Result<Self, Self::Err> {
                Self::__milieu_from_text(text).ok_or_else(|| #crate_path::keys::Violation {
                    rule: ::std::string::String::from("check/enum"),
                    value: ::std::string::String::from(text),
                    message: ::std::format!("is not one of {}", Self::TEXTS.join(", ")),
                })
            }
        }

        // SAFETY: the enum is `repr(u32)`, has no fields, and no variant has a
        // discriminant of its own, so that they count from 0.
        #[automatically_derived]
        #[allow(clippy::undocumented_unsafe_blocks)]
        unsafe impl #crate_path::context::Field for #name {
            const KIND: #crate_path::context::Kind = #crate_path::context::Kind::Enum;
            type Input<'a> = Self;

            fn text<'a>(input: Self) -> ::std::borrow::Cow<'a, str> {
                ::std::borrow::Cow::Borrowed(input.as_str())
            }
        }
    })
}

/// The variants and their texts.
fn variants(input: &DeriveInput) -> syn::Result<Vec<(Ident, String)>> {
    let Data::Enum(data) = &input.data else {
        return Err(Error::new(
            input.ident.span(),
            "a choice is an enum; for a group of values, derive `Environment` on a struct",
        ));
    };
    if !input.generics.params.is_empty() {
        return Err(Error::new(
            input.ident.span(),
            "a choice cannot be generic: its texts are fixed",
        ));
    }
    let is_u32 = input.attrs.iter().any(|attribute| {
        attribute.path().is_ident("repr")
            && attribute
                .parse_args::<Ident>()
                .is_ok_and(|repr| repr == "u32")
    });
    if !is_u32 {
        return Err(Error::new(
            input.ident.span(),
            "the layout of a choice is fixed; write `#[repr(u32)]` above the enum",
        ));
    }
    let mut variants: Vec<(Ident, String)> = Vec::new();
    for variant in &data.variants {
        let text = text(variant)?;
        if variants.iter().any(|(_, other)| *other == text) {
            return Err(Error::new(
                variant.ident.span(),
                format!("two variants have the text `{text}`; say `#[choice(\"…\")]`"),
            ));
        }
        variants.push((variant.ident.clone(), text));
    }
    if variants.is_empty() {
        return Err(Error::new(
            input.ident.span(),
            "a choice needs a variant: every value starts as something",
        ));
    }
    Ok(variants)
}

/// What `#[choice("…")]` says, or the variant's name in snake case.
fn text(variant: &Variant) -> syn::Result<String> {
    if !matches!(variant.fields, Fields::Unit) {
        return Err(Error::new(
            variant.ident.span(),
            "the variants of a choice hold nothing",
        ));
    }
    if let Some((_, discriminant)) = &variant.discriminant {
        return Err(Error::new_spanned(
            discriminant,
            "the variants of a choice count from 0; leave out the number",
        ));
    }
    for attribute in &variant.attrs {
        if attribute.path().is_ident("choice") {
            let text: LitStr = attribute.parse_args()?;
            if text.value().trim().is_empty() {
                return Err(Error::new(
                    text.span(),
                    "the text of a variant is not empty",
                ));
            }
            return Ok(text.value());
        }
    }
    let name = variant.ident.unraw().to_string();
    snake_case(&name).ok_or_else(|| {
        Error::new(
            variant.ident.span(),
            "the name has no letters; say the text: `#[choice(\"…\")]`",
        )
    })
}

/// `#[choice(crate = ::milieu)]` on the enum itself.
fn crate_path(input: &DeriveInput) -> syn::Result<TokenStream> {
    for attribute in &input.attrs {
        if attribute.path().is_ident("choice") {
            let path = attribute.parse_args_with(|input: syn::parse::ParseStream<'_>| {
                input.parse::<Token![crate]>()?;
                input.parse::<Token![=]>()?;
                Path::parse_mod_style(input)
            })?;
            return Ok(path.into_token_stream());
        }
    }
    Ok(quote!(::milieu))
}
