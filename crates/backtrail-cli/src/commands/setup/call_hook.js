// @MARK@
// Remove it with: backtrail setup --remove @AGENT@
import { spawn } from "node:child_process";

const programs = ["@PROGRAM@", "backtrail"];
const options = ["@OPTIONS@"];

// Reads what the program printed: an object with lines, `show` for the user and `context` for the model.
function lines(text) {
  try {
    const { show, context } = JSON.parse(text);
    const line = (value) => (typeof value === "string" && value ? value : undefined);
    return { show: line(show), context: line(context) };
  } catch {
    return {};
  }
}

// Runs `backtrail hook` with a payload on its stdin and returns its lines. Waits for it, but not longer
// than the limit, and never fails: whatever goes wrong here must not reach the agent.
function hook(event, payload, limit = 3000, program = 0) {
  return new Promise((resolve) => {
    try {
      const text = JSON.stringify(payload);
      const args = [...options, "hook", "@AGENT@", "--event", event];
      const child = spawn(programs[program], args, { stdio: ["pipe", "pipe", "ignore"] });
      let out = "";
      const timer = setTimeout(() => resolve({}), limit);
      const done = (answer) => {
        clearTimeout(timer);
        resolve(answer);
      };
      child.on("error", () => {
        const next = program + 1;
        if (next < programs.length) hook(event, payload, limit, next).then(done);
        else done({});
      });
      child.on("close", (code) => done(code === 0 ? lines(out) : {}));
      child.stdout.setEncoding("utf8");
      child.stdout.on("data", (part) => {
        if (out.length < 65536) out += part;
      });
      child.stdout.on("error", () => {});
      child.stdin.on("error", () => {});
      child.stdin.end(text);
      child.stdout.unref?.();
      child.unref();
    } catch {
      resolve({});
    }
  });
}

