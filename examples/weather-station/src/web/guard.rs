//! What stands before every route.

use super::problem::{Problem, printable};
use super::{App, dress};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header, uri::Authority};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::IpAddr;

/// Refuses what comes from elsewhere or takes too long, and gives every
/// answer its headers.
pub(super) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    let mut response = match check(&app, &request) {
        Err(problem) => problem.into_response(),
        // The time is for the request; a stream of events begins at once and
        // goes on afterwards.
        Ok(()) => match tokio::time::timeout(app.patience, next.run(request)).await {
            Ok(response) => response,
            Err(_) => Problem::new(
                StatusCode::REQUEST_TIMEOUT,
                "request body",
                format!(
                    "it was not complete within {} s",
                    app.patience.as_secs_f64()
                ),
                "send it faster",
            )
            .into_response(),
        },
    };
    dress(response.headers_mut());
    response
}

fn check(app: &App, request: &Request) -> Result<(), Problem> {
    let headers = request.headers();
    let host = host(request)?;
    if app.loopback && !is_local(host.host()) {
        return Err(Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            "header Host",
            format!(
                "this station listens on the loopback only and is not `{}`",
                printable(host.as_str())
            ),
            "use the address that it printed, or let it listen on another with --address",
        ));
    }
    if request.method() == Method::POST && !is_same_site(headers, &host) {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "header Origin",
            "the request comes from another site's page",
            "use the station's own page",
        ));
    }
    Ok(())
}

/// What the client thinks it talks to.
fn host(request: &Request) -> Result<Authority, Problem> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (first, second) = (hosts.next(), hosts.next());
    let host = first
        .filter(|_| second.is_none())
        .and_then(|host| Authority::try_from(host.as_bytes()).ok());
    host.ok_or_else(|| {
        Problem::new(
            StatusCode::BAD_REQUEST,
            "header Host",
            "it must be there once, with a host and a port",
            "send it as in `Host: 127.0.0.1:8013`",
        )
    })
}

/// A page of another site whose name was made to point here still has its own
/// name; the loopback has few.
fn is_local(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
        || host.eq_ignore_ascii_case("localhost")
        || host.to_ascii_lowercase().ends_with(".localhost")
}

/// Browsers say where a form comes from; programs say nothing.
fn is_same_site(headers: &HeaderMap, host: &Authority) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return site == "same-origin" || site == "none";
    }
    match headers.get(header::ORIGIN) {
        None => true,
        Some(origin) => {
            let authority = origin
                .to_str()
                .ok()
                .and_then(|o| o.split_once("://"))
                .map(|(_, authority)| authority);
            authority.is_some_and(|a| a.eq_ignore_ascii_case(host.as_str()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_has_few_names() {
        for host in [
            "127.0.0.1",
            "[::1]",
            "localhost",
            "LocalHost",
            "station.localhost",
            "127.1.2.3",
        ] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "example.org",
            "192.168.1.1",
            "localhost.example.org",
            "127.0.0.1.example.org",
            "0.0.0.0",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }

    #[test]
    fn forms_of_other_sites_are_known() {
        let host = Authority::from_static("127.0.0.1:8013");
        let with = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            is_same_site(&headers, &host)
        };
        assert!(is_same_site(&HeaderMap::new(), &host));
        assert!(with("origin", "http://127.0.0.1:8013"));
        assert!(!with("origin", "http://127.0.0.1:9999"));
        assert!(!with("origin", "https://example.org"));
        assert!(!with("origin", "null"));
        assert!(with("sec-fetch-site", "same-origin"));
        assert!(!with("sec-fetch-site", "same-site"));
        assert!(!with("sec-fetch-site", "cross-site"));
    }
}
