// The script of the pages. The server puts these files one after another into one module.
// HTML comes from the server alone, escaped there, and goes into the page in `fragment` alone.

const one = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

const policy = globalThis.trustedTypes
  ? trustedTypes.createPolicy("backtrail", { createHTML: (html) => html })
  : { createHTML: (html) => html };

const fragment = (html) => {
  const template = document.createElement("template");
  template.innerHTML = policy.createHTML(html);
  return template.content;
};

const fill = (node, html) => {
  node.replaceChildren(fragment(html));
  guardWrites(node);
};

const element = (name, text, attributes = {}) => {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
};

// The token came in the fragment of the opened address, and stays in this tab.
const TOKEN = "backtrail-token";
const takeToken = () => {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!given) return false;
  sessionStorage.setItem(TOKEN, given);
  history.replaceState(history.state, "", location.pathname + location.search);
  return true;
};
const token = () => sessionStorage.getItem(TOKEN) ?? "";

class Failure extends Error {
  constructor(message, hints = []) {
    super(message);
    this.hints = hints;
  }
}
class Refused extends Failure {}

const send = async (path, options = {}) => {
  const headers = { ...options.headers, "x-backtrail-token": token() };
  const response = await fetch(path, { ...options, headers, cache: "no-store" });
  // What changes from here on is news to this page.
  stream.last ||= response.headers.get("x-backtrail-seen") ?? "";
  if (response.status === 401) throw new Refused("this page needs the address with its token");
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({}));
  throw new Failure(answer.error ?? `the server answered ${response.status}`, answer.hints);
};

const given = (parameters) => {
  const pairs = [...(parameters[Symbol.iterator] ? parameters : Object.entries(parameters))];
  return new URLSearchParams(pairs.filter(([, value]) => value !== undefined && value !== null && value !== ""));
};

const ask = async (name, parameters = {}, signal) => {
  const response = await send(`/api/${name}?${given(parameters)}`, { signal });
  return response.json();
};

const post = async (name, body) => {
  const headers = { "content-type": "application/json" };
  const response = await send(`/api/${name}`, { method: "POST", headers, body: JSON.stringify(body) });
  return response.json();
};

// What this start of the server is: its version, and what it may do.
let hello = { can_write: false };

const READ_ONLY = "These pages only read. To change files or history, start them with: backtrail web --write";

// Without --write, what changes something is shown and cannot be used.
const guardWrites = (root) => {
  for (const button of all("[data-write]", root)) {
    button.disabled = !hello.can_write || button.dataset.impossible !== undefined;
    if (!hello.can_write) button.title = READ_ONLY;
  }
  for (const note of all(".read-only", root)) {
    note.hidden = hello.can_write;
    note.textContent = READ_ONLY;
  }
};

const say = (text) => {
  const line = one("#say");
  line.textContent = "";
  requestAnimationFrame(() => { line.textContent = text; });
};

const failureNode = (failure) => {
  const box = element("div", "", { class: "failure", role: "alert" });
  box.append(element("p", `${failure.message}.`.replace(/\.\.$/, ".")));
  for (const hint of failure.hints ?? []) box.append(element("p", hint, { class: "hint" }));
  return box;
};

// Runs something that a page shows, and shows why it failed.
const showing = async (node, work) => {
  const { generation } = router;
  try {
    return await work();
  } catch (failure) {
    if (failure.name === "AbortError" || generation !== router.generation) return undefined;
    if (failure instanceof Refused) return router.refuse();
    node.replaceChildren(failureNode(explained(failure)));
    return undefined;
  }
};

// A browser says little about a server that is gone.
const explained = (failure) =>
  failure instanceof TypeError ? new Failure("the server does not answer", ["start it again: backtrail web"]) : failure;

const copy = async (text, what) => {
  try {
    await navigator.clipboard.writeText(text);
    say(`Copied ${what}`);
    report(`Copied ${what}`);
  } catch {
    report("The browser does not allow copying here");
  }
};

const later = (wait, work) => {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), wait);
  };
};

const recall = (name) => { try { return localStorage.getItem(name); } catch { return null; } };
const keep = (name, value) => { try { localStorage.setItem(name, value); } catch { /* it is forgotten */ } };

// Light and dark: as the system has it until a theme is chosen.
const root = document.documentElement;
const isDark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const chosenTheme = recall("backtrail-theme");
if (["light", "dark"].includes(chosenTheme)) root.dataset.theme = chosenTheme;
one("#theme").addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  keep("backtrail-theme", root.dataset.theme);
});

// Times, in the zone of the reader, as 24 hours like those that come from the server.
const timeOfDay = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const dateAndTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" });
const showTimes = (node) => {
  let day = "";
  for (const time of all("time", node)) {
    const at = new Date(time.dateTime);
    if (isNaN(at)) continue;
    const isSame = at.toDateString() === day;
    time.textContent = isSame ? timeOfDay.format(at) : dateAndTime.format(at);
    day = at.toDateString();
  }
};

const today = () => {
  const now = new Date();
  const two = (number) => String(number).padStart(2, "0");
  return `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
};

const barHeight = () => one("#top").offsetHeight + (one("#session-tools")?.offsetHeight ?? 0);
