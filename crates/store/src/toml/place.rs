//! Where a new key goes in TOML, and what goes with it.

use milieu_keys::{Name, split};

use super::Writing;
use crate::nested::pieces::{Kind, NONE};
use crate::nested::tree::{ROOT, Shape};
use crate::nested::{Nested, New, Syntax, levels};

/// The part of a key that is written as another key has it.
type Prefix = Vec<(Kind, String)>;

impl Nested<Writing> {
    /// Writes a new key below a table that is not inline.
    pub(super) fn insert_key(&mut self, table: u32, new: &New<'_>) {
        let expression = self.last_expression(table);
        match (self.node(table).shape, expression) {
            (Shape::Dotted, _) if self.enclosing(table).is_some() => self.insert_inline(table, new),
            (Shape::Dotted, Some(model)) => {
                let prefix = self.dotted_prefix(table, model);
                let anchor = self.next_line(model);
                self.write_expression(anchor, table, new, 0, &prefix);
            }
            (Shape::Tables, _) => self.insert_element(table, new),
            _ => self.insert_in_table(table, new),
        }
    }

    /// Writes `a.new = value` beside `a.old = value` in an inline table.
    fn insert_inline(&mut self, table: u32, new: &New<'_>) {
        let object = self.enclosing(table).expect("it was found");
        let model = self
            .last_expression(table)
            .expect("an inline table has no headers");
        let prefix = self.dotted_prefix(table, model);
        let anchor = self.place(object).anchor;
        self.write_expression(anchor, table, new, 0, &prefix);
    }

    /// Writes the header of a new element and its key.
    fn insert_element(&mut self, tables: u32, new: &New<'_>) {
        let last = self
            .last_section(tables)
            .expect("an array of tables has elements");
        let anchor = self.end_of(last);
        let path = self.path(tables);
        let element = self.add_table(tables, &new.chain[0], Shape::Header);
        let anchor = self.open_section(anchor, last, element, &format!("[[{path}]]"));
        self.write_expression(anchor, element, new, 1, &Prefix::new());
    }

    fn insert_in_table(&mut self, table: u32, new: &New<'_>) {
        let level = |index: usize| split(new.chain[index].as_str()).1;
        // What comes behind the first array is in brackets, or an element with a header.
        let array = (1..new.chain.len()).find(|&index| level(index) == "#0");
        let is_element = array.is_some_and(|array| array + 1 < new.chain.len());
        let headers = match array {
            Some(array) if is_element => array,
            Some(array) => array - 1,
            None => new.chain.len().saturating_sub(1),
        };
        if headers == 0 {
            let anchor = self.place_in_table(table);
            self.write_expression(anchor, table, new, 0, &Prefix::new());
            return;
        }
        let sibling = if table == ROOT {
            None
        } else {
            self.last_section(table)
        };
        let mut parent = table;
        for name in &new.chain[..headers - 1] {
            parent = self.add_table(parent, name, Shape::Implicit);
        }
        let name = &new.chain[headers - 1];
        let (header, expression) = if is_element {
            let tables = self.add_table(parent, name, Shape::Tables);
            parent = self.add_table(tables, &new.chain[headers], Shape::Header);
            (format!("[[{}]]", self.path(tables)), headers + 1)
        } else {
            parent = self.add_table(parent, name, Shape::Header);
            (format!("[{}]", self.path(parent)), headers)
        };
        if let Some(sibling) = sibling {
            let anchor = self.end_of(sibling);
            let anchor = self.open_section(anchor, sibling, parent, &header);
            self.write_expression(anchor, parent, new, expression, &Prefix::new());
        } else {
            self.at_end(|document, anchor| {
                let anchor = document.blank_line_before(anchor);
                let anchor = document.write_header(anchor, parent, &header);
                document.write_expression(anchor, parent, new, expression, &Prefix::new())
            });
        }
    }

    fn add_table(&mut self, parent: u32, name: &Name, shape: Shape) -> u32 {
        let added = self.tree.add(parent, name.clone(), shape);
        added.expect("it is missing")
    }

    /// Writes a header behind the text of another section, with a blank line between.
    fn open_section(&mut self, anchor: u32, model: u32, table: u32, header: &str) -> u32 {
        let first = self.node(model).first;
        let indentation = match first {
            NONE => String::new(),
            first => self.pieces.indentation(first).to_owned(),
        };
        let anchor = self.pieces.write_newline(anchor);
        let anchor = self.pieces.write_newline(anchor);
        let anchor = self.pieces.write_blank(anchor, &indentation);
        self.write_header(anchor, table, header)
    }

    /// Writes a header and the end of its line.
    fn write_header(&mut self, anchor: u32, table: u32, header: &str) -> u32 {
        let indentation = match self.pieces.kind(anchor) {
            Some(Kind::Blank) => self.pieces.body(anchor).to_owned(),
            _ => String::new(),
        };
        let header = self.pieces.write(anchor, Kind::Mark, header);
        let node = self.tree.node_mut(table);
        (node.first, node.value, node.last) = (header, header, header);
        let anchor = self.pieces.write_newline(header);
        self.pieces.write_blank(anchor, &indentation)
    }

    /// Writes at the end of the text, which ends with a line break if it did before.
    fn at_end(&mut self, write: impl FnOnce(&mut Self, u32) -> u32) {
        let mut anchor = self.pieces.last();
        let closed = matches!(self.pieces.kind(anchor), None | Some(Kind::Newline));
        if !closed {
            anchor = self.pieces.write_newline(anchor);
        }
        let last = write(self, anchor);
        if closed {
            self.pieces.write_newline(last);
        }
    }

    /// A blank line behind this end of a line, unless there is one or it is the first.
    fn blank_line_before(&mut self, anchor: u32) -> u32 {
        if anchor == NONE || self.blank_line_above(anchor).is_some() {
            return anchor;
        }
        self.pieces.write_newline(anchor)
    }

    /// Writes `a.b = value`, where the names before `index` and the prefix are given.
    fn write_expression(
        &mut self,
        anchor: u32,
        table: u32,
        new: &New<'_>,
        index: usize,
        prefix: &Prefix,
    ) -> u32 {
        let mut first = NONE;
        let mut anchor = anchor;
        let mut width = 0;
        let model = self.last_expression(table);
        let mut write = |document: &mut Self, text: &str, kind: Kind| {
            anchor = document.pieces.write(anchor, kind, text);
            width += text.chars().count();
            if first == NONE {
                first = anchor;
            }
        };
        for (kind, text) in prefix {
            write(self, text, *kind);
        }
        let is_array = |name: &Name| split(name.as_str()).1 == "#0";
        let mut parent = table;
        let mut next = index;
        let id = loop {
            let Some(name) = new.chain.get(next) else {
                write(self, &Writing::key(""), Kind::Mark);
                break self
                    .tree
                    .add_own(parent, Shape::Value)
                    .expect("there was none");
            };
            next += 1;
            write(
                self,
                &Writing::key(&levels::member(split(name.as_str()).1)),
                Kind::Mark,
            );
            let goes_on = new.chain.get(next).is_some_and(|below| !is_array(below));
            let shape = if goes_on { Shape::Dotted } else { Shape::Value };
            parent = self.add_table(parent, name, shape);
            if !goes_on {
                break parent;
            }
            write(self, ".", Kind::Mark);
        };
        let separator = self.aligned(self.separator(table), width, model);
        let anchor = self.pieces.write(anchor, Kind::Mark, &separator);
        self.tree.node_mut(id).first = first;
        self.write_content(anchor, id, new, next, None)
    }

    /// The separator behind a key of this width, so that it joins a column of
    /// equals signs where there is one.
    fn aligned(&self, separator: String, width: usize, model: Option<u32>) -> String {
        let sign = separator.trim_start_matches(' ');
        let (Some(model), true) = (model, separator.len() > sign.len() + 1) else {
            return separator;
        };
        let mut column = 0;
        for piece in self.pieces.from(self.node(model).first) {
            let body = self.pieces.body(piece);
            let blanks = body.chars().take_while(|&c| c == ' ').count();
            if body.trim() == Writing::SEPARATOR {
                column += blanks;
                break;
            }
            column += body.chars().count();
        }
        format!("{}{sign}", " ".repeat(column.saturating_sub(width).max(1)))
    }

    /// The last key in the text of a table, leading to a value, not to another table.
    fn last_expression(&self, table: u32) -> Option<u32> {
        let children = &self.node(table).children;
        let mut last = children
            .iter()
            .rev()
            .find_map(|&child| match self.node(child).shape {
                Shape::Value | Shape::Object | Shape::Array => Some(child),
                Shape::Dotted => self.last_expression(child),
                _ => None,
            })?;
        let is_dotted = |&child: &u32| self.node(child).shape == Shape::Dotted;
        if children.iter().any(is_dotted) {
            // What one dotted key begins, others may continue behind the rest.
            let behind = self.pieces.from(self.node(last).last);
            let is_header = |&id: &u32| {
                let is_mark = self.pieces.kind(id) == Some(Kind::Mark);
                is_mark && self.pieces.body(id).starts_with('[') && self.pieces.begins_line(id)
            };
            for piece in behind.take_while(|id| !is_header(id)) {
                last = self.expression_of(piece, table).unwrap_or(last);
            }
        }
        Some(last)
    }

    /// The key of a table whose value ends with this piece.
    fn expression_of(&self, piece: u32, table: u32) -> Option<u32> {
        let id = self.pieces.node(piece);
        let is_dotted = |&id: &u32| id != NONE && self.node(id).shape == Shape::Dotted;
        let parent = |&id: &u32| Some(self.node(id).parent).filter(|&id| id != NONE);
        let mut parents = std::iter::successors(Some(id).filter(|&id| id != NONE), parent).skip(1);
        let above = parents.find(|id| *id == table || !is_dotted(id));
        (above == Some(table)).then_some(id)
    }

    /// The last table in the text that is this one or below it, and has a header.
    fn last_section(&self, table: u32) -> Option<u32> {
        let node = self.node(table);
        if matches!(node.shape, Shape::Value | Shape::Object | Shape::Array) {
            return None;
        }
        let below = node
            .children
            .iter()
            .rev()
            .find_map(|&child| self.last_section(child));
        below.or((node.shape == Shape::Header).then_some(table))
    }

    /// The first table in the text that is below this one and has a header.
    fn first_section(&self, table: u32) -> Option<u32> {
        let children = &self.node(table).children;
        children
            .iter()
            .find_map(|&child| match self.node(child).shape {
                Shape::Header => Some(child),
                _ => self.first_section(child),
            })
    }

    /// The pieces of a key that lead to a table without a header, dots included.
    fn dotted_prefix(&self, table: u32, expression: u32) -> Prefix {
        let is_dotted = |&id: &u32| self.node(id).shape == Shape::Dotted;
        let parents = std::iter::successors(Some(table), |&id| Some(self.node(id).parent));
        let mut dots = parents.take_while(is_dotted).count();
        let mut prefix = Vec::new();
        for piece in self.pieces.from(self.node(expression).first) {
            let body = self.pieces.body(piece);
            let kind = self.pieces.kind(piece).expect("a key ends with its value");
            prefix.push((kind, body.to_owned()));
            dots -= usize::from(kind == Kind::Mark && body == ".");
            if dots == 0 {
                break;
            }
        }
        prefix
    }

    /// The names that lead to a table, as a header has them.
    fn path(&self, table: u32) -> String {
        let mut keys = Vec::new();
        let mut id = table;
        while id != ROOT {
            let node = self.node(id);
            if self.node(node.parent).shape != Shape::Tables {
                let member = levels::member(split(node.name.as_str()).1);
                keys.push(Writing::key(if node.nameless { "" } else { &member }));
            }
            id = node.parent;
        }
        keys.reverse();
        keys.join(".")
    }

    /// A new line behind that of a key, indented as it is.
    fn next_line(&mut self, model: u32) -> u32 {
        let indentation = self.pieces.indentation(self.node(model).first).to_owned();
        let end = self.pieces.line_end(self.node(model).last);
        let newline = self.pieces.write_newline(end);
        self.pieces.write_blank(newline, &indentation)
    }

    /// Where a new key of a table is written, behind its other keys.
    fn place_in_table(&mut self, table: u32) -> u32 {
        if let Some(model) = self.last_expression(table) {
            return self.next_line(model);
        }
        if table == ROOT {
            return self.place_in_root();
        }
        if self.node(table).shape == Shape::Header {
            let header = self.node(table).first;
            let indentation = self.pieces.indentation(header).to_owned();
            let anchor = self.end_of(table);
            let newline = self.pieces.write_newline(anchor);
            return self.pieces.write_blank(newline, &indentation);
        }
        // Only tables below have headers: this one comes before the first of them.
        let first = self
            .first_section(table)
            .expect("something mentions the table");
        let below = self.comment_above(self.node(first).first);
        let indentation = self.pieces.indentation(self.node(first).first).to_owned();
        let anchor = self.pieces.previous(below);
        let last = self.pieces.write_newline(anchor);
        self.pieces.write_newline(last);
        self.tree.node_mut(table).shape = Shape::Header;
        let header = format!("[{}]", self.path(table));
        let anchor = self.pieces.write_blank(anchor, &indentation);
        self.write_header(anchor, table, &header)
    }

    /// Where the first key of a text is written that may have tables: before them.
    fn place_in_root(&mut self) -> u32 {
        let mut pieces = self.pieces.from(self.pieces.first());
        let header = pieces.find(|&id| self.pieces.kind(id).is_some_and(Kind::is_significant));
        drop(pieces);
        match header {
            Some(header) => {
                let below = self.comment_above(header);
                let anchor = self.pieces.previous(below);
                let last = self.pieces.write_newline(anchor);
                self.pieces.write_newline(last);
                anchor
            }
            None => {
                let mut anchor = self.pieces.last();
                if matches!(self.pieces.kind(anchor), None | Some(Kind::Newline)) {
                    self.pieces.write_newline(anchor);
                } else {
                    anchor = self.pieces.write_newline(anchor);
                }
                anchor
            }
        }
    }

    /// The last piece of the text of a table: its last key, or its header with
    /// the comment right below, if that does not belong to what follows.
    fn end_of(&self, table: u32) -> u32 {
        if let Some(last) = self.last_expression(table) {
            return self.pieces.line_end(self.node(last).last);
        }
        let header = self.pieces.line_end(self.node(table).last);
        let mut end = header;
        loop {
            let newline = self.pieces.next(end);
            let line = if newline == NONE {
                NONE
            } else {
                self.pieces.next(newline)
            };
            let mut pieces = self.pieces.from(line);
            let first = pieces.find(|&id| self.pieces.kind(id) != Some(Kind::Blank));
            match first.and_then(|first| self.pieces.kind(first)) {
                Some(Kind::Comment) => end = self.pieces.line_end(line),
                // A comment that touches the next header describes that table.
                Some(Kind::Mark) => return header,
                _ => return end,
            }
        }
    }

    /// The first piece of the line of a header, or of the comment right above it.
    fn comment_above(&self, header: u32) -> u32 {
        let mut start = self.pieces.line_start(header);
        loop {
            let newline = self.pieces.previous(start);
            if newline == NONE {
                return start;
            }
            let above = self.pieces.line_start(newline);
            let mut pieces = self.pieces.from(above);
            let first = pieces.find(|&id| self.pieces.kind(id) != Some(Kind::Blank));
            if first.and_then(|first| self.pieces.kind(first)) != Some(Kind::Comment) {
                return start;
            }
            start = above;
        }
    }

    /// Whether a comment describes a table that has no keys, so that it stays.
    pub(super) fn is_described(&self, table: u32) -> bool {
        let node = self.node(table);
        if node.shape != Shape::Header {
            return false;
        }
        let above = self.comment_above(node.first) != self.pieces.line_start(node.first);
        let end = self.pieces.line_end(node.last);
        let mut behind = self.pieces.from(self.pieces.next(node.last));
        let follows = behind.find(|&id| !self.is_blank(id));
        let comment = follows.is_some_and(|id| self.pieces.kind(id) == Some(Kind::Comment));
        above || comment || self.pieces.kind(end) == Some(Kind::Comment)
    }
}
