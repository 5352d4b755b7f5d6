//! What C and C++ have in common: names, literals, comments, and the table that
//! tells the library where the fields are.

use milieu_keys::Type;

use crate::{
    facts,
    ir::{Environment, Layer, Value},
    prose::{code, is_unwelcome, markdown},
    snake_case,
    writer::Writer,
};

/// Keywords of C and C++ in all their versions, and what their preprocessors
/// define besides: a header may be read by either language.
const TAKEN: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "errno",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "i386",
    "if",
    "inline",
    "int",
    "linux",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "offsetof",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "stderr",
    "stdin",
    "stdout",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "typeof_unqual",
    "union",
    "unix",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
];

/// The identifier as C and C++ take it.
pub(crate) fn identifier(neutral: &str) -> String {
    match TAKEN.contains(&neutral) {
        true => format!("{neutral}_"),
        false => neutral.to_owned(),
    }
}

/// What everything of a program begins with, or stands in.
pub(crate) fn prefix(program: &str) -> String {
    let program = snake_case(program).unwrap_or_else(|| "environment".to_owned());
    match program == "milieu" || program.starts_with("milieu_") {
        // The library's own names begin so.
        true => format!("app_{program}"),
        false => identifier(&program),
    }
}

/// The name of a guard against a header that is read twice.
pub(crate) fn guard(prefix: &str, extension: &str) -> String {
    format!("MILIEU_GENERATED_{}_{extension}", prefix.to_uppercase())
}

/// A text as a string literal.
pub(crate) fn string(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => literal.extend(['\\', character]),
            '\n' => literal.push_str("\\n"),
            '\t' => literal.push_str("\\t"),
            // Two of them and a sign would be a trigraph.
            '?' => literal.push_str("\\?"),
            // An octal escape ends after three digits, unlike a hexadecimal one.
            c if is_unwelcome(c) => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    literal.push_str(&format!("\\{byte:03o}"));
                }
            }
            c => literal.push(c),
        }
    }
    literal.push('"');
    literal
}

/// The type of an element that is no enumeration, in C; texts are `text`.
pub(crate) fn primitive(type_: Type, text: &str) -> &str {
    match type_ {
        Type::Boolean => "bool",
        Type::Short => "int16_t",
        Type::UnsignedShort => "uint16_t",
        Type::Long => "int32_t",
        Type::UnsignedLong | Type::Enum => "uint32_t",
        Type::LongLong => "int64_t",
        Type::UnsignedLongLong => "uint64_t",
        Type::Float => "float",
        Type::Double => "double",
        Type::String => text,
    }
}

/// How a field lies in memory, as `milieu.h` numbers it.
fn kind(value: &Value) -> String {
    let element = match value.type_ {
        Type::Boolean => "MILIEU_BOOL",
        Type::Short => "MILIEU_I16",
        Type::UnsignedShort => "MILIEU_U16",
        Type::Long => "MILIEU_I32",
        Type::UnsignedLong => "MILIEU_U32",
        Type::LongLong => "MILIEU_I64",
        Type::UnsignedLongLong => "MILIEU_U64",
        Type::Float => "MILIEU_F32",
        Type::Double => "MILIEU_F64",
        Type::String => "MILIEU_TEXT",
        Type::Enum => "MILIEU_ENUM",
    };
    match value.is_array {
        true => format!("{element} | MILIEU_ARRAY"),
        false => element.to_owned(),
    }
}

/// The identifiers from the root to a value, as the fields are called.
pub(crate) fn path(value: &Value) -> Vec<String> {
    value.identifiers.iter().map(|it| identifier(it)).collect()
}

/// The statements that make the table and return it, for a struct of this type.
pub(crate) fn table(out: &mut Writer, environment: &Environment, struct_: &str) {
    let values = &environment.values;
    for (index, value) in values.iter().enumerate() {
        if value.metadata.is_empty() {
            continue;
        }
        out.open(format!("static const milieu_entry metadata_{index}[] = {{"));
        for (key, text) in &value.metadata {
            out.line(format!("{{{}, {}}},", string(key), string(text)));
        }
        out.close("};");
    }
    if !values.is_empty() {
        out.open("static const milieu_value values[] = {");
        for (index, value) in values.iter().enumerate() {
            let (count, metadata) = match value.metadata.len() {
                0 => (0, "NULL".to_owned()),
                count => (count, format!("metadata_{index}")),
            };
            out.line(format!(
                "{{{}, offsetof({struct_}, {}), {}, {count}, {metadata}}},",
                string(&value.pattern),
                path(value).join("."),
                kind(value)
            ));
        }
        out.close("};");
    }
    let table = if values.is_empty() { "NULL" } else { "values" };
    out.line(format!(
        "static const milieu_layout layout = {{MILIEU_ABI, {}, {table}, sizeof({struct_}), \
         MILIEU_ALIGNOF({struct_})}};",
        values.len()
    ));
    out.line("return &layout;");
}

/// A comment that documentation tools read.
pub(crate) fn doc(out: &mut Writer, lines: impl IntoIterator<Item = String>) {
    let harmless = |line: String| line.replace("*/", "* /").replace("/*", "/ *");
    let lines: Vec<String> = lines.into_iter().map(harmless).collect();
    match lines.as_slice() {
        [] => {}
        [line] => out.line(format!("/** {} */", line.trim_end())),
        lines => {
            out.line("/**");
            for line in lines {
                out.line(format!(" * {line}").trim_end());
            }
            out.line(" */");
        }
    }
}

/// What is said of a value.
pub(crate) fn value_doc(value: &Value) -> Vec<String> {
    let mut lines = match value.metadata("description") {
        Some(description) => markdown(description),
        None => vec![format!("{}.", code(&value.pattern))],
    };
    lines.push(String::new());
    if value.metadata("description").is_some() {
        lines.push(format!("- Key: {}", code(&value.pattern)));
    }
    for (label, phrase) in facts::lines(value) {
        // The field's type and the placeholders in the key say these.
        if matches!(label, "Type" | "Layers") || (label == "Default" && value.is_array) {
            continue;
        }
        lines.push(match phrase.0.is_empty() {
            true => format!("- {label}"),
            false => format!("- {label}: {}", phrase.markdown()),
        });
    }
    if lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// What is said of a layer.
pub(crate) fn layer_doc(layer: &Layer) -> Vec<String> {
    let name = format!("The layer {}.", code(&layer.name));
    let Some(description) = layer.metadata("description") else {
        return vec![name];
    };
    let mut lines = markdown(description);
    lines.extend([String::new(), name]);
    lines
}

/// What is said of a branch.
pub(crate) fn branch_doc(name: &str, description: Option<&str>) -> Vec<String> {
    let name = format!("The branch {}.", code(name));
    let Some(description) = description else {
        return vec![name];
    };
    let mut lines = markdown(description);
    lines.extend([String::new(), name]);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_mean_what_the_text_says() {
        for (text, expected) in [
            ("plain", "\"plain\""),
            ("a \"b\" \\", "\"a \\\"b\\\" \\\\\""),
            ("??=", "\"\\?\\?=\""),
            ("\u{1}2", "\"\\0012\""),
            ("größe", "\"größe\""),
        ] {
            assert_eq!(string(text), expected, "{text:?}");
        }
    }

    #[test]
    fn prefixes_are_identifiers() {
        for (program, expected) in [
            ("weather-station", "weather_station"),
            ("int", "int_"),
            ("milieu", "app_milieu"),
            ("milieu-demo", "app_milieu_demo"),
            ("-", "environment"),
        ] {
            assert_eq!(prefix(program), expected, "{program}");
        }
    }

    #[test]
    fn comments_stay_comments() {
        let mut out = Writer::default();
        doc(
            &mut out,
            ["ends */ and begins /*".to_owned(), "x".to_owned()],
        );
        assert_eq!(out.finish(), "/**\n * ends * / and begins / *\n * x\n */\n");
    }
}
