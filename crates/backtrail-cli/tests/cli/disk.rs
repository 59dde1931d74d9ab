//! A full disk: a clear answer, nothing lost, and recording continues when there is space
//! again (F22).

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kit::{Cli, Recording, command, finish, texts};

/// A small file system in memory, unmounted at the end.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one if that is allowed; otherwise the test is skipped.
    pub(crate) fn mount(at: &Path) -> Option<Self> {
        std::fs::create_dir(at).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
            .arg(at)
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self(at.to_owned())),
            _ => {
                eprintln!("SKIPPED: needs mount; the engine's tests inject a full disk instead");
                None
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A process in the background may still have a file open.
        let mut umount = Command::new("umount");
        umount.arg("--lazy").arg(&self.0).status().ok();
    }
}

#[test]
fn f22_a_full_disk_is_reported_loses_nothing_and_recording_continues_with_new_space() {
    let cli = Cli::new();
    let Some(disk) = SmallDisk::mount(&cli.work().join("disk")) else {
        return;
    };
    let store = disk.0.join("store");
    let ballast = disk.0.join("ballast");
    std::fs::write(&ballast, vec![0; 100 << 10]).unwrap();
    let mut recording = Recording::start(command(&store, &cli.work(), &["record"]));
    let mut acknowledged = Vec::new();
    let mut refusals = 0;
    let mut session = String::new();
    for n in 0..400 {
        let text = format!("message {n} {}", "x".repeat(1000));
        let answer = recording.say(&text);
        if answer["ok"] == true {
            session = answer["session"].as_str().unwrap().to_owned();
            acknowledged.push(text);
        } else {
            assert_eq!(answer["kind"], "disk_full", "{answer}");
            let error = answer["error"].as_str().unwrap();
            assert!(error.contains("earlier records are safe"), "{error}");
            assert!(error.contains("No space left"), "{error}");
            refusals += 1;
            if refusals == 3 {
                std::fs::remove_file(&ballast).unwrap();
            }
            if refusals == 10 {
                break;
            }
        }
    }
    assert!(refusals >= 10, "the disk was never full");
    assert!(
        acknowledged.len() > 100,
        "recording went on once there was space"
    );
    assert_eq!(recording.end(), 1);
    let shown = finish(
        &mut command(&store, &cli.work(), &["show", &session, "--json"]),
        b"",
    );
    assert_eq!(texts(&shown.json()), acknowledged);
    let verified = finish(&mut command(&store, &cli.work(), &["verify"]), b"");
    assert_eq!(verified.code, 0, "{verified:#?}");
}
