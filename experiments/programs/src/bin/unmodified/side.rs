//! A way in which a program is run, and what it leaves there.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use experiments::Failed;

/// As the kernel has it, or served.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Native,
    /// Native once more, by which it shows what differs without a cause.
    Control,
    Learning,
    Tuned,
}

impl Way {
    pub const ALL: [Way; 4] = [Way::Native, Way::Control, Way::Learning, Way::Tuned];

    pub fn name(self) -> &'static str {
        match self {
            Way::Native => "native",
            Way::Control => "control",
            Way::Learning => "learning",
            Way::Tuned => "tuned",
        }
    }
}

/// Names and values.
pub type Environment = Vec<(String, String)>;

/// A run of a program, with a folder of its own.
#[derive(Clone)]
pub struct Side {
    pub way: Way,
    pub folder: PathBuf,
    profile: PathBuf,
}

/// What is waited for takes that long at most, on whatever machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

impl Side {
    pub fn new(scratch: &Path, profile: &Path, way: Way, number: u32) -> Result<Side, Failed> {
        let folder = scratch.join(format!("{}-{number}", way.name()));
        fs::create_dir(&folder)?;
        Ok(Side {
            way,
            folder,
            profile: profile.to_owned(),
        })
    }

    /// The command that starts the program in this way, without input and with its
    /// output in the folder.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Result<Command, Failed> {
        let mut command = match self.way {
            Way::Native | Way::Control => Command::new(program),
            Way::Learning | Way::Tuned => {
                let mode = match self.way {
                    Way::Tuned => "forced",
                    _ => "learn",
                };
                let mut command = Command::new("milieu");
                command.args(["thread", "run", "--no-mediator", "--mode", mode]);
                command.arg("--profile").arg(&self.profile);
                command.arg("--").arg(program);
                command
            }
        };
        self.within(&mut command)?;
        Ok(command)
    }

    /// The environment that `milieu thread run` gives to programs, where it starts them.
    /// What that itself takes, which is not built to be fast here, is no part of their work.
    pub fn environment(&self) -> Result<Option<Environment>, Failed> {
        if !matches!(self.way, Way::Learning | Way::Tuned) {
            return Ok(None);
        }
        let output = self
            .command("env")?
            .arg("-0")
            .stdout(Stdio::piped())
            .output()?;
        let text = String::from_utf8(output.stdout)?;
        let pairs = text.split('\0').filter_map(|it| it.split_once('='));
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok(Some(pairs.collect()))
    }

    /// The same as `command` without `milieu thread run`: with the environment that it gives.
    pub fn direct(
        &self,
        program: impl AsRef<OsStr>,
        environment: Option<&Environment>,
    ) -> Result<Command, Failed> {
        let mut command = Command::new(program);
        if let Some(pairs) = environment {
            let pairs = pairs.iter().map(|(name, value)| (name, value));
            command.env_clear().envs(pairs);
        }
        self.within(&mut command)?;
        Ok(command)
    }

    fn within(&self, command: &mut Command) -> Result<(), Failed> {
        let output = |name: &str| File::create(self.folder.join(name));
        command
            .stdin(Stdio::null())
            .stdout(output("out")?)
            .stderr(output("err")?)
            .current_dir(&self.folder);
        Ok(())
    }

    /// What the program has written to its standard error output, with our remarks.
    pub fn said(&self) -> String {
        let said = fs::read(self.folder.join("err")).unwrap_or_default();
        String::from_utf8_lossy(&said).into_owned()
    }

    /// Nothing of ours was said, as there is nothing to complain about.
    pub fn check(&self) -> Result<(), Failed> {
        let said = self.said();
        match said.lines().find(|it| it.starts_with("milieu: ")) {
            Some(remark) => Err(format!("{}: {remark}", self.way.name()).into()),
            None => Ok(()),
        }
    }

    /// Why something did not end well, with what it said.
    pub fn failed(&self, what: &str, status: ExitStatus) -> Failed {
        let said = self.said();
        let last: Vec<&str> = said.lines().rev().take(5).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        let way = self.way.name();
        format!("{what}, {way}, ended with {status}: {}", last.join(" / ")).into()
    }
}

/// A process that is told to end, and killed at the latest when nobody needs it.
pub struct Process(Option<Child>);

impl Process {
    pub fn new(child: Child) -> Process {
        Process(Some(child))
    }

    pub fn child(&mut self) -> Result<&mut Child, Failed> {
        Ok(self.0.as_mut().ok_or("it has ended")?)
    }

    /// The processor time that it has had so far, also its threads that have ended, in
    /// seconds.
    pub fn processor(&mut self) -> Result<f64, Failed> {
        let number = i32::try_from(self.child()?.id())?;
        let clock = nix::time::clock_getcpuclockid(nix::unistd::Pid::from_raw(number))?;
        Ok(Duration::from(clock.now()?).as_secs_f64())
    }

    /// Sends a signal.
    pub fn tell(&mut self, signal: nix::sys::signal::Signal) -> Result<(), Failed> {
        let number = i32::try_from(self.child()?.id())?;
        Ok(nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(number),
            signal,
        )?)
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Result<ExitStatus, Failed> {
        let status = until("it does not end", || Ok(self.child()?.try_wait()?))?;
        self.0 = None;
        Ok(status)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits until something is there.
pub fn until<T>(
    why: &str,
    mut there: impl FnMut() -> Result<Option<T>, Failed>,
) -> Result<T, Failed> {
    let begun = Instant::now();
    loop {
        if let Some(there) = there()? {
            return Ok(there);
        }
        if begun.elapsed() > PATIENCE {
            return Err(why.into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs a program to its end that is no part of what is compared.
pub fn succeeded(command: &mut Command) -> Result<(), Failed> {
    let Output {
        status,
        stdout,
        stderr,
    } = command.stdin(Stdio::null()).output()?;
    if status.success() {
        return Ok(());
    }
    let said = [stdout, stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let last = said.lines().last().unwrap_or_default();
    let program = command.get_program().to_string_lossy().into_owned();
    Err(format!("{program} ended with {status}: {last}").into())
}
