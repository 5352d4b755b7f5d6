//! Steps kept in a file as they come, so that a run can be interrupted and resumed.
//!
//! The first line says which group it is, and each further line is a step. A line
//! that was written in part is left out.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Keeper;
use crate::description::Group;
use crate::plan::Step;
use crate::result::StepResult;

/// A file of steps.
pub struct Journal {
    file: File,
    kept: BTreeMap<(usize, u64), StepResult>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    group: Group,
}

#[derive(Serialize, Deserialize)]
struct Line {
    test: usize,
    result: StepResult,
}

impl Journal {
    /// Opens a journal, or begins one.
    ///
    /// # Errors
    /// It cannot be read or written, or is one of another group.
    pub fn open(path: &Path, group: &Group) -> io::Result<Journal> {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).open(path)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            file.set_len(whole as u64)?;
        }
        let mut lines = text[..whole].lines();
        let mut kept = BTreeMap::new();
        match lines.next() {
            None => write(
                &mut file,
                &Head {
                    group: group.clone(),
                },
            )?,
            Some(line) => {
                let head: Head = serde_json::from_str(line)?;
                if head.group != *group {
                    let message = format!(
                        "{} has steps of another description; run that one, or remove the file",
                        path.display()
                    );
                    return Err(io::Error::new(io::ErrorKind::InvalidData, message));
                }
            }
        }
        for line in lines {
            let line: Line = serde_json::from_str(line)?;
            kept.insert((line.test, line.result.step.index), line.result);
        }
        Ok(Journal { file, kept })
    }

    /// How many steps have been kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether nothing has been kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

fn write(file: &mut File, line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)?;
    // A step may have taken an hour.
    file.sync_data()
}

impl Keeper for Journal {
    fn kept(&mut self, test: usize, step: &Step) -> Option<StepResult> {
        self.kept.remove(&(test, step.index))
    }

    fn keep(&mut self, test: usize, result: &StepResult) -> Result<(), String> {
        let result = result.clone();
        let kept = write(&mut self.file, &Line { test, result });
        kept.map_err(|error| format!("the step cannot be kept: {error}"))
    }
}
