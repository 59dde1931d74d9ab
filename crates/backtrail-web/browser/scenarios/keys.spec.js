// The pages without a mouse.
import { expect, test } from "../kit/test.js";
import * as story from "../kit/story.js";

test("a tour by keys alone: search, open, move, come back", async ({ page, store, open }) => {
  await story.checkout(store);
  await story.imported(store);
  await open();
  const rows = page.locator("#list .row");
  await expect(rows).toHaveCount(3);
  await page.keyboard.press("j");
  await expect(rows.nth(0)).toBeFocused();
  await page.keyboard.press("j");
  await expect(rows.nth(1)).toBeFocused();
  await page.keyboard.press("k");
  await expect(rows.nth(0)).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.locator("#session-head h1")).toHaveText("Checkout");
  await page.keyboard.press("/");
  await expect(page.locator("[data-search]")).toBeFocused();
  await page.keyboard.type("widget");
  await expect(page.locator(".hit-row")).not.toHaveCount(0);
  await page.keyboard.press("ArrowDown");
  await expect(page.locator(".hit-row").first()).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page.locator("#session-head h1")).toHaveText("rename the widget");
  await page.keyboard.press("/");
  await page.keyboard.type("cart");
  await expect(page.locator(".hit-row")).not.toHaveCount(0);
  await page.keyboard.press("Escape");
  await expect(page.locator("[data-search]")).toHaveValue("");
  await expect(rows).toHaveCount(3);
  await page.keyboard.press("Escape");
  await expect(page.locator("[data-search]")).not.toBeFocused();
});

test("two keys go to each page, whose place is focused and named", async ({ page, store, open }) => {
  await story.workspace(store);
  await open();
  await expect(page.locator("#list .row").first()).toBeVisible();
  for (const [key, address, title] of [["w", /\/workspace/, "Workspace"], ["c", /\/costs/, "Costs"], ["h", /\/health/, "Health"], ["s", /\/$/, "Sessions"]]) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await expect(page).toHaveURL(address);
    await expect(page).toHaveTitle(`${title} · Backtrail`);
    await expect(page.locator("#main, #main h1").and(page.locator(":focus"))).toHaveCount(1);
    await expect(page.locator("#top nav [aria-current]")).toHaveText(title);
  }
});

test("the list of keys opens and closes, and gives the focus back", async ({ page, store, open }) => {
  await story.checkout(store);
  await open();
  await expect(page.locator("#list .row")).toHaveCount(1);
  await page.keyboard.press("j");
  await page.keyboard.press("?");
  await expect(page.locator("#help")).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.locator("#help")).toBeHidden();
  await expect(page.locator("#list .row").first()).toBeFocused();
});

test("a dialog keeps the focus, and Escape changes nothing", async ({ page, store, open }) => {
  await story.workspace(store);
  const before = await store.read("notes.txt");
  await open("/workspace", { write: true });
  await expect(page.locator("#undo")).toBeEnabled();
  await page.keyboard.press("u");
  await expect(page.locator("#plan .plan-lines")).toContainText("notes.txt");
  await expect(page.locator("#plan [type=submit]")).toBeFocused();
  for (let n = 0; n < 6; n++) {
    await page.keyboard.press("Tab");
    expect(await page.evaluate(() => document.activeElement === document.body || document.querySelector("#plan").contains(document.activeElement))).toBe(true);
  }
  await page.keyboard.press("Escape");
  await expect(page.locator("#plan")).toBeHidden();
  expect(await store.read("notes.txt")).toBe(before);
});

test("every stop of the Tab key is seen", async ({ page, store, open }) => {
  await story.checkout(store);
  await open();
  await expect(page.locator("#list .row")).toHaveCount(1);
  const seen = new Set();
  for (let n = 0; n < 12; n++) {
    await page.keyboard.press("Tab");
    const focused = await page.evaluate(() => {
      const node = document.activeElement;
      if (node === document.body) return null;
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(node);
      const box = node.getBoundingClientRect();
      return { name: node.textContent.trim() || node.name || node.id, isMarked: (outlineStyle !== "none" && outlineWidth !== "0px") || boxShadow !== "none", isThere: box.width > 0 && box.height > 0 };
    });
    if (!focused) break;
    expect(focused, focused.name).toMatchObject({ isMarked: true, isThere: true });
    seen.add(focused.name);
  }
  expect(seen.size).toBeGreaterThan(8);
});

test("the first stop skips to the content", async ({ page, store, open }) => {
  await story.checkout(store);
  await open();
  await page.keyboard.press("Tab");
  await expect(page.locator(".skip")).toBeFocused();
  await expect(page.locator(".skip")).toBeInViewport();
  await page.keyboard.press("Enter");
  await expect(page.locator("#main")).toBeFocused();
});
