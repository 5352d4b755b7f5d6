//! The attributes as they are written.

use proc_macro2::Span;
use syn::{
    Ident, Lit, LitStr, Path, Token, bracketed,
    ext::IdentExt,
    parenthesized,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
};

/// One metadata entry, and where its name and its text stand.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) name_span: Span,
    pub(super) text: String,
    pub(super) text_span: Span,
}

/// `#[key("/sw/pi/%session%/language", default = "en", readonly)]`
#[derive(Default)]
pub(super) struct Key {
    pub(super) pattern: Option<LitStr>,
    pub(super) entries: Vec<Entry>,
}

impl Parse for Key {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut key = Key::default();
        if input.peek(LitStr) {
            key.pattern = Some(input.parse()?);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        while !input.is_empty() {
            key.argument(input)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(key)
    }
}

impl Key {
    fn argument(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        let first = Ident::parse_any(input)?;
        if first == "meta" && input.peek(syn::token::Paren) {
            let content;
            parenthesized!(content in input);
            while !content.is_empty() {
                let name: LitStr = content.parse()?;
                self.values(name.value(), name.span(), &content)?;
                if !content.is_empty() {
                    content.parse::<Token![,]>()?;
                }
            }
            return Ok(());
        }
        let span = first.span();
        let mut name = first.unraw().to_string();
        while input.peek(Token![/]) {
            input.parse::<Token![/]>()?;
            let level = Ident::parse_any(input)?;
            name.push('/');
            name.push_str(&level.unraw().to_string());
        }
        self.values(name, span, input)
    }

    /// What follows a name: nothing, `= literal`, or `= [literal, …]`.
    fn values(&mut self, name: String, name_span: Span, input: ParseStream<'_>) -> syn::Result<()> {
        let entry = |name, text, text_span| Entry {
            name,
            name_span,
            text,
            text_span,
        };
        if !input.peek(Token![=]) {
            self.entries.push(entry(name, String::new(), name_span));
            return Ok(());
        }
        input.parse::<Token![=]>()?;
        if input.peek(syn::token::Bracket) {
            let content;
            bracketed!(content in input);
            let mut index = 0;
            while !content.is_empty() {
                let (text, span) = literal(&content)?;
                self.entries
                    .push(entry(format!("{name}/#{index}"), text, span));
                index += 1;
                if !content.is_empty() {
                    content.parse::<Token![,]>()?;
                }
            }
            return Ok(());
        }
        let (text, span) = literal(input)?;
        self.entries.push(entry(name, text, span));
        Ok(())
    }
}

/// A literal as a file would say it.
fn literal(input: ParseStream<'_>) -> syn::Result<(String, Span)> {
    let minus = input.peek(Token![-]);
    if minus {
        input.parse::<Token![-]>()?;
    }
    let expected = "expected a string, a number, a character or a boolean";
    let literal: Lit = input
        .parse()
        .map_err(|error| syn::Error::new(error.span(), expected))?;
    let span = literal.span();
    let text = match &literal {
        Lit::Str(text) if !minus => text.value(),
        Lit::Char(character) if !minus => character.value().to_string(),
        Lit::Bool(value) if !minus => value.value.to_string(),
        Lit::Int(number) => signed(minus, number.base10_digits()),
        Lit::Float(number) => signed(minus, number.base10_digits()),
        _ => {
            return Err(syn::Error::new(span, expected));
        }
    };
    Ok((text, span))
}

fn signed(minus: bool, digits: &str) -> String {
    format!("{}{digits}", if minus { "-" } else { "" })
}

/// `#[part]`, `#[part("/sw")]`
#[derive(Default)]
pub(super) struct Part {
    pub(super) prefix: Option<LitStr>,
}

impl Parse for Part {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let prefix = if input.is_empty() {
            None
        } else {
            Some(input.parse()?)
        };
        Ok(Part { prefix })
    }
}

/// `#[environment(root = "/sw/pi", at = names, crate = ::milieu, removed("hours" = "why"))]`
#[derive(Default)]
pub(super) struct Settings {
    pub(super) root: Option<LitStr>,
    pub(super) at: Option<Ident>,
    pub(super) crate_path: Option<Path>,
    /// Keys that are no more, and why.
    pub(super) removed: Vec<(LitStr, LitStr)>,
}

impl Parse for Settings {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut settings = Settings::default();
        let arguments = Punctuated::<Setting, Token![,]>::parse_terminated(input)?;
        for argument in arguments {
            match argument {
                Setting::Root(root) => settings.root = Some(root),
                Setting::At(at) => settings.at = Some(at),
                Setting::Crate(path) => settings.crate_path = Some(path),
                Setting::Removed(removed) => settings.removed.extend(removed),
            }
        }
        Ok(settings)
    }
}

enum Setting {
    Root(LitStr),
    At(Ident),
    Crate(Path),
    Removed(Vec<(LitStr, LitStr)>),
}

impl Parse for Setting {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = Ident::parse_any(input)?;
        if name == "removed" {
            let content;
            parenthesized!(content in input);
            let removed = Punctuated::<Removed, Token![,]>::parse_terminated(&content)?;
            let removed = removed.into_iter().map(|Removed(name, why)| (name, why));
            return Ok(Setting::Removed(removed.collect()));
        }
        input.parse::<Token![=]>()?;
        if name == "root" {
            input.parse().map(Setting::Root)
        } else if name == "at" {
            input.parse().map(Setting::At)
        } else if name == "crate" {
            Path::parse_mod_style(input).map(Setting::Crate)
        } else {
            Err(syn::Error::new(
                name.span(),
                format!(
                    "there is no setting `{name}`; there are `root`, `at`, `crate` and `removed`"
                ),
            ))
        }
    }
}

/// `"hours" = "since 2.0 the clock decides"`
struct Removed(LitStr, LitStr);

impl Parse for Removed {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.parse()?;
        input.parse::<Token![=]>()?;
        Ok(Removed(name, input.parse()?))
    }
}
