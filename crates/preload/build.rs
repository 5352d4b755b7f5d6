//! What the linker is told of the shared object.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for argument in [
        // Its handlers and the threads that it began are there until the end.
        "-Wl,-z,nodelete",
        // A library that is called for the first time while it is loaded, or in a
        // signal handler, must not wait for the loader.
        "-Wl,-z,now",
        "-Wl,-soname,libmilieu_preload.so",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
