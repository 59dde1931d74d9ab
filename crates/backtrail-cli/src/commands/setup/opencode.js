// Tells Backtrail about sessions, prompts and tool calls, so that they can be undone.
const events = ["session.created", "session.idle", "session.deleted"];

// A part of a prompt that only the model sees. Parts are ordered by their ids, so its own comes after
// the last one.
function addContext(output, text) {
  const { message, parts } = output;
  const ids = parts.map((part) => part.id).sort();
  const last = ids[ids.length - 1];
  if (!last || !message?.id) return;
  parts.push({
    id: `${last}0`,
    messageID: message.id,
    sessionID: message.sessionID,
    type: "text",
    text,
    synthetic: true,
  });
}

export const Backtrail = async ({ client, directory }) => {
  const show = (message) => {
    try {
      const shown = client?.tui?.showToast?.({ body: { message, variant: "info" } });
      shown?.catch?.(() => {});
    } catch {
      // There is no screen.
    }
  };
  return {
    event: async ({ event }) => {
      if (!events.includes(event?.type)) return;
      const answer = await hook(event.type, { event, directory });
      if (answer.show) show(answer.show);
    },
    "chat.message": async (input, output) => {
      const answer = await hook("chat.message", { input, output, directory });
      try {
        if (answer.context) addContext(output, answer.context);
        if (answer.show) show(answer.show);
      } catch {
        // A version that has other parts.
      }
    },
    "tool.execute.before": async (input, output) => {
      await hook("tool.execute.before", { input, output, directory });
    },
    // The result of a tool can be large, and is in the transcript.
    "tool.execute.after": async (input) => {
      await hook("tool.execute.after", { input, directory });
    },
  };
};
