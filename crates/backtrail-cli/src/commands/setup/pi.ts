
// Tells Backtrail about sessions, prompts and tool calls, so that they can be undone, and adds the
// commands /undo and /rewind.
import { execFile } from "node:child_process";

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
  // A line for the model, until its next turn begins.
  let context;
  const events = ["session_start", "input", "tool_call", "tool_result", "agent_end", "session_shutdown"];
  for (const event of events) {
    pi.on(event, async (data, ctx) => {
      try {
        const answer = await hook(event, payload(data, ctx));
        if (event === "input") context = answer.context ?? context;
        if (event === "session_start") context = undefined;
        if (answer.show && ctx?.hasUI) ctx.ui.notify(answer.show, "info");
      } catch {
        // See above.
      }
    });
  }
  pi.on("before_agent_start", async () => {
    if (!context) return undefined;
    const content = context;
    context = undefined;
    return { message: { customType: "backtrail", content, display: true } };
  });
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
