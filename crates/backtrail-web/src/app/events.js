// What changes, as the server reports it. The stream is resumed where it ended, so that nothing is
// missed; a page that is hidden ends it and resumes when it is seen again.

const LONGEST_PAUSE = 10_000;

const stream = { last: "", abort: null, wake: null, isGone: false };

const lost = (text) => {
  const line = one("#lost");
  line.hidden = !text;
  line.textContent = text;
};

const pause = (ms) => new Promise((wake) => {
  stream.wake = wake;
  setTimeout(wake, ms);
});

// Splits a body into events: an id, a name and data each.
async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const fields = part.split("\n").map((line) => line.split(/: ?(.*)/s));
      yield Object.fromEntries(fields.filter(([name]) => name));
    }
  }
}

const follow = async () => {
  let wait = 0;
  for (;;) {
    while (document.hidden) await pause(60_000);
    try {
      stream.abort = new AbortController();
      const headers = stream.last ? { "last-event-id": stream.last } : {};
      const response = await send("/api/events", { headers, signal: stream.abort.signal });
      lost("");
      wait = 0;
      for await (const event of eventsOf(response.body)) {
        if (event.id) stream.last = event.id;
        if (event.event) heard(event.event, JSON.parse(event.data ?? "{}"));
      }
    } catch (failure) {
      if (failure instanceof Refused) return router.refuse();
    }
    if (document.hidden) continue;
    if (wait > 0 || stream.isGone) lost(stream.isGone ? "Backtrail was stopped. Start it again: backtrail web" : "The server does not answer. Trying again…");
    wait = Math.min(LONGEST_PAUSE, wait ? wait * 2 : 200);
    await pause(wait);
  }
};

const heard = (name, data) => {
  if (name === "bye") {
    stream.isGone = true;
    lost("Backtrail was stopped. Start it again: backtrail web");
    return;
  }
  stream.isGone = false;
  if (name !== "ready") router.page?.changed?.(name, data);
};

document.addEventListener("visibilitychange", () => {
  if (document.hidden) stream.abort?.abort();
  else stream.wake?.();
});
