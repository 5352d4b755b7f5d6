//! The part of a benchmark that is written in C or C++.
//!
//! It is compiled when it is first needed, loaded into the program, and calls the
//! library that is part of it: one run measures both languages.

use std::{
    env,
    ffi::{CStr, CString, OsStr, c_char, c_int, c_void},
    fs,
    path::{Path, PathBuf},
    process::{Command, id},
};

use measure::Loop;

unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, symbol: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

/// Bind everything at once, so that nothing is bound while it is measured.
const RTLD_NOW: c_int = 2;

/// The functions of a part: what prepares an operation, and what executes it.
#[derive(Clone, Copy)]
pub struct Native {
    prepare: unsafe extern "C" fn(*const c_char) -> *mut c_void,
    execute: unsafe extern "C" fn(*mut c_void, u64),
}

/// A file of this package.
pub fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The part, compiled beside this program unless it is newer than this and its
/// sources. `compiler` is told what to compile and how, with a folder for what is
/// generated.
pub fn compiled(sources: &[PathBuf], compiler: impl FnOnce(&Path) -> Command) -> PathBuf {
    let program = env::current_exe().expect("a program knows where it is");
    let library = program.with_extension("so");
    let changed = |file: &Path| fs::metadata(file).and_then(|it| it.modified()).ok();
    let sources = sources.iter().chain([&program]);
    if changed(&library) >= sources.map(|file| changed(file)).max().flatten() {
        return library;
    }
    // Several may do this at once.
    let scratch = program.with_extension(format!("{}", id()));
    fs::create_dir_all(&scratch).expect("a folder beside the program");
    let made = scratch.join("native.so");
    let mut compiler = compiler(&scratch);
    compiler.args(["-O2", "-shared", "-fPIC", "-fno-plt", "-o"]);
    compiler
        .arg(&made)
        .arg("-I")
        .arg(file("include"))
        .arg("-I")
        .arg(&scratch);
    let output = compiler
        .output()
        .expect("there is a compiler: apt-get install g++");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    fs::rename(&made, &library).expect("the library can be moved");
    let _ = fs::remove_dir_all(&scratch);
    library
}

impl Native {
    /// Loads it.
    pub fn load(library: &Path) -> Native {
        let path = c_string(library.as_os_str());
        // SAFETY: the library was just compiled, and has these functions.
        unsafe {
            let library = dlopen(path.as_ptr(), RTLD_NOW);
            assert!(!library.is_null(), "{:?}", CStr::from_ptr(dlerror()));
            let symbol = |name: &CStr| {
                let found = dlsym(library, name.as_ptr());
                assert!(!found.is_null(), "{name:?} is not there");
                found
            };
            Native {
                prepare: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*const c_char) -> *mut c_void,
                >(symbol(c"operation_prepare")),
                execute: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void, u64)>(
                    symbol(c"operation_execute"),
                ),
            }
        }
    }

    /// An operation of it.
    pub fn operation(self, name: &CStr) -> Loop {
        // SAFETY: the name is a string, and what is prepared is kept.
        let operation = unsafe { (self.prepare)(name.as_ptr()) };
        assert!(!operation.is_null(), "{name:?} is no operation");
        // SAFETY: it was prepared for this.
        Box::new(move |times| unsafe { (self.execute)(operation, times) })
    }
}

fn c_string(text: &OsStr) -> CString {
    CString::new(text.as_encoded_bytes()).expect("no zero byte is in it")
}
