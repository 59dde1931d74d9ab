//! Files that cannot be changed safely stay as they are, and a kill at any moment loses nothing.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use super::SetupHome;
use crate::kit::finish;
use crate::traced;

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
        home.setup(&["--remove", "--yes"]);
        assert_eq!(home.tree(), before, "{what}");
    }
}

#[test]
fn a_read_only_file_with_hooks_is_shown_and_stays_as_it_is() {
    let home = SetupHome::with_agents();
    home.setup(&["--yes", "claude"]);
    let path = home.home.join(SETTINGS);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o444)).unwrap();
    let before = home.tree();
    let status = home.setup(&["--status", "--json", "claude"]).json();
    assert_eq!(status[0]["hooks"], "installed", "{status}");
    home.setup(&["--yes", "claude"]);
    let ran = home.run(&["--remove", "--yes"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stderr.contains("hint: chmod u+w"), "{ran:#?}");
    assert_eq!(home.tree(), before);
}

/// The file that setup created was moved, and linked to.
#[test]
fn a_link_in_the_place_of_a_created_file_does_not_lead_nowhere_afterwards() {
    let home = SetupHome::with_agents();
    home.setup(&["--yes", "claude"]);
    let target = home.home.join("claude.json");
    std::fs::rename(home.home.join(SETTINGS), &target).unwrap();
    symlink(&target, home.home.join(SETTINGS)).unwrap();
    home.setup(&["--remove", "--yes"]);
    assert_eq!(home.read(SETTINGS), "{}\n");
    assert_eq!(std::fs::read_to_string(target).unwrap(), "{}\n");
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
    if !traced::is_there("the program was not killed between its steps") {
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
            let mut strace = traced::killed_at(call, nth, &setup);
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
fn two_at_once_do_not_mix() {
    let home = SetupHome::with_agents();
    let path = home.write(SETTINGS, "{}");
    let other = home.write(".claude/.settings.json.backtrail-new", "half of anoth");
    let other = std::fs::File::open(other).unwrap();
    other.lock().unwrap();
    let ran = home.run(&["--yes", "claude"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stderr.contains("another backtrail setup"), "{ran:#?}");
    assert_eq!(std::fs::read_to_string(path).unwrap(), "{}");
    drop(other);
    home.setup(&["--yes", "claude"]);
    home.setup(&["--remove", "--yes"]);
    assert_eq!(home.read(SETTINGS), "{}");
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
