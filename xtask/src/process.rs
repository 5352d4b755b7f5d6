//! Running other programs, always from the repository's root.
//!
//! What a program prints on standard error passes through; its standard output
//! passes through, is collected, or both.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The folder of the workspace's `Cargo.toml`.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the root of the repository")
}

/// A command that runs in the root of the repository.
pub fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// `cargo` with these arguments, as the toolchain that runs us.
pub fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = command("cargo");
    command.args(arguments);
    command
}

/// Has Cargo link programs for a target with this compiler, unless the user has named one.
/// `cc` is what Rust takes by itself: whenever Cargo is told so it builds everything anew.
pub fn link_with(cargo: &mut Command, target: &str, compiler: &str) {
    if compiler == "cc" {
        return;
    }
    let target = target.replace('-', "_").to_uppercase();
    let variable = format!("CARGO_TARGET_{target}_LINKER");
    if std::env::var_os(&variable).is_none() {
        cargo.env(variable, compiler);
    }
}

/// `cargo` of another installed toolchain.
pub fn cargo_of<'a>(toolchain: &str, arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = command("rustup");
    command.args(["run", toolchain, "cargo"]).args(arguments);
    command
}

/// Whether `rustup` has a toolchain of this name (`nightly`, `1.85.0`).
pub fn has_toolchain(toolchain: &str) -> bool {
    let mut rustc = command("rustup");
    rustc.args(["run", toolchain, "rustc", "--version"]);
    succeeds_silently(rustc)
}

/// Whether a toolchain has the source of the standard library.
pub fn has_source(toolchain: &str) -> bool {
    let mut rustc = command("rustup");
    rustc.args(["run", toolchain, "rustc", "--print", "sysroot"]);
    rustc.stderr(Stdio::null());
    output(rustc).is_ok_and(|sysroot| {
        let library = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library");
        library.join("std/Cargo.toml").is_file()
    })
}

/// Whether a program of this name is on the path.
pub fn has_program(program: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else {
        return false;
    };
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Runs a program for its exit code alone.
pub fn succeeds_silently(mut command: Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs a program and hands each line of its standard output to `line`.
pub fn each_line(mut command: Command, mut line: impl FnMut(&str)) -> Result<ExitStatus> {
    let shown = display(&command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("`{shown}` does not start"))?;
    let stdout = child.stdout.take().expect("standard output is piped");
    let mut reader = BufReader::new(stdout);
    let mut bytes = Vec::new();
    // Lines are split as bytes: a test may print what is no UTF-8.
    while reader.read_until(b'\n', &mut bytes)? > 0 {
        line(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']));
        bytes.clear();
    }
    Ok(child.wait()?)
}

/// Runs a program, repeating its standard output on ours.
pub fn pass_through(command: Command, mut line: impl FnMut(&str)) -> Result<ExitStatus> {
    each_line(command, |text| {
        let mut out = std::io::stdout().lock();
        // Nobody may be reading any more; the program's exit code still counts.
        let _ = writeln!(out, "{text}");
        line(text);
    })
}

/// Runs a program and repeats what it printed when it has ended, so that those
/// that run beside it do not mix with it.
pub fn whole(mut command: Command) -> Result<Output> {
    let shown = display(&command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("`{shown}` does not start"))?;
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr().lock());
    // Nobody may be reading any more; the program's exit code still counts.
    let _ = writeln!(err, "$ {shown}");
    let _ = err.write_all(&output.stderr);
    let _ = out.write_all(&output.stdout);
    Ok(output)
}

/// A failure keeps so many of its last lines: what a test ends with is why it failed.
const LINES: usize = 40;

/// The last lines of what a program printed.
pub fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

/// How many programs that compute run at once: one on each processor.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Has this thread, and the programs that it runs from now on, take only the time that
/// others leave.
pub fn yield_to_others() {
    // Without it they are slowed down, and nothing is wrong.
    let _ = rustix::process::setpriority_process(None, 19);
}

/// Does the work of each item, on all processors at once; items are begun in
/// their order, which is also that of the results.
pub fn side_by_side<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let one_after_the_other = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else {
                return done;
            };
            done.push((index, work(item)));
        }
    };
    let mut done = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..processors().min(items.len()))
            .map(|_| scope.spawn(one_after_the_other))
            .collect();
        let done = workers.into_iter().map(|worker| worker.join());
        done.flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<Vec<_>>()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// The standard output of a program that must succeed.
pub fn output(command: Command) -> Result<String> {
    let shown = display(&command);
    let mut text = String::new();
    let status = each_line(command, |line| {
        text.push_str(line);
        text.push('\n');
    })?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(text)
}

/// Writes results to standard output. Whoever reads may have stopped reading,
/// which is an error that `main` takes for success.
pub fn print(text: &str) -> Result<()> {
    Ok(std::io::stdout().lock().write_all(text.as_bytes())?)
}

/// Waits for a child for at most this long, then kills it and returns `None`.
pub fn wait_at_most(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// How many tests passed and failed, as in `test result: ok. 3 passed; 0 failed; …`.
pub fn test_counts(line: &str) -> Option<(u64, u64)> {
    let result = line.trim().strip_prefix("test result: ")?;
    let count = |what: &str| {
        result
            .split([';', '.'])
            .find_map(|part| part.trim().strip_suffix(what)?.trim().parse().ok())
    };
    Some((count("passed")?, count("failed")?))
}

/// The command as one would type it.
pub fn display(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        let value = value?.to_string_lossy();
        Some(format!("{}={}", name.to_string_lossy(), quote(&value)))
    });
    let words = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| quote(&word.to_string_lossy()));
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

/// A folder below the build's output that is ours alone.
pub fn scratch(name: &str) -> Result<PathBuf> {
    let folder = crate::metadata::target_directory()?
        .join("xtask")
        .join(name);
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut cargo = cargo(["test", "--", "a b", "it's"]);
        cargo.env("RUSTFLAGS", "--cfg loom");
        assert_eq!(
            display(&cargo),
            r"RUSTFLAGS='--cfg loom' cargo test -- 'a b' 'it'\''s'"
        );
    }

    #[test]
    fn lines_arrive_whole_and_the_status_is_the_programs() {
        let mut shell = command("sh");
        shell.args(["-c", "printf 'one\\ntwo\\n\\377'; exit 3"]);
        let mut lines = Vec::new();
        let status = each_line(shell, |line| lines.push(line.to_owned())).unwrap();
        assert_eq!(lines, ["one", "two", "\u{fffd}"]);
        assert_eq!(status.code(), Some(3));
    }

    #[test]
    fn a_failing_program_is_named() {
        let mut shell = command("sh");
        shell.args(["-c", "exit 3"]);
        let message = output(shell).unwrap_err().to_string();
        assert!(message.contains("`sh -c 'exit 3'` failed"), "{message}");
    }

    #[test]
    fn work_side_by_side_is_done_once_and_answered_in_order() {
        let items: Vec<usize> = (0..100).collect();
        let done = AtomicUsize::new(0);
        let results = side_by_side(&items, |item| {
            done.fetch_add(1, Ordering::Relaxed);
            item * 2
        });
        assert_eq!(done.into_inner(), 100);
        assert!(
            results
                .iter()
                .enumerate()
                .all(|(i, result)| *result == i * 2)
        );
    }

    #[test]
    fn waiting_ends_a_child_that_does_not_end() {
        let mut child = command("sleep").arg("600").spawn().unwrap();
        let status = wait_at_most(&mut child, Duration::from_millis(30)).unwrap();
        assert!(status.is_none());
    }
}
