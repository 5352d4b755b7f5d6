//! The INI document: what editing changes, what round trips, what is refused.

use milieu_diagnostics::Diagnostic;
use milieu_keys::Name;
use milieu_store::ini::Document;

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn parsed(text: &str) -> Document {
    let (document, diagnostics) = Document::parse(text);
    assert_eq!(diagnostics, [], "{text:?}");
    assert_eq!(document.to_string(), text);
    document
}

fn after_set(text: &str, key: &str, value: &str) -> String {
    let mut document = parsed(text);
    document.set(&name(key), value);
    let edited = document.to_string();
    assert_eq!(parsed(&edited).get(key).as_deref(), Some(value), "{edited}");
    edited
}

fn after_remove(text: &str, key: &str) -> String {
    let mut document = parsed(text);
    assert!(document.remove(key).is_some(), "{key} is there");
    let edited = document.to_string();
    assert_eq!(parsed(&edited).get(key), None);
    edited
}

fn keys(document: &Document) -> Vec<(String, String, u32)> {
    document
        .keys()
        .map(|entry| (entry.name.to_string(), entry.value.into_owned(), entry.line))
        .collect()
}

/// The configuration file of CoElektra, section IV-A.
const PAPER: &str = "\
/hw/pi/pi/gpio/folder = /sys/class/gpio/
/hw/pi/pi/gpio/tamper = gpio7
/hw/pi/elitebook/gpio/folder = ~/context/pi
/hw/pi/elitebook/gpio/tamper = tamper.txt
";

const SECTIONS: &str = "\
; The station's settings.
[/sw/pi/anna]
language = de   \n\
\t# Anna likes it loud.
\tvolume=11

# Nobody in particular.
[/sw/pi/%]
language = en
";

#[test]
fn full_names_and_sections_mean_the_same() {
    let document = parsed(
        "a = 1\n/b/c = 2\n[/sw/pi]\nanna/language = de\n/x = 3\n[ relative ]\ny = 4\n[/]\nz = 5\n",
    );
    assert_eq!(
        keys(&document),
        [
            ("/a".to_owned(), "1".to_owned(), 1),
            ("/b/c".to_owned(), "2".to_owned(), 2),
            ("/sw/pi/anna/language".to_owned(), "de".to_owned(), 4),
            ("/x".to_owned(), "3".to_owned(), 5),
            ("/relative/y".to_owned(), "4".to_owned(), 7),
            ("/z".to_owned(), "5".to_owned(), 9),
        ]
    );
}

#[test]
fn the_papers_file_loads_and_grows_in_its_own_shape() {
    assert_eq!(
        parsed(PAPER).get("/hw/pi/elitebook/gpio/folder").as_deref(),
        Some("~/context/pi")
    );
    let edited = after_set(PAPER, "/hw/pi/pi/gpio/led", "gpio8");
    assert_eq!(
        edited,
        PAPER.replace("= gpio7\n", "= gpio7\n/hw/pi/pi/gpio/led = gpio8\n")
    );
    let edited = after_set(PAPER, "/sw/pi/language", "de");
    assert_eq!(edited, format!("{PAPER}/sw/pi/language = de\n"));
}

#[test]
fn setting_a_key_changes_its_value_and_nothing_else() {
    assert_eq!(
        after_set(SECTIONS, "/sw/pi/anna/language", "fr"),
        SECTIONS.replace("= de   \n", "= fr   \n")
    );
    assert_eq!(
        after_set(SECTIONS, "/sw/pi/anna/volume", "3"),
        SECTIONS.replace("=11", "=3")
    );
    assert_eq!(after_set(SECTIONS, "/sw/pi/anna/volume", "11"), SECTIONS);
    assert_eq!(
        after_set("a=\"\\u{41}\"\n", "/a", "A"),
        "a=\"\\u{41}\"\n",
        "the same value keeps its spelling"
    );
    assert_eq!(after_set("a=\"A\"\n", "/a", "B"), "a=B\n");
    assert_eq!(after_set("a=1\r\nb = 2", "/b", ""), "a=1\r\nb = ");
    assert_eq!(after_set("a =\nb=\nc = \n", "/a", "x"), "a = x\nb=\nc = \n");
    assert_eq!(after_set("a =\nb=\nc = \n", "/b", "x"), "a =\nb=x\nc = \n");
    assert_eq!(after_set("a =\nb=\nc = \n", "/c", "x"), "a =\nb=\nc = x\n");
}

#[test]
fn a_new_key_joins_its_siblings_and_is_written_as_they_are() {
    assert_eq!(
        after_set(SECTIONS, "/sw/pi/anna/name", "Anna"),
        SECTIONS.replace("=11\n", "=11\n\tname=Anna\n")
    );
    assert_eq!(
        after_set("[/a]\r\nx = 1", "/a/y", "2"),
        "[/a]\r\nx = 1\r\ny = 2\r\n"
    );
    assert_eq!(
        after_set("b = 1\n[/a]\nx = 1\n", "/c", "2"),
        "b = 1\nc = 2\n[/a]\nx = 1\n"
    );
    assert_eq!(
        after_set("[/sw]\npi/anna = 1\n", "/sw/pi/ben", "2"),
        "[/sw]\npi/anna = 1\npi/ben = 2\n"
    );
    assert_eq!(
        after_set("[/a]\nlong_name = 1\nx         = 2\n", "/a/yy", "3"),
        "[/a]\nlong_name = 1\nx         = 2\nyy        = 3\n"
    );
}

#[test]
fn a_new_key_without_siblings_gets_a_section() {
    assert_eq!(
        after_set("", "/sw/pi/anna/language", "de"),
        "[/sw/pi/anna]\nlanguage = de\n"
    );
    assert_eq!(after_set("", "/language", "de"), "/language = de\n");
    assert_eq!(after_set("", "/", "root"), "/ = root\n");
    assert_eq!(
        after_set("# mine\r\n", "/a/b", "1"),
        "# mine\r\n\r\n[/a]\r\nb = 1\r\n"
    );
    assert_eq!(
        after_set("[/a]\nx=1", "/b/y", "2"),
        "[/a]\nx=1\n\n[/b]\ny=2\n"
    );
    assert_eq!(
        after_set("[/a]\nx = 1\n", "/y", "2"),
        "[/a]\nx = 1\n\n[/]\ny = 2\n"
    );
    assert_eq!(
        after_set("[/a]\n# about a\n\n[/b]\ny=2\n", "/a/x", "1"),
        "[/a]\n# about a\nx=1\n\n[/b]\ny=2\n"
    );
    assert_eq!(
        after_set("[/a]\n# about b\n[/b]\ny=2\n", "/a/x", "1"),
        "[/a]\nx=1\n# about b\n[/b]\ny=2\n"
    );
    assert_eq!(
        after_set("[/a]\nb/x = 1\n\n# end\n", "/a/y", "2"),
        "[/a]\nb/x = 1\ny = 2\n\n# end\n"
    );
}

#[test]
fn removing_takes_the_line_and_a_section_that_holds_nothing_more() {
    assert_eq!(
        after_remove(SECTIONS, "/sw/pi/anna/volume"),
        SECTIONS.replace("\tvolume=11\n", "")
    );
    assert_eq!(
        after_remove("[/a]\nx=1\n\n[/b]\ny=2\n\n[/c]\nz=3\n", "/b/y"),
        "[/a]\nx=1\n\n[/c]\nz=3\n"
    );
    assert_eq!(
        after_remove("[/a]\nx=1\n\n[/b]\ny=2\n", "/b/y"),
        "[/a]\nx=1\n"
    );
    assert_eq!(
        after_remove("[/a]\nx=1\n[/b]\ny=2\n", "/a/x"),
        "[/b]\ny=2\n"
    );
    assert_eq!(
        after_remove("# mine\n[/a]\nx=1\n", "/a/x"),
        "# mine\n[/a]\n",
        "a comment describes it"
    );
    assert_eq!(
        after_remove("[/a]\nx=1\n# later\n", "/a/x"),
        "[/a]\n# later\n"
    );
    assert_eq!(after_remove("[/a]\nx=1\n/full=2\n", "/full"), "[/a]\nx=1\n");
}

#[test]
fn many_edits_leave_the_rest_alone() {
    let mut document = parsed(SECTIONS);
    for number in 0..50 {
        let session = number % 7;
        document.set(
            &name(&format!("/sw/pi/session{session}/visit{number}")),
            "x",
        );
    }
    for number in 0..50 {
        let session = number % 7;
        assert_eq!(
            document
                .remove(&format!("/sw/pi/session{session}/visit{number}"))
                .as_deref(),
            Some("x")
        );
    }
    assert_eq!(document.remove("/nowhere"), None);
    assert_eq!(document.to_string(), SECTIONS);
}

#[test]
fn a_byte_order_mark_stays_at_the_front() {
    let text = "\u{feff}a = 1\n";
    assert_eq!(after_set(text, "/a", "2"), "\u{feff}a = 2\n");
    assert_eq!(after_remove(text, "/a"), "\u{feff}");
    assert_eq!(keys(&parsed(text)), [("/a".to_owned(), "1".to_owned(), 1)]);
}

#[test]
fn values_know_where_they_stand() {
    let text = "\u{feff}[/a]\r\nx = one\r\n";
    let document = parsed(text);
    let span = document.keys().next().unwrap().span.unwrap();
    assert_eq!(&text[span.start..span.end], "one");
}

/// Message, labelled texts with their labels, and help of the only diagnostic.
fn refused(text: &str) -> (String, Vec<(String, String)>, Vec<String>) {
    let (document, diagnostics) = Document::parse(text);
    assert_eq!(
        document.to_string(),
        text,
        "what is refused is kept all the same"
    );
    let [diagnostic] = <[Diagnostic; 1]>::try_from(diagnostics).expect("one diagnostic");
    let labels = diagnostic.labels.iter().map(|label| {
        (
            text[label.span.start..label.span.end].to_owned(),
            label.text.clone(),
        )
    });
    (
        diagnostic.message.clone(),
        labels.collect(),
        diagnostic.help.clone(),
    )
}

#[test]
fn what_cannot_be_understood_is_reported_at_its_place() {
    let cases: &[(&str, &str, &str, &str)] = &[
        (
            "a = 1\nlangua",
            "this line is neither a key nor a section nor a comment",
            "langua",
            "no `=` here",
        ),
        (
            "a = 1\n = 2\n",
            "a value without a name",
            "=",
            "nothing stands before the `=`",
        ),
        (
            "[/a\nx = 1\n",
            "the section is not closed",
            "[/a",
            "no `]` on this line",
        ),
        (
            "[]\n",
            "a section without a name",
            "[]",
            "nothing stands between the brackets",
        ),
        (
            "[/a] x = 1\n",
            "there is text behind the section",
            "x = 1",
            "this belongs to nothing",
        ),
        (
            "a = \0\0\n",
            "a zero byte: the file is damaged or is no text",
            "\0",
            "here",
        ),
        (
            "a = \u{1b}[0m\n",
            "the control character \\u{1b} stands in the line as it is",
            "\u{1b}",
            "here",
        ),
        (
            "a = 1\n\u{feff}b = 1\n",
            "a byte order mark stands inside the file",
            "\u{feff}",
            "here",
        ),
        ("a = \"^\\d+$\"\n", "`\\d` is no escape", "\\d", "here"),
        (
            "a = \"half\nb = 1\n",
            "the quotes are not closed",
            "\"",
            "here",
        ),
        (
            "a = C:\\\nb = 1\n",
            "the line ends in a backslash",
            "\\",
            "here",
        ),
        ("a\\q = 1\n", "`\\q` is no escape", "\\q", "here"),
    ];
    for (text, message, labelled, label) in cases {
        let (found, labels, help) = refused(text);
        assert_eq!(found, *message, "{text:?}");
        assert_eq!(
            labels,
            [(labelled.to_string(), label.to_string())],
            "{text:?}"
        );
        assert!(!help.is_empty(), "{text:?} has a way out");
    }
}

#[test]
fn a_name_that_climbs_is_refused_where_it_stands() {
    let (message, labels, _) = refused("[/a]\nb/../../c = 1\n");
    assert_eq!(message, "`..` would climb to the level above");
    assert_eq!(labels, [("..".to_owned(), "here".to_owned())]);
}

#[test]
fn a_key_twice_points_at_both() {
    let (message, labels, help) = refused("[/a]\nx = 1\n[/]\na/x = 2\n");
    assert_eq!(message, "`/a/x` has two values");
    let pairs: Vec<_> = labels
        .iter()
        .map(|(text, label)| (text.as_str(), label.as_str()))
        .collect();
    assert_eq!(
        pairs,
        [("a/x", "given again here"), ("x", "first given here")]
    );
    assert_eq!(help, ["keep one of the two lines"]);
}

#[test]
fn keys_below_a_broken_section_belong_to_nobody() {
    let (document, diagnostics) =
        Document::parse("[/a]\nx = 1\n[/b\nx = 2\n/full = 3\n[/c]\nx = 4\n");
    assert_eq!(diagnostics.len(), 1);
    let found: Vec<_> = document
        .keys()
        .map(|entry| entry.name.as_str().to_owned())
        .collect();
    assert_eq!(found, ["/a/x", "/full", "/c/x"]);
}

#[test]
fn a_file_of_garbage_costs_a_bounded_list() {
    let (_, diagnostics) = Document::parse(&"x\n".repeat(1000));
    assert_eq!(diagnostics.len(), 101);
    assert_eq!(
        diagnostics[100].message,
        "900 more lines cannot be understood"
    );
}
