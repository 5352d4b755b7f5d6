//! Sources: what a program looks at, whenever it has asked to be let look.

use std::{
    cell::Cell,
    ffi::c_void,
    marker::PhantomData,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, mpsc},
};

use milieu::{
    stream::{Feed, Source as Polling, Sourcing, Status, SteppedSource, Wait},
    transfer::Time,
};

use super::{
    Opened, Streams,
    abi::milieu_quality,
    event::When,
    lent::{Lend, Lent},
    milieu_streams,
    types::{Record, Typed, milieu_event_type},
};
use crate::{
    abi::{MILIEU_BUSY, MILIEU_INVALID, MILIEU_OK, milieu_destroy, milieu_result, milieu_text},
    call::{Before, Failure, call, null, out},
    handle::{self, Slot, handle},
    scope::User,
};

/// A source that is being polled.
pub struct Source {
    polled: Polled,
    /// What stops a recording and moves within it.
    #[cfg(feature = "sources")]
    pub(super) control: Option<milieu_adapters::replay::Control>,
    /// Tells that the source is gone.
    gone: mpsc::Receiver<()>,
    opened: Arc<Opened>,
    /// What the status said last.
    said: String,
}

enum Polled {
    Driven(Sourcing),
    Stepped(SteppedSource),
}

handle!(Source, b"srce", "milieu_source"; super::clock::refuse);

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_source = Slot<Source>;

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_poll =
    Option<unsafe extern "C" fn(user: *mut c_void, feed: *mut milieu_feed) -> milieu_result>;

/// See `streams.h`.
#[allow(non_camel_case_types)]
pub type milieu_feed = Lent<Fed>;

/// Where a source puts what it has seen.
pub struct Fed {
    /// Borrowed for the callback, which may not keep it.
    feed: *mut Feed<'static>,
    wait: Option<Wait>,
    /// Null within a format, whose source sees to what it waits for.
    descriptor: *mut Option<OwnedFd>,
    /// Why the source sees nothing, as the callback has said.
    pub(super) failing: Option<String>,
}

impl Lend for Fed {
    const TAG: [u8; 4] = *b"feed";
    const NAME: &'static str = "milieu_feed";
}

/// A source of the program.
struct Looking {
    poll: unsafe extern "C" fn(*mut c_void, *mut milieu_feed) -> milieu_result,
    descriptor: Option<OwnedFd>,
    user: User,
}

/// A source that tells when it is gone.
struct Telling<S> {
    /// There until it goes.
    source: Option<S>,
    // The last to be dropped.
    _gone: mpsc::Sender<()>,
}

impl<S> Drop for Telling<S> {
    fn drop(&mut self) {
        // What the program does when it lets go of it cannot wait for who drops it.
        let _inside = Inside::callback();
        drop(self.source.take());
    }
}

impl<S: Polling> Polling for Telling<S> {
    fn poll(&mut self, feed: &mut Feed<'_>) -> Wait {
        let source = self.source.as_mut();
        source.map_or(Wait::Ended, |source| source.poll(feed))
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.source.as_ref()?.descriptor()
    }
}

thread_local! {
    /// How many callbacks run in this thread, one in the other, of which the graph does
    /// not know.
    static CALLBACKS: Cell<u32> = const { Cell::new(0) };
}

/// A callback of streams runs in this thread for as long as this is there.
pub(crate) struct Inside(PhantomData<*const ()>);

impl Inside {
    pub fn callback() -> Inside {
        CALLBACKS.set(CALLBACKS.get() + 1);
        Inside(PhantomData)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        CALLBACKS.set(CALLBACKS.get() - 1);
    }
}

/// Refuses to wait within a callback of streams, which they wait for.
pub(crate) fn within(opened: &Opened) -> Result<(), Failure> {
    if !opened.graph().is_inside() && CALLBACKS.get() == 0 {
        return Ok(());
    }
    Err(Failure::new(
        MILIEU_BUSY,
        "streams wait for this callback, so that it cannot wait for them; do it in another thread, \
         or without waiting",
    ))
}

impl Polling for Looking {
    fn poll(&mut self, feed: &mut Feed<'_>) -> Wait {
        let descriptor = &raw mut self.descriptor;
        let (failed, Fed { wait, failing, .. }) = Fed::lend(feed, descriptor, |seen| {
            // SAFETY: the program has handed over both for this.
            unsafe { (self.poll)(self.user.data(), seen) }
        });
        if let Some(why) = failed {
            if failing.is_none() {
                feed.failing(format_args!("the callback is polled no more: {why}"));
            }
            return Wait::Ended;
        }
        wait.unwrap_or_else(|| {
            feed.failing(
                "the callback has not said what it waits for, and is polled no more; let it call \
                 milieu_feed_wait, milieu_feed_wait_readable or milieu_feed_end",
            );
            Wait::Ended
        })
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_ref().map(AsFd::as_fd)
    }
}

impl Fed {
    /// Lends a feed to a callback, and gives back why that has failed and what it has said.
    pub(super) fn lend(
        feed: &mut Feed<'_>,
        descriptor: *mut Option<OwnedFd>,
        callback: impl FnOnce(*mut milieu_feed) -> milieu_result,
    ) -> (Option<String>, Fed) {
        let inside = Fed {
            feed: std::ptr::from_mut(feed).cast(),
            wait: None,
            descriptor,
            failing: None,
        };
        let _inside = Inside::callback();
        let before = Before::callback();
        let (result, fed) = Lent::during(inside, callback);
        let failed = (result != MILIEU_OK).then(|| match before.said(result).why {
            why if why.is_empty() => "it has failed, and has not said why".to_owned(),
            why => why,
        });
        (failed, fed)
    }

    /// Refuses a format, which does not say what its source waits for.
    fn polled(&mut self) -> Result<&mut Fed, Failure> {
        if !self.descriptor.is_null() {
            return Ok(self);
        }
        Err(Failure::new(
            MILIEU_INVALID,
            "a format makes events of a text, and its source sees to what it waits for; leave that \
             out",
        ))
    }

    fn feed(&mut self) -> &mut Feed<'static> {
        // SAFETY: `lend` has it until the callback returns, and does not touch it
        // meanwhile.
        unsafe { &mut *self.feed }
    }
}

/// Adds a source.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_source_new(
    streams: *const milieu_streams,
    name: milieu_text,
    poll: milieu_poll,
    user: *mut c_void,
    destroy: milieu_destroy,
    source: *mut *mut milieu_source,
) -> milieu_result {
    let user = User::new(user, destroy);
    call(|| {
        // SAFETY: as the caller vouches.
        let (Streams(opened), name, source) = unsafe {
            (
                handle::shared(streams)?,
                name.read("name")?,
                out(source, "source")?,
            )
        };
        let poll = poll.ok_or_else(|| null("poll"))?;
        let looking = Looking {
            poll,
            descriptor: None,
            user,
        };
        *source = handle::new(add(opened, name, looking)?);
        Ok(())
    })
}

/// Has a source polled, and what it sees published under a name.
pub(super) fn add(
    opened: &Arc<Opened>,
    name: &str,
    source: impl Polling + 'static,
) -> Result<Source, Failure> {
    let (telling, gone) = mpsc::channel();
    let source = Telling {
        source: Some(source),
        _gone: telling,
    };
    let polled = match &opened.stepping {
        None => Polled::Driven(opened.milieu.driving()?.source(name, source)?),
        Some(stepping) => {
            within(opened)?;
            Polled::Stepped(stepping.source(name, source)?)
        }
    };
    Ok(Source {
        polled,
        #[cfg(feature = "sources")]
        control: None,
        gone,
        opened: Arc::clone(opened),
        said: String::new(),
    })
}

impl Source {
    /// How it is.
    fn status(&self) -> Status {
        match &self.polled {
            Polled::Driven(sourcing) => sourcing.status(),
            Polled::Stepped(stepped) => stepped.status(),
        }
    }

    /// Lets it be polled, since it was told something. Where time is real, its
    /// descriptor says so.
    #[cfg(feature = "sources")]
    pub(super) fn wake(&self) {
        if let Polled::Stepped(stepped) = &self.polled {
            stepped.wake();
        }
    }

    /// What time it is for it.
    #[cfg(feature = "sources")]
    pub(super) fn now(&self) -> Time {
        self.opened.graph().now()
    }
}

/// The number of a status, as `streams.h` has it, and why it is so.
pub(crate) fn number_of(status: &Status, why: &mut String) -> u32 {
    why.clear();
    match status {
        Status::Starting => 0,
        Status::Working => 1,
        Status::Failing(text) => {
            why.push_str(text);
            2
        }
        Status::Ended => 3,
    }
}

/// Takes a source out.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_source_free(source: *mut milieu_source) {
    call(|| {
        // SAFETY: as the caller vouches.
        let Some(Source {
            polled,
            gone,
            opened,
            ..
        }) = (unsafe { handle::take(source)? })
        else {
            return Ok(());
        };
        drop(polled);
        if within(&opened).is_ok() {
            // Nothing is ever said; it ends when the source is gone.
            let _ = gone.recv();
        }
        Ok(())
    });
}

/// How a source is.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_source_status(
    source: *const milieu_source,
    status: *mut u32,
    why: *mut milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (mut source, status, why) =
            unsafe { (handle::using(source)?, out(status, "status")?, why.as_mut()) };
        let now = source.status();
        *status = number_of(&now, &mut source.said);
        if let Some(why) = why {
            *why = milieu_text::of(&source.said);
        }
        Ok(())
    })
}

/// What time it is.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_feed_now(
    feed: *const milieu_feed,
    now_ns: *mut i64,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (inside, now_ns) = unsafe { (Lent::find(feed.cast_mut())?, out(now_ns, "now_ns")?) };
        *now_ns = inside.feed().now().nanoseconds();
        Ok(())
    })
}

/// Publishes what was seen.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_feed_publish(
    feed: *mut milieu_feed,
    of: *const milieu_event_type,
    body: *const c_void,
    quality: *const milieu_quality,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (inside, Typed(of), When { time, quality }) =
            unsafe { (Lent::find(feed)?, handle::shared(of)?, When::read(quality)?) };
        if body.is_null() {
            return Err(null("body"));
        }
        // SAFETY: as the caller vouches.
        let record = unsafe { Record::copy(of, body.cast())? };
        let feed = inside.feed();
        let time = time.unwrap_or_else(|| feed.now());
        feed.publish_kind(of.kind(), time, quality, record);
        Ok(())
    })
}

/// The source sees what it looks at.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_feed_working(feed: *mut milieu_feed) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let inside = unsafe { Lent::find(feed)? };
        inside.failing = None;
        inside.feed().working();
        Ok(())
    })
}

/// Why the source sees nothing.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_feed_failing(
    feed: *mut milieu_feed,
    why: milieu_text,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (inside, why) = unsafe { (Lent::find(feed)?, why.read("why")?) };
        inside.failing = Some(why.to_owned());
        inside.feed().failing(why);
        Ok(())
    })
}

/// When the source wants to be polled next.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_feed_wait(feed: *mut milieu_feed, until_ns: i64) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let inside = unsafe { Lent::find(feed)? }.polled()?;
        inside.wait = Some(Wait::Until(Time::from_nanoseconds(until_ns)));
        Ok(())
    })
}

/// The source wants to be polled when its descriptor is readable.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_feed_wait_readable(feed: *mut milieu_feed) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let inside = unsafe { Lent::find(feed)? }.polled()?;
        // SAFETY: the source has it until the callback returns.
        if unsafe { (*inside.descriptor).is_none() } {
            return Err(Failure::new(
                MILIEU_INVALID,
                "the source has no descriptor to wait for; name one by milieu_feed_descriptor",
            ));
        }
        inside.wait = Some(Wait::Readable);
        Ok(())
    })
}

/// What becomes readable when there is something to poll for.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_feed_descriptor(
    feed: *mut milieu_feed,
    descriptor: i32,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let inside = unsafe { Lent::find(feed)? }.polled()?;
        let own = match descriptor < 0 {
            true => None,
            false => {
                // SAFETY: the header asks for an open descriptor; another one is
                // found out by the attempt to duplicate it.
                let given = unsafe { BorrowedFd::borrow_raw(descriptor) };
                let own = given.try_clone_to_owned().map_err(|error| {
                    Failure::new(
                        MILIEU_INVALID,
                        format_args!("{descriptor} is no descriptor that is open: {error}"),
                    )
                })?;
                Some(own)
            }
        };
        // SAFETY: the source has it until the callback returns.
        unsafe { *inside.descriptor = own };
        Ok(())
    })
}

/// Nothing more will come.
///
/// # Safety
///
/// As `streams.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_feed_end(feed: *mut milieu_feed) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        unsafe { Lent::find(feed)? }.polled()?.wait = Some(Wait::Ended);
        Ok(())
    })
}
