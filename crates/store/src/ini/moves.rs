//! What belongs to a key, and goes where the key goes.
//!
//! The comment lines right above a key are about it, and those right above a
//! header about its section. A key that gets another name takes the former
//! along; a section that is left empty goes, and what was said about it is said
//! where its first key went.

use milieu_keys::Name;

use super::document::{Document, Kind, NONE, key_of};

/// A key that is to have another name.
#[derive(Debug, Clone)]
pub(super) struct Moving {
    from: Name,
    to: Name,
    /// The comment lines that are about it.
    comments: Vec<u32>,
    /// The header that it stands below, or [`NONE`].
    section: u32,
}

impl Document {
    /// See [`Document::moving`](crate::format::Document::moving).
    pub(super) fn moving(&mut self, from: &str, to: &Name) {
        // Of several that a key becomes, the first has its comments.
        if self
            .moving
            .iter()
            .any(|moving| moving.from.as_str() == from)
        {
            return;
        }
        let Some(id) = self.find(from) else {
            return;
        };
        let key = key_of(&self.lines, id);
        self.moving.push(Moving {
            from: key.name.clone(),
            to: to.clone(),
            comments: self.comments_above(id),
            section: if key.full { NONE } else { key.section },
        });
    }

    /// See [`Document::moved`](crate::format::Document::moved).
    pub(super) fn moved(&mut self) {
        for moving in std::mem::take(&mut self.moving) {
            let is_gone = self.find(moving.from.as_str()).is_none();
            let Some(to) = self.find(moving.to.as_str()).filter(|_| is_gone) else {
                continue;
            };
            self.put_above(to, &moving.comments);
            let section = moving.section;
            if section == NONE || !self.order().any(|id| id == section) {
                continue;
            }
            if self.is_section_empty(section) {
                let about = self.comments_above(section);
                self.put_above(self.heading_of(to), &about);
                self.remove_section(section);
            }
        }
        self.places = None;
    }

    /// The comment lines right above a line, in their order.
    fn comments_above(&self, id: u32) -> Vec<u32> {
        let mut comments = Vec::new();
        let mut above = self.lines[id as usize].previous;
        while above != NONE && matches!(self.kind(above), Kind::Comment) {
            comments.push(above);
            above = self.lines[above as usize].previous;
        }
        comments.reverse();
        comments
    }

    /// What a comment about a section goes above, where this key is the first
    /// that has come from it: the header of the key's section, if nothing is
    /// said about that yet, or else the key with its comments.
    fn heading_of(&self, key: u32) -> u32 {
        let line = key_of(&self.lines, key);
        let header = line.section;
        if !line.full && header != NONE && self.comments_above(header).is_empty() {
            return header;
        }
        self.comments_above(key).first().copied().unwrap_or(key)
    }

    /// Takes lines from where they are and links them above another one.
    fn put_above(&mut self, below: u32, lines: &[u32]) {
        for &id in lines {
            self.unlink(id);
            let above = self.lines[below as usize].previous;
            (
                self.lines[id as usize].previous,
                self.lines[id as usize].next,
            ) = (above, below);
            self.lines[below as usize].previous = id;
            match above {
                NONE => self.ends.first = id,
                above => self.lines[above as usize].next = id,
            }
        }
    }
}
