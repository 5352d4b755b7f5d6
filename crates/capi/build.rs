//! Benchmarks load a part in C++, which calls the library that is in them.

fn main() {
    println!("cargo::rustc-link-arg-benches=-rdynamic");
    println!("cargo::rerun-if-changed=build.rs");
}
