//! The local pages of the command `backtrail`.
//!
//! A page is an empty shell that anybody may load. Everything in it is fetched with the token of
//! this start, which came in the fragment of the opened address. What is shown comes from a
//! [`Site`](library::Site), which the command implements.

#[cfg(test)]
extern crate self as backtrail_web;

mod actions;
mod answer;
mod app;
mod connections;
mod events;
#[cfg(test)]
#[allow(
    dead_code,
    reason = "some of it is for the example and the server's tests"
)]
#[path = "../examples/fake/site.rs"]
pub(crate) mod fake;
mod guard;
pub mod library;
mod opener;
mod pages;
mod reads;
mod routes;
mod server;
mod shell;
mod work;

pub use server::{Limits, Options, Server, start};
