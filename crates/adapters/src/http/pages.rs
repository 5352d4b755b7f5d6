//! Pages of the program for browsers.

use std::borrow::Cow;
use std::io::{Error, ErrorKind};

use axum::body::Bytes;
use axum::http::HeaderValue;

/// Where the server has answers of its own.
const TAKEN: [&str; 6] = [
    "/ping", "/ready", "/metrics", "/latest", "/socket", "/events",
];

/// Something for browsers that is shown to everybody, as it is.
///
/// ```
/// use milieu_adapters::http::Page;
///
/// let page = Page::new("/", "text/html; charset=utf-8", b"<!doctype html>Hello");
/// let made = Page::new("/names.txt", "text/plain", Vec::from("anna\n"));
/// ```
#[derive(Clone, Debug)]
pub struct Page {
    /// Where it is, as requests write it: `/`, `/page.html`, `/caf%C3%A9`. It is
    /// none of the server's own paths.
    pub path: Cow<'static, str>,
    /// What it is: `text/html; charset=utf-8`.
    pub media_type: Cow<'static, str>,
    /// What it says.
    pub content: Cow<'static, [u8]>,
}

impl Page {
    /// A page at this path.
    #[must_use]
    pub fn new(
        path: impl Into<Cow<'static, str>>,
        media_type: impl Into<Cow<'static, str>>,
        content: impl Into<Cow<'static, [u8]>>,
    ) -> Page {
        Page {
            path: path.into(),
            media_type: media_type.into(),
            content: content.into(),
        }
    }
}

/// A page as it is sent.
pub(super) struct Shown {
    pub path: Cow<'static, str>,
    pub media_type: HeaderValue,
    pub content: Bytes,
}

/// Pages as they are sent.
///
/// # Errors
/// If a path or a media type is not what it should be, or two pages have one path.
pub(super) fn shown(pages: Vec<Page>) -> Result<Vec<Shown>, Error> {
    let mut all: Vec<Shown> = Vec::with_capacity(pages.len());
    for page in pages {
        let wrong = |why: &str| {
            let message = format!("the page `{}`: {why}", page.path.escape_debug());
            Error::new(ErrorKind::InvalidInput, message)
        };
        check_path(&page.path).map_err(wrong)?;
        if all.iter().any(|other| other.path == page.path) {
            return Err(wrong("another page has this path; give it one of its own"));
        }
        let media_type = HeaderValue::from_str(&page.media_type);
        let media_type = media_type.ok().filter(|_| is_media_type(&page.media_type));
        let media_type = media_type.ok_or_else(|| {
            let said = page.media_type.escape_debug();
            wrong(&format!(
                "`{said}` is no media type; write one such as `text/html; charset=utf-8`"
            ))
        })?;
        let content = match page.content {
            Cow::Borrowed(content) => Bytes::from_static(content),
            Cow::Owned(content) => Bytes::from(content),
        };
        all.push(Shown {
            path: page.path,
            media_type,
            content,
        });
    }
    Ok(all)
}

/// Whether a request can name this path, and gets no other answer there.
fn check_path(path: &str) -> Result<(), &'static str> {
    if !path.starts_with('/') {
        return Err("a path begins with `/`");
    }
    if TAKEN.contains(&path) {
        return Err("the server answers there itself; give the page another path");
    }
    // RFC 3986, section 3.3. Others are written by their bytes.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte);
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        let is_escape = byte == b'%' && {
            let digits = [bytes.next(), bytes.next()];
            digits
                .iter()
                .flatten()
                .filter(|it| it.is_ascii_hexdigit())
                .count()
                == 2
        };
        if !is_plain(byte) && !is_escape {
            return Err(
                "a path has letters, digits and `-._~!$&'()*+,;=:@/`; write other bytes as \
                 browsers do, a blank as `%20`",
            );
        }
    }
    if path.split('/').any(|part| part == "." || part == "..") {
        return Err("browsers ask for no path with `.` or `..`; leave them out");
    }
    Ok(())
}

/// Whether it is a media type, perhaps with parameters.
fn is_media_type(text: &str) -> bool {
    let (kind, _) = text.split_once(';').unwrap_or((text, ""));
    milieu_transfer::is_media_type(kind.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &'static str, media_type: &'static str) -> String {
        let pages = vec![
            Page::new("/", "text/plain", b""),
            Page::new(path, media_type, b""),
        ];
        shown(pages).err().expect("it is refused").to_string()
    }

    #[test]
    fn pages_stand_where_requests_can_name_them() {
        for path in [
            "/a",
            "/a/b.html",
            "/events/",
            "/:a/*b",
            "/caf%C3%A9",
            "/a%20b",
            "//",
            "/...",
        ] {
            let pages = vec![Page::new(path, "text/plain", b"")];
            assert!(shown(pages).is_ok(), "{path}");
        }
        for (path, says) in [
            ("", "begins with `/`"),
            ("a", "begins with `/`"),
            ("http://here/", "begins with `/`"),
            ("/ping", "answers there itself"),
            ("/events", "answers there itself"),
            ("/", "another page has this path"),
            ("/a b", "a blank as `%20`"),
            ("/{a}", "a blank as"),
            ("/a?b", "a blank as"),
            ("/a#b", "a blank as"),
            ("/caf\u{e9}", "a blank as"),
            ("/a\nb", "the page `/a\\nb`"),
            ("/%4", "a blank as"),
            ("/%zz", "a blank as"),
            ("/a/../b", "leave them out"),
            ("/.", "leave them out"),
        ] {
            let why = refused(path, "text/plain");
            assert!(why.contains(says), "{path}: {why}");
        }
    }

    #[test]
    fn media_types_are_headers() {
        for kind in [
            "text/html",
            "text/html; charset=utf-8",
            "image/svg+xml",
            "application/x-a ;b=\"c\"",
        ] {
            assert!(is_media_type(kind), "{kind}");
        }
        for kind in [
            "",
            "text",
            "text/",
            "/html",
            "text html/x",
            "text/html\r\nA: b",
            "text/\u{e9}",
        ] {
            let why = refused("/a", kind);
            assert!(why.contains("is no media type"), "{kind}: {why}");
        }
        let why = refused("/a", "text/html; a=\n");
        assert!(why.contains("`text/html; a=\\n` is no media type"), "{why}");
    }
}
