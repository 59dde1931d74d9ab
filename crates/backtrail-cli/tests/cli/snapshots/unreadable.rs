//! What the user may not read is said, and the rest is kept (F12).

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use super::walk;
use crate::kit::{Cli, command, finish};

const NOBODY: u32 = 65_534;

#[test]
fn f12_files_and_directories_without_permission_are_named_and_the_rest_is_kept() {
    let cli = Cli::new();
    fs::create_dir(cli.work().join("closed")).unwrap();
    for name in ["open", "secret", "closed/inside"] {
        fs::write(cli.work().join(name), name).unwrap();
    }
    let store = cli.work().parent().unwrap().join("store");
    let mut checkpoint = command(&store, &cli.work(), &["checkpoint", "--json"]);
    let is_root = fs::metadata("/proc/self")
        .is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
    if is_root {
        // Root may read everything, so somebody else is asked.
        let root = cli.work().parent().unwrap().to_owned();
        for path in walk(&root).into_iter().chain([root]) {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let program = env!("CARGO_BIN_EXE_backtrail");
        let mut other = Command::new("setpriv");
        other.args(["--reuid=65534", "--regid=65534", "--clear-groups", program]);
        if !other
            .arg("--version")
            .output()
            .is_ok_and(|ran| ran.status.success())
        {
            eprintln!("SKIPPED: needs setpriv; root can read every file");
            return;
        }
        let mut other = Command::new("setpriv");
        other.args(["--reuid=65534", "--regid=65534", "--clear-groups", program]);
        other
            .args(["checkpoint", "--json"])
            .current_dir(cli.work())
            .env("BACKTRAIL_HOME", &store)
            .env("HOME", "/nonexistent");
        checkpoint = other;
    }
    let close = |mode: u32| {
        for name in ["secret", "closed"] {
            fs::set_permissions(cli.work().join(name), Permissions::from_mode(mode)).unwrap();
        }
    };
    close(0o000);
    let ran = finish(&mut checkpoint, b"");
    close(0o755);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let kept = ran.json();
    assert_eq!(kept["files"], 1);
    assert_eq!(kept["skipped"]["count"], 2);
    for (n, name) in ["closed", "secret"].iter().enumerate() {
        let told = &kept["skipped"]["first"][n];
        assert_eq!(told["path"], *name);
        assert_eq!(told["reason"], "unreadable");
    }
}
