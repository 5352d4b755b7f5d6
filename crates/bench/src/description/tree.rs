//! What both languages are read into: elements with attributes and parameters, and their places.

use milieu_diagnostics::Span;

use crate::Value;

/// A text and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub text: String,
    pub span: Span,
}

/// A name and what it is told.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub name: Text,
    pub value: Value,
    /// Where the value stands.
    pub span: Span,
}

/// A group, test, server, application or variable.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub word: Text,
    pub attributes: Vec<Entry>,
    pub parameters: Vec<Entry>,
    pub nodes: Vec<Node>,
}

impl Node {
    pub fn new(word: Text) -> Node {
        Node {
            word,
            attributes: Vec::new(),
            parameters: Vec::new(),
            nodes: Vec::new(),
        }
    }
}
