// The longer run of .ci/long: 50 pages follow a server while 20 writers append. Every message that was acknowledged
// must be reported to every page and be in the records, and the server must stay small.
import { once } from "node:events";
import { readFile, readdir } from "node:fs/promises";
import { createInterface } from "node:readline";

import { Store } from "./kit/store.js";

const SECONDS = Number(process.env.BACKTRAIL_LONG_SECONDS ?? 600);
const [PAGES, WRITERS] = [50, 20];
// Beyond what it needs at first the server may take this much more.
const MEMORY_KIB = 128 << 10;
const DESCRIPTORS = 64;

const check = (isTrue, what) => { if (!isTrue) throw new Error(what); };

// A page: it follows the events, is interrupted now and then, resumes, and reads what it was told of.
class Page {
  last = "";
  known = new Map();
  changed = new Set();
  resets = 0;
  isDone = false;

  constructor(pages, sessions) {
    Object.assign(this, { pages, sessions });
  }

  async follow() {
    while (!this.isDone) {
      this.abort = new AbortController();
      const headers = { "x-backtrail-token": this.pages.token, ...(this.last && { "last-event-id": this.last }) };
      try {
        const response = await fetch(`${this.pages.origin}/api/events`, { headers, signal: this.abort.signal });
        check(response.ok, `events: ${response.status}`);
        this.isOpen = true;
        let text = "";
        for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
          const parts = (text + chunk).split("\n\n");
          text = parts.pop();
          parts.forEach((part) => this.#hear(Object.fromEntries(part.split("\n").map((line) => line.split(/: ?(.*)/s)))));
        }
      } catch (failure) { if (failure.name !== "AbortError" && !this.isDone) throw failure; }
    }
  }

  #hear({ id, event, data }) {
    if (id) this.last = id;
    if (event === "session") this.changed.add(JSON.parse(data).session);
    if (event === "sessions" || event === "reset") this.sessions.forEach((session) => this.changed.add(session));
    if (event === "reset") this.resets += 1;
  }

  // Reads the sessions that changed, as a page that shows them would.
  async read() {
    const changed = [...this.changed];
    this.changed.clear();
    for (const session of changed) {
      const { end } = await this.pages.ask(`records?session=${session}&first=${this.known.get(session) ?? 0}&last=${this.known.get(session) ?? 0}`);
      check(end >= (this.known.get(session) ?? 0), `${session} became shorter`);
      this.known.set(session, end);
    }
  }
}

// A writer: `backtrail record`, one message after another, each acknowledged.
class Writer {
  acknowledged = 0;

  constructor(store, session) {
    this.session = session;
    this.child = store.start(["record", "--session", session, "--durability", "batch"]);
    this.child.stdin.on("error", () => {});
    this.answers = createInterface(this.child.stdout)[Symbol.asyncIterator]();
  }

  async write(until) {
    for (let n = 1; Date.now() < until; n++) {
      this.child.stdin.write(`${JSON.stringify({ role: n % 3 ? "assistant" : "user", text: `message ${n} ${"x".repeat(n % 400)}` })}\n`);
      const { value } = await this.answers.next();
      const { ok, seq } = JSON.parse(value);
      check(ok, value);
      this.acknowledged = seq;
      await new Promise((next) => { setTimeout(next, 100); });
    }
    this.child.stdin.end();
    await once(this.child, "close");
  }
}

const measure = async (pid) => {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return { memory: Number(/VmRSS:\s+(\d+)/.exec(status)[1]), descriptors: (await readdir(`/proc/${pid}/fd`)).length };
};

const until = async (isTrue, what) => {
  const deadline = Date.now() + 60_000;
  while (!(await isTrue())) {
    check(Date.now() < deadline, what);
    await new Promise((next) => { setTimeout(next, 200); });
  }
};

const run = async (store) => {
  const sessions = [];
  for (let n = 0; n < WRITERS; n++) sessions.push(await store.record([`writer ${n}`]));
  const pages = await store.serve();
  const open = Array.from({ length: PAGES }, () => new Page(pages, sessions));
  const following = open.map((page) => page.follow());
  await until(() => open.every((page) => page.isOpen), "the pages were not opened");
  for (const [n, page] of open.entries()) {
    page.changed.add(sessions[n % WRITERS]);
    await page.read();
  }
  const first = await measure(pages.child.pid);
  let highest = first;
  const end = Date.now() + SECONDS * 1000;
  const writers = sessions.map((session) => new Writer(store, session));
  const writing = Promise.all(writers.map((writer) => writer.write(end)));
  for (let round = 0; Date.now() < end; round++) {
    for (const page of open.filter((_, n) => n % 10 === round % 10)) await page.read();
    // Some page is hidden and seen again.
    open[(round * 7) % PAGES].abort.abort();
    const now = await measure(pages.child.pid);
    highest = { memory: Math.max(highest.memory, now.memory), descriptors: Math.max(highest.descriptors, now.descriptors) };
    await new Promise((next) => { setTimeout(next, 200); });
  }
  await writing;
  const isUpToDate = async (page) => {
    await page.read();
    return writers.every(({ session, acknowledged }) => (page.known.get(session) ?? 0) >= acknowledged);
  };
  for (const page of open) await until(() => isUpToDate(page), "a page was not told of every message");
  for (const { session, acknowledged } of writers) {
    const messages = (await store.json(["show", session])).messages.length;
    check(messages === acknowledged, `${session}: ${messages} messages, ${acknowledged} acknowledged`);
  }
  for (const page of open) { page.isDone = true; page.abort.abort(); }
  await Promise.all(following);
  const sum = writers.reduce((all, { acknowledged }) => all + acknowledged, 0);
  const resets = open.reduce((all, page) => all + page.resets, 0);
  console.log(`${sum} messages of ${WRITERS} writers reached ${PAGES} pages in ${SECONDS} s; ${resets} resets`);
  console.log(`the server: ${first.memory >> 10} MiB and ${first.descriptors} descriptors at first, ${highest.memory >> 10} MiB and ${highest.descriptors} at most`);
  check(highest.memory < first.memory + MEMORY_KIB, "the server takes too much memory");
  check(highest.descriptors < first.descriptors + DESCRIPTORS, "the server takes too many descriptors");
};

const store = await Store.make();
try { await run(store); } finally { await store.end(); }
process.exit(0);
