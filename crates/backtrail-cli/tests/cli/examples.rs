//! The examples in other languages, as they are: killed in the middle of a tool
//! call, and resumed (F25).

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::kit::Cli;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples")
        .join(name)
}

/// Returns whether there is an interpreter; says loudly where there is none.
fn is_there(interpreter: &str) -> bool {
    let found = Command::new(interpreter)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        eprintln!("SKIPPED: needs {interpreter}; the example was not run");
    }
    found
}

fn run(cli: &Cli, interpreter: &str, name: &str, args: &[&str]) -> Output {
    Command::new(interpreter)
        .arg(example(name))
        .args(args)
        .current_dir(cli.work())
        .env("BACKTRAIL", env!("CARGO_BIN_EXE_backtrail"))
        .env("BACKTRAIL_HOME", cli.store())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Returns all that was said, who said it, in order.
fn said(cli: &Cli, id: &str) -> Vec<String> {
    let shown = cli.run(&["show", id, "--json"]).json();
    let messages = shown["messages"].as_array().unwrap().iter();
    messages
        .map(|message| format!("{} {}", message["role"], message["blocks"]))
        .collect()
}

fn blocks<'a>(context: &'a Value, kind: &str) -> Vec<&'a Value> {
    let messages = context["messages"].as_array().unwrap().iter();
    messages
        .flat_map(|message| message["content"].as_array().unwrap())
        .filter(|block| block["type"] == kind)
        .collect()
}

/// Runs an example to its end, and once more with a kill in between.
fn survives_being_killed(interpreter: &str, name: &str) {
    if !is_there(interpreter) {
        return;
    }
    let cli = Cli::new();
    let whole = run(&cli, interpreter, name, &[]);
    assert_eq!(whole.status.code(), Some(0), "{whole:?}");
    assert_eq!(lines(&whole).last().unwrap(), "done: 4 messages");
    assert_eq!(said(&cli, &lines(&whole)[0]).len(), 4);

    let killed = run(&cli, interpreter, name, &["--die-in-tool"]);
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(killed.status.signal(), Some(9), "{killed:?}");
    }
    assert_eq!(lines(&killed).len(), 1, "the id, and then nothing more");
    let id = lines(&killed)[0].clone();
    let before = said(&cli, &id);
    assert_eq!(before.len(), 2, "the prompt and the call: {before:?}");

    // The call that was cut short is answered, in the context alone.
    let context = cli.run(&["context", &id, "--format", "anthropic"]).json();
    let results = blocks(&context, "tool_result");
    assert_eq!(results.len(), 1);
    assert_eq!(results[0]["is_error"], true);
    assert!(
        results[0].to_string().contains("was interrupted"),
        "{}",
        results[0]
    );

    let resumed = run(&cli, interpreter, name, &["--session", &id]);
    assert_eq!(resumed.status.code(), Some(0), "{resumed:?}");
    assert_eq!(lines(&resumed), [id.clone(), "done: 5 messages".to_owned()]);
    let after = said(&cli, &id);
    assert_eq!(after[..2], before[..], "what was said stays as it was said");
    assert_eq!(after.len(), 5);
    let mut once = after.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), after.len(), "said twice: {after:?}");
    assert!(after[4].contains("There are 6 words."), "{}", after[4]);
    assert_eq!(cli.run(&["verify"]).code, 0);
    // Resumed when there is nothing left to do, it says nothing more.
    let again = run(&cli, interpreter, name, &["--session", &id]);
    assert_eq!(lines(&again), [id.clone(), "done: 5 messages".to_owned()]);
    assert_eq!(said(&cli, &id), after);
}

// F25
#[test]
fn f25_the_agent_in_python_survives_being_killed_in_a_tool_call() {
    survives_being_killed("python3", "record.py");
}

// F25
#[test]
fn f25_the_agent_in_javascript_survives_being_killed_in_a_tool_call() {
    survives_being_killed("node", "record.mjs");
}
