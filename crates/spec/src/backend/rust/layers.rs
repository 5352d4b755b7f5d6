//! `layer`: one type for each layer, declared or only used.

use super::{Emitter, names};
use crate::{
    ir::{Layer, LayerShape},
    prose::code,
};

impl Emitter<'_> {
    /// The module of the layers, if there are any.
    pub(super) fn layers(&mut self) {
        let environment = self.environment;
        if environment.layers.is_empty() {
            return;
        }
        self.out.gap();
        self.doc([format!("The layers of {}.", code(&environment.title))]);
        self.out.line("#[allow(dead_code)]");
        self.out.open("pub mod layer {");
        for layer in &environment.layers {
            self.out.gap();
            self.layer(layer);
        }
        self.out.close("}");
    }

    fn layer(&mut self, layer: &Layer) {
        const DERIVED: &str = "#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]";
        const DERIVED_FLOAT: &str = "#[derive(Clone, Copy, Debug, Default, PartialEq)]";

        let name = names::identifier(&layer.identifier);
        self.layer_doc(layer);
        match &layer.shape {
            LayerShape::Flag => {
                self.out.line(DERIVED);
                self.out.line(format!("pub struct {name};"));
                self.implementation(layer, "", &name, "Borrowed(\"active\")");
            }
            LayerShape::Text => {
                self.out.line(DERIVED);
                self.out
                    .line(format!("pub struct {name}<T = &'static str>(pub T);"));
                self.implementation(
                    layer,
                    "<T: ::core::convert::AsRef<str>>",
                    &format!("{name}<T>"),
                    "Borrowed(self.0.as_ref())",
                );
            }
            LayerShape::Number(type_) => {
                let (primitive, _) = names::number(*type_).unwrap_or(("u64", ""));
                self.out.line(if primitive.starts_with('f') {
                    DERIVED_FLOAT
                } else {
                    DERIVED
                });
                self.out
                    .line(format!("pub struct {name}(pub {primitive});"));
                let value = "Owned(::std::string::ToString::to_string(&self.0))";
                self.implementation(layer, "", &name, value);
            }
            LayerShape::Choice(texts) => {
                self.enum_definition(&name, texts, None);
                self.implementation(layer, "", &name, "Borrowed(self.as_str())");
            }
        }
    }

    fn implementation(&mut self, layer: &Layer, generics: &str, name: &str, value: &str) {
        let trait_ = self.context("Layer");
        self.out.gap();
        self.out
            .open(format!("impl{generics} {trait_} for {name} {{"));
        self.out.line(format!(
            "const ID: &'static str = {};",
            names::string(&layer.name)
        ));
        if layer.inherited {
            self.out.line("const INHERITED: bool = true;");
        }
        self.out.gap();
        self.out
            .open("fn value(&self) -> ::std::borrow::Cow<'_, str> {");
        self.out.line(format!("::std::borrow::Cow::{value}"));
        self.out.close("}");
        self.out.close("}");
    }
}
