//! Turns of an agent: the conversation goes with the files, in sessions that are ours
//! and that nobody writes to.

use std::fs;

use backtrail::{Block, Message, Session, SessionOptions, Store, ToolResult, ToolUse, Workspace};
use serde_json::json;

use super::{run, seen, write};
use crate::kit::{Cli, screen, short};

pub(super) struct Agent {
    pub(super) cli: Cli,
    pub(super) workspace: Workspace,
}

impl Agent {
    pub(super) fn new() -> Self {
        let cli = Cli::new();
        let store = Store::open_or_create(cli.store()).unwrap();
        let workspace = store.workspace(&cli.work()).unwrap();
        write(&cli, "a", "0\n");
        Self { cli, workspace }
    }

    pub(super) fn session(&self, options: SessionOptions) -> Session {
        let options = options.workspace(&self.workspace);
        self.workspace.store().create_session(options).unwrap()
    }

    /// Has a turn whose tool writes a file.
    pub(super) fn turn(&self, session: &Session, prompt: &str, text: &str) {
        let turn = session.begin_turn(Message::user_text(prompt)).unwrap();
        let call = ToolUse::new("t1", "bash", &json!({"command": "echo"})).unwrap();
        turn.append(Message::assistant([call.into()])).unwrap();
        let tool = turn.begin_tool("t1").unwrap();
        write(&self.cli, "a", text);
        tool.finish(ToolResult::ok("fine")).unwrap();
        turn.append(Message::assistant([Block::text("done")]))
            .unwrap();
        turn.end().unwrap();
    }

    pub(super) fn a(&self) -> String {
        fs::read_to_string(self.cli.work().join("a")).unwrap()
    }
}

/// F14, F18: a rewind past several turns gives the state before the first of them.
#[test]
fn the_conversation_ends_before_the_prompt_which_is_printed() {
    let agent = Agent::new();
    let session = agent.session(SessionOptions::new());
    let id = session.id().to_string();
    agent.turn(&session, "add tests", "1\n");
    agent.turn(&session, "and more", "2\n");
    session.close().unwrap();
    let before = agent.cli.conversation(&id);
    let ran = agent.cli.run(&["rewind", "last~2"]);
    assert_eq!(
        seen(&ran, &agent.cli),
        "\
exit 0
out: Back to before the turn \"add tests\" (<when>):
out:   restored  a
out: The conversation now ends before: \"add tests\"
err: to reverse: backtrail undo
"
    );
    assert_eq!(agent.a(), "0\n");
    let shown = agent.cli.run(&["show", &id, "--json"]).json();
    assert_eq!(shown["messages"], json!([]));
    let back = agent.cli.reverse(&ran);
    let end = format!("{} now ends at record 8\n", short(&id));
    assert!(back.stdout.ends_with(&end), "{back:#?}");
    assert_eq!(agent.a(), "2\n");
    assert_eq!(agent.cli.conversation(&id), before);
}

#[test]
fn a_prompt_of_several_lines_can_be_copied() {
    let agent = Agent::new();
    let session = agent.session(SessionOptions::new());
    agent.turn(&session, "add tests:\n  - cart\u{1b}[31m\n", "1\n");
    session.close().unwrap();
    let ran = agent.cli.run(&["undo"]);
    let rule = "────────────────────";
    let block = format!("\n{rule}\nadd tests:\n  - cart\n{rule}\n");
    assert!(
        ran.stdout.contains("now ends before this prompt:\n"),
        "{ran:#?}"
    );
    assert!(ran.stdout.ends_with(&block), "{ran:#?}");
    let told = agent.cli.run(&["redo", "--json"]).json();
    assert_eq!(told["chat"]["to"], 4);
    let told = agent.cli.run(&["undo", "--json"]).json();
    assert_eq!(told["chat"]["prompt"], "add tests:\n  - cart\u{1b}[31m\n");
}

#[test]
fn files_and_conversation_move_separately_on_request() {
    let agent = Agent::new();
    let session = agent.session(SessionOptions::new());
    let id = session.id().to_string();
    agent.turn(&session, "add tests", "1\n");
    session.close().unwrap();
    let cli = &agent.cli;
    let before = cli.conversation(&id);
    let ran = cli.run(&["rewind", "last~1", "--files"]);
    assert_eq!((ran.code, agent.a().as_str()), (0, "0\n"), "{ran:#?}");
    assert_eq!(cli.conversation(&id), before);
    cli.reverse(&ran);
    assert_eq!(agent.a(), "1\n");
    // The conversation alone, from wherever one is.
    let ran = cli.run(&["rewind", &format!("{}:0", &id[..8]), "--chat"]);
    assert_eq!(
        screen(&ran, cli, &[&id]),
        "\
exit 0
out: The conversation now ends before: \"add tests\"
err: to reverse: backtrail undo <id>
"
    );
    assert_eq!(agent.a(), "1\n");
    cli.reverse(&ran);
    assert_eq!(cli.conversation(&id), before);
    let ran = cli.run(&["rewind", &id, "--chat"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(
        ran.stderr.contains("pass the last record to keep"),
        "{ran:#?}"
    );
}

#[test]
fn tool_calls_after_the_checkpoint_are_named() {
    let agent = Agent::new();
    let session = agent.session(SessionOptions::new());
    let id = session.id().to_string();
    agent.turn(&session, "add tests", "1\n");
    session.close().unwrap();
    let ran = agent.cli.run(&["rewind", &format!("{id}:2"), "--dry-run"]);
    let named = "not undone: 1 tool call after the checkpoint (bash)\n";
    assert!(ran.stdout.contains(named), "{ran:#?}");
    let ran = agent.cli.run(&["rewind", &format!("{id}:2"), "--json"]);
    assert_eq!(ran.json()["tool_calls"], json!(["bash"]));
    assert_eq!(ran.json()["chat"]["to"], 2);
}

/// The files move while somebody speaks; the conversation does not, and the answer says so.
#[test]
fn a_session_that_is_being_written_to_is_rewound_in_its_files() {
    let agent = Agent::new();
    let session = agent.session(SessionOptions::new());
    let id = session.id().to_string();
    agent.turn(&session, "add tests", "1\n");
    let cli = &agent.cli;
    let record = format!("{id}:0");
    for args in [&["rewind", &record][..], &["undo"]] {
        let ran = cli.run(args);
        assert_eq!(ran.code, 2, "{ran:#?}");
        let writer = format!("is writing to session {} (", short(&id));
        assert!(ran.stderr.contains(&writer), "{ran:#?}");
        let files = format!("hint: files only: backtrail {} --files\n", args.join(" "));
        assert!(ran.stderr.contains(&files), "{ran:#?}");
        assert!(ran.stderr.contains("backtrail fork"), "{ran:#?}");
        assert_eq!(agent.a(), "1\n");
    }
    let ran = cli.run(&["rewind", "last~1"]);
    assert_eq!((ran.code, agent.a().as_str()), (0, "0\n"), "{ran:#?}");
    let stays = format!(
        "The conversation of {} stays: another process is writing to it\n",
        short(&id)
    );
    assert!(ran.stdout.ends_with(&stays), "{ran:#?}");
    assert_eq!(session.last_seq(), 4);
    assert_eq!(cli.run(&["undo", "--files"]).code, 0);
    let told = cli.run(&["rewind", "last~1", "--json"]).json();
    assert_eq!(
        (&told["chat_in_use"], &told["chat"]),
        (&json!(id), &json!(null))
    );
    assert_eq!(agent.a(), "0\n");
}

#[test]
fn the_conversation_of_another_agent_stays() {
    let agent = Agent::new();
    let session = agent.session(SessionOptions::new().belongs_to("claude-code"));
    let id = session.id().to_string();
    agent.turn(&session, "add tests", "1\n");
    session.close().unwrap();
    let before = agent.cli.conversation(&id);
    let ran = agent.cli.run(&["rewind", "last~1"]);
    assert_eq!(
        screen(&ran, &agent.cli, &[&id]),
        "\
exit 0
out: Back to before the turn \"add tests\" (<when>):
out:   restored  a
out: The conversation stays: it belongs to Claude Code
out: to continue from there: backtrail fork <id>:0
err: to reverse: backtrail undo
"
    );
    assert_eq!(agent.a(), "0\n");
    assert_eq!(agent.cli.conversation(&id), before);
    let ran = agent.cli.run(&["rewind", &format!("{id}:1"), "--chat"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("belongs to Claude Code"), "{ran:#?}");
    let way = format!("continue from there: backtrail resume {}:1\n", short(&id));
    assert!(ran.stderr.contains(&way), "{ran:#?}");
}

/// A rewind during a run works, warns, and the run's end is right.
#[test]
fn runs_in_progress_are_warned_about() {
    let cli = Cli::new();
    write(&cli, "a", "0\n");
    let program = env!("CARGO_BIN_EXE_backtrail");
    let script = format!("echo 1 > a; {program} rewind last~1 --files");
    let ran = cli.run(&["run", "--", "sh", "-c", &script]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let mut warned = ran
        .stderr
        .lines()
        .filter(|line| line.starts_with("warning: "));
    let warned = warned.next().unwrap();
    assert!(warned.starts_with("warning: sh -c "), "{warned}");
    assert!(warned.contains(" has been running here since "), "{warned}");
    assert!(
        warned.ends_with(" and will not notice that its files changed"),
        "{warned}"
    );
    assert!(ran.stderr.contains("backtrail: no changes"), "{ran:#?}");
    assert_eq!(fs::read(cli.work().join("a")).unwrap(), b"0\n");
    run(&cli, "true");
    let ran = cli.run(&["rewind", "last~1", "--files"]);
    assert!(!ran.stderr.contains("warning"), "{ran:#?}");
}
