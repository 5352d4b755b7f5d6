//! What the names of an expression name: fields of the event, variables of
//! macros, types.

use std::sync::Arc;

use milieu_diagnostics::{Diagnostic, Span};
use milieu_transfer::{Path, Selection, Step, Value};

use crate::ast::{Node, What};
use crate::kind::Kind;
use crate::suggest::nearest;

/// A field that an expression reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// The way to the field.
    pub path: Path,
    /// Where it is named first.
    pub span: Span,
}

type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// Finds out what the names of a tree name, and lists the fields.
pub(crate) fn resolve(node: Node) -> Result<(Node, Vec<Variable>)> {
    let mut resolver = Resolver {
        scope: Vec::new(),
        variables: Vec::new(),
    };
    let node = resolver.node(node)?;
    Ok((node, resolver.variables))
}

struct Resolver {
    /// The variables of macros, the outermost first.
    scope: Vec<Arc<str>>,
    variables: Vec<Variable>,
}

impl Resolver {
    fn node(&mut self, node: Node) -> Result<Node> {
        let span = node.span;
        if let Some(path) = self.path(&node) {
            let shown = path.to_string();
            if let Some(kind) = Kind::named(&shown) {
                return Ok(Node::new(What::Literal(kind.value()), span));
            }
            return Ok(Node::new(What::Variable(self.variable(path, span)?), span));
        }
        let what = match node.what {
            What::Name(name) => match self.scope.iter().rposition(|known| *known == name) {
                Some(number) => What::Local(number),
                None => What::Name(name),
            },
            What::Has(of, name) => match self.path(&of) {
                Some(path) => {
                    let path = below(path, Step::Field((&*name).into()));
                    What::HasVariable(self.variable(path, span)?)
                }
                None => What::Has(self.boxed(*of)?, name),
            },
            What::Select(of, name) => What::Select(self.boxed(*of)?, name),
            What::Index(of, index) => What::Index(self.boxed(*of)?, self.boxed(*index)?),
            What::Call(function, nodes) => What::Call(function, self.nodes(nodes)?),
            What::Not(of) => What::Not(self.boxed(*of)?),
            What::Negate(of) => What::Negate(self.boxed(*of)?),
            What::Binary(operator, left, right) => {
                What::Binary(operator, self.boxed(*left)?, self.boxed(*right)?)
            }
            What::And(nodes) => What::And(self.nodes(nodes)?),
            What::Or(nodes) => What::Or(self.nodes(nodes)?),
            What::Conditional(nodes) => {
                let [condition, yes, no] = *nodes;
                let nodes = [self.node(condition)?, self.node(yes)?, self.node(no)?];
                What::Conditional(Box::new(nodes))
            }
            What::List(nodes) => What::List(self.nodes(nodes)?),
            What::Map(entries) => {
                let entries = entries
                    .into_iter()
                    .map(|(key, value)| Ok((self.node(key)?, self.node(value)?)));
                What::Map(entries.collect::<Result<_>>()?)
            }
            What::Fold(mut fold) => {
                fold.of = self.node(fold.of)?;
                fold.local = self.scope.len();
                self.scope.push(fold.variable.clone());
                fold.test = fold.test.map(|node| self.node(node)).transpose()?;
                fold.result = fold.result.map(|node| self.node(node)).transpose()?;
                self.scope.pop();
                What::Fold(fold)
            }
            what @ (What::Literal(_)
            | What::Variable(_)
            | What::HasVariable(_)
            | What::Local(_)) => what,
        };
        Ok(Node::new(what, span))
    }

    fn boxed(&mut self, node: Node) -> Result<Box<Node>> {
        self.node(node).map(Box::new)
    }

    fn nodes(&mut self, nodes: Vec<Node>) -> Result<Vec<Node>> {
        nodes.into_iter().map(|node| self.node(node)).collect()
    }

    /// The path of a field, if this is one and nothing that is computed.
    fn path(&self, node: &Node) -> Option<Path> {
        match &node.what {
            What::Name(name) if !self.scope.contains(name) => Some(Path::new(name, [])),
            What::Select(of, name) => {
                let step = Step::Field((&**name).into());
                Some(below(self.path(of)?, step))
            }
            What::Index(of, index) => {
                let step = match &index.what {
                    What::Literal(Value::Int(index)) => Step::Index(u32::try_from(*index).ok()?),
                    What::Literal(Value::Text(name)) => Step::Field((&**name).into()),
                    _ => return None,
                };
                Some(below(self.path(of)?, step))
            }
            _ => None,
        }
    }

    fn variable(&mut self, path: Path, span: Span) -> Result<usize> {
        if let Some(number) = self.variables.iter().position(|known| known.path == path) {
            return Ok(number);
        }
        if let Err(wrong) = Selection::default().add_path(path.clone()) {
            let shown = wrong.to_string();
            let (message, ways) = shown.split_once("; ").unwrap_or((&shown, ""));
            let path = path.to_string();
            let names = [
                "name", "time", "sequence", "origin", "age", "accuracy", "failure",
            ];
            let asked = path.strip_prefix("event.").unwrap_or("");
            let near = nearest(asked, names.into_iter());
            let ways = ways.split("; ").map(str::to_owned);
            let ways = near
                .map(|near| format!("did you mean `event.{near}`?"))
                .into_iter()
                .chain(ways);
            let wrong = Diagnostic::error(message).code("unknown-field");
            let wrong = wrong.label(span, "no part of a header");
            return Err(Box::new(ways.fold(wrong, Diagnostic::help)));
        }
        self.variables.push(Variable { path, span });
        Ok(self.variables.len() - 1)
    }
}

fn below(path: Path, step: Step) -> Path {
    let mut steps = path.steps().iter().cloned();
    match steps.next() {
        Some(Step::Field(first)) => Path::new(&first, steps.chain([step])),
        _ => path,
    }
}
