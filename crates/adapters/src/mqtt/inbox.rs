//! What comes from a broker.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use milieu_stream::{Published, Publisher, Streams};
use milieu_transfer::{Json, Mode, Name, Quality, Rights, Time, Value};

use super::settings::{Input, Payload, Settings};
use super::topic::{covers, name};
use crate::component::{Component, reason_of};

/// Makes events of messages. Publishers stay until the connection is dropped.
pub(super) struct Inbox {
    streams: Streams,
    component: Arc<Component>,
    publishers: Mutex<HashMap<Name, Publisher<Value>>>,
}

/// A body, and what else a payload says.
type Said = (Value, Option<(Time, Option<Quality>)>);

impl Inbox {
    pub fn new(streams: &Streams, component: &Arc<Component>) -> Inbox {
        Inbox {
            streams: streams.clone(),
            component: Arc::clone(component),
            publishers: Mutex::default(),
        }
    }

    /// Takes a message; what is wrong with it is counted.
    pub fn take(&self, settings: &Settings, topic: &[u8], payload: &[u8]) {
        let Ok(topic) = std::str::from_utf8(topic) else {
            return self.component.count_error("name");
        };
        let mut is_asked_for = false;
        for input in &settings.inputs {
            if covers(&input.filter, topic) {
                is_asked_for = true;
                if let Err(reason) = self.publish(settings, input, topic, payload) {
                    self.component.count_error(reason);
                    self.component.count_discarded(reason, 1);
                }
            }
        }
        if !is_asked_for {
            self.component.count_discarded("unasked", 1);
        }
    }

    fn publish(
        &self,
        settings: &Settings,
        input: &Input,
        topic: &str,
        payload: &[u8],
    ) -> Result<(), &'static str> {
        let name = name(&input.under, topic).map_err(|_| "name")?;
        let (body, rest) = read(&input.payload, payload, settings)?;
        let (time, quality) = rest.unwrap_or_else(|| (self.streams.now(), None));
        let mut publishers = self
            .publishers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !publishers.contains_key(&name) {
            if publishers.len() >= settings.bounds.names {
                return Err("full");
            }
            let publisher = self.streams.retaining_publisher(name.as_str());
            publishers.insert(name.clone(), publisher.map_err(|_| "taken")?);
        }
        match publishers[&name].publish_at(time, quality, body) {
            Published::Accepted(_) => self.component.count_received(1),
            Published::Refused => return Err("refused"),
        }
        Ok(())
    }
}

fn read(payload: &Payload, bytes: &[u8], settings: &Settings) -> Result<Said, &'static str> {
    let limits = &settings.bounds.payload;
    let wrong = |error: milieu_transfer::Error| reason_of(&error);
    match payload {
        Payload::Body(mode) => {
            let body = mode.decode_value(bytes, limits, Rights::NONE);
            Ok((body.map_err(wrong)?, None))
        }
        Payload::Event(mode) => {
            let event = mode.decode(bytes, limits, Rights::NONE).map_err(wrong)?;
            let quality = event.header().quality.as_deref().cloned();
            let body = event.value(Rights::NONE).map_err(wrong)?;
            Ok((body, Some((event.time(), quality))))
        }
        Payload::Any => match Json.decode_value(bytes, limits, Rights::NONE) {
            Ok(body) => Ok((body, None)),
            Err(milieu_transfer::Error::Malformed { .. }) => Ok((plain(bytes), None)),
            Err(error) => Err(wrong(error)),
        },
    }
}

/// Text, or bytes; nothing where there is nothing.
fn plain(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok("") => Value::Null,
        Ok(text) => Value::Text(text.into()),
        Err(_) => Value::Bytes(bytes.into()),
    }
}
