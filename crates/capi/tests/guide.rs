//! The samples of pages do what these say.

mod support;

use std::{fs, path::Path};

use milieu_diagnostics::Source;
use milieu_spec::{Settings, backend, generate};
use support::{Language, Program, compilers, in_turn, package, run, scratch};

/// A fenced block: its language and its text.
struct Block {
    language: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match (line.strip_prefix("```"), inside) {
            (Some(_), true) => inside = false,
            (Some(language), false) => {
                inside = true;
                blocks.push(Block {
                    language: language.to_owned(),
                    text: String::new(),
                });
            }
            (None, true) => {
                if let Some(block) = blocks.last_mut() {
                    block.text += line;
                    block.text.push('\n');
                }
            }
            (None, false) => {}
        }
    }
    blocks
}

/// The file that a block is: its first line is a comment with the name.
fn name(block: &Block) -> &str {
    let line = block.text.lines().next().unwrap_or_default();
    line.trim_matches(|c: char| !c.is_ascii_alphanumeric())
}

/// The headers of what this library is built without.
const LEFT_OUT: &[&str] = &[
    #[cfg(not(feature = "stream"))]
    "<milieu/streams.h",
    #[cfg(not(feature = "stream"))]
    "<milieu/modes.h",
    #[cfg(not(feature = "links"))]
    "<milieu/links.h",
    #[cfg(not(feature = "sources"))]
    "<milieu/sources.h",
    #[cfg(not(feature = "http"))]
    "<milieu/foreign.h",
];

/// Compiles and runs the samples of a page, and says how many there are.
fn samples(page: &str) -> usize {
    let folder = scratch(&format!("guide-{page}"));
    let page = package().join("../../docs").join(page);
    let page = fs::read_to_string(page).expect("the page can be read");
    let blocks = blocks(&page);
    let mut compiled = 0;
    for (place, block) in blocks.iter().enumerate() {
        let language = match &*block.language {
            "ini" => {
                headers(&folder, block);
                continue;
            }
            "c" => Language::C,
            "cpp" => Language::Cpp,
            _ => continue,
        };
        let uses = |header: &&str| block.text.contains(header);
        if LEFT_OUT.iter().any(uses) {
            compiled += 1;
            continue;
        }
        let source = folder.join(name(block));
        fs::write(&source, &block.text).expect("the sample can be written");
        let expected = &blocks[place + 1];
        assert_eq!(
            expected.language,
            "text",
            "{} prints something",
            name(block)
        );
        for compiler in in_turn(name(block), &compilers(language)) {
            let program = Program {
                language,
                compiler,
                source: source.clone(),
                folder: &folder,
                flags: &["-O2"],
            };
            assert_eq!(
                run(&program.compiled(), &[]),
                expected.text,
                "{}",
                name(block)
            );
        }
        compiled += 1;
    }
    compiled
}

#[test]
fn samples_of_the_guide_print_what_it_says() {
    assert_eq!(samples("c-and-cpp.md"), 12, "the page has samples");
}

#[test]
fn samples_of_other_pages_print_what_these_say() {
    for page in ["foreign.md", "sources.md"] {
        assert_eq!(samples(page), 2, "{page} has samples");
    }
}

fn headers(folder: &Path, specification: &Block) {
    let source = Source {
        name: name(specification).into(),
        text: specification.text.clone(),
    };
    for language in ["c", "cpp"] {
        let backend = backend::by_name(language).expect("the back end is there");
        let output = generate(&source, backend, &Settings::new("station"));
        for file in output.files {
            fs::write(folder.join(&file.name), &file.text).expect("the header can be written");
        }
    }
}
