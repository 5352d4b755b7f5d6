//! `at`: one marker type for each value, in modules that mirror the branches.

use super::{Emitter, names};
use crate::{
    ir::{Branch, Member},
    prose::code,
};

impl Emitter<'_> {
    /// The module of the markers, if there are any.
    pub(super) fn markers(&mut self) {
        if self.environment.values.is_empty() {
            return;
        }
        self.out.gap();
        self.doc([format!(
            "What the values are called where they are assigned: {}.",
            code(&self.example())
        )]);
        self.out
            .line("#[allow(dead_code, non_camel_case_types, clippy::module_inception)]");
        self.out.open("pub mod at {");
        self.markers_below(&self.environment.root, 1);
        self.out.close("}");
    }

    /// How the first assignable value would be assigned.
    fn example(&self) -> String {
        let values = &self.environment.values;
        let value = values
            .iter()
            .find(|value| !value.read_only)
            .or(values.first());
        let path: Vec<_> = value
            .into_iter()
            .flat_map(|value| &value.identifiers)
            .map(|identifier| names::identifier(identifier))
            .collect();
        format!("cx.set::<at::{}>(…)", path.join("::"))
    }

    fn markers_below(&mut self, branch: &Branch, depth: usize) {
        for member in &branch.members {
            self.out.gap();
            match member {
                Member::Value(index) => self.marker(*index, depth),
                Member::Branch(below) => {
                    self.doc([format!("Markers of the branch {}.", code(&below.name))]);
                    let module = names::identifier(&below.identifier);
                    self.out.open(format!("pub mod {module} {{"));
                    self.markers_below(below, depth + 1);
                    self.out.close("}");
                }
            }
        }
    }

    fn marker(&mut self, index: usize, depth: usize) {
        let value = &self.environment.values[index];
        let name = names::identifier(value.identifiers.last().map_or("", String::as_str));
        let up = "super::".repeat(depth);
        let path = value.identifiers.join(".");
        let mut doc = vec![format!(
            "{}, the field {}.",
            code(&value.pattern),
            code(&path)
        )];
        if value.read_only {
            doc.push(String::new());
            doc.push("Read-only: it has no assignment.".to_owned());
        }
        self.doc(doc);
        self.out.line("#[derive(Clone, Copy, Debug)]");
        self.out.line(format!("pub enum {name} {{}}"));
        self.out.gap();
        let type_ = self.type_at(index, &up);
        let trait_ = self.context("Value");
        self.out
            .line("// SAFETY: the entry of that index describes this very field.");
        self.out.open(format!("unsafe impl {trait_} for {name} {{"));
        self.out
            .line(format!("type Environment = {up}Environment;"));
        self.out.line(format!("type Type = {type_};"));
        let usize_ = self.primitives.name("usize");
        self.out.line(format!("const INDEX: {usize_} = {index};"));
        self.out.close("}");
        if !value.read_only {
            let assign = self.context("Assign");
            self.out.gap();
            self.out.line(format!("impl {assign} for {name} {{}}"));
        }
    }

    /// The type of a value, seen from its marker.
    fn type_at(&self, index: usize, up: &str) -> String {
        let value = self.value(index);
        if value.variants.is_empty() {
            return self.type_of(index, "");
        }
        let mut path = up.to_owned();
        let branches = &value.identifiers[..value.identifiers.len() - 1];
        for (position, branch) in branches.iter().enumerate() {
            path.push_str(&if position == 0 {
                names::top_module(branch)
            } else {
                names::identifier(branch)
            });
            path.push_str("::");
        }
        if branches.is_empty() {
            format!("{path}{}", self.type_of(index, ""))
        } else {
            self.type_of(index, &path)
        }
    }
}
