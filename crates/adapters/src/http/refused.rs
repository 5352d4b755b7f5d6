//! Requests that are refused.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use milieu_stream::CannotPublish;
use milieu_stream::names::{Refusal, Why};

use crate::component::reason_of;

/// Why a request is refused. The reason is what is counted.
#[derive(Debug)]
pub(super) struct Refused {
    pub status: StatusCode,
    pub reason: &'static str,
    pub message: String,
}

/// The reason of an answer, for whoever counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reason(pub &'static str);

impl Refused {
    pub fn new(status: StatusCode, reason: &'static str, message: impl Into<String>) -> Refused {
        Refused {
            status,
            reason,
            message: message.into(),
        }
    }

    pub fn bad(reason: &'static str, message: impl Into<String>) -> Refused {
        Refused::new(StatusCode::BAD_REQUEST, reason, message)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let body = serde_json::json!({"reason": self.reason, "error": self.message});
        let headers = [
            (header::CONTENT_TYPE, "application/json"),
            (header::CACHE_CONTROL, "no-store"),
        ];
        let mut response = (self.status, headers, format!("{body}\n")).into_response();
        let headers = response.headers_mut();
        match self.status {
            StatusCode::UNAUTHORIZED => {
                let challenge = header::HeaderValue::from_static("Bearer");
                headers.insert(header::WWW_AUTHENTICATE, challenge);
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response.extensions_mut().insert(Reason(self.reason));
        response
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Refused {
        let status = match refusal.why {
            Why::Right => StatusCode::FORBIDDEN,
            Why::Full => StatusCode::SERVICE_UNAVAILABLE,
            Why::Unknown => StatusCode::NOT_FOUND,
            _ => StatusCode::BAD_REQUEST,
        };
        let reason = match refusal.why {
            Why::Text | Why::Size => "name",
            why => why.as_str(),
        };
        Refused::new(status, reason, refusal.to_string())
    }
}

impl From<milieu_transfer::Error> for Refused {
    fn from(error: milieu_transfer::Error) -> Refused {
        let status = match error {
            milieu_transfer::Error::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            milieu_transfer::Error::Private => StatusCode::FORBIDDEN,
            milieu_transfer::Error::Unrepresentable { .. } => StatusCode::NOT_ACCEPTABLE,
            _ => StatusCode::BAD_REQUEST,
        };
        Refused::new(status, reason_of(&error), error.to_string())
    }
}

impl From<CannotPublish> for Refused {
    fn from(error: CannotPublish) -> Refused {
        match error {
            CannotPublish::Taken(_) => {
                Refused::new(StatusCode::CONFLICT, "taken", error.to_string())
            }
            CannotPublish::Refused(refusal) => refusal.into(),
            CannotPublish::NoName(_) => Refused::bad("name", error.to_string()),
        }
    }
}
