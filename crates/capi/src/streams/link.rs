//! Links: one naming tree over several machines.

use std::{
    ffi::c_void,
    num::NonZeroU32,
    sync::{Arc, mpsc},
};

use milieu::{
    stream::{
        Driving,
        engine::{Engine as Carrying, Hub as Joining, Peer},
        link::{Link as Linked, Terms},
        names::Rights,
    },
    transfer::Modes,
};

use super::{
    Opened, Streams,
    abi::{milieu_delivery, milieu_rights},
    engine::{Engine, milieu_engine},
    look::{hand_out, milieu_picture},
    milieu_streams,
    mode::named,
    rights::rights,
    source::within,
    subscription::delivery,
    types::{Typed, milieu_event_type},
};
use crate::{
    abi::{MILIEU_INVALID, MILIEU_OK, MILIEU_SYSTEM, milieu_destroy, milieu_result, milieu_text},
    call::{Failure, call, null, out},
    handle::{self, Slot, handle},
    layout::check_abi,
    lent::{Lend, Lent},
    scope::User,
    text::read_slice,
};

/// Joins machines in one process.
pub struct Hub(Joining);

handle!(Hub, b"hubb", "milieu_hub");

/// See `links.h`.
#[allow(non_camel_case_types)]
pub type milieu_hub = Slot<Hub>;

/// What joins a machine to others.
pub struct Link {
    linked: Linked,
    /// Ends when nothing of the link is there any more.
    gone: mpsc::Receiver<()>,
    opened: Arc<Opened>,
}

handle!(Link, b"link", "milieu_link"; super::clock::refuse);

/// See `links.h`.
#[allow(non_camel_case_types)]
pub type milieu_link = Slot<Link>;

/// What a peer may do, as far as the callback has said so.
#[derive(Default)]
pub struct Granted(Rights);

impl Lend for Granted {
    const TAG: [u8; 4] = *b"gran";
    const NAME: &'static str = "milieu_granting";
}

/// See `links.h`.
#[allow(non_camel_case_types)]
pub type milieu_granting = Lent<Granted>;

/// See `links.h`.
#[allow(non_camel_case_types)]
pub type milieu_grant = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        peer: *const milieu_peer,
        granting: *mut milieu_granting,
    ) -> milieu_result,
>;

/// Another machine, as an engine knows it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types)]
pub struct milieu_peer {
    /// What the engine calls it.
    pub name: milieu_text,
    /// Its number, which no other one has had.
    pub id: u64,
    /// Whether it is in this process.
    pub is_here: bool,
}

/// On what terms a machine joins others.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct milieu_terms {
    /// `MILIEU_ABI`
    pub abi: u32,
    /// How many frames of an edge may be under way to here; 0: 256.
    pub window: u32,
    /// Says what a peer may do.
    pub grant: milieu_grant,
    /// Whether every peer may do everything, where `grant` is null.
    pub is_open: bool,
    /// The names of transfer modes, what is liked best first.
    pub modes: *const milieu_text,
    /// How many there are; 0: all.
    pub mode_count: usize,
    /// The types that bodies get which come as bytes.
    pub types: *const *const milieu_event_type,
    /// How many there are.
    pub type_count: usize,
    /// What this machine gets of others where it is slow; null: the default.
    pub delivery: *const milieu_delivery,
    /// How large an event may be that comes, in bytes; 0: 16 MiB.
    pub event_bytes_max: usize,
    /// How deep lists and maps may lie in each other in one; 0: 128.
    pub event_depth_max: usize,
    /// How many names a peer may announce; 0: 65,536.
    pub names_max: usize,
    /// How many edges a peer may read; 0: 65,536.
    pub edges_max: usize,
    /// How many events may wait for a peer; 0: 65,536.
    pub waiting_max: usize,
}

/// A hub.
///
/// # Safety
///
/// As `links.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_hub_new(apart: bool, hub: *mut *mut milieu_hub) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let hub = unsafe { out(hub, "hub")? };
        let joining = Joining::new();
        *hub = handle::new(Hub(match apart {
            true => joining.apart(),
            false => joining,
        }));
        Ok(())
    })
}

/// Gives a hub back.
///
/// # Safety
///
/// As `links.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_hub_free(hub: *mut milieu_hub) {
    call(|| {
        // SAFETY: as the caller vouches.
        drop(unsafe { handle::take(hub)? });
        Ok(())
    });
}

/// A port of a hub.
///
/// # Safety
///
/// As `links.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_hub_join(
    hub: *const milieu_hub,
    name: milieu_text,
    engine: *mut *mut milieu_engine,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (Hub(joining), name, engine) = unsafe {
            (
                handle::shared(hub)?,
                name.read("name")?,
                out(engine, "engine")?,
            )
        };
        *engine = handle::new(Engine::Port(joining.join(name)));
        Ok(())
    })
}

/// What a peer may do.
///
/// # Safety
///
/// As `links.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_granting_allow(
    granting: *mut milieu_granting,
    given: *const milieu_rights,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (granted, rights) = unsafe { (Lent::find(granting)?, rights(given)?) };
        granted.0 = rights;
        Ok(())
    })
}

/// Asks the program what a peer may do: nothing, unless it says so.
fn ask(
    grant: unsafe extern "C" fn(
        *mut c_void,
        *const milieu_peer,
        *mut milieu_granting,
    ) -> milieu_result,
    user: &User,
    peer: &Peer,
) -> Rights {
    let seen = milieu_peer {
        name: milieu_text::of(&peer.name),
        id: peer.id.0,
        is_here: peer.is_here,
    };
    let (result, Granted(rights)) = Lent::during(Granted::default(), |granting| {
        // SAFETY: the program has handed over both for this.
        unsafe { grant(user.data(), &raw const seen, granting) }
    });
    match result {
        MILIEU_OK => rights,
        _ => Rights::default(),
    }
}

/// # Safety
///
/// Everything that they lead to can be read.
unsafe fn terms(
    given: &milieu_terms,
    known: Modes,
    user: User,
    gone: mpsc::Sender<()>,
) -> Result<Terms, Failure> {
    check_abi(given.abi, "terms")?;
    let mut terms = match (given.grant, given.is_open) {
        (Some(grant), _) => Terms::with(move |peer| {
            // Both go along, and with the last of the link.
            let (user, _) = (&user, &gone);
            ask(grant, user, peer)
        }),
        (None, true) => {
            let kept = (user, gone);
            let all = Arc::new(Rights::all());
            let mut terms = Terms::open();
            terms.rights = Arc::new(move |_| {
                let _ = &kept;
                Arc::clone(&all)
            });
            terms
        }
        (None, false) => {
            return Err(Failure::new(
                MILIEU_INVALID,
                "these terms do not say what others may do; let `grant` say it of each, or set \
                 `is_open` where they are machines of one program",
            ));
        }
    };
    // SAFETY: as the caller vouches.
    unsafe {
        let names = read_slice(given.modes, given.mode_count, "modes")?;
        terms.modes = modes(known, names)?;
        for of in read_slice(given.types, given.type_count, "types")? {
            let Typed(of) = handle::shared::<Typed>(*of)?;
            terms.types.push(of.kind().of());
        }
        terms.delivery = delivery(given.delivery)?;
    }
    terms.window = NonZeroU32::new(given.window).unwrap_or(terms.window);
    let or = |given: usize, otherwise: usize| if given == 0 { otherwise } else { given };
    terms.limits.bytes = or(given.event_bytes_max, terms.limits.bytes);
    terms.limits.depth = or(given.event_depth_max, terms.limits.depth);
    terms.bounds.names = or(given.names_max, terms.bounds.names);
    terms.bounds.edges = or(given.edges_max, terms.bounds.edges);
    terms.bounds.waiting = or(given.waiting_max, terms.bounds.waiting);
    Ok(terms)
}

/// # Safety
///
/// The names can be read.
unsafe fn modes(known: Modes, names: &[milieu_text]) -> Result<Modes, Failure> {
    if names.is_empty() {
        return Ok(known);
    }
    let mut modes = Modes::default();
    for name in names {
        // SAFETY: as the caller vouches.
        modes.add(named(&known, unsafe { name.read("modes")? })?);
    }
    Ok(modes)
}

fn join(
    opened: &Opened,
    driving: Option<Driving>,
    engine: impl Carrying + 'static,
    terms: Terms,
) -> Result<Linked, Failure> {
    match driving {
        None => Ok(opened.graph().join(engine, terms)),
        Some(driving) => driving.join(engine, terms).map_err(|error| {
            let text = format!("the link has no descriptor to be woken by: {error}");
            Failure::new(MILIEU_SYSTEM, text)
        }),
    }
}

/// Joins the streams to those of other machines.
///
/// # Safety
///
/// As `links.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_link_new(
    streams: *const milieu_streams,
    engine: *mut milieu_engine,
    given: *const milieu_terms,
    user: *mut c_void,
    destroy: milieu_destroy,
    link: *mut *mut milieu_link,
) -> milieu_result {
    let user = User::new(user, destroy);
    call(|| {
        let (telling, gone) = mpsc::channel();
        // SAFETY: as the caller vouches.
        let (Streams(opened), terms, link) = unsafe {
            let given = given.as_ref().ok_or_else(|| null("terms"))?;
            let streams = handle::shared(streams)?;
            let known = streams.0.milieu.modes();
            (
                streams,
                terms(given, known, user, telling.clone())?,
                out(link, "link")?,
            )
        };
        let driving = match opened.stepping {
            None => Some(opened.milieu.driving()?),
            Some(_) => None,
        };
        // SAFETY: as the caller vouches. From here on it is the link's.
        let engine = unsafe { handle::take(engine)? }.ok_or_else(|| null("milieu_engine"))?;
        let linked = match engine {
            Engine::Port(port) => join(opened, driving, port, terms)?,
            Engine::Own(own) => join(opened, driving, own.told_of(telling), terms)?,
        };
        *link = handle::new(Link {
            linked,
            gone,
            opened: Arc::clone(opened),
        });
        Ok(())
    })
}

/// Leaves the others.
///
/// # Safety
///
/// As `links.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_link_free(link: *mut milieu_link) {
    call(|| {
        // SAFETY: as the caller vouches.
        let Some(Link {
            linked,
            gone,
            opened,
        }) = (unsafe { handle::take(link)? })
        else {
            return Ok(());
        };
        drop(linked);
        if within(&opened).is_ok() {
            // Nothing is ever said; it ends when all of the link is gone.
            let _ = gone.recv();
        }
        Ok(())
    });
}

/// Takes in what others have sent.
///
/// # Safety
///
/// As `links.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_link_poll(
    link: *const milieu_link,
    was_busy: *mut bool,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (link, was_busy) = unsafe { (handle::using(link)?, was_busy.as_mut()) };
        within(&link.opened)?;
        let is_busy = link.linked.poll();
        if let Some(was_busy) = was_busy {
            *was_busy = is_busy;
        }
        Ok(())
    })
}

/// Whom a link reaches.
///
/// # Safety
///
/// As `links.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn milieu_picture_of_link(
    link: *const milieu_link,
    picture: *mut *mut milieu_picture,
) -> milieu_result {
    call(|| {
        // SAFETY: as the caller vouches.
        let (link, picture) = unsafe { (handle::using(link)?, out(picture, "picture")?) };
        within(&link.opened)?;
        let seen = link.opened.milieu.peers(&link.linked);
        *picture = hand_out(seen.unwrap_or_default());
        Ok(())
    })
}
