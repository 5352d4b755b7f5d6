//! The frames of a subscription, which clients share that want the same.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use milieu_stream::Subscriber;
use milieu_transfer::{Event, Place};

use super::presses::Shared;
use super::refused::Refused;
use super::server::Server;
use super::wish::Wish;
use crate::component::{Component, Losses, reason_of};

/// What comes of a subscription.
pub(super) struct Frames {
    component: Arc<Component>,
    subscriber: Subscriber,
    press: Arc<Shared>,
    place: Place,
    last: Option<Event>,
    losses: Losses,
}

/// An encoded event.
pub(super) struct Frame {
    pub bytes: Arc<[u8]>,
    /// How many events were lost before it, because the client was slow.
    pub lost: u64,
}

impl Frames {
    pub fn new(server: &Server, wish: &Wish) -> Result<Frames, Refused> {
        Ok(Frames::of(server, wish, wish.subscribe(server)?))
    }

    pub fn latest(server: &Server, wish: &Wish) -> Result<Frames, Refused> {
        Ok(Frames::of(server, wish, wish.subscribe_to_latest(server)?))
    }

    fn of(server: &Server, wish: &Wish, subscriber: Subscriber) -> Frames {
        let press = server.presses.of(server, wish);
        let place = press.press().join();
        Frames {
            component: Arc::clone(&server.component),
            subscriber,
            press,
            place,
            last: None,
            losses: Losses::default(),
        }
    }

    /// The last event once more, for a client that has lost its place.
    pub fn key_frame(&mut self) -> Option<Arc<[u8]>> {
        let last = self.last.as_ref()?;
        let frame = self.press.press().again(&mut self.place, last);
        self.settle(frame)
    }

    /// What was encoded; what could not be is counted.
    fn settle(&self, frame: Result<Arc<[u8]>, milieu_transfer::Error>) -> Option<Arc<[u8]>> {
        match frame {
            Ok(frame) => {
                self.component.count_sent(1);
                Some(frame)
            }
            Err(error) => {
                self.component.count_error(reason_of(&error));
                self.component.count_discarded("unencodable", 1);
                None
            }
        }
    }
}

impl Stream for Frames {
    type Item = Frame;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Frame>> {
        let this = &mut *self;
        loop {
            let event = match Pin::new(&mut this.subscriber).poll_next(cx) {
                Poll::Ready(Some(event)) => event,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            };
            let frame = this.press.press().frame(&mut this.place, &event);
            this.last = Some(event);
            if let Some(bytes) = this.settle(frame) {
                let lost = this.losses.count(&this.component, &this.subscriber.tally());
                return Poll::Ready(Some(Frame { bytes, lost }));
            }
        }
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.losses.end(&self.component, &self.subscriber.tally());
        self.press.press().leave(&self.place);
    }
}
