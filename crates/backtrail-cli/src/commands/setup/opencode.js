
// Tells Backtrail about sessions, prompts and tool calls, so that they can be undone.
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
