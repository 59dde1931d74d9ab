//! The agents whose sessions both Backtrail and ccusage read, their samples, and where these
//! belong in a home directory.

/// An agent.
#[derive(Debug)]
pub(super) struct Agent {
    /// Its name here.
    pub(super) name: &'static str,
    /// Its name in ccusage.
    pub(super) ccusage: &'static str,
    pub(super) samples: &'static [Samples],
}

/// Some samples of an agent.
#[derive(Debug)]
pub(super) struct Samples {
    /// Their directory, below that of all samples.
    pub(super) dir: &'static str,
    /// How their names end. If it is empty, the directory is one sample.
    pub(super) ending: &'static str,
    /// Where one is in a home directory. A star is its name.
    pub(super) place: &'static str,
}

const fn samples(dir: &'static str, ending: &'static str, place: &'static str) -> Samples {
    Samples { dir, ending, place }
}

/// The directories of Claude Code and Codex are set by variables, to the home directory.
const CLAUDE_CODE_PLACE: &str = "projects/-home-me-project/*";
const CODEX_PLACE: &str = "sessions/2026/01/01/rollout-*";
const GEMINI_PLACE: &str = ".gemini/tmp/project/chats/session-*";
const OPENCODE_DATABASE: &str = ".local/share/opencode/opencode.db";
const OPENCODE_STORAGE: &str = ".local/share/opencode/storage";
const QWEN_PLACE: &str = ".qwen/projects/-home-me-project/chats/*";
const COPILOT_PLACE: &str =
    ".copilot/session-state/00000000-0000-4000-8000-000000000001/events.jsonl";
const PI_PLACE: &str = ".pi/agent/sessions/--home-me-project--/*";
const GOOSE_PLACE: &str = ".local/share/goose/sessions/sessions.db";

pub(super) const CLAUDE_CODE: Agent = Agent {
    name: "claude-code",
    ccusage: "claude",
    samples: &[
        samples("claude-code", ".jsonl", CLAUDE_CODE_PLACE),
        samples("matrix-agent-sessions/claude", ".jsonl", CLAUDE_CODE_PLACE),
        samples("agents/claude", ".jsonl", CLAUDE_CODE_PLACE),
    ],
};

/// All of them.
pub(super) const AGENTS: [Agent; 11] = [
    CLAUDE_CODE,
    Agent {
        name: "codex",
        ccusage: "codex",
        samples: &[
            samples("codex", ".jsonl", CODEX_PLACE),
            samples("matrix-agent-sessions/codex", ".jsonl", CODEX_PLACE),
            samples("agents/codex", ".jsonl", CODEX_PLACE),
        ],
    },
    Agent {
        name: "gemini-cli",
        ccusage: "gemini",
        samples: &[
            samples("gemini-cli", ".json", GEMINI_PLACE),
            samples("matrix-agent-sessions/gemini", ".json", GEMINI_PLACE),
            samples("matrix-agent-sessions/gemini", ".jsonl", GEMINI_PLACE),
            samples("agents/gemini", ".jsonl", GEMINI_PLACE),
        ],
    },
    Agent {
        name: "opencode",
        ccusage: "opencode",
        samples: &[
            samples("opencode", ".db", OPENCODE_DATABASE),
            samples("agents/opencode", ".db", OPENCODE_DATABASE),
            samples(
                "matrix-agent-sessions/opencode/storage_legacy",
                "",
                OPENCODE_STORAGE,
            ),
            samples(
                "matrix-agent-sessions/opencode/storage_v2",
                "",
                OPENCODE_STORAGE,
            ),
        ],
    },
    Agent {
        name: "qwen-code",
        ccusage: "qwen",
        samples: &[
            samples("qwen-code", "chat-records.jsonl", QWEN_PLACE),
            samples("qwen-code", "qwen_code.jsonl", QWEN_PLACE),
            samples("qwen-code/generated-0.24.4", ".jsonl", QWEN_PLACE),
            samples("matrix-agent-sessions/qwen", ".jsonl", QWEN_PLACE),
            samples("agents/qwen/projects", ".jsonl", QWEN_PLACE),
        ],
    },
    Agent {
        name: "copilot-cli",
        ccusage: "copilot",
        samples: &[
            samples("matrix-agent-sessions/copilot", ".jsonl", COPILOT_PLACE),
            samples("agents/copilot", ".jsonl", COPILOT_PLACE),
        ],
    },
    Agent {
        name: "pi",
        ccusage: "pi",
        samples: &[
            samples("pi", ".jsonl", PI_PLACE),
            samples("matrix-agent-sessions/pi", ".jsonl", PI_PLACE),
            samples("agents/pi", ".jsonl", PI_PLACE),
        ],
    },
    Agent {
        name: "goose",
        ccusage: "goose",
        samples: &[
            samples("goose", ".db", GOOSE_PLACE),
            samples("agents/goose", ".db", GOOSE_PLACE),
        ],
    },
    Agent {
        name: "droid",
        ccusage: "droid",
        samples: &[samples(
            "matrix-agent-sessions/droid",
            ".jsonl",
            ".factory/sessions/-home-me-project/*",
        )],
    },
    Agent {
        name: "kimi-cli",
        ccusage: "kimi",
        samples: &[samples(
            "matrix-agent-sessions/kimi",
            ".jsonl",
            ".kimi-code/sessions/wd_project/session_1/agents/main/wire.jsonl",
        )],
    },
    Agent {
        name: "openclaw",
        ccusage: "openclaw",
        samples: &[samples(
            "matrix-agent-sessions/openclaw",
            ".jsonl",
            ".openclaw/agents/main/sessions/*",
        )],
    },
];
