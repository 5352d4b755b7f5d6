//! The elements of a text, with their places.

use milieu_diagnostics::{Diagnostic, Span};
use quick_xml::NsReader;
use quick_xml::events::attributes::AttrError;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::ResolveResult;

use super::super::draft::Text;
use super::super::scan::is_allowed;
use super::super::{NESTING_MAX, Read, too_deep};
use super::NAMESPACE;

/// Elements within each other: flows, and what is around them.
const DEPTH_MAX: usize = NESTING_MAX + 8;

#[derive(Debug)]
pub(super) struct Element {
    pub name: Text,
    pub attributes: Vec<(Text, Text)>,
    pub elements: Vec<Element>,
    /// The text between the tags, without blanks around it.
    pub text: Option<Text>,
    /// Its start tag.
    pub span: Span,
}

impl Element {
    pub fn attribute(&self, name: &str) -> Option<&Text> {
        let mut attributes = self.attributes.iter();
        let found = attributes.find(|(known, _)| known.text == name);
        found.map(|(_, value)| value)
    }
}

/// The root of a text.
pub(super) fn read(text: &str) -> Read<Element> {
    if let Some((at, c)) = text.char_indices().find(|&(_, c)| !is_allowed(c)) {
        return Err(wrong(
            Span::new(at, at + c.len_utf8()),
            "XML has no such character",
        ));
    }
    let mut builder = Builder {
        text,
        open: Vec::new(),
        root: None,
    };
    // The reader does not count a mark of the byte order.
    let skipped = text.len() - text.strip_prefix('\u{feff}').unwrap_or(text).len();
    let place = |position: u64| skipped + usize::try_from(position).unwrap_or(text.len());
    if text[skipped..].starts_with('\u{feff}') {
        return Err(wrong(
            character(text, skipped),
            "a second mark of the byte order",
        ));
    }
    let mut reader = NsReader::from_str(&text[skipped..]);
    reader.config_mut().check_comments = true;
    loop {
        let start = place(reader.buffer_position());
        let read = reader.read_resolved_event();
        let is_ours = match &read {
            Ok((ResolveResult::Bound(namespace), _)) => namespace.as_ref() == NAMESPACE.as_bytes(),
            _ => false,
        };
        let event = read.map(|(_, event)| event);
        let end = place(reader.buffer_position());
        match event {
            Err(error) => {
                let at = character(text, place(reader.error_position()));
                return Err(wrong(at, error.to_string()));
            }
            Ok(Event::Eof) => return builder.finish(),
            Ok(event) => builder.event(&event, Span::new(start, end), is_ours)?,
        }
    }
}

fn wrong(span: Span, label: impl Into<String>) -> Diagnostic {
    Diagnostic::error("this is not well-formed XML")
        .code("syntax")
        .label(span, label)
}

/// The character at a place; the place itself where there is none.
fn character(text: &str, at: usize) -> Span {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let length = text[at..].chars().next().map_or(0, char::len_utf8);
    Span::new(at, at + length)
}

/// The trouble with an attribute, whose places count from the name of the tag.
fn wrong_attribute(error: &AttrError, tag: Span, text: &str) -> Diagnostic {
    let (at, label) = match error {
        AttrError::ExpectedEq(at) => (*at, "expected `=`"),
        AttrError::ExpectedValue(at) => (*at, "expected a value in quotes"),
        AttrError::UnquotedValue(at) => (*at, "a value stands in quotes"),
        AttrError::ExpectedQuote(at, _) => (*at, "the quotes are not closed"),
        AttrError::Duplicated(at, _) => (*at, "this is given twice"),
    };
    wrong(character(text, tag.start + 1 + at), label)
}

/// Text between tags, as far as it has been read.
#[derive(Default)]
struct Between {
    text: String,
    span: Option<Span>,
    /// Where it is written as it is meant.
    start: Option<usize>,
}

struct Builder<'a> {
    text: &'a str,
    /// Elements whose end has not come, from the root.
    open: Vec<(Element, Between)>,
    root: Option<Element>,
}

impl<'a> Builder<'a> {
    fn event(&mut self, event: &Event, span: Span, is_ours: bool) -> Read<()> {
        match event {
            Event::Start(tag) => {
                let element = self.element(tag, span, is_ours)?;
                self.open.push((element, Between::default()));
            }
            Event::Empty(tag) => {
                let element = self.element(tag, span, is_ours)?;
                self.close(element);
            }
            Event::End(_) => {
                if let Some((mut element, between)) = self.open.pop() {
                    element.text = between.finish(self.text);
                    self.close(element);
                }
            }
            Event::Text(_) => self.between(self.slice(span, 0, 0)?, span, 0)?,
            Event::CData(_) => {
                let inside = "<![CDATA[".len();
                let text = self.slice(span, inside, "]]>".len())?;
                self.between(text, span, inside)?;
            }
            Event::GeneralRef(_) => {
                let c = reference(self.slice(span, 1, 1)?, span)?;
                self.between(c.encode_utf8(&mut [0; 4]), span, usize::MAX)?;
            }
            Event::DocType(_) => {
                return Err(Diagnostic::error("document types are not read")
                    .code("syntax")
                    .label(span, "entities could be made here")
                    .help("remove it; the schema is known"));
            }
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) | Event::Eof => {}
        }
        Ok(())
    }

    /// What stands at a place, without so many bytes before and behind.
    fn slice(&self, span: Span, before: usize, behind: usize) -> Read<&'a str> {
        let end = span.end.saturating_sub(behind);
        let text = self.text.get(span.start + before..end);
        text.ok_or_else(|| wrong(Span::new(0, 0), "this cannot be read"))
    }

    fn element(&self, tag: &BytesStart, span: Span, is_ours: bool) -> Read<Element> {
        if self.open.len() >= DEPTH_MAX {
            return Err(too_deep(span));
        }
        let qualified = self.part(tag.name().0, span)?;
        let local = qualified.text.rfind(':').map_or(0, |colon| colon + 1);
        let name = qualified.slice(local, qualified.text.len());
        if self.root.is_some() && self.open.is_empty() {
            return Err(wrong(name.span, "a second root"));
        }
        if !is_ours {
            return Err(
                Diagnostic::error(format!("`{}` is not of our namespace", name.text))
                    .code("syntax")
                    .label(name.span, "nothing is known of this")
                    .help(format!(
                        "write `<subscriptions xmlns=\"{NAMESPACE}\">` at the root"
                    )),
            );
        }
        let mut attributes = Vec::new();
        for attribute in tag.attributes() {
            let attribute = attribute.map_err(|error| wrong_attribute(&error, span, self.text))?;
            let name = self.part(attribute.key.0, span)?;
            let is_foreign = name.text == "xmlns" || name.text.contains(':');
            let value = self.value(&self.part(&attribute.value, span)?)?;
            if !is_foreign {
                attributes.push((name, value));
            }
        }
        Ok(Element {
            name,
            attributes,
            elements: Vec::new(),
            text: None,
            span,
        })
    }

    /// A part of a tag that the reader has found, and where it stands.
    fn part(&self, bytes: &[u8], tag: Span) -> Read<Text> {
        let at = (bytes.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let text = self.text.get(at..at.wrapping_add(bytes.len()));
        let text = text.filter(|text| text.as_bytes() == bytes);
        text.map(|text| Text::plain(text, at))
            .ok_or_else(|| wrong(tag, "this tag cannot be read"))
    }

    /// The value of an attribute: blanks are spaces, references are resolved.
    fn value(&self, raw: &Text) -> Read<Text> {
        let mut value = String::with_capacity(raw.text.len());
        let mut rest = raw.text.char_indices();
        while let Some((at, c)) = rest.next() {
            match c {
                '<' => {
                    return Err(
                        wrong(raw.part(at, at + 1), "`<` cannot stand in an attribute")
                            .help("write `&lt;`"),
                    );
                }
                '&' => {
                    let inside = rest.as_str();
                    let length = inside.find(';').unwrap_or(inside.len());
                    let end = (at + length + 2).min(raw.text.len());
                    let span = raw.part(at, end);
                    value.push(reference(&inside[..length], span)?);
                    while rest.offset() < end {
                        rest.next();
                    }
                }
                '\t' | '\n' | '\r' => value.push(' '),
                c => value.push(c),
            }
        }
        let span = Span::new(raw.span.start - 1, raw.span.end + 1);
        Ok(Text::quoted(value, span, raw.span.start, self.text))
    }

    /// Text between tags, which begins at byte `inside` of what stands there.
    fn between(&mut self, text: &str, span: Span, inside: usize) -> Read<()> {
        let Some((_, between)) = self.open.last_mut() else {
            return match text.trim().is_empty() {
                true => Ok(()),
                false => Err(wrong(span, "text outside of the root")),
            };
        };
        let is_blank = text.trim().is_empty();
        match between.span {
            None if is_blank => return Ok(()),
            None => {
                between.start = Some(span.start.saturating_add(inside));
                between.span = Some(span);
            }
            // Blanks between elements do not belong to what stands before them.
            Some(before) if !is_blank => between.span = Some(before.to(span)),
            Some(_) => {}
        }
        between.text.push_str(text);
        Ok(())
    }

    fn close(&mut self, element: Element) {
        match self.open.last_mut() {
            Some((parent, _)) => parent.elements.push(element),
            None => self.root = Some(element),
        }
    }

    fn finish(self) -> Read<Element> {
        if let Some((element, _)) = self.open.last() {
            let label = format!("`{}` is not closed", element.name.text);
            return Err(wrong(element.name.span, label));
        }
        let end = Span::new(self.text.len(), self.text.len());
        self.root.ok_or_else(|| {
            wrong(end, "there is no element")
                .help(format!("write `<subscriptions xmlns=\"{NAMESPACE}\">`"))
        })
    }
}

impl Between {
    fn finish(self, source: &str) -> Option<Text> {
        // Whatever ends a line in the file, it is `\n` that is meant.
        let text = self.text.replace("\r\n", "\n").replace('\r', "\n");
        let inside = self.start.filter(|start| *start <= source.len());
        let span = self.span?;
        let text = Text::quoted(text, span, inside.unwrap_or(source.len()), source).trimmed();
        (!text.text.is_empty()).then_some(text)
    }
}

/// The character of `&…;`.
fn reference(inside: &str, span: Span) -> Read<char> {
    let number = inside.strip_prefix('#');
    let c = match (inside, number) {
        ("lt", _) => Some('<'),
        ("gt", _) => Some('>'),
        ("amp", _) => Some('&'),
        ("apos", _) => Some('\''),
        ("quot", _) => Some('"'),
        (_, Some(number)) => match number.strip_prefix('x') {
            Some(digits) => u32::from_str_radix(digits, 16).ok(),
            None => number.parse().ok(),
        }
        .and_then(char::from_u32)
        .filter(|c| is_allowed(*c) && !number.contains('+')),
        _ => None,
    };
    c.ok_or_else(|| {
        wrong(span, "this stands for no character")
            .help("write `&amp;` for `&`; entities are not expanded")
    })
}
