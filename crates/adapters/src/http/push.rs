//! Events that clients send.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Extension;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use milieu_stream::names::{Refusal, Why, name};
use milieu_stream::{Published, Publisher, Streams};
use milieu_transfer::{Event, Mode, Name, Quality, Rights, Time, Value};
use tokio::time::timeout;

use super::access::Access;
use super::gate::Granted;
use super::refused::Refused;
use super::server::Server;

/// What the address of a request says.
#[derive(serde::Deserialize)]
pub(super) struct Into {
    /// The name of all that is sent; nothing: events say theirs.
    name: Option<String>,
}

/// The publishers of the names under which clients have sent something. They
/// stay until the server ends, so that the latest event is there for who comes
/// later.
#[derive(Default)]
pub(super) struct Publishers(Mutex<HashMap<Name, Arc<Publisher<Value>>>>);

/// Something that is to be published.
struct Given {
    name: Name,
    time: Time,
    quality: Option<Quality>,
    body: Value,
}

impl Publishers {
    fn of(
        &self,
        streams: &Streams,
        name: &Name,
        most: usize,
    ) -> Result<Arc<Publisher<Value>>, Refused> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(publisher) = all.get(name) {
            return Ok(Arc::clone(publisher));
        }
        if all.len() >= most {
            let message = format!("{most} names are published by clients, which is the most");
            return Err(Refused::new(
                StatusCode::INSUFFICIENT_STORAGE,
                "full",
                message,
            ));
        }
        let publisher = Arc::new(streams.retaining_publisher(name.as_str())?);
        all.insert(name.clone(), Arc::clone(&publisher));
        Ok(publisher)
    }
}

/// `POST /events`. All of it is taken, or nothing: except where a subscriber must
/// have every event and can take no more, which the answer says.
pub(super) async fn push(
    State(server): State<Arc<Server>>,
    Extension(Granted(access)): Extension<Granted>,
    Query(into): Query<Into>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let (mode, is_lines) = mode_of(&server, &headers)?;
    let under = into.name.as_deref().map(name).transpose()?;
    // Nobody without a right makes us read what they send.
    if let Some(under) = &under {
        check(&access, under)?;
    } else if access.rights.publish.queries().is_empty() {
        return Err(no_right("a right to publish"));
    }
    let bytes = body_of(&server, body).await?;
    let parts: Vec<&[u8]> = match is_lines {
        false => vec![&bytes],
        true => lines(&bytes).collect(),
    };
    let given = parts
        .into_iter()
        .map(|part| given(&server, &access, &*mode, under.as_ref(), part))
        .collect::<Result<Vec<Given>, Refused>>()?;
    publish(&server, given)
}

async fn body_of(server: &Server, body: Body) -> Result<Bytes, Refused> {
    let bounds = &server.settings.bounds;
    let limit = bounds.body.bytes;
    match timeout(bounds.patience, to_bytes(body, limit)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) => {
            let message = format!("send at most {limit} bytes in one request");
            let status = StatusCode::PAYLOAD_TOO_LARGE;
            Err(Refused::new(status, "too_large", message))
        }
        Err(_) => {
            let status = StatusCode::REQUEST_TIMEOUT;
            Err(Refused::new(status, "slow", "send the body faster"))
        }
    }
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines.filter(|line| !line.trim_ascii().is_empty())
}

/// The mode by the media type, and whether each line is an event.
fn mode_of(server: &Server, headers: &HeaderMap) -> Result<(Arc<dyn Mode>, bool), Refused> {
    let given = headers.get(header::CONTENT_TYPE);
    let given = given.and_then(|given| given.to_str().ok());
    let given = given.unwrap_or_default().split(';').next();
    let given = given.unwrap_or_default().trim();
    let is_given = |media_type: &str| media_type.eq_ignore_ascii_case(given);
    if is_given("application/x-ndjson") {
        return Ok((server.mode(Some("json"))?, true));
    }
    let modes = &server.settings.modes;
    let mode = modes.iter().find(|mode| is_given(mode.media_type()));
    let mode = mode.cloned().ok_or_else(|| {
        let known: Vec<&str> = modes.iter().map(|mode| mode.media_type()).collect();
        let message = format!(
            "say by `Content-Type` what is sent: {}, application/x-ndjson",
            known.join(", ")
        );
        Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "mode", message)
    })?;
    Ok((mode, false))
}

fn given(
    server: &Server,
    access: &Access,
    mode: &dyn Mode,
    under: Option<&Name>,
    bytes: &[u8],
) -> Result<Given, Refused> {
    let limits = &server.settings.bounds.body;
    let Some(under) = under else {
        let event = mode.decode(bytes, limits, Rights::SET)?;
        let under = name(event.header().stream.name.as_str())?;
        check(access, &under)?;
        return of_event(access, under, &event);
    };
    Ok(Given {
        body: mode.decode_value(bytes, limits, may_set(access, under))?,
        name: under.clone(),
        time: server.streams.now(),
        quality: None,
    })
}

fn of_event(access: &Access, under: Name, event: &Event) -> Result<Given, Refused> {
    let body = event.value(Rights::ALL)?;
    if body.readable(Rights::NONE) != body && may_set(access, &under) == Rights::NONE {
        return Err(milieu_transfer::Error::Private.into());
    }
    Ok(Given {
        name: under,
        time: event.time(),
        quality: event.header().quality.as_deref().cloned(),
        body,
    })
}

/// To read private fields of a name does not mean to set them.
fn may_set(access: &Access, under: &Name) -> Rights {
    match access.rights.set.allows(under.as_str()) {
        true => Rights::SET,
        false => Rights::NONE,
    }
}

fn check(access: &Access, under: &Name) -> Result<(), Refused> {
    match access.rights.publish.allows(under.as_str()) {
        true => Ok(()),
        false => Err(no_right(under.as_str())),
    }
}

fn no_right(what: &str) -> Refused {
    let message = format!("there is no right to publish: {}", what.escape_debug());
    let help = "ask who grants it".to_owned();
    Refusal {
        why: Why::Right,
        span: None,
        message,
        help,
    }
    .into()
}

fn publish(server: &Server, given: Vec<Given>) -> Result<Response, Refused> {
    let (streams, most) = (&server.streams, server.settings.bounds.names);
    let publishers = given
        .iter()
        .map(|given| server.publishers.of(streams, &given.name, most))
        .collect::<Result<Vec<_>, Refused>>()?;
    let all = given.len();
    for (accepted, (given, publisher)) in given.into_iter().zip(publishers).enumerate() {
        let published = publisher.publish_at(given.time, given.quality, given.body);
        if published == Published::Refused {
            server.component.count_received(accepted as u64);
            let message = format!(
                "a subscriber that must have every event can take no more; {accepted} of {all} \
                 were accepted, send the rest again"
            );
            let status = StatusCode::SERVICE_UNAVAILABLE;
            return Err(Refused::new(status, "refused", message));
        }
    }
    server.component.count_received(all as u64);
    let body = serde_json::json!({ "accepted": all });
    let headers = [(header::CONTENT_TYPE, "application/json")];
    Ok((headers, format!("{body}\n")).into_response())
}
