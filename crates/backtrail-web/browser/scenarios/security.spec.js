// Nothing of the store reaches anything but the page that has the token, and no text of it runs.
import { chmod, readFile, stat } from "node:fs/promises";
import { join } from "node:path";

import { Elsewhere } from "../kit/elsewhere.js";
import { hostile } from "../kit/hostile.js";
import { expect, test } from "../kit/test.js";
import * as story from "../kit/story.js";

test("without a token a page says how to get one, and asks for nothing", async ({ page, store, monitor }) => {
  await story.checkout(store);
  const pages = await store.serve();
  monitor.allow(pages.origin);
  const asked = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  for (const path of ["/", "/workspace", "/costs", "/health", "/files?path=a", "/session/latest"]) {
    await page.goto(`${pages.origin}${path}`);
    await expect(page.locator("h1")).toHaveText("This page needs the address with its token");
    await expect(page.locator("main")).toContainText("backtrail web --no-open");
  }
  expect(asked.filter((path) => path.startsWith("/api/"))).toEqual([]);
  expect(await page.content()).not.toContain("Checkout");
});

test("the browser is led to the page by a file that is gone once the page is there", async ({ page, store, monitor }) => {
  await story.checkout(store);
  const opened = join(store.dir, "opened");
  const program = await store.write("xdg-open", `#!/bin/sh\necho "$1" > ${opened}.part && mv ${opened}.part ${opened}\n`, { below: store.bin });
  await chmod(program, 0o755);
  const pages = await store.serve({ opens: true });
  monitor.allow(pages.origin);
  monitor.allow("null");
  await expect.poll(() => readFile(opened, "utf8").catch(() => "")).toMatch(/\.html\n$/);
  const file = (await readFile(opened, "utf8")).trim();
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  await page.goto(`file://${file}`);
  await expect(page.locator("#list .row")).toHaveCount(1);
  expect(page.url()).toBe(`${pages.origin}/`);
  await expect.poll(() => stat(file).then(() => "there", () => "gone")).toBe("gone");
  expect(await page.evaluate(() => document.referrer)).toBe("");
});

test("a wrong token gets the same page, and no data", async ({ page, store, monitor }) => {
  await story.checkout(store);
  const pages = await store.serve();
  monitor.allow(pages.origin);
  monitor.expect(/^401 GET .*\/api\//, /^console error: .*401/);
  await page.goto(`${pages.origin}/#token=${"0".repeat(32)}`);
  await expect(page.locator("h1")).toHaveText("This page needs the address with its token");
  await expect(page.locator("#list")).toHaveCount(0);
});

test("the token stays in this tab: not in an address, the history, a cookie, a header that leaks, or another tab", async ({ page, context, store, open }) => {
  await story.checkout(store);
  const requests = [];
  context.on("request", (request) => requests.push(request));
  const pages = await open();
  await expect(page.locator("#list .row")).toHaveCount(1);
  expect(page.url()).toBe(`${pages.origin}/`);
  await page.locator("#list .row").click();
  await expect(page.locator("#r1")).toBeVisible();
  await page.goBack();
  await expect(page).toHaveURL(`${pages.origin}/`);
  const kept = await page.evaluate(() => ({ local: JSON.stringify(localStorage), cookie: document.cookie, referrer: document.referrer, html: document.documentElement.outerHTML, state: JSON.stringify(history.state) }));
  for (const text of Object.values(kept)) expect(text).not.toContain(pages.token);
  expect(kept).toMatchObject({ cookie: "", referrer: "" });
  expect(await context.cookies()).toEqual([]);
  for (const request of requests) {
    const headers = await request.allHeaders();
    expect(request.url()).not.toContain(pages.token);
    expect(headers.referer ?? "").toBe("");
    const hasToken = Object.values(headers).some((value) => value.includes(pages.token));
    expect(hasToken, request.url()).toBe(new URL(request.url()).pathname.startsWith("/api/"));
  }
  const other = await context.newPage();
  await other.goto(`${pages.origin}/`);
  await expect(other.locator("h1")).toHaveText("This page needs the address with its token");
});

test("a page of another origin cannot fetch, frame, load or post, even with the token", async ({ page, store, monitor }) => {
  await story.workspace(store);
  const before = await store.read("notes.txt");
  const pages = await store.serve({ write: true });
  const elsewhere = await Elsewhere.open("<!doctype html><title>elsewhere</title>");
  monitor.allow(pages.origin);
  monitor.allow(elsewhere.origin);
  monitor.tolerate(/./);
  await page.goto(elsewhere.origin);
  const got = await page.evaluate(async ({ origin, token }) => {
    const results = {};
    const attempt = async (name, work) => { try { results[name] = await work(); } catch (error) { results[name] = `refused: ${error.name}`; } };
    const headers = { "x-backtrail-token": token };
    await attempt("fetch", async () => (await fetch(`${origin}/api/sessions`, { headers })).text());
    await attempt("simple fetch", async () => (await fetch(`${origin}/api/sessions`)).text());
    await attempt("opaque fetch", async () => (await (await fetch(`${origin}/api/sessions`, { mode: "no-cors" })).text()).length);
    await attempt("events", async () => (await fetch(`${origin}/api/events`, { headers })).status);
    const body = JSON.stringify({ action: { do: "undo" } });
    await attempt("post", async () => (await fetch(`${origin}/api/plan`, { method: "POST", headers: { ...headers, "content-type": "application/json" }, body })).status);
    await attempt("opaque post", async () => (await (await fetch(`${origin}/api/plan`, { method: "POST", mode: "no-cors", body })).text()).length);
    const loaded = (name, attributes) => new Promise((done) => {
      const node = Object.assign(document.createElement(name), attributes);
      node.onload = () => done("loaded");
      node.onerror = () => done("refused");
      document.body.append(node);
    });
    await attempt("script", () => loaded("script", { src: `${origin}/app.js` }));
    await attempt("image", () => loaded("img", { src: `${origin}/favicon.ico` }));
    const frame = document.createElement("iframe");
    frame.src = `${origin}/#token=${token}`;
    const framed = new Promise((done) => { frame.onload = done; });
    document.body.append(frame);
    await framed;
    await attempt("frame", () => frame.contentDocument?.body?.textContent ?? "refused: nothing to read");
    return results;
  }, { origin: pages.origin, token: pages.token });
  for (const [name, result] of Object.entries(got)) {
    expect(`${result}`, name).toMatch(/^refused/);
  }
  // What the frame holds is the browser's own refusal.
  const frames = page.frames().filter((frame) => frame !== page.mainFrame());
  for (const frame of frames) expect(await frame.content()).not.toContain("Backtrail");
  expect(await store.read("notes.txt")).toBe(before);
  await elsewhere.close();
});

test("a form of another origin changes nothing", async ({ page, store, monitor }) => {
  await story.workspace(store);
  const before = await store.read("notes.txt");
  const pages = await store.serve({ write: true });
  const form = `<!doctype html><form method="post" enctype="text/plain" action="${pages.origin}/api/plan"><input name='{"action":{"do":"undo"},"x":"' value='"}'><button>go</button></form>`;
  const elsewhere = await Elsewhere.open(form);
  monitor.allow(pages.origin);
  monitor.allow(elsewhere.origin);
  monitor.tolerate(/^40\d POST/, /^console error: .*40\d/, /favicon/);
  await page.goto(elsewhere.origin);
  const answered = page.waitForResponse((response) => response.url().endsWith("/api/plan"));
  await page.locator("button").click();
  expect((await answered).status()).toBe(403);
  expect(await store.read("notes.txt")).toBe(before);
  await elsewhere.close();
});

// Records a session that has a text in every place of it, as the tests of the export do.
const poisoned = (texts) => texts.flatMap((text, n) => {
  const id = `t${n}`;
  // What is known of a record has no line breaks.
  const named = `x${text.replace(/\p{Cc}/gu, " ")}`;
  return [
    { role: "user", text },
    {
      type: "message", model: named, response_id: named,
      message: {
        role: "assistant", usage: { input_tokens: 1000, output_tokens: 2 },
        blocks: [
          { type: "text", text }, { type: "thinking", thinking: text },
          { type: "tool_use", id, name: text, input: { [text]: text, list: [text], file_path: text, old_string: text, new_string: `${text}\nmore` } },
          { type: "tool_use", id: `u${id}`, name: "Write", input: { path: text, content: text } },
          { type: "tool_use", id: `v${id}`, name: "shell", input: text },
          { type: "image", media_type: text, data: "AAAA" }, { type: "image", media_type: "image/svg+xml", data: "PHN2Zy8+" }, { type: "image", media_type: "image/png", data: text },
        ],
      },
      cost_usd: 0.5,
    },
    {
      type: "message",
      message: { role: "tool", blocks: [
        { type: "tool_result", tool_use_id: id, tool_name: text, output: text, is_error: n % 2 === 0 },
        { type: "tool_result", tool_use_id: `u${id}`, output: [{ type: "text", text }, { [text]: text }] },
      ] },
    },
    ...(text.trim() ? [{ type: "compaction", summary: text }] : []),
  ];
});

test("hostile text in every place of every page runs nothing, and calls nobody", async ({ page, context, store, open }) => {
  const elsewhere = await Elsewhere.open();
  const texts = await hostile(elsewhere.port);
  const inLine = texts.map((text) => text.replace(/[\p{Cc}/\u2028\u2029]/gu, " ").trim()).filter(Boolean);
  for (const [n, name] of inLine.entries()) await store.write(`${n} ${name}`.slice(0, 100), `${texts[n].replaceAll("\0", "")}\n`);
  await store.run(["checkpoint", inLine[0]]);
  const session = await store.record(poisoned(texts), { title: `x${inLine.join(" ")}`.slice(0, 400) });
  for (const text of inLine.slice(0, 6)) await store.run(["run", "--title", text, "--agent", "none", "--", "sh", "-c", "echo \"$0\" >> hostile.html", text]);
  for (const text of ["a<b>'\"", "<img>"]) await store.run(["tag", session, text]).catch(() => {});
  const pages = await open();
  const frames = [];
  context.on("page", (opened) => frames.push(opened.url()));
  const quiet = async () => {
    await page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
    expect(await page.title()).not.toMatch(/^(owned|1|2)$/);
    expect(await page.evaluate(() => document.querySelectorAll("iframe, object, embed, base, main script, main style, main link, main form[action], main [onerror], main [onload], main [onfocus], main [onclick], main [onmouseover]").length)).toBe(0);
    expect(await page.evaluate(() => [...document.querySelectorAll("main a[href], main img[src]")].filter((node) => /^(javascript|vbscript):/i.test(node.getAttribute("href") ?? node.getAttribute("src"))).length)).toBe(0);
  };
  const list = page.locator("#list .row", { hasText: "x<script>" });
  await expect(list).toHaveCount(1);
  await quiet();
  await page.goto(`${pages.origin}/session/${session}`);
  await expect(page.locator("#r1")).toContainText("<script>");
  await page.locator("#unfold").click();
  await page.locator("#context summary").click();
  await expect(page.locator("#context table")).toBeVisible();
  for (let n = 0; n < 60; n++) {
    await page.mouse.wheel(0, 1500);
    await quiet();
  }
  await page.goto(`${pages.origin}/workspace`);
  const moments = page.locator("#timeline .moment");
  await expect(moments.first()).toBeVisible();
  for (const moment of await moments.all()) {
    await moment.click();
    // Not those of the moment before.
    await expect(page.locator(`#moment-changes .changes[data-of="row=${await moment.getAttribute("data-id")}"]`)).toBeVisible();
    for (const summary of (await page.locator("#moment-changes summary").all()).slice(0, 30)) await summary.click();
    await quiet();
  }
  await page.goto(`${pages.origin}/files`);
  await expect(page.locator("#tree a").first()).toBeVisible();
  for (const link of (await page.locator("#tree a").all()).slice(0, 12)) {
    await link.click();
    await expect(page.locator("#file > *").first()).toBeVisible();
    await quiet();
  }
  await page.locator(".content-head a").click();
  await expect(page.locator("#file table")).toBeVisible();
  await quiet();
  for (const by of ["model", "session", "tool", "project"]) {
    await page.goto(`${pages.origin}/costs?by=${by}`);
    await expect(page.locator("#spending .plot svg")).toBeVisible();
    await expect(page.locator("#dearest table").first()).toBeVisible();
    await quiet();
  }
  await page.goto(`${pages.origin}/health`);
  await expect(page.locator(".findings li").first()).toBeVisible();
  await quiet();
  for (const words of ["owned", "script", "img"]) {
    await page.goto(`${pages.origin}/?q=${words}`);
    await expect(page.locator(".hit-row").first()).toBeVisible();
    await quiet();
  }
  expect(elsewhere.calls).toEqual([]);
  expect(frames).toEqual([]);
  await elsewhere.close();
});

test("an answer with data that is opened as a page shows nothing", async ({ page, store, monitor }) => {
  const session = await store.record(["<script>document.title='owned'</script>"]);
  const pages = await store.serve();
  monitor.allow(pages.origin);
  monitor.tolerate(/^401 GET/, /^console error: .*401/);
  const response = await page.goto(`${pages.origin}/api/records?session=${session}`);
  expect(response.status()).toBe(401);
  expect(await page.content()).not.toContain("owned");
});
