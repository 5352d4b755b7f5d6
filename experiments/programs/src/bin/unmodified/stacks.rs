//! Stacks, by the tools that users have: what `milieu thread top` shows of a process and
//! `milieu thread profile` of what was learned.

use std::path::Path;
use std::process::Command;

use experiments::Failed;
use serde_json::Value;

/// The stacks of a process, but for that of its first thread, which the kernel makes.
#[derive(Clone, Copy, Default)]
pub struct Stacks {
    pub threads: u64,
    /// Of all of them.
    pub bytes: u64,
}

/// What was learned of a program.
pub struct Learned {
    /// The deepest stack of all.
    pub peak_bytes: u64,
    /// Of how many kinds threads were.
    pub kinds: u64,
    /// Those whose stacks have the size that the program has set, which stays.
    pub kinds_set: u64,
}

/// Those of a process that runs.
pub fn of(process: u32) -> Result<Stacks, Failed> {
    let process = process.to_string();
    let arguments = ["--once", "--interval", "0", "--pid", &process];
    let mut stacks = Stacks::default();
    for line in milieu("top", &arguments, None)? {
        for thread in list(&line["processes"]).flat_map(|it| list(&it["threads"])) {
            if thread["thread"] == line["processes"][0]["process"] {
                continue;
            }
            stacks.threads += 1;
            stacks.bytes += thread["stack_bytes"].as_u64().unwrap_or(0);
        }
    }
    Ok(stacks)
}

/// How much address space a process has, in bytes.
pub fn address_space(process: u32) -> Result<u64, Failed> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmSize:"));
    let number = line.and_then(|it| it.trim().strip_suffix(" kB"));
    let kilobytes: u64 = number
        .ok_or("the kernel does not say how large it is")?
        .parse()?;
    Ok(kilobytes * 1024)
}

/// What a profile says.
pub fn learned(profile: &Path) -> Result<Learned, Failed> {
    let mut learned = Learned {
        peak_bytes: 0,
        kinds: 0,
        kinds_set: 0,
    };
    for line in milieu("profile", &[], Some(profile))? {
        let peak = line["peak_bytes"].as_u64().unwrap_or(0);
        learned.peak_bytes = learned.peak_bytes.max(peak);
        learned.kinds += 1;
        learned.kinds_set += u64::from(line["is_set"] == Value::Bool(true));
    }
    Ok(learned)
}

/// The lines of JSON that a command prints.
fn milieu(verb: &str, arguments: &[&str], path: Option<&Path>) -> Result<Vec<Value>, Failed> {
    let mut command = Command::new("milieu");
    command.args(["thread", verb, "--json"]).args(arguments);
    let output = command.args(path).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("milieu thread {verb}: {}", said.trim()).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let lines = text.lines().map(serde_json::from_str);
    Ok(lines.collect::<Result<Vec<Value>, _>>()?)
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
