// Everything works on what is in the page already: it only reads text, moves and marks.
(() => {
  "use strict";
  const root = document.documentElement;
  const one = (selector) => document.querySelector(selector);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const main = one("main");
  document.body.classList.add("script");

  // Times, in the zone of who reads.
  const sameDay = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
  const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  let day = "";
  for (const time of all("time")) {
    const at = new Date(time.dateTime);
    if (isNaN(at)) continue;
    const inHead = time.closest(".head");
    time.textContent = !inHead && at.toDateString() === day ? sameDay.format(at) : whole.format(at);
    if (!inHead) day = at.toDateString();
  }

  // Light and dark: as the system has it until somebody chooses.
  const recall = () => { try { return localStorage.getItem("backtrail-theme"); } catch { return null; } };
  const keep = (theme) => { try { localStorage.setItem("backtrail-theme", theme); } catch { /* it is forgotten */ } };
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  if (["light", "dark"].includes(recall())) root.dataset.theme = recall();
  one("#theme").addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    keep(root.dataset.theme);
  });

  // Going to a place unfolds what it is in.
  const unfold = (node) => {
    for (let at = node; at && at !== main; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  };
  const arrive = () => {
    const target = /^#r\d+$/.test(location.hash) && document.getElementById(location.hash.slice(1));
    if (!target) return;
    unfold(target);
    target.scrollIntoView();
  };
  addEventListener("hashchange", arrive);
  arrive();

  const everything = one("#unfold");
  everything.addEventListener("click", () => {
    const open = everything.getAttribute("aria-pressed") !== "true";
    for (const details of all("main details")) details.open = open;
    everything.setAttribute("aria-pressed", open);
    everything.textContent = open ? "fold" : "unfold";
  });

  // A click on a record's number copies a link to it.
  main.addEventListener("click", (event) => {
    const link = event.target.closest("a.link");
    if (!link || !navigator.clipboard) return;
    navigator.clipboard.writeText(link.href).then(() => {
      link.classList.add("copied");
      setTimeout(() => link.classList.remove("copied"), 1200);
    }, () => {});
  });

  // The list of prompts: a sheet on small screens, and always where one is.
  const prompts = one("#prompts");
  const listing = (on) => document.body.classList.toggle("listing", on);
  one("#list").addEventListener("click", (event) => {
    event.preventDefault();
    listing();
  });
  prompts.addEventListener("click", (event) => { if (event.target.closest("a")) listing(false); });
  const entries = new Map(all("#prompts li a").map((link) => [link.getAttribute("href").slice(1), link]));
  let current = null;
  const here = (id) => {
    if (!entries.has(id) || entries.get(id) === current) return;
    if (current) current.classList.remove("now");
    current = entries.get(id);
    current.classList.add("now");
    if (!document.body.classList.contains("listing")) {
      const top = current.offsetTop - prompts.offsetTop;
      if (top < prompts.scrollTop || top > prompts.scrollTop + prompts.clientHeight - 60) prompts.scrollTop = top - prompts.clientHeight / 3;
    }
  };
  const starts = all("main > .prompt");
  const look = () => {
    let [low, high] = [0, starts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (starts[middle].getBoundingClientRect().top < innerHeight / 3) low = middle + 1; else high = middle;
    }
    if (starts.length) here(starts[Math.max(0, low - 1)].id);
  };
  let waits = false;
  addEventListener("scroll", () => {
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => { waits = false; look(); });
  }, { passive: true });
  look();

  // Search: marks what is found, counts it, and goes from one to the next.
  const form = one("#search");
  const field = form.querySelector("input");
  const tally = form.querySelector("output");
  const only = one("#only");
  const MOST = 5000;
  const marks = "highlights" in CSS;
  let found = [];
  let at = -1;

  // The texts of the page, each in its pieces: a block of code is one, whatever its colours.
  const texts = () => {
    const texts = [];
    const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
    let last = null;
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const code = node.parentElement.closest("pre > code");
      if (code && code === last) texts.at(-1).push(node); else texts.push([node]);
      last = code;
    }
    return texts;
  };

  // Returns where in its pieces a place of a text is. Places are asked for in their order.
  const placesIn = (pieces) => {
    let [piece, before] = [0, 0];
    return (at) => {
      while (at > before + pieces[piece].length) {
        before += pieces[piece].length;
        piece += 1;
      }
      return [pieces[piece], at - before];
    };
  };

  const find = (words) => {
    const ranges = [];
    for (const pieces of texts()) {
      const whole = pieces.map((piece) => piece.data).join("");
      const text = whole.toLowerCase();
      // A letter whose small form is longer would shift what follows it.
      if (text.length !== whole.length) continue;
      const place = placesIn(pieces);
      for (let from = text.indexOf(words); from >= 0 && ranges.length < MOST; from = text.indexOf(words, from + words.length)) {
        const range = new Range();
        // The piece that its first letter is in, not the one before it.
        const [first, after] = place(from + 1);
        range.setStart(first, after - 1);
        range.setEnd(...place(from + words.length));
        ranges.push(range);
      }
    }
    return ranges;
  };

  const blockOf = (range) => {
    let block = range.startContainer.parentElement;
    while (block.parentElement && block.parentElement !== main) block = block.parentElement;
    return block;
  };

  const show = () => {
    tally.textContent = !field.value.trim() ? "" : found.length ? `${at + 1} / ${found.length}${found.length === MOST ? "+" : ""}` : "none";
    for (const hit of all(".hit")) hit.classList.remove("hit");
    if (marks) CSS.highlights.delete("now");
    if (at < 0) return;
    const range = found[at];
    unfold(range.startContainer.parentElement);
    if (marks) CSS.highlights.set("now", new Highlight(range));
    else range.startContainer.parentElement.classList.add("hit");
    const box = range.getBoundingClientRect();
    if (box.top < 80 || box.bottom > innerHeight - 40) scrollTo({ top: scrollY + box.top - innerHeight / 3 });
    const scroller = range.startContainer.parentElement.closest("pre");
    if (scroller) {
      const inner = range.getBoundingClientRect().top - scroller.getBoundingClientRect().top;
      if (inner < 0 || inner > scroller.clientHeight - 20) scroller.scrollTop += inner - scroller.clientHeight / 2;
    }
  };

  const search = () => {
    const words = field.value.trim().toLowerCase();
    found = words ? find(words) : [];
    at = found.length ? Math.max(0, found.findIndex((range) => blockOf(range).getBoundingClientRect().bottom > 80)) : -1;
    if (marks) {
      CSS.highlights.delete("found");
      if (found.length) CSS.highlights.set("found", new Highlight(...found));
    }
    for (const block of all("main > .matches")) block.classList.remove("matches");
    for (const range of found) blockOf(range).classList.add("matches");
    form.classList.toggle("asked", words !== "");
    form.classList.toggle("found", found.length > 0);
    document.body.classList.toggle("asked", words !== "");
    if (!words) filter(false);
    show();
  };

  const step = (by) => {
    if (!found.length) return;
    at = (at + by + found.length) % found.length;
    show();
  };

  const filter = (on) => {
    document.body.classList.toggle("only", on);
    only.setAttribute("aria-pressed", on);
  };

  let soon = 0;
  field.addEventListener("input", () => {
    clearTimeout(soon);
    soon = setTimeout(search, 150);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      step(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      field.value = "";
      search();
      field.blur();
    }
  });
  one("#on").addEventListener("click", () => step(1));
  one("#back").addEventListener("click", () => step(-1));
  only.addEventListener("click", () => {
    filter(!document.body.classList.contains("only"));
    show();
  });

  // Keys: / to search, j and k to the next prompt and the one before.
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input")) return;
    const next = (by) => {
      const tops = starts.map((start) => start.getBoundingClientRect().top);
      const n = by > 0 ? tops.findIndex((top) => top > 80) : tops.findLastIndex((top) => top < 60);
      if (n >= 0) starts[n].scrollIntoView();
    };
    if (event.key === "/") {
      event.preventDefault();
      field.focus();
      field.select();
    } else if (event.key === "j") next(1);
    else if (event.key === "k") next(-1);
    else if (event.key === "Escape") listing(false);
  });
})();
