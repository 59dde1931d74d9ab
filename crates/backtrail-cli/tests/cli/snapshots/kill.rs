//! `kill -9` of a checkpoint at many moments: what was recorded is complete, what
//! was said is there, and the next one is right.
//!
//! A moment is picked by what the store looks like from outside: so many changes of
//! its files after the start.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Stdio};

use backtrail::{CheckpointOptions, Store};
use serde_json::Value;

use super::{Files, kept_files, read_files, walk, workspace};
use crate::kit::{Cli, Dice};

const ROUNDS: u64 = 120;

#[test]
fn f1_kill_9_of_a_checkpoint_at_any_moment_leaves_every_recorded_one_complete() {
    let cli = Cli::new();
    let mut dice = Dice(4);
    let mut states: Vec<Files> = Vec::new();
    let mut said: Vec<String> = Vec::new();
    let mut unsaid = 0;
    for round in 0..ROUNDS {
        change(&cli.work(), round, &mut dice);
        states.push(read_files(&cli.work()));
        let label = format!("round {round}");
        let mut child = cli
            .command(&["checkpoint", &label, "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let moment = dice.below(14);
        wait_for_changes(&mut child, &cli.store(), moment);
        child.kill().unwrap();
        let mut answer = String::new();
        let mut out = child.stdout.take().unwrap();
        out.read_to_string(&mut answer).unwrap();
        child.wait().unwrap();
        match serde_json::from_str::<Value>(&answer) {
            Ok(answer) => said.push(answer["id"].as_str().unwrap().to_owned()),
            Err(_) => unsaid += 1,
        }
        if round % 20 == 19 {
            check(&cli, &states, &said);
        }
    }
    assert!(unsaid > ROUNDS / 4, "the kills came too late: {unsaid}");
    assert!(said.len() as u64 > ROUNDS / 20, "too early: {}", said.len());
    let verified = cli.run(&["verify"]);
    assert_eq!(verified.code, 0, "{verified:#?}");
}

/// Changes a few small files, and one that takes several writes to store.
fn change(root: &Path, round: u64, dice: &mut Dice) {
    for n in 0..10 {
        let text = format!("{n} in round {round}");
        fs::write(root.join(format!("f{}", dice.below(40))), text).unwrap();
    }
    fs::create_dir_all(root.join(format!("d{}", dice.below(5)))).unwrap();
    let noise: Vec<u8> = (0..2 << 20).map(|_| dice.below(256) as u8).collect();
    fs::write(root.join("noise"), noise).unwrap();
}

/// Waits until the store has changed so many times, as far as one can see, or the
/// program is done.
fn wait_for_changes(child: &mut Child, store: &Path, changes: u64) {
    let look = || -> Vec<_> {
        let len = |path: &Path| fs::symlink_metadata(path).map_or(0, |meta| meta.len());
        let paths = walk(store).into_iter();
        paths.map(|path| (len(&path), path)).collect()
    };
    let mut seen = look();
    let mut count = 0;
    while count < changes && child.try_wait().unwrap().is_none() {
        let now = look();
        if now != seen {
            count += 1;
            seen = now;
        }
    }
}

/// Checks all that is recorded, and that a checkpoint of the present is right.
fn check(cli: &Cli, states: &[Files], said: &[String]) {
    let store = Store::open_or_create(cli.store()).unwrap();
    // What a kill left is taken in by the next who writes.
    let workspace = store.workspace(&cli.work()).unwrap();
    let now = workspace.checkpoint(CheckpointOptions::new()).unwrap();
    assert_eq!(kept_files(&now), *states.last().unwrap());
    let report = store.verify_snapshots().unwrap();
    assert!(report.is_ok(), "{report:#?}");
    let mut ids = Vec::new();
    for kept in super::workspace(&cli.store(), &cli.work())
        .checkpoints()
        .unwrap()
    {
        let kept = kept.unwrap();
        ids.push(kept.id().to_string());
        if let Some(label) = kept.label() {
            let round: usize = label.strip_prefix("round ").unwrap().parse().unwrap();
            assert!(kept_files(&kept) == states[round], "{label} is another");
        }
    }
    for id in said {
        assert!(ids.contains(id), "{id} was said to be kept");
    }
}

#[test]
fn a_killed_first_checkpoint_leaves_a_store_that_works() {
    for moment in 0..10 {
        let cli = Cli::new();
        fs::write(cli.work().join("file"), "content").unwrap();
        let mut child = cli
            .command(&["checkpoint", "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_for_changes(&mut child, &cli.store(), moment);
        child.kill().unwrap();
        child.wait().unwrap();
        let ran = cli.run(&["checkpoint", "--json"]);
        assert_eq!(ran.code, 0, "after {moment} changes: {ran:#?}");
        let workspace = workspace(&cli.store(), &cli.work());
        let last = workspace.last_checkpoint().unwrap().unwrap();
        assert_eq!(kept_files(&last), read_files(&cli.work()));
        let verified = cli.run(&["verify"]);
        assert_eq!(verified.code, 0, "after {moment} changes: {verified:#?}");
        let known = Store::open(cli.store()).unwrap().workspaces().unwrap();
        assert_eq!(known.len(), 1, "the directory is one workspace");
    }
}
