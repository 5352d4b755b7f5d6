//! Manual pages of the C interface, made of the comments of its headers.
//!
//! A header begins with a comment about the whole. A line of dashes with a word
//! begins a section, which may begin with a comment of its own; a comment with two
//! asterisks describes what follows up to the next empty line, which is shown as it
//! is in the header.

use roff::{Inline, Roff, bold, roman};

/// A page of section 3.
pub struct Page<'a> {
    /// `milieu-streams`
    pub name: &'a str,
    pub summary: &'a str,
    /// What programs write to get the header.
    pub include: &'a str,
    /// Other pages, with their sections.
    pub see_also: &'a [(&'a str, &'a str)],
    pub version: &'a str,
}

impl Page<'_> {
    /// The page of this header.
    pub fn of(&self, header: &str) -> String {
        let mut page = Roff::new();
        page.control("SH", ["NAME"])
            .text([roman(format!("{} - {}", self.name, self.summary))]);
        page.control("SH", ["SYNOPSIS"])
            .control("nf", [])
            .text([bold(self.include)])
            .control("fi", [])
            .control("PP", [])
            .text(prose(
                "The compiler is told `pkg-config --cflags --libs milieu`.",
            ));
        page.control("SH", ["DESCRIPTION"]);
        // A section begins with a paragraph by itself.
        let mut has_begun = true;
        for part in parts(header) {
            let is_section = matches!(part, Part::Section(_));
            if !is_section && !has_begun {
                page.control("PP", []);
            }
            match part {
                Part::Prose(text) => paragraphs(&mut page, &text),
                Part::Section(name) => {
                    page.control("SH", [name.to_uppercase().as_str()]);
                }
                Part::Item { about, code } => item(&mut page, &about, &code),
            }
            has_begun = is_section;
        }
        page.control("SH", ["SEE ALSO"]);
        let mut line = Vec::new();
        for (name, section) in self.see_also {
            let end = if line.is_empty() { "" } else { ", " };
            line.extend([roman(end), bold(*name), roman(format!("({section})"))]);
        }
        page.text(line);
        let (name, version) = (self.name.to_uppercase(), self.version);
        format!(
            ".TH \"{name}\" \"3\" \"\" \"milieu {version}\" \"Library Functions\"\n{}",
            page.render()
        )
    }
}

#[derive(Debug, PartialEq)]
enum Part {
    /// A comment about the whole, or a section.
    Prose(Vec<String>),
    Section(String),
    /// A declaration, or several without an empty line between them.
    Item {
        about: Vec<String>,
        code: Vec<String>,
    },
}

fn parts(header: &str) -> impl Iterator<Item = Part> {
    let mut lines = header.lines().peekable();
    let mut is_first = true;
    std::iter::from_fn(move || {
        loop {
            let line = lines.next()?;
            if let Some(name) = line.strip_prefix("/* -") {
                let name =
                    name.trim_matches(|c: char| c == '-' || c == ' ' || c == '*' || c == '/');
                return Some(Part::Section(name.to_owned()));
            }
            let is_item = line.starts_with("/**");
            if !line.starts_with("/*") {
                continue;
            }
            let about = comment(line, &mut lines);
            if !is_item {
                // What is said of the code below it is for who reads the header.
                let is_prose = is_first || lines.peek().is_some_and(|next| next.is_empty());
                is_first = false;
                if is_prose {
                    return Some(Part::Prose(about));
                }
                continue;
            }
            let mut code: Vec<String> = Vec::new();
            let mut depth = 0;
            let goes_on = |line: &str| !line.is_empty() && !line.starts_with("/**");
            while let Some(line) = lines.next_if(|it| depth > 0 || goes_on(it)) {
                depth += line.matches('{').count();
                depth -= line.matches('}').count();
                code.push(line.to_owned());
            }
            return Some(Part::Item { about, code });
        }
    })
}

/// The lines of a comment that has begun.
fn comment<'a>(first: &str, rest: &mut impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut whole = first.trim_start_matches(['/', '*']).to_owned();
    while !whole.ends_with("*/") {
        let Some(line) = rest.next() else { break };
        whole.push('\n');
        // The end is no beginning of a line.
        whole += line
            .strip_prefix(" *")
            .filter(|it| *it != "/")
            .unwrap_or(line);
    }
    let text = whole.trim_end_matches(['*', '/']).trim();
    // One blank stands between the asterisk and the text.
    let lines = text
        .lines()
        .map(|line| line.strip_prefix(' ').unwrap_or(line));
    lines.map(str::to_owned).collect()
}

/// A declaration, and what is said about it.
fn item(page: &mut Roff, about: &[String], code: &[String]) {
    page.control("nf", []);
    for line in code {
        let declared = line.strip_prefix("MILIEU_CHECKED ").unwrap_or(line);
        // What an inline function does is for the compiler.
        let head = match declared.strip_suffix(") {") {
            Some(head) => &format!("{head});"),
            None => declared,
        };
        page.text([bold(head)]);
        if head != declared {
            break;
        }
    }
    page.control("fi", []).control("RS", []);
    paragraphs(page, about);
    page.control("RE", []);
}

/// Paragraphs, points of lists, and lines that are indented and stay as they are.
fn paragraphs(page: &mut Roff, lines: &[String]) {
    let mut is_shown = false;
    let mut is_apart = false;
    for (at, line) in lines.iter().enumerate() {
        let point = line.strip_prefix("- ");
        let is_code = line.starts_with("  ") && (is_shown || (at > 0 && lines[at - 1].is_empty()));
        if is_shown && !is_code {
            page.control("fi", []);
        }
        if line.is_empty() {
            is_apart = true;
        } else if let Some(point) = point {
            page.control("IP", [r"\(bu", "2"]).text(prose(point));
            is_apart = false;
        } else {
            if is_apart {
                page.control("PP", []);
                is_apart = false;
            }
            if is_code {
                if !is_shown {
                    page.control("nf", []);
                }
                page.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
            } else {
                page.text(prose(line.trim_start()));
            }
        }
        is_shown = is_code;
    }
    if is_shown {
        page.control("fi", []);
    }
}

/// What stands between backticks is bold.
fn prose(line: &str) -> Vec<Inline> {
    let parts = line.split('`').enumerate();
    let part = |(at, text): (usize, &str)| match at % 2 {
        0 => roman(text),
        _ => bold(text),
    };
    parts.map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Page = Page {
        name: "two-words",
        summary: "a page",
        include: "#include <two.h>",
        see_also: &[("one", "1"), ("three", "3")],
        version: "1.2.3",
    };

    const HEADER: &str = "\
/*
 * All of it.
 *
 *   one   1
 *
 * - a point,
 *   which goes on
 */
#ifndef TWO_H

/* How C does it. */
#define ONE 1

/** What is `left`. */
#define TWO 2

/* ---------------------------------------------------------------- parts */

/* Before all
 * of them. */

/**
 * Ends well.
 *
 * Or not.
 */
MILIEU_CHECKED int two(
    int count);

/** A struct. */
struct two {
    /** Its number. */
    int it;

    int other;
};

/** Is inline. */
static inline int inlined(void) {
    return 2;
}
/** So is this. */
static inline int inlined_too(void) {
    return 3;
}
";

    #[test]
    fn a_header_is_a_page() {
        let page = PAGE.of(HEADER);
        let page = page.split_once(".SH DESCRIPTION\n").unwrap().1;
        let expected = r#"All of it.
.PP
.nf
one   1
.fi
.IP \(bu 2
a point,
which goes on
.PP
.nf
\fB#define TWO 2\fR
.fi
.RS
What is \fBleft\fR.
.RE
.SH PARTS
Before all
of them.
.PP
.nf
\fBint two(\fR
\fB    int count);\fR
.fi
.RS
Ends well.
.PP
Or not.
.RE
.PP
.nf
\fBstruct two {\fR
\fB    /** Its number. */\fR
\fB    int it;\fR
\fB\fR
\fB    int other;\fR
\fB};\fR
.fi
.RS
A struct.
.RE
.PP
.nf
\fBstatic inline int inlined(void);\fR
.fi
.RS
Is inline.
.RE
.PP
.nf
\fBstatic inline int inlined_too(void);\fR
.fi
.RS
So is this.
.RE
.SH "SEE ALSO"
\fBone\fR(1), \fBthree\fR(3)
"#;
        assert_eq!(page, expected);
    }
}
