//! One file or directory for each format.

mod blocks;
mod checkpoint_files;
mod claude_code;
mod claw_code;
mod codex;
mod gemini_cli;
mod keys;
mod pi;
mod value;

pub use checkpoint_files::CheckpointFiles;
pub use claude_code::{ClaudeCode, SentRequest, WhichRequest, sent_request};
pub use claw_code::ClawCode;
pub use codex::Codex;
pub use gemini_cli::GeminiCli;
pub use pi::Pi;
