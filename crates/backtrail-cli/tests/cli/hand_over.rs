//! A session that was handed over to another agent is one family with the original, and nothing
//! of what they share counts twice (F24).

use backtrail::{SessionId, Store};
use backtrail_formats::{Codex, HandOver, Source, hand_over};
use serde_json::{Value, json};

use crate::agents::{CLAUDE, claude_file, claude_lines, counts, home, import, lines, run, write};
use crate::kit::Cli;

const NAME: &str = "019b7c22-0000-7000-8000-0000000000c3";

fn line(kind: &str, payload: &Value) -> Value {
    json!({"timestamp": "2026-01-02T04:00:00.000Z", "type": kind, "payload": payload})
}

fn said(role: &str, text: &str) -> Value {
    let kind = ["output_text", "input_text"][usize::from(role == "user")];
    let content = json!([{"type": kind, "text": text}]);
    let payload = json!({"type": "message", "role": role, "content": content});
    line("response_item", &payload)
}

fn used(total: u64, last: u64) -> Value {
    let tokens = |n: u64| {
        json!({"input_tokens": n, "cached_input_tokens": 0, "output_tokens": 1,
            "reasoning_output_tokens": 0, "total_tokens": n + 1})
    };
    let info = json!({"total_token_usage": tokens(total), "last_token_usage": tokens(last),
        "model_context_window": 1000});
    line("event_msg", &json!({"type": "token_count", "info": info}))
}

// F24
#[test]
fn f24_a_session_that_was_handed_over_counts_once_and_is_one_family() {
    let cli = Cli::new();
    write(&claude_file(&cli), claude_lines());
    import(&cli, "claude-code");
    let totals = || run(&cli, &["stats", "--all", "--json"]).json()["totals"].clone();
    let before = totals();
    assert_eq!(before["calls"], 3);
    let parent: SessionId = CLAUDE.parse().unwrap();
    let store = Store::open(cli.store()).unwrap();
    let seq = store
        .read_session(&parent)
        .unwrap()
        .info()
        .unwrap()
        .last_seq;
    let meta = json!({"id": NAME, "cwd": "/w/shop", "cli_version": "0.166.0"});
    let mut codex = vec![
        line("session_meta", &meta),
        said("user", "why is the refund wrong?"),
        said("assistant", "It is the rounding."),
        used(50, 50),
        said("user", "then mend it"),
        said("assistant", "Mended."),
    ];
    let file = format!(".codex/sessions/2026/01/02/rollout-2026-01-02T04-00-00-{NAME}.jsonl");
    let path = home(&cli).join(file);
    let content = Source::from_bytes(&path, lines(&codex));
    let new = HandOver {
        agent: &Codex,
        name: NAME,
        file: &path,
        content: Some(&content),
        parent: &parent,
        seq,
        title: Some("Refunds (from Claude Code)"),
        directory: None,
    };
    hand_over(&store, &new).unwrap();
    write(&path, lines(&codex));
    for _ in 0..2 {
        assert_eq!(totals(), before);
        assert_eq!(counts(&import(&cli, "codex")), [1, 0, 0, 1]);
    }
    codex.extend([
        said("user", "and the invoices?"),
        said("assistant", "Mended too."),
        used(130, 80),
    ]);
    write(&path, lines(&codex));
    assert_eq!(counts(&import(&cli, "codex")), [1, 0, 1, 0]);
    let after = totals();
    let more = |name: &str| after[name].as_u64().unwrap() - before[name].as_u64().unwrap();
    assert_eq!((more("calls"), more("input_tokens")), (1, 80));
    let shown = |id: &str| run(&cli, &["show", id, "--json"]).json()["messages"].clone();
    let (shown, shared) = (shown(NAME), shown(CLAUDE));
    let (shown, shared) = (shown.as_array().unwrap(), shared.as_array().unwrap());
    let (beginning, own) = shown.split_at(shared.len());
    assert_eq!(beginning, shared);
    let own: Vec<String> = own.iter().map(Value::to_string).collect();
    assert_eq!(own.len(), 2);
    assert!(own[0].contains("and the invoices?") && own[1].contains("Mended too."));
    // One line for the family, with both agents; unfolded, each below its parent.
    let listed = run(&cli, &["list", "--all"]).stdout;
    assert_eq!(listed.lines().count(), 2, "{listed}");
    let family = "[fork] Refunds (from Claude Code) +2 forks (Claude Code)";
    assert!(
        listed.contains("Codex ") && listed.contains(family),
        "{listed}"
    );
    let rows = run(&cli, &["list", "--all", "--json"]).json();
    let row = rows
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["id"] == NAME);
    let row = row.unwrap();
    assert_eq!(row["belongs_to"], "codex");
    assert_eq!(row["forked_from"]["parent_session_id"], CLAUDE);
    assert_eq!(row["forked_from"]["seq"], seq);
    // All of it follows from the trails, and the file is as the agent wrote it.
    assert_eq!(run(&cli, &["rebuild"]).code, 0);
    assert_eq!(totals(), after);
    assert_eq!(run(&cli, &["verify"]).code, 0);
    let exported = run(&cli, &["export", NAME, "--to", "codex"]).stdout;
    assert_eq!(exported, lines(&codex));
}
