//! The tree of an expression.

use std::sync::Arc;

use milieu_diagnostics::Span;
use milieu_transfer::Value;

use crate::function::Function;

/// A part of an expression and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub what: What,
    pub span: Span,
    /// How many levels there are from here down, with this one.
    pub depth: u32,
}

/// What a part is.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Literal(Value),
    /// A name of which it is not known yet what it names.
    Name(Arc<str>),
    /// A field of the event, by its number among the variables.
    Variable(usize),
    /// Whether the event has such a field.
    HasVariable(usize),
    /// A variable of a macro, counted from the outermost.
    Local(usize),
    Select(Box<Node>, Arc<str>),
    /// Whether a map has a field.
    Has(Box<Node>, Arc<str>),
    Index(Box<Node>, Box<Node>),
    Call(Function, Vec<Node>),
    Not(Box<Node>),
    Negate(Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    /// Two or more, in their order.
    And(Vec<Node>),
    Or(Vec<Node>),
    Conditional(Box<[Node; 3]>),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    Fold(Box<Fold>),
}

/// An operator between two operands that are always both computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operator {
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Operator::Equal => "==",
            Operator::Unequal => "!=",
            Operator::Less => "<",
            Operator::LessEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterEqual => ">=",
            Operator::In => "in",
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::Remainder => "%",
        }
    }

    /// Whether it says which of two comes first.
    pub(crate) fn is_order(self) -> bool {
        use Operator::{Greater, GreaterEqual, Less, LessEqual};
        matches!(self, Less | LessEqual | Greater | GreaterEqual)
    }

    /// The operator that says the same with its operands exchanged.
    pub(crate) fn mirrored(self) -> Operator {
        match self {
            Operator::Less => Operator::Greater,
            Operator::LessEqual => Operator::GreaterEqual,
            Operator::Greater => Operator::Less,
            Operator::GreaterEqual => Operator::LessEqual,
            other => other,
        }
    }
}

/// A macro that goes through a list or the keys of a map.
#[derive(Clone, Debug)]
pub(crate) struct Fold {
    pub how: How,
    pub of: Node,
    pub variable: Arc<str>,
    /// The number of the variable, once it is known.
    pub local: usize,
    /// Which elements `filter` and `map` take, or what is asked of each.
    pub test: Option<Node>,
    /// What `map` makes of an element.
    pub result: Option<Node>,
}

/// Which macro.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}

impl How {
    pub(crate) const NAMES: [(&'static str, How); 6] = [
        ("all", How::All),
        ("exists", How::Exists),
        ("exists_one", How::ExistsOne),
        ("filter", How::Filter),
        ("map", How::Map),
        ("existsOne", How::ExistsOne),
    ];

    pub(crate) fn named(name: &str) -> Option<How> {
        let known = How::NAMES.iter().find(|(known, _)| *known == name);
        known.map(|(_, how)| *how)
    }

    pub(crate) fn name(self) -> &'static str {
        let known = How::NAMES.iter().find(|(_, how)| *how == self);
        known.map_or("", |(name, _)| name)
    }
}

impl Node {
    pub(crate) fn new(what: What, span: Span) -> Node {
        let mut below = 0;
        what.children(&mut |child| below = below.max(child.depth));
        let depth = below + 1;
        Node { what, span, depth }
    }
}

impl What {
    /// Calls with each part directly below.
    pub(crate) fn children<'n>(&'n self, visit: &mut dyn FnMut(&'n Node)) {
        match self {
            What::Literal(_)
            | What::Name(_)
            | What::Variable(_)
            | What::HasVariable(_)
            | What::Local(_) => {}
            What::Select(of, _) | What::Has(of, _) | What::Not(of) | What::Negate(of) => visit(of),
            What::Index(left, right) | What::Binary(_, left, right) => {
                visit(left);
                visit(right);
            }
            What::Call(_, nodes) | What::And(nodes) | What::Or(nodes) | What::List(nodes) => {
                nodes.iter().for_each(visit);
            }
            What::Conditional(nodes) => nodes.iter().for_each(visit),
            What::Map(entries) => entries.iter().for_each(|(key, value)| {
                visit(key);
                visit(value);
            }),
            What::Fold(fold) => {
                visit(&fold.of);
                fold.test.iter().for_each(&mut *visit);
                fold.result.iter().for_each(visit);
            }
        }
    }
}
