//! The module `at`: what values are called where they are assigned.
//!
//! A part's marker takes a marker of the part's own environment, so that parts
//! need not know where they are used: `at::sw<sw::at::language>`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Visibility, ext::IdentExt};

use super::model::{Member, Model};

/// The module and the implementations for its types.
///
/// The implementations stand beside the struct and not in the module, so that
/// they also find a struct that is local to a function.
pub(super) fn markers(model: &Model) -> TokenStream {
    let Model {
        name,
        visibility,
        crate_path,
        at,
        members,
        removed: _,
    } = model;
    let inner = inside(visibility);
    let mut types = TokenStream::new();
    let mut implementations = TokenStream::new();
    // The position of a value: those of its own struct before it, and all of
    // the parts before it.
    let mut own: usize = 0;
    let mut parts = Vec::new();
    for member in members {
        let index =
            quote! { #own #(+ <#parts as #crate_path::context::Environment>::VALUES.len())* };
        match member {
            Member::Value(value) => {
                let (field, type_) = (&value.field, &value.type_);
                let doc = format!("`{}`, the field `{}`.", value.pattern, field.unraw());
                types.extend(quote! {
                    #[doc = #doc]
                    #[derive(Clone, Copy, Debug)]
                    #inner enum #field {}
                });
                implementations.extend(quote! {
                    // SAFETY: the index counts what `VALUES` lists before the field.
                    #[automatically_derived]
                    unsafe impl #crate_path::context::Value for #at::#field {
                        type Environment = #name;
                        type Type = #type_;
                        const INDEX: usize = #index;
                    }
                });
                if !value.is_read_only() {
                    implementations.extend(quote! {
                        #[automatically_derived]
                        impl #crate_path::context::Assign for #at::#field {}
                    });
                }
                own += 1;
            }
            Member::Part(part) => {
                let (field, type_) = (&part.field, &part.type_);
                let doc = format!(
                    "A value of the part `{}`, named by that environment's own marker.",
                    field.unraw()
                );
                types.extend(quote! {
                    #[doc = #doc]
                    #inner struct #field<M>(::core::marker::PhantomData<fn() -> M>);
                });
                implementations.extend(quote! {
                    // SAFETY: the part's values stand in a row in `VALUES`.
                    #[automatically_derived]
                    unsafe impl<M> #crate_path::context::Value for #at::#field<M>
                    where
                        M: #crate_path::context::Value<Environment = #type_>,
                    {
                        type Environment = #name;
                        type Type = M::Type;
                        const INDEX: usize = #index + M::INDEX;
                    }

                    #[automatically_derived]
                    impl<M> #crate_path::context::Assign for #at::#field<M>
                    where
                        M: #crate_path::context::Assign<Environment = #type_>,
                    {
                    }
                });
                parts.push(type_);
            }
        }
    }
    let doc = format!("Markers of the values of [`{name}`].");
    quote! {
        #[doc = #doc]
        #[allow(dead_code, non_camel_case_types)]
        #visibility mod #at {
            #types
        }

        #implementations
    }
}

/// The same visibility, one module further in.
fn inside(visibility: &Visibility) -> TokenStream {
    match visibility {
        Visibility::Inherited => quote!(pub(super)),
        Visibility::Public(public) => public.into_token_stream(),
        Visibility::Restricted(restricted) => {
            let path = &restricted.path;
            if path.is_ident("self") {
                quote!(pub(super))
            } else if path.is_ident("super") {
                quote!(pub(in super::super))
            } else if path
                .segments
                .first()
                .is_some_and(|first| first.ident == "super")
            {
                quote!(pub(in super::#path))
            } else {
                restricted.into_token_stream()
            }
        }
    }
}
