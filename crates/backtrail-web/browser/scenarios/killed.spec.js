// F15, F37: an undo with a conflict from the page, whose process is killed while it is done.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

import { expect, test } from "../kit/test.js";

const FILES = 600;
const name = (n) => `f/${String(n).padStart(3, "0")}.txt`;

const files = async (store) => {
  const found = {};
  for (const entry of await readdir(store.work, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || entry.parentPath.includes(".backtrail-staging")) continue;
    const path = join(entry.parentPath, entry.name);
    found[path.slice(store.work.length + 1)] = await readFile(path, "utf8");
  }
  return found;
};

// The moments: what the disk shows when the process is killed.
const isStaged = (store) => readdirSync(store.work).some((entry) => entry.startsWith(".backtrail-staging"));
const isUndone = (store, n) => {
  const file = join(store.work, name(n));
  return existsSync(file) && readFileSync(file, "utf8").startsWith("old");
};
const isGone = (store, n) => !existsSync(join(store.work, `made/${n}`));
const MOMENTS = {
  "at once": () => true,
  "as soon as anything is staged": isStaged,
  "at the first file": (store) => isUndone(store, 0) || isGone(store, 0),
  "in the midst of the files": (store) => isUndone(store, FILES / 2) || isGone(store, FILES / 2),
  "at the last file": (store) => isUndone(store, FILES - 1) && isGone(store, FILES - 1),
};

for (const [moment, isNow] of Object.entries(MOMENTS)) {
  test(`an undo with a conflict that is killed ${moment} is recovered, and exact`, async ({ page, store, open, monitor }, info) => {
    for (let n = 0; n < FILES; n++) await store.write(name(n), `old ${n}\n`);
    await store.run(["checkpoint", "start"]);
    await store.shell(`for f in f/*.txt; do sed -i s/old/new/ $f; done; mkdir made; for n in $(seq 0 ${FILES - 1}); do echo made > made/$n; done`);
    // Somebody edits a file that the run changed.
    await store.write(name(7), "mine\n");
    const before = await files(store);
    const after = Object.fromEntries(Array.from({ length: FILES }, (_, n) => [name(n), `old ${n}\n`]));
    const pages = await open("/workspace", { write: true });
    await page.getByRole("button", { name: "Undo…" }).click();
    await page.locator("#plan input[value=overwrite]").check();
    monitor.tolerate(/ERR_CONNECTION_REFUSED/, /ERR_CONNECTION_RESET/, /ERR_EMPTY_RESPONSE/, /ERR_INCOMPLETE_CHUNKED_ENCODING/, /ERR_SOCKET_NOT_CONNECTED/);
    const sent = page.waitForRequest((request) => request.url().endsWith("/api/apply"));
    await page.locator("#plan").getByRole("button", { name: "Do it" }).click();
    await sent;
    const deadline = Date.now() + 20_000;
    while (!isNow(store) && Date.now() < deadline);
    await pages.kill();
    expect(Date.now(), "the moment came").toBeLessThan(deadline);
    const left = await files(store);
    const isMidway = JSON.stringify(left) !== JSON.stringify(before) && JSON.stringify(left) !== JSON.stringify(after);
    info.annotations.push({ type: "killed", description: isMidway ? "midway" : "before or after" });
    // The next command finishes it, or nothing had begun.
    const { stderr } = await store.run(["status"]);
    const now = await files(store);
    const [undone, untouched] = [after, before].map((state) => JSON.stringify(sorted(state)) === JSON.stringify(sorted(now)));
    expect(undone || untouched, `neither before nor after: ${stderr}`).toBe(true);
    if (isMidway) expect(undone, "what had begun is done").toBe(true);
    expect(isStaged(store)).toBe(false);
    if (undone) {
      await store.run(["redo"]);
      expect(await files(store)).toEqual(before);
    }
    // The page says what happened to its server.
    await expect(page.locator("#plan .problem, #lost").filter({ visible: true }).first()).toBeVisible();
    await store.run(["verify"]);
  });
}

const sorted = (state) => Object.entries(state).sort(([one], [other]) => (one < other ? -1 : 1));
