//! Hooks where everything is wrong: the store, the disk, the moment, the payload.
//!
//! F35: whatever happens, a hook exits with 0, says nothing that refuses, and loses nothing that
//! an earlier one has stored.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::disk::SmallDisk;
use crate::kit::{Cli, Dice, Ran, command, finish};

const SESSION: &str = "e07e0366-c23a-4a59-839c-dbb261253011";

/// A store that may be anywhere, and the directory that the agent works in.
struct Place {
    cli: Cli,
    store: PathBuf,
}

impl Place {
    fn new() -> Self {
        let cli = Cli::new();
        let store = cli.store();
        fs::write(cli.work().join("a"), "0").unwrap();
        Self { cli, store }
    }

    /// With the store on a disk that can be full and read-only.
    fn on_small_disk() -> Option<(Self, SmallDisk)> {
        let mut place = Self::new();
        let disk = SmallDisk::mount(&place.cli.work().with_file_name("disk"))?;
        place.store = disk.path().join("store");
        // So small a disk must be wanted.
        assert_eq!(place.run(&["checkpoint", "--yes"]).code, 0);
        Some((place, disk))
    }

    fn command(&self, args: &[&str]) -> Command {
        command(&self.store, &self.cli.work(), args)
    }

    fn run(&self, args: &[&str]) -> Ran {
        finish(&mut self.command(args), b"")
    }

    fn payload(&self, event: &str, call: &str) -> String {
        let payload = json!({
            "session_id": SESSION, "cwd": self.cli.work(), "hook_event_name": event,
            "prompt": call, "tool_name": "Bash", "tool_use_id": call, "tool_input": {},
        });
        payload.to_string()
    }

    /// Calls a hook, which must end, be silent and refuse nothing.
    fn hook(&self, event: &str, call: &str) {
        let command = self.command(&["hook", "claude-code"]);
        let ran = ends(command, self.payload(event, call).into_bytes());
        assert_undisturbed(&ran, &format!("{event} {call}"));
    }

    /// Calls the hooks of a whole turn.
    fn turn(&self, call: &str) {
        self.hook("SessionStart", call);
        self.hook("UserPromptSubmit", call);
        self.hook("PreToolUse", call);
        self.hook("PostToolUse", call);
        self.hook("Stop", call);
        self.hook("SessionEnd", call);
    }

    /// A call that changes a file, and is stored.
    fn stored(&self, call: &str) {
        self.hook("UserPromptSubmit", call);
        self.hook("PreToolUse", call);
        fs::write(self.cli.work().join("a"), call).unwrap();
        self.hook("PostToolUse", call);
        assert!(self.has(call), "{call}");
    }

    /// Returns the checkpoints: the reason, and the call if there is one.
    fn checkpoints(&self) -> Vec<(String, String)> {
        let log = self.run(&["log", "--all", "--json"]).json();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let rows = log.as_array().unwrap().iter();
        rows.map(|row| (text(&row["reason"]), text(&row["agent"]["call"])))
            .collect()
    }

    /// Returns whether the state before and after a call is stored, each once.
    fn has(&self, call: &str) -> bool {
        let all = self.checkpoints();
        let count = |reason: &str| {
            let is_it = |it: &&(String, String)| it.0 == reason && it.1 == call;
            all.iter().filter(is_it).count()
        };
        (count("tool-start"), count("tool-end")) == (1, 1)
    }

    fn verify(&self) {
        let verified = self.run(&["verify", "--json"]);
        assert_eq!(verified.code, 0, "{verified:#?}");
        assert_eq!(verified.json()["damaged_count"], 0, "{verified:#?}");
    }

    /// Returns the directory of the one workspace in the store.
    fn workspace(&self) -> PathBuf {
        let all = fs::read_dir(self.store.join("workspaces")).unwrap();
        let mut all = all
            .map(|entry| entry.unwrap().path())
            .filter(|it| it.is_dir());
        let one = all.next().unwrap();
        assert_eq!(all.next(), None, "there is a second workspace");
        one
    }
}

/// Runs a hook, and fails if it does not end: an agent would wait for it.
fn ends(mut command: Command, payload: Vec<u8>) -> Ran {
    let (done, ran) = channel();
    std::thread::spawn(move || done.send(finish(&mut command, &payload)));
    ran.recv_timeout(Duration::from_secs(120))
        .expect("the hook ends")
}

/// Checks that an agent goes on as if there were no hook.
fn assert_undisturbed(ran: &Ran, about: &str) {
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (0, ""),
        "{about}: {ran:#?}"
    );
    if ran.stdout.is_empty() {
        return;
    }
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(answer.is_object(), "{about}: {ran:#?}");
    assert_refuses_nothing(&answer, about);
}

fn assert_refuses_nothing(answer: &Value, about: &str) {
    const REFUSE: [&str; 7] = [
        "block",
        "continue",
        "decision",
        "deny",
        "permission",
        "permissionDecision",
        "reason",
    ];
    let fields = answer.as_object().into_iter().flatten();
    for (name, value) in fields {
        assert!(!REFUSE.contains(&name.as_str()), "{about}: {answer}");
        assert!(name != "cancel" || *value == false, "{about}: {answer}");
        assert_refuses_nothing(value, about);
    }
}

/// F35.
#[test]
fn f35_without_a_store_or_a_place_for_one_a_hook_is_silent() {
    let place = Place::new();
    for event in ["Stop", "SessionEnd", "SubagentStop"] {
        place.hook(event, "none");
        assert!(!place.store.join("format").exists(), "{event} made a store");
    }
    for (home, store) in [(None, None), (Some("/proc/none"), None), (None, Some(""))] {
        for event in ["SessionStart", "UserPromptSubmit", "PreToolUse", "Stop"] {
            let mut command = place.command(&["hook", "claude-code"]);
            command.env_remove("HOME").env_remove("BACKTRAIL_HOME");
            command.env_remove("XDG_DATA_HOME");
            command.envs(home.map(|it| ("HOME", it)));
            command.envs(store.map(|it| ("BACKTRAIL_HOME", it)));
            let ran = ends(command, place.payload(event, "none").into_bytes());
            assert_undisturbed(&ran, event);
        }
    }
    place.stored("first");
    place.verify();
}

/// F35: on a disk that became read-only, with a store and without one.
#[test]
fn f35_a_read_only_store_does_not_disturb_and_keeps_what_it_has() {
    let Some((place, disk)) = Place::on_small_disk() else {
        return;
    };
    place.stored("before");
    let remount = |how: &str| {
        let mut mount = Command::new("mount");
        let mount = mount.args(["-o", &format!("remount,{how}")]);
        assert!(mount.arg(disk.path()).status().unwrap().success(), "{how}");
    };
    remount("ro");
    place.turn("during");
    let none = disk.path().join("other");
    for event in ["SessionStart", "UserPromptSubmit", "PreToolUse", "Stop"] {
        let command = command(&none, &place.cli.work(), &["hook", "claude-code"]);
        let ran = ends(command, place.payload(event, "none").into_bytes());
        assert_undisturbed(&ran, event);
    }
    assert!(!none.exists());
    remount("rw");
    place.verify();
    assert!(place.has("before") && !place.has("during"));
    place.stored("after");
    place.verify();
}

/// F35: on a full disk, and when there is space again.
#[test]
fn f35_a_full_disk_does_not_disturb_and_loses_nothing() {
    let Some((place, disk)) = Place::on_small_disk() else {
        return;
    };
    place.stored("before");
    let ballast = disk.path().join("ballast");
    let mut file = File::create(&ballast).unwrap();
    // Larger pieces first, then each byte that is left.
    for piece in [4096, 1] {
        while file.write(&vec![0; piece]).is_ok_and(|n| n > 0) {}
    }
    drop(file);
    let random: Vec<u8> = (0..100_000u32)
        .flat_map(|n| n.wrapping_mul(0x9E37_79B9).to_le_bytes())
        .collect();
    fs::write(place.cli.work().join("large"), random).unwrap();
    place.turn("during");
    place.verify();
    assert!(place.has("before") && !place.has("during"));
    fs::remove_file(place.cli.work().join("large")).unwrap();
    fs::remove_file(&ballast).unwrap();
    place.stored("after");
    place.verify();
    assert!(place.has("before"));
}

/// F35: another process has a lock, for however long. The agent continues, and what it did not
/// wait for is stored when the lock is free.
#[test]
fn f35_a_lock_of_another_process_does_not_stop_the_agent() {
    let place = Place::new();
    place.stored("before");
    let workspace = place.workspace();
    let locks = [
        workspace.join("snapshot.lock"),
        workspace.join("append.lock"),
        place.store.join("objects/gate.lock"),
        place.store.join("workspaces/append.lock"),
        place.store.join("objects/objects.lock"),
    ];
    let config = place.store.join("config.toml");
    for (n, lock) in locks.iter().enumerate() {
        let file = File::open(lock).unwrap();
        fs::write(&config, "hook_wait = \"30ms\"\n").unwrap();
        file.lock().unwrap();
        let call = format!("locked-{n}");
        for event in ["SessionStart", "PreToolUse", "UserPromptSubmit", "Stop"] {
            place.hook(event, &call);
        }
        file.unlock().unwrap();
        let is_there = || place.checkpoints().iter().any(|it| it.1 == call);
        assert!((0..2000).any(|_| is_there()), "{}", lock.display());
        fs::remove_file(&config).unwrap();
        place.stored(&format!("after-{n}"));
    }
    assert!(place.has("before"));
    place.verify();
}

/// F35: hooks of one session at the same moment, the first of them in a store that does not
/// exist yet. Each call is there once, in one turn.
#[test]
fn f35_hooks_of_one_session_at_once_store_each_call_once() {
    const HOOKS: usize = 12;
    let place = Place::new();
    let at_once = |event: &str, round: usize| {
        let start = |_| {
            let mut hook = place.command(&["hook", "claude-code"]);
            hook.stdin(Stdio::piped()).stdout(Stdio::piped());
            hook.stderr(Stdio::piped()).spawn().unwrap()
        };
        let mut hooks: Vec<_> = (0..HOOKS).map(start).collect();
        for (n, hook) in hooks.iter_mut().enumerate() {
            let payload = place.payload(event, &format!("call-{round}-{n}"));
            let mut stdin = hook.stdin.take().unwrap();
            stdin.write_all(payload.as_bytes()).unwrap();
        }
        for hook in hooks {
            let done = hook.wait_with_output().unwrap();
            let said = (done.status.code(), done.stdout.len(), done.stderr.len());
            assert_eq!(said, (Some(0), 0, 0), "{event}: {done:?}");
        }
    };
    fs::create_dir(&place.store).unwrap();
    // A loaded machine must not make any of them late.
    fs::write(place.store.join("config.toml"), "hook_wait = \"60s\"\n").unwrap();
    for round in 0..3 {
        at_once("PreToolUse", round);
        at_once("PostToolUse", round);
    }
    for round in 0..3 {
        for n in 0..HOOKS {
            assert!(place.has(&format!("call-{round}-{n}")), "{round} {n}");
        }
    }
    let all = place.checkpoints();
    let turns = all.iter().filter(|it| it.0 == "turn-start").count();
    assert_eq!((turns, all.len()), (1, 1 + 3 * 2 * HOOKS), "{all:#?}");
    place.workspace();
    place.verify();
}

/// F35: `kill -9` of a hook at any moment. What others stored is there, and the next one works.
#[test]
fn f35_kill_9_of_a_hook_loses_nothing_stored() {
    const ROUNDS: u64 = 40;
    let place = Place::new();
    place.stored("first");
    let mut dice = Dice(7);
    let mut killed = 0;
    for round in 0..ROUNDS {
        let event = ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"][round as usize % 4];
        fs::write(place.cli.work().join("b"), round.to_string()).unwrap();
        let mut hook = place.command(&["hook", "claude-code"]);
        hook.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut hook = hook.stderr(Stdio::null()).spawn().unwrap();
        let payload = place.payload(event, &format!("killed-{round}"));
        let mut stdin = hook.stdin.take().unwrap();
        stdin.write_all(payload.as_bytes()).unwrap();
        drop(stdin);
        let moment = Instant::now() + Duration::from_micros(dice.below(40_000));
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        hook.kill().unwrap();
        killed += u64::from(hook.wait().unwrap().code().is_none());
        if round % 4 == 3 {
            place.verify();
            place.stored(&format!("next-{round}"));
        }
    }
    assert!(killed > ROUNDS / 8, "the kills came too late");
    place.verify();
    assert!(place.has("first"));
    for round in (3..ROUNDS).step_by(4) {
        assert!(place.has(&format!("next-{round}")), "{round}");
    }
}

/// Returns the payloads of all agents and events: the agent, the event, and the text.
fn payloads() -> Vec<(String, String, String)> {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus-seeds/hooks");
    let mut all = Vec::new();
    for entry in fs::read_dir(seeds).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let (agent, rest) = name.split_once('.').unwrap();
        let event = rest
            .strip_suffix(".json")
            .unwrap()
            .rsplit_once('.')
            .unwrap()
            .0;
        let text = fs::read_to_string(&path).unwrap();
        all.push((agent.to_owned(), event.to_owned(), text));
    }
    all.sort();
    all
}

/// Replaces every text in a payload but those that say which event it is.
fn with_texts(value: &mut Value, by: &str) {
    const EVENT: [&str; 4] = ["hook_event_name", "hookName", "type", "event"];
    match value {
        Value::String(text) => by.clone_into(text),
        Value::Array(all) => all.iter_mut().for_each(|it| with_texts(it, by)),
        Value::Object(fields) => {
            for (name, field) in fields {
                if !(EVENT.contains(&name.as_str()) && field.is_string()) {
                    with_texts(field, by);
                }
            }
        }
        _ => {}
    }
}

/// Returns a payload in all the ways in which it can be wrong.
fn wrong(text: &str, place: &Place) -> Vec<(&'static str, Vec<u8>)> {
    let dir = place.cli.work();
    let dir = dir.parent().unwrap().to_str().unwrap();
    let in_dir = |at: &str| text.replace("/home/me/shop", at);
    let here = in_dir(&format!("{dir}/work"));
    let all_texts = |by: &str| {
        let mut value: Value = serde_json::from_str(&here).unwrap();
        with_texts(&mut value, by);
        value.to_string().into_bytes()
    };
    let deep = "[".repeat(200_000);
    let not_text = here.replacen("work", "wo\u{1}rk", 1).into_bytes();
    let not_text = not_text.iter().map(|byte| match byte {
        1 => 0xff,
        byte => *byte,
    });
    vec![
        ("whole", here.clone().into_bytes()),
        ("empty", Vec::new()),
        ("cut", here.as_bytes()[..here.len() / 2].to_vec()),
        ("not UTF-8", not_text.collect()),
        (
            "deep",
            here.replacen('{', &format!("{{\"deep\":{deep},"), 1)
                .into_bytes(),
        ),
        ("dots", all_texts("../../../escape\u{0}\n\u{1b}[31m")),
        ("absolute", all_texts(&format!("{dir}/escape"))),
        ("root", in_dir("/").into_bytes()),
        ("no directory", in_dir(&format!("{dir}/none")).into_bytes()),
        ("outside", in_dir(&format!("{dir}/outside")).into_bytes()),
    ]
}

/// Returns all files outside of the store, with their content.
fn outside(dir: &Path, store: &Path, found: &mut BTreeMap<PathBuf, Option<Vec<u8>>>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path == store {
            continue;
        }
        found.insert(path.clone(), fs::read(&path).ok());
        if path.is_dir() {
            outside(&path, store, found);
        }
    }
}

/// F35: every agent's every event, as it is and in every wrong way, refuses nothing, and writes
/// nothing but the store.
#[test]
fn f35_no_payload_of_any_agent_and_event_disturbs_or_escapes() {
    let place = Place::new();
    let dir = place.cli.work().parent().unwrap().to_owned();
    for name in ["outside", "home", "tmp"] {
        fs::create_dir(dir.join(name)).unwrap();
    }
    let files = || {
        let mut found = BTreeMap::new();
        outside(&dir, &place.store, &mut found);
        found
    };
    let before = files();
    let mut done = BTreeSet::new();
    for (agent, event, text) in payloads() {
        // The second payload of an event differs in what it means, not in its form.
        if !done.insert((agent.clone(), event.clone())) {
            continue;
        }
        for (what, payload) in wrong(&text, &place) {
            let mut command = place.command(&["hook", &agent, "--event", &event]);
            command.env("HOME", dir.join("home"));
            command.env("TMPDIR", dir.join("tmp"));
            let about = format!("{agent} {event}, {what}");
            assert_undisturbed(&ends(command, payload), &about);
        }
    }
    for agent in backtrail_formats::hook_agents() {
        assert!(done.iter().any(|(of, _)| of == agent), "{agent}");
    }
    assert_eq!(files(), before);
    let mut stored = BTreeMap::new();
    outside(&place.store, Path::new(""), &mut stored);
    let is_hostile = |path: &&PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.contains("escape") || name.contains(char::is_control)
    };
    assert_eq!(stored.keys().find(is_hostile), None);
    place.stored("after");
    place.verify();
}
