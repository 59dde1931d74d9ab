// The sessions, and what a search over all of them finds.

const ROW_HEIGHT = 45;
const MATCHES = 60;
const STARTED_MS = Date.now();

// The last record of each session that was seen, by which unread ones are known.
const SEEN = "backtrail-seen";
const seen = new Map(JSON.parse(sessionStorage.getItem(SEEN) ?? "[]"));
const keepSeen = later(300, () => sessionStorage.setItem(SEEN, JSON.stringify([...seen])));
const markSeen = (session, last) => {
  seen.set(session, last);
  keepSeen();
};

const markUnread = (row) => {
  const { session, last, updated } = row.dataset;
  const isNew = !seen.has(session) && Number(updated) > STARTED_MS;
  if (!seen.has(session) && !isNew) markSeen(session, Number(last));
  if (!isNew && Number(last) <= seen.get(session)) return;
  row.classList.add("unread");
  one(".title", row).append(element("span", " unread", { class: "hidden" }));
};

const sessionsPage = () => {
  const form = one("#filters");
  const list = one("#list");
  const results = one("#results");
  const tally = one("#tally");
  const field = form.elements.q;
  let column = null;
  let searching = null;
  let asked = 0;
  // The address of what is shown, and when it is there.
  let shown = location.pathname + location.search;
  let ready = null;

  // What the form says, and what the address says that the form cannot say yet: its choices come later.
  const chosen = () => {
    const all = new URLSearchParams(location.search);
    for (const { name } of form.elements) if (name) all.delete(name);
    for (const [name, value] of new FormData(form)) all.append(name, value);
    return given(all);
  };

  const filters = () => {
    const all = chosen();
    all.delete("q");
    return all;
  };

  const showFilters = (controls = form.elements) => {
    const address = new URLSearchParams(location.search);
    for (const control of controls) {
      if (!control.name) continue;
      const value = address.get(control.name) ?? "";
      if (control.type === "checkbox") control.checked = value !== "";
      else {
        if (control.tagName === "SELECT" && value && ![...control.options].some((option) => option.value === value)) control.append(new Option(value, value));
        control.value = value;
      }
    }
    const count = [...filters()].length;
    one("#filter-count").textContent = count ? ` · ${count}` : "";
    return count;
  };

  const rowsFrom = (skip, limit) => ask("sessions", given([...filters(), ["skip", skip], ["limit", limit]]));

  const showCount = ({ matching, all: every }) => {
    tally.textContent = matching === every ? `${matching.toLocaleString()} sessions` : `${matching.toLocaleString()} of ${every.toLocaleString()} sessions`;
    if (every === 0) tally.textContent = "No sessions yet. Import them in a terminal: backtrail import";
  };

  const load = async (first, last) => (await rowsFrom(first, last - first + 1)).html;

  const showList = () => showing(list, async () => {
    const mine = ++asked;
    const page = await rowsFrom(0, 100);
    if (mine !== asked) return;
    showCount(page);
    let isFirst = true;
    column?.close();
    list.replaceChildren();
    column = new Column(list, {
      size: 100, height: ROW_HEIGHT, tag: "ul",
      // The first rows are here already.
      load: async (first, last) => {
        if (first > 0 || !isFirst) return load(first, last);
        isFirst = false;
        return page.html;
      },
      prepare: (node) => all("a.row", node).forEach(markUnread),
    });
    column.resize(page.matching);
    await column.reach(0);
    isFirst = false;
  });

  const showResults = (limit = MATCHES) => {
    searching?.abort();
    searching = new AbortController();
    return showing(results, async () => {
      const words = field.value.trim();
      const found = await ask("search", given([["words", words], ["limit", limit], ...filters()]), searching.signal);
      fill(results, found.html);
      showMatchCount(found);
      if (found.all > found.shown) results.append(moreButton(limit));
    });
  };

  const showMatchCount = ({ shown, all: every }) => {
    const matches = `${every.toLocaleString()} ${every === 1 ? "match" : "matches"}`;
    const count = every > shown ? `${shown.toLocaleString()} of ${matches}` : matches;
    tally.textContent = [...filters()].length ? `${count} with these filters` : count;
  };

  // More matches may come between those that are shown: the last of these stays where it is.
  const moreButton = (limit) => {
    const more = element("button", "More matches", { type: "button", class: "button", id: "more-matches" });
    more.addEventListener("click", async () => {
      more.disabled = true;
      const last = all("a.hit-row", results).at(-1);
      const [address, before] = [last.getAttribute("href"), last.getBoundingClientRect().top];
      await showResults(limit * 4);
      const same = all("a.hit-row", results).find((link) => link.getAttribute("href") === address);
      if (!same) return;
      scrollBy({ top: same.getBoundingClientRect().top - before, behavior: "instant" });
      same.focus({ preventScroll: true });
    });
    return more;
  };

  const show = () => {
    const isSearch = field.value.trim() !== "";
    list.hidden = isSearch;
    results.hidden = !isSearch;
    return isSearch ? showResults() : showList();
  };

  const remember = () => {
    const all = chosen();
    const address = `/${[...all].length ? `?${all}` : ""}`;
    if (address === shown) return ready;
    router.rewrite(address);
    shown = address;
    showFilters();
    ready = show();
    return ready;
  };

  const focusFirst = () => one("#results:not([hidden]) a, #list:not([hidden]) a")?.focus();
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", later(150, (event) => { if (event.target.matches("[type=search], [type=text]")) remember(); }));
  form.addEventListener("change", (event) => { if (!event.target.matches("[type=search], [type=text]")) remember(); });
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") focusFirst();
    if (event.key === "Enter") remember().then(focusFirst);
    if (event.key === "Escape" && field.value) {
      event.preventDefault();
      field.value = "";
      remember();
    }
  });
  one("#clear").addEventListener("click", () => {
    form.reset();
    remember();
  });

  const renew = later(100, async () => {
    if (list.hidden) return;
    try {
      await ready;
      const page = await rowsFrom(0, 1);
      showCount(page);
      column.resize(page.matching);
      await column.renew();
    } catch { /* the next change tries again */ }
  });

  one(".more", form).addEventListener("toggle", (event) => {
    if (!event.target.open) return;
    showing(one("#choices"), async () => {
      fill(one("#choices"), (await ask("choices")).html);
      showFilters(all("#choices select"));
    });
  });
  if (showFilters() > 0 && innerWidth > 700) one(".more", form).open = true;
  ready = show();
  return {
    title: "Sessions",
    ready,
    steps: ".row, .hit-row",
    changed: renew,
    leave: () => column?.close(),
  };
};
