//! Transfer modes on standard output and standard input.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use clap::builder::PossibleValuesParser;
use milieu::transfer::{Mode, Modes};

use super::{Failure, Result};

/// How frames follow each other on standard output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// A line each.
    Line,
    /// Elements, whose lines are put into one each.
    Element,
    /// One after the other: each tells where it ends.
    Item,
    /// Each behind its length.
    Length,
}

impl Framing {
    pub(super) fn of(mode: &str) -> Framing {
        match mode {
            "json" => Framing::Line,
            "xml" => Framing::Element,
            "cbor" | "messagepack" => Framing::Item,
            _ => Framing::Length,
        }
    }

    fn is_binary(self) -> bool {
        matches!(self, Framing::Item | Framing::Length)
    }

    /// Nothing binary goes to a terminal.
    pub(super) fn check_output(self) -> Result {
        if self.is_binary() && io::stdout().is_terminal() {
            return Err(Failure::new(
                "this mode is binary, and standard output is a terminal",
                "write it to a file (`> FILE`), look at it by `| xxd`, or use --mode json or xml",
            ));
        }
        Ok(())
    }

    /// Writes a frame to standard output.
    pub(super) fn print(self, frame: &mut Vec<u8>) -> Result {
        let mut out = io::stdout().lock();
        let mut write = || {
            match self {
                Framing::Line => frame.push(b'\n'),
                Framing::Element => *frame = one_line(frame),
                Framing::Item => {}
                Framing::Length => {
                    let length = u32::try_from(frame.len()).map_err(io::Error::other)?;
                    out.write_all(&length.to_be_bytes())?;
                }
            }
            out.write_all(frame)?;
            out.flush()
        };
        write().map_err(Failure::Output)
    }
}

/// An element as one line: a line break in a text becomes a reference.
fn one_line(frame: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(frame.len() + 1);
    for byte in frame {
        match byte {
            b'\n' => line.extend(b"&#10;"),
            byte => line.push(*byte),
        }
    }
    line.push(b'\n');
    line
}

/// The modes that there are, for the command line.
pub(super) fn names() -> PossibleValuesParser {
    let modes = Modes::standard();
    let offers = modes.offers();
    let names = offers
        .iter()
        .filter_map(|it| Some(modes.named(&it.name)?.name()));
    let mut names: Vec<&str> = names.collect();
    names.sort_by_key(|name| *name != "json");
    PossibleValuesParser::new(names)
}

/// The mode of a name.
pub(super) fn mode(name: &str) -> Result<Arc<dyn Mode>> {
    let mode = Modes::standard().named(name).cloned();
    mode.ok_or_else(|| {
        let message = format!("there is no transfer mode `{name}`");
        Failure::new(message, "`milieu stream subscribe --help` lists them")
    })
}
