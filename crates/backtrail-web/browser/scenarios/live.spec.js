// What other processes do while a page is open.
import { Line } from "../kit/line.js";
import { Monitor } from "../kit/monitor.js";
import { expect, test } from "../kit/test.js";
import * as story from "../kit/story.js";

const toEnd = async (page, last) => {
  await expect(page.locator("#r1")).toBeVisible();
  await page.keyboard.press("Shift+G");
  await expect(page.locator(`#r${last}`)).toBeInViewport();
};

test("what another process appends appears at the end, for somebody who reads there", async ({ page, store, open }) => {
  const session = await story.long(store, 250);
  await open(`/session/${session}`);
  await toEnd(page, 250);
  for (const n of [251, 252, 253]) {
    await store.record([`news ${n}`], { session });
    await expect(page.locator(`#r${n}`)).toBeInViewport();
    await expect(page.locator(`#r${n}`)).toContainText(`news ${n}`);
  }
  await expect(page.locator("#newer")).toBeHidden();
  await expect(page.locator("#outline li a").last()).toHaveText("news 253");
});

test("somebody who reads further up stays there, and is told", async ({ page, store, open }) => {
  const session = await story.long(store, 250);
  await open(`/session/${session}`);
  await expect(page.locator("#r1")).toBeVisible();
  await page.evaluate(() => scrollTo({ top: 2000, behavior: "instant" }));
  const place = () => page.evaluate(() => document.elementFromPoint(600, 400).closest("[id]").id);
  const before = await place();
  await store.record(["news"], { session });
  await expect(page.locator("#newer")).toBeVisible();
  expect(await place()).toBe(before);
  await page.locator("#newer").click();
  await expect(page.locator("#r251")).toBeInViewport();
  await expect(page.locator("#newer")).toBeHidden();
});

test("what is unfolded and focused stays so while its range is renewed", async ({ page, store, open }) => {
  const session = await story.checkout(store);
  await open(`/session/${session}`);
  const tool = page.locator("#conversation details.tool");
  await tool.locator("summary").click();
  await store.record(["and more"], { session });
  await expect(page.locator("#conversation")).toContainText("and more");
  await expect(tool).toHaveAttribute("open");
  await expect(tool.locator("summary")).toBeFocused();
});

test("a new session appears in the list, marked as unread until it is read", async ({ page, store, open }) => {
  await story.checkout(store);
  await open();
  const rows = page.locator("#list .row");
  await expect(rows).toHaveCount(1);
  await expect(rows.first()).not.toHaveClass(/unread/);
  await store.record(["hello"], { title: "Brand new" });
  await expect(rows).toHaveCount(2);
  await expect(rows.first()).toHaveClass(/unread/);
  await rows.first().click();
  await expect(page.locator("#r1")).toBeVisible();
  await page.goBack();
  await expect(rows).toHaveCount(2);
  await expect(rows.first()).not.toHaveClass(/unread/);
});

test("the first session of an empty store appears", async ({ page, store, open }) => {
  await store.write("a", "a");
  await store.run(["checkpoint"]);
  await open();
  await expect(page.locator("#tally")).toContainText("No sessions yet");
  await store.record(["hello"], { title: "The first" });
  await expect(page.locator("#list .row")).toHaveText(/The first/);
});

test("a run of another process appears in the timeline", async ({ page, store, open }) => {
  await story.workspace(store);
  await open("/workspace");
  await expect(page.locator("#timeline .moment")).toHaveCount(5);
  await store.shell("echo more >> notes.txt");
  await expect(page.locator("#timeline .moment")).toHaveCount(6);
  await expect(page.locator("#next-undo")).toContainText("echo more");
});

test("a page that lost the server says so, goes on by itself, and has missed nothing", async ({ browser, store }) => {
  const session = await story.long(store, 30);
  const pages = await store.serve();
  const line = await Line.open();
  const context = await browser.newContext({ proxy: { server: line.address, bypass: "<-loopback>" } });
  const monitor = new Monitor(context);
  monitor.allow(pages.origin);
  monitor.expect(/ERR_/);
  const page = await context.newPage();
  await page.goto(pages.at(`/session/${session}`));
  await toEnd(page, 30);
  line.cut();
  await expect(page.locator("#lost")).toContainText("does not answer");
  for (const n of [31, 32, 33]) await store.record([`while away ${n}`], { session });
  line.mend();
  await expect(page.locator("#lost")).toBeHidden();
  for (const n of [31, 32, 33]) await expect(page.locator(`#r${n}`)).toContainText(`while away ${n}`);
  expect(monitor.faults()).toEqual([]);
  await context.close();
  await line.close();
});

test("a server that was stopped is missed with a sentence, and its successor asks for its own token", async ({ page, store, open, monitor }) => {
  await story.checkout(store);
  const pages = await open();
  await expect(page.locator("#list .row")).toHaveCount(1);
  monitor.tolerate(/ERR_CONNECTION_REFUSED/, /ERR_INCOMPLETE_CHUNKED_ENCODING/, /ERR_EMPTY_RESPONSE/, /ERR_CONNECTION_RESET/);
  await pages.stop();
  await expect(page.locator("#lost")).toHaveText("Backtrail was stopped. Start it again: backtrail web");
  monitor.expect(/^401 GET .*\/api\/events/);
  monitor.tolerate(/^401 GET/, /^console error: .*401/);
  await store.serve({ port: pages.port });
  await expect(page.locator("h1")).toHaveText("This page needs the address with its token");
  await expect(page.locator("#list")).toHaveCount(0);
});

test("a session that is deleted meanwhile says so, and leaves the list", async ({ page, store, open, monitor }) => {
  await story.checkout(store);
  const session = await story.long(store, 250);
  const pages = await open(`/session/${session}`);
  await expect(page.locator("#r1")).toBeVisible();
  await store.run(["delete", session]);
  monitor.tolerate(/^422 GET .*\/api\//, /^console error: .*422/);
  await page.reload();
  await expect(page.locator("#conversation .failure")).toContainText(/no session|trash/);
  await page.goto(`${pages.origin}/`);
  await expect(page.locator("#list .row")).toHaveCount(1);
});

test("a session that nobody knows is explained", async ({ page, store, open, monitor }) => {
  await story.checkout(store);
  monitor.expect(/^422 GET .*\/api\/session\?ref=zzzz/, /^console error: .*422/);
  await open("/session/zzzz");
  await expect(page.locator("#conversation .failure")).toContainText("zzzz");
  await expect(page.locator("#conversation .failure")).toContainText("backtrail list");
});

test("an address that there is not leads back to the sessions", async ({ page, store, open, monitor }) => {
  await story.checkout(store);
  await open();
  await expect(page.locator("#list .row")).toHaveCount(1);
  await page.evaluate(() => { history.pushState({}, "", "/nowhere"); history.pushState({}, "", "/health"); history.back(); });
  await expect(page.locator("h1")).toHaveText("There is no such page");
  await page.locator("main").getByRole("link", { name: "Sessions" }).click();
  await expect(page.locator("#list .row")).toHaveCount(1);
});
