//! The receiving end: frames of a name become events of a source.

use std::collections::BTreeSet;

use milieu_transfer::{Decode, Error, Event, Mode, Rights};

use super::Terms;
use crate::books::Dropped;
use crate::engine::{Frame, Payload};
use crate::graph::{End, SourceId};
use crate::operator::Reason;

/// How many missing events are known by number. What comes later than so many
/// others counts as doubled.
const MISSING_MAX: u64 = 4096;

/// The way from a machine.
pub(super) struct Arrival {
    /// What its events are, as the link has learned it.
    pub learned: u64,
    pub source: SourceId,
    /// Whether its events may set private fields.
    rights: Rights,
    decoder: Option<Decoder>,
    /// Whether a whole frame was asked for.
    pub is_asked: bool,
    /// The greatest number that has come.
    highest: u64,
    /// Numbers below it that have not, as far as they are remembered.
    missing: BTreeSet<u64>,
    /// How many have not come and are remembered no more.
    forgotten: u64,
    granted: u64,
    arrived: u64,
    taken: u64,
    dropped: Dropped,
}

struct Decoder {
    mode: u32,
    schema: u32,
    decode: Box<dyn Decode>,
}

impl Arrival {
    pub fn new(learned: u64, source: SourceId, rights: Rights, window: u64) -> Arrival {
        Arrival {
            learned,
            source,
            rights,
            decoder: None,
            is_asked: false,
            highest: 0,
            missing: BTreeSet::new(),
            forgotten: 0,
            granted: window,
            arrived: 0,
            taken: 0,
            dropped: Dropped::default(),
        }
    }

    pub fn end(&self) -> End {
        End::In {
            arrived: self.arrived,
            taken: self.taken,
            dropped: self.dropped.clone(),
            missing: self.forgotten + self.missing.len() as u64,
        }
    }

    /// The event of a frame that has come, if it goes on.
    pub fn take<'a>(
        &mut self,
        frame: Frame,
        terms: &Terms,
        mode: impl FnOnce(u32) -> Option<&'a dyn Mode>,
    ) -> Result<Event, Reason> {
        self.arrived += 1;
        let event = self
            .check(frame.sequence)
            .and_then(|()| match frame.payload {
                Payload::Event(event) => self.allow(event),
                Payload::Bytes(bytes) => self.decode(frame.mode, frame.schema, &bytes, terms, mode),
            });
        match &event {
            Ok(_) => self.taken += 1,
            Err(reason) => self.dropped.add(*reason, 1),
        }
        event
    }

    /// Drops a frame without a look at it.
    pub fn refuse(&mut self, reason: Reason) {
        self.arrived += 1;
        self.dropped.add(reason, 1);
    }

    /// How much to grant now, if that is worth a message.
    pub fn grant(&mut self, window: u64) -> Option<u64> {
        let wanted = self.highest.saturating_add(window);
        let is_worth_it = wanted.saturating_sub(self.granted) >= window.div_ceil(2);
        is_worth_it.then(|| {
            self.granted = wanted;
            wanted
        })
    }

    fn check(&mut self, sequence: u64) -> Result<(), Reason> {
        if sequence == 0 {
            return Err(Reason::Malformed);
        }
        if sequence <= self.highest {
            return Err(match self.missing.remove(&sequence) {
                true => Reason::Late,
                false => Reason::Duplicate,
            });
        }
        let first = (self.highest + 1).max(sequence.saturating_sub(MISSING_MAX));
        self.forgotten = self.forgotten.saturating_add(first - self.highest - 1);
        self.missing.extend(first..sequence);
        while self.missing.len() as u64 > MISSING_MAX {
            self.missing.pop_first();
            self.forgotten += 1;
        }
        self.highest = sequence;
        Ok(())
    }

    fn decode<'a>(
        &mut self,
        mode: u32,
        schema: u32,
        bytes: &[u8],
        terms: &Terms,
        known: impl FnOnce(u32) -> Option<&'a dyn Mode>,
    ) -> Result<Event, Reason> {
        let is_it = |decoder: &Decoder| (decoder.mode, decoder.schema) == (mode, schema);
        if !self.decoder.as_ref().is_some_and(is_it) {
            if self.decoder.as_ref().is_some_and(|its| its.schema > schema) {
                return Err(Reason::Late);
            }
            let known = known(mode).ok_or(Reason::Malformed)?;
            let mut decode = known.decoder(terms.limits, self.rights);
            terms.types.iter().for_each(|of| decode.expect(of));
            self.decoder = Some(Decoder {
                mode,
                schema,
                decode,
            });
        }
        let decoder = self.decoder.as_mut().ok_or(Reason::Malformed)?;
        let event = decoder.decode.decode(bytes);
        event.map_err(|error| match error {
            Error::Lost { .. } | Error::UnknownSchema(_) => Reason::Lost,
            Error::Private => Reason::Denied,
            _ => Reason::Malformed,
        })
    }

    /// The event as it is, unless it sets what its sender may not set.
    fn allow(&self, event: Event) -> Result<Event, Reason> {
        if self.rights.may_set().is_some() {
            return Ok(event);
        }
        let all = event.value(Rights::ALL).map_err(|_| Reason::Malformed)?;
        match all == all.readable(Rights::NONE) {
            true => Ok(event),
            false => Err(Reason::Denied),
        }
    }
}
