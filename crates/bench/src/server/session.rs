//! One coordinator, as its test server sees it.

use std::io::{self, Read};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::{Value as Json, json};

use super::jobs::Piece;
use super::wire::{BEAT, Lines, Writer};
use super::{Clocks, Jobs, Request, Said, Server, Told};
use crate::run::{Here, Place};

/// Why what runs here is not profiled.
pub(super) const NO_PROFILES: &str =
    "nobody may profile what this server runs; its owner lets them with --allow-profiles";

/// Serves a coordinator until it goes; all that it has started ends then.
pub(super) fn run<R: Read>(server: &Server, writer: Writer, mut lines: Lines<R>) -> io::Result<()> {
    let mut session = Session {
        server,
        writer: Arc::new(Mutex::new(writer)),
        here: None,
    };
    // Dropped at the end, it ends the thread that beats.
    let (_stays, goes) = mpsc::channel::<()>();
    let writer = Arc::clone(&session.writer);
    thread::spawn(move || {
        while let Err(RecvTimeoutError::Timeout) = goes.recv_timeout(BEAT) {
            if send(&writer, &Said::Beat).is_err() {
                return;
            }
        }
    });
    let ended = session.requests(&mut lines);
    // What runs ends before the connection does.
    session.here = None;
    session
        .writer
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .close();
    ended
}

fn send(writer: &Mutex<Writer>, said: &Said) -> io::Result<()> {
    writer
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .send(said)
}

struct Session<'s> {
    server: &'s Server,
    writer: Arc<Mutex<Writer>>,
    /// The step that runs.
    here: Option<Here<'s>>,
}

impl<'s> Session<'s> {
    fn requests<R: Read>(&mut self, lines: &mut Lines<R>) -> io::Result<()> {
        while let Some(told) = lines.next::<Told>()? {
            match told {
                Told::Beat => {}
                Told::Request(request) => {
                    let answer = self.answer(request);
                    send(&self.writer, &Said::Answer(answer))?;
                }
            }
        }
        Ok(())
    }

    fn answer(&mut self, request: Request) -> Result<Json, String> {
        let json =
            |value: Result<Json, serde_json::Error>| value.map_err(|error| error.to_string());
        match request {
            Request::Host => json(serde_json::to_value(self.server.local.host())),
            Request::Clocks => json(serde_json::to_value(Clocks::now())),
            Request::Begin(step) => self.begin(step).map(|()| json!(null)),
            Request::Manner(kind) => json(serde_json::to_value(self.here()?.manner_of(&kind)?)),
            Request::Start {
                index,
                kind,
                start,
                profiler,
            } => {
                if profiler.is_some() && !self.server.profiles {
                    return Err(NO_PROFILES.into());
                }
                self.here()?
                    .begin(index, &kind, start, profiler)
                    .map(|()| json!(null))
            }
            Request::Profile(index) => {
                let files = self.here()?.profiles(index);
                Ok(json!(files.map(|files| files.len())))
            }
            Request::ProfileFile {
                index,
                number,
                from,
            } => {
                let files = self.here()?.profiles(index).unwrap_or_default();
                let file = files.get(number).ok_or("there is no such file")?;
                let piece = Piece::of(file, from);
                json(serde_json::to_value(
                    piece.map_err(|error| error.to_string())?,
                ))
            }
            Request::Stop(index) => {
                self.here()?.stop(index);
                Ok(json!(null))
            }
            Request::Command { name, argument } => match self.server.commands.get(&name) {
                Some(command) => command.run(&argument),
                None => {
                    let parameters = serde_json::from_value(argument);
                    let parameters =
                        parameters.map_err(|error| format!("these are no parameters: {error}"))?;
                    let said = self.server.local.request(&name, parameters);
                    let no = || Err(format!("this server has no command `{name}`"));
                    said.unwrap_or_else(no).map(Json::String)
                }
            },
            Request::Submit {
                group,
                patience_seconds,
                profile,
            } => self
                .jobs()?
                .submit(*group, patience_seconds, profile)
                .map(|id| json!(id)),
            Request::Jobs => json(serde_json::to_value(self.jobs()?.all())),
            Request::Job(id) => json(serde_json::to_value(self.jobs()?.job(id)?)),
            Request::Cancel(id) => self.jobs()?.cancel(id).map(|()| json!(null)),
            Request::Resume(id) => self.jobs()?.resume(id).map(|()| json!(null)),
            Request::Fetch { id, from } => {
                json(serde_json::to_value(self.jobs()?.result(id, from)?))
            }
            Request::FetchProfile { id, name, from } => {
                json(serde_json::to_value(self.jobs()?.profile(id, &name, from)?))
            }
        }
    }

    fn jobs(&self) -> Result<&'s Jobs, String> {
        let jobs = self.server.jobs.as_ref();
        jobs.ok_or_else(|| "this server does not coordinate; it has no folder for jobs".into())
    }

    fn here(&mut self) -> Result<&mut Here<'s>, String> {
        self.here.as_mut().ok_or_else(|| "no step has begun".into())
    }

    fn begin(&mut self, step: u64) -> Result<(), String> {
        // What still runs ends first.
        self.here = None;
        let (happened, events) = mpsc::channel();
        let writer = Arc::clone(&self.writer);
        // It ends when the last process of the step has.
        thread::spawn(move || {
            for (index, happened) in events {
                // Whoever reads notices that nobody hears.
                let _ = send(&writer, &Said::Event(step, index, happened));
            }
        });
        self.here = Some(self.server.local.begin(happened)?);
        Ok(())
    }
}
