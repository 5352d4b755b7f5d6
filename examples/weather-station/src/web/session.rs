//! Sessions: who asks, by a random identifier in a cookie.
//!
//! The identifier is 32 hexadecimal digits from the system's random source
//! and nothing else; a cookie of our name with another shape is refused and
//! removed, so that the next request succeeds. Cookies of other names, which
//! programs on other ports of the same host may have set, are not looked at.

use super::problem::Problem;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};

/// The cookie's name.
const COOKIE: &str = "weather-station-session";

/// How long a browser keeps it, in seconds: a year.
const KEPT: u32 = 365 * 86_400;

/// A visitor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SessionId(String);

impl AsRef<str> for SessionId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl SessionId {
    /// A new one that nobody can guess.
    fn random() -> Result<SessionId, Problem> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| {
            Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "session",
                format!("the system gives no random numbers: {error}"),
                "give this process access to its random source",
            )
        })?;
        Ok(SessionId(
            bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        ))
    }

    /// A session that a file remembers.
    pub(crate) fn parse(text: &str) -> Option<SessionId> {
        SessionId::from_cookie(text.as_bytes())
    }

    fn from_cookie(value: &[u8]) -> Option<SessionId> {
        let shaped =
            value.len() == 32 && value.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        shaped.then(|| SessionId(String::from_utf8_lossy(value).into_owned()))
    }

    /// The visitor of a request, and the cookie to set if there was none.
    pub(crate) fn of(headers: &HeaderMap) -> Result<(SessionId, Option<HeaderValue>), Problem> {
        let mut found = None;
        for header in headers.get_all(header::COOKIE) {
            for pair in header.as_bytes().split(|b| *b == b';') {
                let pair = pair.trim_ascii();
                let Some(value) = pair
                    .strip_prefix(COOKIE.as_bytes())
                    .and_then(|rest| rest.strip_prefix(b"="))
                else {
                    continue;
                };
                let id = SessionId::from_cookie(value).ok_or_else(refused)?;
                if found.replace(id).is_some() {
                    return Err(refused());
                }
            }
        }
        match found {
            Some(id) => Ok((id, None)),
            None => {
                let id = SessionId::random()?;
                let cookie = format!(
                    "{COOKIE}={}; Path=/; Max-Age={KEPT}; HttpOnly; SameSite=Lax",
                    id.0
                );
                let cookie = HeaderValue::try_from(cookie).map_err(|_| refused())?;
                Ok((id, Some(cookie)))
            }
        }
    }
}

/// A cookie of our name that is not one of ours.
fn refused() -> Problem {
    const REMOVAL: &str = "weather-station-session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax";
    Problem::new(
        StatusCode::BAD_REQUEST,
        "cookie weather-station-session",
        "it is not one that this station gave, it has been removed",
        "load the page again",
    )
    .removing(HeaderValue::from_static(REMOVAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cookies: &[&[u8]]) -> Result<(SessionId, Option<HeaderValue>), Problem> {
        let mut headers = HeaderMap::new();
        for cookie in cookies {
            headers.append(header::COOKIE, HeaderValue::from_bytes(cookie).unwrap());
        }
        SessionId::of(&headers)
    }

    #[test]
    fn a_new_visitor_gets_an_identifier_and_keeps_it() {
        let (id, cookie) = of(&[b"other=\xff\xfe; theme=dark"]).unwrap();
        let cookie = cookie.unwrap();
        let text = cookie.to_str().unwrap();
        assert!(
            text.contains("HttpOnly") && text.contains("SameSite=Lax"),
            "{text}"
        );
        let pair = text.split(';').next().unwrap();
        let (again, cookie) = of(&[format!("a=b; {pair}; c=d").as_bytes()]).unwrap();
        assert_eq!((again, cookie), (id, None));
        assert_ne!(of(&[]).unwrap().0, of(&[]).unwrap().0);
    }

    #[test]
    fn a_cookie_of_another_shape_is_refused() {
        for value in [
            "",
            "abc",
            "../../etc/passwd",
            "%",
            "0123456789ABCDEF0123456789ABCDEF",
            "0123456789abcdef0123456789abcdef0",
        ] {
            let cookie = format!("weather-station-session={value}");
            assert_eq!(of(&[cookie.as_bytes()]), Err(refused()), "{value}");
        }
        assert!(of(&[b"weather-station-session=\xff\xff"]).is_err());
        let twice: &[u8] = b"weather-station-session=0123456789abcdef0123456789abcdef";
        assert!(of(&[twice]).is_ok());
        assert!(of(&[twice, twice]).is_err());
    }
}
