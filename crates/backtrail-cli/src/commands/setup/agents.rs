//! The agents, where each keeps its hooks, and which events it has.
//!
//! | agent | mechanism | what it runs | payload |
//! |---|---|---|---|
//! | Claude Code, Codex, Gemini CLI, Qwen Code | `hooks` in a settings file | `backtrail hook AGENT --event EVENT` | JSON on stdin |
//! | Copilot CLI | a file of its own in `hooks/` | the same | JSON on stdin, without the event's name |
//! | Cline | an executable for each event | the same | JSON on stdin |
//! | opencode | a plugin | the same | `{"input", "output", "directory"}` or `{"event", "directory"}` on stdin |
//! | pi | an extension | the same | the event with `session_id`, `transcript_path` and `cwd` on stdin |
//!
//! Codex also has `notify`, a single command that may be the user's; `Stop` reports the same.
//!
//! An agent that does not know an event may refuse the whole file: older versions of Claude Code ignore all
//! settings then. So its list has only events that every version with hooks knows.

use std::path::PathBuf;

use backtrail_formats::Environment;

/// An agent whose hooks can be installed.
#[derive(Debug)]
pub(super) struct HookAgent {
    pub(super) name: &'static str,
    /// The name of its program, by which people know it.
    pub(super) program: &'static str,
    pub(super) title: &'static str,
    /// The directory of its settings: a variable that names it, or else one below the home
    /// directory, and a folder below both.
    home: (&'static str, &'static str, &'static str),
    /// The place of the hooks below it.
    pub(super) place: &'static str,
    pub(super) mechanism: Mechanism,
    /// The events, and how many seconds the agent waits for each at most.
    pub(super) events: &'static [(&'static str, u64)],
}

/// How an agent runs hooks.
#[derive(Debug)]
pub(super) enum Mechanism {
    /// Part of a settings file.
    Settings {
        /// How many units of its timeout are a second.
        second: u64,
        /// Settings by which the user turns all hooks off, and the value that does.
        off: &'static [(&'static [&'static str], bool)],
    },
    /// A JSON file of our own.
    Copilot,
    /// A directory of executables, one for each event.
    Scripts,
    /// A program of our own that the agent loads.
    Module {
        /// What the agent calls it.
        what: &'static str,
        source: &'static str,
    },
}

/// Before a tool, the hook itself waits for 2 seconds at most.
const TOOL: u64 = 5;
/// The start only begins a snapshot, and the end of a turn waits for one.
const TURN: u64 = 10;
/// Codex cuts it here.
const END: u64 = 3;

/// The events of Claude Code, also known to agents that follow it.
const CLAUDE: &[(&str, u64)] = &[
    ("SessionStart", TURN),
    ("UserPromptSubmit", TOOL),
    ("PreToolUse", TOOL),
    ("PostToolUse", TOOL),
    ("SubagentStop", TOOL),
    ("Stop", TURN),
    ("SessionEnd", END),
];

/// All agents, in the order in which they are shown.
pub(super) const AGENTS: &[HookAgent] = &[
    HookAgent {
        name: "claude-code",
        program: "claude",
        title: "Claude Code",
        home: ("CLAUDE_CONFIG_DIR", ".claude", ""),
        place: "settings.json",
        mechanism: Mechanism::Settings {
            second: 1,
            off: &[(&["disableAllHooks"], true)],
        },
        events: CLAUDE,
    },
    HookAgent {
        name: "codex",
        program: "codex",
        title: "Codex",
        home: ("CODEX_HOME", ".codex", ""),
        place: "hooks.json",
        mechanism: Mechanism::Settings {
            second: 1,
            off: &[],
        },
        events: &[
            ("SessionStart", TURN),
            ("UserPromptSubmit", TOOL),
            ("PreToolUse", TOOL),
            ("PostToolUse", TOOL),
            ("SubagentStart", TOOL),
            ("SubagentStop", TOOL),
            ("Stop", TURN),
            ("SessionEnd", END),
        ],
    },
    HookAgent {
        name: "gemini-cli",
        program: "gemini",
        title: "Gemini CLI",
        home: ("GEMINI_CLI_HOME", "", ".gemini"),
        place: "settings.json",
        mechanism: Mechanism::Settings {
            second: 1000,
            off: &[(&["hooksConfig", "enabled"], false)],
        },
        events: &[
            ("SessionStart", TURN),
            ("BeforeAgent", TOOL),
            ("BeforeTool", TOOL),
            ("AfterTool", TOOL),
            ("AfterAgent", TURN),
            ("SessionEnd", END),
        ],
    },
    HookAgent {
        name: "qwen-code",
        program: "qwen",
        title: "Qwen Code",
        home: ("QWEN_HOME", ".qwen", ""),
        place: "settings.json",
        mechanism: Mechanism::Settings {
            second: 1,
            off: &[(&["disableAllHooks"], true)],
        },
        events: CLAUDE,
    },
    HookAgent {
        name: "copilot-cli",
        program: "copilot",
        title: "Copilot CLI",
        home: ("COPILOT_HOME", ".copilot", ""),
        place: "hooks/backtrail.json",
        mechanism: Mechanism::Copilot,
        events: &[
            ("sessionStart", TURN),
            ("userPromptSubmitted", TOOL),
            ("preToolUse", TOOL),
            ("postToolUse", TOOL),
            ("subagentStart", TOOL),
            ("subagentStop", TOOL),
            ("agentStop", TURN),
            ("sessionEnd", END),
        ],
    },
    HookAgent {
        name: "cline",
        program: "cline",
        title: "Cline",
        home: ("CLINE_DIR", ".cline", ""),
        place: "hooks",
        mechanism: Mechanism::Scripts,
        // Cline has a time limit of its own.
        events: &[
            ("TaskStart", TURN),
            ("TaskResume", TURN),
            ("UserPromptSubmit", TOOL),
            ("PreToolUse", TOOL),
            ("PostToolUse", TOOL),
            ("TaskComplete", TURN),
            ("TaskCancel", TURN),
            ("SessionShutdown", END),
        ],
    },
    HookAgent {
        name: "opencode",
        program: "opencode",
        title: "opencode",
        home: ("XDG_CONFIG_HOME", ".config", "opencode"),
        place: "plugin/backtrail.js",
        mechanism: Mechanism::Module {
            what: "plugin",
            source: concat!(include_str!("call_hook.js"), include_str!("opencode.js")),
        },
        // The plugin has the limits.
        events: &[
            ("session.created", TURN),
            ("chat.message", TOOL),
            ("tool.execute.before", TOOL),
            ("tool.execute.after", TOOL),
            ("session.idle", TURN),
            ("session.deleted", END),
        ],
    },
    HookAgent {
        name: "pi",
        program: "pi",
        title: "pi",
        home: ("PI_CODING_AGENT_DIR", ".pi/agent", ""),
        place: "extensions/backtrail.ts",
        mechanism: Mechanism::Module {
            what: "extension",
            source: concat!(include_str!("call_hook.js"), include_str!("pi.ts")),
        },
        // The extension has the limits.
        events: &[
            ("session_start", TURN),
            ("input", TOOL),
            ("tool_call", TOOL),
            ("tool_result", TOOL),
            ("agent_end", TURN),
            ("session_shutdown", END),
        ],
    },
];

impl HookAgent {
    /// Returns the directory of the agent's settings; `None` without a home directory.
    pub(super) fn home(&self, environment: &Environment) -> Option<PathBuf> {
        let (variable, below_home, folder) = self.home;
        let directory = environment.directory(variable, below_home)?;
        Some(match folder.is_empty() {
            true => directory,
            false => directory.join(folder),
        })
    }

    /// Returns whether its settings can have a status line.
    pub(super) fn has_status_line(&self) -> bool {
        self.name == "claude-code"
    }

    /// Returns a time limit in the agent's units.
    pub(super) fn limit(&self, seconds: u64) -> u64 {
        match self.mechanism {
            Mechanism::Settings { second, .. } => seconds * second,
            _ => seconds,
        }
    }
}

/// Returns the agents with these names, or all.
pub(super) fn named(names: &[String]) -> Vec<&'static HookAgent> {
    let is_named = |agent: &&HookAgent| names.iter().any(|name| name == agent.name);
    let agents = AGENTS.iter();
    agents
        .filter(|agent| names.is_empty() || is_named(agent))
        .collect()
}
