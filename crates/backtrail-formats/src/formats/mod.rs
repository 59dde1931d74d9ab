//! One file or directory for each format.

mod aider;
mod atif;
mod blocks;
mod checkpoint_files;
mod claude_code;
mod claw_code;
mod cline;
mod codex;
mod copilot_cli;
mod forest;
mod gemini_cli;
mod hf_traces;
mod keys;
mod parts;
mod pi;
mod qwen_code;
mod value;

pub use aider::Aider;
pub use atif::Atif;
pub use checkpoint_files::CheckpointFiles;
pub use claude_code::ClaudeCode;
pub use claw_code::ClawCode;
pub use cline::{Cline, KiloCode, RooCode};
pub use codex::Codex;
pub use copilot_cli::CopilotCli;
pub use gemini_cli::GeminiCli;
pub use hf_traces::HfTraces;
pub use pi::Pi;
pub use qwen_code::QwenCode;
