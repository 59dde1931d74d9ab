//! A scripted model for real agents.
//!
//! [`Server`] listens on loopback and speaks the protocols that coding agents use: Anthropic
//! Messages, OpenAI Responses, OpenAI chat completions and Gemini, streamed and not. What it
//! answers is data, a [`Script`]: the marker in the last prompt chooses the turn, and the number
//! of results since chooses the step. Each call is built from the tools that the request offers,
//! so one script drives every agent. All requests are logged, and an answer can be held back until
//! a file exists or the test releases it.
//!
//! The tests with real agents are in `tests/agents`; `.ci/agents` installs the agents and runs them.

#![allow(
    clippy::disallowed_methods,
    reason = "tests write files the way programs without an engine do"
)]

mod conversation;
mod exchange;
mod http;
mod script;
mod server;
#[cfg(test)]
mod server_tests;
mod tools;
mod wire;

pub use conversation::{Call, Conversation, Entry, Tool};
pub use exchange::{Answer, Exchange, Kind, Usage};
pub use script::{Action, Hold, Script, Step, Turn};
pub use server::{Observer, Server};
