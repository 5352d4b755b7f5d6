//! What contexts look at first: the generation, and the last switches.
//!
//! All of it is one cache line, which publishing writes and synchronizing reads.
//! Who is behind by a switch or two, of layers with short values, needs nothing
//! else: it takes no lock and counts no reference, so that threads which
//! synchronize do not wait for each other.

use crate::{
    layer::Global,
    resolve::Slot,
    sync::{AtomicU64, Ordering, fence},
};

/// How many switches are noted.
const NOTED: usize = 2;

/// The longest value of a layer that is noted.
const SHORT: usize = size_of::<u64>();

/// See the [module](self).
#[repr(align(64))]
pub struct News {
    /// The generation that contexts may see. It is all that an idle
    /// synchronization reads.
    generation: AtomicU64,
    noted: [Noted; NOTED],
}

/// A switch as it is noted, under the lower bits of its generation.
struct Noted {
    /// The generation, or 0 while the rest is written.
    generation: AtomicU64,
    /// The layer, and in the upper half the length of its value.
    layer: AtomicU64,
    text: AtomicU64,
}

impl Noted {
    fn new() -> Self {
        Noted {
            generation: AtomicU64::new(0),
            layer: AtomicU64::new(0),
            text: AtomicU64::new(0),
        }
    }
}

/// A switch of a layer to a short value; to none, if it is empty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Short {
    pub slot: Slot,
    length: u8,
    text: [u8; SHORT],
}

impl Short {
    /// Of no layer.
    pub const NONE: Short = Short {
        slot: Slot::MAX,
        length: 0,
        text: [0; SHORT],
    };

    /// The switch to this binding, if its value is short.
    pub fn of(slot: Slot, binding: &Global) -> Option<Short> {
        match binding {
            Global::Inactive => Short::to(slot, ""),
            Global::Text(text) => Short::to(slot, text),
            Global::Bound(_) => None,
        }
    }

    /// The switch to this value, if it is short.
    #[allow(clippy::cast_possible_truncation)]
    pub fn to(slot: Slot, value: &str) -> Option<Short> {
        let mut text = [0; SHORT];
        text.get_mut(..value.len())?
            .copy_from_slice(value.as_bytes());
        Some(Short {
            slot,
            length: value.len() as u8,
            text,
        })
    }

    /// The value.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(self.text.get(..usize::from(self.length))?).ok()
    }
}

impl News {
    pub fn new() -> Self {
        News {
            generation: AtomicU64::new(0),
            noted: [Noted::new(), Noted::new()],
        }
    }

    /// The generation that contexts may see.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Lets contexts see a generation. Called by one thread at a time.
    pub fn show(&self, generation: u64) {
        self.generation.store(generation, Ordering::Release);
    }

    #[allow(clippy::cast_possible_truncation)]
    fn place(&self, generation: u64) -> &Noted {
        &self.noted[generation as usize % NOTED]
    }

    /// Notes the switch that a generation consists of, which is shown
    /// afterwards. Called by one thread at a time.
    pub fn note(&self, generation: u64, switch: Short) {
        let noted = self.place(generation);
        noted.generation.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        let layer = u64::from(switch.slot) | u64::from(switch.length) << 32;
        noted.layer.store(layer, Ordering::Relaxed);
        let text = u64::from_le_bytes(switch.text);
        noted.text.store(text, Ordering::Relaxed);
        noted.generation.store(generation, Ordering::Release);
    }

    /// The switch that a generation consists of, if it is still noted.
    #[allow(clippy::cast_possible_truncation)]
    fn switch(&self, generation: u64) -> Option<Short> {
        let noted = self.place(generation);
        if noted.generation.load(Ordering::Acquire) != generation {
            return None;
        }
        let layer = noted.layer.load(Ordering::Relaxed);
        let text = noted.text.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let is_whole = noted.generation.load(Ordering::Relaxed) == generation;
        is_whole.then(|| Short {
            slot: layer as Slot,
            length: (layer >> 32) as u8,
            text: text.to_le_bytes(),
        })
    }

    /// The generation, and what one layer has been switched to since; `None`
    /// where there is more to it than that.
    #[inline]
    pub fn latest(&self, seen: u64) -> Option<(u64, Short)> {
        let generation = self.generation();
        let behind = generation.checked_sub(seen)?;
        if !(1..=NOTED as u64).contains(&behind) {
            return None;
        }
        let latest = self.switch(generation)?;
        let alone = behind == 1 || self.switch(seen + 1)?.slot == latest.slot;
        alone.then_some((generation, latest))
    }

    /// The generation, and the switches that led to it from the one which was
    /// seen, in their order; `None` where there are others, or something else.
    pub fn since(&self, seen: u64) -> Option<(u64, impl Iterator<Item = Short>)> {
        let generation = self.generation();
        let (first, second) = match generation.checked_sub(seen)? {
            1 => (None, self.switch(generation)?),
            2 => (Some(self.switch(seen + 1)?), self.switch(generation)?),
            _ => return None,
        };
        // Of two for one layer the second one counts.
        let first = first.filter(|first| first.slot != second.slot);
        Some((generation, first.into_iter().chain([second])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(slot: Slot, text: &str) -> Short {
        let binding = match text {
            "" => Global::Inactive,
            _ => Global::Text(text.into()),
        };
        Short::of(slot, &binding).expect("a short value")
    }

    fn since(news: &News, seen: u64) -> Option<(u64, Vec<Short>)> {
        let (generation, switches) = news.since(seen)?;
        Some((generation, switches.collect()))
    }

    #[cfg(not(loom))]
    #[test]
    fn the_last_two_switches_are_known() {
        let news = News::new();
        assert_eq!(since(&news, 0), None);
        news.note(1, switch(7, "active"));
        assert_eq!(since(&news, 0), None, "it is not shown yet");
        news.show(1);
        assert_eq!(since(&news, 0), Some((1, vec![switch(7, "active")])));
        assert_eq!(since(&news, 1), None);
        news.note(2, switch(9, "12345678"));
        news.show(2);
        let both = vec![switch(7, "active"), switch(9, "12345678")];
        assert_eq!(since(&news, 0), Some((2, both)));
        news.note(3, switch(9, ""));
        news.show(3);
        assert_eq!(since(&news, 0), None, "it is too long ago");
        assert_eq!(since(&news, 1), Some((3, vec![switch(9, "")])));
        // Something else than a switch.
        news.show(4);
        assert_eq!(since(&news, 3), None);
        news.note(5, switch(9, "ä"));
        news.show(5);
        assert_eq!(since(&news, 3), None);
        assert_eq!(since(&news, 4), Some((5, vec![switch(9, "ä")])));
        assert_eq!(switch(9, "ä").text(), Some("ä"));
        assert_eq!(Short::of(1, &Global::Text("123456789".into())), None);
    }

    #[cfg(not(loom))]
    #[test]
    fn the_latest_is_of_one_layer_alone() {
        let news = News::new();
        for (generation, (slot, text)) in (1..).zip([(7, "a"), (7, ""), (9, "b"), (9, "c")]) {
            news.note(generation, switch(slot, text));
            news.show(generation);
            let latest = Some((generation, switch(slot, text)));
            assert_eq!(news.latest(generation), None, "nothing is new");
            assert_eq!(news.latest(generation - 1), latest);
            let alone = generation % 2 == 0;
            let before = generation.checked_sub(2).and_then(|seen| news.latest(seen));
            assert_eq!(before, latest.filter(|_| alone));
        }
        assert_eq!(news.latest(1), None, "it is too long ago");
        news.show(5);
        assert_eq!(news.latest(4), None, "something else than a switch");
        assert_eq!(news.latest(3), None);
    }

    /// Whatever is found is what was noted, however others write meanwhile.
    #[allow(clippy::cast_possible_truncation)]
    #[cfg(loom)]
    #[test]
    fn who_looks_meanwhile_finds_whole_switches() {
        loom::model(|| {
            let of = |generation: u64| {
                let text = ["one", "two", "three"][generation as usize - 1];
                switch(generation as Slot, text)
            };
            let news = loom::sync::Arc::new(News::new());
            let writer = news.clone();
            let writer = loom::thread::spawn(move || {
                for generation in 1..=3 {
                    writer.note(generation, of(generation));
                    writer.show(generation);
                }
            });
            for seen in 0..2 {
                if let Some((generation, switches)) = since(&news, seen) {
                    let all: Vec<Short> = (seen + 1..=generation).map(of).collect();
                    assert_eq!(switches, all);
                }
            }
            if let Some((generation, latest)) = news.latest(1) {
                assert_eq!(latest, of(generation));
            }
            writer.join().expect("it ends");
        });
    }
}
