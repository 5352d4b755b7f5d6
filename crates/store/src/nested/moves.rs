//! What belongs to a key, and goes where the key goes.
//!
//! The comment lines right above a key or behind it on its line are about it,
//! and those right above a table about the table. A key that gets another name
//! takes the former along; a table that is left empty goes, and what was said
//! about it is said where its first key went.

use std::collections::HashSet;

use milieu_keys::Name;

use super::document::{Nested, Syntax};
use super::pieces::{Kind, NONE};
use super::tree::{ROOT, Shape};

/// A key that is to have another name.
#[derive(Debug, Clone)]
pub(crate) struct Moving {
    from: Name,
    to: Name,
    /// The comments in lines of their own that are about it.
    above: Vec<u32>,
    /// The comment behind it, which goes with its line, and the blank before that.
    behind: Option<[String; 2]>,
    /// What it is in, from the inside.
    tables: Vec<Table>,
}

/// A table, and the comments that are about it.
#[derive(Debug, Clone)]
struct Table {
    node: u32,
    name: Name,
    above: Vec<u32>,
}

impl<S: Syntax> Nested<S> {
    /// See [`Document::moving`](crate::format::Document::moving).
    pub fn note_move(&mut self, from: &str, to: &Name) {
        let same = |moving: &Moving| moving.from.as_str() == from;
        // Of several that a key becomes, the first has its comments.
        if self.moving.iter().any(same) {
            return;
        }
        let Some(id) = self.value_node(from) else {
            return;
        };
        let parents = |id: &u32| Some(self.node(*id).parent).filter(|id| *id != NONE);
        let tables = std::iter::successors(parents(&id), parents).filter(|id| *id != ROOT);
        let tables = tables.map(|node| Table {
            node,
            name: self.node(node).name.clone(),
            above: self.comments_above(self.node(node).first),
        });
        self.moving.push(Moving {
            from: self.node(id).name.clone(),
            to: to.clone(),
            above: self.comments_above(self.node(id).first),
            behind: self.comment_behind(id),
            tables: tables.collect(),
        });
    }

    /// See [`Document::moved`](crate::format::Document::moved).
    pub fn follow_moves(&mut self) {
        let mut left = HashSet::new();
        for moving in std::mem::take(&mut self.moving) {
            let is_gone = self.value_node(moving.from.as_str()).is_none();
            let Some(to) = self.value_node(moving.to.as_str()).filter(|_| is_gone) else {
                continue;
            };
            let line = self.begin_of_line(to);
            let mut about = self.take_comments(&moving.above);
            if let Some([blank, comment]) = moving.behind {
                if line != Some(self.node(to).first) || !self.put_behind(to, &blank, &comment) {
                    about.push(comment);
                }
            }
            // In a text that is one line there is no room for lines.
            let Some(line) = line else { continue };
            self.put_above(line, &about);
            self.leave(&moving.tables, &mut left, to, line);
        }
    }

    /// Removes the tables that are empty now, and says what was said about them
    /// where this key is, which happens once for each.
    fn leave(&mut self, tables: &[Table], left: &mut HashSet<u32>, key: u32, line: u32) {
        for table in tables {
            let is_there = self.tree.find(table.name.as_str()) == Some(table.node);
            if is_there && !self.node(table.node).children.is_empty() {
                return;
            }
            if !left.insert(table.node) {
                continue;
            }
            let about = self.take_comments(&table.above);
            if is_there && self.stays(table.node) {
                let first = self.node(table.node).first;
                return self.put_above(first, &about);
            }
            if is_there {
                self.remove_node(table.node);
            }
            self.put_above(self.heading_of(key, line), &about);
        }
    }

    /// What a comment about a table goes above, where this key is the first that
    /// has come from it: the begin of the key's table, if nothing is said about
    /// that yet, or else the key with its comments.
    fn heading_of(&self, key: u32, line: u32) -> u32 {
        let mut table = self.node(key).parent;
        while table != NONE && self.node(table).shape == Shape::Dotted {
            table = self.node(table).parent;
        }
        if table != NONE && table != ROOT {
            let first = self.node(table).first;
            let is_free = first != NONE && self.pieces.begins_line(first);
            if is_free && self.comments_above(first).is_empty() {
                return first;
            }
        }
        self.comments_above(line).first().copied().unwrap_or(line)
    }

    /// Where the line begins that a key is on: the key, or what it is in.
    fn begin_of_line(&self, key: u32) -> Option<u32> {
        let parents = std::iter::successors(Some(key), |&id| Some(self.node(id).parent));
        let mut firsts = parents
            .take_while(|&id| id != NONE && id != ROOT)
            .map(|id| self.node(id).first);
        firsts.find(|&first| first != NONE && self.pieces.begins_line(first))
    }

    /// The comments in the lines right above that of a piece which begins one.
    fn comments_above(&self, first: u32) -> Vec<u32> {
        let mut comments = Vec::new();
        if first == NONE || !self.pieces.begins_line(first) {
            return comments;
        }
        let mut newline = self.pieces.previous(self.pieces.line_start(first));
        while newline != NONE {
            let line = self.pieces.line_start(newline);
            let within = |id: &u32| self.pieces.kind(*id) != Some(Kind::Blank);
            let said: Vec<u32> = self
                .pieces
                .from(line)
                .take_while(|&id| id != newline)
                .filter(within)
                .collect();
            let is_comment = |id: &u32| self.pieces.kind(*id) == Some(Kind::Comment);
            if said.is_empty() || !said.iter().all(is_comment) {
                break;
            }
            comments.extend(said.into_iter().rev());
            newline = self.pieces.previous(line);
        }
        comments.reverse();
        comments
    }

    /// The comment behind a key that has a line of its own, and the blank before it.
    fn comment_behind(&self, id: u32) -> Option<[String; 2]> {
        let node = self.node(id);
        if node.first == NONE || !self.pieces.begins_line(node.first) {
            return None;
        }
        let mut blank = "";
        for piece in self.pieces.from(self.pieces.next(node.last)) {
            let body = self.pieces.body(piece);
            match self.pieces.kind(piece) {
                Some(Kind::Blank) => blank = body,
                Some(Kind::Comma) => {}
                Some(Kind::Comment) => return Some([blank.to_owned(), body.to_owned()]),
                _ => break,
            }
        }
        None
    }

    /// Puts a comment behind a key, if nothing else stands there.
    fn put_behind(&mut self, key: u32, blank: &str, comment: &str) -> bool {
        let last = self.node(key).last;
        let next = self.pieces.next(last);
        let anchor = match self.pieces.kind(next) {
            Some(Kind::Comma) => next,
            _ => last,
        };
        let behind = self.pieces.next(anchor);
        if !matches!(self.pieces.kind(behind), None | Some(Kind::Newline)) {
            return false;
        }
        let anchor = self.pieces.write_blank(anchor, blank);
        self.pieces.write(anchor, Kind::Comment, comment);
        true
    }

    /// Takes out lines of comments, and gives back what they say.
    fn take_comments(&mut self, comments: &[u32]) -> Vec<String> {
        if let (Some(&first), Some(&last)) = (comments.first(), comments.last()) {
            self.cut_lines(first, last);
        }
        let bodies = comments.iter().map(|&id| self.pieces.body(id));
        bodies.map(str::to_owned).collect()
    }

    /// Writes lines of comments above the line of a piece, indented as that is.
    fn put_above(&mut self, piece: u32, comments: &[String]) {
        let indentation = self.pieces.indentation(piece).to_owned();
        let mut anchor = self.pieces.previous(self.pieces.line_start(piece));
        for comment in comments {
            anchor = self.pieces.write_blank(anchor, &indentation);
            anchor = self.pieces.write(anchor, Kind::Comment, comment);
            anchor = self.pieces.write_newline(anchor);
        }
    }
}
