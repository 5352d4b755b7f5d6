//! The enums of enumerations, those of layers included.

use std::collections::HashMap;

use milieu_diagnostics::Diagnostic;
use milieu_keys::Type;

use super::{Emitter, names};
use crate::{
    identifiers::camel_case,
    ir::{Environment, LayerShape, Literal},
    prose::code,
};

impl Emitter<'_> {
    /// The enum of a value, if it is an enumeration.
    pub(super) fn enumeration(&mut self, index: usize) {
        let value = &self.environment.values[index];
        if value.type_ != Type::Enum {
            return;
        }
        let at_root = value.identifiers.len() == 1;
        let name = if at_root {
            names::top_type(self.field(index))
        } else {
            names::type_name(self.field(index))
        };
        let default = match value.default {
            Literal::Variant(variant) => variant as usize,
            _ => 0,
        };
        self.out.gap();
        self.doc([format!("What {} can be.", code(&value.pattern))]);
        self.enum_definition(&name, &value.variants, Some(default));
        self.enum_as_field(&name, &value.variants);
    }

    /// An enum over texts, with everything but its doc comment.
    pub(super) fn enum_definition(
        &mut self,
        name: &str,
        variants: &[String],
        default: Option<usize>,
    ) {
        self.out
            .line("#[allow(dead_code, clippy::enum_variant_names)]");
        self.out.line("#[repr(u32)]");
        let derived = if default.is_some() {
            "Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash"
        } else {
            "Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash"
        };
        self.out.line(format!("#[derive({derived})]"));
        self.out.open(format!("pub enum {name} {{"));
        for (index, text) in variants.iter().enumerate() {
            self.doc([code(text)]);
            if default == Some(index) {
                self.out.line("#[default]");
            }
            self.out.line(format!("{},", names::type_name(text)));
        }
        self.out.close("}");
        self.out.gap();
        let (str_, usize_) = (self.primitives.name("str"), self.primitives.name("usize"));
        self.out.line("#[allow(dead_code)]");
        self.out.open(format!("impl {name} {{"));
        self.doc(["The texts of the variants, in their order.".to_owned()]);
        let texts: Vec<_> = variants.iter().map(|text| names::string(text)).collect();
        self.out.array(
            &format!("pub const TEXTS: &'static [&'static {str_}] = &"),
            &texts,
            ";",
        );
        self.out.gap();
        self.doc(["The text that files and options use.".to_owned()]);
        self.out.line("#[must_use]");
        self.out
            .open(format!("pub const fn as_str(self) -> &'static {str_} {{"));
        self.out.line(format!("Self::TEXTS[self as {usize_}]"));
        self.out.close("}");
        self.out.close("}");
        self.display(name);
    }

    fn display(&mut self, name: &str) {
        self.out.gap();
        self.out
            .open(format!("impl ::core::fmt::Display for {name} {{"));
        self.out
            .open("fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {");
        self.out.line("f.pad(self.as_str())");
        self.out.close("}");
        self.out.close("}");
    }

    /// What makes an enum a contextual value, and readable from text.
    fn enum_as_field(&mut self, name: &str, variants: &[String]) {
        let str_ = self.primitives.name("str");
        let field = self.context("Field");
        let kind = self.context("Kind");
        let violation = self.keys("Violation");
        self.out.gap();
        self.out
            .open(format!("impl ::core::str::FromStr for {name} {{"));
        self.out.line(format!("type Err = {violation};"));
        self.out.gap();
        self.out.open(format!(
            "fn from_str(text: &{str_}) -> ::core::result::Result<Self, Self::Err> {{"
        ));
        self.out.open("match text {");
        for text in variants {
            let (text, variant) = (names::string(text), names::type_name(text));
            self.out.line(format!("{text} => Ok(Self::{variant}),"));
        }
        self.out.open(format!("_ => Err({violation} {{"));
        self.out.line("rule: \"check/enum\".into(),");
        self.out.line("value: text.into(),");
        let message = format!("is not one of: {}", variants.join(", "));
        self.out
            .line(format!("message: {}.into(),", names::string(&message)));
        self.out.close("}),");
        self.out.close("}");
        self.out.close("}");
        self.out.close("}");
        self.out.gap();
        self.out
            .line("// SAFETY: the enum is `repr(u32)`, and its variants count from 0.");
        self.out.open(format!("unsafe impl {field} for {name} {{"));
        self.out.line(format!("const KIND: {kind} = {kind}::Enum;"));
        self.out.line("type Input<'a> = Self;");
        self.out.gap();
        self.out.open(format!(
            "fn text<'a>(input: Self) -> ::std::borrow::Cow<'a, {str_}> {{"
        ));
        self.out
            .line("::std::borrow::Cow::Borrowed(input.as_str())");
        self.out.close("}");
        self.out.close("}");
    }
}

/// Variants that Rust could not tell apart, or that it could not call anything.
pub(super) fn colliding_variants(environment: &Environment, found: &mut Vec<Diagnostic>) {
    let values = environment
        .values
        .iter()
        .map(|value| (value.variants.as_slice(), value.span));
    let layers = environment
        .layers
        .iter()
        .filter_map(|layer| match &layer.shape {
            LayerShape::Choice(texts) => Some((texts.as_slice(), layer.span)),
            _ => None,
        });
    for (variants, span) in values.chain(layers) {
        let mut first: HashMap<String, &str> = HashMap::new();
        for text in variants {
            let Some(name) = camel_case(text) else {
                found.push(
                    Diagnostic::error(format!(
                        "the value `{text}` leaves nothing that a variant could be called"
                    ))
                    .code("identifier")
                    .label(span, "in this enumeration")
                    .help("write it with letters or digits"),
                );
                continue;
            };
            if let Some(other) = first.insert(name.clone(), text) {
                found.push(
                    Diagnostic::error(format!(
                        "the values `{other}` and `{text}` would both be the variant `{name}`"
                    ))
                    .code("identifier")
                    .label(span, "in this enumeration")
                    .help("write one of them with other letters or digits"),
                );
            }
        }
    }
}
