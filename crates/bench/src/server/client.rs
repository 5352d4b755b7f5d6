//! Clients of a server that coordinates: they hand it groups, and may go.

use std::time::Duration;

use serde_json::Value as Json;

use super::cluster::{Connection, Refusal};
use super::jobs::{self, Job, Piece};
use super::{Key, Request};
use crate::description::Group;
use crate::result::Results;

/// A connection with a server that coordinates.
pub struct Client(Connection);

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// The server cannot be reached, or does not know the key.
    pub fn connect(host: &str, port: u16, key: &Key) -> std::io::Result<Client> {
        Connection::new(host, port, key).map(Client)
    }

    fn ask<T: serde::de::DeserializeOwned>(&mut self, request: Request) -> Result<T, String> {
        self.0.ask(request).map_err(Refusal::into_text)
    }

    /// Hands over a group; it is kept there, and runs when its turn comes. Hosts that
    /// are lost are waited for so long.
    ///
    /// # Errors
    /// The server does not coordinate, or the group is wrong.
    pub fn submit(&mut self, group: &Group, patience: Duration) -> Result<u64, String> {
        self.ask(Request::Submit {
            group: Box::new(group.clone()),
            patience_seconds: patience.as_secs_f64(),
        })
    }

    /// Lets the server run a command that its owner has added; what it says.
    ///
    /// # Errors
    /// There is no such command for whoever asks, or it failed.
    pub fn command(&mut self, name: &str, argument: Json) -> Result<Json, String> {
        let name = name.to_owned();
        self.ask(Request::Command { name, argument })
    }

    /// All jobs of the server.
    ///
    /// # Errors
    /// The server is lost, or does not coordinate.
    pub fn jobs(&mut self) -> Result<Vec<Job>, String> {
        self.ask(Request::Jobs)
    }

    /// How far a job is.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn job(&mut self, id: u64) -> Result<Job, String> {
        self.ask(Request::Job(id))
    }

    /// Ends a job; what it has done is kept.
    ///
    /// # Errors
    /// It has ended.
    pub fn cancel(&mut self, id: u64) -> Result<(), String> {
        self.ask::<Json>(Request::Cancel(id)).map(|_| ())
    }

    /// Lets a job go on that has ended before its end.
    ///
    /// # Errors
    /// It has not, or is done.
    pub fn resume(&mut self, id: u64) -> Result<(), String> {
        self.ask::<Json>(Request::Resume(id)).map(|_| ())
    }

    /// The result of a job that is done.
    ///
    /// # Errors
    /// It is not done.
    pub fn results(&mut self, id: u64) -> Result<Results, String> {
        let mut text = Vec::new();
        loop {
            let from = text.len() as u64;
            let piece: Piece = self.ask(Request::Fetch { id, from })?;
            let data = piece.data()?;
            if data.is_empty() {
                return jobs::results(&text);
            }
            text.extend(data);
            if text.len() as u64 >= piece.bytes {
                return jobs::results(&text);
            }
        }
    }
}
