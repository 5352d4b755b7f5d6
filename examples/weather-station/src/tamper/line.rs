//! A tamper input that is a line of a GPIO character device.

use super::{Failure, Source};
use std::path::Path;

/// Watches a line of a chip.
#[cfg(feature = "gpio")]
pub(super) fn source(chip: &Path, line: &str) -> Box<dyn Source> {
    Box::new(device::Line::new(chip, line))
}

/// Says that this build watches no lines.
#[cfg(not(feature = "gpio"))]
pub(super) fn source(chip: &Path, line: &str) -> Box<dyn Source> {
    #[derive(Debug)]
    struct Unsupported(Failure);

    impl Source for Unsupported {
        fn read(&mut self) -> Option<super::State> {
            Some(super::State::Failed(self.0.clone()))
        }

        fn poll_on(&self) -> Vec<(rustix::fd::BorrowedFd<'_>, rustix::event::PollFlags)> {
            Vec::new()
        }
    }

    let reason = "this station was built without GPIO lines; build it with `--features gpio`";
    Box::new(Unsupported(failure(chip, line, reason)))
}

fn failure(chip: &Path, line: &str, reason: impl Into<String>) -> Failure {
    Failure {
        place: format!("{} line {line}", chip.display()),
        reason: reason.into(),
    }
}

#[cfg(feature = "gpio")]
mod device {
    use super::super::{Source, State};
    use gpiocdev::Request;
    use gpiocdev::line::{EdgeDetection, Value};
    use rustix::event::PollFlags;
    use rustix::fd::{AsFd, BorrowedFd};
    use std::path::{Path, PathBuf};

    /// A requested line with both edges announced.
    #[derive(Debug)]
    pub(super) struct Line {
        chip: PathBuf,
        line: String,
        request: Option<Request>,
    }

    impl Line {
        pub(super) fn new(chip: &Path, line: &str) -> Line {
            Line {
                chip: chip.to_owned(),
                line: line.to_owned(),
                request: None,
            }
        }

        fn request(&self) -> gpiocdev::Result<Request> {
            let offset = match self.line.parse() {
                Ok(offset) => offset,
                Err(_) => self.named()?,
            };
            Request::builder()
                .on_chip(&self.chip)
                .with_line(offset)
                .with_edge_detection(EdgeDetection::BothEdges)
                .with_consumer("weather-station")
                .request()
        }

        fn named(&self) -> gpiocdev::Result<u32> {
            let chip = gpiocdev::Chip::from_path(&self.chip)?;
            match chip.find_line_info(&self.line) {
                Some(info) => Ok(info.offset),
                None => Err(gpiocdev::Error::InvalidArgument(format!(
                    "the chip has no line called `{}`",
                    self.line
                ))),
            }
        }

        /// The value, after the announcements that led to it were taken.
        fn value(&self, request: &Request) -> gpiocdev::Result<Value> {
            while request.has_edge_event()? {
                request.read_edge_event()?;
            }
            request.lone_value()
        }
    }

    impl Source for Line {
        fn read(&mut self) -> Option<State> {
            let request = match self.request.take().map_or_else(|| self.request(), Ok) {
                Ok(request) => request,
                Err(error) => {
                    let reason = format!("{error}; name a line that this user may request");
                    return Some(State::Failed(super::failure(
                        &self.chip, &self.line, reason,
                    )));
                }
            };
            match self.value(&request) {
                Ok(value) => {
                    self.request = Some(request);
                    Some(if value == Value::Active {
                        State::Tampered
                    } else {
                        State::Quiet
                    })
                }
                Err(error) => Some(State::Failed(super::failure(
                    &self.chip,
                    &self.line,
                    error.to_string(),
                ))),
            }
        }

        fn poll_on(&self) -> Vec<(BorrowedFd<'_>, PollFlags)> {
            self.request
                .iter()
                .map(|request| (request.as_fd(), PollFlags::IN))
                .collect()
        }
    }
}
