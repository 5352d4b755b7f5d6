//! The integration tests, in one program: that is built and linked once. What needs a
//! process of its own, or is run by itself, is a program beside it.

mod alone;
mod any_document;
mod blocking;
mod bound;
mod build;
mod chains;
mod engine;
mod functions;
mod guide;
mod language;
mod links;
mod links_model;
mod links_peers;
mod looks;
mod names;
mod names_model;
mod names_queries;
mod network;
mod one_flow;
#[path = "support/random.rs"]
mod random;
mod random_graphs;
mod rehearsal;
mod schema;
mod sharing;
mod snapshot;
mod streams;
mod support;
