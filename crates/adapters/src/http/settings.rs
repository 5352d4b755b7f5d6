//! What a server is told.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use milieu_transfer::{Json, Limits, Mode, Modes};

use super::access::Access;
use super::pages::Page;
use crate::component::Components;

/// How much clients can make the server hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Connections at a time; further ones are closed at once.
    pub connections: usize,
    /// Events that may wait for one subscriber.
    pub queue_events: u32,
    /// The head of a request, in bytes.
    pub head_bytes: usize,
    /// Lines in the head of a request.
    pub head_lines: usize,
    /// What is sent in one request, in bytes, and how deep it may be.
    pub body: Limits,
    /// Names under which clients publish.
    pub names: usize,
    /// Operators and names in one flow.
    pub operators: usize,
    /// How long a client may take for its request, or take nothing of what was
    /// sent to it.
    pub patience: Duration,
}

impl Default for Bounds {
    /// 256 connections, 1024 events, 16 KiB in 64 lines, 1 MiB and 64 levels,
    /// 1024 names, 64 operators, 30 seconds.
    fn default() -> Bounds {
        Bounds {
            connections: 256,
            queue_events: 1024,
            head_bytes: 16 << 10,
            head_lines: 64,
            body: Limits {
                bytes: 1 << 20,
                depth: 64,
            },
            names: 1024,
            operators: 64,
            patience: Duration::from_secs(30),
        }
    }
}

/// What a server is told; [`serve`](super::serve) is given it.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(super) address: SocketAddr,
    pub(super) beyond_loopback: bool,
    pub(super) accesses: Vec<Access>,
    pub(super) hosts: Vec<String>,
    pub(super) origins: Vec<String>,
    pub(super) modes: Modes,
    pub(super) pages: Vec<Page>,
    pub(super) bounds: Bounds,
    pub(super) components: Components,
}

impl Settings {
    /// A server on a free port of 127.0.0.1 that whoever has this token may use,
    /// in any of the standard modes.
    #[must_use]
    pub fn new(access: Access) -> Settings {
        Settings {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            beyond_loopback: false,
            accesses: vec![access],
            hosts: Vec::new(),
            origins: Vec::new(),
            modes: standard(),
            pages: Vec::new(),
            bounds: Bounds::default(),
            components: Components::new(),
        }
    }

    /// Listens at this address; only one of loopback is taken.
    #[must_use]
    pub fn address(mut self, address: SocketAddr) -> Settings {
        self.address = address;
        self
    }

    /// Listens at this address, which others may reach. What is said there is not
    /// encrypted, tokens included: put a proxy with TLS in front of it where the
    /// network is not trusted.
    #[must_use]
    pub fn address_for_others(mut self, address: SocketAddr) -> Settings {
        self.beyond_loopback = true;
        self.address(address)
    }

    /// Lets others in, with a token of their own.
    #[must_use]
    pub fn access(mut self, access: Access) -> Settings {
        self.accesses.push(access);
        self
    }

    /// A name by which clients call this host: `station.example`. Addresses and
    /// `localhost` are known; under other names nobody is answered, so that no
    /// page can get here by a name of its own.
    #[must_use]
    pub fn host(mut self, host: impl Into<String>) -> Settings {
        self.hosts.push(host.into().to_ascii_lowercase());
        self
    }

    /// Lets pages of this origin in, as `https://dashboard.example`. Otherwise
    /// only pages that come from here are let in.
    #[must_use]
    pub fn origin(mut self, origin: impl Into<String>) -> Settings {
        self.origins.push(origin.into().to_ascii_lowercase());
        self
    }

    /// Offers a transfer mode, in the place of one that has its name.
    #[must_use]
    pub fn mode(mut self, mode: impl Mode + 'static) -> Settings {
        self.modes.replace(Arc::new(mode));
        self
    }

    /// Shows a page to everybody, with a token or without.
    #[must_use]
    pub fn page(mut self, page: Page) -> Settings {
        self.pages.push(page);
        self
    }

    /// Other bounds.
    #[must_use]
    pub fn bounds(mut self, bounds: Bounds) -> Settings {
        self.bounds = bounds;
        self
    }

    /// The inputs and outputs that `/ready` and `/metrics` tell of. The server
    /// enters itself.
    #[must_use]
    pub fn components(mut self, components: &Components) -> Settings {
        self.components = components.clone();
        self
    }
}

/// The standard modes. The first is taken where a client names none, which then
/// is one that everybody reads.
fn standard() -> Modes {
    let mut modes = Modes::default();
    modes.add(Arc::new(Json));
    for mode in Modes::standard().iter() {
        modes.replace(Arc::clone(mode));
    }
    modes
}
