//! A held key set belongs to the thread that asked for it.

use milieu_context::Coordinator;

fn main() {
    let held = Coordinator::new().require_lock();
    std::thread::spawn(move || drop(held));
}
