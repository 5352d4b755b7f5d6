//! Writing MessagePack.

use super::{PRIVATE, SPAN, TIME};
use crate::emit::{Said, Sink};
use crate::error::Error;
use crate::time::{Span, Time};

/// Appends what is said to it.
pub(super) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    open: Vec<Open>,
}

/// A list, a map or an extension that is being written.
struct Open {
    head: usize,
    announced: Option<usize>,
    entries: usize,
}

/// The first bytes of what has a length: where they are short, and for 8, 16 and
/// 32 bits of it; 0 where there is no such form.
type Forms = (u8, usize, [u8; 3]);

const TEXT: Forms = (0xa0, 32, [0xd9, 0xda, 0xdb]);
const BYTES: Forms = (0, 0, [0xc4, 0xc5, 0xc6]);
const LIST: Forms = (0x90, 16, [0, 0xdc, 0xdd]);
const MAP: Forms = (0x80, 16, [0, 0xde, 0xdf]);

impl<'a> Writer<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Writer<'a> {
        Writer {
            out,
            open: Vec::new(),
        }
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "as much as there is room for"
    )]
    fn head(&mut self, (short, below, [small, middle, large]): Forms, length: usize) -> Said {
        match length {
            _ if length < below => self.out.push(short | length as u8),
            0..=0xff if small != 0 => self.out.extend_from_slice(&[small, length as u8]),
            0..=0xffff => {
                self.out.push(middle);
                self.out.extend_from_slice(&(length as u16).to_be_bytes());
            }
            _ => {
                let Ok(length) = u32::try_from(length) else {
                    let limit = u32::MAX as usize;
                    return Err(Error::TooLarge { limit });
                };
                self.out.push(large);
                self.out.extend_from_slice(&length.to_be_bytes());
            }
        }
        Ok(())
    }

    fn begin(&mut self, forms: Forms, announced: Option<usize>) -> Said {
        let head = self.out.len();
        self.head(forms, announced.unwrap_or(0))?;
        self.open.push(Open {
            head,
            announced,
            entries: 0,
        });
        Ok(())
    }

    fn end(&mut self, forms: Forms) -> Said {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        if open.announced == Some(open.entries) {
            return Ok(());
        }
        // Fewer were said than announced, or nobody knew how many there would be.
        let body = self.out.split_off(open.head);
        let width = match body[0] {
            first if first == forms.2[1] => 3,
            first if first == forms.2[2] => 5,
            _ => 1,
        };
        self.head(forms, open.entries)?;
        self.out.extend_from_slice(&body[width..]);
        Ok(())
    }

    fn raw(&mut self, first: u8, bytes: &[u8]) -> Said {
        self.out.push(first);
        self.out.extend_from_slice(bytes);
        Ok(())
    }
}

impl Sink for Writer<'_> {
    fn null(&mut self) -> Said {
        self.raw(0xc0, &[])
    }

    fn bool(&mut self, value: bool) -> Said {
        self.raw(0xc2 + u8::from(value), &[])
    }

    fn int(&mut self, value: i64) -> Said {
        if let Ok(value) = u64::try_from(value) {
            return self.uint(value);
        }
        if let Ok(value) = i8::try_from(value) {
            let [byte] = value.to_be_bytes();
            return match value {
                -32..=-1 => self.raw(byte, &[]),
                _ => self.raw(0xd0, &[byte]),
            };
        }
        if let Ok(value) = i16::try_from(value) {
            return self.raw(0xd1, &value.to_be_bytes());
        }
        match i32::try_from(value) {
            Ok(value) => self.raw(0xd2, &value.to_be_bytes()),
            Err(_) => self.raw(0xd3, &value.to_be_bytes()),
        }
    }

    fn uint(&mut self, value: u64) -> Said {
        if let Ok(value) = u8::try_from(value) {
            return match value {
                0..=0x7f => self.raw(value, &[]),
                _ => self.raw(0xcc, &[value]),
            };
        }
        if let Ok(value) = u16::try_from(value) {
            return self.raw(0xcd, &value.to_be_bytes());
        }
        match u32::try_from(value) {
            Ok(value) => self.raw(0xce, &value.to_be_bytes()),
            Err(_) => self.raw(0xcf, &value.to_be_bytes()),
        }
    }

    fn float(&mut self, value: f32) -> Said {
        self.raw(0xca, &value.to_be_bytes())
    }

    fn double(&mut self, value: f64) -> Said {
        self.raw(0xcb, &value.to_be_bytes())
    }

    fn text(&mut self, value: &str) -> Said {
        self.head(TEXT, value.len())?;
        self.out.extend_from_slice(value.as_bytes());
        Ok(())
    }

    fn bytes(&mut self, value: &[u8]) -> Said {
        self.head(BYTES, value.len())?;
        self.out.extend_from_slice(value);
        Ok(())
    }

    /// In 32 or 64 bits where it is after 1970, else in 96.
    fn time(&mut self, value: Time) -> Said {
        let seconds = value.nanoseconds().div_euclid(1_000_000_000);
        let rest = value.nanoseconds().rem_euclid(1_000_000_000).unsigned_abs();
        let [kind] = TIME.to_be_bytes();
        if let (Ok(seconds), 0) = (u32::try_from(seconds), rest) {
            self.raw(0xd6, &[kind])?;
            self.out.extend_from_slice(&seconds.to_be_bytes());
            return Ok(());
        }
        match u64::try_from(seconds) {
            // Our seconds have 34 bits at most, which is what there is room for.
            Ok(seconds) => {
                self.raw(0xd7, &[kind])?;
                let both = rest << 34 | seconds;
                self.out.extend_from_slice(&both.to_be_bytes());
            }
            Err(_) => {
                self.raw(0xc7, &[12, kind])?;
                #[allow(clippy::cast_possible_truncation, reason = "below a thousand million")]
                self.out.extend_from_slice(&(rest as u32).to_be_bytes());
                self.out.extend_from_slice(&seconds.to_be_bytes());
            }
        }
        Ok(())
    }

    fn span(&mut self, value: Span) -> Said {
        let [kind] = SPAN.to_be_bytes();
        self.raw(0xd7, &[kind])?;
        self.out
            .extend_from_slice(&value.nanoseconds().to_be_bytes());
        Ok(())
    }

    fn list(&mut self, length: Option<usize>) -> Said {
        self.begin(LIST, length)
    }

    fn end_list(&mut self) -> Said {
        self.end(LIST)
    }

    fn map(&mut self, length: Option<usize>) -> Said {
        self.begin(MAP, length)
    }

    fn key(&mut self) -> Said {
        Ok(())
    }

    fn value(&mut self) -> Said {
        Ok(())
    }

    fn item(&mut self) -> Said {
        Ok(())
    }

    fn entry(&mut self) -> Said {
        if let Some(open) = self.open.last_mut() {
            open.entries += 1;
        }
        Ok(())
    }

    fn end_map(&mut self) -> Said {
        self.end(MAP)
    }

    fn private(&mut self) -> Said {
        let head = self.out.len();
        let [kind] = PRIVATE.to_be_bytes();
        self.raw(0xc9, &[0, 0, 0, 0, kind])?;
        self.open.push(Open {
            head,
            announced: None,
            entries: 0,
        });
        Ok(())
    }

    fn end_private(&mut self) -> Said {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let Ok(length) = u32::try_from(self.out.len() - open.head - 6) else {
            let limit = u32::MAX as usize;
            return Err(Error::TooLarge { limit });
        };
        self.out[open.head + 1..open.head + 5].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }

    // Without identity: the first error makes the caller write out what is shared.
    fn shared(&mut self, _: u32) -> Said {
        Err(Error::Cycle)
    }

    fn end_shared(&mut self) -> Said {
        Ok(())
    }

    fn link(&mut self, _: u32) -> Said {
        Err(Error::Cycle)
    }

    fn checkpoint(&self) -> usize {
        self.out.len()
    }

    fn rollback(&mut self, to: usize) {
        self.out.truncate(to);
    }
}
