//! Clients of a server that coordinates: they hand it groups, and may go.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use serde_json::Value as Json;

use super::cluster::{Connection, Pieces, Refusal};
use super::jobs::{self, Job};
use super::{Key, Request};
use crate::description::Group;
use crate::result::Results;
use crate::run::{Wanted, profile};

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
    pub fn submit(
        &mut self,
        group: &Group,
        patience: Duration,
        profile: Option<Wanted>,
    ) -> Result<u64, String> {
        self.ask(Request::Submit {
            group: Box::new(group.clone()),
            patience_seconds: patience.as_secs_f64(),
            profile,
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
        let connection = &mut self.0;
        let mut pieces = Pieces::new(|from| connection.ask(Request::Fetch { id, from }));
        let read = pieces.read_to_end(&mut text);
        read.map_err(|error| error.to_string())?;
        jobs::results(&text)
    }

    /// Fetches the profiles of which a result says that they were kept, into a folder.
    ///
    /// # Errors
    /// One cannot be fetched, or written.
    pub fn profiles(&mut self, id: u64, results: &Results, folder: &Path) -> Result<(), String> {
        let steps = results.tests.iter().flat_map(|test| &test.steps);
        let profiles = steps
            .flat_map(|step| &step.runs)
            .filter_map(|run| run.profile.as_ref());
        for name in profiles.flat_map(|profile| &profile.files) {
            if !profile::is_name(name) {
                return Err(format!("`{name}` is no name of a profile"));
            }
            let connection = &mut self.0;
            let mut pieces = Pieces::new(|from| {
                let name = name.clone();
                connection.ask(Request::FetchProfile { id, name, from })
            });
            let mut copy = || {
                fs::create_dir_all(folder)?;
                io::copy(&mut pieces, &mut File::create(folder.join(name))?)
            };
            copy().map_err(|error| format!("the profile {name}: {error}"))?;
        }
        Ok(())
    }
}
