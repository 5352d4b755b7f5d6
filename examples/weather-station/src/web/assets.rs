//! The style, the script and the icon, all of them within the program. A name
//! is looked up in a list, so there is no path to climb.

use super::problem::{Problem, printable};
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

const ASSETS: [(&str, &str, &str); 3] = [
    (
        "style.css",
        "text/css; charset=utf-8",
        include_str!("../../assets/style.css"),
    ),
    (
        "live.js",
        "text/javascript; charset=utf-8",
        include_str!("../../assets/live.js"),
    ),
    (
        "icon.svg",
        "image/svg+xml",
        include_str!("../../assets/icon.svg"),
    ),
];

pub(super) async fn asset(name: Result<Path<String>, PathRejection>) -> Response {
    let nothing = |name: &str| {
        Problem::new(
            StatusCode::NOT_FOUND,
            "address",
            format!("there is no asset `{}`", printable(name)),
            "the page names those that there are",
        )
        .into_response()
    };
    let Ok(Path(name)) = name else {
        return nothing("\u{fffd}");
    };
    match ASSETS.iter().find(|(asset, _, _)| *asset == name) {
        Some((_, kind, content)) => (
            [
                (header::CONTENT_TYPE, *kind),
                (header::CACHE_CONTROL, "no-cache"),
            ],
            *content,
        )
            .into_response(),
        None => nothing(&name),
    }
}
