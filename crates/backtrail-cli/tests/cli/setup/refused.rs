//! Files that cannot be changed safely stay as they are, and a kill at any moment loses nothing.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use super::SetupHome;
use crate::kit::finish;

const SETTINGS: &str = ".claude/settings.json";

// F35
#[test]
fn f35_a_file_that_cannot_be_changed_safely_is_refused_and_the_others_are_done() {
    for (what, message) in [
        ("invalid", "is not valid JSON: expected a value (line 2)"),
        ("not utf-8", "is not UTF-8 text"),
        ("read-only", "is read-only"),
        ("directory", "is not a regular file"),
        ("fifo", "is not a regular file"),
        ("dangling", "is a link to a file that does not exist"),
        ("hard link", "has another hard link"),
        ("other shape", "its \"hooks\" is not an object"),
        ("null", "it is not a JSON object"),
    ] {
        let home = SetupHome::new();
        let path = home.write(SETTINGS, "{\"a\": 1}\n");
        std::fs::create_dir(home.home.join(".codex")).unwrap();
        match what {
            "invalid" => std::fs::write(&path, "{\n  \"a\": ,\n}").unwrap(),
            "not utf-8" => std::fs::write(&path, b"{\"a\": \"\xff\"}").unwrap(),
            "read-only" => {
                std::fs::set_permissions(&path, PermissionsExt::from_mode(0o444)).unwrap()
            }
            "hard link" => std::fs::hard_link(&path, home.home.join("other")).unwrap(),
            "other shape" => std::fs::write(&path, "{\"hooks\": []}").unwrap(),
            "null" => std::fs::write(&path, "null").unwrap(),
            _ => {
                std::fs::remove_file(&path).unwrap();
                match what {
                    "directory" => std::fs::create_dir(&path).unwrap(),
                    "dangling" => symlink("gone.json", &path).unwrap(),
                    _ => drop(Command::new("mkfifo").arg(&path).status().unwrap()),
                }
            }
        }
        let before = home.tree();
        let ran = home.run(&["--yes"]);
        assert_eq!(ran.code, 1, "{what}: {ran:#?}");
        assert!(ran.stderr.contains(message), "{what}: {ran:#?}");
        let json = home.run(&["--yes", "--json"]).json();
        assert_eq!(json["errors"][0]["agent"], "claude-code", "{json}");
        home.read(".codex/hooks.json");
        home.run(&["--remove", "--yes"]);
        assert_eq!(home.tree(), before, "{what}");
    }
}

#[test]
fn a_hook_of_the_users_own_in_our_place_stays() {
    let home = SetupHome::with_agents();
    home.write(".cline/hooks/PreToolUse", "#!/bin/sh\necho mine\n");
    home.write(".pi/agent/extensions/backtrail.ts", "// mine\n");
    let before = home.tree();
    let ran = home.run(&["--yes", "cline", "pi"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(
        ran.stderr.contains("PreToolUse is not Backtrail's"),
        "{ran:#?}"
    );
    assert!(
        home.read(".cline/hooks/TaskStart")
            .contains("hook cline --event TaskStart")
    );
    home.run(&["--remove", "--yes"]);
    assert_eq!(home.tree(), before);
}

// F35
#[test]
fn f35_a_link_stays_a_link_and_its_file_keeps_its_mode() {
    let home = SetupHome::with_agents();
    let target = home.write("dotfiles/claude.json", "{\n\t\"a\": 1\n}");
    std::fs::set_permissions(&target, PermissionsExt::from_mode(0o640)).unwrap();
    symlink("../dotfiles/claude.json", home.home.join(SETTINGS)).unwrap();
    let before = home.tree();
    home.setup(&["--yes", "claude"]);
    let link = home.home.join(SETTINGS);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert!(
        std::fs::read_to_string(&target)
            .unwrap()
            .contains("hook claude-code")
    );
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&target), 0o640);
    let backup = home.home.join(".claude/settings.json.backtrail-backup");
    assert_eq!(mode(&backup), 0o640);
    home.setup(&["--remove", "--yes"]);
    assert_eq!(home.tree(), before);
}

// F35
#[test]
fn f35_a_kill_between_the_steps_leaves_the_old_file_or_the_new_one() {
    let traced = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "true"])
        .output();
    if !traced.is_ok_and(|ran| ran.status.success()) {
        eprintln!("SKIPPED: needs strace; the program was not killed between its steps");
        return;
    }
    let text = "{\n  \"a\": 1\n}\n";
    let whole = SetupHome::with_agents();
    whole.write(SETTINGS, text);
    whole.setup(&["--yes", "claude"]);
    let new = whole.read(SETTINGS);
    let mut killed = 0;
    for (call, most) in [("rename", 2), ("fsync", 4), ("write", 3), ("fchmod", 2)] {
        for nth in 1..=most {
            let home = SetupHome::with_agents();
            home.write(SETTINGS, text);
            let setup = home.command(&["--yes", "claude"]);
            let mut strace = Command::new("strace");
            strace.args(["-qq", "-o", "/dev/null", "-e"]);
            strace.arg(format!("inject={call}:signal=KILL:when={nth}"));
            strace.arg(setup.get_program()).args(setup.get_args());
            strace.current_dir(home.cli.work());
            for (name, value) in setup.get_envs() {
                match value {
                    Some(value) => strace.env(name, value),
                    None => strace.env_remove(name),
                };
            }
            killed += u32::from(finish(&mut strace, b"").code != 0);
            let left = home.read(SETTINGS);
            assert!(left == text || left == new, "{call} {nth}: {left}");
            // The next one finishes it, and takes over what the killed one left.
            home.setup(&["--yes", "claude"]);
            assert_eq!(home.read(SETTINGS), new, "{call} {nth}");
            home.setup(&["--remove", "--yes"]);
            assert_eq!(home.read(SETTINGS), text);
            let files = home.tree().into_keys().filter(|path| path.is_file());
            assert_eq!(files.count(), 1, "{call} {nth}: {:?}", home.tree());
        }
    }
    assert!(killed >= 8, "killed {killed} times");
}

#[test]
fn a_huge_file_is_changed_like_a_small_one() {
    let home = SetupHome::with_agents();
    let many: Vec<String> = (0..20_000)
        .map(|n| format!("    \"key {n}\": [{n}, null]"))
        .collect();
    let text = format!("{{\n  \"many\": {{\n{}\n  }}\n}}\n", many.join(",\n"));
    home.write(SETTINGS, &text);
    home.setup(&["--yes", "claude"]);
    assert!(home.read(SETTINGS).contains("hook claude-code"));
    home.setup(&["--remove", "--yes"]);
    assert!(home.read(SETTINGS) == text);
}

#[test]
fn edits_since_stay_when_the_hooks_go() {
    let home = SetupHome::with_agents();
    home.write(SETTINGS, "{\n  \"a\": 1\n}\n");
    home.setup(&["--yes", "claude"]);
    let edited = home
        .read(SETTINGS)
        .replacen("\"a\": 1", "\"a\": 2, // now\n  \"b\": 3", 1);
    home.write(SETTINGS, &edited);
    home.setup(&["--remove", "--yes"]);
    assert_eq!(
        home.read(SETTINGS),
        "{\n  \"a\": 2, // now\n  \"b\": 3\n}\n"
    );
}
