//! Choices: forms that are posted, checked, and answered by a way back to the
//! page.

use super::problem::Problem;
use super::session::SessionId;
use super::{App, Cx, hours};
use crate::page::HOURS_DEFAULT;
use crate::replay::{Airport, SPEED_MAX};
use crate::texts::Language;
use crate::time::Time;
use axum::Form;
use axum::extract::State;
use axum::extract::rejection::FormRejection;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;

/// All the fields that our forms have.
#[derive(Deserialize)]
pub(super) struct Fields {
    hours: Option<String>,
    language: Option<String>,
    station: Option<String>,
    speed: Option<String>,
    time: Option<String>,
}

/// What was posted, or the problem with it.
type Posted = Result<Form<Fields>, FormRejection>;

fn fields(posted: Posted) -> Result<Fields, Problem> {
    posted.map(|Form(fields)| fields).map_err(|rejection| {
        let status = rejection.status();
        let (message, remedy) = match status {
            StatusCode::PAYLOAD_TOO_LARGE => (
                "it is longer than any form of this station",
                "send the fields of the form only",
            ),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => (
                "it is not a form",
                "send it as application/x-www-form-urlencoded",
            ),
            _ => (
                "it cannot be read as a form of UTF-8 text",
                "send each field once, as in `language=de`",
            ),
        };
        Problem::new(status, "request body", message, remedy)
    })
}

fn needed(name: &'static str, field: Option<String>) -> Result<String, Problem> {
    field.ok_or_else(|| {
        Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            name,
            "the form lacks this field",
            "send the form of the page",
        )
    })
}

/// The way back to the page as it was, with the session's cookie if it is new.
fn back(hours: usize, cookie: Option<header::HeaderValue>) -> Response {
    let page = if hours == HOURS_DEFAULT {
        "/".to_owned()
    } else {
        format!("/?hours={hours}")
    };
    let mut response = Redirect::to(&page).into_response();
    if let Some(cookie) = cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// What each form does: reads its field, lets `choose` act, goes back.
fn answer(
    headers: &HeaderMap,
    posted: Posted,
    choose: impl FnOnce(&SessionId, Fields) -> Result<(), Problem>,
) -> Result<Response, Problem> {
    let (session, cookie) = SessionId::of(headers)?;
    let chosen = fields(posted).and_then(|fields| {
        let hours = fields.hours.as_deref().map_or(Ok(HOURS_DEFAULT), hours)?;
        choose(&session, fields)?;
        Ok(hours)
    });
    chosen.map(|hours| back(hours, cookie))
}

/// A choice that the rules of its key refuse.
fn refused(place: &'static str, error: &milieu::context::Invalid) -> Problem {
    Problem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        place,
        error.to_string(),
        "choose one of those on the page",
    )
}

pub(super) async fn language(
    State(app): State<App>,
    mut cx: Cx,
    headers: HeaderMap,
    posted: Posted,
) -> Result<Response, Problem> {
    answer(&headers, posted, |session, fields| {
        let code = needed("language", fields.language)?;
        let language = Language::from_code(&code).ok_or_else(|| {
            Problem::value("language", &code, "choose one of en, de, fr, es and ar")
        })?;
        let chosen = app.station.choose_language(&mut cx, session, language);
        chosen.map_err(|error| refused("language", &error))
    })
}

pub(super) async fn station(
    State(app): State<App>,
    mut cx: Cx,
    headers: HeaderMap,
    posted: Posted,
) -> Result<Response, Problem> {
    answer(&headers, posted, |session, fields| {
        let code = needed("station", fields.station)?;
        let airport = Airport::from_code(&code)
            .ok_or_else(|| Problem::value("station", &code, "choose one of EWR, JFK and LGA"))?;
        let chosen = app.station.choose_airport(&mut cx, session, airport);
        chosen.map_err(|error| refused("station", &error))
    })
}

pub(super) async fn speed(
    State(app): State<App>,
    mut cx: Cx,
    headers: HeaderMap,
    posted: Posted,
) -> Result<Response, Problem> {
    answer(&headers, posted, |_, fields| {
        let text = needed("speed", fields.speed)?;
        let speed = text.parse().ok().filter(|speed| *speed <= SPEED_MAX);
        let speed = speed
            .ok_or_else(|| Problem::value("speed", &text, "give a whole number from 0 to 86400"))?;
        let set = app.station.set_speed(&mut cx, speed);
        set.map_err(|error| refused("speed", &error))
    })
}

pub(super) async fn time(
    State(app): State<App>,
    headers: HeaderMap,
    posted: Posted,
) -> Result<Response, Problem> {
    answer(&headers, posted, |_, fields| {
        let text = needed("time", fields.time)?;
        let (first, end) = app.station.span();
        let time = Time::parse(&text).filter(|time| first <= *time && *time < end);
        let time = time.ok_or_else(|| {
            Problem::value(
                "time",
                &text,
                "give a time within the recording, as in 2013-05-08T12:00",
            )
        })?;
        app.station.streams.seek(time);
        Ok(())
    })
}
