//! The web server: routes, what every answer carries, and what no request may
//! do.
//!
//! A page is a GET and changes nothing; choices are forms that are posted and
//! answered by a redirection to the page, so that all of it works without a
//! script. Requests from other sites' pages are refused, and so is a request
//! under a foreign name while the station listens on the loopback only.

mod assets;
mod events;
mod explaining;
mod forms;
mod guard;
mod problem;
pub(crate) mod serve;
pub(crate) mod session;

use crate::environment::Environment;
use crate::page;
use crate::station::Station;
use axum::extract::{DefaultBodyLimit, FromRef, Query, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use milieu::{Contexts, RequestContext};
use problem::{Problem, printable};
use serde::Deserialize;
use serde_json::json;
use session::SessionId;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// The longest form that anybody needs.
const FORM_BYTES_MAX: usize = 1024;

/// What handlers share.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) station: Arc<Station>,
    /// A context for each request.
    pub(crate) contexts: Contexts<Environment>,
    /// Places for open pages that wait for news.
    pub(crate) streams: Arc<Semaphore>,
    /// Whether only this machine can reach the station.
    pub(crate) loopback: bool,
    pub(crate) patience: Duration,
}

impl FromRef<App> for Contexts<Environment> {
    fn from_ref(app: &App) -> Contexts<Environment> {
        app.contexts.clone()
    }
}

/// The context of a request.
type Cx = RequestContext<Environment>;

/// The routes with everything around them.
pub(crate) fn router(app: App) -> Router {
    Router::new()
        .route("/", get(document))
        .route("/events", get(events::stream))
        .route("/language", post(forms::language))
        .route("/station", post(forms::station))
        .route("/speed", post(forms::speed))
        .route("/time", post(forms::time))
        .route("/health", get(health))
        .route("/assets/{name}", get(assets::asset))
        .fallback(nowhere)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
        .layer(middleware::from_fn_with_state(app.clone(), guard::guard))
        .with_state(app)
}

/// What an address may ask for.
#[derive(Deserialize)]
struct Wish {
    hours: Option<String>,
}

impl Wish {
    fn hours(&self) -> Result<usize, Problem> {
        self.hours.as_deref().map_or(Ok(page::HOURS_DEFAULT), hours)
    }
}

/// The hours of a chart.
fn hours(text: &str) -> Result<usize, Problem> {
    let hours = text
        .parse()
        .ok()
        .filter(|hours| page::HOURS.contains(hours));
    hours.ok_or_else(|| Problem::value("hours", text, "give 24, 48 or 168"))
}

/// The part of an address behind the `?`, or the problem with it.
type Asked = Result<Query<Wish>, axum::extract::rejection::QueryRejection>;

fn wish(asked: Asked) -> Result<Wish, Problem> {
    asked.map(|Query(wish)| wish).map_err(|_| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "address",
            "what follows its `?` is not names and values",
            "give hours=24, 48 or 168",
        )
    })
}

async fn document(
    State(app): State<App>,
    mut cx: Cx,
    asked: Asked,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let hours = wish(asked).and_then(|wish| wish.hours())?;
    let (session, cookie) = SessionId::of(&headers)?;
    let html = app
        .station
        .look(&mut cx, &session, accepted(&headers), hours, |view| {
            page::document(view)
        });
    let mut response = Html(html).into_response();
    if let Some(cookie) = cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// The languages that a browser asks for.
fn accepted(headers: &HeaderMap) -> &str {
    headers
        .get(header::ACCEPT_LANGUAGE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("")
}

async fn health(State(app): State<App>, cx: Cx) -> Response {
    let streams = app.streams.available_permits();
    let (unkept, input) = (app.station.unkept(), app.station.streams.tamper_input());
    let replay = app.station.streams.replay_failure();
    let status = match (&unkept, &replay) {
        (Some(_), _) => "choices are not kept",
        (None, Some(_)) => "the replay fails",
        (None, None) => "ok",
    };
    Json(json!({
        "status": status,
        "failure": unkept.or(replay),
        "time": app.station.now().to_string(),
        "speed": cx.sw.pi.replay.speed,
        "tamper": cx.sw.pi.tamper,
        "tamper_input": input.failure.or(input.place),
        "refresh": cx.sw.pi.web.refresh,
        "free_streams": streams,
    }))
    .into_response()
}

async fn nowhere(uri: Uri) -> Problem {
    let path = printable(uri.path());
    Problem::new(
        StatusCode::NOT_FOUND,
        "address",
        format!("there is nothing at `{path}`"),
        "the page is at `/`",
    )
}

async fn wrong_method(method: Method, uri: Uri) -> Problem {
    let (method, path) = (printable(method.as_str()), printable(uri.path()));
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method",
        format!("`{method}` does nothing at `{path}`"),
        "pages are fetched with GET, choices are sent with POST",
    )
}

/// Headers that every answer carries.
fn dress(headers: &mut axum::http::HeaderMap) {
    const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(
        "cross-origin-opener-policy",
        HeaderValue::from_static("same-origin"),
    );
    headers.insert(
        "cross-origin-resource-policy",
        HeaderValue::from_static("same-origin"),
    );
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
}
