//! The structs of the branches and the enums of the enumerations.

use std::collections::HashMap;

use milieu_diagnostics::Diagnostic;
use milieu_keys::Type;

use super::{Emitter, branches_of, names};
use crate::{
    ir::{Branch, Environment, Literal, Member},
    prose::code,
};

impl Emitter<'_> {
    /// The environment itself.
    pub(super) fn root_struct(&mut self) {
        let environment = self.environment;
        let mut lines = vec![format!(
            "The contextual values of {}.",
            code(&environment.title)
        )];
        if let Some(description) = &environment.root.description {
            lines.push(String::new());
            lines.extend(crate::prose::markdown(description));
        }
        self.doc(lines);
        self.structure(&environment.root, "Environment", "");
    }

    /// The types below the root, each branch's in a module of its own.
    pub(super) fn branches(&mut self) {
        self.types_below(&self.environment.root, true);
    }

    /// The types of the branches and enumerations directly below `branch`.
    fn types_below(&mut self, branch: &Branch, at_root: bool) {
        for member in &branch.members {
            match member {
                Member::Value(index) => self.enumeration(*index),
                Member::Branch(below) => {
                    let (type_name, module) = if at_root {
                        (
                            names::top_type(&below.identifier),
                            names::top_module(&below.identifier),
                        )
                    } else {
                        (
                            names::type_name(&below.identifier),
                            names::identifier(&below.identifier),
                        )
                    };
                    self.out.gap();
                    self.branch_doc(below);
                    self.structure(below, &type_name, &format!("{module}::"));
                    if self.has_types(below) {
                        self.out.gap();
                        self.doc([format!("Types of the branch {}.", code(&below.name))]);
                        self.out
                            .line("#[allow(dead_code, clippy::module_inception)]");
                        self.out.open(format!("pub mod {module} {{"));
                        self.types_below(below, false);
                        self.out.close("}");
                    }
                }
            }
        }
    }

    /// Whether a branch has branches or enumerations directly below.
    fn has_types(&self, branch: &Branch) -> bool {
        branch.members.iter().any(|member| match member {
            Member::Branch(_) => true,
            Member::Value(index) => self.value(*index).type_ == Type::Enum,
        })
    }

    fn branch_doc(&mut self, branch: &Branch) {
        let name = code(&branch.name);
        match &branch.description {
            None => self.doc([format!("The branch {name}.")]),
            Some(description) => {
                let mut lines = crate::prose::markdown(description);
                lines.push(String::new());
                lines.push(format!("The branch {name}."));
                self.doc(lines);
            }
        }
    }

    /// A struct without its doc comment. `module` leads from where the struct
    /// stands to the types of its fields.
    fn structure(&mut self, branch: &Branch, name: &str, module: &str) {
        let is_zero = branch.members.iter().all(|member| match member {
            Member::Branch(_) => true,
            Member::Value(index) => self.starts_at_zero(*index),
        });
        self.out.line("#[allow(dead_code)]");
        self.out.line("#[repr(C)]");
        let has_secrets = self.has_secrets(branch);
        match (has_secrets, is_zero) {
            (false, true) => self.out.line("#[derive(Debug, Default)]"),
            (false, false) => self.out.line("#[derive(Debug)]"),
            (true, true) => self.out.line("#[derive(Default)]"),
            (true, false) => {}
        }
        self.out.open(format!("pub struct {name} {{"));
        for member in &branch.members {
            match member {
                Member::Value(index) => {
                    self.value_doc(*index);
                    let field = names::identifier(self.field(*index));
                    let type_ = self.type_of(*index, module);
                    self.out.line(format!("pub {field}: {type_},"));
                }
                Member::Branch(below) => {
                    self.branch_doc(below);
                    let field = names::identifier(&below.identifier);
                    let type_ = if module.is_empty() {
                        names::top_type(&below.identifier)
                    } else {
                        format!("{module}{}", names::type_name(&below.identifier))
                    };
                    self.out.line(format!("pub {field}: {type_},"));
                }
            }
        }
        self.out.close("}");
        if has_secrets {
            self.debug_without_secrets(branch, name);
        }
        if !is_zero {
            self.defaults(branch, name, module);
        }
    }

    fn defaults(&mut self, branch: &Branch, name: &str, module: &str) {
        self.out.gap();
        self.out
            .open(format!("impl ::core::default::Default for {name} {{"));
        let has_float = branch.members.iter().any(|member| {
            matches!(member, Member::Value(index)
                if matches!(self.value(*index).default, Literal::Float(_))
                    && !self.value(*index).is_array)
        });
        if has_float {
            self.out.line("#[allow(clippy::approx_constant)]");
        }
        self.out.open("fn default() -> Self {");
        let mut fields = Vec::new();
        for member in &branch.members {
            let (field, value) = match member {
                Member::Value(index) => (self.field(*index), self.default_of(*index, module)),
                Member::Branch(below) => (
                    below.identifier.as_str(),
                    "::core::default::Default::default()".to_owned(),
                ),
            };
            fields.push(format!("{}: {value}", names::identifier(field)));
        }
        self.out.literal("Self", &fields);
        self.out.close("}");
        self.out.close("}");
    }

    /// The neutral name of a value's field.
    pub(super) fn field(&self, index: usize) -> &str {
        self.environment.values[index]
            .identifiers
            .last()
            .map_or("", String::as_str)
    }

    /// The type of a value's field, seen from where `module` leads on.
    pub(super) fn type_of(&self, index: usize, module: &str) -> String {
        let element = self.element_type(index, module);
        match self.value(index).is_array {
            true => format!("{}<{element}>", self.context("Array")),
            false => element,
        }
    }

    /// The same, or that of an array's elements.
    fn element_type(&self, index: usize, module: &str) -> String {
        let value = self.value(index);
        match names::number(value.type_) {
            Some((primitive, _)) => self.primitives.name(primitive),
            None if value.type_ == Type::Enum => self.enum_path(index, module),
            None => self.context("Text"),
        }
    }

    fn enum_path(&self, index: usize, module: &str) -> String {
        if module.is_empty() {
            names::top_type(self.field(index))
        } else {
            format!("{module}{}", names::type_name(self.field(index)))
        }
    }

    /// Whether the type's own `Default` is the value's default.
    fn starts_at_zero(&self, index: usize) -> bool {
        let value = self.value(index);
        match &value.default {
            _ if value.is_array => true,
            Literal::Boolean(value) => !value,
            Literal::Signed(value) => *value == 0,
            Literal::Unsigned(value) => *value == 0,
            Literal::Float(value) => value.to_bits() == 0,
            Literal::Text(value) => value.is_empty(),
            // The enum is generated for this value, its default included.
            Literal::Variant(_) => true,
        }
    }

    fn default_of(&self, index: usize, module: &str) -> String {
        let value = self.value(index);
        match &value.default {
            _ if value.is_array => "::core::default::Default::default()".to_owned(),
            Literal::Boolean(value) => value.to_string(),
            Literal::Signed(value) => value.to_string(),
            Literal::Unsigned(value) => value.to_string(),
            Literal::Float(number) => self.float(value.type_, *number),
            Literal::Text(text) if text.is_empty() => {
                "::core::default::Default::default()".to_owned()
            }
            Literal::Text(text) => {
                let type_ = self.context("Text");
                format!("{type_}::from_static({})", names::string(text))
            }
            Literal::Variant(variant) => {
                let text = &value.variants[*variant as usize];
                format!(
                    "{}::{}",
                    self.enum_path(index, module),
                    names::type_name(text)
                )
            }
        }
    }
}

impl Emitter<'_> {
    /// A float as a literal, with no more digits than it takes.
    #[allow(clippy::cast_possible_truncation)]
    fn float(&self, type_: Type, number: f64) -> String {
        let primitive = if type_ == Type::Float { "f32" } else { "f64" };
        let constant = |name| format!("{}::{name}", self.primitives.name(primitive));
        if number.is_nan() {
            constant("NAN")
        } else if number == f64::INFINITY {
            constant("INFINITY")
        } else if number == f64::NEG_INFINITY {
            constant("NEG_INFINITY")
        } else if type_ == Type::Float {
            format!("{:?}", number as f32)
        } else {
            format!("{number:?}")
        }
    }
}

/// Types of one module that Rust could not tell apart.
pub(super) fn colliding_types(
    branch: &Branch,
    environment: &Environment,
    found: &mut Vec<Diagnostic>,
) {
    let mut first: HashMap<String, String> = HashMap::new();
    for member in &branch.members {
        let (identifier, name) = match member {
            Member::Branch(below) => (below.identifier.as_str(), below.name.clone()),
            Member::Value(index) => {
                let value = &environment.values[*index];
                if value.type_ != Type::Enum {
                    continue;
                }
                let identifier = value.identifiers.last().map_or("", String::as_str);
                (identifier, value.pattern.clone())
            }
        };
        let type_name = names::type_name(identifier);
        if let Some(other) = first.insert(type_name.clone(), name.clone()) {
            found.push(
                Diagnostic::error(format!(
                    "`{other}` and `{name}` would both have the type `{type_name}`"
                ))
                .code("identifier")
                .help("give one of them another name with `identifier=`"),
            );
        }
    }
    for below in branches_of(branch) {
        colliding_types(below, environment, found);
    }
}
