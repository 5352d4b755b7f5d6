//! Lines of GPIO chips, by the character device: buttons, contacts, detectors.
//!
//! ```no_run
//! use std::time::Duration;
//! use milieu_adapters::gpio::{self, Bias};
//!
//! let door = gpio::lines("/dev/gpiochip0", ["17"])
//!     .bias(Bias::PullUp)
//!     .active_low()
//!     .debounce(Duration::from_millis(5));
//! ```
//!
//! The kernel notices edges, debounces them and says when each was, so that none
//! is missed between two polls; only when more come than it keeps (16 for each
//! line) are some lost, and their number is told. A chip that is unplugged and
//! returns is followed.
//!
//! Whoever polls the source needs the right to open the chip: on many systems
//! that is the group `gpio`. A line that another program has is not shared.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::Duration;

use gpiocdev::line::{EdgeDetection, EdgeEvent, EdgeKind, EventClock, Offset, Value, Values};
use gpiocdev::{Chip, Request};
use milieu_stream::{Feed, Source, Wait};
use milieu_transfer::Time;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::interval::Retry;

/// So many edges are read before other sources have their turn.
const EDGES_MAX: usize = 256;

/// The level of a line, at first and whenever it has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// The line, by the name or number by which it was asked for.
    pub line: String,
    /// Whether it is active: its voltage is high, or low if it is active low.
    pub is_active: bool,
    /// How many changes of this line were lost before this one.
    pub lost: u32,
}

/// What holds a line that nothing drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bias {
    /// A resistor to high.
    PullUp,
    /// A resistor to low.
    PullDown,
    /// Nothing.
    Disabled,
}

/// A source of levels of lines.
#[derive(Debug)]
pub struct Lines {
    chip: PathBuf,
    names: Vec<String>,
    bias: Option<Bias>,
    is_active_low: bool,
    debounce: Duration,
    requested: Option<Requested>,
    retry: Retry,
}

/// Lines that are ours.
struct Requested {
    request: Request,
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    name: String,
    offset: Offset,
    /// The number of its last edge.
    edge: u32,
}

/// The levels of lines of a chip, by name or number, as a [`Level`] each at
/// first and whenever one has changed.
#[must_use]
pub fn lines(
    chip: impl Into<PathBuf>,
    lines: impl IntoIterator<Item = impl Into<String>>,
) -> Lines {
    Lines {
        chip: chip.into(),
        names: lines.into_iter().map(Into::into).collect(),
        bias: None,
        is_active_low: false,
        debounce: Duration::ZERO,
        requested: None,
        retry: Retry::new(),
    }
}

impl Lines {
    /// What holds the lines while nothing drives them; otherwise it stays as it
    /// is.
    #[must_use]
    pub fn bias(mut self, bias: Bias) -> Lines {
        self.bias = Some(bias);
        self
    }

    /// The lines are active when their voltage is low.
    #[must_use]
    pub fn active_low(mut self) -> Lines {
        self.is_active_low = true;
        self
    }

    /// A level counts when it has lasted so long.
    #[must_use]
    pub fn debounce(mut self, period: Duration) -> Lines {
        self.debounce = period;
        self
    }

    fn request(&self, feed: &mut Feed<'_>) -> gpiocdev::Result<Requested> {
        let chip = Chip::from_path(&self.chip)?;
        let mut lines = Vec::new();
        for name in &self.names {
            let named = || chip.find_line_info(name).map(|info| info.offset);
            let offset = name.parse().ok().or_else(named).ok_or_else(|| {
                let what = format!("the chip has no line called `{name}`");
                gpiocdev::Error::InvalidArgument(what)
            })?;
            lines.push(Line {
                name: name.clone(),
                offset,
                edge: 0,
            });
        }
        let offsets: Vec<Offset> = lines.iter().map(|line| line.offset).collect();
        let mut builder = Request::builder();
        builder.on_chip(&self.chip).with_consumer("milieu");
        builder.as_input();
        if self.is_active_low {
            builder.as_active_low();
        }
        builder.with_bias(self.bias.map(|bias| match bias {
            Bias::PullUp => gpiocdev::line::Bias::PullUp,
            Bias::PullDown => gpiocdev::line::Bias::PullDown,
            Bias::Disabled => gpiocdev::line::Bias::Disabled,
        }));
        builder.with_edge_detection(EdgeDetection::BothEdges);
        builder.with_event_clock(EventClock::Realtime);
        builder.with_debounce_period(self.debounce);
        let request = builder.with_lines(&offsets).request()?;
        // Edges from here on are queued; the levels now come before them.
        let mut levels = Values::from_offsets(&offsets);
        request.values(&mut levels)?;
        for line in &lines {
            let level = Level {
                line: line.name.clone(),
                is_active: levels.get(line.offset) == Some(Value::Active),
                lost: 0,
            };
            feed.publish(feed.now(), level);
        }
        Ok(Requested { request, lines })
    }

    fn explained(&self, error: &gpiocdev::Error) -> Failure {
        let remedy = match std::fs::metadata(&self.chip) {
            Err(_) => "there is no such chip; `gpiodetect` lists those that there are",
            Ok(_) => "name lines that the chip has, that this user may request, and that are free",
        };
        let lines = self.names.join(", ");
        let place = format!("{} {lines}", self.chip.display());
        Failure::new(place, format!("{error}; {remedy}"))
    }
}

impl Requested {
    fn read(&mut self, feed: &mut Feed<'_>) -> gpiocdev::Result<()> {
        for _ in 0..EDGES_MAX {
            if !self.request.has_edge_event()? {
                break;
            }
            let edge = self.request.read_edge_event()?;
            if let Some(level) = self.level(&edge) {
                let nanoseconds = i64::try_from(edge.timestamp_ns).unwrap_or(i64::MAX);
                feed.publish(Time::from_nanoseconds(nanoseconds), level);
            }
        }
        Ok(())
    }

    fn level(&mut self, edge: &EdgeEvent) -> Option<Level> {
        let mut lines = self.lines.iter_mut();
        let line = lines.find(|line| line.offset == edge.offset)?;
        let apart = edge.line_seqno.wrapping_sub(line.edge);
        line.edge = edge.line_seqno;
        Some(Level {
            line: line.name.clone(),
            is_active: edge.kind == EdgeKind::Rising,
            lost: apart.saturating_sub(1),
        })
    }
}

impl Source for Lines {
    fn poll(&mut self, feed: &mut Feed<'_>) -> Wait {
        let now = feed.now();
        if self.requested.is_none() && self.retry.is_due(now) {
            match self.request(feed) {
                Ok(requested) => {
                    self.requested = Some(requested);
                    feed.working();
                }
                Err(error) => feed.failing(self.explained(&error)),
            }
            self.retry.later(now);
        }
        if let Some(Err(error)) = self.requested.as_mut().map(|it| it.read(feed)) {
            self.requested = None;
            self.retry.later(now);
            feed.failing(self.explained(&error));
        }
        match self.requested {
            Some(_) => Wait::Readable,
            None => self.retry.wait(),
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.requested.as_ref()?.request.as_fd())
    }
}

impl fmt::Debug for Requested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.lines).finish()
    }
}
