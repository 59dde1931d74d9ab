//! One row for each agent: the names of its events, where its fields are, and which of its
//! tools only read.

use super::Meaning::{self, *};
use super::payload::Payload;

/// What is known about the hooks of an agent.
pub(super) struct HookAgent {
    pub(super) name: &'static str,
    /// What its events mean. All others are passed on by their name.
    pub(super) events: &'static [(&'static str, Meaning)],
    pub(super) fields: &'static Fields,
    /// Tools that change no files of a workspace.
    pub(super) read_only: &'static [&'static str],
    /// Events by the fields that only they have, for payloads that do not name their event.
    pub(super) guesses: &'static [(&'static [&'static str], &'static str)],
    pub(super) answers: Answers,
}

/// Where the fields of a payload are. Of several paths, the first that is there counts.
#[derive(Clone, Copy)]
pub(super) struct Fields {
    pub(super) event: Paths,
    pub(super) session: Paths,
    pub(super) turn: Paths,
    pub(super) transcript: Paths,
    pub(super) directory: Paths,
    pub(super) sub_agent: Paths,
    /// Where only sub-agents have something: without it, `sub_agent` is about the agent itself.
    pub(super) parent: Paths,
    pub(super) call: Paths,
    pub(super) tool: Paths,
    /// What a tool of an MCP server has.
    pub(super) mcp: Paths,
    pub(super) failed: &'static [Failed],
    pub(super) source: Paths,
    pub(super) prompt: Paths,
    /// The prompt as a list of parts.
    pub(super) parts: Paths,
    /// Whether a prompt without text only continues a turn.
    pub(super) blank_prompt_continues: bool,
}

pub(super) type Paths = &'static [&'static str];

/// How a payload says whether a tool failed.
#[derive(Clone, Copy)]
pub(super) enum Failed {
    /// If the field is there.
    If(&'static str),
    /// If the field is `true`.
    IfTrue(&'static str),
    /// If the field is `false`.
    IfFalse(&'static str),
    /// If the field is another word than `success`.
    UnlessSuccess(&'static str),
}

/// What an agent reads on a hook's stdout.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    /// `systemMessage` and `hookSpecificOutput`, as Claude Code defined them.
    Claude {
        /// The agent's name for the event of a prompt.
        prompt: &'static str,
        /// Whether the agent reads stderr where stdout is empty, so that it must not be.
        never_empty: bool,
    },
    Copilot,
    Cline,
    /// Our own plugin or extension passes it on.
    Own,
}

impl HookAgent {
    pub(super) fn meaning(&self, event: &str) -> Option<Meaning> {
        let mut events = self.events.iter();
        let known = events.find(|(name, _)| name.eq_ignore_ascii_case(event))?;
        Some(known.1)
    }

    /// Returns the event that only has these fields.
    pub(super) fn guess(&self, payload: &Payload<'_>) -> Option<&'static str> {
        let mut guesses = self.guesses.iter();
        let fits = |paths: &&[&'static str]| paths.iter().all(|path| payload.has(path));
        Some(guesses.find(|(paths, _)| fits(paths))?.1)
    }

    /// Returns the paths of all fields that are read.
    pub(super) fn paths(&self) -> Vec<&'static str> {
        let fields = self.fields;
        let single = [
            fields.event,
            fields.session,
            fields.turn,
            fields.transcript,
            fields.directory,
            fields.sub_agent,
            fields.parent,
            fields.call,
            fields.tool,
            fields.mcp,
            fields.source,
            fields.prompt,
            fields.parts,
        ];
        let failed = fields.failed.iter().map(|failed| match failed {
            Failed::If(path)
            | Failed::IfTrue(path)
            | Failed::IfFalse(path)
            | Failed::UnlessSuccess(path) => *path,
        });
        let guessed = self.guesses.iter().flat_map(|(paths, _)| *paths).copied();
        let mut all: Vec<_> = single
            .concat()
            .into_iter()
            .chain(failed)
            .chain(guessed)
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// All agents with hooks.
pub(super) const AGENTS: [HookAgent; 8] = [
    CLAUDE_CODE,
    CODEX,
    GEMINI_CLI,
    QWEN_CODE,
    COPILOT_CLI,
    CLINE,
    OPENCODE,
    PI,
];

/// No fields at all: what the rows below do not name.
const NONE: Fields = Fields {
    event: &[],
    session: &[],
    turn: &[],
    transcript: &[],
    directory: &[],
    sub_agent: &[],
    parent: &[],
    call: &[],
    tool: &[],
    mcp: &[],
    failed: &[],
    source: &[],
    prompt: &[],
    parts: &[],
    blank_prompt_continues: false,
};

/// The fields of Claude Code, which three others have too.
const CLAUDE_FIELDS: Fields = Fields {
    event: &["hook_event_name"],
    session: &["session_id"],
    turn: &["prompt_id"],
    transcript: &["transcript_path"],
    directory: &["cwd"],
    sub_agent: &["agent_id"],
    call: &["tool_use_id"],
    tool: &["tool_name"],
    source: &["source"],
    prompt: &["prompt"],
    ..NONE
};

const CLAUDE_CODE: HookAgent = HookAgent {
    name: "claude-code",
    events: &[
        ("SessionStart", SessionStart),
        ("SessionEnd", SessionEnd),
        ("UserPromptSubmit", Prompt),
        ("PreToolUse", ToolStart),
        ("PostToolUse", ToolDone),
        ("PostToolUseFailure", ToolFailed),
        ("Stop", TurnEnd),
        ("StopFailure", TurnEnd),
        ("SubagentStart", SubAgentStart),
        ("SubagentStop", SubAgentEnd),
        ("PreCompact", Compaction),
    ],
    fields: &CLAUDE_FIELDS,
    read_only: &[
        "AskUserQuestion",
        "BashOutput",
        "EnterPlanMode",
        "ExitPlanMode",
        "Glob",
        "Grep",
        "LS",
        "ListMcpResourcesTool",
        "NotebookRead",
        "Read",
        "ReadMcpResourceTool",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskOutput",
        "TaskUpdate",
        "TodoRead",
        "TodoWrite",
        "ToolSearch",
        "WebFetch",
        "WebSearch",
    ],
    guesses: &[],
    answers: Answers::Claude {
        prompt: "UserPromptSubmit",
        never_empty: false,
    },
};

const CODEX: HookAgent = HookAgent {
    name: "codex",
    events: &[
        ("SessionStart", SessionStart),
        ("SessionEnd", SessionEnd),
        ("UserPromptSubmit", Prompt),
        ("PreToolUse", ToolStart),
        ("PostToolUse", ToolEnd),
        ("Stop", TurnEnd),
        ("Interrupt", TurnEnd),
        // Of `notify`, which passes its payload as an argument.
        ("agent-turn-complete", TurnEnd),
        ("SubagentStart", SubAgentStart),
        ("SubagentStop", SubAgentEnd),
        ("PreCompact", Compaction),
    ],
    fields: &Fields {
        event: &["hook_event_name", "type"],
        session: &["session_id", "thread-id"],
        turn: &["turn_id", "turn-id"],
        ..CLAUDE_FIELDS
    },
    // Its shell is called `Bash`, whatever the command does.
    read_only: &[
        "grep_files",
        "list_dir",
        "list_mcp_resource_templates",
        "list_mcp_resources",
        "read_file",
        "read_mcp_resource",
        "request_user_input",
        "update_plan",
        "view_image",
        "web_search",
    ],
    guesses: &[],
    answers: CLAUDE_CODE.answers,
};

const GEMINI_CLI: HookAgent = HookAgent {
    name: "gemini-cli",
    // PreCompress is sent before every request to the model, whether it compresses or not.
    events: &[
        ("SessionStart", SessionStart),
        ("SessionEnd", SessionEnd),
        ("BeforeAgent", Prompt),
        ("BeforeTool", ToolStart),
        ("AfterTool", ToolEnd),
        ("AfterAgent", TurnEnd),
    ],
    fields: &Fields {
        mcp: &["mcp_context"],
        failed: &[Failed::If("tool_response/error")],
        ..CLAUDE_FIELDS
    },
    read_only: &[
        "ask_user",
        "enter_plan_mode",
        "exit_plan_mode",
        "get_internal_docs",
        "glob",
        "google_web_search",
        "grep_search",
        "list_directory",
        "list_mcp_resources",
        "read_file",
        "read_many_files",
        "read_mcp_resource",
        "search_file_content",
        "update_topic",
        "web_fetch",
        "write_todos",
    ],
    guesses: &[],
    answers: Answers::Claude {
        prompt: "BeforeAgent",
        never_empty: true,
    },
};

const QWEN_CODE: HookAgent = HookAgent {
    name: "qwen-code",
    events: CLAUDE_CODE.events,
    fields: &Fields {
        // Its own `tool_use_id` is nowhere in its transcript.
        call: &["tool_call_id", "tool_use_id"],
        prompt: &["submitted_prompt", "prompt"],
        blank_prompt_continues: true,
        ..CLAUDE_FIELDS
    },
    read_only: &[
        "ask_user_question",
        "cron_list",
        "enter_plan_mode",
        "exit_plan_mode",
        "glob",
        "grep_search",
        "list_agents",
        "list_directory",
        "read_file",
        "read_many_files",
        "read_mcp_resource",
        "search_file_content",
        "task_list",
        "todo_write",
        "web_fetch",
        "web_search",
    ],
    guesses: &[],
    answers: Answers::Claude {
        prompt: "UserPromptSubmit",
        never_empty: true,
    },
};

const COPILOT_CLI: HookAgent = HookAgent {
    name: "copilot-cli",
    // Events that are set up with a capital letter are sent with the fields of Claude Code.
    events: &[
        ("sessionStart", SessionStart),
        ("sessionEnd", SessionEnd),
        ("userPromptSubmitted", Prompt),
        ("UserPromptSubmit", Prompt),
        ("preToolUse", ToolStart),
        ("postToolUse", ToolEnd),
        ("postToolUseFailure", ToolFailed),
        ("agentStop", TurnEnd),
        ("Stop", TurnEnd),
        ("subagentStart", SubAgentStart),
        ("subagentStop", SubAgentEnd),
        ("preCompact", Compaction),
    ],
    fields: &Fields {
        event: &["hookName", "hook_event_name"],
        session: &["sessionId", "session_id"],
        transcript: &["transcriptPath", "transcript_path"],
        directory: &["cwd"],
        sub_agent: &["agentId", "agent_id", "agentName", "agent_name"],
        call: &["toolCallId", "tool_call_id"],
        tool: &["toolName", "tool_name"],
        failed: &[
            Failed::UnlessSuccess("toolResult/resultType"),
            Failed::UnlessSuccess("tool_result/result_type"),
        ],
        source: &["source"],
        prompt: &["prompt"],
        ..NONE
    },
    read_only: &[
        "ask_user",
        "fetch_copilot_cli_documentation",
        "glob",
        "grep",
        "list_bash",
        "read_bash",
        "report_intent",
        "rg",
        "update_todo",
        "view",
        "web_fetch",
        "web_search",
    ],
    guesses: &[
        (&["toolName", "toolResult"], "postToolUse"),
        (&["toolName", "error"], "postToolUseFailure"),
        (&["toolName"], "preToolUse"),
        (&["prompt"], "userPromptSubmitted"),
        (&["agentName", "stopReason"], "subagentStop"),
        (&["agentName"], "subagentStart"),
        (&["stopReason"], "agentStop"),
        (&["trigger"], "preCompact"),
        (&["source"], "sessionStart"),
        (&["reason"], "sessionEnd"),
    ],
    answers: Answers::Copilot,
};

const CLINE: HookAgent = HookAgent {
    name: "cline",
    // The names of its hook files, which the editor's extension sends, and those that the
    // command sends.
    events: &[
        ("TaskStart", SessionStart),
        ("agent_start", SessionStart),
        ("TaskResume", SessionResume),
        ("agent_resume", SessionResume),
        ("UserPromptSubmit", Prompt),
        ("prompt_submit", Prompt),
        ("PreToolUse", ToolStart),
        ("tool_call", ToolStart),
        ("PostToolUse", ToolEnd),
        ("tool_result", ToolEnd),
        ("TaskComplete", TurnEnd),
        ("agent_end", TurnEnd),
        ("TaskCancel", TurnEnd),
        ("agent_abort", TurnEnd),
        ("TaskError", TurnEnd),
        ("agent_error", TurnEnd),
        ("PreCompact", Compaction),
        ("pre_compact", Compaction),
        ("SessionShutdown", SessionEnd),
        ("session_shutdown", SessionEnd),
    ],
    fields: &Fields {
        event: &["hookName"],
        // The directory of a session has the root's id; `taskId` is the conversation's.
        session: &["sessionContext/rootSessionId", "taskId"],
        directory: &["workspaceInfo/rootPath", "workspaceRoots/0"],
        sub_agent: &["agent_id"],
        parent: &["parent_agent_id"],
        call: &["tool_call/id", "tool_result/id"],
        tool: &[
            "tool_call/name",
            "tool_result/name",
            "preToolUse/toolName",
            "postToolUse/toolName",
        ],
        failed: &[
            Failed::IfFalse("postToolUse/success"),
            Failed::If("tool_result/error"),
        ],
        prompt: &["userPromptSubmit/prompt"],
        ..NONE
    },
    read_only: &[
        "ask_followup_question",
        "ask_question",
        "fetch_web_content",
        "list_code_definition_names",
        "list_files",
        "plan_mode_respond",
        "read_file",
        "read_files",
        "search_codebase",
        "search_files",
        "web_fetch",
        "web_search",
    ],
    guesses: &[],
    answers: Answers::Cline,
};

const OPENCODE: HookAgent = HookAgent {
    name: "opencode",
    events: &[
        ("session.created", SessionStart),
        ("session.deleted", SessionEnd),
        ("chat.message", Prompt),
        ("tool.execute.before", ToolStart),
        ("tool.execute.after", ToolEnd),
        ("session.idle", TurnEnd),
        ("session.compacted", Compaction),
    ],
    fields: &Fields {
        event: &["event/type", "type"],
        session: &[
            "input/sessionID",
            "event/properties/sessionID",
            "event/properties/info/id",
            "properties/sessionID",
            "properties/info/id",
        ],
        turn: &["output/message/id"],
        directory: &[
            "directory",
            "event/properties/info/directory",
            "properties/info/directory",
            "input/cwd",
        ],
        sub_agent: &["event/properties/info/id", "properties/info/id"],
        parent: &["event/properties/info/parentID", "properties/info/parentID"],
        call: &["input/callID"],
        tool: &["input/tool"],
        parts: &["output/parts"],
        ..NONE
    },
    read_only: &[
        "codesearch",
        "glob",
        "grep",
        "list",
        "question",
        "read",
        "todoread",
        "todowrite",
        "webfetch",
        "websearch",
    ],
    guesses: &[
        (&["output/message"], "chat.message"),
        (&["input/tool", "input/args"], "tool.execute.after"),
        (&["input/tool", "output/metadata"], "tool.execute.after"),
        (&["input/tool"], "tool.execute.before"),
    ],
    answers: Answers::Own,
};

const PI: HookAgent = HookAgent {
    name: "pi",
    // Its `turn_end` is the end of one answer of the model, and its `tool_execution_start`
    // and `_end` are sent around `tool_call` and `tool_result`.
    events: &[
        ("session_start", SessionStart),
        ("session_shutdown", SessionEnd),
        ("input", Prompt),
        ("before_agent_start", Prompt),
        ("tool_call", ToolStart),
        ("tool_result", ToolEnd),
        ("agent_end", TurnEnd),
        ("agent_settled", TurnEnd),
        ("session_compact", Compaction),
    ],
    fields: &Fields {
        event: &["type"],
        session: &["session_id"],
        transcript: &["transcript_path", "session_file"],
        directory: &["cwd", "systemPromptOptions/cwd"],
        call: &["toolCallId"],
        tool: &["toolName"],
        failed: &[Failed::IfTrue("isError")],
        source: &["reason"],
        prompt: &["text", "prompt"],
        ..NONE
    },
    read_only: &["find", "grep", "ls", "read"],
    guesses: &[],
    answers: Answers::Own,
};
