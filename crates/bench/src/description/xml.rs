//! The paper's XML (Solar, Figures 3 and 4).
//!
//! | element | attributes | contains |
//! |---|---|---|
//! | `test-group` | `name` | `test`, `param` (properties) |
//! | `test` | `name`, the schedule | `server`, `var`, `param` |
//! | `server` | `host`, `port` | `star`, `planet`, `app`, `param` |
//! | `app` | `name`, `class` | `param` |
//! | `star`, `planet` | `name`, parameters | `param` |
//! | `var` | `name`, `start`, `end`, `step`, or `values` with commas, `while` | `value` for each |
//! | `param` | `name`, `value`, `type` | or a `value` for each of several |
//! | `value` | `type` | a text |
//!
//! What reads as a number or a truth value is one, unless `type="text"` says that
//! it is a text. `result` and `found` in a `test`, and `run` in a group, are what a
//! run has added, and are no part of a description. There are no document types.

use milieu_diagnostics::{Diagnostic, Span};
use roxmltree::{Document, Node as Element};

use super::tree::{Entry, Node, Text};
use super::write::Xml;
use crate::Value;

pub(super) fn read(text: &str) -> Result<Node, Diagnostic> {
    let document = Document::parse(text).map_err(|error| {
        let at = offset(text, error.pos());
        let length = text[at..].chars().next().map_or(0, char::len_utf8);
        let wrong = Diagnostic::error("this is not well-formed XML").code("syntax");
        wrong.label(Span::new(at, at + length), reason(&error))
    })?;
    let root = document.root_element();
    if root.tag_name().name() != "test-group" {
        return Err(Diagnostic::error("this describes no group of tests")
            .code("syntax")
            .label(name(&root, text).span, "the root is another")
            .help("write `<test-group name=\"…\">` around the tests"));
    }
    node(root, "group", text)
}

/// The message without the place, which is shown otherwise.
fn reason(error: &roxmltree::Error) -> String {
    let text = error.to_string();
    let end = text.rfind(" at ").unwrap_or(text.len());
    text[..end].to_owned()
}

fn offset(text: &str, position: roxmltree::TextPos) -> usize {
    let line = position.row.saturating_sub(1) as usize;
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let column = position.col.saturating_sub(1) as usize;
    let rest = text.get(start..).unwrap_or_default();
    let inside: usize = rest.chars().take(column).map(char::len_utf8).sum();
    start + inside
}

/// The name in a start tag.
fn name(element: &Element, text: &str) -> Text {
    let start = element.range().start + 1;
    let name = element.tag_name().name();
    let behind = text.get(start..).unwrap_or_default();
    let end = behind.find(|c: char| c.is_whitespace() || "/>".contains(c));
    Text {
        text: name.to_owned(),
        span: Span::new(start, start + end.unwrap_or(name.len())),
    }
}

fn node(element: Element, word: &str, text: &str) -> Result<Node, Diagnostic> {
    let mut tag = name(&element, text);
    let kind = tag.text.clone();
    tag.text = word.to_owned();
    let mut node = Node::new(tag);
    let is_kind_of_its_own = matches!(&*kind, "star" | "planet");
    if is_kind_of_its_own {
        node.attributes.push(Entry {
            name: node.word.clone(),
            value: Value::Text(kind.clone()),
            span: node.word.span,
        });
        node.attributes[0].name.text = "kind".into();
    }
    for attribute in element.attributes() {
        let entry = Entry {
            name: Text {
                text: match attribute.name() {
                    "class" if word == "application" && !is_kind_of_its_own => "kind".into(),
                    name => name.to_owned(),
                },
                span: Span::from(attribute.range_qname()),
            },
            value: Value::Text(attribute.value().to_owned()),
            span: Span::from(attribute.range_value()),
        };
        match is_kind_of_its_own && attribute.name() != "name" {
            true => node.parameters.push(Entry {
                value: Value::guess(attribute.value()),
                ..entry
            }),
            false => node.attributes.push(entry),
        }
    }
    let mut values: Option<(Vec<Value>, Span)> = None;
    for child in element.children() {
        if child.is_text() && !child.text().unwrap_or_default().trim().is_empty() {
            return Err(Diagnostic::error("text has no meaning here")
                .code("syntax")
                .label(Span::from(child.range()), "remove it, or make it a comment"));
        }
        if !child.is_element() {
            continue;
        }
        let tag = child.tag_name().name();
        match (word, tag) {
            (_, "param") if word != "variable" => node.parameters.push(parameter(child, text)?),
            ("variable", "value") => {
                let at = Span::from(child.range());
                let values = values.get_or_insert_with(|| (Vec::new(), at));
                values.0.push(value(child, text)?);
            }
            ("group", "test") => node.nodes.push(self::node(child, "test", text)?),
            ("test", "result" | "found") | ("group", "run") => {}
            ("test", "server") => node.nodes.push(self::node(child, "server", text)?),
            ("test", "var") => node.nodes.push(self::node(child, "variable", text)?),
            ("server", "app" | "star" | "planet") => {
                node.nodes.push(self::node(child, "application", text)?);
            }
            _ => {
                let at = name(&child, text);
                let outer = element.tag_name().name();
                return Err(Diagnostic::error(format!("`{tag}` has no meaning here"))
                    .code("syntax")
                    .label(at.span, format!("`{outer}` does not contain it")));
            }
        }
    }
    if let Some((values, span)) = values {
        node.attributes.push(Entry {
            name: Text {
                text: "values".into(),
                span,
            },
            value: Value::List(values),
            span,
        });
    }
    Ok(node)
}

/// One of several values.
fn value(element: Element, text: &str) -> Result<Value, Diagnostic> {
    let kind = kind(element, text, &["type"])?;
    if let Some(inside) = element.children().find(|child| !child.is_text()) {
        return Err(Diagnostic::error("a `value` is a text alone")
            .code("syntax")
            .label(Span::from(inside.range()), "remove this"));
    }
    let told = element.text().unwrap_or_default();
    Ok(match kind {
        Some(_) => Xml::value(told, kind),
        None => Xml::value(told.trim(), None),
    })
}

/// What an element says its value is. It has no other attributes than these.
fn kind<'a>(
    element: Element<'a, '_>,
    text: &str,
    known: &[&str],
) -> Result<Option<&'a str>, Diagnostic> {
    let tag = name(&element, text).text;
    for attribute in element.attributes() {
        let (name, value) = (attribute.name(), attribute.value());
        if !known.contains(&name) {
            let at = Span::from(attribute.range_qname());
            return Err(Diagnostic::error(format!("a `{tag}` has no `{name}`"))
                .code("syntax")
                .label(at, "not known")
                .help(format!("there are {}", known.join(", "))));
        }
        if name == "type" && value != "text" {
            let at = Span::from(attribute.range_value());
            return Err(Diagnostic::error(format!("`{value}` is no `type`"))
                .code("syntax")
                .label(at, "not known")
                .help("write `type=\"text\"` for what is a text although it reads as a number"));
        }
    }
    Ok(element.attribute("type"))
}

fn parameter(element: Element, text: &str) -> Result<Entry, Diagnostic> {
    let kind = kind(element, text, &["name", "value", "type"])?;
    let lacks = |attribute: &str| {
        Diagnostic::error(format!("`param` lacks its `{attribute}`"))
            .code("syntax")
            .label(name(&element, text).span, "write it as an attribute")
    };
    let find = |wanted: &str| {
        let mut attributes = element.attributes();
        attributes
            .find(|attribute| attribute.name() == wanted)
            .ok_or_else(|| lacks(wanted))
    };
    let known = find("name")?;
    let name = Text {
        text: known.value().to_owned(),
        span: Span::from(known.range_value()),
    };
    let mut several = Vec::new();
    for child in element.children().filter(Element::is_element) {
        if child.tag_name().name() != "value" {
            let at = self::name(&child, text);
            return Err(
                Diagnostic::error(format!("`{}` has no meaning here", at.text))
                    .code("syntax")
                    .label(at.span, "`param` contains values"),
            );
        }
        several.push(value(child, text)?);
    }
    let (value, span) = match (find("value"), several.is_empty()) {
        (Ok(value), true) => (
            Xml::value(value.value(), kind),
            Span::from(value.range_value()),
        ),
        (Err(lacks), true) => return Err(lacks),
        (Err(_), false) => (Value::List(several), Span::from(element.range())),
        (Ok(value), false) => {
            return Err(Diagnostic::error("a `param` has one `value` or several")
                .code("syntax")
                .label(
                    Span::from(value.range_value()),
                    "and there are others inside",
                ));
        }
    };
    Ok(Entry { name, value, span })
}
