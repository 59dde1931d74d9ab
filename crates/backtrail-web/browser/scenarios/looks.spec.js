// How the pages look: at three widths, light and dark. The pictures are for people to look at.
import { createRequire } from "node:module";

import { Claude } from "../kit/claude.js";
import { expect, test } from "../kit/test.js";
import * as story from "../kit/story.js";

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const PICTURES = new URL("../../../../target/pages/", import.meta.url).pathname;

const WIDTHS = { phone: { width: 390, height: 844 }, laptop: { width: 1280, height: 800 }, wide: { width: 1920, height: 1080 } };

// A store in which every page has something to show.
const furnish = async (store) => {
  const checkout = await story.checkout(store);
  await store.run(["tag", checkout, "good", "later"]);
  await store.run(["pin", checkout]);
  const family = await story.withSubAgent(store);
  await story.imported(store);
  await story.workspace(store);
  const claude = await Claude.start(store);
  await claude.turn("make the cart print its name in a long sentence that does not fit on a phone", async () => {
    await store.write("src/cart.rs", story.CART.replace("\"cart\"", "\"the cart of the shop\"").replace("u32", "u64"));
    await store.write("docs/very/deep/folder/with/a/long/path/readme.md", "# Cart\n\nIt counts.\n");
  });
  await store.write("notes.txt", `${await store.read("notes.txt")}mine, unsaved\n`);
  return { checkout, claude: claude.session, ...family };
};

const PAGES = {
  sessions: { path: () => "/", ready: "#list .row" },
  search: { path: () => "/?q=cart", ready: ".hit-row" },
  session: {
    path: ({ checkout }) => `/session/${checkout}`, ready: "#r4",
    prepare: async (page) => { await page.locator("#conversation details.tool summary").click(); await page.locator("#context summary").evaluate((node) => node.click()); },
  },
  turn: {
    path: ({ claude }) => `/session/${claude}`, ready: ".turn-end",
    prepare: async (page) => {
      await page.getByRole("button", { name: "Files", exact: true }).click();
      await page.locator('.turn-files details.file[data-path="src/cart.rs"] summary').click();
      await expect(page.locator(".turn-files table.lines")).toBeVisible();
    },
  },
  split: {
    path: ({ claude }) => `/session/${claude}`, ready: ".turn-end",
    prepare: async (page) => {
      await page.locator("#session-tools [data-layout]").click();
      await page.getByRole("button", { name: "Files", exact: true }).click();
      await page.locator('.turn-files details.file[data-path="src/cart.rs"] summary').click();
      await expect(page.locator(".turn-files table.split")).toBeVisible();
      await page.locator("#session-tools [data-layout]").click();
    },
  },
  family: {
    path: ({ parent }) => `/session/${parent}`, ready: "#r2",
    prepare: async (page) => { await page.getByRole("button", { name: "Show here" }).click(); await expect(page.locator(".inline-session article").first()).toBeVisible(); },
  },
  workspace: { path: () => "/workspace", ready: "#moment-changes table.lines" },
  files: { path: () => "/files?path=src/cart.rs", ready: "#file table" },
  blame: { path: () => "/blame?path=src/cart.rs", ready: "#file table" },
  costs: { path: () => "/costs", ready: "#dearest table", prepare: async (page) => page.locator("#spending summary").first().click() },
  health: { path: () => "/health", ready: ".findings li" },
  plan: {
    path: () => "/workspace", ready: "#undo:enabled",
    prepare: async (page) => { await page.locator("#undo").click(); await expect(page.locator("#plan .plan-lines li").first()).toBeVisible(); },
  },
  export: {
    path: ({ checkout }) => `/session/${checkout}`, ready: "#r4",
    prepare: async (page) => { await page.getByRole("button", { name: "Export…" }).click(); await expect(page.locator("#export")).toBeVisible(); },
  },
  keys: { path: () => "/", ready: "#list .row", prepare: async (page) => page.keyboard.press("?") },
};

// Returns what is wrong with a page for people who cannot see or use it as it looks.
const barriers = async (page) => {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(await sourceOfAxe());
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  return violations.filter(({ impact }) => ["serious", "critical"].includes(impact))
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
};

const sourceOfAxe = async () => (await import("node:fs/promises")).readFile(axe, "utf8");

for (const scheme of ["light", "dark"]) {
  for (const [width, viewport] of Object.entries(WIDTHS)) {
    test(`every page, ${width} and ${scheme}: nothing is cut off, and nobody is shut out`, async ({ page, store, open }) => {
      test.setTimeout(240_000);
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
      await page.setViewportSize(viewport);
      const ids = await furnish(store);
      const pages = await open("/health", { write: true });
      for (const [name, { path, ready, prepare }] of Object.entries(PAGES)) {
        await page.goto(`${pages.origin}${path(ids)}`);
        await expect(page.locator(ready).first()).toBeVisible();
        await prepare?.(page);
        await expect(page.locator("[aria-busy=true]")).toHaveCount(0);
        await page.screenshot({ path: `${PICTURES}${name}-${width}-${scheme}.png`, fullPage: true });
        const { wide, window } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth, window: document.documentElement.clientWidth }));
        expect.soft(wide, `${name} scrolls sideways`).toBeLessThanOrEqual(window);
        expect.soft(await barriers(page), name).toEqual([]);
        expect.soft(await page.evaluate(() => document.getAnimations().length), `${name} moves`).toBe(0);
      }
    });
  }
}

test("light or dark is chosen by a button, and kept", async ({ page, store, open }) => {
  await story.checkout(store);
  await page.emulateMedia({ colorScheme: "light" });
  await open();
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await paper();
  await page.locator("#theme").click();
  expect(await paper()).not.toBe(light);
  const dark = await paper();
  await page.reload();
  expect(await paper()).toBe(dark);
});

test("on a phone the outline is a sheet that opens and closes", async ({ page, store, open }) => {
  await page.setViewportSize(WIDTHS.phone);
  const session = await story.long(store, 100);
  await open(`/session/${session}`);
  await expect(page.locator("#outline")).toBeHidden();
  await page.locator("#outline-button").click();
  const link = page.locator("#outline li a").nth(5);
  await expect(link).toBeVisible();
  await link.click();
  await expect(page.locator("#outline")).toBeHidden();
  await expect(page.locator("#r51")).toBeInViewport();
});
