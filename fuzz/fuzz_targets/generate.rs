//! The whole compiler: whatever specification comes, every back end makes
//! something of it that its reader accepts, or says why not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use milieu_diagnostics::Source;
use milieu_fuzz::can_be_shown;
use milieu_spec::{Settings, backend, generate};

/// The requests that a manual page needs; text must not become another one.
const REQUESTS: &[&str] = &[
    ".br", ".TH", ".SH", ".SS", ".TP", ".PP", ".nf", ".fi", ".RS", ".RE",
];

fuzz_target!(|text: &str| {
    let source = Source::new("fuzz.ini", text);
    let settings = Settings::new("fuzz");
    for backend in backend::all() {
        let output = generate(&source, backend, &settings);
        can_be_shown(text, &output.diagnostics);
        let has_errors = output.diagnostics.iter().any(|found| found.is_error());
        assert_eq!(output.files.is_empty(), has_errors, "{}", backend.name());
        assert_eq!(generate(&source, backend, &settings).files, output.files);
        for file in &output.files {
            match backend.name() {
                "rust" => rust(&file.text),
                "man" => manual_page(&file.text),
                "ini" => specification(&file.text),
                _ => assert!(file.text.ends_with('\n')),
            }
        }
    }
});

fn rust(text: &str) {
    if let Err(error) = syn::parse_file(text) {
        panic!("{error} in {text}");
    }
}

fn manual_page(text: &str) {
    for line in text.lines() {
        assert!(
            line.is_ascii() && !line.contains(|c: char| c.is_control()),
            "{line:?}"
        );
        if line.starts_with(['.', '\'']) {
            let request = line.split(' ').next().unwrap_or(line);
            assert!(REQUESTS.contains(&request), "{line:?}");
        }
    }
}

/// An exported specification is exported as itself.
fn specification(text: &str) {
    let source = Source::new("exported.ini", text);
    let again = generate(&source, &backend::ini::Ini, &Settings::new("fuzz"));
    assert_eq!(again.files.len(), 1, "{:?} in {text}", again.diagnostics);
    assert_eq!(again.files[0].text, text);
}
