//! Items between braces or brackets, with commas between them: how new ones are written.

use milieu_keys::split;

use super::document::{Nested, New, Syntax, member};
use super::pieces::{Kind, NONE};
use super::tree::{ROOT, Shape};

/// Where an item is written.
pub(crate) struct Place {
    pub anchor: u32,
    /// The indentation, if the item has lines of its own.
    indentation: Option<String>,
}

impl<S: Syntax> Nested<S> {
    /// Writes a new item behind the last one of an object or array.
    pub fn insert_item(&mut self, container: u32, new: &New<'_>) {
        let dense = self.node(container).children.last();
        let dense = dense.is_some_and(|&sibling| self.is_on_one_line(sibling));
        let Place {
            anchor,
            indentation,
        } = self.place(container);
        if new.chain.is_empty() {
            self.write_own(anchor, container, new);
        } else {
            let lines = indentation.filter(|_| !dense);
            self.write_item(anchor, container, new, 0, lines.as_deref());
        }
    }

    /// Whether an object or array has its items on the line where it begins.
    fn is_on_one_line(&self, id: u32) -> bool {
        let node = self.node(id);
        if !matches!(node.shape, Shape::Object | Shape::Array) || node.children.is_empty() {
            return false;
        }
        let first = self.pieces.next(self.pieces.over_blank(node.value));
        self.pieces.kind(first) != Some(Kind::Newline)
    }

    fn write_own(&mut self, anchor: u32, object: u32, new: &New<'_>) -> u32 {
        let separator = self.separator(object);
        let own = self
            .tree
            .add_own(object, Shape::Value)
            .expect("there was none");
        let first = self.pieces.write(anchor, Kind::Mark, &S::key(""));
        let anchor = self.pieces.write(first, Kind::Mark, &separator);
        self.tree.node_mut(own).first = first;
        self.write_value(anchor, own, new)
    }

    /// Writes the item that leads to the name at `index` of the chain.
    fn write_item(
        &mut self,
        anchor: u32,
        parent: u32,
        new: &New<'_>,
        index: usize,
        indentation: Option<&str>,
    ) -> u32 {
        let name = &new.chain[index];
        let separator = self.separator(parent);
        let id = self
            .tree
            .add(parent, name.clone(), Shape::Value)
            .expect("it is missing");
        if self.node(parent).shape == Shape::Array {
            return self.write_content(anchor, id, new, index + 1, indentation);
        }
        let first = self
            .pieces
            .write(anchor, Kind::Mark, &S::key(&member(name)));
        let anchor = self.pieces.write(first, Kind::Mark, &separator);
        self.tree.node_mut(id).first = first;
        self.write_content(anchor, id, new, index + 1, indentation)
    }

    /// Writes what a node has: its value, or an object or array around the next name.
    pub fn write_content(
        &mut self,
        anchor: u32,
        id: u32,
        new: &New<'_>,
        index: usize,
        indentation: Option<&str>,
    ) -> u32 {
        let Some(next) = new.chain.get(index) else {
            return self.write_value(anchor, id, new);
        };
        let is_array = split(next.as_str()).1 == "#0";
        let lines = indentation.filter(|_| S::LINES);
        let open = self
            .pieces
            .write(anchor, Kind::Open, if is_array { "[" } else { "{" });
        let node = self.tree.node_mut(id);
        node.shape = if is_array {
            Shape::Array
        } else {
            Shape::Object
        };
        node.value = open;
        if node.first == NONE {
            node.first = open;
        }
        let padding = if is_array { "" } else { S::PADDING };
        let inner = lines.map(|outer| format!("{outer}{}", self.unit()));
        let before = self.break_or_pad(open, inner.as_deref(), padding);
        let last = self.write_item(before, id, new, index, inner.as_deref());
        let after = self.break_or_pad(last, lines, padding);
        let close = self
            .pieces
            .write(after, Kind::Close, if is_array { "]" } else { "}" });
        self.tree.node_mut(id).last = close;
        self.pieces.set_node(close, id);
        close
    }

    pub fn write_value(&mut self, anchor: u32, id: u32, new: &New<'_>) -> u32 {
        let encoded = S::encode(new.value, new.kind, None);
        let piece = self.pieces.write(anchor, Kind::Value, &encoded);
        self.pieces.set_node(piece, id);
        let node = self.tree.node_mut(id);
        (node.shape, node.value, node.last) = (Shape::Value, piece, piece);
        if node.first == NONE {
            node.first = piece;
        }
        piece
    }

    fn break_or_pad(&mut self, anchor: u32, line: Option<&str>, padding: &str) -> u32 {
        match line {
            Some(indentation) => {
                let newline = self.pieces.write_newline(anchor);
                self.pieces.write_blank(newline, indentation)
            }
            None => self.pieces.write_blank(anchor, padding),
        }
    }

    /// Gives a place that has no value yet what the chain says.
    pub fn fill(&mut self, id: u32, new: &New<'_>) {
        let null = self.node(id).value;
        if null != NONE {
            let lines = self.lines_of(id);
            let anchor = self.pieces.previous(null);
            self.pieces.cut(null, null);
            if self.node(id).first == null {
                self.tree.node_mut(id).first = NONE;
            }
            self.write_content(anchor, id, new, 0, lines.as_deref());
            return;
        }
        // The text has no value at all, at most comments.
        let mut anchor = self.pieces.last();
        if !matches!(self.pieces.kind(anchor), None | Some(Kind::Newline)) {
            anchor = self.pieces.write_newline(anchor);
        }
        let last = self.write_content(anchor, ROOT, new, 0, Some(""));
        self.pieces.write_newline(last);
    }

    /// Makes a value the own value of an object in its place.
    pub fn make_object(&mut self, id: u32) {
        let value = self.node(id).value;
        let lines = self.lines_of(id).filter(|_| S::LINES);
        let separator = self.separator(self.node(id).parent);
        let own = self
            .tree
            .add_own(id, Shape::Value)
            .expect("a value has none");
        let open = self
            .pieces
            .write(self.pieces.previous(value), Kind::Open, "{");
        let inner = lines
            .as_ref()
            .map(|outer| format!("{outer}{}", self.unit()));
        let before = self.break_or_pad(open, inner.as_deref(), S::PADDING);
        let first = self.pieces.write(before, Kind::Mark, &S::key(""));
        self.pieces.write(first, Kind::Mark, &separator);
        let after = self.break_or_pad(value, lines.as_deref(), S::PADDING);
        let close = self.pieces.write(after, Kind::Close, "}");
        self.pieces.set_node(value, own);
        self.pieces.set_node(close, id);
        let node = self.tree.node_mut(own);
        (node.first, node.value, node.last) = (first, value, value);
        let node = self.tree.node_mut(id);
        (node.shape, node.value, node.last) = (Shape::Object, open, close);
        if node.first == value {
            node.first = open;
        }
    }

    /// The indentation of a node's line, if it begins one; an object there goes
    /// over lines then.
    fn lines_of(&self, id: u32) -> Option<String> {
        let first = self.node(id).first;
        (id == ROOT || self.pieces.begins_line(first))
            .then(|| self.pieces.indentation(first).to_owned())
    }

    /// Makes room behind the last item.
    pub fn place(&mut self, container: u32) -> Place {
        let close = self.node(container).last;
        let before = self.pieces.previous_significant(close);
        let (end, comma) = match self.pieces.kind(before) {
            Some(Kind::Open) if before == self.node(container).value => {
                return self.place_in_empty(container);
            }
            Some(Kind::Comma) => (self.pieces.previous_significant(before), before),
            _ => (before, NONE),
        };
        let item = self.node(self.pieces.node(end)).first;
        let own_lines = self.pieces.begins_line(item);
        let indentation = own_lines.then(|| self.pieces.indentation(item).to_owned());
        let gap = self.gap(item);
        let mut anchor = if comma == NONE {
            self.pieces.write(end, Kind::Comma, ",")
        } else {
            comma
        };
        match &indentation {
            Some(indentation) => {
                anchor = self.pieces.behind_comment(anchor);
                anchor = self.break_or_pad(anchor, Some(indentation), "");
            }
            None => anchor = self.pieces.write_blank(anchor, gap),
        }
        if comma != NONE {
            self.pieces.write(anchor, Kind::Comma, ",");
        }
        Place {
            anchor,
            indentation,
        }
    }

    fn place_in_empty(&mut self, container: u32) -> Place {
        let (open, close) = (self.node(container).value, self.node(container).last);
        let outer = self
            .pieces
            .indentation(self.node(container).first)
            .to_owned();
        let inner = format!("{outer}{}", self.unit());
        let comment = self.pieces.last_comment(open, close);
        if let Some(comment) = comment {
            let next_line = self
                .pieces
                .from(self.pieces.next(comment))
                .find(|&id| self.pieces.kind(id) != Some(Kind::Blank))
                .is_some_and(|id| self.pieces.kind(id) == Some(Kind::Newline));
            if !next_line {
                let anchor = self.pieces.write_blank(comment, " ");
                return Place {
                    anchor,
                    indentation: None,
                };
            }
            let indentation = if self.pieces.begins_line(comment) {
                self.pieces.indentation(comment).to_owned()
            } else {
                inner
            };
            let anchor = self.break_or_pad(comment, Some(&indentation), "");
            return Place {
                anchor,
                indentation: Some(indentation),
            };
        }
        self.pieces.cut_between(open, close);
        let lines =
            S::LINES && (container == ROOT || self.pieces.begins_line(self.node(container).first));
        if lines {
            let anchor = self.break_or_pad(open, Some(&inner), "");
            self.break_or_pad(anchor, Some(&outer), "");
            return Place {
                anchor,
                indentation: Some(inner),
            };
        }
        let padding = if self.node(container).shape == Shape::Array {
            ""
        } else {
            S::PADDING
        };
        let anchor = self.pieces.write_blank(open, padding);
        self.pieces.write_blank(anchor, padding);
        Place {
            anchor,
            indentation: None,
        }
    }

    /// The blank between a comma and the next item on its line, as this item has it.
    fn gap(&self, item: u32) -> &'static str {
        let before = self.pieces.previous(item);
        match self.pieces.kind(before) {
            Some(Kind::Comma) => "",
            Some(Kind::Blank)
                if self.pieces.kind(self.pieces.previous(before)) == Some(Kind::Comma) =>
            {
                " "
            }
            _ if self.is_dense() => "",
            _ => " ",
        }
    }

    /// Whether the document has no blanks where it needs none.
    fn is_dense(&self) -> bool {
        self.separator(ROOT) == S::SEPARATOR
    }

    /// What stands between a member and its value: as the last member of this
    /// object has it, or the first of the document.
    pub fn separator(&self, object: u32) -> String {
        let is_member = |&id: &u32| {
            let node = self.node(id);
            node.value != NONE && node.first != node.value && !matches!(node.shape, Shape::Header)
        };
        let sibling = (object != NONE).then(|| {
            self.node(object)
                .children
                .iter()
                .rev()
                .copied()
                .find(is_member)
        });
        let model = sibling
            .flatten()
            .or_else(|| self.tree.ids().find(is_member));
        let written = model.and_then(|id| self.separator_of(id));
        written.unwrap_or_else(|| S::SPACED.to_owned())
    }

    fn separator_of(&self, id: u32) -> Option<String> {
        let mut parts = Vec::new();
        for piece in self
            .pieces
            .back_from(self.pieces.previous(self.node(id).value))
        {
            let body = self.pieces.body(piece);
            match self.pieces.kind(piece)? {
                Kind::Blank => parts.push(body),
                Kind::Mark if body.trim() == S::SEPARATOR => parts.push(body),
                Kind::Mark => break,
                _ => return None,
            }
        }
        parts.reverse();
        Some(parts.concat())
    }

    /// One level of indentation, as the document has it.
    fn unit(&self) -> String {
        let first = self.pieces.from(self.pieces.first()).find(|&id| {
            self.pieces.kind(id) == Some(Kind::Blank)
                && self.pieces.kind(self.pieces.previous(id)) == Some(Kind::Newline)
        });
        first.map_or_else(
            || S::INDENTATION.to_owned(),
            |id| self.pieces.body(id).to_owned(),
        )
    }
}
