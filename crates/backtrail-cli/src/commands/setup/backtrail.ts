// @MARK@
// Tells Backtrail about the sessions, prompts and tool calls of pi, so that they can be undone, and adds
// the commands /undo and /rewind. Remove it with: backtrail setup --remove pi
import { execFile, spawn } from "node:child_process";

const programs = ["@PROGRAM@", "backtrail"];
const options = ["@OPTIONS@"];

// Runs `backtrail hook` with a payload on its stdin. Waits for it, but not longer than the limit, and
// never fails: whatever goes wrong here must not reach the agent.
function hook(event, payload, limit = 3000, program = 0) {
  return new Promise((resolve) => {
    try {
      const text = JSON.stringify(payload);
      const args = [...options, "hook", "pi", "--event", event];
      const child = spawn(programs[program], args, { stdio: ["pipe", "ignore", "ignore"] });
      const timer = setTimeout(resolve, limit);
      const done = () => {
        clearTimeout(timer);
        resolve();
      };
      child.on("error", () => {
        const next = program + 1;
        if (next < programs.length) hook(event, payload, limit, next).then(done);
        else done();
      });
      child.on("exit", done);
      child.stdin.on("error", () => {});
      child.stdin.end(text);
      child.unref();
    } catch {
      resolve();
    }
  });
}

// Long texts are in the transcript.
function payload(event, ctx) {
  const { messages, content, details, systemPrompt, systemPromptOptions, ...rest } = event ?? {};
  const session = ctx?.sessionManager;
  return {
    ...rest,
    session_id: session?.getSessionId?.(),
    transcript_path: session?.getSessionFile?.(),
    cwd: ctx?.cwd,
  };
}

// Runs a verb of Backtrail in the session's directory and returns what it printed.
function run(verb, words, cwd, program = 0) {
  return new Promise((resolve) => {
    const env = { ...process.env, NO_COLOR: "1" };
    const args = [...options, verb, ...words];
    execFile(programs[program], args, { cwd, env, timeout: 120_000 }, (error, out, err) => {
      const next = program + 1;
      if (error?.code === "ENOENT" && next < programs.length) {
        run(verb, words, cwd, next).then(resolve);
        return;
      }
      const text = [out, err].map((part) => String(part ?? "").trim()).filter(Boolean).join("\n");
      resolve([text || (error ? `backtrail ${verb}: ${error.message}` : "done"), !error]);
    });
  });
}

export default function (pi) {
  const events = ["session_start", "input", "tool_call", "tool_result", "agent_end", "session_shutdown"];
  for (const event of events) {
    pi.on(event, async (data, ctx) => {
      try {
        await hook(event, payload(data, ctx));
      } catch {
        // See above.
      }
    });
  }
  const commands = {
    undo: "Undo the last turn's changes to the files (Backtrail)",
    rewind: "Go back to an earlier point: /rewind last~2 (Backtrail)",
  };
  for (const [verb, description] of Object.entries(commands)) {
    pi.registerCommand(verb, {
      description,
      handler: async (args, ctx) => {
        await ctx.waitForIdle?.();
        const words = (args ?? "").split(/\s+/).filter(Boolean);
        const [text, ok] = await run(verb, words, ctx.cwd);
        ctx.ui.notify(text, ok ? "info" : "warning");
      },
    });
  }
}
