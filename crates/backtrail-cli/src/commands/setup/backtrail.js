// @MARK@
// Tells Backtrail about the sessions, prompts and tool calls of opencode, so that they can be undone.
// Remove it with: backtrail setup --remove opencode
import { spawn } from "node:child_process";

const programs = ["@PROGRAM@", "backtrail"];
const options = ["@OPTIONS@"];

// Runs `backtrail hook` with a payload on its stdin. Waits for it, but not longer than the limit, and
// never fails: whatever goes wrong here must not reach the agent.
function hook(event, payload, limit = 3000, program = 0) {
  return new Promise((resolve) => {
    try {
      const text = JSON.stringify(payload);
      const args = [...options, "hook", "opencode", "--event", event];
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

const events = ["session.created", "session.idle", "session.deleted"];

export const Backtrail = async ({ directory }) => ({
  event: async ({ event }) => {
    if (events.includes(event?.type)) await hook(event.type, { event, directory });
  },
  "chat.message": async (input, output) => {
    await hook("chat.message", { input, output, directory });
  },
  "tool.execute.before": async (input, output) => {
    await hook("tool.execute.before", { input, output, directory });
  },
  // The result of a tool can be large, and is in the transcript.
  "tool.execute.after": async (input) => {
    await hook("tool.execute.after", { input, directory });
  },
});
