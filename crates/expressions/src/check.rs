//! Kinds of all parts of an expression, before it runs.

use milieu_diagnostics::{Diagnostic, Span};

use crate::ast::{Node, Operator, What};
use crate::call::pattern;
use crate::fault::overload_help;
use crate::function::Function;
use crate::kind::{Kind, Types};
use crate::resolve::Variable;
use crate::suggest::nearest;
use milieu_transfer::Value;

/// The kind of a tree, or everything that is wrong with it.
pub(crate) fn check(
    node: &Node,
    variables: &[Variable],
    types: &Types,
) -> Result<Kind, Vec<Diagnostic>> {
    let mut checker = Checker {
        types,
        variables,
        kinds: vec![None; variables.len()],
        found: Vec::new(),
    };
    let kind = checker.kind(node);
    match checker.found.is_empty() {
        true => Ok(kind),
        false => Err(checker.found),
    }
}

struct Checker<'c> {
    types: &'c Types,
    variables: &'c [Variable],
    /// The kinds of variables that were asked for, so that what is wrong with
    /// one is said once.
    kinds: Vec<Option<Kind>>,
    found: Vec<Diagnostic>,
}

impl Checker<'_> {
    fn complain(&mut self, wrong: Diagnostic) -> Kind {
        self.found.push(wrong);
        Kind::Dyn
    }

    /// An operator or a function is not defined for these.
    fn mismatch(&mut self, name: &'static str, kinds: &[(Kind, Span)], place: Span) -> Kind {
        let shown: Vec<String> = kinds.iter().map(|(kind, _)| kind.to_string()).collect();
        let message = format!("`{name}` is not defined for {}", shown.join(" and "));
        let wrong = Diagnostic::error(message).code("no-overload");
        let wrong = match kinds {
            [(left, a), (right, b)] => wrong
                .label(*a, format!("this is of kind {left}"))
                .label(*b, format!("this is of kind {right}")),
            [(kind, place)] => wrong.label(*place, format!("this is of kind {kind}")),
            _ => wrong.label(place, ""),
        };
        let kinds: Vec<Kind> = kinds.iter().map(|(kind, _)| *kind).collect();
        let help = overload_help(name, &kinds);
        self.complain(help.into_iter().fold(wrong, Diagnostic::help))
    }

    fn kinds(&mut self, nodes: &[Node]) -> Vec<(Kind, Span)> {
        nodes
            .iter()
            .map(|node| (self.kind(node), node.span))
            .collect()
    }

    /// Each must be a truth value.
    fn truths<'n>(
        &mut self,
        name: &'static str,
        nodes: impl IntoIterator<Item = &'n Node>,
    ) -> Kind {
        for node in nodes {
            let kind = self.kind(node);
            if !matches!(kind, Kind::Bool | Kind::Dyn) {
                self.mismatch(name, &[(kind, node.span)], node.span);
            }
        }
        Kind::Bool
    }

    fn kind(&mut self, node: &Node) -> Kind {
        let place = node.span;
        match &node.what {
            What::Literal(value) => Kind::of(value),
            What::Variable(number) => self.variable(*number),
            What::Name(_) | What::Local(_) => Kind::Dyn,
            What::HasVariable(number) => {
                self.variable(*number);
                Kind::Bool
            }
            What::Has(of, _) => {
                self.map("has", of);
                Kind::Bool
            }
            What::Select(of, _) => {
                self.map(".", of);
                Kind::Dyn
            }
            What::Index(of, index) => {
                let kinds = [(self.kind(of), of.span), (self.kind(index), index.span)];
                let is_defined = match kinds.map(|(kind, _)| kind) {
                    [Kind::List, index] => index.is_number() || index == Kind::Dyn,
                    [of, _] => matches!(of, Kind::Map | Kind::Dyn),
                };
                if !is_defined {
                    self.mismatch("[]", &kinds, place);
                }
                Kind::Dyn
            }
            What::Call(function, arguments) => self.call(*function, arguments, place),
            What::Not(of) => self.truths("!", [&**of]),
            What::Negate(of) => match self.kind(of) {
                kind @ (Kind::Int | Kind::Double | Kind::Dyn) => kind,
                kind => self.mismatch("-", &[(kind, of.span)], place),
            },
            What::Binary(operator, left, right) => {
                let kinds = [(self.kind(left), left.span), (self.kind(right), right.span)];
                match binary(*operator, kinds[0].0, kinds[1].0) {
                    Some(kind) => kind,
                    None => self.mismatch(operator.sign(), &kinds, place),
                }
            }
            What::And(nodes) => self.truths("&&", nodes),
            What::Or(nodes) => self.truths("||", nodes),
            What::Conditional(nodes) => {
                let [condition, yes, no] = &**nodes;
                self.truths("?:", [condition]);
                let (yes, no) = (self.kind(yes), self.kind(no));
                if yes == no { yes } else { Kind::Dyn }
            }
            What::List(nodes) => {
                self.kinds(nodes);
                Kind::List
            }
            What::Map(entries) => {
                for (key, value) in entries {
                    let kind = self.kind(key);
                    if !matches!(
                        kind,
                        Kind::Bool | Kind::Int | Kind::Uint | Kind::Text | Kind::Dyn
                    ) {
                        let wrong = Diagnostic::error(format!("a key is of kind {kind}"));
                        let wrong = wrong.code("no-overload").label(key.span, "no key");
                        self.complain(wrong.help("keys are texts, whole numbers or truth values"));
                    }
                    self.kind(value);
                }
                Kind::Map
            }
            What::Fold(fold) => {
                let of = self.kind(&fold.of);
                let name = fold.how.name();
                if !matches!(of, Kind::List | Kind::Map | Kind::Dyn) {
                    self.mismatch(name, &[(of, fold.of.span)], place);
                }
                self.truths(name, &fold.test);
                match (&fold.result, fold.how) {
                    (Some(result), _) => {
                        self.kind(result);
                        Kind::List
                    }
                    (None, crate::ast::How::Filter) => Kind::List,
                    (None, _) => Kind::Bool,
                }
            }
        }
    }

    fn map(&mut self, name: &'static str, of: &Node) {
        let kind = self.kind(of);
        if !matches!(kind, Kind::Map | Kind::Dyn) {
            self.mismatch(name, &[(kind, of.span)], of.span);
        }
    }

    fn variable(&mut self, number: usize) -> Kind {
        if let Some(kind) = self.kinds[number] {
            return kind;
        }
        let variable = &self.variables[number];
        let path = variable.path.to_string();
        let kind = match self.types.of(&path) {
            Some(kind) => kind,
            None => {
                let wrong = Diagnostic::error(format!("there is no field `{path}`"));
                let wrong = wrong
                    .code("unknown-field")
                    .label(variable.span, "not a field of these events");
                let wrong = match nearest(&path, self.types.paths()) {
                    Some(near) => wrong.help(format!("did you mean `{near}`?")),
                    None => {
                        let paths: Vec<String> =
                            self.types.paths().map(|path| format!("`{path}`")).collect();
                        wrong.help(format!("there are {}", paths.join(", ")))
                    }
                };
                self.complain(wrong)
            }
        };
        self.kinds[number] = Some(kind);
        kind
    }

    fn call(&mut self, function: Function, arguments: &[Node], place: Span) -> Kind {
        let kinds = self.kinds(arguments);
        let constant = match arguments {
            [
                _,
                Node {
                    what: What::Literal(Value::Text(text)),
                    span,
                    ..
                },
            ] => Some((text, *span)),
            _ => None,
        };
        if let (Function::Matches, Some((text, span))) = (function, constant) {
            if let Err(wrong) = pattern(text) {
                let wrong = Diagnostic::error(wrong.to_string()).code("pattern");
                self.complain(wrong.label(span, "this one").help(
                    "regular expressions are RE2's, without classes of Unicode; in `r\"…\"` a backslash means itself",
                ));
            }
        }
        let only: Vec<Kind> = kinds.iter().map(|(kind, _)| *kind).collect();
        match result(function, &only) {
            Some(kind) => kind,
            None => self.mismatch(function.name(), &kinds, place),
        }
    }
}

/// The kind of what an operator gives; none if it is not defined for these.
fn binary(operator: Operator, left: Kind, right: Kind) -> Option<Kind> {
    use Operator::{Add, Divide, Equal, In, Multiply, Subtract, Unequal};
    let is_dyn = left == Kind::Dyn || right == Kind::Dyn;
    let are_numbers = left.is_number() && right.is_number();
    match operator {
        Equal | Unequal => {
            let may_be =
                is_dyn || left == right || are_numbers || left == Kind::Null || right == Kind::Null;
            may_be.then_some(Kind::Bool)
        }
        In => matches!(right, Kind::List | Kind::Map | Kind::Dyn).then_some(Kind::Bool),
        operator if operator.is_order() => {
            let has_order =
                |kind| !matches!(kind, Kind::Null | Kind::List | Kind::Map | Kind::Type);
            let is_defined =
                has_order(left) && has_order(right) && (is_dyn || left == right || are_numbers);
            is_defined.then_some(Kind::Bool)
        }
        _ if is_dyn => {
            let other = if left == Kind::Dyn { right } else { left };
            let never = matches!(other, Kind::Bool | Kind::Null | Kind::Map | Kind::Type);
            (!never).then_some(Kind::Dyn)
        }
        _ => match (operator, left, right) {
            (Add | Subtract | Multiply | Divide, Kind::Double, Kind::Double) => Some(Kind::Double),
            (_, Kind::Int, Kind::Int) => Some(Kind::Int),
            (_, Kind::Uint, Kind::Uint) => Some(Kind::Uint),
            (Add, Kind::Text, Kind::Text) => Some(Kind::Text),
            (Add, Kind::Bytes, Kind::Bytes) => Some(Kind::Bytes),
            (Add, Kind::List, Kind::List) => Some(Kind::List),
            (Add | Subtract, Kind::Time, Kind::Span) | (Add, Kind::Span, Kind::Time) => {
                Some(Kind::Time)
            }
            (Add | Subtract, Kind::Span, Kind::Span) | (Subtract, Kind::Time, Kind::Time) => {
                Some(Kind::Span)
            }
            _ => None,
        },
    }
}

/// The kind of what a function gives; none if it is not defined for these.
fn result(function: Function, kinds: &[Kind]) -> Option<Kind> {
    use Kind::{Bool, Bytes, Double, Dyn, Int, List, Map, Span, Text, Time, Type, Uint};
    let first = kinds.first().copied().unwrap_or(Dyn);
    let second = kinds.get(1).copied().unwrap_or(Dyn);
    let one_of = |kinds: &[Kind]| first == Dyn || kinds.contains(&first);
    let is_text = |kind| matches!(kind, Text | Dyn);
    let (is_defined, kind) = match function {
        Function::Size => (one_of(&[Text, Bytes, List, Map]), Int),
        Function::Contains | Function::StartsWith | Function::EndsWith | Function::Matches => {
            (is_text(first) && is_text(second), Bool)
        }
        Function::Int => (one_of(&[Int, Uint, Double, Text, Time]), Int),
        Function::Uint => (one_of(&[Int, Uint, Double, Text]), Uint),
        Function::Double => (one_of(&[Int, Uint, Double, Text]), Double),
        Function::Text => (
            one_of(&[Text, Bytes, Int, Uint, Double, Bool, Time, Span]),
            Text,
        ),
        Function::Bytes => (one_of(&[Bytes, Text]), Bytes),
        Function::Bool => (one_of(&[Bool, Text]), Bool),
        Function::Span => (one_of(&[Span, Text]), Span),
        Function::Time => (one_of(&[Time, Text, Int]), Time),
        Function::Dyn => (true, Dyn),
        Function::Type => (true, Type),
        Function::Hours | Function::Minutes | Function::Seconds | Function::Milliseconds
            if kinds.len() == 1 =>
        {
            (one_of(&[Time, Span]), Int)
        }
        _ => (one_of(&[Time]) && is_text(second), Int),
    };
    is_defined.then_some(kind)
}
