#!/usr/bin/env node
// A small agent that records everything it says and does, and survives being killed.
//
//     record.mjs                     start a session and finish the work
//     record.mjs --die-in-tool       the same, but die in the middle of a tool call
//     record.mjs --session ID        continue where that session stopped
//
// It prints the session's id on its first line and `done: N messages` on its last.
// It runs `backtrail` from PATH; set BACKTRAIL to use another program.
//
// How it works, from the bottom of the file up:
//
// 1. The loop at the end is that of every agent: while it is the model's turn, ask the
//    model, record its message, run the tools that it calls, record the results.
//    Everything is recorded *before* it is acted on, so whatever happens, the log knows
//    at least as much as the world does.
//
// 2. `Recorder` talks to one `backtrail record` process that lives as long as the
//    agent: one JSON object per line in, one answer per line out. An answer means that
//    the record is on disk. Each line has `expect`, the number of the last record that
//    we know of: if anything else was recorded in the meantime, the line is refused
//    instead of being mixed in, and if we repeat a line because its answer got lost, it
//    is not recorded twice.
//
// 3. To resume, the agent asks `backtrail context` what to send to the model. If the
//    agent died during a tool call, the context has a result for it that says so. The
//    log does not change; the model sees it and decides what to do.
//
// 4. `model` and `runTool` are stand-ins for a provider and real tools. Put yours here.

import { spawn, spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

const BACKTRAIL = process.env.BACKTRAIL ?? "backtrail";
const PROMPT = "How many words are there in: to be or not to be?";

const { values: options } = parseArgs({
  options: { session: { type: "string" }, "die-in-tool": { type: "boolean" } },
});

// Returns the blocks of the model's next message, and what the call used.
//
// This one follows a script: it calls a tool, calls it again if that was
// interrupted, and then reports the result.
async function model(messages) {
  const last = messages.at(-1).content.at(-1);
  const blocks = messages.flatMap((message) => message.content);
  const calls = blocks.filter((block) => block.type === "tool_use").length;
  const usage = { input_tokens: 20 * messages.length, output_tokens: 10 };
  if (last.type === "tool_result" && !last.is_error) {
    return { blocks: [text(`There are ${textOf(last.content)} words.`)], usage };
  }
  const words = calls === 0 ? "Let me count." : "I was interrupted, so I count again.";
  const call = {
    type: "tool_use",
    id: `call_${calls + 1}`,
    name: "count_words",
    input: { text: "to be or not to be" },
  };
  return { blocks: [text(words), call], usage };
}

// Runs a tool; returns its output and whether it failed.
async function runTool(name, input) {
  if (name !== "count_words") return { output: `no such tool: ${name}`, isError: true };
  return { output: String(input.text.trim().split(/\s+/).length), isError: false };
}

function text(words) {
  return { type: "text", text: words };
}

// Returns the text of a tool's result, which is a string or a list of blocks.
function textOf(content) {
  if (typeof content === "string") return content;
  const texts = content.filter((block) => block.type === "text");
  return texts.map((block) => block.text).join("\n");
}

function fail(message) {
  console.error(message);
  process.exit(1);
}

// One `backtrail record` process, and what it has acknowledged.
class Recorder {
  constructor(session = null, lastSeq = 0) {
    this.session = session;
    this.lastSeq = lastSeq;
    this.start();
  }

  start() {
    const session = this.session ? ["--session", this.session] : ["--title", "counting words"];
    this.process = spawn(BACKTRAIL, ["record", ...session], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.process.on("error", (error) => fail(`cannot run ${BACKTRAIL}: ${error.message}`));
    // If a recorder ends early, its answer is missing.
    this.process.stdin.on("error", () => {});
    this.ended = new Promise((resolve) => this.process.on("close", resolve));
    this.answers = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
  }

  // Records a message, and returns once it is on disk.
  async say(role, blocks, { usage, ...details } = {}) {
    const message = { role, blocks, ...(usage && { usage }) };
    const record = { type: "message", expect: this.lastSeq, ...details, message };
    const answer = await this.send(JSON.stringify(record));
    // Either the log is unchanged, or another process appended to it. In both cases,
    // stop here and read the log again.
    if (!answer.ok) fail(`not recorded: ${answer.error}`);
    if (this.session === null) console.log(answer.session);
    this.session = answer.session;
    this.lastSeq = answer.seq;
  }

  // Sends a line and returns the answer.
  //
  // When an agent is killed, its recorder needs a moment to notice, and until then no
  // other process can write. So if ours ends without an answer, try again; `expect`
  // makes sure that nothing is recorded twice.
  async send(line) {
    for (let attempt = 0; attempt < 25; attempt++) {
      this.process.stdin.write(`${line}\n`);
      const answer = await this.answers.next();
      if (!answer.done) return JSON.parse(answer.value);
      await this.ended;
      if (this.session === null) break;
      await sleep(200);
      this.start();
    }
    return fail("the recorder ended without an answer");
  }

  async close() {
    this.process.stdin.end();
    if ((await this.ended) !== 0) fail("the recorder reports that something was not recorded");
  }
}

// Runs `backtrail` and returns the JSON that it prints.
function ask(...command) {
  const done = spawnSync(BACKTRAIL, command, {
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
    maxBuffer: Infinity,
  });
  if (done.status !== 0) fail(`backtrail ${command[0]} failed`);
  return JSON.parse(done.stdout);
}

// Starts a session; returns its recorder and the messages for the model.
async function begin() {
  const recorder = new Recorder();
  await recorder.say("user", [text(PROMPT)]);
  return { recorder, messages: [{ role: "user", content: [text(PROMPT)] }] };
}

// Continues a session; returns its recorder and the messages for the model.
function resume(reference) {
  const known = ask("list", "--json").filter((session) => session.id.startsWith(reference));
  if (known.length !== 1 || "error" in known[0]) fail(`no such session: ${reference}`);
  // First the number, then the context: if something is recorded in between, our first
  // line is refused.
  const { id, last_seq: lastSeq } = known[0];
  console.log(id);
  const { messages } = ask("context", id, "--format", "anthropic");
  return { recorder: new Recorder(id, lastSeq), messages };
}

const { recorder, messages } = options.session ? resume(options.session) : await begin();
while (messages.at(-1)?.role === "user") {
  const started = performance.now();
  const { blocks, usage } = await model(messages);
  const duration_ms = Math.round(performance.now() - started);
  await recorder.say("assistant", blocks, { usage, model: "scripted", duration_ms });
  messages.push({ role: "assistant", content: blocks });

  const results = [];
  for (const call of blocks.filter((block) => block.type === "tool_use")) {
    if (options["die-in-tool"]) process.kill(process.pid, "SIGKILL");
    const { output, isError } = await runTool(call.name, call.input);
    const result = { type: "tool_result", tool_use_id: call.id, is_error: isError };
    await recorder.say("tool", [{ ...result, tool_name: call.name, output }]);
    results.push({ ...result, content: output });
  }
  if (results.length > 0) messages.push({ role: "user", content: results });
}
await recorder.close();
console.log(`done: ${ask("show", recorder.session, "--json").messages.length} messages`);
