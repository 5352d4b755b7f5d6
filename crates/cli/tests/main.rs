//! The integration tests, in one program: that is built and linked once. What needs a
//! process of its own, or is run by itself, is a program beside it.

mod bench;
mod bench_commands;
mod bench_counts;
mod bench_jobs;
mod bench_profiles;
mod bench_report;
mod bench_servers;
mod guide;
mod help;
mod home;
mod key;
mod key_check;
mod key_history;
mod key_secret;
mod key_transfer;
mod key_watch;
mod spec;
mod stream;
