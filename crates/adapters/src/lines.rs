//! Lines of what comes in pieces.

/// No longer line is kept.
pub(crate) const LENGTH_MAX: usize = 64 * 1024;

/// Takes pieces of a text, and gives its lines without their ends.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    begun: Vec<u8>,
    is_too_long: bool,
}

/// A line is longer than [`LENGTH_MAX`]; nothing of it is kept.
pub(crate) struct TooLong;

impl Lines {
    /// Takes a piece, and gives each line that it ends.
    pub(crate) fn take(&mut self, piece: &[u8], line: &mut dyn FnMut(Result<&str, TooLong>)) {
        let mut pieces = piece.split(|byte| *byte == b'\n');
        let rest = pieces.next_back().unwrap_or_default();
        for ended in pieces {
            self.add(ended);
            self.end(line);
        }
        self.add(rest);
    }

    /// Gives the line that was begun, if it has anything.
    pub(crate) fn finish(&mut self, line: &mut dyn FnMut(Result<&str, TooLong>)) {
        if self.is_too_long || !self.begun.is_empty() {
            self.end(line);
        }
    }

    fn add(&mut self, piece: &[u8]) {
        if self.begun.len() + piece.len() > LENGTH_MAX {
            self.is_too_long = true;
            self.begun = Vec::new();
        }
        if !self.is_too_long {
            self.begun.extend_from_slice(piece);
        }
    }

    fn end(&mut self, line: &mut dyn FnMut(Result<&str, TooLong>)) {
        if std::mem::take(&mut self.is_too_long) {
            line(Err(TooLong));
        } else {
            let bytes = self.begun.strip_suffix(b"\r").unwrap_or(&self.begun);
            line(Ok(&String::from_utf8_lossy(bytes)));
        }
        self.begun.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        let mut see = |line: Result<&str, TooLong>| {
            seen.push(line.map_or("too long".to_owned(), str::to_owned));
        };
        for piece in pieces {
            lines.take(piece, &mut see);
        }
        lines.finish(&mut see);
        seen
    }

    #[test]
    fn lines_are_the_same_however_they_are_cut() {
        let text = b"one\r\n\ntwo\xff\nthree";
        let expected = ["one", "", "two\u{fffd}", "three"];
        assert_eq!(lines(&[text]), expected);
        for at in 0..text.len() {
            let (first, second) = text.split_at(at);
            assert_eq!(lines(&[first, second]), expected);
        }
        assert_eq!(lines(&[b"one\n"]), ["one"]);
    }

    #[test]
    fn a_line_that_is_too_long_is_told_once_and_not_kept() {
        let piece = [b'x'; 1000];
        let mut pieces: Vec<&[u8]> = vec![&piece; 1000];
        pieces.push(b"\nnext\n");
        assert_eq!(lines(&pieces), ["too long", "next"]);
        let longest = [b'x'; LENGTH_MAX];
        assert_eq!(lines(&[&longest])[0].len(), LENGTH_MAX);
    }
}
