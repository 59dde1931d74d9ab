//! The clean-up next to writers, readers, rewinds and kills: no kept state ever lacks
//! an object.
//!
//! The test binary runs itself again for writers and clean-ups in processes of their own;
//! some are killed after a number of rounds. All workspaces get their files from the same
//! few contents, so that an unreferenced content is soon needed again. `BACKTRAIL_TEST_LIVES` multiplies the lives,
//! `BACKTRAIL_TEST_SEED` sets where the seeds begin.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backtrail::gc::GcOptions;
use backtrail::rewind::Stage;
use backtrail::workspace::CheckpointReason;
use backtrail::{CheckpointOptions, ErrorKind, Point, Rewind, Store, StoreOptions, Workspace};

use super::kit::{assert_verifies, noise, read_all, read_whole};
use crate::rewind::kit::{quick_dir, setting};

const TASK: &str = "BACKTRAIL_TEST_TASK";
const LIVES: u64 = 2;
const ROUNDS: u64 = 25;

/// Numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn open(dir: &Path) -> Store {
    let options = StoreOptions::new().pack_size(16 << 10);
    options.open_or_create(dir.join("store")).unwrap()
}

fn workspace(dir: &Path, store: &Store, n: u64) -> Workspace {
    let root = dir.join(format!("work-{n}"));
    fs::create_dir_all(&root).unwrap();
    store.workspace(&root).unwrap()
}

/// Writes to stdout that a round is over, for the process that kills this one.
fn round(n: u64, tells: bool) {
    if tells {
        println!("\nround {n}");
        std::io::stdout().flush().unwrap();
    }
}

/// Changes files, keeps them, rewinds; the newest state here is always whole.
fn write(dir: &Path, own: u64, seed: u64, tells: bool) {
    let store = open(dir);
    let workspace = workspace(dir, &store, own);
    let mut dice = Dice(seed);
    for n in 0..ROUNDS {
        for _ in 0..1 + dice.below(3) {
            let path = workspace.root().join(format!("dir-{}", dice.below(3)));
            fs::create_dir_all(&path).unwrap();
            let content = noise(dice.below(12), 600 + 400 * dice.below(4) as usize);
            fs::write(path.join(format!("file-{}", dice.below(4))), content).unwrap();
        }
        let why = match dice.below(3) {
            0 => CheckpointReason::ToolEnd,
            1 => CheckpointReason::TurnEnd,
            _ => CheckpointReason::Manual,
        };
        let mut options = CheckpointOptions::new().reason(why);
        if dice.below(9) == 0 {
            options = options.label(format!("label-{own}-{seed}-{n}"));
        }
        let kept = workspace.checkpoint(options).unwrap();
        read_whole(&kept.snapshot().unwrap()).unwrap();
        if dice.below(4) == 0 {
            let all: Vec<_> = workspace
                .checkpoints()
                .unwrap()
                .map(Result::unwrap)
                .collect();
            let to = &all[dice.below(all.len() as u64) as usize];
            let options = Rewind::files().overwrite();
            match workspace.rewind(&Point::checkpoint(to.id()), options) {
                Ok(outcome) => assert_eq!(outcome.stage, Stage::Done, "{outcome:#?}"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Dropped, "{error:?}"),
            }
            let last = workspace.last_checkpoint().unwrap().unwrap();
            read_whole(&last.snapshot().unwrap()).unwrap();
        }
        round(n, tells);
    }
}

fn clean(dir: &Path, seed: u64, tells: bool, is_over: &dyn Fn() -> bool) {
    let store = open(dir);
    let mut dice = Dice(seed);
    for n in 0.. {
        let options = match dice.below(4) {
            0 => GcOptions::new().older_than(Duration::ZERO),
            1 => GcOptions::new().max_size(store.bytes() * 3 / 4),
            2 => GcOptions::new().older_than(Duration::from_millis(50 * dice.below(20))),
            _ => GcOptions::new(),
        };
        let done = match dice.below(6) {
            0 => store.gc_plan(&options).map(drop),
            _ => store.gc(&options).map(drop),
        };
        match done {
            Ok(()) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::Locked, "{error:?}"),
        }
        round(n, tells);
        if is_over() {
            break;
        }
    }
}

/// Reads all states; only dropped ones may be incomplete.
fn read(dir: &Path, seed: u64, is_over: &AtomicBool) {
    let store = open(dir);
    let mut dice = Dice(seed);
    while !is_over.load(Ordering::SeqCst) {
        let workspaces = store.workspaces().unwrap();
        let workspace = &workspaces[dice.below(workspaces.len() as u64) as usize];
        let all: Vec<_> = workspace
            .checkpoints()
            .unwrap()
            .map(Result::unwrap)
            .collect();
        if all.is_empty() {
            continue;
        }
        let kept = &all[dice.below(all.len() as u64) as usize];
        if let Err(error) = kept.snapshot().and_then(|snapshot| read_whole(&snapshot)) {
            let let_go = kept.dropped().unwrap();
            assert!(let_go.is_some(), "{} lacks something: {error:?}", kept.id());
        }
    }
}

fn child(dir: &Path, role: &str, own: u64, seed: u64) -> Child {
    let name = "gc::stress::no_kept_state_ever_lacks_an_object";
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(TASK, format!("{}\t{role}\t{own}\t{seed}", dir.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Kills a child after a number of rounds; returns whether it ended before.
fn kill_after(mut child: Child, rounds: u64) {
    let stdout = child.stdout.take().unwrap();
    let mut lines = BufReader::new(stdout).lines().map(Result::unwrap);
    let done = lines
        .by_ref()
        .filter(|line| line.starts_with("round"))
        .take(rounds as usize);
    let is_killed = done.count() as u64 == rounds;
    if is_killed {
        child.kill().unwrap();
    }
    drop(lines);
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(is_killed || out.status.success(), "{}: {said}", out.status);
}

fn life(seed: u64) {
    let place = quick_dir();
    let dir = place.path();
    // There is something before they start.
    write(dir, 0, seed, false);
    let is_over = AtomicBool::new(false);
    let mut dice = Dice(seed);
    std::thread::scope(|scope| {
        let over = &is_over;
        let others: Vec<_> = (0..4)
            .map(|n| scope.spawn(move || read(dir, seed + n, over)))
            .chain([scope.spawn(move || {
                clean(dir, seed + 7, false, &|| over.load(Ordering::SeqCst));
            })])
            .collect();
        let (half, rest) = (1 + dice.below(ROUNDS - 2), 1 + dice.below(6));
        let work = [
            scope.spawn(move || write(dir, 1, seed + 11, false)),
            scope.spawn(move || write(dir, 2, seed + 12, false)),
            scope.spawn(move || kill_after(child(dir, "write", 3, seed + 13), u64::MAX)),
            scope.spawn(move || {
                kill_after(child(dir, "write", 4, seed + 14), half);
                kill_after(child(dir, "write", 4, seed + 15), ROUNDS);
            }),
            scope.spawn(move || {
                for n in 0..4 {
                    kill_after(child(dir, "clean", 0, seed + 20 + n), rest);
                }
            }),
        ];
        let ended: Vec<_> = work.into_iter().map(|work| work.join()).collect();
        over.store(true, Ordering::SeqCst);
        let ended = ended
            .into_iter()
            .chain(others.into_iter().map(|other| other.join()));
        let failed = ended.filter(Result::is_err).count();
        assert_eq!(failed, 0, "seed {seed}");
    });
    let store = open(dir);
    assert_verifies(&store);
    assert!(read_all(&store) >= 5, "the newest of each");
    store.gc(&GcOptions::new()).unwrap();
    assert_verifies(&store);
    read_all(&store);
    let again = store.gc(&GcOptions::new()).unwrap();
    assert!(again.is_empty(), "seed {seed}: {again:#?}");
    assert_eq!(store.verify_snapshots().unwrap().leftovers, 0);
}

#[test]
fn no_kept_state_ever_lacks_an_object() {
    if let Ok(task) = std::env::var(TASK) {
        let task: Vec<&str> = task.split('\t').collect();
        let (dir, number) = (Path::new(task[0]), |n: usize| task[n].parse().unwrap());
        return match task[1] {
            "write" => write(dir, number(2), number(3), true),
            _ => clean(dir, number(3), true, &|| false),
        };
    }
    let lives = LIVES * setting("BACKTRAIL_TEST_LIVES", 1);
    let first = setting("BACKTRAIL_TEST_SEED", 0);
    for seed in first..first + lives {
        life(1000 * seed);
    }
}
