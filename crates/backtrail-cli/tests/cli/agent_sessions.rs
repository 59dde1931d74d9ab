//! Sessions of agents that do not begin and end with their run: several in one, one that is
//! older, one of a sub-agent, and one in a subdirectory.
//!
//! F33: each prompt is still undone alone. F34: each session has its own words and files.

use serde_json::{Value, json};

use crate::kit::{Ran, finish};
use crate::live::{Claude, ID, codex, with_agent, write};

/// The id of a second session.
const OTHER: &str = "01a1e32f-3193-7ec2-ba12-3f42cfc4ab7d";

/// Runs a shell line in which `$AGENT` is the agent, under protection.
fn run_line(claude: &Claude, line: &str) -> Ran {
    let args = ["run", "--agent", "codex", "--", "sh", "-ec", line];
    let mut command = with_agent(claude, &args);
    command.env("AGENT", codex(claude)).env("OTHER", OTHER);
    let ran = finish(&mut command, b"");
    assert_eq!(ran.code, 0, "{ran:#?}");
    // It waits for what is still being imported; `list` does not.
    claude.run(&["log"]);
    ran
}

/// Returns the ids of the sessions in the list.
fn listed(claude: &Claude) -> Vec<String> {
    let listed = claude.run(&["list", "--json"]).json();
    let id = |it: &Value| it["id"].as_str().unwrap().to_owned();
    let mut ids: Vec<String> = listed.as_array().unwrap().iter().map(id).collect();
    ids.sort();
    ids
}

/// Returns the prompts of a session.
fn prompts(claude: &Claude, session: &str) -> Vec<String> {
    let shown = claude.run(&["show", session, "--json"]).json();
    let messages = shown["messages"].as_array().unwrap().iter();
    let users = messages.filter(|it| it["role"] == "user");
    let text = |it: &Value| it["blocks"][0]["text"].as_str().unwrap().to_owned();
    users.map(text).collect()
}

fn assert_undoes(claude: &Claude, said: &str) {
    let undone = claude.run(&["undo"]);
    assert_eq!(undone.code, 0, "{undone:#?}");
    assert!(undone.stdout.contains(said), "{said}: {undone:#?}");
}

/// Checks that there is no step left.
fn assert_nothing_to_undo(claude: &Claude) {
    let undone = claude.run(&["undo"]);
    let said = format!("{}{}", undone.stdout, undone.stderr);
    assert!(said.contains("nothing to undo"), "{undone:#?}");
}

/// F33, F34: what `/clear` does: a second session of the agent in the same run.
#[test]
fn f33_f34_two_sessions_in_one_run_are_two_and_each_prompt_is_a_step() {
    let claude = Claude::new();
    write(&claude.cli.work(), "file", "0\n");
    run_line(&claude, "\"$AGENT\" one two; ID=$OTHER \"$AGENT\" three");
    assert_eq!(listed(&claude), [ID, OTHER]);
    assert_eq!(prompts(&claude, ID), ["prompt one", "prompt two"]);
    assert_eq!(prompts(&claude, OTHER), ["prompt three"]);
    let log = claude.run(&["log"]).stdout;
    for prompt in ["prompt one", "prompt two", "prompt three"] {
        assert_eq!(log.matches(prompt).count(), 1, "{log}");
    }
    assert_undoes(&claude, "Undid prompt 1 \"prompt three\" (Codex, ");
    assert_eq!(claude.read("file").as_deref(), Some("two\n"));
    assert_eq!(claude.read("file-three"), None);
    assert_undoes(&claude, "Undid prompt 2 \"prompt two\" (Codex, ");
    assert_undoes(&claude, "Undid prompt 1 \"prompt one\" (Codex, ");
    assert_eq!(claude.read("file").as_deref(), Some("0\n"));
    assert_nothing_to_undo(&claude);
}

/// F33, F34: the agent resumes a session that it began without protection.
#[test]
fn f33_f34_a_session_begun_earlier_continues_under_a_run() {
    let claude = Claude::new();
    write(&claude.cli.work(), "file", "0\n");
    let mut alone = std::process::Command::new(codex(&claude));
    alone.arg("zero").env("ALONE", "1").env("ID", ID);
    alone
        .env("HOME", &claude.home)
        .current_dir(claude.cli.work());
    assert_eq!(finish(&mut alone, b"").code, 0);
    run_line(&claude, "\"$AGENT\" one two");
    assert_eq!(listed(&claude), [ID]);
    assert_eq!(
        prompts(&claude, ID),
        ["prompt zero", "prompt one", "prompt two"]
    );
    assert_undoes(&claude, "Undid prompt 3 \"prompt two\" (Codex, ");
    assert_undoes(&claude, "Undid prompt 2 \"prompt one\" (Codex, ");
    // What was done without protection stays.
    assert_eq!(claude.read("file").as_deref(), Some("zero\n"));
    assert_nothing_to_undo(&claude);
    assert_eq!(claude.read("file-zero").as_deref(), Some("zero\n"));
}

/// F33, F34: a sub-agent works in a turn. What it does is undone with the turn.
#[test]
fn f33_f34_what_a_sub_agent_does_belongs_to_the_turn_around_it() {
    let claude = Claude::new();
    write(&claude.cli.work(), "file", "0\n");
    let source = json!({"subagent": {"thread_spawn": {"parent_thread_id": ID}}});
    let inner = format!("SOURCE='{source}' ID=$OTHER ALONE=1 DURING= \"$AGENT\" inner");
    let line = format!("export INNER; INNER={}; ", shell_quoted(&inner))
        + "DURING='eval \"$INNER\"' \"$AGENT\" one";
    run_line(&claude, &line);
    assert_eq!(claude.read("file-inner").as_deref(), Some("inner\n"));
    assert_eq!(listed(&claude), [ID, OTHER]);
    assert_eq!(prompts(&claude, ID), ["prompt one"]);
    assert_undoes(&claude, "Undid prompt 1 \"prompt one\" (Codex, ");
    assert_eq!(claude.read("file").as_deref(), Some("0\n"));
    assert_eq!(claude.read("file-inner"), None);
    assert_eq!(claude.read("file-one"), None);
    assert_nothing_to_undo(&claude);
}

fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// F33, F34: the same with hooks, which name the session of the agent, and not the sub-agent's.
#[test]
fn f33_f34_hooks_of_a_sub_agent_belong_to_the_turn_around_it() {
    let mut claude = Claude::new();
    write(&claude.cli.work(), "a", "0");
    let tool = |call: &str, agent: Value| json!({"tool_name": "Bash", "tool_use_id": call, "tool_input": {}, "agent_id": agent});
    claude.hook("UserPromptSubmit", json!({"prompt": "first"}));
    claude.prompt("first");
    claude.call("outer");
    claude.hook("PreToolUse", tool("outer", Value::Null));
    claude.hook("SubagentStart", json!({"agent_id": "sub"}));
    claude.hook("PreToolUse", tool("inner", "sub".into()));
    write(&claude.cli.work(), "a", "sub");
    claude.hook("PostToolUse", tool("inner", "sub".into()));
    claude.hook("SubagentStop", json!({"agent_id": "sub"}));
    write(&claude.cli.work(), "b", "outer");
    claude.hook("PostToolUse", tool("outer", Value::Null));
    claude.result("outer");
    claude.answer("done");
    claude.hook("Stop", json!({}));
    assert_undoes(&claude, "Undid prompt 1 \"first\" (Claude Code, ");
    assert_eq!(
        (claude.read("a").as_deref(), claude.read("b")),
        (Some("0"), None)
    );
    assert_nothing_to_undo(&claude);
}

/// F33, F34: the agent is started in a subdirectory, and changes files beside it.
#[test]
fn f33_f34_a_start_in_a_subdirectory_protects_the_whole_workspace() {
    let claude = Claude::new();
    let work = claude.cli.work();
    write(&work, "file", "0\n");
    std::fs::create_dir(work.join("sub")).unwrap();
    assert_eq!(claude.run(&["checkpoint"]).code, 0);
    let line = "cd sub; DURING='echo 1 > ../file' \"$AGENT\" one; \
                DURING='echo 2 > ../file' \"$AGENT\" two";
    run_line(&claude, line);
    let agent = codex(&claude);
    let mut run = with_agent(&claude, &["run", "--", agent.to_str().unwrap(), "three"]);
    run.current_dir(work.join("sub"));
    run.env("DURING", "echo 3 > ../file");
    assert_eq!(finish(&mut run, b"").code, 0);
    claude.run(&["log"]);
    assert_eq!(listed(&claude), [ID]);
    let log = claude.run(&["log"]).stdout;
    for prompt in ["prompt one", "prompt two", "prompt three"] {
        assert_eq!(log.matches(prompt).count(), 1, "{log}");
    }
    assert_undoes(&claude, "Undid prompt 3 \"prompt three\" (Codex, ");
    assert_eq!(claude.read("file").as_deref(), Some("2\n"));
    assert_eq!(claude.read("sub/file").as_deref(), Some("two\n"));
    // From there as well.
    let mut undo = claude.command(&["undo"]);
    let undone = finish(undo.current_dir(work.join("sub")), b"");
    assert!(undone.stdout.contains("\"prompt two\""), "{undone:#?}");
    assert_undoes(&claude, "Undid prompt 1 \"prompt one\" (Codex, ");
    assert_eq!(claude.read("file").as_deref(), Some("0\n"));
    assert_eq!(claude.read("sub/file"), None);
}
