// A workspace: its timeline, its files at any moment, and the way back, checked on the disk.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

import { Claude } from "../kit/claude.js";
import { expect, test } from "../kit/test.js";
import * as story from "../kit/story.js";

const moments = (page) => page.locator("#timeline .moment");
const plan = (page) => page.locator("#plan");
const doIt = (page) => plan(page).getByRole("button", { name: "Do it" }).click();
const NOTES = "one\ntwo\nthree\nfour\nfive\nsix\n";

// Returns every file of the workspace and what is in it.
const files = async (store, below = "") => {
  const found = {};
  for (const entry of await readdir(join(store.work, below), { withFileTypes: true })) {
    const path = join(below, entry.name);
    if (entry.isDirectory()) Object.assign(found, await files(store, path));
    else found[path] = await readFile(join(store.work, path), "utf8");
  }
  return found;
};

test("the timeline and its slider show what changed at each moment", async ({ page, store, open }) => {
  await story.workspace(store);
  await open("/workspace");
  await expect(moments(page)).toHaveCount(5);
  await moments(page).first().click();
  await expect(page.locator("#moment h2")).toContainText("echo seven");
  await expect(page.locator("#moment-changes details.file")).toHaveAttribute("data-path", "notes.txt");
  await expect(page.locator("#moment-changes tr.add")).toContainText("seven");
  const slider = page.locator("#slider");
  await expect(slider).toHaveValue("4");
  await slider.focus();
  await page.keyboard.press("ArrowLeft");
  await expect(page.locator("#moment h2")).toContainText("sed -i");
  await expect(page.locator("#moment-changes details.file")).toHaveCount(2);
  await expect(slider).toHaveAttribute("aria-valuetext", /sed -i/);
  await page.keyboard.press("Home");
  await expect(page.locator("#moment h2")).toContainText("start");
  await page.reload();
  await expect(page.locator("#moment h2")).toContainText("start");
  await page.locator("#moment h2").click();
  await page.keyboard.press("k");
  await expect(page.locator("#moment h2")).not.toContainText("start");
});

test("files are shown as they were at a moment, and lead on to their authors", async ({ page, store, open }) => {
  await story.workspace(store);
  await open("/workspace");
  await moments(page).last().click();
  await page.getByRole("link", { name: "Files then" }).click();
  await expect(page.locator("#tree > ul > li")).toHaveCount(2);
  await page.locator("#tree summary", { hasText: "src/" }).click();
  await page.locator('#tree a[data-path="src/cart.rs"]').click();
  await expect(page.locator("#file table.lines tr")).toHaveCount(10);
  await expect(page.locator("#file")).toContainText("items.iter().sum()");
  await expect(page.locator("#file")).not.toContainText("* 2");
  await page.locator("#find-file").fill("NOTES");
  await expect(page.locator("#tree a")).toHaveText(["notes.txt"]);
  await page.locator("#tree a").click();
  await expect(page.locator("#file")).toContainText("two");
  await page.goBack();
  await expect(page.locator(".content-head h2")).toHaveText("src/cart.rs");
});

test("two moments are compared, whichever is named first", async ({ page, store, open }) => {
  await story.workspace(store);
  await open("/workspace");
  await moments(page).last().click();
  const [from, to] = [page.locator("#compare select[name=from]"), page.locator("#compare select[name=to]")];
  await to.selectOption("now");
  await page.getByRole("button", { name: "Compare" }).click();
  await expect(page.locator("#moment h2")).toHaveText("Comparison");
  await expect(page.locator("#moment-changes details.file")).toHaveCount(4);
  const notes = page.locator('#moment-changes details.file[data-path="notes.txt"]');
  await notes.locator("summary").click();
  await expect(notes.locator("tr.add").last()).toContainText("seven");
  const oldest = await from.locator("option").last().getAttribute("value");
  await from.selectOption("now");
  await to.selectOption(oldest);
  await page.getByRole("button", { name: "Compare" }).click();
  await notes.locator("summary").click();
  await expect(notes.locator("tr.add").last()).toContainText("seven");
});

test("undo and redo show their plan; cancelled they change nothing, done exactly their files", async ({ page, store, open }) => {
  await story.workspace(store);
  const before = await files(store);
  await open("/workspace", { write: true });
  await expect(page.locator("#next-undo")).toContainText("echo seven");
  await page.getByRole("button", { name: "Undo…" }).click();
  await expect(plan(page).locator(".plan-lines")).toContainText("notes.txt");
  await plan(page).getByRole("button", { name: "Cancel" }).click();
  await expect(plan(page)).toBeHidden();
  expect(await files(store)).toEqual(before);
  await page.keyboard.press("u");
  await expect(plan(page).locator(".plan-lines")).toContainText("notes.txt");
  await doIt(page);
  await expect(page.locator("#report")).toContainText("Undid");
  expect(await files(store)).toEqual({ ...before, "notes.txt": NOTES.replace("two", "agent") });
  await expect(page.locator("#next-undo")).toContainText("sed -i");
  await expect(page.locator("#timeline .undone")).toContainText("echo seven");
  await page.getByRole("button", { name: "Redo…" }).click();
  await doIt(page);
  await expect(page.locator("#report")).toContainText("Redid");
  expect(await files(store)).toEqual(before);
});

test("the button of the report reverses what was done", async ({ page, store, open }) => {
  await story.workspace(store);
  const before = await files(store);
  await open("/workspace", { write: true });
  await page.getByRole("button", { name: "Undo…" }).click();
  await doIt(page);
  await page.locator("#report").getByRole("button", { name: "Reverse" }).click();
  await doIt(page);
  await expect(page.locator("#report")).toContainText("Redid");
  expect(await files(store)).toEqual(before);
});

test("a rewind restores every file of the moment, and is itself undone", async ({ page, store, open }) => {
  await story.workspace(store);
  const before = await files(store);
  await open("/workspace", { write: true });
  await moments(page).last().click();
  await page.getByRole("button", { name: "Rewind to here…" }).click();
  await expect(plan(page).locator(".plan-lines")).toContainText("src/new.rs");
  await plan(page).getByRole("button", { name: "Cancel" }).click();
  expect(await files(store)).toEqual(before);
  await page.getByRole("button", { name: "Rewind to here…" }).click();
  await doIt(page);
  await expect(page.locator("#report")).toBeVisible();
  expect(await files(store)).toEqual({ "notes.txt": NOTES, "src/cart.rs": story.CART });
  await page.locator("#report").getByRole("button", { name: "Reverse" }).click();
  await doIt(page);
  // Staged files come and go until it is done.
  await expect(async () => expect(await files(store)).toEqual(before)).toPass();
});

test("a single file is restored from a moment", async ({ page, store, open }) => {
  await story.workspace(store);
  const before = await files(store);
  await open("/workspace", { write: true });
  await moments(page).last().click();
  await page.getByRole("link", { name: "Files then" }).click();
  await page.locator('#tree a[data-path="notes.txt"]').click();
  await page.getByRole("button", { name: "Restore this file…" }).click();
  await expect(plan(page).locator(".plan-lines")).toContainText("notes.txt");
  await doIt(page);
  await expect(page.locator("#report")).toBeVisible();
  expect(await files(store)).toEqual({ ...before, "notes.txt": NOTES });
});

test("a single hunk is restored, and the rest of the file stays", async ({ page, store, open }) => {
  const lines = (first, last) => [first, ...Array.from({ length: 30 }, (_, n) => `line ${n}`), last, ""].join("\n");
  await store.write("a.txt", lines("first", "last"));
  await store.write("b.txt", "b\n");
  await store.run(["checkpoint", "start"]);
  await store.shell("sed -i -e s/first/FIRST/ -e s/last/LAST/ a.txt; echo c > b.txt");
  const before = await files(store);
  expect(before["a.txt"]).toBe(lines("FIRST", "LAST"));
  await open("/workspace", { write: true });
  await moments(page).first().click();
  const file = page.locator('#moment-changes details.file[data-path="a.txt"]');
  await file.locator("summary").click();
  await expect(file.locator("[data-hunk]")).toHaveCount(2);
  await file.locator("[data-hunk]").nth(1).click();
  await expect(plan(page).locator(".plan-lines")).toContainText("a.txt");
  await plan(page).getByRole("button", { name: "Cancel" }).click();
  expect(await files(store)).toEqual(before);
  await file.locator("[data-hunk]").nth(1).click();
  await doIt(page);
  await expect(page.locator("#report")).toBeVisible();
  expect(await files(store)).toEqual({ ...before, "a.txt": lines("FIRST", "last") });
});

// A run changed two lines, and somebody edits the file after it.
const contested = async (store) => {
  await store.write("notes.txt", NOTES);
  await store.run(["checkpoint", "start"]);
  await store.shell("sed -i s/two/agent/ notes.txt; echo made > made.txt");
  await store.write("notes.txt", NOTES.replace("two", "agent").replace("six", "mine"));
};

const CHOICES = {
  keep: { "notes.txt": NOTES.replace("two", "agent").replace("six", "mine") },
  merge: { "notes.txt": NOTES.replace("six", "mine") },
  overwrite: { "notes.txt": NOTES },
};

for (const [choice, after] of Object.entries(CHOICES)) {
  test(`an undo that conflicts asks first, and "${choice}" does what it says`, async ({ page, store, open }) => {
    await contested(store);
    const before = await files(store);
    await open("/workspace", { write: true });
    await page.getByRole("button", { name: "Undo…" }).click();
    await expect(plan(page).locator("input[type=radio]")).toHaveCount(3);
    await expect(plan(page).getByRole("button", { name: "Do it" })).toBeDisabled();
    expect(await files(store)).toEqual(before);
    await plan(page).locator(`input[value=${choice}]`).check();
    await doIt(page);
    await expect(page.locator("#report")).toContainText("Undid");
    expect(await files(store)).toEqual(after);
    await page.locator("#report").getByRole("button", { name: "Reverse" }).click();
    await doIt(page);
    await expect(async () => expect(await files(store)).toEqual(before)).toPass();
  });
}

test("files that change under a plan stop it, and a new plan knows them", async ({ page, store, open, monitor }) => {
  await story.workspace(store);
  await open("/workspace", { write: true });
  await page.getByRole("button", { name: "Undo…" }).click();
  await expect(plan(page).locator(".plan-lines")).toContainText("notes.txt");
  await store.write("notes.txt", "all new\n");
  monitor.expect(/^422 POST .*\/api\/apply/, /^console error: .*422.*\/api\/apply/);
  await doIt(page);
  await expect(plan(page).locator(".problem")).toBeVisible();
  expect(await store.read("notes.txt")).toBe("all new\n");
  await plan(page).getByRole("button", { name: "Plan again" }).click();
  await expect(plan(page).locator("input[type=radio]").first()).toBeVisible();
  expect(await store.read("notes.txt")).toBe("all new\n");
});

test("without --write everything that changes something is disabled, and says why", async ({ page, store, open }) => {
  const { session } = await story.workspace(store);
  const before = await files(store);
  const pages = await open("/workspace");
  await expect(moments(page)).toHaveCount(5);
  const READ_ONLY = /only read.*backtrail web --write/;
  await expect(page.locator(".read-only")).toHaveText(READ_ONLY);
  for (const button of await page.locator("#main [data-write]").all()) {
    await expect(button).toBeDisabled();
    await expect(button).toHaveAttribute("title", READ_ONLY);
  }
  await moments(page).first().click();
  await expect(page.locator("#moment-changes [data-hunk]")).toBeDisabled();
  await page.goto(`${pages.origin}/session/${session}`);
  await page.locator("#r1 a.link").click();
  await expect(page.getByRole("menuitem", { name: "Rewind to here…" })).toBeDisabled();
  await expect(page.getByRole("menuitem", { name: "Copy link" })).toBeEnabled();
  // Not the page alone refuses it.
  const headers = { "x-backtrail-token": pages.token, "content-type": "application/json" };
  const answer = await fetch(`${pages.origin}/api/plan`, { method: "POST", headers, body: JSON.stringify({ action: { do: "undo" } }) });
  expect(answer.status).toBe(403);
  expect(await files(store)).toEqual(before);
});

test("blame names the run, the turn and the person of each line", async ({ page, store, open }) => {
  await story.workspace(store);
  const claude = await Claude.start(store);
  await claude.turn("add a line", async () => store.write("notes.txt", `${await store.read("notes.txt")}by hooks\n`));
  await store.write("notes.txt", `${await store.read("notes.txt")}mine\n`);
  await open("/files?path=notes.txt");
  await page.locator(".content-head").getByRole("link", { name: "Blame" }).click();
  const groups = page.locator("#file tbody");
  await expect(groups.filter({ hasText: "agent" }).first()).toContainText("sed -i");
  await expect(groups.filter({ hasText: "echo seven" }).locator(".t")).toHaveText("seven");
  await expect(groups.filter({ hasText: "by hooks" }).locator(".author")).toContainText("add a line");
  await expect(groups.last()).toContainText("mine");
  await expect(groups.last().locator(".author")).toContainText(/you/i);
  await groups.filter({ hasText: "by hooks" }).locator(".author a").click();
  await expect(page).toHaveURL(/\/session\/[^/]+#r\d+$/);
});

test("started where nothing is kept, the one workspace there is can be chosen", async ({ page, store, open }) => {
  await story.workspace(store);
  const cwd = join(store.dir, "bare");
  await store.write("b.txt", "b\n", { below: cwd });
  await open("/workspace", { cwd });
  await expect(page.locator("#timeline")).toContainText("Nothing has happened here yet");
  const choice = page.locator("#workspace-choice");
  await expect(choice.locator("option:checked")).toHaveText("Choose a workspace");
  await choice.selectOption({ index: 1 });
  await expect(page).toHaveURL(/\/workspace\?w=/);
  await expect(moments(page)).toHaveCount(5);
  await expect(choice.locator("option:checked")).toContainText("work");
});
