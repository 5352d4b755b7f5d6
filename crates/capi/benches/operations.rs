//! The operations of a context from C++, each beside its limit or what it is in Rust.
//!
//! It answers as `xtask/measure` says. The part in C++ is `operations.cpp`.

mod native;

use std::{
    env,
    ffi::CStr,
    fs,
    hint::black_box,
    path::PathBuf,
    process::{Command, ExitCode},
    sync::OnceLock,
};

use measure::{Loop, Operation, alone, answer_fixed, paired};
use milieu::Milieu;
use milieu_diagnostics::Source;
use milieu_spec::{Settings, backend, generate};
use native::{Native, compiled, file};

mod operations {
    milieu::environment!("benches/operations.ini");
}
use operations::{Environment, at};

milieu::layer! {
    struct Untouched = "untouched";
}

/// The part in C++.
fn library() -> PathBuf {
    let sources = [
        "benches/operations.cpp",
        "benches/operations.ini",
        "include/milieu.h",
        "include/milieu.hpp",
        "include/milieu/actions.h",
        "include/milieu/actions.hpp",
        "include/milieu/entering.hpp",
        "include/milieu/layers.hpp",
        "include/milieu/values.hpp",
    ]
    .map(file);
    compiled(&sources, |scratch| {
        let specification = fs::read_to_string(&sources[1]).expect("the specification can be read");
        let source = Source {
            name: "operations.ini".into(),
            text: specification,
        };
        let backend = backend::by_name("cpp").expect("the back end is there");
        for file in generate(&source, backend, &Settings::new("operations")).files {
            fs::write(scratch.join(&file.name), &file.text).expect("the header can be written");
        }
        let mut compiler = Command::new("c++");
        compiler.arg("-std=c++17").arg(&sources[0]);
        compiler
    })
}

macro_rules! called {
    ($($name:ident)*) => {
        /// What the part in C++ calls.
        const CALLED: &[*const ()] = &[$(milieu_capi::$name as *const ()),*];
    };
}
called! {
    milieu_context_activate milieu_context_deactivate milieu_context_enter
    milieu_context_enter_all milieu_context_enter_mixed milieu_context_fork milieu_context_free milieu_context_leave milieu_context_name milieu_context_new
    milieu_context_set_signed milieu_context_set_text milieu_context_sync milieu_coordinator_free
    milieu_coordinator_new milieu_message
}

/// An operation in C++.
fn cpp(name: &CStr) -> Loop {
    static LOADED: OnceLock<Native> = OnceLock::new();
    let native = LOADED.get_or_init(|| {
        // The linker leaves out what nobody seems to call.
        black_box(CALLED);
        Native::load(&library())
    });
    native.operation(name)
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
        alone("name-inactive", || cpp(c"name-inactive")),
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
        library();
    }
    answer_fixed(&operations(), milieu::context::fix_keys)
}
