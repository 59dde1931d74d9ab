//! An agent under `backtrail run`, against the same agent alone.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use backtrail::workspace::CheckpointReason;
use backtrail::{CheckpointOptions, Store, Workspace};

use crate::Result;
use crate::args::Args;
use crate::command;
use crate::measure::Samples;
use crate::parts::{Shared, settle};
use crate::report::{Entry, Figure, Goal, Quantity, Unit};
use crate::snapshot::RACY;
use crate::snapshot::tree::{Extent, Tree};

/// How long a tool call takes.
const CALL: Duration = Duration::from_secs(2);

/// Writes its session as Codex does: one prompt, and tool calls that change ten files and then
/// take their time.
const AGENT: &str = r#"#!/bin/bash
set -e
file="$HOME/.codex/sessions/2026/11/18/rollout-2026-11-18T00-00-00-$ID.jsonl"
mkdir -p "${file%/*}"
now() { printf -v now '%(%Y-%m-%dT%H:%M:%S)T.000Z' -1; }
add() { now; printf '{"timestamp":"%s","type":"%s","payload":%s}\n' "$now" "$1" "$2" >> "$file"; }
add session_meta "{\"id\":\"$ID\",\"timestamp\":\"2026-11-18T00:00:00.000Z\",\"cwd\":\"$PWD\",\"originator\":\"codex_exec\",\"cli_version\":\"0.166.0\",\"source\":\"exec\"}"
add event_msg '{"type":"task_started","turn_id":"t"}'
add response_item '{"type":"message","role":"user","content":[{"type":"input_text","text":"add tests"}]}'
add event_msg '{"type":"user_message","message":"add tests"}'
for ((call = 1; call <= CALLS; call++)); do
    add response_item '{"type":"function_call","name":"shell","arguments":"{}","call_id":"call-'$call'"}'
    for n in {0..9}; do echo "$ID $call" > "changed-$n"; done
    sleep "$CALL_SECONDS"
    add response_item '{"type":"function_call_output","call_id":"call-'$call'","output":"ok"}'
done
add response_item '{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}'
add event_msg '{"type":"agent_message","message":"done"}'
add event_msg '{"type":"task_complete","turn_id":"t"}'
"#;

pub(super) fn measure(args: &Args, dir: &Path, _shared: &Shared) -> Result<Vec<Entry>> {
    let bin = match command::find(args) {
        Ok(bin) => bin,
        Err(why) => return Ok(vec![Entry::skipped("backtrail run of an agent", &why)]),
    };
    command::announce(&bin);
    let setting = Setting::make(args, bin, dir)?;
    let alone = setting.alone()?.as_secs_f64();
    let mut times = Vec::new();
    for round in 0..args.pick(3, 1) {
        times.push(setting.wrapped(round)?.as_secs_f64());
    }
    let times = Samples::new(times);
    let name = format!(
        "{} files: {} calls of {} s under run",
        setting.files,
        setting.calls,
        CALL.as_secs()
    );
    let share = Quantity::of(&times.map(|time| time / alone - 1.0), Unit::Share);
    let alone = Quantity::single(alone, Unit::Seconds);
    Ok(vec![
        Entry::Figure(Figure {
            name: name.clone(),
            ours: Quantity::of(&times, Unit::Seconds),
            baseline: Some(("alone", alone)),
            goal: Goal::Open,
        }),
        Entry::Figure(Figure {
            name: format!("{name}: added time"),
            ours: share,
            baseline: None,
            goal: Goal::AtMost(0.03),
        }),
    ])
}

/// The tree, the agent, and the store.
struct Setting {
    bin: PathBuf,
    dir: PathBuf,
    workspace: Workspace,
    files: usize,
    calls: usize,
}

impl Setting {
    /// Makes a tree that is saved already.
    fn make(args: &Args, bin: PathBuf, dir: &Path) -> Result<Self> {
        let files = args.pick(60_000, 6_000);
        let extent = Extent {
            files,
            dirs: files / 12,
            bytes: files as u64 * 10_000,
        };
        let tree = Tree::make(&dir.join("tree"), extent)?;
        let agent = dir.join("codex");
        fs::write(&agent, AGENT)?;
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755))?;
        fs::create_dir(dir.join("home"))?;
        let workspace = Store::open_or_create(dir.join("store"))?.workspace(&tree.root)?;
        std::thread::sleep(RACY);
        for _ in 0..2 {
            workspace.checkpoint(CheckpointOptions::new())?;
        }
        settle(dir)?;
        Ok(Self {
            bin,
            dir: dir.to_owned(),
            workspace,
            files,
            calls: args.pick(10, 3),
        })
    }

    fn alone(&self) -> Result<Duration> {
        self.time(Command::new(self.dir.join("codex")), 0)
    }

    fn wrapped(&self, round: u32) -> Result<Duration> {
        let mut command = Command::new(&self.bin);
        command.arg("--store").arg(self.dir.join("store"));
        command.args(["run", "--"]).arg(self.dir.join("codex"));
        let took = self.time(command, round + 1)?;
        self.must_be_followed(round + 1)?;
        Ok(took)
    }

    /// Runs the agent in the tree, and returns the time from start to exit.
    fn time(&self, mut command: Command, session: u32) -> Result<Duration> {
        command
            .current_dir(self.workspace.root())
            .env_remove("BACKTRAIL_HOME")
            .env_remove("CODEX_HOME")
            .env("HOME", self.dir.join("home"))
            .env("TZ", "UTC")
            .env("ID", session_id(session))
            .env("CALLS", self.calls.to_string())
            .env("CALL_SECONDS", CALL.as_secs().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(self.dir.join("stderr"))?);
        let start = Instant::now();
        let status = command.status()?;
        let took = start.elapsed();
        match status.success() {
            true => Ok(took),
            false => {
                let why = fs::read_to_string(self.dir.join("stderr"))?;
                Err(format!("{command:?} failed: {}", why.trim_end()).into())
            }
        }
    }

    /// Checks that the calls got their checkpoints. The last one's is that of the turn's end.
    fn must_be_followed(&self, session: u32) -> Result<()> {
        let session = session_id(session);
        let mut followed = 0;
        for checkpoint in self.workspace.checkpoints_back()? {
            let checkpoint = checkpoint?;
            let is_own = checkpoint.agent().is_some_and(|it| it.session == session);
            followed += usize::from(is_own && *checkpoint.reason() == CheckpointReason::ToolEnd);
        }
        match followed + 1 >= self.calls {
            true => Ok(()),
            false => Err(format!("{followed} of {} calls were followed", self.calls).into()),
        }
    }
}

fn session_id(n: u32) -> String {
    format!("01a1e32f-3193-7ec2-ba12-{n:012}")
}
