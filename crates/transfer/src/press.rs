//! Shared serialization for receivers that take events when they can: each has a
//! queue of its own, and what several find in theirs is encoded once.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use crate::error::Error;
use crate::event::Event;
use crate::mode::{Encode, Mode};
use crate::private::Rights;

/// Encodes the events of a flow in one mode for receivers of equal rights, each
/// of which brings the next event of its own queue and gets the frame for it.
///
/// An [`Outlet`](crate::Outlet) hands out frames when an event comes; here a
/// receiver asks for them, and may be behind others or have lost some. In modes
/// whose frames build on each other it then gets frames of its own until it has
/// caught up. Frames are kept until all have had them, but never more than was
/// said.
///
/// ```
/// # use std::sync::Arc;
/// # use milieu_transfer::{Delta, Event, Header, Mode, Name, Origin, Press, Rights, Stream, Time};
/// let delta: Arc<dyn Mode> = Arc::new(Delta::default());
/// let mut press = Press::new(delta, Rights::NONE, 1024);
/// let (mut one, mut other) = (press.join(), press.join());
/// # let stream = Arc::new(Stream { name: Name::root(), origin: Origin("o".into()), incarnation: 1 });
/// # let header = Header { stream, time: Time::from_seconds(0), sequence: 1, quality: None };
/// let event = Event::new(header, 21.5);
/// let frame = press.frame(&mut one, &event)?;
/// assert!(Arc::ptr_eq(&frame, &press.frame(&mut other, &event)?));
/// assert_eq!(press.encodings(), 1);
/// # Ok::<(), milieu_transfer::Error>(())
/// ```
///
/// Source: A. Abram White, *Performance and Interoperability in Solar*,
/// section 7.
pub struct Press {
    mode: Arc<dyn Mode>,
    rights: Rights,
    encoder: Box<dyn Encode>,
    /// Whether nothing has been encoded, so that the next frame says all.
    is_fresh: bool,
    /// What some may still ask for, the oldest first, and the newest in any case.
    kept: VecDeque<Kept>,
    /// The number of the first of these.
    first: u64,
    most: usize,
    /// How many receivers want each number next.
    wanted: BTreeMap<u64, usize>,
    encodings: u64,
    /// Kept for its room.
    buffer: Vec<u8>,
}

type Frame = Result<Arc<[u8]>, Error>;

struct Kept {
    event: Event,
    /// For those who have the frames before it.
    next: Frame,
    /// For all others, once somebody needed it.
    whole: Option<Frame>,
}

/// How far a receiver of a [`Press`] is. It is given back by
/// [`leave`](Press::leave).
pub struct Place {
    /// The number of the event that it wants next.
    at: u64,
    /// Whether it has what that builds on.
    follows: bool,
    /// While it is behind.
    own: Option<Box<dyn Encode>>,
}

impl Press {
    /// A press that keeps at most so many frames: as many as may wait for the
    /// slowest receiver.
    #[must_use]
    pub fn new(mode: Arc<dyn Mode>, rights: Rights, most: usize) -> Press {
        Press {
            encoder: mode.encoder(rights),
            mode,
            rights,
            is_fresh: true,
            kept: VecDeque::new(),
            first: 0,
            most: most.max(1),
            wanted: BTreeMap::new(),
            encodings: 0,
            buffer: Vec::new(),
        }
    }

    /// A new receiver.
    pub fn join(&mut self) -> Place {
        let at = self.end();
        *self.wanted.entry(at).or_default() += 1;
        Place {
            at,
            follows: false,
            own: None,
        }
    }

    /// The receiver wants nothing more.
    pub fn leave(&mut self, place: &Place) {
        self.unwant(place.at);
        self.forget();
    }

    /// How many frames have been encoded.
    #[must_use]
    pub fn encodings(&self) -> u64 {
        self.encodings
    }

    /// The frame of the next event of a receiver, one that it has not had.
    ///
    /// # Errors
    /// As [`Encode::encode`]; the event then counts as not sent.
    pub fn frame(&mut self, place: &mut Place, event: &Event) -> Frame {
        let number = match self.find(place.at, event) {
            Some(number) => number,
            None => self.add(event),
        };
        let follows = place.follows && place.at == number;
        self.go_on(place, number + 1);
        let kept = &self.kept[(number - self.first) as usize];
        if follows || self.encoder.is_stateless() {
            let frame = kept.next.clone();
            self.forget();
            return frame;
        }
        let frame = match number + 1 == self.end() {
            true => self.whole(place),
            false => self.by_itself(place, |encoder, out| encoder.encode(event, out)),
        };
        self.forget();
        frame
    }

    /// The event that a receiver had last, for one that has lost its place.
    ///
    /// # Errors
    /// As [`Encode::encode`].
    pub fn again(&mut self, place: &mut Place, event: &Event) -> Frame {
        let newest = self.kept.back();
        if newest.is_some_and(|kept| kept.event.is(event)) && place.at == self.end() {
            return self.whole(place);
        }
        place.follows = false;
        place.own = None;
        self.by_itself(place, |encoder, out| encoder.encode(event, out))
    }

    /// The newest event, for those who do not have the frames before it.
    fn whole(&mut self, place: &mut Place) -> Frame {
        let at = self.kept.len() - 1;
        let kept = &self.kept[at];
        let whole = match (&kept.whole, &kept.next) {
            (Some(whole), _) => whole.clone(),
            // Nothing was encoded of it.
            (None, Err(error)) => Err(error.clone()),
            (None, Ok(_)) => {
                let event = kept.event.clone();
                self.encode(|encoder, out| encoder.key_frame(&event, out))
            }
        };
        self.kept[at].whole = Some(whole.clone());
        place.follows = whole.is_ok();
        if place.follows {
            place.own = None;
        }
        whole
    }

    fn by_itself(
        &mut self,
        place: &mut Place,
        encode: impl FnOnce(&mut dyn Encode, &mut Vec<u8>) -> Result<(), Error>,
    ) -> Frame {
        place.follows = false;
        let encoder = place
            .own
            .get_or_insert_with(|| self.mode.encoder(self.rights));
        self.buffer.clear();
        self.encodings += 1;
        encode(&mut **encoder, &mut self.buffer)?;
        Ok(self.buffer.as_slice().into())
    }

    fn end(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// Its number if it was encoded and is still there. Mostly it is the one that
    /// comes next.
    fn find(&self, next: u64, event: &Event) -> Option<u64> {
        let at = |number: u64| {
            self.kept
                .get(usize::try_from(number.checked_sub(self.first)?).ok()?)
        };
        let is_it = |number: u64| at(number).is_some_and(|kept| kept.event.is(event));
        let mut all = (self.first..self.end()).rev();
        is_it(next)
            .then_some(next)
            .or_else(|| all.find(|number| is_it(*number)))
    }

    fn add(&mut self, event: &Event) -> u64 {
        let next = self.encode(|encoder, out| encoder.encode(event, out));
        let says_all = self.is_fresh || self.encoder.is_stateless();
        self.is_fresh &= next.is_err();
        let whole = (says_all && next.is_ok()).then(|| next.clone());
        let event = event.clone();
        self.kept.push_back(Kept { event, next, whole });
        self.end() - 1
    }

    fn encode(
        &mut self,
        encode: impl FnOnce(&mut dyn Encode, &mut Vec<u8>) -> Result<(), Error>,
    ) -> Frame {
        self.buffer.clear();
        self.encodings += 1;
        encode(&mut *self.encoder, &mut self.buffer)?;
        Ok(self.buffer.as_slice().into())
    }

    fn go_on(&mut self, place: &mut Place, to: u64) {
        self.unwant(place.at);
        *self.wanted.entry(to).or_default() += 1;
        place.at = to;
    }

    fn unwant(&mut self, number: u64) {
        if let Some(count) = self.wanted.get_mut(&number) {
            *count -= 1;
            if *count == 0 {
                self.wanted.remove(&number);
            }
        }
    }

    /// Forgets what all have had, and what nobody can be waiting for.
    fn forget(&mut self) {
        let next = self.wanted.keys().next().copied().unwrap_or(u64::MAX);
        while self.kept.len() > 1 && (self.first < next || self.kept.len() > self.most) {
            self.kept.pop_front();
            self.first += 1;
        }
    }
}

impl fmt::Debug for Press {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let receivers: usize = self.wanted.values().sum();
        write!(f, "{:?} for {receivers}", self.mode)
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Place").field(&self.at).finish()
    }
}
