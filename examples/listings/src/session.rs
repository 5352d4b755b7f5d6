//! IV-A: an HTTP session as contextual information: a request handler enters
//! the session, and in it the language that this session has chosen.

use std::fmt::Write;

use milieu::{Context, Coordinator, Error, value};

use crate::specifications::http::{Environment, at::sw::pi::language, layer::Session};

fn handle(
    tc: &mut Context<Environment>,
    session_id: &str,
    out: &mut impl Write,
) -> std::fmt::Result {
    let mut tc = tc.enter(Session(session_id));
    write!(out, "<html>\n<body>\n")?;
    write!(out, "<p>Language: {}</p>", tc.sw.pi.language)?;
    tc.with(value::<language>(), |tc| {
        write!(out, "<p>{}</p>", tc.sw.pi.hello)
    })?;
    write!(out, "</body>\n</html>\n")
}

/// Executes the listing.
///
/// # Errors
///
/// Only with a defect.
pub fn run() -> Result<String, Error> {
    let coordinator = Coordinator::new();
    for (name, text) in [
        ("/sw/pi/%/language", "english"),
        ("/sw/pi/4711/language", "german"),
        ("/sw/pi/english/hello", "Hello"),
        ("/sw/pi/german/hello", "Hallo"),
    ] {
        coordinator.assign(name, text, None)?;
    }
    let mut tc = coordinator.context::<Environment>()?;
    let mut page = String::new();
    handle(&mut tc, "4711", &mut page).expect("a string takes any text");
    assert_eq!(
        page,
        "<html>\n<body>\n<p>Language: german</p><p>Hallo</p></body>\n</html>\n"
    );
    // The next request has no session, and nothing of the last one's.
    assert_eq!(tc.layers(), []);
    page.clear();
    handle(&mut tc, "", &mut page).expect("a string takes any text");
    assert!(page.contains("<p>Language: english</p><p>Hello</p>"));
    Ok("session 4711 reads Hallo, a visitor Hello".to_owned())
}
