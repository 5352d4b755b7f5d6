//! What a build script gets.

use std::{
    fs,
    path::{Path, PathBuf},
};

use milieu_spec::{backend::markdown::Markdown, build::Builder};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

/// A folder of its own for each test, removed when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_output_is_called_after_the_specification() {
    let folder = Folder::new("named");
    let builder = Builder::new(golden("nested.ini")).out_dir(&folder.0);
    builder.generate().unwrap();
    builder.generate_with(&Markdown).unwrap();
    let generated = fs::read_to_string(folder.0.join("nested.rs")).unwrap();
    assert_eq!(generated, fs::read_to_string(golden("nested.rs")).unwrap());
    assert!(folder.0.join("nested.md").exists());
}

#[test]
fn root_and_crate_path_are_passed_on() {
    let folder = Folder::new("passed");
    Builder::new(golden("root.ini"))
        .root("/sw/pi")
        .crate_path("crate::facade")
        .out_dir(&folder.0)
        .generate()
        .unwrap();
    let generated = fs::read_to_string(folder.0.join("root.rs")).unwrap();
    assert!(generated.contains("pub page: Page,"), "{generated}");
    assert!(
        generated.contains("crate::facade::context::Text"),
        "{generated}"
    );
    assert!(!generated.contains("::milieu::"), "{generated}");
}

/// An output that is the same keeps its time, so that Cargo compiles nothing.
#[test]
fn an_output_that_is_the_same_is_not_written() {
    let folder = Folder::new("same");
    let builder = Builder::new(golden("nested.ini")).out_dir(&folder.0);
    builder.generate().unwrap();
    let file = folder.0.join("nested.rs");
    let mut rights = fs::metadata(&file).unwrap().permissions();
    rights.set_readonly(true);
    fs::set_permissions(&file, rights).unwrap();
    let before = fs::metadata(&file).unwrap().modified().unwrap();
    builder.generate().unwrap();
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), before);
}

#[test]
fn errors_show_the_place() {
    let folder = Folder::new("errors");
    let error = Builder::new(golden("command_line.ini"))
        .out_dir(&folder.0)
        .generate()
        .unwrap_err();
    let text = format!("{error:?}");
    assert!(text.contains("command_line.ini:9:5"), "{text}");
    assert!(text.contains("opt=p"), "{text}");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);

    let error = Builder::new("no-such.ini").out_dir(&folder.0).generate();
    let text = error.unwrap_err().to_string();
    assert!(
        text.contains("no-such.ini") && text.contains("Cargo.toml"),
        "{text}"
    );
}
