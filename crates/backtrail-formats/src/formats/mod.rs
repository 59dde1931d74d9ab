//! One file or directory for each format.

mod blocks;
mod checkpoint_files;
mod claude_code;
mod claw_code;
mod codex;
mod copilot_cli;
mod crush;
mod forest;
mod gemini_cli;
mod goose;
mod keys;
mod opencode;
mod parts;
mod pi;
mod qwen_code;
mod rows;
mod value;

pub use checkpoint_files::CheckpointFiles;
pub use claude_code::ClaudeCode;
pub use claw_code::ClawCode;
pub use codex::Codex;
pub use copilot_cli::CopilotCli;
pub use crush::Crush;
pub use gemini_cli::GeminiCli;
pub use goose::Goose;
pub use opencode::OpenCode;
pub use pi::Pi;
pub use qwen_code::QwenCode;
