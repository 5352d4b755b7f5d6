//! `layer!`: layers in one line each.

use milieu_keys::Pattern;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{
    Attribute, Error, Fields, FieldsUnnamed, Generics, Ident, LitStr, Path, Token, Type,
    Visibility,
    ext::IdentExt,
    parse::{Parse, ParseStream},
    spanned::Spanned,
};

/// All layers of one `layer!`.
pub(crate) struct Layers {
    crate_path: TokenStream,
    layers: Vec<Layer>,
}

struct Layer {
    attributes: Vec<Attribute>,
    inherited: bool,
    visibility: Visibility,
    name: Ident,
    generics: Generics,
    value: Option<FieldsUnnamed>,
    id: LitStr,
}

impl Parse for Layers {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut crate_path = quote!(::milieu);
        if input.peek(Token![crate]) && input.peek2(Token![=]) {
            input.parse::<Token![crate]>()?;
            input.parse::<Token![=]>()?;
            crate_path = Path::parse_mod_style(input)?.into_token_stream();
            input.parse::<Token![;]>()?;
        }
        let mut layers = Vec::new();
        while !input.is_empty() {
            layers.push(input.parse()?);
        }
        Ok(Layers { crate_path, layers })
    }
}

impl Parse for Layer {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut attributes = input.call(Attribute::parse_outer)?;
        let before = attributes.len();
        attributes.retain(|attribute| !attribute.path().is_ident("inherited"));
        let inherited = attributes.len() < before;
        let visibility: Visibility = input.parse()?;
        input.parse::<Token![struct]>()?;
        let name: Ident = input.parse()?;
        let generics: Generics = input.parse()?;
        let mut value = None;
        if input.peek(syn::token::Paren) {
            let fields: FieldsUnnamed = input.parse()?;
            if fields.unnamed.len() != 1 {
                return Err(Error::new(
                    fields.span(),
                    "a layer has one value, `(String)`, or none",
                ));
            }
            value = Some(fields);
        }
        if !input.peek(Token![=]) {
            return Err(Error::new(
                input.span(),
                format!("expected the placeholder of the layer: `struct {name} = \"name\";`"),
            ));
        }
        input.parse::<Token![=]>()?;
        let id: LitStr = input.parse()?;
        check_id(&id)?;
        input.parse::<Token![;]>()?;
        Ok(Layer {
            attributes,
            inherited,
            visibility,
            name,
            generics,
            value,
            id,
        })
    }
}

/// Whether a name of a key could have this placeholder.
fn check_id(id: &LitStr) -> syn::Result<()> {
    let text = id.value();
    let pattern = Pattern::parse(&format!("/%{text}%"));
    let is_one_layer = pattern.is_ok_and(|pattern| pattern.layers().eq([text.as_str()]));
    if is_one_layer {
        return Ok(());
    }
    Err(Error::new(
        id.span(),
        format!("`{text}` is no layer's name; use letters, digits and `_`, without percent signs"),
    ))
}

impl ToTokens for Layers {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        for layer in &self.layers {
            layer.expand(&self.crate_path, tokens);
        }
    }
}

impl Layer {
    fn expand(&self, crate_path: &TokenStream, tokens: &mut TokenStream) {
        let Layer {
            attributes,
            visibility,
            name,
            generics,
            id,
            ..
        } = self;
        let (parameters, arguments, bounds) = generics.split_for_impl();
        let field = self.value.as_ref().map(|fields| {
            let mut fields = fields.clone();
            for field in &mut fields.unnamed {
                // A value that nobody could give would make the layer useless.
                if matches!(field.vis, Visibility::Inherited) {
                    field.vis = visibility.clone();
                }
            }
            Fields::Unnamed(fields)
        });
        let value = match &self.value {
            None => quote!(::std::borrow::Cow::Borrowed("active")),
            Some(fields) if is_text(&fields.unnamed[0].ty) => {
                quote!(::std::borrow::Cow::Borrowed(
                    ::core::convert::AsRef::<str>::as_ref(&self.0)
                ))
            }
            Some(_) => {
                quote!(::std::borrow::Cow::Owned(
                    ::std::string::ToString::to_string(&self.0)
                ))
            }
        };
        let inherited = self.inherited.then(|| {
            quote!(
                const INHERITED: bool = true;
            )
        });
        tokens.extend(quote! {
            #(#attributes)*
            #visibility struct #name #generics #field #bounds;

            impl #parameters #crate_path::context::Layer for #name #arguments #bounds {
                const ID: &'static str = #id;
                #inherited

                fn value(&self) -> ::std::borrow::Cow<'_, str> {
                    #value
                }
            }
        });
    }
}

/// Whether a type is one of those that lend their text.
fn is_text(type_: &Type) -> bool {
    match type_ {
        Type::Reference(reference) => is_text(&reference.elem),
        Type::Path(path) => path.path.segments.last().is_some_and(|last| {
            let name = last.ident.unraw().to_string();
            match name.as_str() {
                "str" | "String" | "Text" => true,
                "Box" | "Rc" | "Arc" => {
                    last.arguments
                        .to_token_stream()
                        .to_string()
                        .replace(' ', "")
                        == "<str>"
                }
                _ => false,
            }
        }),
        _ => false,
    }
}
