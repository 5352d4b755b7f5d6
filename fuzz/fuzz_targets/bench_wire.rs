//! What strangers, coordinators and servers send each other, whatever bytes come.
//!
//! The lines of the input are also those of a coordinator who knows the key of a
//! server that runs nothing.
#![no_main]

use std::path::PathBuf;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use milieu_bench::catalogue::Catalogue;
use milieu_bench::run::{Local, Minder};
use milieu_bench::server::{Key, Server, fuzz};

static SERVER: OnceLock<Server> = OnceLock::new();

fn server() -> Server {
    let folder = std::env::temp_dir().join("milieu-fuzz");
    let key = Key::read_or_make(&folder.join("bench.key")).expect("it can be made");
    let minder = Minder {
        program: PathBuf::from("/nothing/is/run"),
        arguments: Vec::new(),
    };
    Server::new(Local::new(Catalogue::default(), minder), key)
}

fuzz_target!(|input: &[u8]| {
    fuzz::stranger(input);
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    fuzz::coordinator(SERVER.get_or_init(server), &lines);
    for line in lines {
        fuzz::server(line);
    }
});
