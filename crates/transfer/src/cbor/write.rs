//! Writing CBOR.

use std::collections::HashMap;

use super::{LINK, NULL, PRIVATE, SHARED, SPAN, TIME_SECONDS, TIME_TEXT};
use crate::emit::{Said, Sink};
use crate::error::Error;
use crate::time::{Span, Time};

/// Appends what is said to it.
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    identity: bool,
    open: Vec<Open>,
    /// The numbers of shared values by their appearance.
    shared: HashMap<u32, u64>,
}

/// A list or a map that is being written.
struct Open {
    head: usize,
    announced: Option<usize>,
    entries: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>, identity: bool) -> Writer<'a> {
        Writer {
            out,
            identity,
            open: Vec::new(),
            shared: HashMap::new(),
        }
    }

    fn head(&mut self, major: u8, argument: u64) {
        let major = major << 5;
        #[allow(
            clippy::cast_possible_truncation,
            reason = "as much as there is room for"
        )]
        match argument {
            0..=23 => self.out.push(major | argument as u8),
            24..=0xff => self.out.extend_from_slice(&[major | 24, argument as u8]),
            0x100..=0xffff => {
                self.out.push(major | 25);
                self.out.extend_from_slice(&(argument as u16).to_be_bytes());
            }
            0x1_0000..=0xffff_ffff => {
                self.out.push(major | 26);
                self.out.extend_from_slice(&(argument as u32).to_be_bytes());
            }
            _ => {
                self.out.push(major | 27);
                self.out.extend_from_slice(&argument.to_be_bytes());
            }
        }
    }

    fn begin(&mut self, major: u8, announced: Option<usize>) -> Said {
        let head = self.out.len();
        match announced {
            Some(length) => self.head(major, length as u64),
            None => self.out.push(major << 5 | 31),
        }
        self.open.push(Open {
            head,
            announced,
            entries: 0,
        });
        Ok(())
    }

    fn end(&mut self, major: u8) -> Said {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        match open.announced {
            None => self.out.push(0xff),
            Some(length) if length == open.entries => {}
            // Some entries were not said, so the announcement becomes a smaller one.
            Some(_) => {
                let body = self.out.split_off(open.head);
                let width = match body[0] & 31 {
                    24 => 2,
                    25 => 3,
                    26 => 5,
                    27 => 9,
                    _ => 1,
                };
                self.head(major, open.entries as u64);
                self.out.extend_from_slice(&body[width..]);
            }
        }
        Ok(())
    }
}

impl Sink for Writer<'_> {
    fn null(&mut self) -> Said {
        self.out.push(NULL);
        Ok(())
    }

    fn bool(&mut self, value: bool) -> Said {
        self.out.push(0xf4 + u8::from(value));
        Ok(())
    }

    fn int(&mut self, value: i64) -> Said {
        match u64::try_from(value) {
            Ok(value) => self.head(0, value),
            Err(_) => self.head(1, (!value).unsigned_abs()),
        }
        Ok(())
    }

    fn uint(&mut self, value: u64) -> Said {
        self.head(0, value);
        Ok(())
    }

    fn float(&mut self, value: f32) -> Said {
        self.out.push(0xfa);
        self.out.extend_from_slice(&value.to_be_bytes());
        Ok(())
    }

    fn double(&mut self, value: f64) -> Said {
        self.out.push(0xfb);
        self.out.extend_from_slice(&value.to_be_bytes());
        Ok(())
    }

    fn text(&mut self, value: &str) -> Said {
        self.head(3, value.len() as u64);
        self.out.extend_from_slice(value.as_bytes());
        Ok(())
    }

    fn bytes(&mut self, value: &[u8]) -> Said {
        self.head(2, value.len() as u64);
        self.out.extend_from_slice(value);
        Ok(())
    }

    fn time(&mut self, value: Time) -> Said {
        if value.nanoseconds() % 1_000_000_000 == 0 {
            self.head(6, TIME_SECONDS);
            return self.int(value.nanoseconds() / 1_000_000_000);
        }
        self.head(6, TIME_TEXT);
        self.text(&value.to_string())
    }

    fn span(&mut self, value: Span) -> Said {
        self.head(6, SPAN);
        self.head(5, 2);
        self.int(1)?;
        self.int(value.nanoseconds().div_euclid(1_000_000_000))?;
        self.int(-9)?;
        self.int(value.nanoseconds().rem_euclid(1_000_000_000))
    }

    fn list(&mut self, length: Option<usize>) -> Said {
        self.begin(4, length)
    }

    fn end_list(&mut self) -> Said {
        self.end(4)
    }

    fn map(&mut self, length: Option<usize>) -> Said {
        self.begin(5, length)
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
        self.end(5)
    }

    fn private(&mut self) -> Said {
        self.head(6, PRIVATE);
        Ok(())
    }

    fn end_private(&mut self) -> Said {
        Ok(())
    }

    fn shared(&mut self, number: u32) -> Said {
        if !self.identity {
            return Err(Error::Cycle);
        }
        let next = self.shared.len() as u64;
        if self.shared.insert(number, next).is_some() {
            let what = format!("two shared values have the number {number}");
            return Err(Error::Body(what));
        }
        self.head(6, SHARED);
        Ok(())
    }

    fn end_shared(&mut self) -> Said {
        Ok(())
    }

    fn link(&mut self, number: u32) -> Said {
        if !self.identity {
            return Err(Error::Cycle);
        }
        let Some(&appeared) = self.shared.get(&number) else {
            return Err(Error::Dangling(number.into()));
        };
        self.head(6, LINK);
        self.head(0, appeared);
        Ok(())
    }

    fn checkpoint(&self) -> usize {
        self.out.len()
    }

    fn rollback(&mut self, to: usize) {
        self.out.truncate(to);
    }
}
