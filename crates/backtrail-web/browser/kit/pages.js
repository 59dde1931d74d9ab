// A `backtrail web` that runs for a test.
import { once } from "node:events";
import { createInterface } from "node:readline";

export class Pages {
  static async start(store, { write = false, opens = false, port, cwd } = {}) {
    const pages = new Pages();
    const args = ["web", ...(opens ? [] : ["--no-open"]), "--json", ...(write ? ["--write"] : []), ...(port ? ["--port", String(port)] : [])];
    pages.child = store.start(args, { cwd });
    pages.stderr = "";
    pages.child.stderr.setEncoding("utf8").on("data", (text) => { pages.stderr += text; });
    pages.ended = once(pages.child, "close");
    const first = once(createInterface(pages.child.stdout), "line");
    const line = await Promise.race([first, pages.ended.then(() => { throw new Error(`backtrail web ended: ${pages.stderr}`); })]);
    pages.url = new URL(JSON.parse(line[0]).url);
    return pages;
  }

  get origin() {
    return this.url.origin;
  }

  get port() {
    return Number(this.url.port);
  }

  get token() {
    return new URLSearchParams(this.url.hash.slice(1)).get("token");
  }

  // Returns an address with the token, as the command prints it for `/`.
  at(path) {
    return `${this.origin}${path}${this.url.hash}`;
  }

  // Asks for data as a page does.
  async ask(path) {
    const response = await fetch(`${this.origin}/api/${path}`, { headers: { "x-backtrail-token": this.token } });
    return response.json();
  }

  async stop() {
    this.child.kill("SIGTERM");
    await this.ended;
  }

  async kill() {
    this.child.kill("SIGKILL");
    await this.ended;
  }
}
