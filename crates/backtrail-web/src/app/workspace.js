// What happened in a workspace: a timeline with a slider, what changed at each moment, and the way
// back.

const momentOf = (id) => (id === "now" ? "now" : `c:${id}`);

const workspacePage = (url) => {
  const w = url.searchParams.get("w") ?? "";
  const slider = one("#slider");
  const timeline = one("#timeline");
  const changesBox = one("#moment-changes");
  let limit = 200;
  let workspace = w;
  let rows = [];
  let selected = null;
  let isComparing = false;

  const wordsOf = (row) => [".kind", ".about"].map((part) => one(part, row).textContent.trim()).filter(Boolean).join(" ");
  const timeOf = (row) => {
    let at = row.closest("li");
    while (at && !at.matches(".day")) at = at.previousElementSibling;
    return [at?.textContent, one(".at", row).textContent].filter(Boolean).join(", ");
  };

  const showTimeline = () => showing(timeline, async () => {
    const found = await ask("timeline", { w, limit });
    workspace = found.workspace || w;
    fill(timeline, found.html);
    rows = all(".moment", timeline);
    one("#older").hidden = !found.has_more;
    one("#next-undo").textContent = found.next_undo;
    slider.max = Math.max(0, rows.length - 1);
    slider.disabled = rows.length < 2;
    if (rows.length === 0) {
      timeline.replaceChildren(element("p", "Nothing has happened here yet. Choose a workspace above, or make the first checkpoint here in a terminal: backtrail checkpoint", { class: "empty" }));
      one("#moment").hidden = true;
      return;
    }
    showMoments();
    const wanted = selected?.dataset.id ?? new URLSearchParams(location.search).get("at")?.replace(/^c:/, "");
    select(rows.find((row) => row.dataset.id === wanted) ?? rows[0], { keepsChanges: selected !== null });
  });

  // The moments that can be compared.
  const showMoments = () => {
    for (const choice of all("#compare select")) {
      const value = choice.value;
      const moments = rows.filter((row) => row.dataset.id !== "now");
      choice.replaceChildren(new Option("now", "now"), ...moments.map((row) => new Option(`${timeOf(row)} ${wordsOf(row)}`.slice(0, 80), momentOf(row.dataset.id))));
      if (value) choice.value = value;
    }
  };

  const showRowChanges = later(80, () => {
    if (selected && !isComparing) showChanges(changesBox, { w, row: selected.dataset.id });
  });

  const select = (row, { keepsChanges = false, focus = false } = {}) => {
    for (const old of all("[aria-current]", timeline)) old.removeAttribute("aria-current");
    row.setAttribute("aria-current", "true");
    const isSame = selected?.dataset.id === row.dataset.id;
    selected = row;
    isComparing = keepsChanges && isComparing;
    if (focus) row.focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
    slider.value = rows.length - 1 - rows.indexOf(row);
    const words = `${timeOf(row)} · ${wordsOf(row)}`;
    one("#slider-moment").textContent = words;
    slider.setAttribute("aria-valuetext", words);
    one("#moment h2").textContent = wordsOf(row);
    one("#moment-changes").removeAttribute("aria-label");
    one(".moment-head p").textContent = [timeOf(row), one(".change", row).textContent].filter(Boolean).join(" · ");
    const { id, session, href } = row.dataset;
    one("#moment-session").hidden = !href;
    if (href) one("#moment-session").href = href;
    one("#moment-files").href = `/files?${given({ w: workspace, at: momentOf(id) })}`;
    const rewind = one("#moment-rewind");
    if (id === "now") rewind.dataset.impossible = "";
    else delete rewind.dataset.impossible;
    one("#moment-fork").hidden = !session;
    // Now is compared with the moment before it.
    const { from } = one("#compare").elements;
    from.value = momentOf(id === "now" ? rows[1]?.dataset.id ?? id : id);
    guardWrites(one("#moment"));
    const chosen = given({ w, at: rows[0] === row ? "" : momentOf(id) });
    router.rewrite(`/workspace${[...chosen].length ? `?${chosen}` : ""}`);
    if (!isSame || !keepsChanges || !changesBox.hasChildNodes()) showRowChanges();
  };

  const renew = later(80, showTimeline);
  const order = (action) => plan({ w: w || workspace, action });

  timeline.addEventListener("click", (event) => {
    const row = event.target.closest(".moment");
    if (row) select(row);
    if (row && innerWidth < 900) one("#moment").scrollIntoView({ block: "start" });
  });
  slider.addEventListener("input", () => select(rows[rows.length - 1 - Number(slider.value)]));
  one("#older").addEventListener("click", () => {
    limit *= 4;
    showTimeline();
  });
  one("#undo").addEventListener("click", () => order({ do: "undo" }));
  one("#redo").addEventListener("click", () => order({ do: "redo" }));
  one("#moment-rewind").addEventListener("click", () => order({ do: "rewind", workspace, to: momentOf(selected.dataset.id) }));
  one("#moment-fork").addEventListener("click", () => {
    const { session, seq, trail } = selected.dataset;
    fork({ session, seq: Number(seq), ...(trail && { trail: Number(trail) }) }, w || workspace);
  });
  one("#compare").addEventListener("submit", (event) => {
    event.preventDefault();
    const places = ["now", ...rows.map((row) => momentOf(row.dataset.id)).filter((moment) => moment !== "now")];
    let { from, to } = Object.fromEntries(new FormData(event.target));
    // Newest first: the one further down is the earlier one.
    if (places.indexOf(from) < places.indexOf(to)) [from, to] = [to, from];
    isComparing = true;
    one("#moment h2").textContent = "Comparison";
    one(".moment-head p").textContent = [from, to].map((moment) => [...event.target.elements.from.options].find((option) => option.value === moment)?.text ?? moment).join(" → ");
    showChanges(changesBox, { w: w || workspace, from, to });
  });
  const choice = one("#workspace-choice");
  showing(choice.parentElement, async () => {
    const found = await ask("workspaces");
    fill(choice, found.html);
    if (w) choice.value = w;
    // A list shows its first entry as chosen, which then cannot be.
    else if (!one("[selected]", choice)) choice.prepend(new Option("Choose a workspace", "", true, true));
    choice.parentElement.hidden = found.count === 0;
  });
  choice.addEventListener("change", () => router.go(`/workspace?${given({ w: choice.value })}`));
  showLayout();

  return {
    title: "Workspace",
    ready: showTimeline(),
    step: (by) => {
      const next = rows[Math.min(rows.length - 1, Math.max(0, rows.indexOf(selected) + by))];
      if (next) select(next, { focus: true });
    },
    keys: {
      u: () => one("#undo").click(),
      U: () => one("#redo").click(),
    },
    workspace: () => workspace,
    changed: (name) => { if (name === "workspace" || name === "reset") renew(); },
  };
};
