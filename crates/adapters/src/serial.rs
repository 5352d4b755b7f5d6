//! Serial lines: what a device sends, line by line or as bytes.
//!
//! ```
//! use milieu_adapters::{Format, serial};
//!
//! let scale = serial::lines("/dev/ttyUSB0").baud(115_200).format(Format::number());
//! ```
//!
//! The line is opened raw and for this program alone, 9600 baud, 8 data bits, no
//! parity, one stop bit, unless something else is said. A device that is not
//! there, or goes, is looked for every second; name it by a link of
//! `/dev/serial/by-id`, because its number may be another when it returns.
//!
//! Whoever polls the source needs the right to open the device: on most systems
//! that is the group `dialout`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use milieu_stream::{Feed, Source, Wait};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{
    ControlModes, InputModes, OptionalActions, SpecialCodeIndex, ioctl_tiocexcl, isatty, tcgetattr,
    tcsetattr,
};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::format::{Format, Published};
use crate::interval::Retry;

/// So much is read before other sources have their turn.
const READ_MAX: usize = 64 * 1024;

/// What came over a serial line, in pieces as they came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bytes {
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// A bit that is sent with each character to tell errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parity {
    /// None.
    #[default]
    None,
    /// The number of ones is even.
    Even,
    /// The number of ones is odd.
    Odd,
}

/// A source of what comes over a serial line.
#[derive(Debug)]
pub struct Serial {
    path: PathBuf,
    line: Line,
    /// Nothing: bytes are published as they come.
    lines: Option<Published>,
    open: Option<OwnedFd>,
    retry: Retry,
}

/// How the line is to be used.
#[derive(Clone, Copy, Debug)]
struct Line {
    baud: u32,
    parity: Parity,
    two_stop_bits: bool,
    flow_control: bool,
}

/// The lines that come over a serial line, each as a [`Text`](crate::Text).
#[must_use]
pub fn lines(path: impl Into<PathBuf>) -> Serial {
    let mut serial = bytes(path);
    serial.lines = Some(Published::new(serial.path.display()));
    serial
}

/// What comes over a serial line, as [`Bytes`].
#[must_use]
pub fn bytes(path: impl Into<PathBuf>) -> Serial {
    Serial {
        path: path.into(),
        line: Line {
            baud: 9600,
            parity: Parity::None,
            two_stop_bits: false,
            flow_control: false,
        },
        lines: None,
        open: None,
        retry: Retry::new(),
    }
}

impl Serial {
    /// How many bits are sent in a second.
    #[must_use]
    pub fn baud(mut self, baud: u32) -> Serial {
        self.line.baud = baud;
        self
    }

    /// Which parity bit is sent.
    #[must_use]
    pub fn parity(mut self, parity: Parity) -> Serial {
        self.line.parity = parity;
        self
    }

    /// Ends each character by two stop bits.
    #[must_use]
    pub fn two_stop_bits(mut self) -> Serial {
        self.line.two_stop_bits = true;
        self
    }

    /// Lets both sides stop each other by the wires RTS and CTS.
    #[must_use]
    pub fn flow_control(mut self) -> Serial {
        self.line.flow_control = true;
        self
    }

    /// What lines become; bytes become what they are.
    #[must_use]
    pub fn format(mut self, format: Format) -> Serial {
        if let Some(lines) = &mut self.lines {
            lines.format(format);
        }
        self
    }

    fn connect(&self) -> Result<OwnedFd, String> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = rustix::fs::open(&self.path, flags, Mode::empty());
        let device = open.map_err(|error| match error {
            Errno::NOENT | Errno::NXIO | Errno::NODEV => {
                "there is no such device; connect it".to_owned()
            }
            Errno::ACCESS | Errno::PERM => {
                "this user may not open it; add the user to the device's group, mostly `dialout`"
                    .to_owned()
            }
            Errno::BUSY => "another program has it open; end that program".to_owned(),
            other => format!("it cannot be opened: {other}"),
        })?;
        if !isatty(&device) {
            return Err("that is not a serial line".to_owned());
        }
        self.line.set_up(&device).map_err(|error| {
            format!(
                "it cannot be set to {} baud and raw: {error}",
                self.line.baud
            )
        })?;
        Ok(device)
    }

    /// Publishes what has come. The error says why nothing comes any more.
    fn read(&mut self, feed: &mut Feed<'_>) -> Result<(), String> {
        let Some(device) = &self.open else {
            return Ok(());
        };
        let mut buffer = [0; 4096];
        let mut read = 0;
        while read < READ_MAX {
            match rustix::io::read(device, &mut buffer) {
                Ok(0) | Err(Errno::IO | Errno::NXIO | Errno::NODEV) => {
                    return Err("the device has gone; it is opened again when it returns".into());
                }
                Ok(length) => {
                    read += length;
                    let piece = &buffer[..length];
                    if let Some(lines) = &mut self.lines {
                        lines.take(piece, feed);
                    } else {
                        let bytes = piece.to_vec();
                        feed.publish(feed.now(), Bytes { bytes });
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(format!("it cannot be read any more: {error}")),
            }
        }
        Ok(())
    }
}

impl Line {
    fn set_up(self, device: &OwnedFd) -> rustix::io::Result<()> {
        let mut settings = tcgetattr(device)?;
        settings.make_raw();
        let modes = &mut settings.control_modes;
        modes.insert(ControlModes::CREAD | ControlModes::CLOCAL);
        modes.set(ControlModes::PARENB, self.parity != Parity::None);
        modes.set(ControlModes::PARODD, self.parity == Parity::Odd);
        modes.set(ControlModes::CSTOPB, self.two_stop_bits);
        modes.set(ControlModes::CRTSCTS, self.flow_control);
        let checks = self.parity != Parity::None;
        settings.input_modes.set(InputModes::INPCK, checks);
        settings.special_codes[SpecialCodeIndex::VMIN] = 1;
        settings.special_codes[SpecialCodeIndex::VTIME] = 0;
        settings.set_speed(self.baud)?;
        tcsetattr(device, OptionalActions::Now, &settings)?;
        // Two readers would each get half of what comes.
        ioctl_tiocexcl(device)
    }
}

impl Source for Serial {
    fn poll(&mut self, feed: &mut Feed<'_>) -> Wait {
        let now = feed.now();
        if self.open.is_none() && self.retry.is_due(now) {
            self.retry.later(now);
            match self.connect() {
                Ok(device) => {
                    self.open = Some(device);
                    if let Some(lines) = &mut self.lines {
                        lines.restart();
                    }
                    feed.working();
                }
                Err(why) => feed.failing(Failure::new(self.path.display(), why)),
            }
        }
        if let Err(why) = self.read(feed) {
            self.open = None;
            self.retry.later(now);
            feed.failing(Failure::new(self.path.display(), why));
        }
        match self.open {
            Some(_) => Wait::Readable,
            None => self.retry.wait(),
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.open.as_ref().map(AsFd::as_fd)
    }
}
