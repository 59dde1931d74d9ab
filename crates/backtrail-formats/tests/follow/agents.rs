//! Agents that write in other ways.
