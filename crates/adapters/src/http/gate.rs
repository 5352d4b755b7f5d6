//! What every request has to pass: whose name it calls, whose page it comes
//! from, and which token it shows.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::access::{self, Access};
use super::refused::{Reason, Refused};
use super::server::Server;

/// Whoever asks may do this.
#[derive(Clone)]
pub(super) struct Granted(pub Arc<Access>);

/// How a browser shows its token for a WebSocket, where it cannot set headers.
const PROTOCOL: &str = "bearer.";

/// Looks at a request, and counts what is refused behind it too.
pub(super) async fn gate(
    State(server): State<Arc<Server>>,
    mut request: Request,
    next: Next,
) -> Response {
    // Whoever asks for this wants to know whether there is a server, no more.
    if request.uri().path() == "/ping" {
        return next.run(request).await;
    }
    let origin = match check(&server, &mut request) {
        Ok(origin) => origin,
        Err(refused) => return counted(&server, refused.into_response()),
    };
    let response = if request.method() == Method::OPTIONS && origin.is_some() {
        preflight()
    } else {
        next.run(request).await
    };
    let mut response = counted(&server, response);
    let headers = response.headers_mut();
    if let Some(origin) = origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::VARY, HeaderValue::from_static("origin"));
    }
    let plain = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, plain);
    response
}

fn counted(server: &Server, response: Response) -> Response {
    let reason = match response.extensions().get::<Reason>() {
        Some(Reason(reason)) => reason,
        // What is refused by axum: unknown paths, methods, queries, handshakes.
        None if response.status().is_client_error() => "request",
        None => return response,
    };
    server.component.count_error(reason);
    response
}

/// The other origin that is let in, if there is one.
fn check(server: &Server, request: &mut Request) -> Result<Option<HeaderValue>, Refused> {
    let host = check_host(server, request)?;
    let origin = check_origin(server, request.headers(), &host)?;
    let open = request.uri().path() == "/ready"
        || server.is_page(request.uri().path())
        || request.method() == Method::OPTIONS && origin.is_some();
    let token = shown(request.headers());
    let access = token.and_then(|token| access::find(&server.settings.accesses, &token).cloned());
    match access {
        Some(access) => {
            let granted = Granted(Arc::new(access));
            request.extensions_mut().insert(granted);
        }
        None if open => {}
        None => return Err(wrong_token()),
    }
    Ok(origin)
}

fn wrong_token() -> Refused {
    let message = "there is no such token; send one as `Authorization: Bearer TOKEN`";
    Refused::new(StatusCode::UNAUTHORIZED, "token", message)
}

/// The host that the client believes to talk to, with its port.
fn check_host(server: &Server, request: &Request) -> Result<String, Refused> {
    let mut given = request.headers().get_all(header::HOST).iter();
    let host = given.next().and_then(|host| host.to_str().ok());
    let host = host.filter(|_| given.next().is_none());
    let host = host.map(str::to_ascii_lowercase).unwrap_or_default();
    let name = without_port(&host);
    let is_address = name.parse::<Ipv4Addr>().is_ok()
        || name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'))
            .is_some_and(|name| name.parse::<Ipv6Addr>().is_ok());
    if is_address || name == "localhost" || server.settings.hosts.iter().any(|host| host == name) {
        return Ok(host);
    }
    let message = "this host is not known by that name; call it by its address, or let the \
                   server know the name by `Settings::host`";
    Err(Refused::new(
        StatusCode::MISDIRECTED_REQUEST,
        "host",
        message,
    ))
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Nothing: no page, or one that comes from here.
fn check_origin(
    server: &Server,
    headers: &HeaderMap,
    host: &str,
) -> Result<Option<HeaderValue>, Refused> {
    let Some(given) = headers.get(header::ORIGIN) else {
        return Ok(None);
    };
    let origin = given.to_str().unwrap_or_default().to_ascii_lowercase();
    if server.settings.origins.contains(&origin) {
        return Ok(Some(given.clone()));
    }
    let is_ours = origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"))
        .is_some_and(|origin| origin == host);
    if is_ours {
        return Ok(None);
    }
    let message = "pages of that origin are not let in; name it by `Settings::origin`";
    Err(Refused::new(StatusCode::FORBIDDEN, "origin", message))
}

fn preflight() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "authorization, content-type",
        ),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// The token that a request shows, in its header or among its protocols.
fn shown(headers: &HeaderMap) -> Option<Vec<u8>> {
    if let Some(given) = headers.get(header::AUTHORIZATION) {
        // Whatever is no token is compared as one, and wrong.
        let given = given.as_bytes();
        let (scheme, token) = given.split_at(given.len().min(7));
        let is_bearer = scheme.eq_ignore_ascii_case(b"bearer ");
        return Some(if is_bearer {
            token.to_vec()
        } else {
            Vec::new()
        });
    }
    let protocols = headers.get(header::SEC_WEBSOCKET_PROTOCOL)?.to_str().ok()?;
    let mut protocols = protocols.split(',').map(str::trim);
    let token = protocols.find_map(|protocol| protocol.strip_prefix(PROTOCOL));
    token.map(|token| token.as_bytes().to_vec())
}
