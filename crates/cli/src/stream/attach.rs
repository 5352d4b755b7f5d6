//! Attaching to a running program by its control socket.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use milieu::{Control, NO_FRAME};
use serde_json::{Value, json};

use super::{Failure, Result, complete, unheard};
use crate::nearest::nearest;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

const HELP: &str = "see `milieu stream --help`";

/// Which running program is meant.
#[derive(Args)]
pub(super) struct Program {
    /// The running program of this application
    #[arg(long, value_name = "APP", add = complete::apps())]
    app: Option<String>,
    /// The program with this process number
    #[arg(long, value_name = "NUMBER", add = complete::processes())]
    pid: Option<u32>,
    /// The control socket itself
    #[arg(long, value_name = "FILE", conflicts_with_all = ["app", "pid"])]
    socket: Option<PathBuf>,
}

/// A conversation with a program.
pub(super) struct Attached {
    lines: BufReader<UnixStream>,
    /// How long an answer is waited for.
    pub patience: Duration,
}

impl Program {
    /// Connects to the program that is meant.
    pub(super) fn attach(&self) -> Result<Attached> {
        if let Some(path) = &self.socket {
            let unreachable = |error| {
                let path = path.display();
                let help = "does the program run, and has it called `Milieu::control`?";
                Failure::new(format!("{path} cannot be reached: {error}"), help)
            };
            return Attached::to(path).map_err(unreachable);
        }
        let sockets = Control::sockets().map_err(|error| {
            Failure::new(
                format!("control sockets cannot be listed: {error}"),
                "try --socket FILE",
            )
        })?;
        let running: Vec<Running> = sockets.into_iter().filter_map(Running::of).collect();
        let meant: Vec<&Running> = running.iter().filter(|it| self.means(it)).collect();
        match meant[..] {
            [only] => Attached::to(&only.path).map_err(|error| lost(&error)),
            [] => Err(self.nobody(&running)),
            _ => {
                let message = format!("several programs run: {}", shown(&meant));
                Err(Failure::new(message, "say which with --app or --pid"))
            }
        }
    }

    fn means(&self, program: &Running) -> bool {
        let is_app = self.app.as_ref().is_none_or(|app| *app == program.app);
        is_app && self.pid.is_none_or(|process| process == program.process)
    }

    /// That what is meant does not run.
    fn nobody(&self, running: &[Running]) -> Failure {
        if running.is_empty() {
            return Failure::new(
                "no program with a control socket runs",
                "start one that opens it with `Milieu::control`; or run the flow here, as in \
                 milieu stream subscribe /load --source /load=machine.load",
            );
        }
        let wanted = match (&self.app, self.pid) {
            (Some(app), None) => format!("no program of `{app}` runs"),
            (None, Some(process)) => format!("no program with the number {process} runs"),
            (Some(app), Some(process)) => format!("no program of `{app}` has the number {process}"),
            (None, None) => "no such program runs".to_owned(),
        };
        let others = shown(&running.iter().collect::<Vec<_>>());
        let apps = running.iter().map(|it| &*it.app);
        let nearest = self.app.as_deref().map(|app| nearest(app, apps));
        let nearest = nearest.unwrap_or_default();
        Failure::new(
            wanted,
            match nearest.first() {
                Some(near) => format!("did you mean `{near}`? There runs {others}"),
                None => format!("there runs {others}"),
            },
        )
    }
}

/// A program that runs.
pub(super) struct Running {
    pub app: String,
    pub process: u32,
    path: PathBuf,
}

impl Running {
    pub(super) fn of(path: PathBuf) -> Option<Running> {
        let stem = path.file_stem()?.to_str()?;
        let (app, process) = stem.rsplit_once('-')?;
        Some(Running {
            app: app.to_owned(),
            process: process.parse().ok()?,
            path,
        })
    }
}

fn shown(programs: &[&Running]) -> String {
    let names = programs
        .iter()
        .map(|it| format!("{} ({})", it.app, it.process));
    names.collect::<Vec<_>>().join(", ")
}

impl Attached {
    fn to(path: &Path) -> std::io::Result<Attached> {
        Ok(Attached {
            lines: BufReader::new(UnixStream::connect(path)?),
            patience: PATIENCE,
        })
    }

    /// Asks for something; the answer, if it is no error.
    pub(super) fn ask(&mut self, request: &Value) -> Result<Value> {
        self.send(format!("{request}\n").as_bytes())?;
        let Some(line) = self.line_until(Instant::now().checked_add(self.patience))? else {
            let message = "the program does not answer";
            return Err(Failure::new(
                message,
                "has it been stopped, or has it just ended?",
            ));
        };
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|_| json!({"error": line}));
        match answer["error"].as_str().map(str::trim_end) {
            None => Ok(answer),
            // It shows the place in a flow.
            Some(error) if error.contains('\n') => Err(Failure::Said(error.to_owned())),
            Some(error) => {
                let (wrong, way_out) = error.split_once("; ").unwrap_or((error, HELP));
                Err(Failure::new(wrong, way_out))
            }
        }
    }

    /// What stands at names: the entries of a listing.
    pub(super) fn list(&mut self, query: &str) -> Result<Vec<Value>> {
        let answer = self.ask(&json!({"ask": "stream.list", "query": query}))?;
        Ok(answer["names"].as_array().cloned().unwrap_or_default())
    }

    /// Says of names that nothing stands there.
    pub(super) fn say_unheard(&mut self, names: &[String]) -> Result {
        for name in names {
            if self.list(name)?.is_empty() {
                let all = self.list("/**")?;
                unheard::say(name, all.iter().filter_map(|entry| entry["name"].as_str()));
            }
        }
        Ok(())
    }

    /// Sends bytes as they are.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result {
        let sent = self.lines.get_mut().write_all(bytes);
        sent.map_err(|error| lost(&error))
    }

    /// Says that nothing more will be sent, and hears what was wrong.
    pub(super) fn finish(mut self) -> Result {
        let closed = self.lines.get_ref().shutdown(Shutdown::Write);
        closed.map_err(|error| lost(&error))?;
        let mut wrong = Vec::new();
        while let Some(line) = self.line_until(None)? {
            let line: Value =
                serde_json::from_str(&line).unwrap_or_else(|_| json!({"error": line}));
            wrong.extend(line["error"].as_str().map(str::to_owned));
        }
        match wrong.len() {
            0 => Ok(()),
            count => Err(Failure::new(
                format!("{count} values were not published: {}", wrong[0]),
                "the others were",
            )),
        }
    }

    /// The next line, if it comes until then. Nothing, too: the program has ended
    /// the conversation.
    pub(super) fn line_until(&mut self, end: Option<Instant>) -> Result<Option<String>> {
        let mut line = Vec::new();
        let is_whole = self.read_until(end, |lines| {
            let (taken, is_whole) = {
                let come = lines.fill_buf()?;
                let end = come.iter().position(|byte| *byte == b'\n');
                let taken = end.map_or(come.len(), |end| end + 1);
                line.extend_from_slice(&come[..taken]);
                (taken, end.is_some())
            };
            lines.consume(taken);
            Ok((taken > 0).then_some(is_whole))
        })?;
        Ok(is_whole.then(|| String::from_utf8_lossy(&line).into_owned()))
    }

    /// The next frame, as [`line_until`](Attached::line_until) does: the bytes
    /// behind their length. Where there is none, the program says why.
    pub(super) fn frame_until(
        &mut self,
        end: Option<Instant>,
    ) -> Result<Option<std::result::Result<Vec<u8>, String>>> {
        let Some(length) = self.bytes_until(end, 4)? else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(length.try_into().expect("four bytes"));
        // Half a frame is of no use: the rest is under way.
        let frame = self.bytes_until(None, (length & !NO_FRAME) as usize)?;
        Ok(frame.map(|frame| match length & NO_FRAME {
            0 => Ok(frame),
            _ => Err(String::from_utf8_lossy(&frame).into_owned()),
        }))
    }

    fn bytes_until(&mut self, end: Option<Instant>, count: usize) -> Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let is_whole = self.read_until(end, |lines| {
            if bytes.len() == count {
                return Ok(Some(true));
            }
            let come = lines.fill_buf()?;
            let taken = come.len().min(count - bytes.len());
            bytes.extend_from_slice(&come[..taken]);
            lines.consume(taken);
            Ok((taken > 0).then_some(bytes.len() == count))
        })?;
        Ok(is_whole.then_some(bytes))
    }

    /// Reads piece after piece until there is all of it. False: it has not come
    /// until then, or the program has ended the conversation.
    fn read_until(
        &mut self,
        end: Option<Instant>,
        mut piece: impl FnMut(&mut BufReader<UnixStream>) -> std::io::Result<Option<bool>>,
    ) -> Result<bool> {
        loop {
            let rest = end.map(|end| end.saturating_duration_since(Instant::now()));
            if rest.is_some_and(|rest| rest.is_zero()) {
                return Ok(false);
            }
            let set = self.lines.get_ref().set_read_timeout(rest);
            set.map_err(|error| lost(&error))?;
            match piece(&mut self.lines) {
                Ok(None) => return Ok(false),
                Ok(Some(true)) => return Ok(true),
                Ok(Some(false)) => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(lost(&error)),
            }
        }
    }
}

fn lost(error: &std::io::Error) -> Failure {
    Failure::new(
        format!("the program cannot be reached any more: {error}"),
        "does it still run?",
    )
}
