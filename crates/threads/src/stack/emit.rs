//! A table of stack sizes for the next compilation, as source text.
//!
//! A program that is built anew has other build ids and offsets. What stays are the
//! names of start functions, which a symbolizer finds for the keys of a profile.

use core::fmt::{self, Write};

/// The language of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// A header for C and C++.
    C,
    /// A module.
    Rust,
}

/// What is said of the threads of a start function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'r> {
    /// The name of the start function, or of what it calls.
    pub start: &'r str,
    /// What the threads are for; may be empty.
    pub role: &'r str,
    /// Where the function stands in the sources, as in `src/net.c:120`; may be empty.
    pub position: &'r str,
    /// How large the stack shall be.
    pub bytes: u64,
    /// How deep it was.
    pub peak_bytes: u64,
    /// How large it has been.
    pub given_bytes: u64,
}

/// Writes a table: a constant for each row, and all of them to look up by name. Rows
/// with one name get numbers.
///
/// ```
/// use milieu_threads::stack::{Language, Row, emit};
///
/// let row = Row {
///     start: "net::worker",
///     role: "net",
///     position: "src/net.rs:12",
///     bytes: 262144,
///     peak_bytes: 20480,
///     given_bytes: 8388608,
/// };
/// let mut text = String::new();
/// emit(Language::Rust, &[row], &mut text)?;
/// assert!(text.contains("pub const STACK_NET_WORKER: usize = 262144;"));
/// # Ok::<(), std::fmt::Error>(())
/// ```
///
/// # Errors
/// Writing has failed.
pub fn emit(language: Language, rows: &[Row<'_>], out: &mut dyn Write) -> fmt::Result {
    match language {
        Language::C => c(rows, out),
        Language::Rust => rust(rows, out),
    }
}

fn c(rows: &[Row<'_>], out: &mut dyn Write) -> fmt::Result {
    out.write_str(
        "/* Stack sizes that were learned; `milieu thread profile --emit c` writes them.\n \
         * pthread_attr_setstacksize takes them. */\n\
         #ifndef MILIEU_STACKS_H\n\
         #define MILIEU_STACKS_H\n",
    )?;
    for (index, row) in rows.iter().enumerate() {
        out.write_str("\n/* ")?;
        remark(row, out)?;
        out.write_str(" */\n#define MILIEU_")?;
        constant(rows, index, out)?;
        writeln!(out, " {}ul", row.bytes)?;
    }
    out.write_str(
        "\nstruct milieu_stack {\n    \
             const char *start;\n    \
             const char *role;\n    \
             unsigned long bytes;\n\
         };\n\n\
         /* The last one has no name. */\n\
         static const struct milieu_stack milieu_stacks[] = {\n",
    )?;
    for (index, row) in rows.iter().enumerate() {
        out.write_str("    {\"")?;
        in_c_string(row.start, out)?;
        out.write_str("\", \"")?;
        in_c_string(row.role, out)?;
        out.write_str("\", MILIEU_")?;
        constant(rows, index, out)?;
        out.write_str("},\n")?;
    }
    out.write_str("    {0, 0, 0},\n};\n\n#endif\n")
}

fn rust(rows: &[Row<'_>], out: &mut dyn Write) -> fmt::Result {
    out.write_str(
        "// Stack sizes that were learned; `milieu thread profile --emit rust` writes them.\n\
         // `std::thread::Builder::stack_size` takes them.\n",
    )?;
    for (index, row) in rows.iter().enumerate() {
        out.write_str("\n/// ")?;
        remark(row, out)?;
        out.write_str("\npub const ")?;
        constant(rows, index, out)?;
        writeln!(out, ": usize = {};", row.bytes)?;
    }
    out.write_str(
        "\n/// Start function, role, size.\npub const STACKS: &[(&str, &str, usize)] = &[\n",
    )?;
    for (index, row) in rows.iter().enumerate() {
        write!(out, "    ({:?}, {:?}, ", row.start, row.role)?;
        constant(rows, index, out)?;
        out.write_str("),\n")?;
    }
    out.write_str("];\n")
}

/// What a person wants to know of it, in one line that ends no comment.
fn remark(row: &Row<'_>, out: &mut dyn Write) -> fmt::Result {
    in_comment(row.start, out)?;
    if !row.position.is_empty() {
        out.write_str(", ")?;
        in_comment(row.position, out)?;
    }
    if !row.role.is_empty() {
        out.write_str(", role ")?;
        in_comment(row.role, out)?;
    }
    write!(
        out,
        ": {} of {} bytes were used",
        row.peak_bytes, row.given_bytes
    )
}

fn in_comment(text: &str, out: &mut dyn Write) -> fmt::Result {
    text.chars().try_for_each(|letter| match letter {
        // Neither the end of a comment nor the start of another, nor of a line after it;
        // and what turns the direction of text hides what a line says.
        '*' | '\\' => out.write_char('\''),
        letter if letter.is_control() || !letter.is_ascii() => out.write_char('?'),
        letter => out.write_char(letter),
    })
}

fn in_c_string(text: &str, out: &mut dyn Write) -> fmt::Result {
    text.bytes().try_for_each(|byte| match byte {
        b'"' | b'\\' | b'?' => write!(out, "\\{}", char::from(byte)),
        b' '..=b'~' => out.write_char(byte.into()),
        _ => write!(out, "\\{byte:03o}"),
    })
}

/// The name of the constant of a row.
fn constant(rows: &[Row<'_>], index: usize, out: &mut dyn Write) -> fmt::Result {
    let Some(row) = rows.get(index) else {
        return Ok(());
    };
    out.write_str("STACK_")?;
    words(row.start).try_for_each(|letter| out.write_char(letter))?;
    let before = rows.iter().take(index);
    let same = before
        .filter(|it| words(it.start).eq(words(row.start)))
        .count();
    match same {
        0 => Ok(()),
        // No name has two of these in a row.
        _ => write!(out, "__{}", same + 1),
    }
}

/// Letters and digits of a name in capitals, with one `_` for everything between them.
fn words(name: &str) -> impl Iterator<Item = char> {
    let ends = |letter: char| !letter.is_ascii_alphanumeric();
    name.split(ends)
        .filter(|word| !word.is_empty())
        .enumerate()
        .flat_map(|(index, word)| {
            let between = (index > 0).then_some('_');
            between
                .into_iter()
                .chain(word.chars().map(|it| it.to_ascii_uppercase()))
        })
}
