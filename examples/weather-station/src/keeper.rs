//! Writing down what visitors choose, so that it survives a restart
//! (CoElektra, IV-A), away from the requests; and taking over what others write
//! meanwhile: another station, an editor, `milieu key set`.
//!
//! The thread sleeps until there is news, and looks now and then whether the
//! replay goes on, of which nobody tells. Choices come in bursts, so it lets a
//! moment pass before it writes, and it writes a last time when the station
//! ends. What cannot be written stays in memory and is tried again; the status
//! at `/health` says so meanwhile.

use crate::ends_within;
use crate::environment::Environment;
use crate::station::Station;
use milieu::store::Strategy;
use milieu::store::watch::FileNews;
use milieu::{Context, Milieu, News};
use std::fmt::Display;
use std::time::{Duration, Instant};

/// How long choices are collected before they are written.
const CALM: Duration = Duration::from_millis(300);

/// How soon a write that failed is tried again, and how often the replay is
/// looked at.
const AGAIN: Duration = Duration::from_secs(10);

pub(crate) fn keep(milieu: &Milieu, mut cx: Context<Environment>, station: &Station) {
    // Contexts learn of it at their next synchronization, open pages at once.
    let watching = milieu.watch(|news| match news {
        News::Changed(_) => {}
        News::Refused(invalid) => invalid.iter().for_each(|error| say(&error)),
        News::File(FileNews::Invalid { error, .. } | FileNews::Unwatched { error, .. }) => {
            say(&error)
        }
        _ => {}
    });
    if let Err(error) = &watching {
        say(&format_args!("what others write is not seen: {error}"));
    }
    let (mut failed, mut stuck) = (None, None);
    loop {
        let failure = station.streams.replay_failure();
        if let Some(failure) = failure.as_ref().filter(|_| stuck != failure) {
            say(&format_args!("the replay fails: {failure}"));
        }
        stuck = failure;
        if !cx.wait(Instant::now() + AGAIN) && failed.is_none() {
            continue;
        }
        cx.sync();
        station.streams.follow(&mut cx);
        let ends = ends_within(&mut cx, CALM);
        // What has come meanwhile is no news to the next wait.
        station.streams.follow(&mut cx);
        // A visitor's choice is the visitor's: where another program has
        // written the same key meanwhile, what was chosen here counts.
        let written = milieu.persist_with(&["/sw/pi"], Strategy::Ours);
        let failure = written.err().map(|error| error.to_string());
        if let Some(failure) = failure.as_ref().filter(|_| failed != failure) {
            say(&format_args!("choices are not kept: {failure}"));
        }
        station.kept(failure.clone());
        failed = failure;
        if ends {
            return;
        }
    }
}

fn say(what: &dyn Display) {
    eprintln!("weather-station: {what}");
}
