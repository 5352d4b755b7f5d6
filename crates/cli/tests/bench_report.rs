//! `milieu bench report`, as its users run it.

use std::fs;
#[cfg(feature = "png")]
use std::io::Cursor;
#[cfg(feature = "png")]
use std::path::Path;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Figure 4 of the Solar paper, which reports read.
const FIGURE_4: &str = include_str!("../../bench/tests/data/figure4.xml");

struct Folder(tempfile::TempDir);

impl Folder {
    /// A folder with a result.
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        fs::write(folder.path("result.xml"), FIGURE_4).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a program. Another process does: what this one has open for writing,
    /// children that other tests are starting have open still, and it could not be run.
    fn program(&self, name: &str, text: &str) {
        fs::write(self.path("draft"), text).unwrap();
        let mut install = Command::new("install");
        install.args(["-m", "755", "draft", name]);
        let installed = install.current_dir(self.0.path()).status();
        assert!(installed.unwrap().success());
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_milieu"));
        command.arg("bench").args(words).current_dir(self.0.path());
        command.output().unwrap()
    }

    /// What is printed, where all goes well.
    fn printed(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What is said, where something is wrong.
    fn refused(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

/// A picture: its size, and how dark each row is.
#[cfg(feature = "png")]
struct Pixels {
    info: png::Info<'static>,
    dark: Vec<usize>,
}

#[cfg(feature = "png")]
fn decoded(path: &Path) -> Pixels {
    let decoder = png::Decoder::new(Cursor::new(fs::read(path).unwrap()));
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    let info = reader.info().clone();
    assert_eq!(info.color_type, png::ColorType::Rgb);
    let rows = pixels.chunks(usize::try_from(info.width).unwrap() * 3);
    let is_dark = |pixel: &&[u8]| pixel.iter().all(|part| *part < 128);
    let dark = rows.map(|row| row.chunks(3).filter(is_dark).count());
    Pixels {
        dark: dark.collect(),
        info,
    }
}

#[cfg(feature = "png")]
#[test]
fn charts_are_png_of_the_size_and_resolution_that_is_asked_for() {
    let folder = Folder::new();
    let chart = |file: &str, more: &[&str]| {
        let words = ["report", "line", "result.xml", "-o", file];
        folder.printed(&[&words[..], more].concat());
        decoded(&folder.path(file))
    };
    let usual = chart("chart.png", &[]);
    // 120 mm at 300 dots in an inch.
    assert_eq!(usual.info.width, 1418);
    let dots = usual.info.pixel_dims.unwrap();
    assert_eq!((dots.xppu, dots.yppu), (11811, 11811));
    let about = usual.info.utf8_text[0].get_text().unwrap();
    assert!(about.starts_with("Throughput (2 Receivers): "), "{about}");
    let small = chart("small.png", &["--dpi", "100", "--width", "84"]);
    assert_eq!(small.info.width, 331);
    assert_eq!(small.info.pixel_dims.unwrap().xppu, 3937);
    // The title is written, with no fonts from this machine: it takes ink.
    let ink = |pixels: &Pixels| pixels.dark.iter().sum::<usize>();
    let untitled = chart(
        "untitled.png",
        &["--dpi", "100", "--width", "84", "--title", ""],
    );
    let (with, without) = (ink(&small), ink(&untitled));
    assert!(with > without + 100, "{with} {without}");
    for form in ["bar", "box"] {
        let words = ["report", form, "result.xml", "--format", "png", "-o", "-"];
        let output = folder.run(&words);
        assert!(output.stdout.starts_with(b"\x89PNG\r\n"), "{form}");
    }
    let said = folder.refused(&[
        "report",
        "line",
        "result.xml",
        "-o",
        "x.png",
        "--dpi",
        "1e5",
    ]);
    assert!(said.contains("ask for fewer dots with --dpi"), "{said}");
}

#[test]
fn reports_go_where_they_are_sent() {
    let folder = Folder::new();
    let printed = folder.printed(&["report", "csv", "result.xml"]);
    assert_eq!(
        folder.printed(&["report", "csv", "result.xml", "-o", "-"]),
        printed
    );
    assert!(!folder.path("-").exists());
    assert_eq!(
        folder.printed(&["report", "csv", "result.xml", "-o", "table.csv"]),
        ""
    );
    assert_eq!(
        fs::read_to_string(folder.path("table.csv")).unwrap(),
        printed
    );
    let svg = folder.printed(&["report", "line", "result.xml", "--format", "svg"]);
    assert!(svg.starts_with("<svg "), "{svg}");
}

#[test]
fn every_form_reads_the_paper_s_results_in_xml() {
    let folder = Folder::new();
    for form in [
        "markdown", "csv", "line", "bar", "box", "html", "json", "xml",
    ] {
        let report = folder.printed(&["report", form, "result.xml"]);
        assert!(report.contains("290.") || report.contains("<svg"), "{form}");
    }
    // And what these write is read again, as both.
    fs::write(
        folder.path("again.json"),
        folder.printed(&["report", "json", "result.xml"]),
    )
    .unwrap();
    let table = folder.printed(&["report", "csv", "result.xml"]);
    assert_eq!(folder.printed(&["report", "csv", "again.json"]), table);
    fs::write(
        folder.path("again.xml"),
        folder.printed(&["report", "xml", "again.json"]),
    )
    .unwrap();
    assert_eq!(folder.printed(&["report", "csv", "again.xml"]), table);
    let ratios = ["report", "ratios", "result.xml", "--baseline"];
    let ratios = [&ratios[..], &["randomInstance.stringLength=0.0"]].concat();
    assert!(folder.printed(&ratios).contains("| Solar |"));
}

#[test]
fn mistakes_say_what_was_meant() {
    let folder = Folder::new();
    let cases: [(&[&str], &str); 7] = [
        (
            &["csv", "result.xml", "--metric", "vaule"],
            "there is no metric `vaule`; did you mean `value`?",
        ),
        (
            &["line", "result.xml", "--x", "randomInstance.stringlength"],
            "did you mean `randomInstance.stringLength`?",
        ),
        (&["csv", "result.xml", "-o", "x.png"], "`csv` is no picture"),
        (
            &["html", "result.xml", "--format", "png"],
            "`html` is no picture",
        ),
        (
            &["line", "result.xml", "--x-scale", "log"],
            "only numbers above 0",
        ),
        (&["csv", "none.xml"], "cannot read the result"),
        (
            &["lien", "result.xml"],
            "there is no form `lien`; did you mean `line`?",
        ),
    ];
    for (words, message) in cases {
        let words = [&["report"], words].concat();
        let said = folder.refused(&words);
        assert!(said.contains(message), "{words:?}: {said}");
        assert!(said.contains("help:"), "{words:?}: {said}");
        let said = folder.refused(&[&words[..], &["--json"]].concat());
        let found: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert!(found["message"].as_str().unwrap().contains(message));
    }
    for wrong in ["0", "-1", "inf", "x"] {
        let option = format!("--dpi={wrong}");
        let said = folder.refused(&["report", "line", "result.xml", &option]);
        assert!(said.contains("write a number above 0"), "{said}");
    }
}

#[test]
fn browsers_run_the_script_of_the_page_and_nothing_else() {
    let folder = Folder::new();
    folder.printed(&["report", "html", "result.xml", "-o", "page.html"]);
    let page = fs::read_to_string(folder.path("page.html")).unwrap();
    // A script that a result had brought along would be refused.
    let more = "<script>document.title = \"taken\"</script></body>";
    fs::write(folder.path("page.html"), page.replace("</body>", more)).unwrap();
    let url = format!("file://{}", folder.path("page.html").display());
    let shown = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--dump-dom",
            &url,
        ])
        .env("HOME", folder.0.path())
        .output();
    let Ok(shown) = shown else {
        eprintln!("not run: there is no chromium; apt-get install chromium");
        return;
    };
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("<th tabindex=\"0\">mean</th>"), "{shown}");
    assert!(
        shown.contains("<title>Throughput (2 Receivers)</title>"),
        "{shown}"
    );
}

#[test]
fn schemas_are_printed() {
    let folder = Folder::new();
    for (words, expected) in [
        (&["schema", "json"][..], milieu_bench::schema::DESCRIPTION),
        (
            &["schema", "json", "--result"],
            milieu_bench::schema::RESULT,
        ),
        (&["schema", "xml"], milieu_bench::schema::XML),
    ] {
        assert_eq!(folder.printed(words), expected);
    }
}

#[test]
fn a_program_of_others_is_a_report_and_is_told_what_stands_behind_the_dashes() {
    if Command::new("python3").arg("-V").output().is_err() {
        eprintln!("not run: there is no python3; apt-get install python3");
        return;
    }
    let folder = Folder::new();
    folder.program("figure.py", &folder.printed(&["helper", "pgfplots"]));
    let by = ["report", "--with", "./figure.py"];
    let told = |words: &[&str]| folder.printed(&[&by[..], words].concat());
    let figure = told(&["result.xml"]);
    for line in [
        "  xlabel={Message Length (characters)},]",
        "\\nextgroupplot [ylabel={Throughput (messages / second)}]",
        "  (0.0, 292.749) +- (0, 0)",
        "  (100.0, 292.1) +- (0, 0)",
    ] {
        assert!(figure.lines().any(|it| it == line), "{line} in\n{figure}");
    }
    let whole = told(&["result.xml", "--", "--standalone", "--log", "y"]);
    assert!(whole.starts_with("\\documentclass") && whole.contains("ymode=log"));
    told(&["result.xml", "-o", "figure.tex"]);
    assert_eq!(
        fs::read_to_string(folder.path("figure.tex")).unwrap(),
        figure
    );
    // Texts are no commands of LaTeX.
    let evil = FIGURE_4.replace(
        "Throughput (2 Receivers)",
        "\\input{/etc/passwd}&#10;%$x_1$ #&amp;",
    );
    let evil = evil.replace("(messages / second)", "\\write18{ls}}^^M~");
    fs::write(folder.path("evil.xml"), evil).unwrap();
    let figure = told(&["evil.xml"]);
    assert!(
        figure.starts_with(
            "% \\textbackslash{}input\\{/etc/passwd\\} \\%\\$x\\_1\\$ \\#\\&\n\\begin"
        )
    );
    assert!(!figure.contains("\\input") && !figure.contains("\\write18"));
    // What it refuses is no report.
    let said = folder.refused(&[&by[..], &["result.xml", "--", "--metric", "x"]].concat());
    assert!(
        said.contains("figure.py has failed: exit status: 1"),
        "{said}"
    );
    assert!(
        said.contains("nothing measured is `x`; there are value"),
        "{said}"
    );
    // What is no text stays what it is.
    folder.program("figure.py", "#!/bin/sh\nprintf '\\377\\000'\n");
    let output = folder.run(&[&by[..], &["result.xml"]].concat());
    assert_eq!(output.stdout, b"\xff\0");
}

#[test]
fn comparisons_say_what_is_new_or_gone_and_what_else_differs() {
    let folder = Folder::new();
    let json = folder.printed(&["report", "json", "result.xml"]);
    fs::write(folder.path("old.json"), &json).unwrap();
    let new = json
        .replace("\"port\": 8108", "\"port\": 8109")
        .replace(
            "\"randomInstance.stringLength\": 100.0",
            "\"randomInstance.stringLength\": 200.0",
        )
        .replace("\"milieu\": \"", "\"milieu\": \"9\\u001b[31m");
    fs::write(folder.path("new.json"), new).unwrap();
    let output = folder.run(&["compare", "old.json", "new.json"]);
    assert_eq!(output.status.code(), Some(0));
    let (out, said) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert_eq!(
        out,
        "Solar [randomInstance.stringLength = 0.0] value: 1.000 times, too few rounds\n\
         Solar [randomInstance.stringLength = 100.0] value, gone\n\
         Solar [randomInstance.stringLength = 200.0] value, new\n"
    );
    assert!(
        said.contains("tests.Solar.servers.0.port differs: 8108, now 8109\n"),
        "{said}"
    );
    assert!(
        said.contains("milieu differs: ") && !said.contains('\u{1b}'),
        "{said}"
    );
    assert!(said.ends_with(
        "1 compared: 0 larger, 0 smaller, 0 the same, 1 with too few rounds; 1 new, 1 gone\n"
    ));
    let lines = folder.printed(&["compare", "old.json", "new.json", "--json"]);
    let first: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(first["differs"], "milieu");
}
