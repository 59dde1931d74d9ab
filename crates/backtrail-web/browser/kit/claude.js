// A session of Claude Code as its hooks report it and its file holds it, without the agent.
import { appendFile, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";

export class Claude {
  #lines = 0;
  #last = null;

  static async start(store, { session = "7c9e6679-7425-40de-944b-e07fc1f90ae7" } = {}) {
    const claude = new Claude();
    Object.assign(claude, { store, session, transcript: join(store.home, `.claude/projects/-work/${session}.jsonl`) });
    await mkdir(dirname(claude.transcript), { recursive: true });
    // A busy machine takes its time.
    await store.write("store/config.toml", "hook_wait = \"60 s\"\n", { below: store.dir });
    return claude;
  }

  async #line(type, message) {
    this.#lines += 1;
    const uuid = `line-${this.#lines}`;
    const line = {
      parentUuid: this.#last, type, uuid, sessionId: this.session, cwd: this.store.work,
      version: "2.1.300", timestamp: new Date().toISOString(), message,
    };
    await appendFile(this.transcript, `${JSON.stringify(line)}\n`);
    this.#last = uuid;
  }

  #hook(hook_event_name, more = {}) {
    const payload = { session_id: this.session, transcript_path: this.transcript, cwd: this.store.work, hook_event_name, ...more };
    return this.store.run(["hook", "claude-code"], { stdin: JSON.stringify(payload) });
  }

  // A turn with a call that changes files.
  async turn(prompt, act) {
    const id = `toolu_${this.#lines}`;
    const tool = { tool_name: "Bash", tool_use_id: id, tool_input: { command: "make it so" } };
    await this.#hook("UserPromptSubmit", { prompt });
    await this.#line("user", { role: "user", content: prompt });
    await this.#line("assistant", { id: `msg-${id}`, role: "assistant", model: "m", content: [{ type: "tool_use", id, name: "Bash", input: { command: "make it so" } }] });
    await this.#hook("PreToolUse", tool);
    await act();
    await this.#hook("PostToolUse", tool);
    await this.#line("user", { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "ok" }] });
    await this.#line("assistant", { id: `end-${id}`, role: "assistant", model: "m", stop_reason: "end_turn", content: [{ type: "text", text: "Done." }] });
    await this.#hook("Stop");
    // It waits for hooks that are still importing.
    await this.store.run(["log"]);
  }
}
