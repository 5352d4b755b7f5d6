//! The source that replays a recording.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;

use milieu_stream::{Feed, Source, Wait};
use milieu_transfer::{Body, Span, Time};

use super::clock::{Clock, Pass};
use super::column::{Column, TimeFormat};
use super::control::{Control, Pace, Wish};
use super::rows::{Csv, Kind, Next, Publish, Recording, RowType, Rows};
use crate::failure::Failure;
use crate::interval::Retry;

/// So many rows are read before other sources have their turn.
const ROWS_MAX: usize = 1000;

/// A source that replays a recording.
pub struct Replay {
    recording: Recording,
    from: Time,
    until: Time,
    passes: Option<u64>,
    at_replay: bool,
    lead: Option<Span>,
    control: Control,
    rows: Option<Box<dyn Rows>>,
    /// A row whose time has not come.
    pending: Option<(Time, Publish)>,
    /// Rows that were recorded before are skipped.
    skipped: Time,
    /// Whether all rows were skipped since it was told where to go.
    is_seeking: bool,
    retry: Retry,
    clock: Clock,
    pass: Pass,
    read: u64,
    bad: u64,
    last_bad: String,
}

/// Replays a CSV file, whose first row has the names of its columns.
///
/// The column `time` says in RFC 3339 when a row was recorded, unless
/// [`time`](Replay::time) says otherwise.
#[must_use]
pub fn csv(path: impl Into<PathBuf>) -> Replay {
    let csv = Csv {
        separator: ',',
        columns: Vec::new(),
        names: None,
    };
    Replay::new(path.into(), Kind::Csv(csv))
}

/// Replays a file with a JSON object on each line.
///
/// The field `time` says in RFC 3339 when a row was recorded, unless
/// [`time`](Replay::time) says otherwise.
#[must_use]
pub fn json_lines(path: impl Into<PathBuf>) -> Replay {
    Replay::new(path.into(), Kind::JsonLines)
}

/// Replays what a receiver has written, as
/// [`Position`](crate::nmea::Position)s. The receiver's own time counts.
#[must_use]
pub fn nmea(path: impl Into<PathBuf>) -> Replay {
    Replay::new(path.into(), Kind::Nmea)
}

impl Replay {
    fn new(path: PathBuf, kind: Kind) -> Replay {
        Replay {
            recording: Recording {
                path,
                content: None,
                kind,
                time: "time".to_owned(),
                format: TimeFormat::default(),
                of: RowType::none(),
            },
            from: Time::MIN,
            until: Time::MAX,
            passes: Some(1),
            at_replay: false,
            lead: None,
            control: Control::new(),
            rows: None,
            pending: None,
            skipped: Time::MIN,
            is_seeking: false,
            retry: Retry::new(),
            clock: Clock::default(),
            pass: Pass::default(),
            read: 0,
            bad: 0,
            last_bad: String::new(),
        }
    }

    /// Replays this instead of what is in the file, whose path is then only what
    /// it is called.
    #[must_use]
    pub fn content(mut self, content: impl Into<Arc<[u8]>>) -> Replay {
        self.recording.content = Some(content.into());
        self
    }

    /// Which field says when a row was recorded, and how.
    #[must_use]
    pub fn time(mut self, field: &str, format: TimeFormat) -> Replay {
        field.clone_into(&mut self.recording.time);
        self.recording.format = format;
        self
    }

    /// What a column of a CSV file holds.
    #[must_use]
    pub fn column(mut self, name: &str, column: Column) -> Replay {
        if let Kind::Csv(csv) = &mut self.recording.kind {
            csv.columns.push((name.to_owned(), column));
        }
        self
    }

    /// What stands between the fields of a CSV file: `;`, or a tabulator.
    #[must_use]
    pub fn separator(mut self, separator: char) -> Replay {
        if let Kind::Csv(csv) = &mut self.recording.kind {
            csv.separator = separator;
        }
        self
    }

    /// Names the columns of a CSV file whose first row does not.
    #[must_use]
    pub fn names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Replay {
        if let Kind::Csv(csv) = &mut self.recording.kind {
            csv.names = Some(names.into_iter().map(Into::into).collect());
        }
        self
    }

    /// Publishes what a type makes of a row: its fields by name. An empty field
    /// is `None`, and fields that the type does not know are ignored.
    #[must_use]
    pub fn typed<T: Body>(self) -> Replay {
        self.rows(RowType::of::<T>())
    }

    /// As [`typed`](Replay::typed), of a type that is known only while the program runs.
    #[must_use]
    pub fn rows(mut self, of: RowType) -> Replay {
        self.recording.of = of;
        self
    }

    /// Begins with the first row that was recorded at this time or later.
    #[must_use]
    pub fn from(mut self, time: Time) -> Replay {
        self.from = time;
        self.skipped = time;
        self
    }

    /// Ends before the first row that was recorded at this time or later.
    #[must_use]
    pub fn until(mut self, time: Time) -> Replay {
        self.until = time;
        self
    }

    /// How fast it is replayed.
    #[must_use]
    pub fn pace(mut self, pace: Pace) -> Replay {
        self.clock.pace = pace;
        self
    }

    /// Replays it so many times altogether. Times go on: in the second pass they
    /// are later by what the first has lasted.
    #[must_use]
    pub fn passes(mut self, passes: u64) -> Replay {
        self.passes = Some(passes);
        self
    }

    /// Replays it again and again; see [`passes`](Replay::passes). Whoever
    /// [seeks](Control::seek) a time behind the last row gets the first one.
    #[must_use]
    pub fn forever(mut self) -> Replay {
        self.passes = None;
        self
    }

    /// Gives events the time at which they are replayed instead of the recorded
    /// one, so that they look as if they happened now.
    #[must_use]
    pub fn at_replay(mut self) -> Replay {
        self.at_replay = true;
        self
    }

    /// After [`seek`](Control::seek), what was recorded in this span before that
    /// time comes at once, also while it is paused, and what was recorded later
    /// comes when its time has come. So whoever begins in the middle has the
    /// past that belongs to it.
    #[must_use]
    pub fn lead(mut self, span: Span) -> Replay {
        self.lead = Some(span);
        self
    }

    /// A handle that stops it and moves within it.
    #[must_use]
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    fn obey(&mut self) {
        for wish in self.control.take() {
            match wish {
                Wish::Pause => self.clock.pause(),
                Wish::Resume => self.clock.resume(),
                Wish::Pace(pace) => self.clock.pace(pace),
                Wish::Seek(time) => {
                    let time = time.max(self.from);
                    let lead = self.lead.unwrap_or(Span::ZERO);
                    self.skipped = (time - lead).max(self.from);
                    self.is_seeking = true;
                    self.rows = None;
                    self.pending = None;
                    let now = self.clock.now;
                    self.clock.anchor = self.lead.map(|_| (now, time + self.pass.before));
                }
            }
        }
        self.control.tell(self.clock, self.pass);
    }

    /// Publishes what is due. The error ends it.
    fn replay(&mut self, feed: &mut Feed<'_>) -> Result<Wait, String> {
        let now = feed.now();
        for _ in 0..ROWS_MAX {
            let (time, publish) = match self.pending.take() {
                Some(pending) => pending,
                None => match self.next()? {
                    Step::Row(time, publish) => (time, publish),
                    Step::Skipped => continue,
                    Step::Ended => return Ok(Wait::Ended),
                },
            };
            let shifted = time + self.pass.before;
            let due = self.clock.due(shifted);
            if due.is_none_or(|due| due > now) {
                self.pending = Some((time, publish));
                return Ok(due.map_or(Wait::Readable, Wait::Until));
            }
            publish(feed, if self.at_replay { now } else { shifted });
        }
        Ok(Wait::Until(now))
    }

    /// Reads one row.
    fn next(&mut self) -> Result<Step, String> {
        let Some(rows) = &mut self.rows else {
            return Ok(Step::Ended);
        };
        match rows.next().map_err(|error| error.to_string())? {
            Next::Row(time, _) if time < self.skipped && time < self.until => {
                // Passes last as long wherever one has begun.
                if time >= self.from {
                    self.pass.see(time);
                }
                Ok(Step::Skipped)
            }
            Next::Row(time, publish) if time < self.until => {
                self.read += 1;
                self.is_seeking = false;
                self.pass.see(time);
                Ok(Step::Row(time, publish))
            }
            Next::Bad(line, why) => {
                self.bad += 1;
                let (bad, all) = (self.bad, self.bad + self.read);
                self.last_bad = format!(
                    "{bad} of {all} rows could not be replayed; the last: line {line}: {why}"
                );
                Ok(Step::Skipped)
            }
            Next::Row(..) | Next::End => self.again(),
        }
    }

    /// At the end, begins another pass, if there is to be one.
    fn again(&mut self) -> Result<Step, String> {
        if let Some(passes) = &mut self.passes {
            *passes = passes.saturating_sub(1);
            if *passes == 0 {
                return Ok(Step::Ended);
            }
        }
        let Some(first) = self.pass.first else {
            return Err("it has no row that could be replayed".to_owned());
        };
        self.pass.end();
        if std::mem::take(&mut self.is_seeking) {
            // What was sought is not there, so the first row comes now.
            let start = (self.clock.now, first + self.pass.before);
            self.clock.anchor = self.lead.map(|_| start);
        }
        self.skipped = self.from;
        self.rows = Some(self.recording.open().map_err(|error| error.to_string())?);
        Ok(Step::Skipped)
    }
}

/// What reading a row has come to.
enum Step {
    Row(Time, Publish),
    Skipped,
    Ended,
}

impl Source for Replay {
    fn poll(&mut self, feed: &mut Feed<'_>) -> Wait {
        self.clock.tick(feed.now());
        self.obey();
        let place = self.recording.path.display();
        if self.rows.is_none() {
            if !self.retry.is_due(feed.now()) {
                return self.retry.wait();
            }
            match self.recording.open() {
                Ok(rows) => self.rows = Some(rows),
                Err(error) => {
                    let remedy = match error.kind() {
                        io::ErrorKind::NotFound => "; it is replayed when it comes",
                        _ => "",
                    };
                    feed.failing(Failure::new(place, format!("{error}{remedy}")));
                    self.retry.later(feed.now());
                    return self.retry.wait();
                }
            }
        }
        let replayed = self.replay(feed);
        self.control.tell(self.clock, self.pass);
        if !matches!(replayed, Ok(Wait::Until(_) | Wait::Readable)) {
            self.control.end();
        }
        match replayed {
            Ok(wait) => {
                match self.bad {
                    0 => feed.working(),
                    _ => feed.failing(Failure::new(self.recording.path.display(), &self.last_bad)),
                }
                wait
            }
            Err(why) => {
                feed.failing(Failure::new(self.recording.path.display(), why));
                Wait::Ended
            }
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.control.descriptor()
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut replay = f.debug_struct("Replay");
        replay.field("path", &self.recording.path);
        replay.field("pace", &self.clock.pace);
        replay.finish_non_exhaustive()
    }
}
