//! The cases that the Solar paper tells of, each a short story that runs in
//! virtual time: `cargo run -p labs` tells all of them, `cargo run -p labs --
//! heat rooms` some.
//!
//! `cargo run -p labs -- battery` is the only one that goes on in real time: it
//! follows this machine's battery.

mod battery;
mod stage;
mod stories;

use std::process::ExitCode;

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let told = match &wanted[..] {
        [word] if word == "battery" => battery::watch().map_err(Failure::from),
        words => tell(words),
    };
    match told {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn tell(wanted: &[String]) -> Result<(), Failure> {
    let known = |word: &String| stories::ALL.iter().any(|(name, _)| name == word);
    if let Some(word) = wanted.iter().find(|word| !known(word)) {
        let names: Vec<&str> = stories::ALL.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        return Err(format!("there is no story `{word}`; there are {names}, and battery").into());
    }
    for (name, story) in stories::ALL {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            println!("{name}");
            for line in story()? {
                println!("  {line}");
            }
        }
    }
    Ok(())
}
