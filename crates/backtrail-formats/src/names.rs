//! The names that people use for an agent: `claude`, `claude-code` and `Claude Code` are the same.

use crate::format::{Format, formats};

/// Endings of names that people leave out.
const ENDINGS: [&str; 2] = ["-code", "-cli"];

/// Returns the agent with a name: that of its sessions, its program or package, or the one that
/// people know it by. Case, spaces, `-` and `_` make no difference.
///
/// ```
/// use backtrail_formats::agent_called;
///
/// for name in ["claude-code", "claude", "Claude Code", "@anthropic-ai/claude-code"] {
///     assert_eq!(agent_called(name).map(|agent| agent.name()), Some("claude-code"));
/// }
/// assert!(agent_called("claud").is_none());
/// ```
pub fn agent_called(name: &str) -> Option<&'static dyn Format> {
    let plain = plain(name);
    formats().find(|format| agent_names(*format).any(|it| self::plain(it) == plain))
}

/// Returns the name of an agent for people, by the name in its sessions. A name that is not known
/// is returned as it is.
pub fn agent_title(name: &str) -> &str {
    let known = formats().find(|format| format.name() == name);
    known.map_or(name, |format| format.title())
}

/// Returns the names of an agent, without those that differ only in case or punctuation. The
/// first is that of its sessions.
pub fn agent_names(agent: &'static dyn Format) -> impl Iterator<Item = &'static str> {
    let name = agent.name();
    let short = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending));
    let (programs, packages) = (agent.agent().programs, agent.agent().packages);
    let other = programs.iter().chain(packages).copied();
    let all = [name, agent.title()].into_iter().chain(short).chain(other);
    let mut names: Vec<&str> = Vec::new();
    for name in all {
        if !names.iter().any(|known| plain(known) == plain(name)) {
            names.push(name);
        }
    }
    names.into_iter()
}

/// Returns what is left of a name without case, spaces and punctuation between its words.
fn plain(name: &str) -> String {
    let name = name.trim().to_lowercase();
    name.chars().filter(|c| !" -_".contains(*c)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn an_agent_is_found_by_each_of_its_common_names() {
        for (agent, names) in [
            (
                "claude-code",
                &["claude", "Claude", "claude_code", "claudecode"][..],
            ),
            ("codex", &["codex", "CODEX", "@openai/codex"]),
            ("gemini-cli", &["gemini", "gemini-cli", "Gemini CLI"]),
            ("qwen-code", &["qwen", "qwen-code", " Qwen Code "]),
            ("copilot-cli", &["copilot", "copilot-cli", "Copilot CLI"]),
            ("opencode", &["opencode", "open-code", "opencode-ai"]),
            ("cursor", &["cursor", "cursor-agent"]),
            ("kilo-code", &["kilo", "kilocode"]),
            ("roo-code", &["roo", "Roo Code"]),
            ("kimi-cli", &["kimi"]),
            ("grok-cli", &["grok"]),
            ("aider", &["aider-chat"]),
            ("pi", &["pi", "@earendil-works/pi-coding-agent"]),
        ] {
            for name in names {
                let found = agent_called(name).map(Format::name);
                assert_eq!(found, Some(agent), "{name:?}");
            }
        }
        for name in ["", "-", "claud", "code", "cli", "none"] {
            assert!(agent_called(name).is_none(), "{name:?}");
        }
    }

    #[test]
    fn no_two_agents_share_a_name_that_people_use() {
        let mut owners: BTreeMap<String, &str> = BTreeMap::new();
        for format in formats() {
            for name in agent_names(format) {
                let other = owners.insert(plain(name), format.name());
                assert_eq!(other, None, "{name:?} is also {}", format.name());
            }
        }
    }

    #[test]
    fn people_see_the_title_of_an_agent() {
        assert_eq!(agent_title("claude-code"), "Claude Code");
        assert_eq!(agent_title("my-own"), "my-own");
    }
}
