// A session: its conversation, what is folded in it, its outline, and copies of it.
import { expect, test } from "../kit/test.js";
import * as story from "../kit/story.js";
import { Claude } from "../kit/claude.js";

const conversation = (page) => page.locator("#conversation");
const copied = (page) => page.evaluate(() => navigator.clipboard.readText());

// Returns the records that are in the page, in order, and where the window is.
const seen = (page) => page.evaluate(() => {
  const top = document.querySelector("#top").offsetHeight + document.querySelector("#session-tools").offsetHeight;
  const nodes = [...document.querySelectorAll("#conversation [id^=r]")].filter((node) => /^r\d+$/.test(node.id));
  const inWindow = nodes.filter((node) => {
    const { top: above, bottom } = node.getBoundingClientRect();
    return bottom > top && above < innerHeight;
  });
  return { all: nodes.map((node) => Number(node.id.slice(1))), shown: inWindow.map((node) => Number(node.id.slice(1))), y: scrollY, end: document.documentElement.scrollHeight - innerHeight };
});

const isRising = (numbers) => numbers.every((number, at) => at === 0 || number > numbers[at - 1]);

test("two thousand messages scroll from end to end and back: each is seen, in order, where it was", async ({ page, store, open }) => {
  const session = await story.long(store, 2000);
  await open(`/session/${session}`);
  await expect(page.locator("#r1")).toBeVisible();
  const found = new Set();
  const walk = async (by, isDone) => {
    for (let step = 0; step < 400; step++) {
      // What is near the window is there before somebody goes on reading.
      await expect.poll(async () => (await seen(page)).shown.length, { message: "something is shown" }).toBeGreaterThan(0);
      await expect.poll(() => page.evaluate(() => [...document.querySelectorAll("#conversation .range")].every((range) => {
        const { top, bottom } = range.getBoundingClientRect();
        return bottom < 0 || top > innerHeight || range.childElementCount > 0;
      })), { message: "no hole in the window" }).toBe(true);
      const now = await seen(page);
      expect(isRising(now.all), `${now.all}`).toBe(true);
      expect(new Set(now.all).size).toBe(now.all.length);
      now.shown.forEach((number) => found.add(number));
      if (isDone(now)) return;
      await page.evaluate((height) => scrollBy({ top: height, behavior: "instant" }), by);
    }
    throw new Error("the end was not reached");
  };
  await walk(600, ({ y, end }) => y >= end - 1);
  expect([...found].sort((a, b) => a - b)).toEqual(Array.from({ length: 2000 }, (_, n) => n + 1));
  found.clear();
  await walk(-600, ({ y }) => y <= 0);
  expect(found.size).toBe(2000);
  expect(await page.locator("#conversation .range").count()).toBe(21);
});

test("the position holds while ranges above are read", async ({ page, store, open }) => {
  const session = await story.long(store, 2000);
  await open(`/session/${session}#r1000`);
  const target = page.locator("#r1000");
  await expect(target).toBeInViewport();
  await expect(target).toHaveClass(/here/);
  const top = () => target.evaluate((node) => Math.round(node.getBoundingClientRect().top));
  const before = await top();
  for (let n = 0; n < 12; n++) {
    await page.evaluate(() => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); }));
    expect(Math.abs((await top()) - before)).toBeLessThanOrEqual(1);
  }
  await page.evaluate(() => scrollBy({ top: -3000, behavior: "instant" }));
  await expect(page.locator("#r970")).toBeAttached();
  await page.evaluate(() => scrollBy({ top: 3000, behavior: "instant" }));
  await expect(target).toBeInViewport();
});

test("a link to a record opens there, and unfolds what it is in", async ({ page, store, open }) => {
  const session = await story.checkout(store);
  await open(`/session/${session}#r3`);
  const output = page.locator("#r3");
  await expect(output).toBeVisible();
  await expect(output).toContainText("select * from items");
  await expect(output).toBeInViewport();
});

test("the outline lists the prompts, marks the one that is read, and goes to any", async ({ page, store, open }) => {
  const session = await story.long(store, 500);
  await open(`/session/${session}`);
  const links = page.locator("#outline li a");
  await expect(links).toHaveCount(50);
  await expect(links.nth(0)).toHaveText("prompt 0");
  await expect(page.locator("#outline a.now")).toHaveText("prompt 0");
  await links.nth(30).click();
  await expect(page.locator("#r301")).toBeInViewport();
  await expect(page).toHaveURL(/#r301$/);
  await expect(page.locator("#outline a.now")).toHaveText("prompt 300");
  await page.keyboard.press("j");
  await expect(page.locator("#r311")).toBeInViewport();
  await page.keyboard.press("k");
  await page.keyboard.press("k");
  await expect(page.locator("#r291")).toBeInViewport();
});

test("tools are folded, unfold one by one, all at once, and stay so", async ({ page, store, open }) => {
  const session = await story.checkout(store);
  await open(`/session/${session}`);
  const tool = conversation(page).locator("details.tool");
  await expect(tool).toHaveCount(1);
  await expect(tool).not.toHaveAttribute("open");
  await tool.locator("summary").click();
  await expect(tool.locator(".out")).toContainText("src/cart.rs:12");
  await tool.locator("summary").click();
  await page.locator("#unfold").click();
  await expect(tool).toHaveAttribute("open");
  await expect(page.locator("#unfold")).toHaveAttribute("aria-pressed", "true");
  await page.keyboard.press("f");
  await expect(tool).not.toHaveAttribute("open");
});

test("a sub-agent is read where it was started, and its family is a tree", async ({ page, store, open }) => {
  const { parent, child } = await story.withSubAgent(store);
  await open(`/session/${parent}`);
  await expect(page.locator("#family a")).toHaveText([/Parser/, /sub-agent\s+Counting/]);
  await page.getByRole("button", { name: "Show here" }).click();
  const inline = page.locator(".inline-session");
  await expect(inline).toContainText("There are seventeen rules.");
  await expect(inline.locator("[id]")).toHaveCount(0);
  await page.getByRole("button", { name: "Hide", exact: true }).click();
  await expect(inline).toBeHidden();
  await page.getByRole("link", { name: "Open", exact: true }).click();
  await expect(page).toHaveURL(new RegExp(`/session/${child}`));
  await expect(page.locator("h1").last()).toHaveText("Counting");
  await expect(page.locator("#family [aria-current]")).toContainText("Counting");
});

test("a compaction is marked in the conversation and in the outline", async ({ page, store, open }) => {
  const session = await story.checkout(store);
  await store.record([{ type: "compaction", summary: "They cached the items." }, "and now?"], { session });
  await open(`/session/${session}`);
  await expect(page.locator("#outline .compacted")).toHaveText(/compaction/);
  await expect(conversation(page)).toContainText("They cached the items.");
});

test("a turn shows its files and their differences, unified and side by side, word by word", async ({ page, store, open }) => {
  const claude = await Claude.start(store);
  await store.write("src/cart.rs", story.CART);
  await claude.turn("count each item twice", async () => {
    await store.write("src/cart.rs", story.CART.replace("items.iter().sum()", "items.iter().sum::<u32>()"));
    await store.write("src/new.rs", "// new\n");
  });
  await open(`/session/${claude.session}`);
  await page.getByRole("button", { name: "Files", exact: true }).click();
  const files = page.locator(".turn-files details.file");
  await expect(files).toHaveCount(2);
  const cart = page.locator('.turn-files details.file[data-path="src/cart.rs"]');
  await cart.locator("summary").click();
  const lines = cart.locator("table.lines");
  await expect(lines.locator("tr.del")).toContainText("items.iter().sum()");
  await expect(lines.locator("tr.add")).toContainText("sum::<u32>()");
  const emphasised = async (selector) => (await cart.locator(`${selector} b`).allTextContents()).join("");
  expect(await emphasised("tr.add")).toBe("::<u32>");
  await expect(lines).not.toHaveClass(/split/);
  await page.locator("#session-tools [data-layout]").click();
  await expect(cart.locator("table.lines")).toHaveClass(/split/);
  await expect(cart.locator("td.del").last()).toContainText("items.iter().sum()");
  expect(await emphasised("td.add")).toBe("::<u32>");
  await page.reload();
  await expect(page.locator("#session-tools [data-layout]")).toHaveAttribute("aria-pressed", "true");
  await page.keyboard.press("d");
  await expect(page.locator("#session-tools [data-layout]")).toHaveAttribute("aria-pressed", "false");
});

for (const width of [390, 1280, 1920]) {
  test(`side by side, the two texts have the room, not the numbers of their lines: ${width} wide`, async ({ page, store, open }) => {
    const claude = await Claude.start(store);
    await store.write("src/cart.rs", story.CART);
    await claude.turn("count each item twice", () => store.write("src/cart.rs", story.CART.replace("items.iter().sum()", "items.sum()")));
    await page.setViewportSize({ width, height: 900 });
    await open(`/session/${claude.session}`);
    await page.locator("#session-tools [data-layout]").click();
    await page.getByRole("button", { name: "Files", exact: true }).click();
    const row = page.locator(".turn-files table.split tr", { has: page.locator("td.del") });
    await expect(row).toBeVisible();
    const widths = await row.locator("td").evaluateAll((cells) => cells.map((cell) => cell.getBoundingClientRect().width));
    const [oldNumber, oldText, newNumber, newText] = widths;
    expect(Math.max(oldNumber, newNumber)).toBeLessThan(70);
    expect(oldNumber).toBeCloseTo(newNumber, 0);
    expect(oldText).toBeCloseTo(newText, 0);
    const all = widths.reduce((sum, one) => sum + one, 0);
    expect((oldText + newText) / all).toBeGreaterThan(0.7);
    if (width < 1000) return;
    const height = await row.evaluate((node) => node.getBoundingClientRect().height);
    const lineHeight = await row.evaluate((node) => parseFloat(getComputedStyle(node).lineHeight));
    expect(height, "a short line is one line").toBeLessThan(1.9 * lineHeight);
  });
}

test("a record is copied as a link, as text and as Markdown", async ({ page, store, open }) => {
  const session = await story.checkout(store);
  const pages = await open(`/session/${session}`);
  const item = async (record, name) => {
    await page.locator(`#r${record} a.link`).first().click();
    await page.getByRole("menuitem", { name, exact: true }).click();
  };
  await item(4, "Copy link");
  await expect.poll(() => copied(page)).toBe(`${pages.origin}/session/${session}#r4`);
  await item(4, "Copy text");
  await expect.poll(() => copied(page)).toContain("The cart asks for every item *again*.");
  await item(1, "Copy as Markdown");
  await expect.poll(() => copied(page)).toBe("## User\n\nwhy is the checkout slow?\n");
  await page.getByRole("button", { name: "Copy as Markdown" }).click();
  await expect.poll(() => copied(page)).toContain("# Checkout");
});

const SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

for (const [format, ending, begins] of [["html", "html", "<!doctype html>"], ["markdown", "md", "# "]]) {
  test(`an export to ${format} is saved, and without secrets if that is wanted`, async ({ page, store, open }) => {
    const session = await store.record([`the token is ${SECRET} of me@example.org`, story.answer("I see it.")], { title: "Keys" });
    await open(`/session/${session}`);
    const save = async (redaction) => {
      await page.getByRole("button", { name: "Export…" }).click();
      const box = page.locator("#export");
      await box.locator("select").selectOption(format);
      await box.getByLabel(redaction, { exact: true }).check();
      const download = page.waitForEvent("download");
      await box.getByRole("button", { name: "Save" }).click();
      const saved = await download;
      expect(saved.suggestedFilename()).toMatch(new RegExp(`\\.${ending}$`));
      const chunks = [];
      for await (const chunk of await saved.createReadStream()) chunks.push(chunk);
      if (await box.isVisible()) await box.getByRole("button", { name: "Close" }).click();
      return Buffer.concat(chunks).toString();
    };
    const whole = await save("nothing");
    expect(whole.toLowerCase()).toContain(begins.toLowerCase());
    expect(whole).toContain(SECRET);
    expect(whole).toContain("me@example.org");
    const redacted = await save("recognised kinds of secrets");
    expect(redacted).not.toContain(SECRET);
    expect(redacted).toContain("me@example.org");
    const impersonal = await save("secrets, home directories and e-mail addresses");
    expect(impersonal).not.toContain(SECRET);
    expect(impersonal).not.toContain("me@example.org");
    expect(impersonal).toContain("I see it.");
  });
}

test("a title and tags are set after their plan, and the report reverses them", async ({ page, store, open }) => {
  const session = await story.checkout(store);
  await open(`/session/${session}`, { write: true });
  await page.getByRole("button", { name: "Title…" }).click();
  await page.locator("#ask input").fill("The slow checkout");
  await page.locator("#ask").getByRole("button", { name: "Continue" }).click();
  await expect(page.locator("#plan .plan-lines")).toContainText("The slow checkout");
  await page.locator("#plan").getByRole("button", { name: "Do it" }).click();
  await expect(page.locator("#report")).toContainText("The slow checkout");
  expect((await store.json(["show", session])).title).toBe("The slow checkout");
  await expect(page.locator("#session-head h1")).toHaveText("The slow checkout");
  await page.locator("#report [data-reverse]").click();
  await page.locator("#plan").getByRole("button", { name: "Do it" }).click();
  await expect.poll(async () => (await store.json(["show", session])).title).toBe("Checkout");
});

test.describe("for a reader whose clock has twelve hours", () => {
  test.use({ locale: "en-US" });

  test("times are those of a day of 24, as in the lists", async ({ page, store, open }) => {
    const session = await store.record([
      { role: "user", text: "when is it?", at: "2026-11-03T15:35:00Z" },
      story.answer("Now.", { at: "2026-11-03T15:36:00Z" }),
      { role: "user", text: "and at night?", at: "2026-11-04T00:05:00Z" },
    ]);
    await open(`/session/${session}`);
    await expect(page.locator("#conversation .prompt time").first()).toContainText("15:35");
    await expect(page.locator("#conversation .prompt time").last()).toContainText("00:05");
    for (const time of await page.locator("main time").allTextContents()) expect(time).not.toMatch(/[AP]M/i);
  });
});
