//! The integration tests, in one program: that is built and linked once. What needs a
//! process of its own, or is run by itself, is a program beside it.

mod charts;
mod description;
mod generated;
mod hostile;
mod round_trips;
mod run;
mod schemas;
