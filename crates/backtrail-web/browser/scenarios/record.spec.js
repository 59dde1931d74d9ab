// What the menu of a record does with its files, wherever the pages were started.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

import { Claude } from "../kit/claude.js";
import { expect, test } from "../kit/test.js";
import * as story from "../kit/story.js";

const plan = (page) => page.locator("#plan");
const doIt = (page) => plan(page).getByRole("button", { name: "Do it" }).click();
const item = async (page, link, name) => {
  await link.click();
  await page.getByRole("menuitem", { name, exact: true }).click();
};

// Returns every file of a directory, and what is in it.
const files = async (dir, below = "") => {
  const found = {};
  for (const entry of await readdir(join(dir, below), { withFileTypes: true })) {
    const path = join(below, entry.name);
    if (entry.isDirectory()) Object.assign(found, await files(dir, path));
    else found[path] = await readFile(join(dir, path), "utf8");
  }
  return found;
};

const TWICE = story.CART.replace("items.iter().sum()", "items.iter().sum::<u32>() * 2");

// Sessions whose second state of the files is undone by going back to a record of them.
const SESSIONS = {
  "a session of its own": async (store) => {
    await store.write("cart.rs", story.CART);
    await store.run(["checkpoint", "start"]);
    const session = await store.record([{ role: "user", text: "count each item twice" }, { type: "checkpoint" }]);
    await store.write("cart.rs", TWICE);
    await store.write("new.rs", "// new\n");
    await store.record([story.answer("It counts twice."), { type: "checkpoint" }], { session });
    return { session, prompt: 0 };
  },
  "a session of Claude Code": async (store) => {
    const claude = await Claude.start(store);
    await store.write("cart.rs", "nothing yet\n");
    await claude.turn("write the cart", () => store.write("cart.rs", story.CART));
    await claude.turn("count each item twice", async () => {
      await store.write("cart.rs", TWICE);
      await store.write("new.rs", "// new\n");
    });
    return { session: claude.session, prompt: 1 };
  },
};

// Where the pages are started.
const PLACES = {
  "where it worked": async (store) => store.work,
  "in another workspace": async (store) => {
    const cwd = join(store.dir, "other");
    await store.write("a.txt", "a\n", { below: cwd });
    await store.run(["checkpoint", "other"], { cwd });
    return cwd;
  },
  "in a directory without checkpoints": async (store) => {
    const cwd = join(store.dir, "bare");
    await store.write("b.txt", "b\n", { below: cwd });
    return cwd;
  },
};

for (const [whose, begin] of Object.entries(SESSIONS)) {
  for (const [where, place] of Object.entries(PLACES)) {
    test(`from a record of ${whose}, started ${where}: its files, a fork, and the way back to it`, async ({ page, store, open }) => {
      const { session, prompt } = await begin(store);
      const after = await files(store.work);
      expect(after).toEqual({ "cart.rs": TWICE, "new.rs": "// new\n" });
      await open(`/session/${session}`, { write: true, cwd: await place(store) });
      const link = page.locator("#conversation .prompt a.link").nth(prompt);

      await item(page, link, "Files at this moment");
      await page.locator('#tree a[data-path="cart.rs"]').click();
      await expect(page.locator("#file")).toContainText("items.iter().sum()");
      await expect(page.locator("#tree a")).toHaveText(["cart.rs"]);
      await page.goBack();
      await page.goBack();

      await item(page, link, "Fork from here…");
      const fork = join(store.dir, "fork");
      await page.locator("#ask input").fill(fork);
      await page.locator("#ask").getByRole("button", { name: "Continue" }).click();
      await expect(plan(page).locator(".plan-lines")).toContainText("fork");
      await doIt(page);
      await expect(page.locator("#report")).toBeVisible();
      expect(await files(fork)).toEqual({ "cart.rs": story.CART });
      expect(await files(store.work)).toEqual(after);

      await item(page, link, "Rewind to here…");
      await expect(plan(page).locator(".plan-lines")).toContainText("new.rs");
      await plan(page).getByRole("button", { name: "Cancel" }).click();
      expect(await files(store.work)).toEqual(after);
      await item(page, link, "Rewind to here…");
      await doIt(page);
      await expect(page.locator("#report")).toContainText("Back to");
      expect(await files(store.work)).toEqual({ "cart.rs": story.CART });
      await page.locator("#report").getByRole("button", { name: "Reverse" }).click();
      await doIt(page);
      // Staged files come and go until it is done.
      await expect(async () => expect(await files(store.work)).toEqual(after)).toPass();
    });
  }
}

test("a conversation without files is rewound alone", async ({ page, store, open }) => {
  const session = await store.record(["one", story.answer("first"), "two", story.answer("second")]);
  await open(`/session/${session}`, { write: true });
  await item(page, page.locator("#r2 a.link").first(), "Rewind to here…");
  await doIt(page);
  await expect(page.locator("#report")).toBeVisible();
  expect((await store.run(["show", session])).stdout).not.toContain("second");
});
