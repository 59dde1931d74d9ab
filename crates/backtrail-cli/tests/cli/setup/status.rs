//! `setup --status` shows what is installed, what it calls and when it was last called.

use serde_json::Value;

use super::SetupHome;

fn status(home: &SetupHome, agent: &str) -> Value {
    let all = home.setup(&["--status", "--json"]).json();
    let mut all = all.as_array().unwrap().clone().into_iter();
    all.find(|status| status["agent"] == agent).unwrap()
}

#[test]
fn status_follows_what_is_installed() {
    let home = SetupHome::with_agents();
    let before = status(&home, "claude-code");
    assert_eq!(
        (&before["found"], &before["hooks"]),
        (&true.into(), &"missing".into())
    );
    home.setup(&["--yes"]);
    for agent in [
        "claude-code",
        "codex",
        "gemini-cli",
        "qwen-code",
        "copilot-cli",
        "cline",
        "opencode",
        "pi",
    ] {
        let status = status(&home, agent);
        assert_eq!(status["hooks"], "installed", "{status}");
        assert_eq!(status["calls"], env!("CARGO_BIN_EXE_backtrail"), "{status}");
        assert_eq!(status["version"], env!("CARGO_PKG_VERSION"), "{status}");
        assert_eq!(status["last_call"], Value::Null, "{status}");
    }
    let dir = home.cli.store().join("derived/hooks");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("claude-code"), "").unwrap();
    let fired = status(&home, "claude-code");
    assert!(fired["last_call"].is_string(), "{fired}");

    let old = home.read(".claude/settings.json");
    let old = old.replace(env!("CARGO_BIN_EXE_backtrail"), "/old/backtrail");
    home.write(".claude/settings.json", &old);
    let outdated = status(&home, "claude-code");
    assert_eq!(outdated["hooks"], "outdated", "{outdated}");
    assert_eq!(outdated["calls"], "/old/backtrail", "{outdated}");
    assert_eq!(outdated["version"], Value::Null, "{outdated}");
    home.write(".claude/settings.json", "{");
    let ran = home.run(&["--status"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(ran.stdout.contains("cannot be read"), "{ran:#?}");
}

#[test]
fn hooks_that_codex_does_not_trust_are_said_with_the_way_to_trust_them() {
    let home = SetupHome::with_agents();
    let done = home.setup(&["--yes", "codex"]);
    assert!(done.stderr.contains("type /hooks"), "{done:#?}");
    assert_eq!(status(&home, "codex")["trusted"], false);
    let shown = home.setup(&["--status"]);
    assert!(shown.stdout.contains("not trusted"), "{shown:#?}");
    assert!(shown.stderr.contains("type /hooks"), "{shown:#?}");
    let events = [
        "session_start",
        "user_prompt_submit",
        "pre_tool_use",
        "post_tool_use",
        "subagent_start",
        "subagent_stop",
        "stop",
        "session_end",
    ];
    let hooks = home.home.join(".codex/hooks.json");
    let trust = |event: &&str| {
        format!(
            "[hooks.state.\"{}:{event}:0:0\"]\ntrusted_hash = \"sha256:1\"\n",
            hooks.display()
        )
    };
    let config: String = events.iter().map(trust).collect();
    home.write(".codex/config.toml", &config);
    assert_eq!(status(&home, "codex")["trusted"], true);
    home.write(".codex/config.toml", "[features]\nhooks = false\n");
    let off = status(&home, "codex");
    assert!(
        off["turned_off_by"]
            .as_str()
            .unwrap()
            .contains("features.hooks"),
        "{off}"
    );
}

#[test]
fn settings_that_turn_hooks_off_are_named() {
    let home = SetupHome::with_agents();
    home.write(".claude/settings.json", "{\"disableAllHooks\": true}");
    home.write(
        ".gemini/settings.json",
        "{\"hooksConfig\": {\"enabled\": false}}",
    );
    home.setup(&["--yes"]);
    for (agent, setting) in [
        ("claude-code", "disableAllHooks"),
        ("gemini-cli", "hooksConfig.enabled"),
    ] {
        let status = status(&home, agent);
        assert!(
            status["turned_off_by"]
                .as_str()
                .unwrap()
                .starts_with(setting),
            "{status}"
        );
    }
    let shown = home.setup(&["--status"]);
    assert!(shown.stdout.contains("turned off"), "{shown:#?}");
}
