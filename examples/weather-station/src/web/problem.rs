//! What a client did wrong, told in one line: the place, what is wrong there,
//! and what to do instead.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::fmt;

/// A request that cannot be answered as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    status: StatusCode,
    place: &'static str,
    message: String,
    remedy: &'static str,
    /// A cookie to remove from the browser that sent it.
    removed: Option<HeaderValue>,
}

impl Problem {
    /// A problem: its status, where it lies, what it is, what to do.
    pub(super) fn new(
        status: StatusCode,
        place: &'static str,
        message: impl Into<String>,
        remedy: &'static str,
    ) -> Problem {
        Problem {
            status,
            place,
            message: message.into(),
            remedy,
            removed: None,
        }
    }

    /// The same, and the cookie that caused it is removed.
    pub(super) fn removing(self, cookie: HeaderValue) -> Problem {
        Problem {
            removed: Some(cookie),
            ..self
        }
    }

    /// A field of a form that has a value it cannot have.
    pub(super) fn value(place: &'static str, value: &str, remedy: &'static str) -> Problem {
        Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            place,
            format!("`{}` is not possible", printable(value)),
            remedy,
        )
    }
}

/// The first forty characters of what a client sent, without those that a
/// terminal would act on.
pub(super) fn printable(text: &str) -> String {
    text.chars()
        .take(40)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.message, self.remedy)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        let mut response = (
            self.status,
            [(header::CONTENT_TYPE, text)],
            format!("{self}\n"),
        )
            .into_response();
        if let Some(cookie) = self.removed {
            response.headers_mut().insert(header::SET_COOKIE, cookie);
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response
    }
}
