// What every scenario has: a store of its own, and a browser that is watched.
import { test as base, expect } from "@playwright/test";

import { Monitor } from "./monitor.js";
import { Store } from "./store.js";

export { expect };

export const test = base.extend({
  store: async ({}, use) => {
    const store = await Store.make();
    await use(store);
    await store.end();
  },

  // It needs the store so that it judges before the servers of the store are stopped.
  monitor: [async ({ context, store: _ }, use) => {
    const monitor = new Monitor(context);
    await use(monitor);
    expect(monitor.faults(), "what the browser did").toEqual([]);
  }, { auto: true }],

  // Serves the store, and opens a page of it.
  open: async ({ page, store, monitor }, use) => {
    await use(async (path = "/", options = {}) => {
      const pages = await store.serve(options);
      monitor.allow(pages.origin);
      // The token has the place of the fragment: with another one, it is brought by a page before.
      await page.goto(pages.at(path.includes("#") ? "/health" : path));
      if (path.includes("#")) await page.goto(`${pages.origin}${path}`);
      return pages;
    });
  },
});
