// How the scenarios are run: .ci/pages starts them.
import { defineConfig } from "@playwright/test";

const root = new URL("../../../", import.meta.url).pathname;

export default defineConfig({
  testDir: "scenarios",
  outputDir: `${root}target/pages/failed`,
  reporter: [["list"], ["json", { outputFile: `${root}target/pages/report.json` }]],
  workers: 2,
  fullyParallel: true,
  retries: 0,
  forbidOnly: true,
  // A machine that does much else is slow, not wrong.
  timeout: 120_000,
  expect: { timeout: 30_000 },
  use: {
    actionTimeout: 30_000,
    navigationTimeout: 30_000,
    trace: "off",
    video: "off",
    screenshot: "only-on-failure",
    locale: "en-GB",
    timezoneId: "UTC",
    viewport: { width: 1280, height: 800 },
    permissions: ["clipboard-read", "clipboard-write"],
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      chromiumSandbox: process.getuid() !== 0,
      args: [
        "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync",
      ],
    },
  },
});
