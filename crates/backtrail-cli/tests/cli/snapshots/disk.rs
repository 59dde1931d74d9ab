//! A disk that is full while a checkpoint is made (F22).

use std::fs;

use super::{kept_files, read_files, workspace};
use crate::disk::SmallDisk;
use crate::kit::{Cli, Dice, command, finish};

#[test]
fn f22_a_full_disk_stops_a_checkpoint_loses_none_and_the_next_works_when_there_is_space() {
    let cli = Cli::new();
    let Some(disk) = SmallDisk::mount(&cli.store()) else {
        return;
    };
    let store = disk.path().join("store");
    let run = |args: &[&str]| finish(&mut command(&store, &cli.work(), args), b"");
    let mut dice = Dice(9);
    let mut noise = || -> Vec<u8> { (0..20_000).map(|_| dice.below(256) as u8).collect() };
    fs::write(cli.work().join("file"), noise()).unwrap();
    // So little space is told before anything is read.
    let refused = run(&["checkpoint"]);
    assert_eq!(refused.code, 2, "{refused:#?}");
    assert!(refused.stderr.contains("--yes"), "{refused:#?}");
    let ballast = disk.path().join("ballast");
    fs::write(&ballast, vec![0; 60 << 10]).unwrap();

    let mut states = Vec::new();
    let mut refusals = 0;
    while refusals < 6 {
        fs::write(cli.work().join("file"), noise()).unwrap();
        let ran = run(&["checkpoint", "--yes", "--json"]);
        if ran.code == 0 {
            states.push((ran.json()["id"].clone(), read_files(&cli.work())));
            assert!(states.len() < 100, "the disk is never full");
        } else {
            assert_eq!(ran.code, 2, "{ran:#?}");
            assert!(ran.stdout.is_empty(), "{ran:#?}");
            assert!(ran.stderr.contains("No space left"), "{ran:#?}");
            refusals += 1;
            if refusals == 3 {
                let before = states.len();
                assert!(before > 0, "there was space at first");
                fs::remove_file(&ballast).unwrap();
                let ran = run(&["checkpoint", "--yes", "--json"]);
                assert_eq!(ran.code, 0, "there is space again: {ran:#?}");
                states.push((ran.json()["id"].clone(), read_files(&cli.work())));
            }
        }
    }
    let kept = workspace(&store, &cli.work()).checkpoints().unwrap();
    let kept: Vec<_> = kept
        .map(|kept| kept.unwrap())
        .map(|kept| (kept.id().to_string().into(), kept_files(&kept)))
        .collect();
    assert!(
        kept == states,
        "{} are there of {}",
        kept.len(),
        states.len()
    );
    let verified = run(&["verify"]);
    assert_eq!(verified.code, 0, "{verified:#?}");
    // Reading needs no space.
    for args in [
        &["log"][..],
        &["diff"],
        &["status"],
        &["cat", "last", "file"],
    ] {
        let mut command = command(&store, &cli.work(), args);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
    }
}
