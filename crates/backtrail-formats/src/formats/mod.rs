//! One file or directory for each format.

mod blocks;
mod checkpoint_files;
mod claude_code;
mod claw_code;
mod codex;
mod copilot_cli;
mod forest;
mod gemini_cli;
mod keys;
mod parts;
mod pi;
mod qwen_code;
mod value;

pub use checkpoint_files::CheckpointFiles;
pub use claude_code::ClaudeCode;
pub use claw_code::ClawCode;
pub use codex::Codex;
pub use copilot_cli::CopilotCli;
pub use gemini_cli::GeminiCli;
pub use pi::Pi;
pub use qwen_code::QwenCode;
