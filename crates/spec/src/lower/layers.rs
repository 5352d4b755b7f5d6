//! The layers: those that are declared, and those that names only mention.

use std::collections::HashMap;

use milieu_diagnostics::{Diagnostic, Span};
use milieu_keys::{LayerSpec, Rules, Specification, Type};

use super::{Lowering, report};
use crate::{
    identifiers::camel_case,
    ir::{Layer, LayerShape},
};

impl Lowering {
    pub(super) fn layers(&mut self, specification: &Specification) -> Vec<Layer> {
        let mut layers: Vec<Layer> = Vec::new();
        for declared in &specification.layers {
            if let Some(layer) = self.declared_layer(declared) {
                layers.push(layer);
            }
        }
        let mut used: Vec<(String, Span)> = Vec::new();
        for value in &self.values {
            for name in &value.layers {
                let is_known = layers.iter().any(|layer| layer.name == *name)
                    || used.iter().any(|(other, _)| other == name);
                if !is_known {
                    used.push((name.clone(), value.span));
                }
            }
        }
        for (name, span) in used {
            layers.push(Layer {
                identifier: self.layer_identifier(&name, None, span),
                name,
                shape: LayerShape::Text,
                inherited: false,
                metadata: Vec::new(),
                span,
            });
        }
        if self.capabilities.identifiers {
            self.report_layer_collisions(&layers);
        }
        layers
    }

    fn declared_layer(&mut self, declared: &LayerSpec) -> Option<Layer> {
        let rules = Rules::from_metadata(&declared.borrowed());
        let shape = match (declared.get("type"), rules) {
            (None, _) => LayerShape::Flag,
            (Some(_), Ok(rules)) => match rules.type_() {
                Type::Boolean => LayerShape::Flag,
                Type::String => LayerShape::Text,
                Type::Enum => LayerShape::Choice(rules.variants().to_vec()),
                number => LayerShape::Number(*number),
            },
            (Some(_), Err(error)) => {
                self.diagnostics.push(
                    Diagnostic::error(error.message.clone())
                        .label(declared.span, "in this layer's section"),
                );
                return None;
            }
        };
        Some(Layer {
            name: declared.name.clone(),
            identifier: self.layer_identifier(&declared.name, declared.identifier(), declared.span),
            shape,
            inherited: declared.get("inherited").is_some_and(|text| {
                text.is_empty() || milieu_keys::rules::parse_boolean(text) == Some(true)
            }),
            metadata: declared.metadata.clone(),
            span: declared.span,
        })
    }

    /// What the specification calls the layer's type, or its name in camel case.
    fn layer_identifier(&mut self, name: &str, own: Option<&str>, span: Span) -> String {
        match own.map(str::to_owned).or_else(|| camel_case(name)) {
            Some(identifier) => identifier,
            None => {
                if self.capabilities.identifiers {
                    self.diagnostics
                        .push(report::layer_has_no_identifier(name, span));
                }
                String::new()
            }
        }
    }

    fn report_layer_collisions(&mut self, layers: &[Layer]) {
        let mut first: HashMap<&str, &Layer> = HashMap::new();
        for layer in layers.iter().filter(|layer| !layer.identifier.is_empty()) {
            if let Some(other) = first.insert(&layer.identifier, layer) {
                self.diagnostics.push(report::same_layer_type(other, layer));
            }
        }
    }
}
