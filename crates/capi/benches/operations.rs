//! The operations of a context from C++, each beside its limit or what it is in Rust.
//!
//! It answers as `xtask/measure` says. The part in C++, `operations.cpp`, is compiled
//! by `c++` when it is first needed, loaded into this program, and calls the library
//! that is part of it: one run measures both languages.

use std::{
    env,
    ffi::{CStr, CString, OsStr, c_char, c_int, c_void},
    fs,
    hint::black_box,
    path::{Path, PathBuf},
    process::{Command, ExitCode, id},
    sync::OnceLock,
};

use measure::{Loop, Operation, alone, answer_fixed, paired};
use milieu::Milieu;
use milieu_diagnostics::Source;
use milieu_spec::{Settings, backend, generate};

mod operations {
    milieu::environment!("benches/operations.ini");
}
use operations::{Environment, at};

milieu::layer! {
    struct Untouched = "untouched";
}

unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, symbol: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

/// Bind everything at once, so that nothing is bound while it is measured.
const RTLD_NOW: c_int = 2;

type Prepare = unsafe extern "C" fn(*const c_char) -> *mut c_void;
type Execute = unsafe extern "C" fn(*mut c_void, u64);

/// The part in C++, compiled beside this program unless it is newer.
fn compiled() -> PathBuf {
    let program = env::current_exe().expect("a program knows where it is");
    let library = program.with_extension("so");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = [
        folder.join("benches/operations.cpp"),
        folder.join("benches/operations.ini"),
        folder.join("include/milieu.h"),
        folder.join("include/milieu.hpp"),
        folder.join("include/milieu/layers.hpp"),
        folder.join("include/milieu/values.hpp"),
        program.clone(),
    ];
    let changed = |file: &Path| fs::metadata(file).and_then(|it| it.modified()).ok();
    let newest = sources.iter().map(|file| changed(file)).max().flatten();
    if changed(&library) >= newest {
        return library;
    }
    // Several may do this at once.
    let scratch = program.with_extension(format!("{}", id()));
    fs::create_dir_all(&scratch).expect("a folder beside the program");
    let specification = fs::read_to_string(&sources[1]).expect("the specification can be read");
    let source = Source {
        name: "operations.ini".into(),
        text: specification,
    };
    let backend = backend::by_name("cpp").expect("the back end is there");
    for file in generate(&source, backend, &Settings::new("operations")).files {
        fs::write(scratch.join(&file.name), &file.text).expect("the header can be written");
    }
    let made = scratch.join("operations.so");
    let output = Command::new("c++")
        .args(["-std=c++17", "-O2", "-shared", "-fPIC", "-fno-plt", "-o"])
        .arg(&made)
        .arg("-I")
        .arg(folder.join("include"))
        .arg("-I")
        .arg(&scratch)
        .arg(&sources[0])
        .output()
        .expect("the part in C++ is compiled by `c++`: apt-get install g++");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    fs::rename(&made, &library).expect("the library can be moved");
    let _ = fs::remove_dir_all(&scratch);
    library
}

macro_rules! called {
    ($($name:ident)*) => {
        /// What the part in C++ calls.
        const CALLED: &[*const ()] = &[$(milieu_capi::$name as *const ()),*];
    };
}
called! {
    milieu_context_activate milieu_context_deactivate milieu_context_enter milieu_context_fork
    milieu_context_free milieu_context_leave milieu_context_name milieu_context_new
    milieu_context_set_signed milieu_context_set_text milieu_context_sync milieu_coordinator_free
    milieu_coordinator_new milieu_message
}

fn functions() -> (Prepare, Execute) {
    static LOADED: OnceLock<(Prepare, Execute)> = OnceLock::new();
    *LOADED.get_or_init(|| {
        // The linker leaves out what nobody seems to call.
        black_box(CALLED);
        let path = c_string(compiled().as_os_str());
        // SAFETY: the library was just compiled, and has these functions.
        unsafe {
            let library = dlopen(path.as_ptr(), RTLD_NOW);
            assert!(!library.is_null(), "{:?}", CStr::from_ptr(dlerror()));
            let symbol = |name: &CStr| {
                let found = dlsym(library, name.as_ptr());
                assert!(!found.is_null(), "{name:?} is not there");
                found
            };
            (
                std::mem::transmute::<*mut c_void, Prepare>(symbol(c"operation_prepare")),
                std::mem::transmute::<*mut c_void, Execute>(symbol(c"operation_execute")),
            )
        }
    })
}

fn c_string(text: &OsStr) -> CString {
    CString::new(text.as_encoded_bytes()).expect("no zero byte is in it")
}

/// An operation in C++.
fn cpp(name: &CStr) -> Loop {
    let (prepare, execute) = functions();
    // SAFETY: the name is a string, and what is prepared is kept.
    let operation = unsafe { prepare(name.as_ptr()) };
    assert!(!operation.is_null(), "{name:?} is no operation");
    // SAFETY: it was prepared for this.
    Box::new(move |times| unsafe { execute(operation, times) })
}

type Context = milieu::Context<Environment>;

/// The same in Rust.
fn rust(mut act: impl FnMut(&mut Context, u64) + 'static) -> Loop {
    let milieu = match Milieu::builder("").files(Vec::new()).start() {
        Ok(milieu::Start::Run(milieu)) => *milieu,
        other => panic!("{other:?}"),
    };
    let mut cx: Context = milieu.context().expect("there are no keys");
    Box::new(move |times| {
        for i in 0..times {
            act(black_box(&mut cx), i);
        }
        black_box(&milieu);
    })
}

fn set(cx: &mut Context, i: u64) {
    cx.set::<at::value>(i as i64).expect("a number");
}

fn set_text(cx: &mut Context, i: u64) {
    let text = if i % 2 == 0 { "en" } else { "de" };
    cx.set::<at::text>(text).expect("a text");
}

fn with_0(cx: &mut Context, _: u64) {
    black_box(&mut *cx.enter(Untouched));
}

fn with_9(cx: &mut Context, _: u64) {
    black_box(&mut *cx.enter(milieu::Named("session", "anna")));
}

fn switch_0(cx: &mut Context, _: u64) {
    cx.activate(Untouched).expect("no cycle");
    cx.deactivate::<Untouched>().expect("no cycle");
}

#[rustfmt::skip]
fn operations() -> Vec<Operation> {
    vec![
        alone("loop", || cpp(c"loop")),
        paired("read", || cpp(c"read"), || cpp(c"plain-read")),
        alone("plain-read", || cpp(c"plain-read")),
        paired("sync-idle", || cpp(c"sync-idle"), || rust(|cx, _| cx.sync())),
        paired("with-0", || cpp(c"with-0"), || rust(with_0)),
        paired("with-9", || cpp(c"with-9"), || rust(with_9)),
        paired("switch-0", || cpp(c"switch-0"), || rust(switch_0)),
        paired("set", || cpp(c"set"), || rust(set)),
        paired("set-text", || cpp(c"set-text"), || rust(set_text)),
        alone("name", || cpp(c"name")),
        paired("new", || cpp(c"new"), || cpp(c"fork")),
        alone("fork", || cpp(c"fork")),
        alone("rust-loop", || rust(|cx, _| { black_box(cx); })),
        alone("rust-with-0", || rust(with_0)),
        alone("rust-with-9", || rust(with_9)),
        alone("rust-switch-0", || rust(switch_0)),
        alone("rust-set", || rust(set)),
        alone("rust-set-text", || rust(set_text)),
    ]
}

fn main() -> ExitCode {
    if env::args().any(|argument| argument == "list") {
        // Those that count run side by side, and find it compiled.
        compiled();
    }
    answer_fixed(&operations(), milieu::context::fix_keys)
}
