//! A program while it runs.

use std::fmt;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};

use milieu_stream::{Feed, Wait};
use milieu_transfer::{Span, Time};
use rustix::event::{Timespec, epoll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};

use crate::failure::shortened;
use crate::format::Published;
use crate::lines::{Lines, TooLong};

/// So much is read before other sources have their turn.
const READ_MAX: usize = 256 * 1024;

/// How long a kernel without descriptors of processes is not asked whether the
/// program has ended.
const LOOK: Span = Span::from_seconds(1);

/// A program, its output, and one descriptor for all that may happen to it.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    group: Pid,
    /// Readable when the program has ended; nothing on kernels before 5.3.
    process: Option<OwnedFd>,
    output: Option<ChildStdout>,
    errors: Option<ChildStderr>,
    error_lines: Lines,
    last_error: String,
    started: Time,
    /// It was waited for: its number may be that of another by now.
    is_over: bool,
    all: OwnedFd,
}

/// How a program has ended.
pub(super) struct Ended {
    pub(super) is_success: bool,
    pub(super) has_run: Span,
    how: String,
    last_error: String,
}

impl Running {
    pub(super) fn start(mut command: Command, now: Time) -> io::Result<Running> {
        let all = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).spawn()?;
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let group = Pid::from_child(&child);
        let running = Running {
            process: pidfd_open(group, PidfdFlags::empty()).ok(),
            child,
            group,
            output,
            errors,
            error_lines: Lines::default(),
            last_error: String::new(),
            started: now,
            is_over: false,
            all,
        };
        // From here on, leaving kills the program.
        let output = running.output.as_ref().map(AsFd::as_fd);
        let errors = running.errors.as_ref().map(AsFd::as_fd);
        for pipe in output.into_iter().chain(errors) {
            rustix::io::ioctl_fionbio(pipe, true)?;
            running.watch(pipe)?;
        }
        if let Some(process) = &running.process {
            running.watch(process.as_fd())?;
        }
        Ok(running)
    }

    fn watch(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let data = epoll::EventData::new_u64(0);
        Ok(epoll::add(
            &self.all,
            descriptor,
            data,
            epoll::EventFlags::IN,
        )?)
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.all.as_fd()
    }

    pub(super) fn started(&self) -> Time {
        self.started
    }

    /// Waits for what happens next, and for the program to have run for so long.
    pub(super) fn wait(&self, now: Time, until: Option<Span>) -> Wait {
        let until = until.map(|until| self.started + until);
        let look = self.process.is_none().then(|| now + LOOK);
        match until.into_iter().chain(look).min() {
            Some(time) => Wait::Until(time),
            None => Wait::Readable,
        }
    }

    /// Publishes what the program has written; says whether it has ended.
    pub(super) fn read(&mut self, feed: &mut Feed<'_>, lines: &mut Published) -> Option<Ended> {
        self.read_errors();
        let is_drained = drain(&mut self.output, &mut |piece| lines.take(piece, feed));
        if !is_drained || !self.has_ended() {
            return None;
        }
        // Until it is waited for, its number is that of no other group.
        let _ = kill_process_group(self.group, Signal::KILL);
        drain(&mut self.output, &mut |piece| lines.take(piece, feed));
        self.read_errors();
        let status = self.child.wait();
        self.is_over = true;
        Some(Ended {
            is_success: status.as_ref().is_ok_and(ExitStatus::success),
            has_run: feed.now() - self.started,
            how: status.map_or_else(|error| error.to_string(), |status| status.to_string()),
            last_error: std::mem::take(&mut self.last_error),
        })
    }

    fn read_errors(&mut self) {
        let (last, lines) = (&mut self.last_error, &mut self.error_lines);
        let mut remember = |line: Result<&str, TooLong>| {
            if let Some(line) = line.ok().filter(|line| !line.trim().is_empty()) {
                line.trim().clone_into(last);
            }
        };
        drain(&mut self.errors, &mut |piece| {
            lines.take(piece, &mut remember)
        });
    }

    /// Whether it has ended, without waiting for it.
    fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.group), look), Ok(None))
    }
}

/// Takes what is there. False: there is more, for the next time.
fn drain(pipe: &mut Option<impl Read>, take: &mut impl FnMut(&[u8])) -> bool {
    let mut buffer = [0; 16 * 1024];
    let mut read = 0;
    while let Some(open) = pipe {
        if read >= READ_MAX {
            return false;
        }
        match open.read(&mut buffer) {
            Ok(0) => *pipe = None,
            Ok(length) => {
                take(&buffer[..length]);
                read += length;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
            Err(_) => *pipe = None,
        }
    }
    true
}

impl Drop for Running {
    /// Kills the program and all that it started, and takes note of its end.
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let _ = kill_process_group(self.group, Signal::KILL);
        // What is killed ends at once, unless it stands in a device that does
        // not answer; then it is left to the kernel.
        if let Some(process) = &self.process {
            let end = rustix::event::PollFd::new(process, rustix::event::PollFlags::IN);
            let second = Timespec {
                tv_sec: 1,
                tv_nsec: 0,
            };
            let _ = rustix::event::poll(&mut [end], Some(&second));
        }
        let _ = self.child.try_wait();
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it has ended ({})", self.how)?;
        if !self.last_error.is_empty() {
            write!(f, " after saying `{}`", shortened(&self.last_error))?;
        }
        Ok(())
    }
}
