//! What a text becomes when it is published: lines of programs and serial
//! lines, contents of files.

use std::fmt;

use milieu_stream::Feed;
use milieu_transfer::Body;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, shortened};
use crate::lines::{LENGTH_MAX, Lines, TooLong};

/// A text as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// The text, without the end of its line.
    pub text: String,
}

/// A text that is a number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Number {
    /// The number, in the unit of whoever wrote it.
    pub value: f64,
}

/// What a text becomes when it is published.
pub struct Format(Publish);

type Publish = Box<dyn FnMut(&mut Feed<'_>, &str) -> Result<(), String> + Send>;

impl Format {
    /// Each text as a [`Text`].
    #[must_use]
    pub fn text() -> Format {
        Format::of(|text| {
            let text = text.to_owned();
            Ok(Text { text })
        })
    }

    /// Each text as a [`Number`].
    #[must_use]
    pub fn number() -> Format {
        Format::of(|text| match text.trim().parse() {
            Ok(value) if f64::is_finite(value) => Ok(Number { value }),
            _ => Err("that is not a number".to_owned()),
        })
    }

    /// Each text as JSON that says a `T`.
    #[must_use]
    pub fn json<T: Body>() -> Format {
        Format::of(|text| serde_json::from_str::<T>(text).map_err(|error| error.to_string()))
    }

    /// Each text as what a function makes of it; an error says what is wrong
    /// with the text.
    #[must_use]
    pub fn of<T: Body>(mut body: impl FnMut(&str) -> Result<T, String> + Send + 'static) -> Format {
        Format::with(move |feed, text| {
            let body = body(text)?;
            feed.publish(feed.now(), body);
            Ok(())
        })
    }

    /// Each text as what a function publishes for it, if anything; an error
    /// says what is wrong with the text.
    #[must_use]
    pub fn with(
        publish: impl FnMut(&mut Feed<'_>, &str) -> Result<(), String> + Send + 'static,
    ) -> Format {
        Format(Box::new(publish))
    }

    /// Publishes a text.
    pub(crate) fn publish(&mut self, feed: &mut Feed<'_>, text: &str) -> Result<(), String> {
        (self.0)(feed, text).map_err(|why| format!("`{}`: {why}", shortened(text.trim())))
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Format").finish_non_exhaustive()
    }
}

/// Publishes lines of what comes in pieces.
#[derive(Debug)]
pub(crate) struct Published {
    place: String,
    lines: Lines,
    format: Format,
    number: u64,
}

impl Published {
    /// Lines of this place.
    pub(crate) fn new(place: impl fmt::Display) -> Published {
        Published {
            place: place.to_string(),
            lines: Lines::default(),
            format: Format::text(),
            number: 0,
        }
    }

    pub(crate) fn format(&mut self, format: Format) {
        self.format = format;
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Begins again with line 1; what was begun is forgotten.
    pub(crate) fn restart(&mut self) {
        self.lines = Lines::default();
        self.number = 0;
    }

    /// Publishes the lines that end in a piece. The status says how the last of
    /// them was.
    pub(crate) fn take(&mut self, piece: &[u8], feed: &mut Feed<'_>) {
        self.read(feed, |lines, line| lines.take(piece, line));
    }

    /// Publishes a line that has no end.
    pub(crate) fn finish(&mut self, feed: &mut Feed<'_>) {
        self.read(feed, |lines, line| lines.finish(line));
    }

    fn read(
        &mut self,
        feed: &mut Feed<'_>,
        read: impl FnOnce(&mut Lines, &mut dyn FnMut(Result<&str, TooLong>)),
    ) {
        let (place, number, format) = (&self.place, &mut self.number, &mut self.format);
        read(&mut self.lines, &mut |line| {
            *number += 1;
            let before = feed.published();
            let published = match line {
                Ok(line) if line.trim().is_empty() => return,
                Ok(line) => format.publish(feed, line),
                Err(_) => Err(format!("it is longer than {LENGTH_MAX} bytes")),
            };
            match published {
                Ok(()) if feed.published() > before => feed.working(),
                // It says nothing, about the source neither.
                Ok(()) => {}
                Err(why) => feed.failing(Failure::new(place, format!("line {number}: {why}"))),
            }
        });
    }
}
