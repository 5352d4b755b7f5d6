//! Answers to those who subscribe, and to those who ask whether all is well.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::future::ready;
use futures_util::stream::{self, Stream, StreamExt};
use milieu_transfer::Mode;
use tokio::time::{Instant, Interval, interval_at, timeout};

use super::frames::{Frame, Frames};
use super::gate::Granted;
use super::refused::Refused;
use super::server::{Place, Server};
use super::wish::{Asked, Wish};

/// How often something is said where no events come, so that both sides notice
/// when the other has gone.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// How long `/latest` waits where nothing is said, and at most.
const WAIT_SECONDS: f64 = 1.0;
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Clients say little over a WebSocket.
const MESSAGE_BYTES_MAX: usize = 4096;

type Asks = Query<Asked>;

/// `GET /events`.
pub(super) async fn events(
    State(server): State<Arc<Server>>,
    Extension(Granted(access)): Extension<Granted>,
    headers: HeaderMap,
    Query(asked): Asks,
) -> Result<Response, Refused> {
    let wish = Wish::read(&server, &access, &asked)?;
    let is_text = is_text(&*wish.mode);
    let is_lines = headers.get_all(header::ACCEPT).iter().any(|accepted| {
        let accepted = accepted.to_str().unwrap_or_default();
        accepted.contains("application/x-ndjson")
    });
    if is_lines && wish.mode.media_type() != "application/json" {
        let message = "lines are of the mode json; take server-sent events or a WebSocket";
        return Err(Refused::new(StatusCode::NOT_ACCEPTABLE, "mode", message));
    }
    let frames = Frames::new(&server, &wish)?;
    let (media_type, body) = if is_lines {
        ("application/x-ndjson", body(frames, None, line))
    } else {
        let event = move |frame| server_sent(frame, is_text);
        ("text/event-stream", body(frames, Some(":\n\n"), event))
    };
    let headers = [
        (header::CONTENT_TYPE, media_type),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((headers, body).into_response())
}

/// Frames as the body of an answer, and what is said at first and in silence.
fn body(
    frames: Frames,
    sign: Option<&'static str>,
    write: impl Fn(Frame) -> Vec<u8> + Send + 'static,
) -> Body {
    let frames = frames.map(move |frame| Bytes::from(write(frame)));
    match sign {
        None => Body::from_stream(frames.map(Ok::<_, Infallible>)),
        Some(sign) => Body::from_stream(with_signs(frames, sign).map(Ok::<_, Infallible>)),
    }
}

fn with_signs(
    frames: impl Stream<Item = Bytes> + Send + Unpin + 'static,
    sign: &'static str,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let first = stream::once(ready(Bytes::from_static(sign.as_bytes())));
    let rest = stream::unfold(
        (frames, signs_of_life()),
        move |(mut frames, mut signs)| async move {
            let bytes = tokio::select! {
                frame = frames.next() => {
                    signs.reset();
                    frame?
                }
                _ = signs.tick() => Bytes::from_static(sign.as_bytes()),
            };
            Some((bytes, (frames, signs)))
        },
    );
    first.chain(rest)
}

/// Ticks, the first after a while.
fn signs_of_life() -> Interval {
    interval_at(Instant::now() + SIGN_OF_LIFE, SIGN_OF_LIFE)
}

fn line(frame: Frame) -> Vec<u8> {
    [&*frame.bytes, b"\n"].concat()
}

/// An event as browsers read it. What is no text is in base 64.
fn server_sent(frame: Frame, is_text: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(frame.bytes.len() + 16);
    if frame.lost > 0 {
        let lost = format!("event: lost\ndata: {}\n\n", frame.lost);
        out.extend_from_slice(lost.as_bytes());
    }
    match std::str::from_utf8(&frame.bytes) {
        Ok(text) if is_text => {
            for line in text.split(['\n', '\r']) {
                out.extend_from_slice(b"data: ");
                out.extend_from_slice(line.as_bytes());
                out.push(b'\n');
            }
        }
        _ => data(&mut out, &frame.bytes),
    }
    out.push(b'\n');
    out
}

fn data(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(b"data: ");
    base64(out, bytes);
    out.push(b'\n');
}

/// RFC 4648, section 4.
fn base64(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = bits >> (18 - 6 * at) & 63;
            let is_there = at <= chunk.len();
            out.push(if is_there {
                DIGITS[digit as usize]
            } else {
                b'='
            });
        }
    }
}

fn is_text(mode: &dyn Mode) -> bool {
    let media_type = mode.media_type();
    media_type.starts_with("text/") || media_type.ends_with("json") || media_type.ends_with("xml")
}

/// `GET /latest`.
pub(super) async fn latest(
    State(server): State<Arc<Server>>,
    Extension(Granted(access)): Extension<Granted>,
    Query(asked): Asks,
) -> Result<Response, Refused> {
    let wish = Wish::read(&server, &access, &asked)?;
    let mut frames = Frames::latest(&server, &wish)?;
    let seconds = asked.wait.unwrap_or(WAIT_SECONDS);
    // What is no distance in time waits for nothing.
    let wait = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let wait = wait.min(WAIT_MAX);
    match timeout(wait, frames.next()).await {
        Ok(Some(frame)) => {
            let headers = [
                (header::CONTENT_TYPE, wish.mode.media_type()),
                (header::CACHE_CONTROL, "no-store"),
            ];
            Ok((headers, Bytes::from_owner(frame.bytes)).into_response())
        }
        _ => {
            let message = "no event has come; a stream that keeps its latest gives it at once, \
                           for others wait longer: `wait=10`";
            Err(Refused::new(StatusCode::NOT_FOUND, "nothing", message))
        }
    }
}

/// `GET /socket`.
pub(super) async fn socket(
    State(server): State<Arc<Server>>,
    Extension(Granted(access)): Extension<Granted>,
    Query(asked): Asks,
    Extension(place): Extension<Place>,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Refused> {
    let wish = Wish::read(&server, &access, &asked)?;
    let is_text = is_text(&*wish.mode);
    let frames = Frames::new(&server, &wish)?;
    let upgrade = upgrade
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX)
        .protocols(["milieu"]);
    Ok(upgrade.on_upgrade(move |socket| async move {
        // Whoever closes or vanishes is gone; there is nobody to tell.
        let _ = talk(&server, socket, frames, is_text).await;
        drop(place);
    }))
}

async fn talk(
    server: &Server,
    mut socket: WebSocket,
    mut frames: Frames,
    is_text: bool,
) -> Result<(), axum::Error> {
    let message = |bytes: Arc<[u8]>| match std::str::from_utf8(&bytes) {
        Ok(text) if is_text => Message::text(text),
        _ => Message::binary(Bytes::from_owner(bytes)),
    };
    let mut signs = signs_of_life();
    loop {
        tokio::select! {
            frame = frames.next() => match frame {
                Some(frame) => socket.send(message(frame.bytes)).await?,
                None => return close(&mut socket, close_code::NORMAL, "no more events").await,
            },
            said = socket.recv() => match said {
                None => return Ok(()),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Close(_))) => {}
                Some(Ok(Message::Text(text))) if text == "key" => {
                    if let Some(bytes) = frames.key_frame() {
                        socket.send(message(bytes)).await?;
                    }
                }
                Some(said) => {
                    server.component.count_error("message");
                    said?;
                    let why = "say `key` for a key frame; events are sent by POST";
                    return close(&mut socket, close_code::POLICY, why).await;
                }
            },
            _ = signs.tick() => socket.send(Message::Ping(Bytes::new())).await?,
        }
    }
}

async fn close(socket: &mut WebSocket, code: u16, why: &'static str) -> Result<(), axum::Error> {
    let reason = why.into();
    socket
        .send(Message::Close(Some(CloseFrame { code, reason })))
        .await
}

/// `GET /ready`. What is missing is told to those with a token alone.
pub(super) async fn readiness(
    State(server): State<Arc<Server>>,
    granted: Option<Extension<Granted>>,
) -> Response {
    let all = server.settings.components.all();
    let missing = all.iter().filter(|component| !component.is_ready());
    let text: String = missing
        .map(|component| format!("{}: {}\n", component.id(), component.status()))
        .collect();
    let status = match text.is_empty() {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    match (granted, status) {
        (_, StatusCode::OK) => (status, "ready\n").into_response(),
        (Some(_), _) => (status, text).into_response(),
        (None, _) => (status, "not ready; a token lets you see why\n").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(bytes: &[u8], lost: u64, is_text: bool) -> String {
        let bytes = bytes.into();
        String::from_utf8(server_sent(Frame { bytes, lost }, is_text)).unwrap()
    }

    #[test]
    fn lines_cannot_break_out_of_an_event() {
        let text = sent(b"<a>\nevent: x\r\n\n</a>", 0, true);
        assert!(
            text.lines()
                .all(|line| line.is_empty() || line.starts_with("data: "))
        );
        assert_eq!(text.matches("\n\n").count(), 1);
    }

    #[test]
    fn what_is_no_text_is_in_base_64() {
        assert_eq!(sent(b"", 0, false), "data: \n\n");
        assert_eq!(sent(b"f", 0, false), "data: Zg==\n\n");
        assert_eq!(sent(b"fo", 0, false), "data: Zm8=\n\n");
        assert_eq!(sent(b"foo", 0, false), "data: Zm9v\n\n");
        assert_eq!(sent(&[0xFF, 0xFE, 0xFD, 0], 0, false), "data: //79AA==\n\n");
    }

    #[test]
    fn what_was_lost_is_said() {
        assert_eq!(sent(b"1", 3, true), "event: lost\ndata: 3\n\ndata: 1\n\n");
    }
}
