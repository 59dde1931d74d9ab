// Files that changed, and their differences: wherever a page lists them.

const LAYOUT = "backtrail-layout";
const isSplit = () => recall(LAYOUT) === "split";

const showLayout = () => {
  for (const button of all("[data-layout]")) button.setAttribute("aria-pressed", String(isSplit()));
};

const toggleLayout = () => {
  keep(LAYOUT, isSplit() ? "unified" : "split");
  showLayout();
  for (const file of all("details.file[open]")) showDiff(file);
};

const showChanges = async (node, parameters) => {
  node.shows = parameters;
  node.replaceChildren(element("p", "Reading…", { class: "empty" }));
  await showing(node, async () => {
    const changes = await ask("changes", parameters);
    // Something else may be wanted here by now.
    if (node.shows !== parameters) return;
    fill(node, changes.html);
    if (changes.count === 1) one("details.file", node).open = true;
  });
};

const showDiff = (file) => {
  const list = file.closest(".changes");
  const { of, w, workspace, from, to } = list.dataset;
  const parameters = new URLSearchParams(of);
  const between = workspace ? { between_w: workspace, between_from: from, between_to: to } : {};
  const more = { w, path: file.dataset.path, layout: isSplit() ? "split" : "unified", ...between };
  for (const [name, value] of Object.entries(more)) if (value) parameters.set(name, value);
  const here = one(".diff-here", file);
  return showing(here, async () => fill(here, (await ask("diff", parameters)).html));
};

// Restores a file or a hunk of it as it was before the changes that are shown.
const restore = (button) => {
  const file = button.closest("details.file");
  const { w, workspace, from, to } = file.closest(".changes").dataset;
  const { path } = file.dataset;
  const { hunk } = button.dataset;
  const action = hunk === undefined
    ? { do: "restore", workspace, from, paths: [path] }
    : { do: "restore-hunks", workspace, from, to, path, hunks: [Number(hunk)] };
  plan({ w: w || workspace, action });
};

document.addEventListener("toggle", (event) => {
  if (!event.target.open || !event.target.matches?.("details.file")) return;
  if (!one(".diff-here", event.target).hasChildNodes()) showDiff(event.target);
}, true);

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.matches("[data-hunk], [data-restore]")) restore(button);
  if (button.matches("[data-layout]")) toggleLayout();
});
