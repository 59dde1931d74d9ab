// Watches everything that a browser does in a test: what was not expected fails it.

const isKept = (status) => status === 304;

export class Monitor {
  #faults = [];
  #expected = [];
  #origins = new Set();

  constructor(context) {
    context.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) this.#note(`console ${message.type()}: ${message.text()} at ${message.location().url}`);
    });
    context.on("weberror", (error) => this.#note(`error of the page: ${error.error().stack ?? error.error()}`));
    context.on("request", (request) => this.#request(request));
    context.on("requestfailed", (request) => this.#failed(request));
    context.on("response", (response) => {
      if (!response.ok() && !isKept(response.status())) this.#note(`${response.status()} ${response.request().method()} ${response.url()}`);
    });
  }

  // Requests may go to this origin.
  allow(origin) {
    this.#origins.add(origin);
  }

  // What matches must happen in this test, and is no fault.
  expect(...patterns) {
    this.#expected.push(...patterns.map((pattern) => ({ pattern, isRequired: true })));
  }

  // What matches may happen, and is no fault.
  tolerate(...patterns) {
    this.#expected.push(...patterns.map((pattern) => ({ pattern, isRequired: false })));
  }

  #note(fault) {
    this.#faults.push(fault);
  }

  #request(request) {
    const url = new URL(request.url());
    if (["blob:", "data:", "about:"].includes(url.protocol)) return;
    if (!this.#origins.has(url.origin)) this.#note(`a request to another origin: ${request.url()}`);
    if (url.search.includes("token")) this.#note(`a token in an address: ${request.url()}`);
  }

  #failed(request) {
    // The page itself ends its stream of events, and questions that were asked anew.
    if (request.failure()?.errorText === "net::ERR_ABORTED") return;
    this.#note(`failed: ${request.failure()?.errorText} ${request.method()} ${request.url()}`);
  }

  // Returns what was not expected, and what was and did not happen.
  faults() {
    const isExpected = (fault) => this.#expected.some(({ pattern }) => pattern.test(fault));
    const missing = this.#expected.filter(({ pattern, isRequired }) => isRequired && !this.#faults.some((fault) => pattern.test(fault)));
    return [...this.#faults.filter((fault) => !isExpected(fault)), ...missing.map(({ pattern }) => `expected, and did not happen: ${pattern}`)];
  }
}
