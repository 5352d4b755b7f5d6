//! The table of values: where each field is and what the specification says.

use super::{Emitter, names};
use crate::ir::Value;

impl Emitter<'_> {
    /// `Environment`'s implementation of the trait of the same name.
    pub(super) fn table(&mut self) {
        let trait_ = self.context("Environment");
        let descriptor = self.context("Descriptor");
        self.out.gap();
        self.out.line(
            "// SAFETY: the table has one entry for each field of the structs, with the offset",
        );
        self.out
            .line("// of that very field and the kind of its type; enums list all their variants.");
        self.out
            .open(format!("unsafe impl {trait_} for Environment {{"));
        let declaration = format!("const VALUES: &'static [{descriptor}] = &[");
        let single = format!("{declaration}{descriptor} {{");
        // rustfmt puts the brackets of a single element on one line with its own.
        if self.environment.values.len() == 1 && single.len() + 4 <= 100 {
            self.out.open(single);
            self.entries(0);
            self.out.close("}];");
        } else {
            self.out.open(declaration);
            for index in 0..self.environment.values.len() {
                self.out.open(format!("{descriptor} {{"));
                self.entries(index);
                self.out.close("},");
            }
            self.out.close("];");
        }
        self.out.gap();
        self.out.open("fn initial() -> Self {");
        self.out.line("::core::default::Default::default()");
        self.out.close("}");
        self.out.close("}");
    }

    /// What one descriptor consists of.
    fn entries(&mut self, index: usize) {
        let value = &self.environment.values[index];
        let path: Vec<_> = value
            .identifiers
            .iter()
            .map(|identifier| names::identifier(identifier))
            .collect();
        let kind = match names::number(value.type_) {
            Some((_, kind)) => kind,
            None if value.variants.is_empty() => "Text",
            None => "Enum",
        };
        let kinds = self.context("Kind");
        let kind = match value.is_array {
            true => format!("{kinds}::Array(&{kinds}::{kind})"),
            false => format!("{kinds}::{kind}"),
        };
        self.out
            .line(format!("pattern: {},", names::string(&value.pattern)));
        self.out.line(format!(
            "offset: ::core::mem::offset_of!(Environment, {}),",
            path.join(".")
        ));
        self.out.line(format!("kind: {kind},"));
        self.out.pairs("metadata: &", &pairs(value), ",");
    }
}

/// The metadata as literals.
fn pairs(value: &Value) -> Vec<(String, String)> {
    value
        .metadata
        .iter()
        .map(|(name, text)| (names::string(name), names::string(text)))
        .collect()
}
