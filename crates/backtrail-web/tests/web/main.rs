//! The promises of the server: what it gives to whom, over real sockets.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "files of tests are in no store, and a panic is how they tell"
)]

mod actions;
mod client;
mod events;
mod hosts;
mod methods;
mod opener;
mod origins;
mod other_users;
mod paths;
mod shells;
#[allow(dead_code, reason = "some of it is for the example and the pages")]
#[path = "../../examples/fake/site.rs"]
mod site;
mod sizes;
mod slow;
mod tokens;
