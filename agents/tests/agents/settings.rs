//! What each agent needs in its home and environment to speak to the scripted model and to nobody else.

use std::path::Path;

use serde_json::{Value, json};

use crate::agent::{Agent, Place, node_dir};

/// Writes the settings of an agent into its home.
pub(crate) fn write(agent: &Agent, place: &Place) {
    let url = format!("http://127.0.0.1:{}/v1", place.port);
    let home = &place.home;
    match agent.name {
        "codex" => put(home, ".codex/config.toml", &codex(place, &url)),
        "gemini-cli" => put(home, ".gemini/settings.json", &gemini().to_string()),
        "pi" => put(home, ".pi/agent/models.json", &pi(&url).to_string()),
        "opencode" => {
            let settings = opencode(&url).to_string();
            put(home, ".config/opencode/opencode.json", &settings);
            // With a plugin it asks npm for a package at each start, and waits a minute if nobody answers.
            put(home, ".npmrc", &format!("registry={url}/npm/\n"));
        }
        "qwen-code" => put(home, ".qwen/settings.json", &qwen().to_string()),
        "cline" => put(
            home,
            ".cline/data/settings/providers.json",
            &cline(&url).to_string(),
        ),
        "goose" => put(home, ".config/goose/config.yaml", GOOSE),
        _ => {}
    }
}

/// Returns the whole environment of an agent.
pub(crate) fn environment(agent: &Agent, place: &Place) -> Vec<(&'static str, String)> {
    let host = format!("http://127.0.0.1:{}", place.port);
    let url = format!("{host}/v1");
    let path = format!(
        "{}:{}:/usr/local/bin:/usr/bin:/bin",
        node_dir().display(),
        agent.program_dir().display()
    );
    let mut all = vec![
        ("HOME", place.home.display().to_string()),
        ("PATH", path),
        ("LANG", "C.UTF-8".to_owned()),
        ("TERM", "dumb".to_owned()),
        ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ("DISABLE_TELEMETRY", "1".to_owned()),
        ("DO_NOT_TRACK", "1".to_owned()),
    ];
    let own: &[(&'static str, &str)] = match agent.name {
        "gemini-cli" => &[
            ("GEMINI_API_KEY", "none"),
            ("GOOGLE_GEMINI_BASE_URL", &host),
            ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
        ],
        "pi" => &[("PI_OFFLINE", "1"), ("PI_SKIP_VERSION_CHECK", "1")],
        "opencode" => &[
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ],
        "qwen-code" => &[
            ("OPENAI_API_KEY", "none"),
            ("OPENAI_BASE_URL", &url),
            ("OPENAI_MODEL", "fake-1"),
        ],
        "copilot-cli" => &[
            ("COPILOT_PROVIDER_BASE_URL", &url),
            ("COPILOT_PROVIDER_TYPE", "openai"),
            ("COPILOT_PROVIDER_API_KEY", "none"),
            ("COPILOT_MODEL", "fake-1"),
            ("COPILOT_OFFLINE", "true"),
            ("COPILOT_AUTO_UPDATE", "false"),
        ],
        "cline" => &[("CLINE_TELEMETRY_DISABLED", "1")],
        "goose" => &[
            ("GOOSE_PROVIDER", "openai"),
            ("OPENAI_HOST", &host),
            ("OPENAI_API_KEY", "none"),
            ("GOOSE_MODEL", "fake-1"),
            ("GOOSE_MODE", "auto"),
            ("GOOSE_DISABLE_KEYRING", "1"),
            ("GOOSE_TELEMETRY_ENABLED", "false"),
        ],
        "claude-code" => &[
            ("ANTHROPIC_BASE_URL", &host),
            ("ANTHROPIC_API_KEY", "none"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
        ],
        _ => &[],
    };
    all.extend(own.iter().map(|(name, value)| (*name, (*value).to_owned())));
    all
}

fn put(home: &Path, name: &str, text: &str) {
    let path = home.join(name);
    let dir = path.parent().expect("a file in the home is in a directory");
    std::fs::create_dir_all(dir).unwrap();
    std::fs::write(path, text).unwrap();
}

fn codex(place: &Place, url: &str) -> String {
    format!(
        r#"model = "gpt-5.1-codex"
model_provider = "fake"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.fake]
name = "fake"
base_url = "{url}"
wire_api = "responses"

[projects."{}"]
trust_level = "trusted"
"#,
        place.project.display()
    )
}

/// Without the clean-up of sessions, which removes one that was resumed.
fn gemini() -> Value {
    json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
        "telemetry": {"enabled": false},
        "privacy": {"usageStatisticsEnabled": false},
        "general": {"disableAutoUpdate": true, "enableAutoUpdate": false, "sessionRetention": {"enabled": false}},
    })
}

fn pi(url: &str) -> Value {
    let model = json!({"id": "fake-1", "name": "fake-1", "reasoning": true, "input": ["text"],
        "contextWindow": 200_000, "maxTokens": 8192,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}});
    json!({"providers": {"fake": {"baseUrl": url, "api": "openai-completions", "apiKey": "none", "models": [model]}}})
}

fn opencode(url: &str) -> Value {
    let model = json!({"name": "fake-1", "reasoning": true, "tool_call": true,
        "limit": {"context": 200_000, "output": 8192}});
    json!({
        "provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "name": "fake",
            "options": {"baseURL": url, "apiKey": "none"}, "models": {"fake-1": model}}},
        "model": "fake/fake-1", "small_model": "fake/fake-1", "autoupdate": false, "share": "disabled",
    })
}

fn cline(url: &str) -> Value {
    let name = "openai-compatible";
    json!({"version": 1, "lastUsedProvider": name, "modes": {}, "providers": {name: {
        "settings": {"provider": name, "apiKey": "none", "model": "fake-1", "baseUrl": url},
        "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual",
    }}})
}

fn qwen() -> Value {
    json!({
        "security": {"auth": {"selectedType": "openai"}},
        "telemetry": {"enabled": false},
        "privacy": {"usageStatisticsEnabled": false},
        "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
    })
}

const GOOSE: &str = "\
extensions:
  developer:
    enabled: true
    type: builtin
    name: developer
    timeout: 300
    bundled: true
";
