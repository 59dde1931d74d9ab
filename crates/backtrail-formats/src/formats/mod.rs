//! One file for each format.

mod checkpoint_files;
mod claude_code;
mod claw_code;
mod codex;
mod gemini_cli;
mod pi;
mod pieces;

pub use checkpoint_files::CheckpointFiles;
pub use claude_code::ClaudeCode;
pub use claw_code::ClawCode;
pub use codex::Codex;
pub use gemini_cli::GeminiCli;
pub use pi::Pi;
