//! The plugin for opencode and the extension for pi, run by node: they call the program, wait for it
//! only so long, and nothing that goes wrong reaches the agent (F35).

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::SetupHome;
use crate::kit::{Ran, finish};

fn has_node() -> bool {
    let found = Command::new("node").arg("--version").output();
    let found = found.is_ok_and(|ran| ran.status.success());
    if !found {
        eprintln!("SKIPPED: needs node; the plugins were not run");
    }
    found
}

/// Runs a script after the module of an agent, with a program of sh in the place of ours.
fn run(agent: &str, program: Option<&str>, script: &str) -> Ran {
    let home = SetupHome::with_agents();
    home.setup(&["--yes", agent]);
    let (file, name) = match agent {
        "pi" => (".pi/agent/extensions/backtrail.ts", "default as Module"),
        _ => (
            ".config/opencode/plugin/backtrail.js",
            "Backtrail as Module",
        ),
    };
    let called = home.home.join("called");
    let fake = home.write(
        "fake",
        &format!("#!/bin/sh\n{}\n", program.unwrap_or_default()),
    );
    std::fs::set_permissions(&fake, PermissionsExt::from_mode(0o755)).unwrap();
    let fake = match program {
        Some(_) => fake.to_str().unwrap(),
        None => "/nowhere/backtrail",
    };
    let module = home
        .read(file)
        .replace(env!("CARGO_BIN_EXE_backtrail"), fake);
    assert!(module.contains(fake), "{module}");
    home.write("module.mjs", &module);
    let script = format!(
        "import {{ {name} }} from './module.mjs';\nimport {{ readFileSync }} from 'node:fs';\n{script}"
    );
    let path = home.write("script.mjs", &script);
    let mut node = Command::new("node");
    node.arg(path)
        .env("CALLED", called)
        .env("PATH", "/usr/bin:/bin");
    node.current_dir(&home.home);
    finish(&mut node, b"")
}

const NOTE: &str =
    r#"echo "$*" >>"$CALLED"; cat >>"$CALLED"; echo >>"$CALLED"; echo refuse; exit 2"#;

const OPENCODE: &str = r#"
const hooks = await Module({ directory: "/proj" });
await hooks.event({ event: { type: "session.created", properties: { sessionID: "s1" } } });
await hooks.event({ event: { type: "message.updated" } });
await hooks["chat.message"]({ sessionID: "s1" }, { parts: [] });
await hooks["tool.execute.before"]({ tool: "bash", callID: "c1" }, { args: { command: "ls" } });
await hooks["tool.execute.after"]({ tool: "bash", callID: "c1" }, { output: "long" });
const circle = {}; circle.circle = circle;
await hooks["tool.execute.before"](circle, circle);
"#;

const READ: &str = "console.log(readFileSync(process.env.CALLED, 'utf8'));";

// F35
#[test]
fn f35_the_plugin_of_opencode_tells_what_happens_and_never_throws() {
    if !has_node() {
        return;
    }
    let ran = run("opencode", Some(NOTE), &format!("{OPENCODE}{READ}"));
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{ran:#?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let wanted = [
        "hook opencode --event session.created",
        r#"{"event":{"type":"session.created","properties":{"sessionID":"s1"}},"directory":"/proj"}"#,
        "hook opencode --event chat.message",
        r#"{"input":{"sessionID":"s1"},"output":{"parts":[]},"directory":"/proj"}"#,
        "hook opencode --event tool.execute.before",
        r#"{"input":{"tool":"bash","callID":"c1"},"output":{"args":{"command":"ls"}},"directory":"/proj"}"#,
        "hook opencode --event tool.execute.after",
        r#"{"input":{"tool":"bash","callID":"c1"},"directory":"/proj"}"#,
    ];
    assert_eq!(lines[..8], wanted, "{ran:#?}");
    let missing = run("opencode", None, &format!("{OPENCODE}console.log('on');"));
    assert_eq!(
        (missing.code, &*missing.stdout, &*missing.stderr),
        (0, "on\n", "")
    );
}

const PI: &str = r#"
const handlers = {}, commands = {};
Module({ on: (name, run) => (handlers[name] = run), registerCommand: (name, it) => (commands[name] = it) });
const ctx = {
  cwd: "/",
  sessionManager: { getSessionId: () => "s1", getSessionFile: () => "/s1.jsonl" },
  waitForIdle: async () => {},
  ui: { notify: (text, kind) => console.log(`${kind}: ${text}`) },
};
const call = { type: "tool_call", toolName: "bash", toolCallId: "c1", input: { command: "ls" } };
const refused = await handlers.tool_call(call, ctx);
console.log(`answer: ${refused}`);
await handlers.agent_end({ type: "agent_end", messages: ["long"] }, ctx);
await handlers.session_start({ type: "session_start" }, undefined);
"#;

// F35
#[test]
fn f35_the_extension_of_pi_tells_what_happens_and_adds_undo_and_rewind() {
    if !has_node() {
        return;
    }
    let ran = run("pi", Some(NOTE), &format!("{PI}{READ}"));
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{ran:#?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0], "answer: undefined", "{ran:#?}");
    assert_eq!(lines[1], "hook pi --event tool_call");
    assert_eq!(
        lines[2],
        r#"{"type":"tool_call","toolName":"bash","toolCallId":"c1","input":{"command":"ls"},"session_id":"s1","transcript_path":"/s1.jsonl","cwd":"/"}"#
    );
    assert!(!ran.stdout.contains("long"), "{ran:#?}");

    let commands = format!(
        "{PI}await commands.undo.handler('', ctx);\nawait commands.rewind.handler(' last~2  --keep', ctx);"
    );
    let program =
        r#"case $1 in undo) echo "Undid it in $PWD";; rewind) echo "$@" >&2; exit 1;; esac"#;
    let ran = run("pi", Some(program), &commands);
    assert_eq!(
        ran.stdout, "answer: undefined\ninfo: Undid it in /\nwarning: rewind last~2 --keep\n",
        "{ran:#?}"
    );
    let ran = run("pi", None, &commands);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(ran.stdout.contains("warning: backtrail undo: "), "{ran:#?}");
}

const TELL: &str = r#"cat >/dev/null; echo '{"show":"undo ready","context":"The user undid it."}'"#;

/// A line for the model is a part of the prompt that only the model sees, after the others.
#[test]
fn the_plugin_of_opencode_passes_on_what_was_undone() {
    if !has_node() {
        return;
    }
    let script = r#"
const shown = [];
const client = { tui: { showToast: async ({ body }) => shown.push(body.message) } };
const hooks = await Module({ client, directory: "/proj" });
const part = (id) => ({ id, messageID: "m1", sessionID: "s1", type: "text", text: "go on" });
const output = { message: { id: "m1", sessionID: "s1" }, parts: [part("prt_b"), part("prt_a")] };
await hooks["chat.message"]({ sessionID: "s1" }, output);
await hooks["chat.message"]({ sessionID: "s1" }, { parts: [] });
console.log(JSON.stringify(output.parts[2]), output.parts.length, shown[0]);
"#;
    let ran = run("opencode", Some(TELL), script);
    let wanted = r#"{"id":"prt_b0","messageID":"m1","sessionID":"s1","type":"text","text":"The user undid it.","synthetic":true} 3 undo ready"#;
    assert_eq!((&*ran.stdout, &*ran.stderr), (&*format!("{wanted}\n"), ""));
    // What is not an answer changes nothing.
    for wrong in [
        "echo no",
        "echo '[1]'",
        "echo null",
        "echo '{\"context\":7}'",
        "exit 1",
    ] {
        let ran = run("opencode", Some(wrong), script);
        assert_eq!(
            (&*ran.stdout, &*ran.stderr),
            ("undefined 2 undefined\n", ""),
            "{wrong}"
        );
    }
}

/// pi takes a line for the model as a message of its own, once, when the turn begins.
#[test]
fn the_extension_of_pi_passes_on_what_was_undone() {
    if !has_node() {
        return;
    }
    let script = format!(
        "{PI}ctx.hasUI = true;
await handlers.session_start({{ type: 'session_start' }}, ctx);
console.log(JSON.stringify(await handlers.before_agent_start({{}}, ctx)));
await handlers.input({{ type: 'input', text: 'go on' }}, ctx);
console.log(JSON.stringify(await handlers.before_agent_start({{}}, ctx)));
console.log(JSON.stringify(await handlers.before_agent_start({{}}, ctx)));"
    );
    let ran = run("pi", Some(TELL), &script);
    let wanted = r#"answer: undefined
info: undo ready
undefined
info: undo ready
{"message":{"customType":"backtrail","content":"The user undid it.","display":true}}
undefined
"#;
    assert_eq!((&*ran.stdout, &*ran.stderr), (wanted, ""));
}

/// The program runs as long as the agent does, which gives up waiting for it.
// F35
#[test]
fn f35_a_program_that_hangs_is_not_waited_for() {
    if !has_node() {
        return;
    }
    let hang = "cat >/dev/null; while kill -0 $PPID; do sleep 0.05; done";
    let script = r#"
const hooks = await Module({ directory: "/proj" });
await hooks["tool.execute.before"]({}, {});
console.log("on");
process.exit(0);
"#;
    let ran = run("opencode", Some(hang), script);
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (0, "on\n", ""));
}
