//! `Debug` for structs with secrets, which the derived one would show.

use milieu_keys::rules::REDACTED;

use super::{Emitter, names};
use crate::ir::{Branch, Member};

impl Emitter<'_> {
    /// Whether a field of the branch's own struct holds a secret.
    pub(super) fn has_secrets(&self, branch: &Branch) -> bool {
        branch
            .members
            .iter()
            .any(|member| matches!(member, Member::Value(at) if self.value(*at).is_secret()))
    }

    /// What the derived implementation would be, but for the secrets.
    pub(super) fn debug_without_secrets(&mut self, branch: &Branch, name: &str) {
        self.out.gap();
        self.out
            .open(format!("impl ::core::fmt::Debug for {name} {{"));
        self.out
            .open("fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {");
        self.out
            .line(format!("f.debug_struct({})", names::string(name)));
        for member in &branch.members {
            let (field, secret) = match member {
                Member::Value(at) => (self.field(*at), self.value(*at).is_secret()),
                Member::Branch(below) => (below.identifier.as_str(), false),
            };
            let shown = match secret {
                true => format!("&::core::format_args!({})", names::string(REDACTED)),
                false => format!("&self.{}", names::identifier(field)),
            };
            let field = names::string(field);
            self.out.line(format!("    .field({field}, {shown})"));
        }
        self.out.line("    .finish()");
        self.out.close("}");
        self.out.close("}");
    }
}
