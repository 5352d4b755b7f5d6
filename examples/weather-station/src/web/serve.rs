//! Connections: how many at once, how long each may take, and what a client
//! is told whose request cannot even be parsed.
//!
//! The number of connections is bounded, and so is what each may cost: a
//! request head has a size and a time, an answer that nobody takes has a time
//! after which the kernel gives the connection up. Connections beyond the
//! number wait in the kernel's queue; none is turned away.

use super::explaining::{Explaining, farewell};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// The longest request head: a request line and its headers.
pub(super) const HEAD_BYTES_MAX: usize = 16 * 1024;

/// The most headers that a request may have.
pub(super) const HEADERS_MAX: usize = 64;

/// How long connections may take to end when the station does.
const GRACE: Duration = Duration::from_secs(3);

/// What clients may ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Connections at once.
    pub(crate) connections: usize,
    /// How long a client may take to send a request or to take an answer.
    pub(crate) patience: Duration,
}

/// Serves connections until `ended` holds true, then lets them finish.
pub(crate) async fn serve(
    listener: TcpListener,
    app: Router,
    limits: Limits,
    mut ended: watch::Receiver<bool>,
) {
    let slots = Arc::new(Semaphore::new(limits.connections));
    let mut connections = JoinSet::new();
    loop {
        let next = async {
            let slot = Arc::clone(&slots).acquire_owned().await;
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            biased;
            _ = ended.wait_for(|ended| *ended) => break,
            next = next => next,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((stream, _)) => {
                let (app, ended) = (app.clone(), ended.clone());
                connections.spawn(async move {
                    connection(stream, app, limits, ended).await;
                    drop(slot);
                });
            }
            // The client has gone, or descriptors have run out; neither is
            // a reason to end, and the latter passes.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    drop(listener);
    let finished = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, finished).await.is_err() {
        connections.shutdown().await;
    }
}

async fn connection(
    stream: TcpStream,
    app: Router,
    limits: Limits,
    mut ended: watch::Receiver<bool>,
) {
    let patience_ms = u32::try_from(limits.patience.as_millis()).unwrap_or(u32::MAX);
    // Best effort: both are refinements that the station works without.
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, patience_ms);
    let stream = Arc::new(stream);
    let io = Explaining::new(Arc::clone(&stream));
    let unanswered = io.unanswered();
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.patience)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .serve_connection(io, TowerToHyperService::new(app));
    let result = {
        let mut connection = std::pin::pin!(connection);
        let mut leaving = false;
        loop {
            tokio::select! {
                result = connection.as_mut() => break result,
                _ = ended.wait_for(|ended| *ended), if !leaving => {
                    leaving = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    };
    if let Err(error) = result {
        let late = error.is_timeout() && unanswered.load(std::sync::atomic::Ordering::Relaxed);
        farewell(&stream, late, limits.patience).await;
    }
}
