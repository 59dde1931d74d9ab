// A store and a workspace of a test's own, made by the command itself.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { Pages } from "./pages.js";

const PROGRAM = process.env.BACKTRAIL_PROGRAM ?? new URL("../../../../target/debug/backtrail", import.meta.url).pathname;

export class Store {
  #serving = [];

  static async make() {
    const store = new Store();
    store.dir = await realpath(await mkdtemp(join(tmpdir(), "backtrail-pages-")));
    store.home = join(store.dir, "home");
    store.work = join(store.dir, "work");
    // Programs of a test come before those of the machine.
    store.bin = join(store.dir, "bin");
    for (const dir of [store.home, store.work, join(store.dir, "tmp")]) await mkdir(dir);
    return store;
  }

  // Nothing of the machine's own agents and settings is read.
  get environment() {
    return {
      PATH: `${this.bin}:${process.env.PATH}`,
      TZ: "UTC",
      LANG: "C.UTF-8",
      HOME: this.home,
      TMPDIR: join(this.dir, "tmp"),
      BACKTRAIL_HOME: join(this.dir, "store"),
      XDG_DATA_HOME: join(this.home, "data"),
      XDG_CONFIG_HOME: join(this.home, "config"),
      XDG_STATE_HOME: join(this.home, "state"),
      XDG_CACHE_HOME: join(this.home, "cache"),
      XDG_RUNTIME_DIR: join(this.dir, "tmp"),
    };
  }

  start(args, { cwd = this.work } = {}) {
    return spawn(PROGRAM, args, { cwd, env: this.environment });
  }

  // Runs the command, and returns what it printed; one that fails must be expected to.
  async run(args, { stdin = "", code = 0, cwd } = {}) {
    const child = this.start(args, { cwd });
    let [stdout, stderr] = ["", ""];
    child.stdout.setEncoding("utf8").on("data", (text) => { stdout += text; });
    child.stderr.setEncoding("utf8").on("data", (text) => { stderr += text; });
    child.stdin.on("error", () => {});
    child.stdin.end(stdin);
    const [exit] = await once(child, "close");
    if (exit !== code) throw new Error(`backtrail ${args.join(" ")} ended with ${exit}, not ${code}:\n${stdout}${stderr}`);
    return { stdout, stderr };
  }

  async json(args, options) {
    return JSON.parse((await this.run([...args, "--json"], options)).stdout);
  }

  // Records lines, objects or texts of the user; returns the id of their session.
  async record(lines, { session, title, cwd, args = [] } = {}) {
    const all = ["record", "--durability", "os", ...(session ? ["--session", session] : []), ...(title ? ["--title", title] : []), ...args];
    const objects = lines.map((line) => (typeof line === "string" ? { role: "user", text: line } : line));
    const { stdout } = await this.run(all, { stdin: objects.map((line) => `${JSON.stringify(line)}\n`).join(""), cwd });
    return JSON.parse(stdout.split("\n")[0]).session;
  }

  // Runs a line of the shell under `backtrail run`: a step that can be undone.
  shell(line) {
    return this.run(["run", "--agent", "none", "--", "sh", "-c", line]);
  }

  async write(path, text, { below = this.work } = {}) {
    const file = join(below, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
    return file;
  }

  read(path) {
    return readFile(join(this.work, path), "utf8");
  }

  // Starts `backtrail web`.
  async serve(options = {}) {
    const pages = await Pages.start(this, options);
    this.#serving.push(pages);
    return pages;
  }

  async end() {
    for (const pages of this.#serving) await pages.stop();
    await rm(this.dir, { recursive: true, force: true });
  }
}
