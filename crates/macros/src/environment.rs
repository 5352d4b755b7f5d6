//! `environment!`: a specification, in a file or in place, as Rust.

use std::path::Path as FilePath;

use milieu_diagnostics::{Severity, Source, render};
use milieu_spec::{Settings, backend::rust::Rust, generate};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{
    Error, Ident, LitStr, Path, Token,
    ext::IdentExt,
    parse::{Parse, ParseStream},
};

/// `"station.ini", root = "/sw/pi", crate = ::milieu`
pub(crate) struct Invocation {
    specification: LitStr,
    root: Option<LitStr>,
    crate_path: Option<Path>,
}

impl Parse for Invocation {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut invocation = Invocation {
            specification: input.parse()?,
            root: None,
            crate_path: None,
        };
        while !input.is_empty() {
            input.parse::<Token![,]>()?;
            if input.is_empty() {
                break;
            }
            let name = Ident::parse_any(input)?;
            input.parse::<Token![=]>()?;
            if name == "root" {
                invocation.root = Some(input.parse()?);
            } else if name == "crate" {
                invocation.crate_path = Some(Path::parse_mod_style(input)?);
            } else {
                return Err(Error::new(
                    name.span(),
                    format!("there is no setting `{name}`; there are `root` and `crate`"),
                ));
            }
        }
        Ok(invocation)
    }
}

impl Invocation {
    /// The generated code, and what has Cargo watch the file.
    pub(crate) fn expand(&self) -> syn::Result<TokenStream> {
        let (source, watch) = self.source()?;
        let mut settings = Settings::new(stem(&source.name));
        settings.root = self.root.as_ref().map(LitStr::value);
        if let Some(path) = &self.crate_path {
            settings.crate_path = path.to_token_stream().to_string().replace(' ', "");
        }
        let output = generate(&source, &Rust, &settings);
        let errors: Vec<_> = output
            .diagnostics
            .into_iter()
            .filter(|found| found.severity == Severity::Error)
            .collect();
        if !errors.is_empty() {
            let text = render(&source, &errors, false);
            return Err(self.error(format!("the specification has errors\n\n{text}")));
        }
        let mut tokens = watch;
        for file in output.files {
            let code: TokenStream = file.text.parse().map_err(|error| {
                self.error(format!("the generated code cannot be read: {error}"))
            })?;
            tokens.extend(code);
        }
        Ok(tokens)
    }

    /// A text with line breaks, or one that begins as a section, stands here
    /// itself; another one is a path from the folder of the package.
    fn source(&self) -> syn::Result<(Source, TokenStream)> {
        let text = self.specification.value();
        if text.contains('\n') || text.trim_start().starts_with('[') {
            return Ok((Source::new("environment!", text), TokenStream::new()));
        }
        let folder = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
        let path = FilePath::new(&folder).join(&text);
        let content = std::fs::read_to_string(&path).map_err(|error| {
            self.error(format!(
                "cannot read `{}`: {error}; paths are relative to the folder of Cargo.toml",
                path.display()
            ))
        })?;
        let watch = if FilePath::new(&text).is_absolute() {
            quote! { const _: &str = include_str!(#text); }
        } else {
            quote! { const _: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", #text)); }
        };
        Ok((Source::new(text, content), watch))
    }

    fn error(&self, message: String) -> Error {
        Error::new(self.specification.span(), message)
    }
}

fn stem(name: &str) -> &str {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.rsplit_once('.').map_or(file, |(stem, _)| stem)
}
