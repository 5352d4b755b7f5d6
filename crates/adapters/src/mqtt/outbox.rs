//! What goes to a broker.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::stream::{SelectAll, Stream, StreamExt};
use milieu_stream::{Streams, Subscriber};
use milieu_transfer::{Encode, Event, Json, Mode};
use rumqttc::AsyncClient;
use tokio::sync::watch;

use super::settings::{CannotConnect, Output, Payload};
use crate::component::{Component, Losses, reason_of};

/// A flow on its way to a topic.
pub(super) struct Outgoing {
    output: Output,
    subscriber: Subscriber,
    encoder: Option<Box<dyn Encode>>,
    component: Arc<Component>,
    losses: Losses,
}

/// A payload and where it goes.
pub(super) struct Message {
    output: Output,
    payload: Vec<u8>,
}

impl Outgoing {
    pub fn new(
        streams: &Streams,
        output: Output,
        component: &Arc<Component>,
    ) -> Result<Outgoing, CannotConnect> {
        let subscriber = streams.subscribe(&output.flow, output.delivery);
        Ok(Outgoing {
            subscriber: subscriber.map_err(|error| CannotConnect::Flow(Box::new(error)))?,
            encoder: match &output.payload {
                Payload::Event(mode) => Some(mode.encoder(output.rights)),
                _ => None,
            },
            output,
            component: Arc::clone(component),
            losses: Losses::default(),
        })
    }

    fn write(&mut self, event: &Event) -> Result<Vec<u8>, milieu_transfer::Error> {
        let mut payload = Vec::new();
        if let Some(encoder) = &mut self.encoder {
            encoder.encode(event, &mut payload)?;
            return Ok(payload);
        }
        let rights = self.output.rights;
        let mode: &dyn Mode = match &self.output.payload {
            Payload::Body(mode) | Payload::Event(mode) => &**mode,
            Payload::Any => &Json,
        };
        mode.encode_value(&event.value(rights)?, rights, &mut payload)?;
        Ok(payload)
    }
}

impl Stream for Outgoing {
    type Item = Message;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Message>> {
        let this = &mut *self;
        loop {
            let event = match Pin::new(&mut this.subscriber).poll_next(cx) {
                Poll::Ready(Some(event)) => event,
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            };
            this.losses.count(&this.component, &this.subscriber.tally());
            match this.write(&event) {
                Ok(payload) => {
                    let output = this.output.clone();
                    return Poll::Ready(Some(Message { output, payload }));
                }
                Err(error) => {
                    this.component.count_error(reason_of(&error));
                    this.component.count_discarded("unencodable", 1);
                }
            }
        }
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        self.losses.end(&self.component, &self.subscriber.tally());
    }
}

/// Publishes while the connection holds. Otherwise events stay in their queues.
pub(super) async fn forward(
    outgoing: Vec<Outgoing>,
    client: AsyncClient,
    component: Arc<Component>,
    mut connected: watch::Receiver<bool>,
) {
    let mut outgoing: SelectAll<Outgoing> = outgoing.into_iter().collect();
    while connected.wait_for(|holds| *holds).await.is_ok() {
        let Some(message) = outgoing.next().await else {
            return;
        };
        // It may have broken while there was nothing to send.
        if connected.wait_for(|holds| *holds).await.is_err() {
            return;
        }
        let Output {
            topic,
            qos,
            retained,
            ..
        } = message.output;
        match client.publish(topic, qos, retained, message.payload).await {
            Ok(()) => component.count_sent(1),
            Err(_) => component.count_discarded("gone", 1),
        }
    }
}
