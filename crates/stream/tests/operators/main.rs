//! The operators: what they make of events, against simple models.

mod aggregate;
mod documentation;
mod examples;
mod restart;
mod run;
mod single;
