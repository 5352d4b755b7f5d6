//! What people see.

use milieu_diagnostics::{Diagnostic, Severity, Source, Span, render};

/// The span of the first occurrence of `part`.
fn find(source: &Source, part: &str) -> Span {
    let start = source.text.find(part).expect(part);
    Span::new(start, start + part.len())
}

#[track_caller]
fn check(source: &Source, diagnostics: &[Diagnostic], expected: &str) {
    let rendered = render(source, diagnostics, false);
    assert_eq!(rendered, expected, "rendered:\n{rendered}");
}

#[test]
fn labels_help_and_notes() {
    let source = Source::new("a.ini", "[/a]\ntype=long\n\n; x\n; y\n; z\n\n[/a]\n");
    let found = Diagnostic::error("`/a` is declared twice")
        .code("duplicate-section")
        .label(Span::new(29, 33), "again here")
        .label(Span::new(0, 4), "first here")
        .note("the second one\nwould win")
        .help("remove one of them")
        .help("or rename it");
    check(
        &source,
        &[found],
        "\
error[duplicate-section]: `/a` is declared twice
 --> a.ini:8:1
  |
1 | [/a]
  | ---- first here
...
8 | [/a]
  | ^^^^ again here
  |
  = note: the second one
          would win
  = help: remove one of them
  = help: or rename it
",
    );
}

#[test]
fn several_are_separated_by_a_blank_line() {
    let source = Source::new("a.ini", "");
    let found = [
        Diagnostic::error("one"),
        Diagnostic::new(Severity::Note, "two"),
    ];
    check(
        &source,
        &found,
        "\
error: one
 --> a.ini

note: two
 --> a.ini
",
    );
    check(&source, &[], "");
}

#[test]
fn control_characters_show_and_do_not_act() {
    let source = Source::new("a\u{1b}.ini", "x\r\n\tdefault=\u{1b}[31mred\u{202e}\r\ny");
    let found = Diagnostic::warning("odd \u{7}")
        .label(find(&source, "red"), "colour \u{1b}[0m")
        .help("tab\there");
    check(
        &source,
        &[found],
        "\
warning: odd ␇
 --> a␛.ini:2:15
  |
2 |     default=␛[31mred�
  |                  ^^^ colour ␛[0m
  |
  = help: tab␉here
",
    );
}

#[test]
fn places_at_the_edges_of_the_text() {
    let source = Source::new("a.ini", "[/a\n");
    let found = [
        Diagnostic::error("at the end of a line").label(Span::new(3, 3), "here"),
        Diagnostic::error("at the end of the text").label(Span::new(4, 4), "here"),
        Diagnostic::error("beyond it").label(Span::new(40, 50), "here"),
    ];
    check(
        &source,
        &found,
        "\
error: at the end of a line
 --> a.ini:1:4
  |
1 | [/a
  |    ^ here

error: at the end of the text
 --> a.ini:2:1
  |
2 |
  | ^ here

error: beyond it
 --> a.ini:2:1
  |
2 |
  | ^ here
",
    );
}

#[test]
fn colour_adds_nothing_but_escape_sequences() {
    let source = Source::new("a.ini", "[/a]\n");
    let found = [Diagnostic::error("x")
        .code("c")
        .label(Span::new(1, 3), "y")
        .help("z")];
    let coloured = render(&source, &found, true);
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = after.split_once('m').expect("an escape sequence ends").1;
    }
    plain.push_str(rest);
    assert!(coloured.contains("\u{1b}["));
    let trimmed: String = plain
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect();
    assert_eq!(trimmed, render(&source, &found, false));
}

#[test]
fn no_span_and_no_text_make_it_panic() {
    let texts = [
        "",
        "\n",
        "\r\n",
        "a",
        "ä\n\tß\r\n\u{0}\u{1b}\n\n",
        "\u{feff}x\u{202e}\ny",
        "\u{1f980}\u{200d}\u{1f980}\n\r\r\n",
    ];
    for text in texts {
        let source = Source::new("<memory>", text);
        for start in 0..=text.len() + 1 {
            for end in 0..=text.len() + 1 {
                let found = Diagnostic::error("x")
                    .label(Span::new(start, end), "one")
                    .label(Span::new(end, start), "two");
                let rendered = render(&source, &[found], true);
                assert!(rendered.contains("one"), "{text:?} {start}..{end}");
            }
        }
    }
}

#[test]
fn lines_keep_their_numbers_in_a_large_source() {
    let text = "key=value\n".repeat(100_000);
    let source = Source::new("<memory>", text);
    let found = Diagnostic::error("x").label(Span::new(999_990, 999_993), "here");
    let rendered = render(&source, &[found], false);
    assert!(rendered.contains("100000 | key=value"), "{rendered}");
}
