// From address to page, and keys.

const PAGES = [
  [/^\/$/, "sessions", sessionsPage],
  [/^\/session\/[^/]+$/, "session", sessionPage],
  [/^\/workspace$/, "workspace", workspacePage],
  [/^\/files$/, "files", filesPage],
  [/^\/blame$/, "blame", blamePage],
  [/^\/costs$/, "costs", costsPage],
  [/^\/health$/, "health", healthPage],
];

const router = {
  page: null,
  generation: 0,
  shown: "",

  // Goes to an address of these pages.
  go(address) {
    const url = new URL(address, location.href);
    if (url.href !== location.href) {
      this.leaveMark();
      history.pushState({}, "", url);
    }
    return this.show({ focuses: true });
  },

  // Gives the page that is shown another address.
  rewrite(address) {
    history.replaceState(history.state, "", address);
    this.shown = location.pathname + location.search;
  },

  // Remembers how far the page is scrolled, for when a reader comes back.
  leaveMark() {
    history.replaceState({ ...history.state, y: scrollY }, "");
  },

  async show({ focuses = false, y = 0 } = {}) {
    const url = new URL(location.href);
    const address = url.pathname + url.search;
    const isSamePage = this.page && this.shown.split("?")[0] === url.pathname;
    if (isSamePage && (address === this.shown || this.page.moved?.(url))) {
      this.shown = address;
      if (url.hash) await this.page.arrive?.(url.hash);
      return;
    }
    this.page?.leave?.();
    this.page = null;
    this.generation += 1;
    this.shown = address;
    const [, name, make] = PAGES.find(([pattern]) => pattern.test(url.pathname)) ?? [];
    this.mount(name ?? "missing");
    if (!make) return;
    this.page = make(url);
    document.title = `${this.page.title} · Backtrail`;
    guardWrites(document);
    showLayout();
    if (focuses) one("#main").focus({ preventScroll: true });
    if (!url.hash) scrollTo({ top: 0, behavior: "instant" });
    await this.page.ready;
    if (y) scrollTo({ top: y, behavior: "instant" });
  },

  mount(name) {
    const template = one(`#page-${name}`);
    const main = one("#main");
    main.className = `page-${name}`;
    main.replaceChildren(template.content.cloneNode(true));
    const current = { session: "sessions", files: "workspace", blame: "workspace" }[name] ?? name;
    for (const link of all("#top nav a")) {
      if (link.dataset.page === current) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  },

  // Without a token nothing is shown but the way to one.
  refuse() {
    this.page?.leave?.();
    this.page = null;
    this.generation += 1;
    this.mount("no-token");
    document.title = "Backtrail";
  },
};

history.scrollRestoration = "manual";
addEventListener("popstate", (event) => {
  if (takeToken()) location.reload();
  else router.show({ y: event.state?.y ?? 0 });
});
const leaveMark = later(150, () => router.leaveMark());
addEventListener("scroll", leaveMark, { passive: true });

// Links within these pages load no new page.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const url = new URL(link.href);
  if (url.origin !== location.origin || link.hasAttribute("download")) return;
  event.preventDefault();
  if (link.matches(".skip")) one("#main").focus();
  else router.go(url);
});

one("#help-button").addEventListener("click", () => one("#help").showModal());

// From one thing that can be opened to the next.
const step = (by) => {
  if (router.page?.step) return router.page.step(by);
  const things = all(router.page?.steps ?? "main a").filter((node) => node.offsetParent);
  const at = things.indexOf(document.activeElement);
  const next = things[at < 0 ? 0 : at + by];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
  return undefined;
};

const goKeys = { s: "/", w: "/workspace", c: "/costs", h: "/health" };
let isGoing = false;
const keys = {
  j: () => step(1),
  k: () => step(-1),
  "?": () => one("#help").showModal(),
  d: toggleLayout,
  "/": () => {
    // What is typed next is meant for the field already.
    if (!one("[data-search]")) router.go("/");
    one("[data-search]").focus();
    one("[data-search]").select();
  },
  g: () => {
    isGoing = true;
    setTimeout(() => { isGoing = false; }, 1500);
  },
};

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || one("dialog[open]") || menu.matches(":popover-open")) return;
  if (event.target.closest("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (isGoing) {
    isGoing = false;
    if (event.key === "g") router.page?.toStart ? router.page.toStart() : scrollTo({ top: 0 });
    else if (goKeys[event.key]) router.go(goKeys[event.key]);
    else return;
    event.preventDefault();
    return;
  }
  const act = router.page?.keys?.[event.key] ?? keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

const start = async () => {
  takeToken();
  if (!token()) return router.refuse();
  // The page is read at once; what may be done in it is known a moment later.
  const shown = router.show({ y: history.state?.y ?? 0 });
  try {
    hello = await ask("hello");
  } catch (failure) {
    if (failure instanceof Refused) return router.refuse();
    lost("The server does not answer. Trying again…");
  }
  guardWrites(document);
  follow();
  return shown;
};
start();
