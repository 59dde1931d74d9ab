//! One file or directory for each format.

mod antigravity;
mod blocks;
mod checkpoint_files;
mod claude_code;
mod claw_code;
mod codex;
mod content;
mod cursor;
mod droid;
mod gemini_cli;
mod grok_cli;
mod hermes;
mod keys;
mod kimi_cli;
mod log;
mod openclaw;
mod pi;
mod value;

pub use antigravity::Antigravity;
pub use checkpoint_files::CheckpointFiles;
pub use claude_code::ClaudeCode;
pub use claw_code::ClawCode;
pub use codex::Codex;
pub use cursor::Cursor;
pub use droid::Droid;
pub use gemini_cli::GeminiCli;
pub use grok_cli::GrokCli;
pub use hermes::Hermes;
pub use kimi_cli::KimiCli;
pub use openclaw::OpenClaw;
pub use pi::Pi;
