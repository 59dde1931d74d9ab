//! Damage in the packs: what is lost is named exactly, and what is still in a workspace is
//! captured again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use backtrail::verify::{
    LostState, SnapshotsRepairOptions, SnapshotsRepairPlan, SnapshotsReport, VerifyOptions,
};
use backtrail::{CheckpointId, Store};
use backtrail_testkit::{Randomness as _, SeededRandomness};

use super::desk::Desk;
use super::world::Dice;

/// What was kept: the bytes of each path, by checkpoint.
type Kept = BTreeMap<CheckpointId, BTreeMap<PathBuf, Vec<u8>>>;

/// A few checkpoints of a few directories, with files that change and files that do
/// not, short ones and one in chunks.
fn kept(desk: &Desk) -> Kept {
    let mut kept = Kept::new();
    for round in 0..4 {
        desk.write("same/one", b"the same all the time");
        desk.write("same/deep/er/two", vec![b'x'; 3000]);
        desk.write("changes", format!("round {round}\n").repeat(40));
        desk.write(format!("new/{round}").as_str(), round.to_string());
        desk.write("large", noise(round / 2, 5 << 20));
        kept.insert(desk.keep().id(), files(desk.root()));
    }
    kept
}

fn repair_plan(store: &Store) -> SnapshotsRepairPlan {
    let options = SnapshotsRepairOptions::new();
    store.repair_snapshots_plan(options).unwrap()
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    SeededRandomness::new(seed).fill(&mut bytes).unwrap();
    bytes
}

fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_owned();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn packs(desk: &Desk) -> Vec<PathBuf> {
    let names = fs::read_dir(desk.store.root().join("objects")).unwrap();
    let paths = names.map(|entry| entry.unwrap().path());
    let is_pack = |path: &PathBuf| path.extension().is_some_and(|end| end != "lock");
    let mut packs: Vec<PathBuf> = paths.filter(is_pack).collect();
    packs.sort();
    packs
}

/// Opens the store as another process would: what is known of packs is forgotten.
fn again(desk: &Desk) -> Store {
    Store::open(desk.store.root()).unwrap()
}

/// Reads everything, and returns what cannot be read. This is the oracle: it asks
/// nothing but the files.
fn unreadable(desk: &Desk, kept: &Kept) -> BTreeSet<(CheckpointId, PathBuf)> {
    let store = again(desk);
    let workspace = store.workspace(desk.root()).unwrap();
    let mut lost = BTreeSet::new();
    for (id, files) in kept {
        let checkpoint = workspace.checkpoint_by_id(*id).unwrap().unwrap();
        for (path, bytes) in files {
            match checkpoint.snapshot().and_then(|kept| kept.read(path)) {
                Ok(Some(read)) if read == *bytes => {}
                Ok(other) => panic!("{path:?} reads as {:?}", other.map(|read| read.len())),
                Err(_) => drop(lost.insert((*id, path.clone()))),
            }
        }
    }
    lost
}

/// Returns the same as it is told.
fn told(lost: &[LostState], kept: &Kept) -> BTreeSet<(CheckpointId, PathBuf)> {
    let mut told = BTreeSet::new();
    for state in lost {
        for id in &state.checkpoints {
            let in_it = |path: &&PathBuf| match state.is_dir {
                true => state.path == Path::new(".") || path.starts_with(&state.path),
                false => **path == state.path,
            };
            let paths = kept[id].keys().filter(in_it);
            told.extend(paths.map(|path| (*id, path.clone())));
        }
    }
    told
}

fn verified(desk: &Desk) -> SnapshotsReport {
    again(desk).verify_snapshots().unwrap()
}

#[test]
fn what_damage_destroys_is_named_exactly() {
    let desk = Desk::new();
    let kept = kept(&desk);
    assert!(verified(&desk).is_ok());
    let packs = packs(&desk);
    let whole: Vec<Vec<u8>> = packs.iter().map(|pack| fs::read(pack).unwrap()).collect();
    let mut random = Dice::new(6);
    let (mut costly, mut lists) = (0, 0);
    for _ in 0..60 {
        let n = random.below(packs.len());
        let mut bytes = whole[n].clone();
        // The large file is most of it: small things stand between.
        let at = match random.below(2) {
            0 => random.below(bytes.len()),
            _ => bytes.len() - 1 - random.below(6000),
        };
        bytes[at] ^= 1 << random.below(8);
        fs::write(&packs[n], &bytes).unwrap();
        let report = verified(&desk);
        let lost = unreadable(&desk, &kept);
        assert_eq!(told(&report.lost, &kept), lost, "byte {at}: {report:#?}");
        if !lost.is_empty() {
            assert!(!report.is_ok());
            costly += 1;
            lists += u32::from(report.lost.iter().any(|lost| lost.is_dir));
        }
        fs::write(&packs[n], &whole[n]).unwrap();
    }
    assert!(costly > 20 && lists > 2, "{costly} {lists}");
    assert!(verified(&desk).is_ok());
}

/// What is still in the workspace is restored; the rest is named.
#[test]
fn files_that_are_still_in_a_workspace_are_captured_again() {
    let desk = Desk::new();
    let kept = kept(&desk);
    let packs = packs(&desk);
    let whole: Vec<Vec<u8>> = packs.iter().map(|pack| fs::read(pack).unwrap()).collect();
    let mut random = Dice::new(7);
    let present = files(desk.root());
    for round in 0..25 {
        let n = random.below(packs.len());
        let mut bytes = whole[n].clone();
        for _ in 0..random.below(6) + 1 {
            let at = random.below(bytes.len());
            bytes[at] ^= 0xff;
            let near = bytes.len() - 1 - random.below(6000);
            bytes[near] ^= 0xff;
        }
        fs::write(&packs[n], &bytes).unwrap();
        let before = unreadable(&desk, &kept);
        let plan = repair_plan(&again(&desk));
        let planned = plan.repair();
        assert_eq!(
            fs::read(&packs[n]).unwrap(),
            bytes,
            "a dry run changes nothing"
        );
        let repair = repair_plan(&again(&desk)).apply().unwrap();
        let after = unreadable(&desk, &kept);
        assert_eq!(
            told(&repair.lost, &kept),
            after,
            "round {round}: {repair:#?}"
        );
        let lies = |(id, path): &&(CheckpointId, PathBuf)| {
            present.values().any(|bytes| *bytes == kept[id][path])
        };
        // Where a listing is lost for good, so is what it named.
        let listed = |(_, path): &&(CheckpointId, PathBuf)| {
            let in_dir = |lost: &&LostState| {
                lost.is_dir && (lost.path == Path::new(".") || path.starts_with(&lost.path))
            };
            !repair.lost.iter().any(|lost| in_dir(&lost))
        };
        let missed = after.iter().filter(lies).filter(listed).count();
        assert_eq!(missed, 0, "round {round}: {repair:#?}");
        assert!(after.is_subset(&before));
        assert_eq!(repair.recaptured.is_empty(), planned.recaptured.is_empty());
        assert_eq!(verified(&desk).lost.len(), repair.lost.len());
        reset(&desk, &packs, &whole);
    }
}

/// Puts the packs back as they were.
fn reset(desk: &Desk, known: &[PathBuf], whole: &[Vec<u8>]) {
    for pack in packs(desk) {
        fs::remove_file(pack).unwrap();
    }
    for (pack, bytes) in known.iter().zip(whole) {
        fs::write(pack, bytes).unwrap();
    }
}

/// Content that moved elsewhere, into another workspace even, is the same content.
#[test]
fn content_is_found_at_another_path_of_another_workspace() {
    let desk = Desk::new();
    desk.write("a/file", noise(3, 2 << 20));
    desk.write("other", "1");
    let id = desk.keep().id();
    let elsewhere = desk.dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::rename(desk.path("a/file"), elsewhere.join("moved")).unwrap();
    desk.store.workspace(&elsewhere).unwrap();
    let pack = &packs(&desk)[0];
    let mut bytes = fs::read(pack).unwrap();
    bytes[1 << 20] ^= 1;
    fs::write(pack, &bytes).unwrap();
    let report = verified(&desk);
    assert_eq!(report.lost.len(), 1, "{report:#?}");
    assert_eq!(report.lost[0].path, Path::new("a/file"));
    assert_eq!(report.lost[0].checkpoints, [id]);
    let repair = repair_plan(&again(&desk)).apply().unwrap();
    assert!(repair.lost.is_empty(), "{repair:#?}");
    assert_eq!(repair.recaptured[0].from, elsewhere.join("moved"));
    let report = verified(&desk);
    assert!(report.is_ok(), "{report:#?}");
    let store = again(&desk);
    let workspace = store.workspace(desk.root()).unwrap();
    let kept = workspace.checkpoint_by_id(id).unwrap().unwrap();
    assert_eq!(
        kept.snapshot().unwrap().read("a/file").unwrap().unwrap(),
        noise(3, 2 << 20)
    );
}

/// A quick look finds what is not there, and does not read what is.
#[test]
fn a_quick_check_looks_at_the_structure_alone() {
    let desk = Desk::new();
    kept(&desk);
    let quick = || {
        let options = VerifyOptions::new().quick();
        again(&desk).verify_snapshots_with(&options).unwrap()
    };
    let report = quick();
    assert!(report.is_ok(), "{report:#?}");
    assert_eq!((report.workspaces, report.checkpoints), (1, 4));
    let pack = &packs(&desk)[0];
    let whole = fs::read(pack).unwrap();
    let mut bytes = whole.clone();
    // Within the first large file, which nothing but its content stands in; the last
    // commit is read in any case, for it may be what a power cut left.
    bytes[1 << 20] ^= 1;
    fs::write(pack, &bytes).unwrap();
    assert!(quick().is_ok());
    assert!(!verified(&desk).is_ok());
    fs::write(pack, &whole[..whole.len() / 2]).unwrap();
    assert!(!quick().lost.is_empty());
    fs::remove_file(pack).unwrap();
    let report = quick();
    assert_eq!(report.lost.len(), 4, "{report:#?}");
    assert!(report.lost.iter().all(|lost| lost.path == Path::new(".")));
}

#[test]
fn a_check_reports_its_progress() {
    let desk = Desk::new();
    kept(&desk);
    let (told, hears) = std::sync::mpsc::channel();
    let options = VerifyOptions::new().progress(move |read, all| told.send((read, all)).unwrap());
    let report = desk.store.verify_snapshots_with(&options).unwrap();
    drop(options);
    let told: Vec<(u64, u64)> = hears.iter().collect();
    assert!(told.is_sorted(), "{told:?}");
    assert!(told.len() > 3, "{told:?}");
    assert_eq!(told.last(), Some(&(report.bytes, report.bytes)));
}

/// A damaged line on the trail of a workspace costs that line; the rest goes on.
#[test]
fn the_trail_of_a_workspace_is_repaired() {
    let desk = Desk::new();
    for round in 0..3 {
        desk.write("a", round.to_string());
        desk.label(&round.to_string());
    }
    let trails = desk.store.root().join("workspaces");
    let trail = trails.join(desk.workspace.id().as_str()).join("0000.jsonl");
    let text = fs::read_to_string(&trail).unwrap();
    let damaged = text.replace("\"label\":\"1\"", "\"label\":\"!\"");
    assert_ne!(text, damaged);
    fs::write(&trail, damaged).unwrap();
    let store = again(&desk);
    assert!(!store.verify_snapshots().unwrap().is_ok());
    let planned = repair_plan(&store);
    let planned = planned.repair();
    assert_eq!((planned.damaged_trails, planned.trails.len()), (1, 0));
    let repair = repair_plan(&store).apply().unwrap();
    assert_eq!(repair.trails.len(), 1, "{repair:#?}");
    let store = again(&desk);
    let report = store.verify_snapshots().unwrap();
    assert!(report.is_ok(), "{report:#?}");
    let workspace = store.workspace(desk.root()).unwrap();
    assert_eq!(workspace.id(), desk.workspace.id());
    let labels = || {
        let all = workspace.checkpoints().unwrap();
        let labels = all.filter_map(|kept| kept.unwrap().label().map(str::to_owned));
        labels.collect::<Vec<_>>()
    };
    assert_eq!(labels(), ["0", "2"]);
    let options = backtrail::CheckpointOptions::new().label("3");
    workspace.checkpoint(options).unwrap();
    assert_eq!(labels(), ["0", "2", "3"]);
    assert!(repair_plan(&store).repair().is_empty());
}
