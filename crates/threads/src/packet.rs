//! What programs and the mediator of a whole device tell each other.
//!
//! | Packet | Means | Answer |
//! |---|---|---|
//! | `milieu 2`, with the table's memory | serve this process | `yes`, or `no` and why |
//! | `c` | my table has changed | – |
//! | `w WAITER OWNER` | a thread of mine is about to wait for a lock that another has | – |
//! | `s WAITER` | it has got it, or waits no more | – |
//! | `b THREAD CREATOR` | a thread has begun where its creator was, and returns to what that hands on | – |
//! | `home THREAD`, with a socket | a thread is to be where the program wants it until the other end of that socket is closed | `yes`, by that socket |
//! | `own THREAD`, with a socket | how does the program have it scheduled? | `own POLICY NICE PRIORITY RESET`, by that socket |
//!
//! Threads are numbers of the kernel's, and a program speaks of its own alone. At home may
//! also be a process that one of them has begun, and that has its memory as by `vfork`:
//! `home PROCESS CREATOR`. The first version, `milieu 1`, had the first two.

use core::fmt::Write as _;

use crate::kernel::Text;
use crate::table::Scheduling;

/// The longest packet that a program sends, and more.
pub const BYTES_MAX: usize = 256;

/// What a program tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet {
    /// Serve this process, whose table comes with it.
    Register,
    /// The table has changed.
    Changed,
    /// A thread is about to wait for a lock.
    Waits {
        /// The thread.
        waiter: u32,
        /// Who has the lock.
        owner: u32,
    },
    /// A thread waits for no lock any more.
    Served {
        /// The thread.
        waiter: u32,
    },
    /// A thread has begun, and has inherited where its creator is.
    Begun {
        /// The thread.
        thread: u32,
        /// Who has begun it.
        creator: u32,
    },
    /// A thread is to be where the program wants it for a while.
    Home {
        /// The thread, or a process.
        thread: u32,
        /// The thread that has begun that process.
        creator: Option<u32>,
    },
    /// How does the program have a thread scheduled?
    Own {
        /// The thread.
        thread: u32,
    },
}

impl Packet {
    /// What these bytes say; none if it is nothing of this.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Packet> {
        let mut words = Words::of(bytes)?;
        let packet = match words.next()? {
            "milieu" => match words.next()? {
                "1" | "2" => Packet::Register,
                _ => return None,
            },
            "c" => Packet::Changed,
            "w" => Packet::Waits {
                waiter: words.thread()?,
                owner: words.thread()?,
            },
            "s" => Packet::Served {
                waiter: words.thread()?,
            },
            "b" => Packet::Begun {
                thread: words.thread()?,
                creator: words.thread()?,
            },
            "home" => Packet::Home {
                thread: words.thread()?,
                creator: match words.0.clone().next() {
                    Some(_) => Some(words.thread()?),
                    None => None,
                },
            },
            "own" => Packet::Own {
                thread: words.thread()?,
            },
            _ => return None,
        };
        words.is_over().then_some(packet)
    }

    /// As it is sent.
    #[must_use]
    pub fn text(&self) -> Line {
        match self {
            Packet::Register => Line::of(format_args!("milieu 2")),
            Packet::Changed => Line::of(format_args!("c")),
            Packet::Waits { waiter, owner } => Line::of(format_args!("w {waiter} {owner}")),
            Packet::Served { waiter } => Line::of(format_args!("s {waiter}")),
            Packet::Begun { thread, creator } => Line::of(format_args!("b {thread} {creator}")),
            Packet::Home {
                thread,
                creator: None,
            } => Line::of(format_args!("home {thread}")),
            Packet::Home {
                thread,
                creator: Some(creator),
            } => Line::of(format_args!("home {thread} {creator}")),
            Packet::Own { thread } => Line::of(format_args!("own {thread}")),
        }
    }
}

/// What the mediator answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'a> {
    /// So it is.
    Yes,
    /// It is not, and why.
    No(&'a str),
    /// This is how the program has a thread scheduled.
    Own(Scheduling),
}

impl<'a> Answer<'a> {
    /// What these bytes say; none if it is nothing of this.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<Answer<'a>> {
        let text = core::str::from_utf8(bytes).ok()?;
        if let Some(why) = text.strip_prefix("no ") {
            return Some(Answer::No(why));
        }
        let mut words = Words::of(bytes)?;
        let answer = match words.next()? {
            "yes" => Answer::Yes,
            "own" => {
                let [policy, nice, priority, reset] = [(); 4].map(|()| words.number());
                let (policy, nice) = (u8::try_from(policy?).ok()?, i8::try_from(nice?).ok()?);
                let priority = u8::try_from(priority?).ok()?;
                let is_sound = policy < 128 && (-20..=19).contains(&nice) && priority < 100;
                let is_reset_on_fork = match reset? {
                    0 => false,
                    1 => true,
                    _ => return None,
                };
                is_sound.then_some(Answer::Own(Scheduling {
                    policy,
                    nice,
                    realtime_priority: priority,
                    is_reset_on_fork,
                }))?
            }
            _ => return None,
        };
        words.is_over().then_some(answer)
    }

    /// As it is sent.
    #[must_use]
    pub fn text(&self) -> Line {
        match self {
            Answer::Yes => Line::of(format_args!("yes")),
            Answer::No(why) => Line::of(format_args!("no {why}")),
            Answer::Own(own) => Line::of(format_args!(
                "own {} {} {} {}",
                own.policy,
                own.nice,
                own.realtime_priority,
                u8::from(own.is_reset_on_fork)
            )),
        }
    }
}

/// A packet as it is sent.
pub struct Line(Text<BYTES_MAX>);

impl Line {
    /// What does not fit is left out.
    fn of(arguments: core::fmt::Arguments<'_>) -> Line {
        let mut text = Text::new();
        let _ = text.write_fmt(arguments);
        Line(text)
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_str().as_bytes()
    }
}

/// Words between blanks.
struct Words<'a>(core::str::Split<'a, char>);

impl<'a> Words<'a> {
    fn of(bytes: &'a [u8]) -> Option<Words<'a>> {
        let text = core::str::from_utf8(bytes).ok()?;
        (bytes.len() <= BYTES_MAX).then(|| Words(text.split(' ')))
    }

    fn next(&mut self) -> Option<&'a str> {
        self.0.next()
    }

    fn number(&mut self) -> Option<i64> {
        let word = self.next()?;
        let digits = word.strip_prefix('-').unwrap_or(word);
        let is_number = digits.bytes().all(|it| it.is_ascii_digit());
        is_number.then(|| word.parse().ok())?
    }

    /// A number that a thread may have.
    fn thread(&mut self) -> Option<u32> {
        let number = u32::try_from(self.number()?).ok()?;
        (number != 0 && i32::try_from(number).is_ok()).then_some(number)
    }

    fn is_over(&mut self) -> bool {
        self.next().is_none()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        for packet in [
            Packet::Register,
            Packet::Changed,
            Packet::Waits {
                waiter: 1,
                owner: i32::MAX as u32,
            },
            Packet::Served { waiter: 4711 },
            Packet::Begun {
                thread: 4711,
                creator: 17,
            },
            Packet::Home {
                thread: 4711,
                creator: None,
            },
            Packet::Home {
                thread: 4711,
                creator: Some(17),
            },
            Packet::Own { thread: 4711 },
        ] {
            assert_eq!(Packet::read(packet.text().as_bytes()), Some(packet));
        }
        let own = Scheduling {
            policy: 2,
            nice: -20,
            realtime_priority: 99,
            is_reset_on_fork: true,
        };
        for answer in [
            Answer::Yes,
            Answer::No("it is none of yours"),
            Answer::Own(own),
            Answer::Own(Scheduling::default()),
        ] {
            assert_eq!(Answer::read(answer.text().as_bytes()), Some(answer));
        }
        // As it was said first.
        assert_eq!(Packet::read(b"milieu 1"), Some(Packet::Register));
    }

    #[test]
    fn what_is_nothing_of_this_is_nothing() {
        for bytes in [
            "",
            " ",
            "milieu",
            "milieu 3",
            "milieu 2 ",
            "c c",
            "w 1",
            "w 1 2 3",
            "w 0 1",
            "w -1 2",
            "w 1  2",
            "s",
            "s +1",
            "s 4294967296",
            "s 2147483648",
            "b 1",
            "b 0 1",
            "b 1 2 3",
            "home",
            "home x",
            "home 1 ",
            "home 1 0",
            "home 1 2 3",
            "own 1\n",
            "status",
            "yes",
        ] {
            assert_eq!(Packet::read(bytes.as_bytes()), None, "{bytes:?}");
        }
        for bytes in [
            "",
            "ye",
            "yes ",
            "no",
            "own",
            "own 0 0 0",
            "own 0 0 0 2",
            "own 128 0 0 0",
            "own 0 20 0 0",
            "own 0 -21 0 0",
            "own 0 0 100 0",
            "own 0 0 0 0 0",
            "own 0 --1 0 0",
        ] {
            assert_eq!(Answer::read(bytes.as_bytes()), None, "{bytes:?}");
        }
        assert_eq!(Packet::read(&[b'c', 0xff]), None);
    }

    proptest! {
        #[test]
        #[cfg_attr(miri, ignore = "many generated texts, of code that is safe")]
        fn bytes_are_what_they_are_said_to_be(
            bytes in "(milieu|c|w|s|b|home|own|yes|no|-?[0-9]{1,11}| ){0,9}"
        ) {
            if let Some(packet) = Packet::read(bytes.as_bytes()) {
                prop_assert_eq!(Packet::read(packet.text().as_bytes()), Some(packet));
            }
            if let Some(answer) = Answer::read(bytes.as_bytes()) {
                let text = answer.text();
                prop_assert_eq!(Answer::read(text.as_bytes()), Some(answer));
            }
        }
    }
}
