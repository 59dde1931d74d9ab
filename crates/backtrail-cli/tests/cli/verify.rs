//! `verify`: an unfinished last line is what a kill leaves, and not damage.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::kit::Cli;

/// Returns the only trail of a kind.
fn trail(cli: &Cli, kind: &str) -> PathBuf {
    let dirs = std::fs::read_dir(cli.store().join(kind)).unwrap();
    let mut trails = dirs.map(|dir| dir.unwrap().path().join("0000.jsonl"));
    trails.find(|trail| trail.exists()).unwrap()
}

/// Cuts the last line of a file so that `keep` of its bytes are left, without its newline.
fn cut(path: &Path, keep: usize) -> usize {
    let bytes = std::fs::read(path).unwrap();
    let body = &bytes[..bytes.len() - 1];
    let start = body.iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    let keep = keep.min(body.len() - start - 1);
    std::fs::write(path, &bytes[..start + keep]).unwrap();
    start
}

/// F1: wherever a kill cuts the last line, of a session or of a workspace.
#[test]
fn a_line_that_a_kill_cut_off_is_unfinished_and_not_damage() {
    for kind in ["sessions", "workspaces"] {
        for keep in [1, 5, 9, 10, 40, usize::MAX] {
            let cli = Cli::new();
            let session = cli.new_session("first");
            cli.run(&["record", "--session", &session, "--text", "second"]);
            cli.run(&["checkpoint", "one"]);
            cli.run(&["checkpoint", "two"]);
            let path = trail(&cli, kind);
            let start = cut(&path, keep);
            let verified = cli.run(&["verify", "--json"]);
            assert_eq!(verified.code, 0, "{kind} {keep}: {verified:#?}");
            let report = verified.json();
            assert_eq!(report["ok"], true);
            assert_eq!(report["damaged"], json!([]), "{kind} {keep}");
            assert_eq!(
                report["unfinished"][0]["byte"], start,
                "{kind} {keep}: {report:#}"
            );
            let text = cli.run(&["verify"]);
            assert_eq!(text.code, 0, "{text:#?}");
            assert!(text.stdout.contains("cut off  "), "{text:#?}");
            assert!(
                text.stdout.contains("the next write sets it aside"),
                "{text:#?}"
            );
            let doctor = cli.run(&["doctor"]);
            assert_eq!(doctor.code, 0, "{kind} {keep}: {doctor:#?}");

            cli.run(&["record", "--session", &session, "--text", "third"]);
            cli.run(&["checkpoint", "three"]);
            let after = cli.run(&["verify", "--json"]);
            assert_eq!(after.code, 0, "{kind} {keep}: {after:#?}");
            assert_eq!(after.json()["unfinished"], json!([]), "{kind} {keep}");
            assert_eq!(after.json()["set_aside"].as_array().unwrap().len(), 1);
        }
    }
}

/// What no writer leaves may have been acknowledged.
#[test]
fn anything_else_at_the_end_is_damage() {
    for end in [&b"\0\0\0\0"[..], b"garbage", b"{\"type\":\"message\"\0"] {
        let cli = Cli::new();
        cli.new_session("first");
        let path = trail(&cli, "sessions");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend_from_slice(end);
        std::fs::write(&path, bytes).unwrap();
        let verified = cli.run(&["verify", "--json"]);
        assert_eq!(verified.code, 1, "{verified:#?}");
        assert_eq!(verified.json()["unfinished"], json!([]));
        assert_eq!(verified.json()["damaged"].as_array().unwrap().len(), 1);
    }
}
