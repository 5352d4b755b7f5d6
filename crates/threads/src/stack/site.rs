//! Where threads are created: the calls that led there, in lines of a profile.

use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::key::{BuildId, Key, Place, each_module};
use super::profile::{FileError, add_site};
use super::text::Text;

/// The ways on which this process has created threads, each of which is noted once.
pub struct Sites {
    /// What tells them apart; 0 is nobody's.
    seen: [AtomicUsize; Self::SITES_MAX],
}

impl Default for Sites {
    fn default() -> Self {
        Self::new()
    }
}

impl Sites {
    /// So many are noted.
    pub const SITES_MAX: usize = 512;

    /// Of so many calls, the innermost.
    pub const CALLS_MAX: usize = 24;

    /// None so far.
    pub const fn new() -> Self {
        Self {
            seen: [const { AtomicUsize::new(0) }; Self::SITES_MAX],
        }
    }

    /// The place of a way on which nobody has come yet. Of those who come at once one gets
    /// it.
    fn new_place(&self, creation: &Creation<'_>) -> Option<&AtomicUsize> {
        let words = creation.key.to_words().map(|it| it as usize);
        let words = words.iter().chain(creation.calls);
        // Fowler, Noll and Vo.
        let hash = words.fold(0x811c_9dc5_usize, |hash, word| {
            (hash ^ word).wrapping_mul(0x0100_0193).rotate_left(7)
        });
        let hash = hash.max(1);
        for step in 0..Self::SITES_MAX {
            let place = self.seen.get(hash.wrapping_add(step) % Self::SITES_MAX)?;
            match place.compare_exchange(0, hash, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(place),
                Err(other) if other == hash => return None,
                Err(_) => {}
            }
        }
        None
    }

    /// Notes in a profile how a thread is created, unless that is known there or this process
    /// has noted it.
    ///
    /// # Errors
    /// It is not noted, and is tried again when the next thread comes this way.
    pub fn note(
        &self,
        creation: &Creation<'_>,
        profile: &CStr,
        patience_milliseconds: u32,
    ) -> Result<(), FileError> {
        let Some(place) = self.new_place(creation) else {
            return Ok(());
        };
        let noted = creation.add_to(profile, patience_milliseconds);
        if noted.is_err() {
            place.store(0, Ordering::Relaxed);
        }
        noted
    }
}

/// How a thread comes to be created.
#[derive(Clone, Copy, Debug)]
pub struct Creation<'c> {
    /// Its key.
    pub key: &'c Key,
    /// The addresses to which the calls return that have led there, the innermost first.
    pub calls: &'c [usize],
    /// An address in the file whose calls are left out.
    pub own: usize,
}

impl Creation<'_> {
    fn add_to(&self, profile: &CStr, patience_milliseconds: u32) -> Result<(), FileError> {
        let Creation { key, calls, own } = *self;
        let mut places = [None; Sites::CALLS_MAX];
        each_module(&mut |module| {
            if module.is_code(own) {
                return;
            }
            let build = module.build_id();
            for (call, place) in calls.iter().zip(&mut places) {
                // The last call of a function may return to the next one.
                if let Some(build) = build.filter(|_| module.is_code(call.wrapping_sub(1))) {
                    let offset = call.wrapping_sub(module.base) as u64;
                    *place = Some(Place { build, offset });
                }
            }
        });
        let places = || places.iter().flatten();
        let Some(innermost) = places().next() else {
            return Ok(());
        };
        let mut line = Text::<2048>::of(format_args!("site {key} {innermost}"));
        for place in places().skip(1) {
            line.push(Text::<64>::of(format_args!(" {place}")).as_bytes());
        }
        let is_named = |build: BuildId| places().any(|it| it.build == build);
        add_site(profile, patience_milliseconds, line.as_bytes(), &is_named)
    }
}

#[cfg(test)]
mod tests {
    use std::string::String;
    use std::{format, fs};

    use super::super::{Line, Lines, Site};
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "asks the loader and writes files")]
    fn a_way_is_noted_once() {
        let folder = std::env::temp_dir().join(format!("milieu-sites-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("a.stacks");
        let name = format!("{}\0", path.display());
        let name = CStr::from_bytes_with_nul(name.as_bytes()).expect("a path");
        let start = a_way_is_noted_once as *const () as usize;
        let Some(key) = Key::of(start, 0) else {
            return;
        };
        let here = [start + 1, start + 2];
        fn by<'c>(key: &'c Key, calls: &'c [usize], own: usize) -> Creation<'c> {
            Creation { key, calls, own }
        }
        // Of another program's library, which has no address here.
        let mut nowhere = here;
        nowhere[1] = 16;
        let sites = Sites::new();
        for calls in [&here[..], &here, &nowhere] {
            let noted = sites.note(&by(&key, calls, 0), name, 1000);
            noted.expect("it is noted");
        }
        // Another process, which does not know what this one has noted.
        Sites::new()
            .note(&by(&key, &here, 0), name, 1000)
            .expect("it is noted");
        // All of them are left out.
        Sites::new()
            .note(&by(&key, &here, start), name, 1000)
            .expect("there is nothing");
        let text = fs::read(&path).expect("it is there");
        let lines: Result<std::vec::Vec<Line<'_>>, _> =
            Lines::of(&text).expect("a profile").collect();
        let lines = lines.expect("all are understood");
        let sites: std::vec::Vec<Site<'_>> = lines
            .iter()
            .filter_map(|it| match it {
                Line::Site(site) => Some(*site),
                _ => None,
            })
            .collect();
        assert_eq!(sites.len(), 2, "{}", String::from_utf8_lossy(&text));
        assert!(sites.iter().all(|it| it.key == key));
        let calls: std::vec::Vec<u64> = sites[0].calls().map(|it| it.offset).collect();
        assert_eq!(calls, [key.start.offset + 1, key.start.offset + 2]);
        assert_eq!(sites[1].calls().count(), 1);
        let modules = lines.iter().filter(|it| matches!(it, Line::Module(_)));
        assert!(modules.count() >= 1);
        fs::remove_dir_all(&folder).expect("it goes");
    }
}
