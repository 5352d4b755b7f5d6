//! The struct as an environment: values and parts with patterns and metadata.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{
    Attribute, Data, DeriveInput, Fields, GenericArgument, Ident, LitStr, Meta, PathArguments,
    Type, Visibility, ext::IdentExt, spanned::Spanned,
};

use super::attribute::{Entry, Key, Part, Settings};

/// A struct that is to be an environment.
pub(super) struct Model {
    pub(super) name: Ident,
    pub(super) visibility: Visibility,
    pub(super) crate_path: TokenStream,
    /// The module of the markers.
    pub(super) at: Ident,
    pub(super) members: Vec<Member>,
    /// Keys that are no more, with their whole names, and why.
    pub(super) removed: Vec<(LitStr, LitStr)>,
}

/// A field of the struct.
pub(super) enum Member {
    Value(Value),
    Part(PartOf),
}

/// A field that is a contextual value.
pub(super) struct Value {
    pub(super) field: Ident,
    pub(super) type_: Type,
    pub(super) pattern: String,
    pub(super) pattern_span: Span,
    /// What it holds; of an array, what each element is.
    pub(super) holds: Holds,
    /// Whether it is an array, whose name then ends in `#`.
    pub(super) is_array: bool,
    pub(super) entries: Vec<Entry>,
}

/// What a field holds, as far as its type tells by name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// A built-in type or `Text`: the specification's name of it, and the kind.
    Known(&'static str, &'static str),
    /// Some other type, which `#[derive(Choice)]` has to have made a field.
    Choice,
}

/// A field that is an environment of its own.
pub(super) struct PartOf {
    pub(super) field: Ident,
    pub(super) type_: Type,
    pub(super) prefix: Option<LitStr>,
}

/// Rust's types, what the specification calls them, and their kinds.
const TYPES: &[(&str, &str, &str)] = &[
    ("bool", "boolean", "Bool"),
    ("i16", "short", "I16"),
    ("u16", "unsigned_short", "U16"),
    ("i32", "long", "I32"),
    ("u32", "unsigned_long", "U32"),
    ("i64", "long_long", "I64"),
    ("u64", "unsigned_long_long", "U64"),
    ("f32", "float", "F32"),
    ("f64", "double", "F64"),
    ("Text", "string", "Text"),
];

impl Model {
    pub(super) fn of(input: &DeriveInput) -> syn::Result<Model> {
        let fields = fields(input)?;
        let mut errors = Errors::default();
        let mut settings = Settings::default();
        for attribute in &input.attrs {
            if attribute.path().is_ident("environment") {
                match attribute.parse_args() {
                    Ok(parsed) => settings = parsed,
                    Err(error) => errors.add(error),
                }
            }
        }
        let root = settings.root.as_ref().map(LitStr::value);
        let root = root.as_deref().unwrap_or("/").trim_end_matches('/');
        let mut members = Vec::new();
        for field in fields {
            match member(field, root) {
                Ok(member) => members.push(member),
                Err(error) => errors.add(error),
            }
        }
        errors.finish()?;
        let whole = |(name, why): (LitStr, LitStr)| {
            let text = match name.value() {
                whole if whole.starts_with('/') => whole,
                below => format!("{root}/{below}"),
            };
            (LitStr::new(&text, name.span()), why)
        };
        let removed = settings.removed.into_iter().map(whole).collect();
        Ok(Model {
            removed,
            name: input.ident.clone(),
            visibility: input.vis.clone(),
            crate_path: match settings.crate_path {
                Some(path) => path.into_token_stream(),
                None => quote!(::milieu),
            },
            at: settings
                .at
                .unwrap_or_else(|| Ident::new("at", Span::call_site())),
            members,
        })
    }

    /// The values, without those of parts.
    pub(super) fn values(&self) -> impl Iterator<Item = &Value> {
        self.members.iter().filter_map(|member| match member {
            Member::Value(value) => Some(value),
            Member::Part(_) => None,
        })
    }

    /// Whether some field is an environment of its own.
    pub(super) fn has_parts(&self) -> bool {
        self.members
            .iter()
            .any(|member| matches!(member, Member::Part(_)))
    }
}

impl Value {
    /// The text of a metadata entry.
    pub(super) fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// The type that `holds` tells of: that of the elements, of an array.
    pub(super) fn element(&self) -> &Type {
        element(&self.type_).unwrap_or(&self.type_)
    }

    /// Whether assignments are to be refused.
    pub(super) fn is_read_only(&self) -> bool {
        self.entry("readonly").is_some_and(|entry| {
            entry.text.is_empty() || milieu_keys::rules::parse_boolean(&entry.text) == Some(true)
        })
    }
}

/// The named fields of a struct that can be an environment.
fn fields(input: &DeriveInput) -> syn::Result<impl Iterator<Item = &syn::Field>> {
    let refuse = |span, message| Err(syn::Error::new(span, message));
    if !input.generics.params.is_empty() {
        return refuse(
            input.generics.span(),
            "an environment is one layout, so it cannot be generic",
        );
    }
    for attribute in &input.attrs {
        if attribute.path().is_ident("repr")
            && attribute.to_token_stream().to_string().contains("packed")
        {
            return refuse(
                attribute.path().span(),
                "the fields of an environment must be aligned, so it cannot be packed",
            );
        }
    }
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Ok(fields.named.iter()),
            _ => refuse(
                input.ident.span(),
                "the fields of an environment need names: `struct Name { language: Text }`",
            ),
        },
        _ => refuse(
            input.ident.span(),
            "an environment is a struct; for the values of one field, derive `Choice` on an enum",
        ),
    }
}

fn member(field: &syn::Field, root: &str) -> syn::Result<Member> {
    let Some(name) = field.ident.clone() else {
        return Err(syn::Error::new(field.span(), "the field needs a name"));
    };
    let mut key = None;
    for attribute in &field.attrs {
        if attribute.path().is_ident("part") {
            let part: Part = match &attribute.meta {
                Meta::Path(_) => Part::default(),
                _ => attribute.parse_args()?,
            };
            return Ok(Member::Part(PartOf {
                field: name,
                type_: field.ty.clone(),
                prefix: part.prefix,
            }));
        }
        if attribute.path().is_ident("key") {
            key = Some(match &attribute.meta {
                Meta::Path(_) => Key::default(),
                _ => attribute.parse_args()?,
            });
        }
    }
    let Key {
        pattern,
        mut entries,
    } = key.unwrap_or_default();
    let (written, pattern_span) = match &pattern {
        Some(pattern) => (pattern.value(), pattern.span()),
        None => (name.unraw().to_string(), name.span()),
    };
    let mut pattern_text = if written.starts_with('/') {
        written
    } else {
        format!("{root}/{written}")
    };
    let named = element(&field.ty);
    if named.is_some() && pattern.is_none() {
        pattern_text.push_str("/#");
    }
    let is_array = match named {
        Some(_) => true,
        // Another name of an array's type, which the specification's word tells.
        None => pattern_text.ends_with("/#") && entries.iter().any(|entry| entry.name == "type"),
    };
    if !entries.iter().any(|entry| entry.name == "description") {
        entries.extend(description(&field.attrs));
    }
    Ok(Member::Value(Value {
        holds: holds(named.unwrap_or(&field.ty), &entries)?,
        is_array,
        field: name,
        type_: field.ty.clone(),
        pattern: pattern_text,
        pattern_span,
        entries,
    }))
}

/// The doc comment as a description.
fn description(attributes: &[Attribute]) -> Option<Entry> {
    let mut lines = Vec::new();
    let mut span = None;
    for attribute in attributes {
        let Meta::NameValue(doc) = &attribute.meta else {
            continue;
        };
        let syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Str(text),
            ..
        }) = &doc.value
        else {
            continue;
        };
        if doc.path.is_ident("doc") {
            span.get_or_insert(text.span());
            lines.extend(text.value().lines().map(|line| line.trim().to_owned()));
        }
    }
    let text = lines.join("\n").trim().to_owned();
    let span = span.filter(|_| !text.is_empty())?;
    Some(Entry {
        name: "description".to_owned(),
        name_span: span,
        text,
        text_span: span,
    })
}

/// The type of the elements, if this one is called `Array`.
fn element(type_: &Type) -> Option<&Type> {
    let Type::Path(path) = type_ else {
        return None;
    };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first() {
        Some(GenericArgument::Type(element)) if last.ident == "Array" => Some(element),
        _ => None,
    }
}

/// What a field or an element holds: by its explicit `type`, or by the name of
/// its type.
fn holds(type_: &Type, entries: &[Entry]) -> syn::Result<Holds> {
    if let Some(entry) = entries.iter().find(|entry| entry.name == "type") {
        let known = TYPES.iter().find(|(_, name, _)| *name == entry.text);
        return match known {
            Some((_, name, kind)) => Ok(Holds::Known(name, kind)),
            None if entry.text == "enum" => Ok(Holds::Choice),
            None => {
                let names: Vec<_> = TYPES.iter().map(|(_, name, _)| *name).collect();
                Err(syn::Error::new(
                    entry.text_span,
                    format!(
                        "there is no type `{}`; there are enum, {}",
                        entry.text,
                        names.join(", ")
                    ),
                ))
            }
        };
    }
    let Type::Path(path) = type_ else {
        return Err(syn::Error::new(
            type_.span(),
            "a contextual value is a `bool`, a number, a `Text`, an enum that derives `Choice`, \
             or an `Array` of these",
        ));
    };
    let last = path.path.segments.last();
    let name = last.map(|last| last.ident.to_string()).unwrap_or_default();
    if let Some((_, type_, kind)) = TYPES.iter().find(|(rust, _, _)| *rust == name) {
        return Ok(Holds::Known(type_, kind));
    }
    let remedy = match name.as_str() {
        "String" | "str" | "PathBuf" | "Path" | "OsString" | "Cow" => {
            "write `Text`: it reads like a `&str`, and the context keeps its bytes"
        }
        "i8" | "u8" => "write `i16` or `u16`, and say the `range`",
        "isize" | "usize" | "i128" | "u128" => {
            "write `i64` or `u64`: files are read on any machine"
        }
        "char" => "write `Text`, and say `check/length = \"1\"`",
        "Option" => "write the type itself; a value always has a default",
        "Vec" => "write `Array`, and let the name of its key end in `/#`",
        "Array" => "the elements of an array are no arrays",
        "HashMap" | "BTreeMap" => "let a layer tell its entries apart: `/hosts/%host%/port`",
        _ => return Ok(Holds::Choice),
    };
    Err(syn::Error::new(
        type_.span(),
        format!("`{name}` cannot be a contextual value: {remedy}"),
    ))
}

/// Several errors as one.
#[derive(Default)]
pub(super) struct Errors(Option<syn::Error>);

impl Errors {
    pub(super) fn add(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }

    pub(super) fn finish(self) -> syn::Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
