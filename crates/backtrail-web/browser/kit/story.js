// A store with something of everything in it, made by the command from what a test writes.
import { join } from "node:path";

const HOUR = 3_600_000;

export const ago = (hours) => new Date(Date.now() - hours * HOUR).toISOString();

export const answer = (text, { blocks = [], usage, ...more } = {}) => ({
  type: "message",
  message: { role: "assistant", blocks: [...(text ? [{ type: "text", text }] : []), ...blocks], ...(usage && { usage }) },
  ...more,
});

export const call = (id, name, input) => ({ type: "tool_use", id, name, input });

export const result = (id, name, output, more = {}) => ({
  type: "message",
  message: { role: "tool", blocks: [{ type: "tool_result", tool_use_id: id, tool_name: name, output, is_error: false }] },
  ...more,
});

const usage = (input, output, cached = 0) => ({ input_tokens: input, output_tokens: output, cache_read_input_tokens: cached });

// A session that asks, calls tools, answers, and is compacted; it costs something.
export const checkout = (store) => store.record([
  { role: "user", text: "why is the checkout slow?", at: ago(30) },
  answer("Let me look at the queries.", {
    blocks: [call("t1", "Bash", { command: "grep -rn select src" })],
    usage: usage(9_000, 400, 500), model: "m-small", response_id: "r1", cost_usd: 0.25, at: ago(29.9),
  }),
  result("t1", "Bash", "src/cart.rs:12: select * from items", { at: ago(29.8) }),
  answer("The cart asks for every item *again*. I would **cache** it:\n\n```rust\nfn items() -> Vec<Item> { cache() }\n```", {
    usage: usage(11_000, 900, 9_000), model: "m-large", response_id: "r2", cost_usd: 1.84, at: ago(29.7),
  }),
  { role: "user", text: "then cache the items", at: ago(3) },
  answer("Done: the cart keeps them.", { usage: usage(12_000, 120, 11_000), model: "m-large", response_id: "r3", cost_usd: 0.5, at: ago(2.9) }),
], { title: "Checkout" });

// A session whose tool call started another one; returns both.
export const withSubAgent = async (store) => {
  const parent = await store.record([
    { role: "user", text: "split the parser", at: ago(9) },
    answer("I ask somebody.", { blocks: [call("spawn", "Task", { prompt: "count the rules" })], at: ago(8.9) }),
  ], { title: "Parser" });
  const child = await store.record([
    { role: "user", text: "count the rules", at: ago(8.8) },
    answer("There are seventeen rules.", { at: ago(8.7) }),
  ], { title: "Counting", args: ["--spawned-by", parent, "--tool-use", "spawn"] });
  await store.record([
    result("spawn", "Task", "There are seventeen rules.", { at: ago(8.6) }),
    answer("Seventeen.", { at: ago(8.5) }),
  ], { session: parent });
  return { parent, child };
};

// Sessions of two agents that were imported from their own files.
export const imported = async (store, { cwd = store.work } = {}) => {
  const id = "5b2f7a90-1c1e-4a55-9a0b-0f3d7c6b1a11";
  const common = { sessionId: id, cwd, version: "2.0.30", gitBranch: "main", userType: "external", isSidechain: false };
  const claude = [
    { ...common, type: "user", uuid: "u1", parentUuid: null, timestamp: ago(50), message: { role: "user", content: "rename the widget" } },
    {
      ...common, type: "assistant", uuid: "u2", parentUuid: "u1", timestamp: ago(49.9), requestId: "q1",
      message: {
        id: "msg_1", type: "message", role: "assistant", model: "claude-sonnet-4-5", stop_reason: "end_turn",
        content: [{ type: "text", text: "The widget is called gadget." }], usage: usage(2_000, 300, 1_000),
      },
    },
  ];
  const codex = [
    { timestamp: ago(60), type: "session_meta", payload: { id: "0199a213-81c0-7800-8aa1-bbab2a035a53", timestamp: ago(60), cwd, originator: "codex_cli_rs", cli_version: "0.46.0", instructions: null } },
    { timestamp: ago(60), type: "turn_context", payload: { cwd, approval_policy: "never", sandbox_policy: { mode: "read-only" }, model: "gpt-5-codex", summary: "auto" } },
    { timestamp: ago(60), type: "response_item", payload: { type: "message", role: "user", content: [{ type: "input_text", text: "explain the scheduler" }] } },
    { timestamp: ago(60), type: "event_msg", payload: { type: "user_message", message: "explain the scheduler", kind: "plain" } },
    { timestamp: ago(59.9), type: "response_item", payload: { type: "message", role: "assistant", content: [{ type: "output_text", text: "It takes turns." }] } },
    { timestamp: ago(59.9), type: "event_msg", payload: { type: "agent_message", message: "It takes turns." } },
    { timestamp: ago(59.9), type: "event_msg", payload: { type: "token_count", info: { total_token_usage: { input_tokens: 900, cached_input_tokens: 100, output_tokens: 50, reasoning_output_tokens: 0, total_tokens: 950 }, last_token_usage: { input_tokens: 900, cached_input_tokens: 100, output_tokens: 50, reasoning_output_tokens: 0, total_tokens: 950 }, model_context_window: 272000 } } },
  ];
  const lines = (objects) => objects.map((object) => `${JSON.stringify(object)}\n`).join("");
  await store.write(`.claude/projects/-work/${id}.jsonl`, lines(claude), { below: store.home });
  await store.write(".codex/sessions/2026/11/16/rollout-2026-11-16T10-00-00-0199a213-81c0-7800-8aa1-bbab2a035a53.jsonl", lines(codex), { below: store.home });
  await store.run(["import"]);
};

export const CART = "use std::fs;\n\nfn total(items: &[u32]) -> u32 {\n    items.iter().sum()\n}\n\nfn name() -> &'static str {\n    \"cart\"\n}\n";

// A workspace with checkpoints, a turn that changed files, and two runs.
export const workspace = async (store) => {
  await store.write("src/cart.rs", CART);
  await store.write("notes.txt", "one\ntwo\nthree\nfour\nfive\nsix\n");
  await store.run(["checkpoint", "start"]);
  const session = await store.record([{ role: "user", text: "count each item twice" }, { type: "checkpoint" }], { title: "Twice" });
  await store.write("src/cart.rs", CART.replace("items.iter().sum()", "items.iter().sum::<u32>() * 2"));
  await store.write("src/new.rs", "// new\n");
  await store.record([answer("It counts twice."), { type: "checkpoint" }], { session });
  await store.shell("sed -i s/two/agent/ notes.txt && echo generated > made.txt");
  await store.shell("echo seven >> notes.txt");
  return { session };
};

// A session of many messages; each says its own number.
export const long = (store, count) => {
  const lines = Array.from({ length: count }, (_, n) => (n % 10 === 0
    ? { role: "user", text: `prompt ${n}`, at: ago(100 - n / count) }
    : answer(`answer number ${n} ${"and more ".repeat(n % 40)}`, { at: ago(100 - n / count) })));
  return store.record(lines, { title: "Long" });
};

export const file = (store, path) => join(store.work, path);
