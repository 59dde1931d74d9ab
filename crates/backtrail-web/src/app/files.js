// The files of a workspace at a moment, the content of one, and who wrote each line of it.

const fileParameters = (url) => {
  const { w, at, path } = Object.fromEntries(url.searchParams);
  // The workspace of a record is that of its session.
  const here = at?.startsWith("r:") ? "" : hello.workspace;
  return { w: w ?? here, at: at ?? "now", path };
};

const showWhen = (at) => {
  const words = at === "now" ? "as they are now" : at.startsWith("r:") ? `as they were at record ${at.split(":")[2]}` : `as they were at checkpoint ${at.slice(2, 10)}`;
  one("#when").textContent = words;
};

// The tools of a file: the other view of it, and the way back.
const showFileTools = (page, { w, at, path }) => {
  one(".content-head h2").textContent = path;
  const other = page === "files" ? "Blame" : "Content";
  const address = page === "files" ? "/blame" : "/files";
  const tools = [element("a", other, { class: "button", href: `${address}?${given({ w, at, path })}` })];
  if (page === "files" && at !== "now") {
    const button = element("button", "Restore this file…", { type: "button", class: "button", "data-write": "" });
    button.addEventListener("click", () => plan({ w, action: { do: "restore", workspace: w, from: at, paths: [path] } }));
    tools.push(button);
  }
  one(".content-head .tools").replaceChildren(...tools);
  guardWrites(one(".content-head"));
};

const filesPage = (url) => {
  let shown = fileParameters(url);
  const tree = one("#tree");
  const find = one("#find-file");

  const showFile = () => {
    const file = one("#file");
    for (const link of all("a[aria-current]", tree)) link.removeAttribute("aria-current");
    if (!shown.path) {
      one(".content-head h2").textContent = "";
      file.replaceChildren(element("p", "Choose a file.", { class: "empty" }));
      return Promise.resolve();
    }
    one(`a[data-path="${CSS.escape(shown.path)}"]`, tree)?.setAttribute("aria-current", "page");
    showFileTools("files", shown);
    return showing(file, async () => fill(file, (await ask("file", shown)).html));
  };

  const showFolder = (node, dir) => showing(node, async () => {
    const { html } = await ask("files", { w: shown.w, at: shown.at, dir });
    const list = fragment(html);
    if (node === tree) tree.replaceChildren(list);
    else node.append(list);
    if (shown.path) one(`a[data-path="${CSS.escape(shown.path)}"]`, node)?.setAttribute("aria-current", "page");
    // The way to the file that is shown is open.
    const next = all(":scope > ul > li > details.folder", node).find((folder) => shown.path?.startsWith(folder.dataset.dir));
    if (next) next.open = true;
  });

  const onToggle = (event) => {
    const folder = event.target;
    if (folder.matches?.("details.folder") && folder.open && !one("ul", folder)) showFolder(folder, folder.dataset.dir);
  };
  tree.addEventListener("toggle", onToggle, true);
  find.addEventListener("input", later(150, () => {
    const part = find.value.trim();
    if (!part) return showFolder(tree, "");
    return showing(tree, async () => fill(tree, (await ask("files", { w: shown.w, at: shown.at, find: part })).html));
  }));
  showWhen(shown.at);
  showFolder(tree, "");
  return {
    title: shown.path ?? "Files",
    ready: showFile(),
    steps: "#tree a, #tree summary",
    workspace: () => shown.w,
    // Another file of the same moment leaves the tree as it is.
    moved: (next) => {
      const { w, at, path } = fileParameters(next);
      if (w !== shown.w || at !== shown.at) return false;
      shown = { w, at, path };
      document.title = `${path ?? "Files"} · Backtrail`;
      showFile();
      return true;
    },
    changed: (name) => { if ((name === "workspace" || name === "reset") && shown.at === "now") showFile(); },
  };
};

const blamePage = (url) => {
  const shown = fileParameters(url);
  const file = one("#file");
  showWhen(shown.at);
  const show = () => {
    if (!shown.path) {
      const empty = element("p", "Choose a file on the page of ", { class: "empty" });
      empty.append(element("a", "files", { href: `/files?${given(shown)}` }), ".");
      file.replaceChildren(empty);
      return Promise.resolve();
    }
    showFileTools("blame", shown);
    return showing(file, async () => fill(file, (await ask("blame", shown)).html));
  };
  return {
    title: shown.path ? `Blame of ${shown.path}` : "Blame",
    ready: show(),
    steps: ".author a",
    workspace: () => shown.w,
    changed: (name) => { if ((name === "workspace" || name === "reset") && shown.at === "now") show(); },
  };
};
