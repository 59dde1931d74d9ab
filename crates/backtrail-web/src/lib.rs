//! The local pages of the command `backtrail`.
//!
//! A page is an empty shell that anybody may load. Everything in it is fetched with the token of
//! this start, which came in the fragment of the opened address. What is shown comes from a
//! [`Site`](library::Site), which the command implements.

mod answer;
pub mod library;
mod pages;
mod routes;
