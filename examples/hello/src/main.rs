//! The smallest program: one file, no specification.
//!
//! It greets twice. Write `/hello/de/greeting = Hallo` into the file
//! `~/.config/hello/hello.ini`, and the second time it greets in German.

use milieu::{Environment, Milieu, Text, layer};

layer! { struct Language(&'static str) = "language"; }

#[derive(Environment)]
struct Settings {
    #[key("/hello/%language%/greeting", default = "Hello")]
    greeting: Text,
}

fn main() -> Result<(), milieu::Error> {
    let milieu = Milieu::open("hello")?;
    let mut cx = milieu.context::<Settings>()?;
    println!("{}, world", cx.greeting);
    cx.with(Language("de"), |cx| println!("{}, world", cx.greeting));
    Ok(())
}
