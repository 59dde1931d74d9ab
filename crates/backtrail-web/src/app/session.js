// A session: its conversation in ranges of records, live, and what can be made of it.

const RECORDS = 100;
const RECORD_HEIGHT = 110;

// Runs a piece of work once more after it ended, however often that was asked for meanwhile.
const coalesced = (work) => {
  let isRunning = false;
  let isWanted = false;
  return async () => {
    isWanted = true;
    if (isRunning) return;
    isRunning = true;
    while (isWanted) {
      isWanted = false;
      try { await work(); } catch { /* the next change tries again */ }
    }
    isRunning = false;
  };
};

// Completes a part of a conversation: times, the files of a turn, and sub-agents.
const prepareParts = (node, session, trail) => {
  for (const time of [...(node.matches("time") ? [node] : []), ...all("time", node)]) {
    const at = new Date(time.dateTime);
    if (!isNaN(at)) time.textContent = (time.closest(".prompt") ? dateAndTime : timeOfDay).format(at);
  }
  for (const link of all("a.link", node)) {
    link.title = "Link, copy, files and more";
    link.setAttribute("aria-haspopup", "menu");
    Object.assign(link.dataset, { session, trail: trail ?? "" });
  }
  const within = (selector) => [...(node.matches(selector) ? [node] : []), ...all(selector, node)];
  within(".turn-end[data-first]").forEach((end) => addTurnFiles(end, session, trail));
  within("[data-session]:not(a)").forEach(addSubAgent);
};

// A button with something below it that is read when it is first opened.
const addFold = (parent, closed, open, className, show) => {
  const button = element("button", closed, { type: "button", class: "small", "aria-expanded": "false" });
  const body = element("div", "", { class: className });
  body.hidden = true;
  button.addEventListener("click", () => {
    body.hidden = !body.hidden;
    button.setAttribute("aria-expanded", String(!body.hidden));
    button.textContent = body.hidden ? closed : open;
    if (!body.hidden && !body.hasChildNodes()) show(body);
  });
  parent.append(button, body);
};

const addTurnFiles = (end, session, trail) => {
  addFold(end, "Files", "Hide files", "turn-files", (body) => showChanges(body, { session, seq: end.dataset.first, trail }));
};

const addSubAgent = (start) => {
  const { session } = start.dataset;
  if (start.closest("#list")) return;
  const link = element("a", "Open", { class: "small", href: `/session/${encodeURIComponent(session)}` });
  start.append(" ", link, " ");
  addFold(start, "Show here", "Hide", "inline-session", (body) => showInline(body, session));
};

// Shows another session's conversation, some records at a time.
const showInline = (body, session) => {
  let next = 0;
  const more = element("button", "More", { type: "button", class: "small" });
  const read = () => showing(more.isConnected ? more : body, async () => {
    const { html, end } = await ask("records", { session, first: next, last: next + RECORDS - 1 });
    const parts = [...fragment(html).children];
    for (const part of parts) {
      // A place of this page is not one of another session.
      for (const node of [part, ...all("[id]", part)]) node.removeAttribute("id");
      prepareParts(part, session);
      guardWrites(part);
    }
    more.remove();
    body.append(...parts);
    next += RECORDS;
    if (next <= end) body.append(more);
  });
  more.addEventListener("click", read);
  read();
};

const saveFile = ({ file_name, media_type, base64 }) => {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const address = URL.createObjectURL(new Blob([bytes], { type: media_type }));
  element("a", "", { href: address, download: file_name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
};

// Returns what finds texts as whole words, whatever their case and the blanks in them.
const markedWords = (texts) => {
  const escaped = (word) => word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  const patterns = texts.map((text) => text.trim().split(/\s+/).map(escaped).join("\\s+")).filter(Boolean);
  return patterns.length ? new RegExp(`(?<![\\p{L}\\p{N}_])(?:${patterns.join("|")})(?![\\p{L}\\p{N}_])`, "giu") : null;
};

const markWords = (node, words) => {
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT, (text) => (text.parentElement.closest("button, time, a.link, mark") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT));
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (const text of texts) {
    const parts = [];
    let end = 0;
    for (const { 0: found, index } of text.data.matchAll(words)) {
      parts.push(text.data.slice(end, index), element("mark", found));
      end = index + found.length;
    }
    if (end > 0) text.replaceWith(...parts, text.data.slice(end));
  }
};

// Scrolls to the first mark of a record, and within what scrolls by itself, if it is not seen yet.
const showMark = (target, shown) => {
  const mark = one("mark", shown) ?? one("mark", target.closest("details") ?? target);
  if (!mark) return;
  for (let at = mark; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  const { top, bottom } = mark.getBoundingClientRect();
  const isInWindow = top >= barHeight() && bottom <= innerHeight;
  mark.scrollIntoView({ block: isInWindow ? "nearest" : "center", behavior: "instant" });
};

const sessionPage = (url) => {
  const reference = decodeURIComponent(url.pathname.split("/")[2]);
  const trail = url.searchParams.get("trail") ?? undefined;
  const conversation = one("#conversation");
  const newer = one("#newer");
  let session = null;
  let column = null;
  let isUnfolded = false;
  let prompts = [];

  const load = async (first, last) => {
    const isLast = last >= column.count - 1;
    const from = session.first + first;
    const { html, end } = await ask("records", {
      session: session.id, trail, first: from, last: isLast ? from + RECORDS - 1 : session.first + last,
    });
    if (end > session.end) grow(end);
    return html;
  };

  const grow = (end) => {
    session.end = end;
    markSeen(session.id, end);
    column.resize(end - session.first + 1);
  };

  // What a search found, where it is read.
  const words = markedWords(url.searchParams.getAll("mark"));

  const prepare = (node) => {
    prepareParts(node, session.id, trail);
    if (words) markWords(node, words);
    if (isUnfolded) all("details", node).forEach((details) => { details.open = !details.matches(".file"); });
  };

  const isAtEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 150;
  const toEnd = async () => {
    await column.reach(column.count - 1);
    scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
    newer.hidden = true;
  };

  const goTo = async (seq) => {
    const range = await column.reach(seq - session.first);
    if (!range) return;
    // A record that is shown within another one has no place of its own.
    const places = all("[id^=r]", range).filter((node) => /^r\d+$/.test(node.id));
    const target = document.getElementById(`r${seq}`) ?? places.findLast((node) => Number(node.id.slice(1)) <= seq) ?? range;
    for (let at = target; at && at !== conversation; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    all(".here", conversation).forEach((node) => node.classList.remove("here"));
    const shown = target.classList.contains("anchor") ? target.nextElementSibling ?? target : target;
    shown.classList.add("here");
    shown.setAttribute("tabindex", "-1");
    shown.focus({ preventScroll: true });
    scrollTo({ top: scrollY + target.getBoundingClientRect().top - barHeight() - 12, behavior: "instant" });
    showMark(target, shown);
    await Promise.all([column.reach(seq - session.first - RECORDS), column.reach(seq - session.first + RECORDS)]);
  };

  const arrive = async (hash) => {
    const seq = /^#r(\d+)$/.exec(hash)?.[1];
    if (seq === undefined) return false;
    await goTo(Number(seq));
    return true;
  };

  const showHead = () => {
    fill(one("#session-head"), session.html);
    showTimes(one("#session-head"));
    const writer = one("#writer");
    writer.hidden = !session.writer;
    writer.textContent = session.writer ? `${session.writer} is writing to this session.` : "";
    document.title = `${session.title || session.short} · Backtrail`;
    one("#family").hidden = !session.family;
    if (session.family) fill(one("#family nav"), session.family);
  };

  const showOutline = () => showing(one("#outline nav"), async () => {
    const { html } = await ask("outline", { session: session.id });
    fill(one("#outline nav"), html);
    prompts = all("#outline li a").map((link) => Number(link.getAttribute("href").slice(2)));
    markHere();
  });

  // The prompt that is read now.
  const here = () => {
    const shown = all("#conversation .range > .prompt").filter((node) => node.getBoundingClientRect().top < innerHeight / 3);
    if (shown.length) return Number(shown.at(-1).id.slice(1));
    const item = column ? column.itemAt(barHeight()) + (session?.first ?? 0) : 0;
    return prompts.findLast((seq) => seq <= item) ?? prompts[0];
  };

  const markHere = () => {
    const now = here();
    const link = one(`#outline a[href="#r${now}"]`);
    const old = one("#outline a.now");
    if (!link || link === old) return;
    old?.classList.remove("now");
    old?.removeAttribute("aria-current");
    link.classList.add("now");
    link.setAttribute("aria-current", "location");
    const box = one("#side");
    const top = link.getBoundingClientRect().top - box.getBoundingClientRect().top;
    if (top < 0 || top > box.clientHeight - 60) box.scrollTop += top - box.clientHeight / 3;
  };

  let isMarking = false;
  const onScroll = () => {
    if (isMarking) return;
    isMarking = true;
    requestAnimationFrame(() => {
      isMarking = false;
      markHere();
      if (isAtEnd()) newer.hidden = true;
    });
  };

  const readAgain = later(400, async () => {
    try {
      Object.assign(session, await ask("session", { ref: session.id }));
      showHead();
      await showOutline();
    } catch { /* the next change tries again */ }
  });

  const renew = coalesced(async () => {
    if (!column || trail !== undefined) return;
    const follows = isAtEnd();
    const before = session.end;
    const last = column.ranges.length - 1;
    if (column.ranges[last]?.isFilled) await column.renew(last - 1);
    else {
      const { end } = await ask("records", { session: session.id, first: session.end, last: session.end });
      if (end > session.end) grow(end);
    }
    if (session.end > before) {
      if (follows) await toEnd();
      else {
        newer.hidden = false;
        newer.textContent = "New records ↓";
        say("New records at the end");
      }
      readAgain();
    }
  });

  const start = async () => {
    session = await ask("session", { ref: reference });
    one("#session-tools").inert = false;
    markSeen(session.id, session.end);
    showHead();
    column = new Column(conversation, { size: RECORDS, height: RECORD_HEIGHT, load, prepare });
    column.resize(session.end - session.first + 1);
    guardWrites(document);
    one("#copy-session").hidden = !session.formats.includes("markdown");
    showOutline();
    if (!(await arrive(url.hash))) await column.reach(0);
  };

  // Its tools are of use once it is known.
  one("#session-tools").inert = true;
  const ready = showing(conversation, start);
  addEventListener("scroll", onScroll, { passive: true });
  newer.addEventListener("click", toEnd);

  one("#unfold").addEventListener("click", (event) => {
    isUnfolded = !isUnfolded;
    event.currentTarget.setAttribute("aria-pressed", String(isUnfolded));
    event.currentTarget.textContent = isUnfolded ? "Fold" : "Unfold";
    column.keepPlace(() => {
      for (const details of all("#conversation details:not(.file)")) details.open = isUnfolded;
    });
  });

  const side = one("#side");
  const listing = (isOpen) => {
    side.classList.toggle("open", isOpen);
    one("#outline-button").setAttribute("aria-expanded", String(isOpen));
    if (isOpen) (one("a.now", side) ?? one("a", side))?.focus();
  };
  one("#outline-button").addEventListener("click", () => listing(!side.classList.contains("open")));
  side.addEventListener("click", (event) => { if (event.target.closest("a")) listing(false); });

  one("#context").addEventListener("toggle", (event) => {
    const body = one("#context > div");
    if (event.currentTarget.open) showing(body, async () => fill(body, (await ask("context", { session: session.id })).html));
  });

  one("#copy-session").addEventListener("click", async () => {
    try {
      const { base64 } = await ask("export", { session: session.id, format: "markdown" });
      const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
      await copy(new TextDecoder().decode(bytes), "the session as Markdown");
    } catch (failure) { report(explained(failure).message); }
  });
  one("#export-button").addEventListener("click", () => openExport(session));
  one("#rename").addEventListener("click", async () => {
    const title = await askText({ title: "Title", label: "Title", value: session.title, note: "An empty title removes it." });
    if (title !== null) plan({ action: { do: "title", session: session.id, title } });
  });
  one("#retag").addEventListener("click", async () => {
    const changes = await askText({ title: "Tags", label: "Changes", note: "+tag adds a tag, -tag removes it." });
    if (changes) plan({ action: { do: "tag", session: session.id, changes } });
  });

  const step = (by) => {
    const at = prompts.indexOf(here());
    const next = prompts[at < 0 ? 0 : at + by];
    if (next === undefined) return;
    history.replaceState(history.state, "", `#r${next}`);
    goTo(next);
  };

  return {
    title: "Session",
    ready,
    arrive,
    step,
    keys: {
      o: () => listing(!side.classList.contains("open")),
      f: () => one("#unfold").click(),
      G: toEnd,
      Escape: () => listing(false),
    },
    toStart: () => goTo(session.first),
    changed: (name, data) => {
      if (!session) return;
      if (name === "session" && data.session !== session.id) return;
      if (name === "session" || name === "reset") renew();
      else readAgain();
    },
    leave: () => {
      removeEventListener("scroll", onScroll);
      column?.close();
    },
  };
};

// The export of a session, which the browser saves.
const exportBox = one("#export");
const openExport = (session) => {
  exportBox.dataset.session = session.id;
  one("select", exportBox).replaceChildren(...session.formats.map((format) => new Option(format, format)));
  if (session.formats.includes("html")) one("select", exportBox).value = "html";
  one(".notes", exportBox).hidden = true;
  problem(exportBox, null);
  exportBox.showModal();
};
one("form", exportBox).addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = one("[type=submit]", exportBox);
  const { format, redact } = Object.fromEntries(new FormData(event.target));
  button.disabled = true;
  problem(exportBox, null);
  try {
    const made = await ask("export", { session: exportBox.dataset.session, format, redact });
    saveFile(made);
    const notes = one(".notes", exportBox);
    notes.replaceChildren(...made.notes.map((note) => element("li", note)));
    notes.hidden = made.notes.length === 0;
    report(`Saved ${made.file_name}`);
    if (made.notes.length === 0) exportBox.close();
  } catch (failure) { problem(exportBox, explained(failure)); }
  button.disabled = false;
});

// What can be done with a record: a menu at its number.
const menu = one("#menu");
let menuOf = null;
const openMenu = (link) => {
  const { session, trail } = link.dataset;
  menuOf = { link, session, seq: Number(link.textContent.replace(/\D/g, "")), trail: trail === "" ? undefined : Number(trail) };
  menu.showPopover();
  const box = link.getBoundingClientRect();
  const left = Math.min(box.left, innerWidth - menu.offsetWidth - 8);
  const top = box.bottom + menu.offsetHeight > innerHeight ? box.top - menu.offsetHeight - 4 : box.bottom + 4;
  menu.style.left = `${Math.max(8, left)}px`;
  menu.style.top = `${Math.max(8, top)}px`;
  guardWrites(menu);
  one("button", menu).focus();
};

const recordLink = ({ session, seq, trail }) =>
  `${location.origin}/session/${encodeURIComponent(session)}${trail === undefined ? "" : `?trail=${trail}`}#r${seq}`;

const recordMoment = ({ session, seq, trail }) => ["r", session, seq, ...(trail === undefined ? [] : [trail])].join(":");

// The workspace that has the files of a session, wherever this program was started; empty if none has.
const workspaceOf = async (session) => (await ask("session", { ref: session })).workspace;

const asMarkdown = (link, text) => {
  if (link.closest(".prompt")) return `## User\n\n${text}\n`;
  if (link.closest(".answer")) return `${text}\n`;
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}\n`;
};

const menuActions = {
  link: () => copy(recordLink(menuOf), "a link"),
  text: async () => copy((await ask("text", menuOf)).text, "the text"),
  markdown: async () => copy(asMarkdown(menuOf.link, (await ask("text", menuOf)).text), "Markdown"),
  files: async () => {
    const at = recordMoment(menuOf);
    const w = await workspaceOf(menuOf.session);
    await router.go(`/files?${given({ w, at })}`);
  },
  rewind: async () => {
    const to = recordMoment(menuOf);
    const workspace = await workspaceOf(menuOf.session);
    await plan({ w: workspace, action: { do: "rewind", workspace, to } });
  },
  fork: async () => {
    const { session, seq, trail } = menuOf;
    const workspace = await workspaceOf(session);
    await fork({ session, seq, trail }, workspace);
  },
};
menu.addEventListener("click", async (event) => {
  const act = event.target.closest("button")?.dataset.do;
  if (!act) return;
  menu.hidePopover();
  menuOf.link.focus({ preventScroll: true });
  try { await menuActions[act](); } catch (failure) { report(explained(failure).message); }
});
menu.addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  const buttons = all("button:not(:disabled)", menu);
  buttons.at((buttons.indexOf(document.activeElement) + by) % buttons.length).focus();
});
document.addEventListener("click", (event) => {
  const link = event.target.closest("#conversation a.link");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  openMenu(link);
});
