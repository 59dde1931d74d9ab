// The list of sessions: filters, and the search over everything.
import { expect, test } from "../kit/test.js";
import * as story from "../kit/story.js";

const rows = (page) => page.locator("#list .row");
const titles = (page) => page.locator("#list .row .title b");
const unfold = (page) => page.locator("#filters summary").click();

test("sessions are listed newest first, with their families below them", async ({ page, store, open }) => {
  await story.checkout(store);
  await story.withSubAgent(store);
  await open();
  await expect(titles(page)).toHaveText(["Checkout", "Parser", "Counting"]);
  await expect(page.locator("#tally")).toHaveText("3 sessions");
  const row = rows(page).first();
  await expect(row.locator(".turns")).toHaveText("2 turns");
  await expect(row.locator(".cost")).toHaveText("$2.59");
  await expect(row.locator(".model")).toHaveText("m-large");
  const indent = (n) => rows(page).nth(n).locator(".title b").evaluate((node) => node.getBoundingClientRect().left);
  await expect(rows(page).nth(2).locator(".badge")).toHaveText("sub-agent");
  await expect(rows(page).nth(2).locator(".title")).toHaveClass(/below/);
  expect(await indent(2)).toBeGreaterThan(await indent(1));
});

test("an empty store says how sessions come into it", async ({ page, store, open }) => {
  await store.write("a", "a");
  await store.run(["checkpoint"]);
  await open();
  await expect(page.locator("#tally")).toHaveText("No sessions yet. Import them in a terminal: backtrail import");
  await expect(rows(page)).toHaveCount(0);
});

const FILTERS = {
  agent: { option: "Codex", shown: ["explain the scheduler"] },
  project: { option: "elsewhere", shown: ["Far away"] },
  model: { option: "m-large", shown: ["Checkout"] },
  tag: { option: "good", shown: ["Checkout"] },
};

for (const [name, { option, shown }] of Object.entries(FILTERS)) {
  test(`a filter by ${name} is kept over a reload and over the way back`, async ({ page, store, open }) => {
    const checkout = await story.checkout(store);
    await story.imported(store);
    await store.write("elsewhere/.git/HEAD", "ref: refs/heads/main\n", { below: store.dir });
    await store.record(["over there"], { title: "Far away", cwd: `${store.dir}/elsewhere` });
    await store.run(["tag", checkout, "good"]);
    await open();
    await expect(rows(page)).toHaveCount(4);
    await unfold(page);
    await page.locator(`#choices select[name=${name}]`).selectOption({ label: option });
    await expect(titles(page)).toHaveText(shown);
    await expect(page).toHaveURL(new RegExp(`\\?${name}=`));
    await expect(page.locator("#tally")).toHaveText("1 of 4 sessions");
    await page.reload();
    await expect(titles(page)).toHaveText(shown);
    await rows(page).first().click();
    await expect(page.locator("#conversation .prompt").first()).toBeVisible();
    await page.goBack();
    await expect(titles(page)).toHaveText(shown);
    await expect(page.locator(`#choices select[name=${name}]`)).not.toHaveValue("");
    await page.locator("#clear").click();
    await expect(rows(page)).toHaveCount(4);
  });
}

test("title, days and place filter, alone and together", async ({ page, store, open }) => {
  await story.checkout(store);
  await story.imported(store);
  await open();
  await expect(rows(page)).toHaveCount(3);
  await unfold(page);
  await page.getByLabel("Title").fill("WIDGET");
  await expect(titles(page)).toHaveText(["rename the widget"]);
  await page.getByLabel("Title").fill("");
  await expect(rows(page)).toHaveCount(3);
  const day = (hours) => story.ago(hours).slice(0, 10);
  await page.getByLabel("Since").fill(day(24));
  await expect(titles(page)).toHaveText(["Checkout"]);
  await page.getByLabel("Since").fill("");
  await page.getByLabel("Until").fill(day(49));
  await expect(rows(page)).toHaveCount(2);
  await page.getByLabel("Title").fill("scheduler");
  await expect(titles(page)).toHaveText(["explain the scheduler"]);
  await page.getByLabel("Where").selectOption("this workspace");
  await expect(titles(page)).toHaveText(["explain the scheduler"]);
  await expect(page.locator("#filter-count")).toHaveText(" · 3");
});

test("a search shows its matches, and opens the record", async ({ page, store, open }) => {
  await story.checkout(store);
  await open();
  await page.keyboard.press("/");
  await page.keyboard.type("again");
  const hit = page.locator(".hit-row");
  await expect(hit).toHaveCount(1);
  await expect(hit.locator("mark")).toHaveText("again");
  await expect(page.locator("#tally")).toHaveText("1 match");
  await expect(page).toHaveURL(/\?q=again$/);
  await hit.click();
  await expect(page).toHaveURL(/\/session\/[^/]+#r4$/);
  await expect(page.locator("#r4")).toBeInViewport();
  await expect(page.locator("#r4")).toHaveClass(/here/);
  await expect(page.locator("#r4 mark")).toHaveText("again");
  await page.goBack();
  await expect(page.locator("[data-search]")).toHaveValue("again");
  await expect(hit).toHaveCount(1);
});

test("a match far down in the output of a tool is seen where it is opened, and marked", async ({ page, store, open }) => {
  const output = [...Array.from({ length: 300 }, (_, n) => `line ${n}`), "here is the Quagga", ...Array.from({ length: 300 }, (_, n) => `more ${n}`)].join("\n");
  await store.record([
    "look for it",
    story.answer("I look.", { blocks: [story.call("t1", "Bash", { command: "cat zoo" })] }),
    story.result("t1", "Bash", output),
    story.answer("No quaggas: I saw one quagga."),
  ]);
  await open("/?q=quagga");
  const hit = page.locator(".hit-row", { hasText: "here is the" });
  await expect(hit.locator("mark")).toHaveText("Quagga");
  await hit.click();
  const mark = page.locator("#conversation details.tool mark");
  await expect(mark).toHaveText("Quagga");
  await expect(mark).toBeInViewport();
  await expect(page.locator("#conversation .answer mark").last()).toHaveText("quagga");
  await expect(page.locator("#conversation mark")).toHaveCount(2);
  await page.reload();
  await expect(mark).toBeInViewport();
});

test("filters hold while searching", async ({ page, store, open }) => {
  const checkout = await story.checkout(store);
  await story.imported(store);
  await store.run(["tag", checkout, "good", "slow"]);
  await store.record(["the quick fix"], { title: "Quick" });
  await open("/?q=the");
  const headings = page.locator(".hit-row .heading");
  const found = async (filters) => {
    await page.goto(`${new URL(page.url()).origin}/?q=the&${filters}`);
    await expect(page.locator("#tally")).toContainText("with these filters");
    return (await headings.allTextContents()).map((heading) => heading.split(" · ")[0]);
  };
  await expect(headings.filter({ hasText: "rename the widget" }).first()).toBeVisible();
  await expect(headings.filter({ hasText: "Checkout" }).first()).toBeVisible();
  expect(new Set(await found("agent=codex"))).toEqual(new Set(["explain the scheduler"]));
  expect(new Set(await found("title=quick"))).toEqual(new Set(["Quick"]));
  expect(new Set(await found("tag=good&tag=slow"))).toEqual(new Set(["Checkout"]));
  expect(new Set(await found(`until=${story.ago(49).slice(0, 10)}`))).toEqual(new Set(["rename the widget", "explain the scheduler"]));
  expect(await found("agent=codex&title=quick")).toEqual([]);
  await page.locator("#clear").click();
  await expect(page).toHaveURL(/\/$/);
});

test("every match can be reached", async ({ page, store, open }) => {
  for (const title of ["One", "Two"]) await store.record(Array.from({ length: 40 }, (_, n) => `zebra number ${n}`), { title });
  await open("/?q=zebra");
  const hits = page.locator(".hit-row");
  await expect(page.locator("#tally")).toHaveText("60 of 80 matches");
  await expect(hits).toHaveCount(60);
  const last = await hits.last().getAttribute("href");
  await page.getByRole("button", { name: "More matches" }).click();
  await expect(page.locator("#tally")).toHaveText("80 matches");
  await expect(hits).toHaveCount(80);
  await expect(page.getByRole("button", { name: "More matches" })).toHaveCount(0);
  await expect(page.locator(`.hit-row[href="${last}"]`)).toBeFocused();
  await expect(page.locator(`.hit-row[href="${last}"]`)).toBeInViewport();
});

test("a search that finds nothing suggests a word, which finds", async ({ page, store, open }) => {
  await story.checkout(store);
  await open("/?q=cahce");
  const empty = page.locator("#results .empty");
  await expect(empty).toHaveText("Nothing was found. Did you mean cache?");
  await empty.locator("a").click();
  await expect(page.locator(".hit-row").first()).toBeVisible();
  await expect(page.locator("[data-search]")).toHaveValue("cache");
});

test("a search that is not well written is explained where its matches would be", async ({ page, store, open, monitor }) => {
  await story.checkout(store);
  monitor.expect(/^422 GET .*\/api\/search\?words=%28/, /^console error: .* 422 .*\/api\/search/);
  await open("/?q=%28");
  await expect(page.locator("#results .failure")).toHaveText("nothing inside the parentheses at character 1.");
  await page.locator("[data-search]").fill("cart");
  await expect(page.locator(".hit-row").first()).toBeVisible();
  await expect(page.locator(".failure")).toHaveCount(0);
});

test("hundreds of rows are read where they are looked at", async ({ page, store, open }) => {
  // Recording each would take long: they come from a file of an agent.
  const lines = (n) => [
    { type: "session_meta", version: 1, session_id: `session-17947263${String(n).padStart(5, "0")}-0`, created_at_ms: 1_794_726_300_000 + n, updated_at_ms: 1_794_726_300_000 + n, workspace_root: store.work },
    { type: "message", message: { role: "user", blocks: [{ type: "text", text: `question ${n}` }] } },
  ];
  const files = [];
  for (let n = 0; n < 350; n++) files.push(store.write(`s/session-${n}.jsonl`, lines(n).map((line) => JSON.stringify(line)).join("\n"), { below: store.dir }));
  await Promise.all(files);
  await store.run(["import", `${store.dir}/s`]);
  await open();
  await expect(page.locator("#tally")).toHaveText("350 sessions");
  await expect(titles(page).first()).toHaveText("question 349");
  await page.keyboard.press("End");
  await expect(titles(page).filter({ hasText: /^question 0$/ })).toBeInViewport();
  expect(await page.locator("#list .range").count()).toBe(4);
});
