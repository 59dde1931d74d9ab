//! `resume`: an agent continues its own session from any record, on a copy under a new id.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::kit::{Cli, Ran, finish, short};

#[path = "../../../backtrail-formats/tests/cut/sessions.rs"]
#[allow(dead_code, reason = "the other test uses the rest")]
mod sessions;

use sessions::Sample;

/// A home directory with a session of each agent, all in one directory.
pub(crate) struct Home {
    pub(crate) cli: Cli,
}

impl Home {
    pub(crate) fn new() -> Self {
        let home = Self { cli: Cli::new() };
        let root = home.dir().join(".gemini/tmp/proj/.project_root");
        write(&root, home.project().as_bytes());
        home
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.cli.store().parent().unwrap().join("home")
    }

    pub(crate) fn project(&self) -> String {
        let work = self.cli.work().canonicalize().unwrap();
        work.to_str().unwrap().to_owned()
    }

    /// Writes the session of an agent.
    pub(crate) fn sample(&self, agent: &str) -> Sample {
        let mut all = sessions::all(&self.project()).into_iter();
        let sample = all.find(|sample| sample.agent == agent).unwrap();
        write(&self.dir().join(&sample.file), sample.text.as_bytes());
        sample
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        let mut command = self.cli.command(args);
        let path = format!("{}:/usr/bin:/bin", self.dir().join("bin").display());
        finish(command.env("HOME", self.dir()).env("PATH", path), b"")
    }

    pub(crate) fn import(&self) {
        let ran = self.run(&["import", "--json"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
    }

    /// Installs a program that writes down how it was called, and changes a file.
    pub(crate) fn install(&self, program: &str) {
        let file = self.dir().join("bin").join(program);
        let log = self.dir().join("called");
        let text = format!(
            "#!/bin/sh\nprintf '%s\\n' \"$PWD\" \"$@\" > '{}'\necho agent > made.txt\nexit 7\n",
            log.display()
        );
        write(&file, text.as_bytes());
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    }

    pub(crate) fn called(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.dir().join("called")).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// Returns all files of agents, with their contents.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut left = vec![self.dir()];
        while let Some(path) = left.pop() {
            match path.is_dir() {
                true => left.extend(
                    std::fs::read_dir(&path)
                        .unwrap()
                        .map(|entry| entry.unwrap().path()),
                ),
                false => drop(found.insert(path.clone(), std::fs::read(path).unwrap())),
            }
        }
        found
    }

    /// Returns the record of a session whose message has this text.
    fn seq(&self, id: &str, text: &str) -> u64 {
        let shown = self.run(&["show", id, "--json"]).json();
        let messages = shown["messages"].as_array().unwrap().clone();
        let has = |message: &Value| message["blocks"].to_string().contains(text);
        let found = messages.iter().find(|message| has(message));
        found.unwrap_or_else(|| panic!("{text}: {shown:#}"))["seq"]
            .as_u64()
            .unwrap()
    }
}

pub(crate) fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

pub(crate) const AGENTS: [&str; 6] = [
    "claude-code",
    "codex",
    "gemini-cli",
    "copilot-cli",
    "pi",
    "qwen-code",
];

#[test]
fn print_makes_the_copy_and_shows_the_command() {
    for agent in AGENTS {
        let home = Home::new();
        let sample = home.sample(agent);
        home.import();
        let before = home.files();
        let seq = home.seq(sample.id, "It has 2 MB.");
        let place = format!("{}:{seq}", sample.id);
        let ran = home.run(&["resume", &place, "--print", "--json"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{ran:#?}");
        let made = ran.json();
        let new_id = made["new_id"].as_str().unwrap().to_owned();
        assert_ne!(new_id, sample.id);
        assert_eq!(made["agent"], agent);
        assert_eq!(made["directory"], json!(home.project()));
        let command = made["command"].as_array().unwrap();
        assert!(command.last().unwrap().as_str().unwrap().ends_with(&new_id));
        let file = PathBuf::from(made["file"].as_str().unwrap());
        let mut after = home.files();
        let copy = String::from_utf8(after.remove(&file).expect("the copy")).unwrap();
        assert_eq!(after, before, "{agent}: nothing else was written");
        assert_eq!(copy.lines().count(), sample.first_turn, "{agent}");
        // A fork, whose messages are those of the first turn.
        home.import();
        let shown = home.run(&["show", &new_id, "--json"]).json();
        assert_eq!(
            shown["forked_from"]["parent_session_id"], sample.id,
            "{agent}"
        );
        let messages = shown["messages"].as_array().unwrap();
        assert_eq!(messages.len(), sample.first_messages, "{agent}");
    }
}

// F24
#[test]
fn a_copy_adds_nothing_to_the_totals() {
    for agent in AGENTS {
        let home = Home::new();
        let sample = home.sample(agent);
        home.import();
        let total = |home: &Home| {
            let stats = home.run(&["stats", "--all", "--json"]);
            assert_eq!(stats.code, 0, "{stats:#?}");
            stats.json()["totals"].clone()
        };
        let before = total(&home);
        assert_eq!(before["calls"], 4, "{agent}");
        let ran = home.run(&["resume", sample.id, "--print", "--json"]);
        let copy = ran.json()["new_id"].as_str().unwrap().to_owned();
        home.import();
        assert_eq!(home.run(&["show", &copy, "--json"]).code, 0, "{agent}");
        assert_eq!(total(&home), before, "{agent}");
    }
}

#[test]
fn the_agent_runs_on_the_copy_in_its_directory_and_can_be_undone() {
    let home = Home::new();
    home.install("claude");
    let sample = home.sample("claude-code");
    let elsewhere = home.dir().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    home.import();
    let mut command = home.cli.command(&["resume", sample.id]);
    let path = format!("{}:/usr/bin:/bin", home.dir().join("bin").display());
    command.env("HOME", home.dir()).env("PATH", path);
    let ran = finish(command.current_dir(&elsewhere), b"");
    assert_eq!(ran.code, 7, "the agent's exit code: {ran:#?}");
    let called = home.called();
    assert_eq!(called[..2], [home.project(), "--resume".to_owned()]);
    assert!(ran.stderr.contains(&called[2]), "{ran:#?}");
    assert!(home.cli.work().join("made.txt").exists());
    let undone = home.run(&["undo"]);
    assert_eq!(undone.code, 0, "{undone:#?}");
    assert!(!home.cli.work().join("made.txt").exists());
}

#[test]
fn without_a_reference_it_is_the_newest_session_here_as_it_is_now() {
    let home = Home::new();
    home.install("claude");
    // It was never imported.
    home.sample("claude-code");
    let ran = home.run(&["resume"]);
    assert_eq!(ran.code, 7, "{ran:#?}");
    let copy = &home.called()[2];
    let texts = home.run(&["show", copy, "--json"]);
    assert_ne!(texts.code, 0, "not imported yet");
    home.import();
    assert_eq!(home.run(&["show", copy, "--json"]).code, 0);
    let nowhere = home.dir().join("nowhere");
    std::fs::create_dir_all(&nowhere).unwrap();
    let mut command = home.cli.command(&["resume"]);
    let ran = finish(command.env("HOME", home.dir()).current_dir(nowhere), b"");
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("no session here that can be resumed"));
}

#[test]
fn what_the_agent_added_since_the_import_is_in_the_copy() {
    let home = Home::new();
    let sample = home.sample("codex");
    let file = home.dir().join(&sample.file);
    let lines: Vec<&str> = sample.text.lines().collect();
    write(&file, (lines[..12].join("\n") + "\n").as_bytes());
    home.import();
    write(&file, sample.text.as_bytes());
    let made = home.run(&["resume", sample.id, "--print", "--json"]).json();
    let copy = std::fs::read_to_string(made["file"].as_str().unwrap()).unwrap();
    assert_eq!(copy.lines().count(), lines.len());
}

// F25
#[test]
fn a_conversation_that_cannot_end_there_ends_before_the_call() {
    let home = Home::new();
    let sample = home.sample("claude-code");
    home.import();
    let call = home.seq(sample.id, "toolu_3");
    let ran = home.run(&["resume", &format!("{}:{call}", sample.id), "--print"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let prompt = home.seq(sample.id, "shorten it");
    let says = format!("record {call} is within a response; it ends at record {prompt}");
    assert!(ran.stderr.contains(&says), "{ran:#?}");
    assert!(ran.stdout.starts_with("cd "), "{ran:#?}");
    assert!(ran.stdout.contains(" && claude --resume "), "{ran:#?}");
}

#[test]
fn rewind_offers_to_resume() {
    let home = Home::new();
    let sample = home.sample("codex");
    home.import();
    let seq = home.seq(sample.id, "It has 2 MB.");
    let ran = home.run(&["rewind", &format!("{}:{seq}", sample.id), "--chat"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    let hint = format!(
        "continue from there: backtrail resume {}:{seq}",
        short(sample.id)
    );
    assert!(ran.stderr.contains(&hint), "{ran:#?}");
}

#[test]
fn what_cannot_be_resumed_says_why_and_what_to_do() {
    let home = Home::new();
    let sample = home.sample("claude-code");
    home.import();
    let says = |args: &[&str], what: &str, hint: &str| {
        let ran = home.run(args);
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(ran.stderr.contains(what), "{what}: {ran:#?}");
        assert!(ran.stderr.contains(hint), "{hint}: {ran:#?}");
    };
    let id = sample.id;
    says(
        &["resume", id],
        "cannot start Claude Code: claude is not in PATH",
        "backtrail resume ynor --print",
    );
    says(
        &["resume", id, "--json"],
        "whose output is not JSON",
        "add --print",
    );
    says(
        &["resume", &format!("{id}:9999"), "--print"],
        "has no record 9999; its last is",
        "backtrail show ynor",
    );
    says(
        &["resume", &format!("{id}:0"), "--print"],
        "has no complete exchange up to there",
        "backtrail show ynor",
    );
    let own = home.cli.new_session("hello");
    says(
        &["resume", &own, "--print"],
        "is not an agent's own",
        " --agent NAME",
    );
    let before = home.files();
    std::fs::rename(home.cli.work(), home.dir().join("moved")).unwrap();
    std::fs::create_dir_all(home.cli.work().parent().unwrap().join("here")).unwrap();
    let mut command = home.cli.command(&["resume", id, "--print"]);
    command.env("HOME", home.dir()).current_dir(home.dir());
    let ran = finish(&mut command, b"");
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("the directory of session ynor is gone"));
    assert!(ran.stderr.contains("backtrail relink "), "{ran:#?}");
    let mut after = home.files();
    after.retain(|path, _| !path.starts_with(home.dir().join("moved")));
    assert_eq!(after, before, "nothing was written");
}

// F26
#[test]
fn a_session_is_resumed_where_its_directory_was_moved_to() {
    let home = Home::new();
    let sample = home.sample("codex");
    home.import();
    let (old, new) = (home.project(), home.dir().join("moved"));
    std::fs::rename(&old, &new).unwrap();
    std::fs::create_dir_all(home.dir().join("elsewhere")).unwrap();
    let run = |args: &[&str]| {
        let mut command = home.cli.command(args);
        command.env("HOME", home.dir());
        finish(command.current_dir(home.dir().join("elsewhere")), b"")
    };
    let new = new.canonicalize().unwrap();
    let moved = run(&["relink", &old, new.to_str().unwrap()]);
    assert_eq!(moved.code, 0, "{moved:#?}");
    let made = run(&["resume", sample.id, "--print", "--json"]).json();
    assert_eq!(made["directory"], json!(new));
    let copy = std::fs::read_to_string(made["file"].as_str().unwrap()).unwrap();
    let head: Value = serde_json::from_str(copy.lines().next().unwrap()).unwrap();
    assert_eq!(head["payload"]["cwd"], json!(new));
}

#[test]
fn an_agent_that_cannot_be_started_says_so() {
    let home = Home::new();
    let file = home
        .dir()
        .join(".factory/sessions/-p/3c9f0a71-22bb-4d55-9e11-a1b2c3d4e5f6.jsonl");
    let lines = [
        json!({"type": "session_start", "id": "3c9f0a71-22bb-4d55-9e11-a1b2c3d4e5f6", "title": "t", "cwd": home.project(), "version": 2}),
        json!({"type": "message", "id": "m1", "timestamp": "2026-10-03T09:15:00Z", "message": {"role": "user", "content": [{"type": "text", "text": "hello"}]}, "parentId": null}),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    write(&file, text.as_bytes());
    home.import();
    let ran = home.run(&["resume", "3c9f0a71", "--print"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    let what = "Droid cannot be started on a session from here";
    assert!(ran.stderr.contains(what), "{ran:#?}");
    let shown = short("3c9f0a71-22bb-4d55-9e11-a1b2c3d4e5f6");
    let way = format!("backtrail resume {shown} --agent NAME");
    assert!(ran.stderr.contains(&way), "{ran:#?}");
}

#[test]
fn kill_9_leaves_a_whole_copy_or_none() {
    let home = Home::new();
    let mut sample = home.sample("claude-code");
    // Long enough that the kills come in the middle.
    let filler = json!({"type": "tools-used", "sessionId": sample.id, "tools": ["x".repeat(200)]});
    sample.text += &format!("{filler}\n").repeat(20_000);
    let original = home.dir().join(&sample.file);
    write(&original, sample.text.as_bytes());
    home.import();
    let lines = sample.text.lines().count();
    let folder = original.parent().unwrap();
    let (mut killed, mut seen) = (0, 1);
    for round in 0..12 {
        let mut command = home.cli.command(&["resume", sample.id, "--print"]);
        let mut child = command.env("HOME", home.dir()).spawn().unwrap();
        // From the first sign of the copy on, a little later each time.
        let mut looks = 0;
        while child.try_wait().unwrap().is_none() {
            let names = std::fs::read_dir(folder).unwrap();
            looks += usize::from(names.count() > seen);
            if looks > round * 3 {
                killed += 1;
                child.kill().unwrap();
            }
        }
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "jsonl") {
                let text = std::fs::read_to_string(&path).unwrap();
                assert_eq!(text.lines().count(), lines, "{path:?}");
                assert!(text.ends_with("}\n"));
            } else {
                std::fs::remove_file(path).unwrap();
            }
        }
        seen = std::fs::read_dir(folder).unwrap().count();
    }
    assert!(killed > 2, "the kills came too late to prove anything");
}
