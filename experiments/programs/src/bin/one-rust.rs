//! Reads the only value of `one.ini`: what a specification adds to a program in Rust.

use milieu::Milieu;

mod one {
    milieu::environment!("../coelektra/programs/one.ini");
}

fn main() -> Result<(), milieu::Error> {
    let milieu = Milieu::open("one")?;
    let cx = milieu.context::<one::Environment>()?;
    println!("{}", cx.language);
    Ok(())
}
