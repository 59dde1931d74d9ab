//! A store with something to find in it: for list, search and stats.

use backtrail::{SessionOptions, Store};
use serde_json::json;

use crate::kit::{Cli, Ran};

/// Sessions of two workspaces, the newest first: `checkout` has a sub-agent, `rounding` is
/// forked twice, `keys` is in the other workspace, and has no price.
pub(crate) struct Found {
    pub(crate) checkout: String,
    pub(crate) sub_agent: String,
    pub(crate) rounding: String,
    pub(crate) keys: String,
}

impl Found {
    pub(crate) fn ids(&self) -> [&str; 4] {
        [&self.checkout, &self.sub_agent, &self.rounding, &self.keys]
    }
}

/// Fills a store.
pub(crate) fn fill(cli: &Cli) -> Found {
    let infra = cli.work().join("infra");
    std::fs::create_dir(&infra).unwrap();
    // Workspaces of their own, wherever the tests run.
    for dir in [&cli.work(), &infra] {
        std::fs::create_dir(dir.join(".git")).unwrap();
    }
    let begin = |agent: &str, dir: &std::path::Path| {
        let store = Store::open_or_create(cli.store()).unwrap();
        let options = SessionOptions::new().agent(agent).workspace_root(dir);
        store.create_session(options).unwrap().id().to_string()
    };
    let here = cli.work().canonicalize().unwrap();
    let infra = infra.canonicalize().unwrap();
    let keys = begin("mine", &infra);
    say(
        cli,
        &keys,
        "rotate the keys",
        "my-local-model",
        "2020-10-02T11:00:00Z",
        18_000,
        None,
    );
    let rounding = begin("claude-code", &here);
    let ask = "fix the currency rounding 漢字かな e\u{301}\u{1b}]0;evil\u{7}";
    say(
        cli,
        &rounding,
        ask,
        "m-large",
        "2020-11-14T14:05:00Z",
        120_000,
        Some(1.84),
    );
    let checkout = begin("codex", &here);
    say(
        cli,
        &checkout,
        "why is checkout slow",
        "m-small",
        "2020-11-15T10:00:00Z",
        900_000,
        Some(0.004),
    );
    let call = json!({"role": "assistant", "blocks": [{"type": "tool_use", "id": "spawn", "name": "task", "input": {}}]});
    let call = json!({"type": "message", "message": call, "at": "2020-11-15T10:01:00Z"});
    ok(cli.run_with(
        &["record", "--session", &checkout],
        format!("{call}\n").as_bytes(),
    ));
    let lines = lines(
        "look for slow queries",
        "m-small",
        "2020-11-15T10:02:00Z",
        9_000,
        Some(0.25),
    );
    let spawn = ["record", "--spawned-by", &checkout, "--tool-use", "spawn"];
    let ran = ok(cli.run_with(&spawn, lines.as_bytes()));
    let sub_agent = ran.json_lines()[0]["session"].as_str().unwrap().to_owned();
    Found {
        checkout,
        sub_agent,
        rounding,
        keys,
    }
}

pub(crate) fn ok(ran: Ran) -> Ran {
    assert_eq!(ran.code, 0, "{ran:#?}");
    ran
}

fn say(cli: &Cli, id: &str, ask: &str, model: &str, at: &str, tokens: u64, cost: Option<f64>) {
    let lines = lines(ask, model, at, tokens, cost);
    ok(cli.run_with(&["record", "--session", id], lines.as_bytes()));
}

/// A prompt, an answer that calls a tool, its result, and an answer that says nothing of
/// what it used.
fn lines(ask: &str, model: &str, at: &str, tokens: u64, cost: Option<f64>) -> String {
    let prompt = json!({"role": "user", "text": ask, "at": at});
    let blocks = json!([
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": format!("t-{tokens}"), "name": "edit",
            "input": {"path": "src/money.rs", "old": "round", "new": "round_half_even"}},
    ]);
    let usage =
        json!({"input_tokens": tokens, "output_tokens": 400, "cache_read_input_tokens": 500});
    let mut answer = json!({
        "type": "message", "message": {"role": "assistant", "blocks": blocks, "usage": usage},
        "model": model, "response_id": format!("r-{tokens}"), "at": at,
    });
    if let Some(cost) = cost {
        answer["cost_usd"] = json!(cost);
    }
    let output = "fn half() {}\n// the old rounding lost a cent on refunds";
    let block = json!({"type": "tool_result", "tool_use_id": format!("t-{tokens}"),
        "tool_name": "edit", "output": output, "is_error": false});
    let result =
        json!({"type": "message", "message": {"role": "tool", "blocks": [block]}, "at": at});
    format!("{prompt}\n{answer}\n{result}\n")
}
