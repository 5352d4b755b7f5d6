//! IV-A: `kdb.set` under `requireLock`: the language that a session has chosen
//! survives a restart.
//!
//! While the lock is held nobody alters the key set, and nobody waits either:
//! others read, enter layers and assign, and it all appears when the lock goes.

use milieu::{Error, Milieu, Start, store::Locations};

use crate::specifications::http::{Environment, at::sw::pi::language, layer::Session};

fn serialize(milieu: &Milieu) -> Result<Vec<String>, Error> {
    let c = milieu.coordinator();
    let _l = c.require_lock();
    // The second argument of `kdb.set(ks, "/")` restricts what is serialized.
    Ok(milieu.persist_below(&["/"])?.names)
}

fn start(folder: &std::path::Path) -> Result<Box<Milieu>, Error> {
    let locations = Locations {
        user: Some(folder.to_owned()),
        system: Vec::new(),
        etc: folder.join("etc"),
    };
    match Milieu::builder("http").locations(locations).start()? {
        Start::Run(milieu) => Ok(milieu),
        Start::Say(_) => unreachable!("without a command line nobody asks for help"),
    }
}

/// Executes the listing.
///
/// # Errors
///
/// Where the folder for temporary files cannot be written.
pub fn run() -> Result<String, Error> {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let milieu = start(folder.path())?;
    let mut tc = milieu.context::<Environment>()?;
    tc.enter(Session("4711")).set::<language>("german")?;
    let names = serialize(&milieu)?;
    assert_eq!(names, ["/sw/pi/4711/language"]);
    assert_eq!(serialize(&milieu)?, [""; 0], "there is nothing new");
    drop((tc, milieu));

    let milieu = start(folder.path())?;
    let mut tc = milieu.context::<Environment>()?;
    let tc = tc.enter(Session("4711"));
    assert_eq!(tc.sw.pi.language, "german");
    let origin = tc.origin::<language>().map(ToString::to_string);
    assert!(origin.is_some_and(|place| place.ends_with("http.ini:2")));
    Ok(format!("session 4711 still reads {}", tc.sw.pi.language))
}
