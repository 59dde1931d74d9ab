//! The local pages of the command `backtrail`.
//!
//! A page is an empty shell that anybody may load. Everything in it is fetched with the token of
//! this start, which came in the fragment of the opened address. What is shown comes from a
//! [`Site`](library::Site), which the command implements.

mod actions;
mod answer;
mod app;
mod connections;
mod events;
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
