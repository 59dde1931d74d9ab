// Costs and health: the numbers of the pages are those of the command.
import { appendFile, readdir } from "node:fs/promises";
import { join } from "node:path";

import { expect, test } from "../kit/test.js";
import * as story from "../kit/story.js";

const number = (text) => Number(text.replace(/[^\d.]/g, ""));

// Returns the rows of the table of numbers, by their names.
const table = async (page) => {
  const rows = await page.locator("#spending .amounts").locator("tbody tr, tfoot tr").all();
  const found = {};
  for (const row of rows) {
    const [cost, , calls, input, output, read, write] = await row.locator("td").allTextContents();
    const name = (await row.locator("th").first().textContent()).trim();
    found[name] = { cost, calls: number(calls), input: number(input), output: number(output), read: number(read), write: number(write) };
  }
  return found;
};

const inDollars = (amount) => `$${amount.toFixed(2)}`;

for (const by of ["day", "week", "month", "model", "project", "agent"]) {
  test(`the costs by ${by} are those of stats, to the cent`, async ({ page, store, open }) => {
    await story.checkout(store);
    await story.imported(store);
    const stats = await store.json(["stats", "--all", "--by", by]);
    await open(`/costs?by=${by}`);
    await expect(page.locator("#spending .plot svg")).toBeVisible();
    await page.locator("#spending summary").first().click();
    const shown = await table(page);
    const { total, ...groups } = shown;
    const amounts = ({ calls, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens }) =>
      ({ calls, input: input_tokens, output: output_tokens, read: cache_read_tokens, write: cache_write_tokens });
    expect(total).toMatchObject(amounts(stats.totals));
    expect(total.cost).toMatch(`${inDollars(stats.totals.cost_usd)}`);
    const measured = stats.by.filter(({ calls }) => calls > 0);
    expect(Object.keys(groups)).toHaveLength(stats.by.length);
    for (const group of measured) {
      const same = Object.values(groups).filter((row) => row.calls === group.calls && row.input === group.input_tokens && row.output === group.output_tokens);
      expect(same.map(({ cost }) => cost.replace("+", "")), JSON.stringify(group)).toContain(group.cost_usd < 0.01 ? "<$0.01" : inDollars(group.cost_usd));
    }
    const figures = page.locator("#spending .totals dd");
    await expect(figures.first()).toContainText(inDollars(stats.totals.cost_usd));
  });
}

test("the year's heat map leads to the sessions of a day", async ({ page, store, open }) => {
  const at = story.ago(24);
  await store.record([{ role: "user", text: "yesterday", at }, story.answer("It was.", { at, model: "m", response_id: "r", cost_usd: 3, usage: { input_tokens: 10, output_tokens: 10 } })]);
  await open("/costs");
  const spent = page.locator("#year svg .h4[data-href]");
  await expect(spent).toHaveCount(1);
  await spent.click();
  await expect(page).toHaveURL(/\/\?since=\d{4}-\d\d-\d\d&until=\d{4}-\d\d-\d\d/);
  await expect(page.locator("#list .row")).toHaveText([/yesterday/]);
});

test("blocks of five hours, and the dearest turns lead to their prompts", async ({ page, store, open }) => {
  await story.checkout(store);
  await open("/costs");
  const blocks = await store.json(["stats", "--all", "--blocks"]);
  await expect(page.locator("#five-hours svg rect.bar")).toHaveCount(blocks.blocks.filter((block) => !block.gap).length);
  const names = await page.locator("#five-hours svg rect.bar title").allTextContents();
  expect(names, "the oldest first").toEqual([...names].sort());
  await page.locator("#costs-form select[name=by]").selectOption("block of five hours");
  await expect(page).toHaveURL(/by=block/);
  await expect(page.locator("#spending .plot svg")).toBeVisible();
  const turns = page.locator("#dearest table").last().locator("tr th[scope=row] a");
  await expect(turns.first()).toHaveText("why is the checkout slow?");
  await turns.first().click();
  await expect(page).toHaveURL(/\/session\/[^/]+#r1$/);
  await expect(page.locator("#r1")).toBeInViewport();
});

const costly = (text, hours, cost) => [
  { role: "user", text, at: story.ago(hours) },
  story.answer("Done.", { at: story.ago(hours), model: "m", response_id: text, cost_usd: cost, usage: usage(10) }),
];
const usage = (tokens) => ({ input_tokens: tokens, output_tokens: tokens });

test("a total is that of the days that are shown, and says so", async ({ page, store, open }) => {
  await store.record(costly("long ago", 24 * 40, 5));
  await store.record(costly("lately", 24, 3));
  await open("/costs");
  const total = page.locator("#spending .totals dd").first();
  await expect(total).toHaveText("$3.00");
  await expect(page.locator("#spending .note").first()).toHaveText(/^The newest 30 of 40 days/);
  await page.locator("#spending summary").first().click();
  await expect(page.locator("#spending tfoot td").first()).toHaveText("$3.00");
  await expect(page.locator("#spending .plot svg")).toContainText("$3.00");
  await expect(page.locator("#spending .plot svg")).not.toContainText("$8.00");
  await page.getByLabel("Since").fill(story.ago(24 * 41).slice(0, 10));
  await expect(total).toHaveText("$8.00");
  await expect(page.locator("#spending .note")).toHaveCount(0);
});

for (const by of ["week", "block"]) {
  test(`the sessions of a ${by} are named by their titles and short ids`, async ({ page, store, open }) => {
    const session = await story.checkout(store);
    const [{ short }] = await store.json(["list", "--all"]);
    await open(`/costs?by=${by}`);
    const box = page.locator("#spending");
    await box.locator("summary").first().click();
    const its = box.locator(".its-sessions").last();
    await its.locator("summary").click();
    await expect(its.locator("li")).toHaveText(`Checkout ${short}`);
    await its.locator("a").click();
    await expect(page).toHaveURL(new RegExp(`/session/${session}`));
  });
}

test("a group leads to its sessions, and tools are counted", async ({ page, store, open }) => {
  await story.checkout(store);
  await story.imported(store);
  await open("/costs?by=agent");
  await page.locator("#spending summary").first().click();
  await page.locator("#spending .amounts").getByRole("link", { name: "Codex" }).click();
  await expect(page.locator("#list .row")).toHaveText([/explain the scheduler/]);
  await page.goBack();
  await expect(page.locator("#costs-form select[name=by]")).toHaveValue("agent");
  await page.locator("#costs-form select[name=by]").selectOption("tool");
  await page.locator("#spending summary").first().click();
  await expect(page.locator("#spending .amounts tbody tr")).toHaveText([/Bash\s*1/]);
});

test("what fills the context of a session is shown in its page", async ({ page, store, open }) => {
  const session = await story.checkout(store);
  await open(`/session/${session}`);
  await page.locator("#context summary").click();
  const parts = page.locator("#context table.context tr th[scope=row]");
  await expect(parts.filter({ hasText: "answers" })).toHaveCount(1);
  await expect(parts.filter({ hasText: "prompts" })).toHaveCount(1);
});

test("the health of the store is told, and again when it is asked for", async ({ page, store, open }) => {
  await story.workspace(store);
  await open("/health");
  await expect(page.locator(".findings li").first()).toBeVisible();
  await expect(page.locator(".findings .bad")).toHaveCount(0);
  const sessions = page.locator(".numbers > div", { has: page.locator("dt", { hasText: /^sessions$/ }) }).locator("dd");
  await expect(sessions).toHaveText("3");
  await store.record(["one more"]);
  // The catalogue catches up behind the answers.
  await expect(async () => {
    await page.getByRole("button", { name: "Check again" }).click();
    await expect(sessions).toHaveText("4", { timeout: 1000 });
  }).toPass();
});

test("a directory without checkpoints is not called protected", async ({ page, store, open }) => {
  await story.workspace(store);
  await store.write(".gitignore", "secret.bin\n");
  await store.write("secret.bin", "x".repeat(2 << 20));
  await store.run(["checkpoint"]);
  const cwd = join(store.dir, "bare");
  await store.write("b.txt", "b\n", { below: cwd });
  await open("/health", { cwd });
  const here = page.locator(".protection").first();
  await expect(here.locator("h3")).toContainText("bare (here)");
  await expect(here).toContainText("Nothing is protected: there are no checkpoints yet.");
  await expect(here).not.toContainText("Everything is protected");
  const other = page.locator(".protection").last();
  await expect(other.locator("h3")).toContainText("work");
  await other.locator("summary").click();
  await expect(other.locator("tr", { hasText: "secret.bin" })).toContainText("ignored");
});

test("damage is found by the health page, and marks its session", async ({ page, store, open }) => {
  await story.checkout(store);
  const session = await story.long(store, 50);
  const dir = join(store.dir, "store/sessions", session);
  const trail = (await readdir(dir)).find((name) => name.endsWith(".jsonl"));
  await appendFile(join(dir, trail), "this is not a record\n");
  await store.record(["after the damage"], { session: undefined });
  const pages = await open("/health");
  await expect(page.locator(".findings .bad")).toContainText(/damage/);
  await page.goto(`${pages.origin}/`);
  await expect(page.locator("#list .row", { hasText: "Long" }).locator(".badge.bad")).toHaveText("damaged");
  await page.locator("#list .row", { hasText: "Long" }).click();
  await expect(page.locator("#r1")).toBeVisible();
});
