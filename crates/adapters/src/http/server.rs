//! The server: one thread, in which all connections are served.

use std::io::{self, Error, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use milieu_stream::{Status, Streams};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::pages::{self, Shown};
use super::presses::Presses;
use super::push::Publishers;
use super::settings::{Bounds, Settings};
use super::{answer, gate, metrics, push};
use crate::component::{self, Component, Components};

/// A server that runs. It ends when this is dropped, and with it all
/// connections.
#[must_use = "the server ends when this is dropped"]
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    component: Arc<Component>,
    components: Components,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What all requests share.
pub(super) struct Server {
    pub streams: Streams,
    pub settings: Settings,
    pub component: Arc<Component>,
    pub publishers: Publishers,
    pub presses: Presses,
    pub pages: Vec<Shown>,
    /// The name of this host, for metrics.
    pub host: String,
}

/// Serves streams over HTTP until the answer is dropped; see the
/// [module](super).
///
/// # Errors
/// If the address cannot be had, or others could reach it and that was not asked
/// for; if a page has a path or a media type that cannot be; or if there are no
/// threads left.
pub fn serve(streams: &Streams, mut settings: Settings) -> io::Result<Serving> {
    let wanted = settings.address;
    if !wanted.ip().is_loopback() && !settings.beyond_loopback {
        let message = format!(
            "others could reach {wanted}; if that is meant, say so by \
             `Settings::address_for_others`"
        );
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    let pages = pages::shown(std::mem::take(&mut settings.pages))?;
    let named = |error: Error| {
        let message = format!("cannot listen at {wanted}: {error}; choose another port, or 0");
        Error::new(error.kind(), message)
    };
    let listener = TcpListener::bind(wanted).map_err(named)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let components = settings.components.clone();
    let component = components.add(format!("http://{address}"), "http_server");
    let server = Arc::new(Server {
        streams: streams.clone(),
        host: host_name(),
        component: Arc::clone(&component),
        publishers: Publishers::default(),
        presses: Presses::default(),
        pages,
        settings,
    });
    let (end, ended) = oneshot::channel();
    let thread = thread::Builder::new().name("milieu-http".to_owned());
    let thread = thread.spawn(move || {
        // The connections end with the run time, which is dropped last.
        runtime.block_on(async {
            tokio::select! {
                _ = ended => {}
                () = accept(server, listener) => {}
            }
        });
    })?;
    component.say(Status::Working);
    Ok(Serving {
        address,
        component,
        components,
        end: Some(end),
        thread: Some(thread),
    })
}

impl Serving {
    /// Where it listens, with the port that it got.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has counted: events received and sent, events discarded because
    /// clients were slow, and what was refused.
    #[must_use]
    pub fn component(&self) -> &Component {
        &self.component
    }

    /// What `/ready` and `/metrics` tell of.
    #[must_use]
    pub fn components(&self) -> &Components {
        &self.components
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.end.take());
        component::await_end(self.thread.take());
    }
}

impl Server {
    pub fn is_page(&self, path: &str) -> bool {
        self.pages.iter().any(|page| page.path == path)
    }
}

/// After a failure to accept, such as for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

async fn accept(server: Arc<Server>, listener: TcpListener) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            return server
                .component
                .say(Status::Failing(error.to_string().into()));
        }
    };
    let routes = routes(&server);
    let places = Arc::new(Semaphore::new(server.settings.bounds.connections));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            server.component.count_error("accept");
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            server.component.count_error("connections");
            continue;
        };
        let (routes, bounds) = (routes.clone(), server.settings.bounds);
        tokio::spawn(connection(stream, routes, Place(Arc::new(place)), bounds));
    }
}

/// The place of a connection among those that there may be. Whoever takes the
/// connection over keeps it.
#[derive(Clone)]
pub(super) struct Place(#[expect(dead_code, reason = "it is there")] Arc<OwnedSemaphorePermit>);

/// Serves one connection. What is wrong with it is the client's to know.
async fn connection(stream: TcpStream, routes: Router, place: Place, bounds: Bounds) {
    let _ = stream.set_nodelay(true);
    // A client that takes nothing of what is sent holds its place no longer.
    let patience = u32::try_from(bounds.patience.as_millis()).unwrap_or(u32::MAX);
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, patience);
    let routes = TowerToHyperService::new(routes);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(place.clone());
        routes.call(request)
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.patience)
        .max_buf_size(bounds.head_bytes.max(8192))
        .max_headers(bounds.head_lines)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let _ = serving.await;
}

fn routes(server: &Arc<Server>) -> Router {
    // Pages have all paths that requests may, those with colons and asterisks too.
    let mut routes = Router::new()
        .without_v07_checks()
        .route("/ping", get(|| async { "pong\n" }))
        .route("/ready", get(answer::readiness))
        .route("/metrics", get(metrics::metrics))
        .route("/latest", get(answer::latest))
        .route("/socket", get(answer::socket))
        .route("/events", get(answer::events).post(push::push));
    for page in &server.pages {
        let headers = [
            (header::CONTENT_TYPE, page.media_type.clone()),
            (
                header::REFERRER_POLICY,
                HeaderValue::from_static("no-referrer"),
            ),
            (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        ];
        let answer = (headers, page.content.clone());
        routes = routes.route(&page.path, get(move || async move { answer }));
    }
    routes
        .layer(from_fn_with_state(Arc::clone(server), gate::gate))
        .with_state(Arc::clone(server))
}

fn host_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}
